"""Asks an OpenAI model, or any compatible endpoint; it receives the page's snapshot and its screenshot."""

from participants.base import ParticipantOptions
from participants.model import CALL_TIMEOUT_S, ModelParticipant, model_name
from shared.errors import ConfigError
from shared.llm.openai import OpenAIModel
from shared.llm.prices import find_price

DEFAULT_MODEL = "gpt-4.1-mini"


def create(options: ParticipantOptions) -> ModelParticipant:
    """A participant on `options.model`.

    Raises `ConfigError` for a model of another provider, and without a key, which a custom endpoint
    (`OPENAI_BASE_URL`) may not need: every task would be scored 0.
    """
    name = model_name(options.model, provider="openai", default=DEFAULT_MODEL)
    key, base_url = options.settings.openai_api_key, options.settings.openai_base_url
    if key is None and base_url is None:
        raise ConfigError(
            "participant openai: OPENAI_API_KEY is not set",
            remedy="set it where the participant runs, or OPENAI_BASE_URL for an endpoint that needs none",
        )
    # Endpoints without keys (vLLM, Ollama) still require the header.
    api_key = key.get_secret_value() if key else "none"
    price = find_price(f"openai:{name}")
    takes_sampling = price is None or price.sampling
    return ModelParticipant(
        OpenAIModel(name, api_key=api_key, base_url=base_url, timeout_s=CALL_TIMEOUT_S, takes_sampling=takes_sampling)
    )
