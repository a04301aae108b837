"""The clocks of an attempt, and what ends it when one of them has run out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.errors import BrowserFault, ParticipantError, WabeError
from shared.patience import Patience


class OutOfTime(ParticipantError):
    """The participant has used up its time (`task_timeout_s`)."""


class Clock:
    """Measures one party's time against a limit; runs only inside `running`.

    An attempt has three clocks: the participant's (`task_timeout_s`), which runs while the judge waits for a reply,
    during waits that the participant requested, and while it is off site; one for the browser in each step
    (`step_timeout_s`); and an overall one.
    """

    def __init__(self, limit_s: float, error: WabeError) -> None:
        self._limit_s = limit_s
        self._error = error
        self.used_s = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Count the body's time, even if it fails. At the limit, interrupt it and raise the clock's error."""
        limit = Patience(self._limit_s - self.used_s)
        try:
            async with limit.running():
                yield
        except TimeoutError:
            if not limit.has_run_out:
                raise
            raise self._error from None
        finally:
            self.used_s += limit.used_s

    def charge(self, seconds: float) -> None:
        """Add time attributed only afterwards. Raises the clock's error if the limit is reached."""
        self.used_s += seconds
        if self.used_s >= self._limit_s:
            raise self._error


class StepOverdue(BrowserFault):
    """The browser's part of a step has taken `step_timeout_s`."""
