"""The descriptor of a provider of models: names, settings, capabilities and how to open one of its models."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from shared.errors import ConfigError
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.llm.http import HTTPModel


@dataclass(frozen=True, kw_only=True)
class Provider:
    """One provider of models. Its `name` is its module's, and the part before the colon of a model's name."""

    name: str
    title: str
    # The SDK as it is imported and as it is installed, and our extra that installs it.
    module: str
    package: str
    extra: str
    # Of the key; the first is the one to set, the others are accepted as well.
    key_variables: tuple[str, ...]
    url_variable: str
    # The participant's default model, and one to name as an example for computer use; empty if there is none.
    default_model: str
    computer_example: str = ""
    # What a user should know about `url_variable`.
    url_note: str = ""
    # Whether its models read images, and take a temperature and a seed.
    images: bool = True
    sampling: bool = True
    open: Callable[..., "HTTPModel"]
    # Its names in the price data and in OpenTelemetry's conventions.
    prices_id: str
    telemetry_name: str

    def key(self, settings: Settings) -> SecretStr | None:
        """The key from the environment."""
        return next(filter(None, map(settings.secret, self.key_variables)), None)

    def base_url(self, settings: Settings) -> str | None:
        """The custom endpoint that is set."""
        return settings.environ.get(self.url_variable) or None

    def require_key(self, settings: Settings, who: str) -> None:
        """Raises `ConfigError` if there is neither a key nor a custom endpoint, which may need no key."""
        if self.key(settings) is None and self.base_url(settings) is None:
            raise ConfigError(
                f"{who}: {self.key_variables[0]} is not set",
                remedy=f"set it where the participant runs, or {self.url_variable} for an endpoint that needs none",
            )

    def require_sdk(self, model: str, purpose: str) -> None:
        """Raises `ConfigError` if the SDK is not installed. `purpose`: "judge model", for example."""
        try:
            spec = importlib.util.find_spec(self.module)
        except ImportError:
            spec = None
        if spec is None:
            raise ConfigError(
                f'{purpose} "{model}": {self.package} is not installed', remedy=f'pip install "wabe[{self.extra}]"'
            )
