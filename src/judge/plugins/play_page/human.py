"""A person plays, on a page that this participant serves on the machine it runs on.

The page shows the task and what the judge sends: screenshot, elements, tabs, dialogs. Clicks, typing, keys, scrolling,
choices and drags on it become the judge's tools, one for each. No check and no verdict reaches a participant, so the
page has none to show. The scenario should offer coordinates and boxes (`actions = "both"`, `snapshot_boxes = true`) and
leave time: `wabe run SCENARIO --agent human` does.
"""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from judge.plugins.play_page.desk import Desk
from judge.plugins.play_page.routes import play_routes
from participants.base import Observation, ParticipantOptions
from shared.models import Action


def create(options: ParticipantOptions) -> "Human":
    """A participant that asks a person. `options.note` is shown on the page."""
    return Human(options.note)


class Human:
    """A person, and the page on which they play."""

    def __init__(self, note: str) -> None:
        self._desk = Desk()
        self.routes: Sequence[BaseRoute] = play_routes(self._desk, note)

    async def __call__(self, observation: Observation) -> Action:
        """What the person does."""
        return await self._desk.ask(observation)
