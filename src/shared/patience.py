"""Time limits that count only while this machine computes: nobody fails because it is too busy."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

# So much is computed now and then to learn how long it takes.
_PROBE_S = 0.02
_TINY_S, _SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.25, 5.0
# Of a CPU. With less, everything takes more than eight times as long.
_STARVED = 0.125
# A participant that keeps the machine busy makes no limit last longer than fifty times.
_LEAST = 0.02


class Patience:
    """A limit that is running. `used_s` counts; `starved_s` does not, because the machine starved."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.used_s = self.starved_s = 0.0
        self._share = 1.0
        self._timeout = asyncio.Timeout(None)
        self._counted_at = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Interrupt the body with a `TimeoutError` when the limit is used up."""
        self._counted_at = asyncio.get_running_loop().time()
        async with self._timeout:
            counting = asyncio.create_task(self._run_out())
            try:
                yield
            finally:
                counting.cancel()
                self._count(_LONGEST_PAUSE_S)

    @property
    def has_run_out(self) -> bool:
        """Whether the limit, and nothing else, interrupted the body."""
        return self._timeout.expired()

    async def _run_out(self) -> None:
        while (left_s := self.limit_s - self.used_s) > _TINY_S:
            pause_s = min(left_s / self._share, max(self.limit_s / 4, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)
            self._share = cpu_share()
            self._count(pause_s)
        self._timeout.reschedule(asyncio.get_running_loop().time())

    def _count(self, most_s: float) -> None:
        """Count the time since the last look; no more than this, if this process itself was stopped meanwhile."""
        now = asyncio.get_running_loop().time()
        used_s = min(now - self._counted_at, most_s) * self._share
        self.starved_s += now - self._counted_at - used_s
        self.used_s += used_s
        self._counted_at = now


@asynccontextmanager
async def patience(limit_s: float) -> AsyncIterator[Patience]:
    """`asyncio.timeout`, but patient while the machine starves."""
    limit = Patience(limit_s)
    async with limit.running():
        yield limit


def cpu_share() -> float:
    """How much of a CPU this process gets now: 1 unless the machine starves."""
    now = asyncio.get_running_loop().time
    share = _measured(now, int(now() / _LONGEST_PAUSE_S))
    return max(share, _LEAST) if share < _STARVED else 1.0


@functools.lru_cache(maxsize=1)
def _measured(now: Callable[[], float], _: int) -> float:
    # Once in each of these periods, however many limits run.
    began, before = now(), time.thread_time()
    while (used_s := time.thread_time() - before) < _PROBE_S:
        pass
    return used_s / max(used_s, now() - began)
