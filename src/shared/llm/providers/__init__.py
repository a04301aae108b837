"""The providers of models: one module each, which contains its descriptor, `PROVIDER`, and its adapter.

A module's name is the provider's. SDKs are imported when a client is created, so a descriptor can be read without.
"""

import pkgutil


def provider_names() -> tuple[str, ...]:
    """The providers' names, without importing them."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def model_forms() -> str:
    """How models are named, for help texts: `anthropic:MODEL, gemini:MODEL, openai:MODEL`."""
    return ", ".join(f"{name}:MODEL" for name in provider_names())
