"""Asks an OpenAI model, or any compatible endpoint; it receives the page's snapshot and its screenshot."""

from participants.base import ParticipantOptions
from participants.model import CALL_TIMEOUT_S, ModelParticipant, model_name
from shared.errors import ConfigError
from shared.llm.opening import open_model

DEFAULT_MODEL = "gpt-4.1-mini"


def create(options: ParticipantOptions) -> ModelParticipant:
    """A participant on `options.model`.

    Raises `ConfigError` for a model of another provider, and without a key, which a custom endpoint
    (`OPENAI_BASE_URL`) may not need: every task would be scored 0.
    """
    name = model_name(options.model, provider="openai", default=DEFAULT_MODEL)
    if options.settings.openai_api_key is None and options.settings.openai_base_url is None:
        raise ConfigError(
            "participant openai: OPENAI_API_KEY is not set",
            remedy="set it where the participant runs, or OPENAI_BASE_URL for an endpoint that needs none",
        )
    return ModelParticipant(
        open_model(f"openai:{name}", options.settings, purpose="participant model", timeout_s=CALL_TIMEOUT_S)
    )
