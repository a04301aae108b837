"""Asks a Gemini model, which receives the page's snapshot and its screenshot."""

from participants.base import ParticipantOptions
from participants.model import CALL_TIMEOUT_S, ModelParticipant, model_name
from shared.errors import ConfigError
from shared.llm.gemini import GeminiModel

DEFAULT_MODEL = "gemini-2.5-flash"


def create(options: ParticipantOptions) -> ModelParticipant:
    """A participant on `options.model`, such as `gemini-2.5-pro`.

    Raises `ConfigError` for a model of another provider, and without a key: every task would be scored 0.
    """
    name = model_name(options.model, provider="gemini", default=DEFAULT_MODEL)
    key, base_url = options.settings.google_api_key, options.settings.gemini_base_url
    if key is None:
        raise ConfigError("participant gemini: GOOGLE_API_KEY is not set", remedy="set it where the participant runs")
    model = GeminiModel(name, api_key=key.get_secret_value(), base_url=base_url, timeout_s=CALL_TIMEOUT_S)
    return ModelParticipant(model)
