"""What the network of an attempt leaves for its verdict: the trace, answers to the judge itself, archives' ledgers."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from judge.browser.session import Traffic
from judge.episode.clock import Clock, StepOverdue
from judge.episode.first_page import has_failed
from judge.episode.part import Act, AttemptPart, AttemptStage, PageLook
from judge.evaluators.kinds.fetch import Fetches
from judge.records.files import NetworkTrace
from judge.records.ledger import Frozen
from judge.records.tools import TARGETS
from judge.trajectory.console import write_console
from judge.trajectory.network import write_har
from shared.errors import BrowserFault, TrajectoryError, WabeError

LOST = "its network trace is lost"
# When the attempt ends, wait at most a tenth of a second for a response still being read.
_PENDING_TRIES = 5
_PENDING_S = 0.02


class Trace(AttemptPart):
    """The trace, or `fault`, why it could not be written. `is_unwritten`: it is due, and not written yet."""

    def __init__(self, stage: AttemptStage) -> None:
        super().__init__(stage)
        self.fault: WabeError | None = None
        self.is_unwritten = False
        self._written: NetworkTrace | None = None
        self._missing: str | None = "no browser was started"
        # Until the requests have been looked at, any of them may have failed.
        self._has_failed = True

    async def closes(self) -> None:
        """Write the trace. A failure is recorded as the reason why there is none."""
        stage = self.stage
        if not stage.config.record_network:
            self._missing = "record_network is off"
            return
        self._missing = "the attempt's time was up before the network trace was written"
        self.is_unwritten = True
        stage.network.close()
        traffic = await self._traffic()
        if traffic is None:
            # How the browser ended.
            stage.route.went(stage.browser.take_hops())
            self.fault = BrowserFault(f"the browser was killed or crashed: {LOST}")
            self._missing = self.fault.message
            self.is_unwritten = False
            return
        last = stage.final_look or (stage.steps[-1] if stage.steps else None)
        # A page that cannot be shown may belong to a site that accepts connections, and does not answer.
        shows_notice = last is not None and last.notice is not None
        self._has_failed = has_failed(traffic.entries, stage.network.site) or shows_notice
        await self._write(traffic)

    async def _traffic(self) -> Traffic | None:
        browser = self.stage.browser
        # In a thread, because the log may have 24 MB.
        traffic = await asyncio.to_thread(browser.traffic)
        for _ in range(_PENDING_TRIES):
            if traffic is None or not traffic.is_pending:
                break
            await asyncio.sleep(_PENDING_S)
            traffic = await asyncio.to_thread(browser.traffic)
        return traffic

    async def _write(self, traffic: Traffic) -> None:
        folder, redaction = self.stage.store.folder, self.stage.redaction
        try:
            self._written = await asyncio.to_thread(
                write_har,
                folder,
                traffic.entries,
                redaction.entry,
                left_out=traffic.left_out,
                messages_left_out=traffic.messages_left_out,
                seen_by=traffic.seen_by,
                unread=traffic.unread,
                versions=self.stage.versions,
            )
            self._missing = None
            self.is_unwritten = False
            # For people only, so an attempt does not fail without it.
            with suppress(OSError):
                await asyncio.to_thread(write_console, folder, traffic.console, redaction.text)
        except (OSError, TrajectoryError) as error:
            reason = error.message if isinstance(error, TrajectoryError) else error.strerror or error
            self._missing = f"network.har: cannot be written: {reason}"
            self.is_unwritten = False
            self.fault = WabeError(self._missing)

    def explained(self, error: WabeError) -> str:
        """The error that ended the attempt, and what was lost with it."""
        # The trace's fault already says so.
        is_lost = isinstance(error, BrowserFault) and isinstance(self.fault, BrowserFault) and error is not self.fault
        return f"{error.message}; {LOST}" if is_lost else error.message

    def ends(self) -> Mapping[str, Any]:
        """The trace, or why there is none."""
        return {
            "network": self._written,
            "network_missing": self._missing,
            "network_off": not self.stage.config.record_network,
            "has_failed": self._has_failed,
        }


class Answers(AttemptPart):
    """What the task's `fetch` checks compare."""

    def __init__(self, stage: AttemptStage) -> None:
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


class FrozenSites(AttemptPart):
    """Records the archives and the ledger, and tells the network what is entered."""

    def __init__(self, stage: AttemptStage) -> None:
        super().__init__(stage)
        self._frozen: Frozen | None = None

    def observed(self, look: PageLook) -> None:
        """Whether the page was loaded anew."""
        look.facts["is_loaded"] = self.stage.route.tab.take() and self.stage.network.frozen() is not None

    def acting(self, act: Act) -> None:
        """See `judge.network.attempt.AttemptNetwork.entered`."""
        self.stage.network.entered(tuple(_texts_in(act.action.params)))

    async def closes(self) -> None:
        """Keep what the attempt depended on until now."""
        if (frozen := self.stage.network.frozen()) is not None:
            text = self.stage.redaction.text
            ledger = tuple(entry.model_copy(update={"url": text(entry.url)}) for entry in frozen.ledger)
            self._frozen = frozen.model_copy(update={"clock_ms": self.stage.clock_ms, "ledger": ledger})

    def ends(self) -> Mapping[str, Any]:
        """The archives and the ledger."""
        return {"frozen": self._frozen}


def _texts_in(value: Any) -> Iterator[str]:
    """Every text and number in an action's parameters."""
    if isinstance(value, dict):
        # References name elements of the snapshot.
        yield from _texts_in([item for name, item in value.items() if name not in TARGETS])
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
