"""Opens the model that a setting names, `provider:model`. The providers' SDKs are optional and imported when needed."""

import importlib.util
from typing import TYPE_CHECKING, NamedTuple

from pydantic import SecretStr

from shared.errors import ConfigError
from shared.imports import collector_paused
from shared.llm.computer import ComputerModel
from shared.llm.model import BeforeRetry, Model
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.llm.anthropic_computer import AnthropicComputer
    from shared.llm.gemini_computer import GeminiComputer
    from shared.llm.http import HTTPModel, Options
    from shared.llm.openai_computer import OpenAIComputer

PROVIDERS = ("anthropic", "gemini", "openai")


class Provider(NamedTuple):
    """A provider's SDK, by module and by package, and what the environment sets for it."""

    module: str
    package: str
    key_variable: str
    url_variable: str
    key: SecretStr | None
    base_url: str | None

    def require_key(self, who: str) -> None:
        """Raises `ConfigError` without a key; an endpoint of the user's own may need none."""
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
) -> Model:
    """The model `provider:model`; `base_url` outranks the one in `settings`. Raises `ConfigError` without its SDK."""
    require_sdk(name, settings, purpose)
    options = _options(name, settings, timeout_s)
    options |= {"base_url": base_url or options.get("base_url"), "before_retry": before_retry}
    adapter: type[HTTPModel]
    # An SDK takes most of a second to import, a part of it only when its client is made.
    with collector_paused():
        if name.startswith("anthropic:"):
            from shared.llm.anthropic import AnthropicModel as adapter
        elif name.startswith("gemini:"):
            from shared.llm.gemini import GeminiModel as adapter
        else:
            from shared.llm.openai import OpenAIModel as adapter
        return adapter(name.partition(":")[2], **options)


def open_computer_model(name: str, settings: Settings, *, purpose: str, timeout_s: float) -> ComputerModel:
    """The same for a model that operates a browser by its provider's computer-use tool."""
    require_sdk(name, settings, purpose)
    adapter: type[AnthropicComputer | GeminiComputer | OpenAIComputer]
    with collector_paused():
        if name.startswith("anthropic:"):
            from shared.llm.anthropic_computer import AnthropicComputer as adapter
        elif name.startswith("gemini:"):
            from shared.llm.gemini_computer import GeminiComputer as adapter
        else:
            from shared.llm.openai_computer import OpenAIComputer as adapter
        return adapter(name.partition(":")[2], **_options(name, settings, timeout_s))


def _options(name: str, settings: Settings, timeout_s: float) -> "Options":
    provider = provider_of(name, settings)
    # Endpoints without keys (vLLM, Ollama) still want the header to be there.
    key = provider.key.get_secret_value() if provider.key else "none"
    return {"api_key": key, "base_url": provider.base_url, "timeout_s": timeout_s}
