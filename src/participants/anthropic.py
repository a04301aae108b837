"""Asks an Anthropic model, which receives the page's snapshot and its screenshot."""

from participants.base import ParticipantOptions
from participants.model import ModelParticipant, model_participant

DEFAULT_MODEL = "claude-haiku-5-5"


def create(options: ParticipantOptions) -> ModelParticipant:
    """A participant on `options.model`, such as `claude-sonnet-5-5`."""
    return model_participant(options, provider="anthropic", default=DEFAULT_MODEL)
