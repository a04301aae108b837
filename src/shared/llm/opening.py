"""Opens the model that a setting names, `provider:model`. The providers' SDKs are optional and imported when needed."""

from typing import TYPE_CHECKING

from shared.imports import collector_paused
from shared.llm.environment import require_network
from shared.llm.model import BeforeRetry
from shared.llm.provider import Provider
from shared.llm.providers import PROVIDERS
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.llm.http import HTTPModel


def find_provider(name: str) -> Provider | None:
    """The provider of this name, or of the model `provider:model`; `None` if it is unknown."""
    return PROVIDERS.find(name.partition(":")[0])


def provider(name: str) -> Provider:
    """The provider of this name, one of `provider_names`, or of one of its models."""
    return PROVIDERS.load(name.partition(":")[0])


def open_model(
    name: str,
    settings: Settings,
    *,
    purpose: str,
    timeout_s: float,
    base_url: str | None = None,
    before_retry: BeforeRetry | None = None,
) -> "HTTPModel":
    """The model `provider:model`; `base_url` overrides the one in `settings`.

    Raises `ConfigError` without its SDK, and for proxies or certificates that cannot be used.
    """
    model_provider = provider(name)
    model_provider.require_sdk(name, purpose)
    require_network(settings.environ)
    key = model_provider.key(settings)
    # An SDK takes most of a second to import, partly only when its client is created.
    with collector_paused():
        return model_provider.open(
            name.partition(":")[2],
            # The SDKs require a key even for endpoints that need none (vLLM, Ollama).
            api_key=key.get_secret_value() if key else "none",
            base_url=base_url or model_provider.base_url(settings),
            timeout_s=timeout_s,
            before_retry=before_retry,
        )
