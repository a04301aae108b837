"""Clocks that run for one party only, each against a limit.

An attempt has three: the participant's (`task_timeout_s`), which runs while the judge waits for its reply, during waits
it asked for and while it is off site; the browser's in each step (`step_timeout_s`); and the overall one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.errors import ParticipantError, WabeError


class OutOfTime(ParticipantError):
    """The participant has used up its time."""


class Clock:
    """Stands still except inside `running`. At its limit it interrupts and raises the error it was made with."""

    def __init__(self, limit_s: float, error: WabeError) -> None:
        self._limit_s = limit_s
        self._error = error
        self.used_s = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Count the time the body takes, also when it fails. Raises the error when the limit is reached."""
        now = asyncio.get_running_loop().time
        began = now()
        try:
            async with asyncio.timeout(max(0.0, self._limit_s - self.used_s)) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._error from None
        finally:
            self.used_s += now() - began

    def charge(self, seconds: float) -> None:
        """Add time of which it is known only afterwards whose it was. Raises the error when the limit is reached."""
        self.used_s += seconds
        if self.used_s >= self._limit_s:
            raise self._error
