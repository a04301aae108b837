"""Finishes at once with an empty answer: a baseline that shows which tasks are passed by doing nothing."""

from participants.base import Decide, Observation, ParticipantOptions
from shared.models import Action
from shared.replies import FINISH


def create(options: ParticipantOptions) -> Decide:
    """A participant that does nothing."""

    async def decide(observation: Observation) -> Action:
        return Action(tool=FINISH, params={"answer": ""})

    return decide
