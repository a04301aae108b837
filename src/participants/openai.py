"""Asks an OpenAI model, or any endpoint that is compatible; it sees the page and its screenshot."""

from participants.base import ParticipantOptions
from participants.model_agent import CALL_TIMEOUT_S, ModelPlayer
from participants.model_names import model_name
from shared.errors import ConfigError
from shared.llm.openai import OpenAIModel
from shared.llm.prices import find_price

DEFAULT_MODEL = "gpt-4.1-mini"
# Endpoints without keys (vLLM, Ollama) still want the header to be there.
_NO_KEY = "none"


def create(options: ParticipantOptions) -> ModelPlayer:
    """A player on `options.model`.

    Raises `ConfigError` for a model of another provider, and without a key, which an endpoint of one's own
    (`OPENAI_BASE_URL`) may not need: every task would be scored 0.
    """
    name = model_name(options.model, provider="openai", default=DEFAULT_MODEL)
    key, base_url = options.settings.openai_api_key, options.settings.openai_base_url
    if key is None and base_url is None:
        raise ConfigError(
            "participant openai: OPENAI_API_KEY is not set",
            remedy="set it where the participant runs, or OPENAI_BASE_URL for an endpoint that needs none",
        )
    price = find_price(f"openai:{name}")
    return ModelPlayer(
        OpenAIModel(
            name,
            api_key=key.get_secret_value() if key else _NO_KEY,
            base_url=base_url,
            timeout_s=CALL_TIMEOUT_S,
            takes_sampling=price is None or price.sampling,
        )
    )
