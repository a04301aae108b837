"""A session that a test writes, in place of one with a browser."""

import asyncio
from collections.abc import Mapping
from typing import Any

from judge.environment.session import StepResult
from shared.models import ObservationMessage, Page, ToolSpec

CLICK = ToolSpec(name="browser_click", description="Click", parameters={"type": "object", "properties": {}})
FINISH = ToolSpec(name="finish", description="End", parameters={"type": "object", "properties": {}})
END = StepResult(None, "", None, "", reward=0.0, done=True)


def observed(
    title: str, *, instruction: str | None = None, tools: tuple[ToolSpec, ...] = (CLICK, FINISH)
) -> StepResult:
    page = Page(url="https://a.test/", title=title, snapshot="- button [ref=e1]", screenshot=None)
    message = ObservationMessage(page=page, tools=tools, instruction=instruction, feedback=None)
    return StepResult(message, "", b"picture", "image/jpeg", reward=None, done=False)


class WrittenSession:
    """Answers each reply as `answers` says, and with the next page otherwise. `hold`: a step waits for this event.

    Three empty replies end an episode, as unreadable ones do.
    """

    def __init__(self, **answers: StepResult | Exception) -> None:
        self.answers = answers
        self.replies: list[Any] = []
        self.resets = 0
        self.closed = 0
        self.hold = asyncio.Event()
        self.hold.set()
        self._empty = 0
        self._is_asked = False

    async def reset(self, task_id: str) -> StepResult:
        assert task_id == "t1"
        self.resets += 1
        return self._answer(self.answers.get("reset", observed("page 0", instruction="Buy a lamp.")))

    async def step(self, reply: object) -> StepResult:
        # What a real session closes for.
        assert not self._is_asked
        self._is_asked = True
        try:
            await self.hold.wait()
        finally:
            self._is_asked = False
        self.replies.append(reply)
        self._empty = self._empty + 1 if reply == "" else 0
        if self._empty == 3:
            return END
        tool = str(reply["tool"]) if isinstance(reply, Mapping) else ""
        return self._answer(self.answers.get(tool, observed(f"page {len(self.replies)}")))

    async def close(self) -> None:
        self.closed += 1

    def _answer(self, answer: StepResult | Exception) -> StepResult:
        if isinstance(answer, Exception):
            raise answer
        return answer
