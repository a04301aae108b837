"""Playwright's MCP server: its process, and the connection to it.

The only file that imports `mcp`. The server and its Node come with the Python package `playwright`.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import psutil
from pydantic import ValidationError

from judge.browser import downloads, processes, responses, uploads
from judge.browser.chromium import AUTHORITY_FILE, CONFIG_FILE, BrowserSettings
from judge.browser.hosted import Connection, read_connection
from judge.browser.requests import documents_until_death
from judge.browser.responses import ToolResponse
from judge.records.tools import tool_of
from shared.errors import BrowserFault
from shared.files import read_end
from shared.models import ToolSpec
from shared.patience import patience

# Imported on first use, because the import takes 0.6 s and many commands start no browser.
if TYPE_CHECKING:
    from mcp.client.client import Client

_START_TIMEOUT_S = 60.0
_GRACE_S = 1.0
_UNWIND_S = 10.0
_LAST_DOCUMENTS_S = 5.0
_MAX_LOG_BYTES = 65_536
_LOG = "server.log"
_RELAUNCHED = "the browser was relaunched: it was killed or crashed, and its server started an empty one in its place"
_CONNECTION_CLOSED = "the connection was closed"
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class PageTrouble(Exception):
    """Something that a page did to its tab. As far as we know, the browser itself still works."""


class NoAnswer(PageTrouble):
    """A call was not answered in time."""


class TabCrashed(PageTrouble):
    """The process of a page crashed. The server replaces it by an empty one at the next call."""


class Trust(Protocol):
    """How a proxy that ends TLS is trusted: by the hash of its key, or by the certificate of its authority."""

    spki_hash: str
    certificate: bytes


class McpServer:
    """The MCP server's process and the connection to it. The first fault is final: every later call raises it again.

    What a page does to its tab is not a fault; it is raised as `PageTrouble`.

    The client runs in a separate asyncio task, which isolates the errors and cancellations of its task groups when a
    server dies.
    """

    def __init__(
        self, settings: BrowserSettings, folder: Path, proxy: str | None = None, trust: Trust | None = None
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.version = "unknown"
        # The scripts that its browser draws as boxes (`judge.browser.fonts`), once they have been measured.
        self.undrawn: frozenset[str] | None = None
        self._proxy = proxy
        self._trust = trust
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._fault: BrowserFault | None = None
        self._watch = processes.Watch(())
        self._server_watch = processes.Watch(())
        self._groups: frozenset[int] = frozenset()
        self._unanswered = 0
        self._is_gone = False
        self._own_files: frozenset[Path] = frozenset()

    async def start(self) -> list[ToolSpec]:
        """Start the browser and its server, and list its tools. Raises `BrowserFault`."""
        self._task = asyncio.create_task(self._run())
        awaited: set[asyncio.Future[Any]] = {self._task, self._ready}
        with suppress(TimeoutError):
            async with patience(_START_TIMEOUT_S):
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            raise self.fail(self._refusal() or f"the browser's server did not start: {self._log_end()}")
        client = self._ready.result()
        if info := client.server_info:
            self.version = f"{info.name} {info.version}"
        try:
            tool_list = await self._answered("tools/list", client.list_tools(), self.settings.config.call_timeout_s)
        except NoAnswer as error:
            raise self.fail(str(error)) from None
        self.watch()
        self._own_files = frozenset(self.folder.iterdir())
        return [
            ToolSpec(name=t.name, description=t.description or "", parameters=t.input_schema) for t in tool_list.tools
        ]

    async def _run(self) -> None:
        from mcp.client.client import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        command, *args = self.settings.command(self.folder, self._proxy)
        parameters = StdioServerParameters(
            command=command,
            args=args,
            cwd=self.folder,
            env=self.settings.environ(self.folder, has_authority=self._trust is not None),
            encoding_error_handler="replace",
        )
        try:
            spki_hash = self._trust.spki_hash if self._trust else None
            (self.folder / CONFIG_FILE).write_text(self.settings.config_file(self._proxy, spki_hash))
            if self._trust:
                (self.folder / AUTHORITY_FILE).write_bytes(self._trust.certificate)
            # Appended to, because `renew` truncates the log while the server writes to it.
            with (self.folder / _LOG).open("a") as log:
                # `legacy` is the initialize handshake; the default mode would first probe for a newer protocol.
                async with Client(stdio_client(parameters, errlog=log), mode="legacy") as client:
                    self._ready.set_result(client)
                    await self._stop.wait()
        # Isolation boundary: a client's task groups raise groups of any errors. Calls in flight get their errors.
        except Exception as error:  # noqa: BLE001
            self._error = error

    async def call(self, tool: str, params: dict[str, Any], *, longer_s: float = 0.0) -> ToolResponse:
        """Call a tool, which may take `longer_s` than others. Raises `BrowserFault` if browser or server are gone, and
        `PageTrouble`.
        """
        if self._fault:
            raise self._fault
        # A requested wait does not count against the timeout.
        wait_s = float(params.get("time", 0)) if tool_of(tool).waits else 0.0
        call = self._ready.result().call_tool(tool, params)
        try:
            result = await self._answered(tool, call, self.settings.config.call_timeout_s + wait_s + longer_s)
            if not self._watch.alive():
                raise self.fail(self._loss())
        except BrowserFault:
            await asyncio.to_thread(self.wait_for_documents)
            raise
        text = next((block.text for block in result.content if block.type == "text"), "")
        if result.is_error and responses.says_crashed(text):
            raise TabCrashed
        return ToolResponse(ok=not result.is_error, text=text)

    async def _answered(self, what: str, call: Coroutine[Any, Any, _T], limit_s: float) -> _T:
        from mcp import MCPError

        self._unanswered += 1
        try:
            async with patience(limit_s):
                result = await call
        except TimeoutError:
            if not self._watch.alive():
                raise self.fail(self._loss()) from None
            raise NoAnswer(f"{what} gave no answer within {limit_s:g} s") from None
        except (MCPError, ValidationError, OSError, RuntimeError) as error:
            # The connection closes a moment before the process has ended.
            self._is_gone = True
            if self._is_lost():
                raise self.fail(_CONNECTION_CLOSED) from None
            raise self.fail(f"the browser's server is gone: {what}: {error}; {self._log_end()}") from None
        # Not in a `finally`: after a timeout or a cancellation the answer may still come, and `renew` must know that.
        self._unanswered -= 1
        return result

    async def renew(self) -> None:
        """Remove every trace of the last task: an empty page in a new browser context, and no files.

        Raises `BrowserFault`, also if the server has not answered every call, because a late answer could still come.
        """
        if self._unanswered:
            raise self.fail("the browser's server has not answered its last call")
        # The first call ends the old context; the second opens the new one, as any call would.
        for tool, params in (("browser_close", {}), ("browser_tabs", {"action": "list"})):
            try:
                answer = await self.call(tool, params)
            except PageTrouble as error:
                raise self.fail(f"the browser's context cannot be replaced: {error}") from None
            if not answer.ok:
                raise self.fail(f"the browser's context cannot be replaced: {answer.text[:300]}")
            # The old context can no longer write files, and the new one has not written any yet.
            for path in frozenset(self.folder.iterdir()) - self._own_files:
                if path.is_file():
                    path.unlink()
                elif path.name.startswith((downloads.FOLDER_PREFIX, uploads.FOLDER_PREFIX)):
                    shutil.rmtree(path, ignore_errors=True)
            os.truncate(self.folder / _LOG, 0)

    def wait_for_documents(self) -> None:
        """If the browser has died: wait until its server has recorded the documents, which decide whose fault it is."""
        if not self._watch.alive() and self._server_watch.alive():
            documents_until_death(self.folder, _LAST_DOCUMENTS_S)

    def watch(self) -> None:
        """From now on, raise a fault if the current browser has died or was replaced."""
        family_ids = processes.family(processes.list_processes(), self.folder)
        self._groups = frozenset(one.group for one in family_ids)
        self._unwatch()
        # A hosted browser has no process on this machine, but its server exits when the connection is lost.
        is_watched = processes.is_server if self.settings.hosted else processes.is_browser
        self._watch = processes.Watch([one.pid for one in family_ids if is_watched(one, self.folder)])
        self._server_watch.close()
        self._server_watch = processes.Watch([one.pid for one in family_ids if processes.is_server(one, self.folder)])

    def kill_pages(self) -> None:
        """End the processes of all pages. No page can prevent that, and the browser survives it."""
        for process in processes.family(processes.list_processes(), self.folder, known_groups=self._groups):
            if processes.is_page(process):
                with suppress(psutil.Error):
                    psutil.Process(process.pid).kill()

    @property
    def is_watched(self) -> bool:
        """Whether a relaunch of the browser would be noticed."""
        return self._watch.size > 0

    @property
    def is_alive(self) -> bool:
        """Whether server and browser still run and answer, as far as known without a call."""
        return self._fault is None and self.runs

    @property
    def runs(self) -> bool:
        """Whether the server and its original browser still run, answering or not."""
        is_served = self._task is not None and not self._task.done() and self._server_watch.alive()
        return is_served and not self._is_gone and self._watch.alive()

    def fail(self, message: str, kind: type[BrowserFault] = BrowserFault) -> BrowserFault:
        """The fault to raise: always the first one."""
        if self._fault is None:
            remedy = "the task is retried; `wabe doctor` lists what is missing"
            if hosted := self.settings.hosted:
                message = f"the hosted browser at {hosted.name}: {message}"
                remedy = "the task is retried; check cdp_url in [config] and the variable that it names"
            self._fault = kind(message, remedy=remedy)
        return self._fault

    def _refusal(self) -> str | None:
        """Why the hosted browser could not be reached; `None` if the server failed to start for another reason."""
        connection = self._connection()
        return f"no connection: {connection.cause}" if connection and connection.state == "refused" else None

    def _connection(self) -> Connection | None:
        return read_connection(self.folder) if self.settings.hosted else None

    def _is_lost(self) -> bool:
        connection = self._connection()
        return connection is not None and connection.state == "lost"

    def _loss(self) -> str:
        """The message for a browser that died, was relaunched or was disconnected."""
        if self.settings.hosted is None:
            return _RELAUNCHED
        return _CONNECTION_CLOSED if self._is_lost() else f"its server ended: {self._log_end()}"

    @property
    def browser_version(self) -> str:
        """The version that the browser reports, such as `Chromium 156.0`; `unknown` if it cannot be queried."""
        connection = self._connection()
        return f"Chromium {connection.version}" if connection and connection.version else self.settings.version

    def _log_end(self) -> str:
        text = f"{self._error or ''} {read_end(self.folder / _LOG, _MAX_LOG_BYTES)[-2000:]}".strip()
        hidden = [str(self.folder), *([self.settings.hosted.url] if self.settings.hosted else [])]
        return responses.clean_text(text or "its log is empty", hide=hidden)[:500]

    async def end(self) -> None:
        """End the server, the browser and everything they started."""
        if self._task is not None:
            await self._end(self._task)
        self._unwatch()
        self._server_watch.close()

    def _unwatch(self) -> None:
        # Without its server, the browser is an orphan. A hosted one's watch is the server's.
        if self.settings.hosted is None:
            self._watch.reap()
        self._watch.close()

    async def _end(self, task: asyncio.Task[None]) -> None:
        self._stop.set()
        if self._fault is None and not self._unanswered:
            # A server that exits by itself writes its compile cache. A faulty one is not given time for that.
            await asyncio.wait({task}, timeout=_GRACE_S)
        is_clean = await processes.end_family(self.folder, self._groups)
        if not task.done():
            # The client ends when it notices that the server is gone.
            await asyncio.wait({task}, timeout=_UNWIND_S)
            task.cancel()
            await asyncio.wait({task}, timeout=_UNWIND_S)
            is_clean = await processes.end_family(self.folder, self._groups)
        if not is_clean:
            _log.error("processes of a browser survive: %s", self.folder)
