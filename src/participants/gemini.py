"""Asks a Gemini model, which receives the page's snapshot and its screenshot."""

from participants.base import ParticipantOptions
from participants.model import ModelParticipant, model_participant

DEFAULT_MODEL = "gemini-2.5-flash"


def create(options: ParticipantOptions) -> ModelParticipant:
    """A participant on `options.model`, such as `gemini-2.5-pro`."""
    return model_participant(options, provider="gemini", default=DEFAULT_MODEL)
