"""A real browser behind Playwright's own MCP server: one server, one browser and one folder for each episode.

The only file that imports `mcp`. The server comes with the Python package (`playwright`), its Node included.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from playwright._impl._driver import compute_driver_executable
from pydantic import ValidationError

from judge.browser import processes as process_tree
from judge.browser.folders import BrowserFolder
from judge.browser.guard.navigation_log import RECORDER, RECORDER_FILE
from judge.browser.launch import CONFIG_FILE, BrowserSettings
from judge.browser.pages import Answer, McpBrowser
from judge.browser.responses import clean_text
from judge.browser.session import Browser
from judge.browser.tools import offered_tools
from shared.errors import BrowserFault
from shared.models import ToolSpec

__all__ = ["BrowserSettings", "PlaywrightMcp"]

_START_TIMEOUT_S = 60.0
_POLITE_S = 1.0
_UNWIND_S = 10.0
_DIED = "the browser was relaunched: it was killed or crashed, and its server put an empty one in its place"
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class PlaywrightMcp:
    """Opens browsers: a `judge.browser.session.BrowserFactory`."""

    def __init__(self, settings: BrowserSettings) -> None:
        self._settings = settings

    def __call__(self) -> AbstractAsyncContextManager[Browser]:
        """A new browser, closed on every way out. Raises `BrowserFault` when none comes up."""
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Browser]:
        settings, found = self._settings, self._settings.found
        place = BrowserFolder()
        folder = place.path
        server = _Server(settings, folder)
        try:
            tools = await server.start()
            yield McpBrowser(
                server,
                tools=offered_tools(tools),
                versions={
                    "mcp_server": server.version,
                    "browser": settings.browser_version,
                    "sandbox": "on" if found.sandbox else f"off: {found.sandbox_reason}",
                },
                viewport=(settings.viewport_width, settings.viewport_height),
                hidden=(str(folder), str(Path(compute_driver_executable()[0]).parent)),
                patience_s=settings.navigation_timeout_s,
            )
        finally:
            try:
                await _despite_cancellation(server.end())
            finally:
                place.remove()


class _Server:
    """The MCP server's process and our connection to it.

    The client lives in a task of its own: what its task groups raise and cancel when a server dies stays in there.
    """

    def __init__(self, settings: BrowserSettings, folder: Path) -> None:
        self.folder = folder
        self.version = "unknown"
        self._settings = settings
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._error: BaseException | None = None
        self._fault: BrowserFault | None = None
        self._watch: process_tree.Watch | None = None
        self._groups: frozenset[int] = frozenset()
        self._busy = 0

    async def start(self) -> list[ToolSpec]:
        """Start the server and list its tools. Raises `BrowserFault`."""
        self._task = asyncio.create_task(self._run())
        awaited: set[asyncio.Future[Any]] = {self._task, self._ready}
        await asyncio.wait(awaited, timeout=_START_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            raise self.fail(f"the browser's server did not start: {self._last_words()}")
        self._client = self._ready.result()
        info = self._client.server_info
        self.version = f"{info.name} {info.version}" if info else "unknown"
        listed = await self._answered("tools/list", self._client.list_tools(), self._settings.call_timeout_s)
        return [ToolSpec(name=t.name, description=t.description or "", parameters=t.input_schema) for t in listed.tools]

    async def _run(self) -> None:
        node, cli = compute_driver_executable()
        parameters = StdioServerParameters(
            command=node,
            args=[cli, *self._settings.arguments(self.folder)],
            cwd=self.folder,
            env=self._settings.environ(self.folder),
            encoding_error_handler="replace",
        )
        try:
            (self.folder / RECORDER_FILE).write_text(RECORDER)
            (self.folder / CONFIG_FILE).write_text(self._settings.config_file(self.folder))
            with (self.folder / "server.log").open("w") as log:
                async with Client(stdio_client(parameters, errlog=log), mode="legacy") as client:
                    self._ready.set_result(client)
                    await self._stop.wait()
        # A boundary: a client's task groups raise groups of anything; calls in flight are told by their own errors.
        except Exception as error:  # noqa: BLE001
            self._error = error

    async def call(self, tool: str, params: dict[str, Any], *, extra_s: float = 0.0) -> Answer:
        """See `judge.browser.pages.ToolCaller`."""
        if self._fault:
            raise self._fault
        if self._client is None:
            raise self.fail("the browser's server is not running")
        limit_s = self._settings.call_timeout_s + extra_s
        result = await self._answered(tool, self._client.call_tool(tool, params), limit_s)
        if self._watch is not None and not self._watch.alive():
            raise self.fail(_DIED)
        text = next((block.text for block in result.content if block.type == "text"), "")
        image = next((block.data for block in result.content if block.type == "image"), None)
        return Answer(ok=not result.is_error, text=text, image=image)

    async def _answered(self, what: str, call: Coroutine[Any, Any, _T], limit_s: float) -> _T:
        self._busy += 1
        try:
            async with asyncio.timeout(limit_s):
                result = await call
        except TimeoutError:
            if self._watch is not None and not self._watch.alive():
                raise self.fail(_DIED) from None
            raise self.fail(f"the page hangs: {what} gave no answer within {limit_s:g} s") from None
        except (MCPError, ValidationError, OSError, RuntimeError) as error:
            raise self.fail(f"the browser's server is gone: {what}: {error}; {self._last_words()}") from None
        self._busy -= 1
        return result

    def watch(self) -> None:
        """See `judge.browser.pages.ToolCaller`."""
        found = process_tree.family(process_tree.list_processes(), self.folder)
        self._groups = frozenset(process.group for process in found)
        mains = [process.pid for process in found if process_tree.is_browser(process, self.folder)]
        if mains and self._watch is None:
            self._watch = process_tree.Watch(mains)

    @property
    def is_watched(self) -> bool:
        """See `judge.browser.pages.ToolCaller`."""
        return self._watch is not None

    def fail(self, message: str) -> BrowserFault:
        """See `judge.browser.pages.ToolCaller`."""
        if self._fault is None:
            self._fault = BrowserFault(message, remedy="the task is tried again; `wabe doctor` says what is missing")
        return self._fault

    def _last_words(self) -> str:
        try:
            written = (self.folder / "server.log").read_text("utf-8", "replace")[-2000:]
        except OSError:
            written = ""
        return clean_text(f"{self._error or ''} {written}".strip() or "it said nothing", hide=[str(self.folder)])[:500]

    async def end(self) -> None:
        """End the server, the browser and everything they started."""
        self._stop.set()
        if self._watch is not None:
            self._watch.close()
        if self._task is not None and self._fault is None and not self._busy:
            # A server that ends by itself writes its compile cache; one in trouble is not waited for.
            await asyncio.wait({self._task}, timeout=_POLITE_S)
        clean = await process_tree.end_family(self.folder, self._groups)
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=_UNWIND_S)
            if not self._task.done():
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=_UNWIND_S)
            clean = await process_tree.end_family(self.folder, self._groups)
        if not clean:
            _log.error("processes of a browser survive: %s", self.folder)


async def _despite_cancellation(work: Coroutine[Any, Any, None]) -> None:
    """Finish `work` whatever happens, then pass a cancellation on."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError
