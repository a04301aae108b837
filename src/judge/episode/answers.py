"""What the site answers to the judge's own requests when an attempt has ended."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from judge.episode.clock import Clock, StepOverdue
from judge.episode.part import Part, Stage
from judge.evaluators.kinds.fetch import Fetches


class Answers(Part):
    """What the task's `fetch` checks compare."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._fetches = Fetches(stage.task, stage.redaction.entry)

    async def ask(self) -> None:
        """Ask for it. An answer that takes too long stays an error, which fails the checks."""
        stage = self.stage
        with suppress(StepOverdue):
            async with Clock(stage.config.step_timeout_s, StepOverdue("asking the site took too long")).running():
                await self._fetches.ask(stage.browser, stage.network.site)

    def ends(self) -> Mapping[str, Any]:
        """The answers, also to what was not asked."""
        return {"fetched": self._fetches.answers}
