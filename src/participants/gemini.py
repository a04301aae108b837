"""Asks a Gemini model, which receives the page's snapshot and its screenshot."""

from participants.base import ParticipantOptions
from participants.model import CALL_TIMEOUT_S, ModelParticipant, model_name
from shared.errors import ConfigError
from shared.llm.opening import open_model

DEFAULT_MODEL = "gemini-2.5-flash"


def create(options: ParticipantOptions) -> ModelParticipant:
    """A participant on `options.model`, such as `gemini-2.5-pro`.

    Raises `ConfigError` for a model of another provider, and without a key: every task would be scored 0.
    """
    name = model_name(options.model, provider="gemini", default=DEFAULT_MODEL)
    if options.settings.google_api_key is None:
        raise ConfigError("participant gemini: GOOGLE_API_KEY is not set", remedy="set it where the participant runs")
    return ModelParticipant(
        open_model(f"gemini:{name}", options.settings, purpose="participant model", timeout_s=CALL_TIMEOUT_S)
    )
