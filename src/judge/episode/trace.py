"""The network trace of an attempt: written when the browser closes, because a verdict may depend on it."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from judge.browser.session import Traffic
from judge.episode.first_page import has_failed
from judge.episode.part import Part, Stage
from judge.records.files import NetworkTrace
from judge.trajectory.console import write_console
from judge.trajectory.network import write_har
from shared.errors import BrowserFault, TrajectoryError, WabeError

LOST = "its network trace is lost"
# When the attempt ends, wait at most a tenth of a second for a response that is still being read.
_PENDING_TRIES = 5
_PENDING_S = 0.02


class Trace(Part):
    """The trace, or `fault`, why it could not be written. `is_unwritten`: it is due, and not written yet."""

    def __init__(self, stage: Stage) -> None:
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
        # The trace's own fault already says so.
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
