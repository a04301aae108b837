"""A model that cannot be reached is asked once a minute, instead of with all retries of every call."""

import asyncio
import time
from collections.abc import Callable

from shared.errors import ModelUnreached
from shared.llm.model import Completion, Model, ModelRequest

PROBE_EVERY_S = 60.0
# Before the last probe of a run: another one right after a failure would only take time.
LAST_PROBE_AFTER_S = 10.0


class ProbedModel:
    """A model that is probed once a call, after all its retries, has found no connection.

    The first call after `PROBE_EVERY_S` is the probe: calls made before fail at once, and those made during the probe
    wait for its outcome.
    """

    def __init__(self, model: Model, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = model.name
        self._model = model
        self._clock = clock
        self._fault: ModelUnreached | None = None
        self._failed_s = 0.0
        self._wait_s = PROBE_EVERY_S
        self._turn = asyncio.Lock()

    def probe(self) -> None:
        """Make the next call a probe, unless the last one has only just failed."""
        self._wait_s = LAST_PROBE_AFTER_S

    async def complete(self, request: ModelRequest) -> Completion:
        """Ask the model, or fail at once while it cannot be reached."""
        if self._fault is not None:
            async with self._turn:
                if self._fault is not None:
                    if self._clock() < self._failed_s + self._wait_s:
                        raise ModelUnreached(self._fault.message, remedy=self._fault.remedy)
                    return await self._ask(request)
        return await self._ask(request)

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._model.aclose()

    async def _ask(self, request: ModelRequest) -> Completion:
        try:
            completion = await self._model.complete(request)
        except ModelUnreached as error:
            self._fault, self._failed_s = error, self._clock()
            raise
        self._fault = None
        return completion
