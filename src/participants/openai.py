"""Asks an OpenAI model, or any compatible endpoint; it receives the page's snapshot and its screenshot."""

from participants.base import ParticipantOptions
from participants.model import ModelParticipant, model_participant

DEFAULT_MODEL = "gpt-4.1-mini"


def create(options: ParticipantOptions) -> ModelParticipant:
    """A participant on `options.model`, which may be any name that the endpoint (`OPENAI_BASE_URL`) knows."""
    return model_participant(options, provider="openai", default=DEFAULT_MODEL)
