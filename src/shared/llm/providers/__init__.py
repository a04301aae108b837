"""The providers of models built in: one module each, with its descriptor, `PROVIDER`, and its adapter.

Each is an entry point of `wabe.providers`, as in other packages. A provider's name is its entry
point's. SDKs are imported when a client is created, so a descriptor can be read without.
"""

from shared.llm.provider import Provider
from shared.seams import Seam

PROVIDERS: Seam[Provider] = Seam("providers", "provider of models")


def provider_names() -> tuple[str, ...]:
    """The providers' names, without importing them."""
    return tuple(sorted(PROVIDERS.names()))


def model_forms() -> str:
    """How models are named, for help texts: `anthropic:MODEL, gemini:MODEL, openai:MODEL`."""
    return ", ".join(f"{name}:MODEL" for name in provider_names())
