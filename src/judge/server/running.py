"""An assessment in progress, the clients that follow it, and how it ended."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from judge.records.events import Event, RunStarted, TaskDone, TaskStarted
from judge.scenario.models import AssessmentRequest
from shared.a2a.tasks import TaskSink

# A client that reconnects is back after a few seconds, and one that polls asks more often.
ABSENT_S = 60.0
_POLL_S = 1.0

EndState = Literal["completed", "rejected", "failed", "cancelled", "stopped"]


class AssessmentEnd(NamedTuple):
    """How an assessment ended: `stopped` with its judge, or as it says. `texts` are the results'."""

    state: EndState
    text: str
    texts: Sequence[str] = ()


@dataclass(eq=False)
class RunningAssessment:
    """An assessment played by the task `job`. It goes on without any of its followers."""

    run_id: str
    request: AssessmentRequest
    followers: list[TaskSink] = field(default_factory=list)
    job: "asyncio.Task[AssessmentEnd]" = field(init=False)
    why_cancelled: str = ""
    browsers: Callable[[], int] = lambda: 0
    # Attempts not settled yet, and the ones being played or judged.
    _attempts_left: int = 0
    _open: set[str] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Take one event of the assessment."""
        match event:
            case RunStarted():
                self._attempts_left = event.attempts - event.kept
            case TaskStarted():
                self._open.add(event.key)
            case TaskDone():
                self._open.discard(event.key)
                self._attempts_left -= 1

    @property
    def open_attempts(self) -> int:
        """How many attempts are being played or judged."""
        return len(self._open)

    @property
    def waiting_attempts(self) -> int:
        """How many attempts have not begun."""
        return max(0, self._attempts_left - len(self._open))

    def update(self, text: str, facts: Mapping[str, Any]) -> None:
        """Report progress to all followers."""
        for sink in self.followers:
            sink.update(text, facts)

    def annotate(self, metadata: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        """Add metadata to the tasks of all followers."""
        for sink in self.followers:
            sink.annotate(metadata, secrets=secrets)

    def cancel(self, why: str) -> None:
        """Stop the assessment; it closes its browsers and then ends. Only the first call has an effect."""
        if not self.why_cancelled:
            self.why_cancelled = why
            self.job.cancel()

    async def cancel_without_clients(self) -> None:
        """Cancel it once all its followers have been absent for a minute."""
        while True:
            await asyncio.sleep(_POLL_S)
            if all(sink.attendance.absent_s > ABSENT_S for sink in self.followers):
                break
        self.cancel(f"no client has followed it for {ABSENT_S:g} s")
