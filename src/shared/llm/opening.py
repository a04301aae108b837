"""Opens the model that a setting names, `provider:model`. The providers' SDKs are optional and imported when needed."""

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pydantic import SecretStr

from shared.errors import ConfigError
from shared.imports import collector_paused
from shared.llm.computer import Conversation
from shared.llm.model import BeforeRetry
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.llm.http import HTTPModel

PROVIDERS = ("anthropic", "gemini", "openai")


class Provider(NamedTuple):
    """A provider's SDK (module and package names) and its settings from the environment."""

    module: str
    package: str
    key_variable: str
    url_variable: str
    key: SecretStr | None
    base_url: str | None

    def require_key(self, who: str) -> None:
        """Raises `ConfigError` if there is neither a key nor a custom endpoint, which may need no key."""
        if self.key is None and self.base_url is None:
            raise ConfigError(
                f"{who}: {self.key_variable} is not set",
                remedy=f"set it where the participant runs, or {self.url_variable} for an endpoint that needs none",
            )


def provider_of(name: str, settings: Settings) -> Provider:
    """The provider of the model `provider:model`, one of `PROVIDERS`."""
    match name.partition(":")[0]:
        case "anthropic":
            names = ("anthropic", "anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
            return Provider(*names, settings.anthropic_api_key, settings.anthropic_base_url)
        case "gemini":
            names = ("google.genai", "google-genai", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL")
            return Provider(*names, settings.google_api_key, settings.gemini_base_url)
    names = ("openai", "openai", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    return Provider(*names, settings.openai_api_key, settings.openai_base_url)


def require_sdk(name: str, settings: Settings, purpose: str) -> None:
    """Raises `ConfigError` when the SDK for the model is not installed. `purpose`: "judge model", for example."""
    provider = provider_of(name, settings)
    try:
        found = importlib.util.find_spec(provider.module)
    except ImportError:
        found = None
    if found is None:
        extra = name.partition(":")[0]
        raise ConfigError(
            f'{purpose} "{name}": {provider.package} is not installed', remedy=f'pip install "wabe[{extra}]"'
        )


def open_model(
    name: str,
    settings: Settings,
    *,
    purpose: str,
    timeout_s: float,
    base_url: str | None = None,
    before_retry: BeforeRetry | None = None,
) -> "HTTPModel":
    """The model `provider:model`; `base_url` overrides the one in `settings`. Raises `ConfigError` without its SDK."""
    require_sdk(name, settings, purpose)
    provider = provider_of(name, settings)
    adapter: type[HTTPModel]
    # An SDK takes most of a second to import, partly only when its client is created.
    with collector_paused():
        if name.startswith("anthropic:"):
            from shared.llm.anthropic import AnthropicModel as adapter
        elif name.startswith("gemini:"):
            from shared.llm.gemini import GeminiModel as adapter
        else:
            from shared.llm.openai import OpenAIModel as adapter
        return adapter(
            name.partition(":")[2],
            # The SDKs require a key even for endpoints that need none (vLLM, Ollama).
            api_key=provider.key.get_secret_value() if provider.key else "none",
            base_url=base_url or provider.base_url,
            timeout_s=timeout_s,
            before_retry=before_retry,
        )


def converse(model: "HTTPModel", system: str, task: str) -> Conversation:
    """Begin a conversation about one task, using the provider's computer-use tool."""
    conversation: Callable[..., Conversation]
    if model.provider == "anthropic":
        from shared.llm.anthropic_computer import AnthropicConversation as conversation
    elif model.provider == "gemini":
        from shared.llm.gemini_computer import GeminiConversation as conversation
    else:
        from shared.llm.openai_computer import OpenAIConversation as conversation
    return conversation(model, system, task)
