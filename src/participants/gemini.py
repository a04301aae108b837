"""Asks a Gemini model, which sees the page and its screenshot."""

from participants.base import ParticipantOptions
from participants.model_agent import CALL_TIMEOUT_S, ModelPlayer
from participants.model_names import model_name
from shared.errors import ConfigError
from shared.llm.opening import open_model

DEFAULT_MODEL = "gemini-2.5-flash"


def create(options: ParticipantOptions) -> ModelPlayer:
    """A player on `options.model`, such as `gemini-2.5-pro`.

    Raises `ConfigError` for a model of another provider, and without a key: every task would be scored 0.
    """
    name = model_name(options.model, provider="gemini", default=DEFAULT_MODEL)
    if options.settings.google_api_key is None:
        raise ConfigError("participant gemini: GOOGLE_API_KEY is not set", remedy="set it where the participant runs")
    return ModelPlayer(
        open_model(f"gemini:{name}", options.settings, purpose="participant model", timeout_s=CALL_TIMEOUT_S)
    )
