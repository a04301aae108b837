"""Asks an OpenAI model, or any endpoint that is compatible; it sees the page and its screenshot."""

from participants.base import ParticipantOptions
from participants.model_agent import CALL_TIMEOUT_S, ModelPlayer
from participants.model_names import model_name
from shared.errors import ConfigError
from shared.llm.opening import open_model

DEFAULT_MODEL = "gpt-4.1-mini"


def create(options: ParticipantOptions) -> ModelPlayer:
    """A player on `options.model`.

    Raises `ConfigError` for a model of another provider, and without a key, which an endpoint of one's own
    (`OPENAI_BASE_URL`) may not need: every task would be scored 0.
    """
    name = model_name(options.model, provider="openai", default=DEFAULT_MODEL)
    if options.settings.openai_api_key is None and options.settings.openai_base_url is None:
        raise ConfigError(
            "participant openai: OPENAI_API_KEY is not set",
            remedy="set it where the participant runs, or OPENAI_BASE_URL for an endpoint that needs none",
        )
    return ModelPlayer(
        open_model(f"openai:{name}", options.settings, purpose="participant model", timeout_s=CALL_TIMEOUT_S)
    )
