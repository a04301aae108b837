"""Drives a real browser through Playwright's MCP server; one server serves one task after another.

The only file that imports `mcp`. The server and its Node come with the Python package `playwright`.
"""

import asyncio
import base64
import binascii
import json
import logging
import os
import re
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from playwright._impl._driver import compute_driver_executable
from pydantic import ValidationError

from judge.browser import lost_refs, points, probes, processes, responses
from judge.browser.bot_walls import WALL_STATUSES, wall_on
from judge.browser.chromium import CONFIG_FILE, BrowserSettings
from judge.browser.console import ConsoleLog
from judge.browser.guard import Guard
from judge.browser.provenance import mark, read_documents
from judge.browser.requests import NavigationLog, RequestLog
from judge.browser.responses import Answer
from judge.browser.session import Hop, ToolResult, Traffic
from judge.browser.settle import (
    AWAKE_S,
    ORIGINS_CODE,
    PROVENANCE_CODE,
    WAKE_CODE,
    Report,
    SettleMode,
    begin_code,
    open_code,
    read_report,
    settle_code,
)
from shared.access import StorageState
from shared.errors import BrowserFault, InternalFault, SiteFault, is_shortage
from shared.files import read_end
from shared.models import Page, ProbeValue, Settled, Task, ToolSpec

_START_TIMEOUT_S = 60.0
_GRACE_S = 1.0
_UNWIND_S = 10.0
# A page may navigate, or open a dialog, between its snapshot and its screenshot.
_OBSERVE_TRIES = 5
# A page that keeps replacing its elements is observed all the same; the facts about those elements are then missing.
_MARK_TRIES = 2
# Every tab costs a process and a line in each answer.
_MAX_TABS = 100
_MAX_LOG_BYTES = 65_536
_LOG = "server.log"
_BLANK = "about:blank"
_WAIT = "browser_wait_for"
_WHEEL = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_RELAUNCHED = "the browser was relaunched: it was killed or crashed, and its server started an empty one in its place"
_CRASHED = "the tab crashed"
# The server's own wording.
_RESET_NOTE = "Page crashed and was reset"
_TIMEOUT = re.compile(r"Timeout [\d.]+ms exceeded")
_UNREACHABLE = re.compile(rf"net::ERR_\w+|{_TIMEOUT.pattern}")
# A navigation continues after its call has timed out, and the server answers no snapshot meanwhile. No tool stops it,
# and a script in the page would wait just as long.
_STOP_LOADING = """async page => {
  const session = await page.context().newCDPSession(page);
  await session.send("Page.stopLoading");
  await session.detach();
}"""
# Sets cookies, local storage and HTTP authentication, which end with the context and so with the task. Credentials are
# sent only to their own origin. Errors are replaced because the server's own would show values.
_LOG_IN = """async page => {
  const [state, credentials] = %s;
  try {
    if (state) await page.context().setStorageState(state);
    const bound = credentials.map(each => ({ ...each, origin: new URL(each.origin).origin }));
    if (bound.length) await page.context().setHTTPCredentials(bound);
  } catch {
    throw new Error("refused");
  }
}"""
_FRAME_URLS = "async page => page.frames().slice(0, 100).map(frame => frame.url().slice(0, 2000))"
# Returns the result as an error, because the server answers errors at once. Before returning a result it waits by
# itself: up to 5 s for the page's requests, up to 10 s for a new document's load event. Settling already does that.
_RUN = """async page => {
  const result = await (%s)(page);
  throw new Error("wabe: " + JSON.stringify(result ?? null));
}"""
_RETURNED = "### Error\nError: wabe: "
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class McpServer:
    """The MCP server's process and the connection to it. The first fault is final: every later call raises it again.

    The client runs in its own asyncio task, which isolates the errors and cancellations of its task groups when a
    server dies.
    """

    def __init__(self, settings: BrowserSettings, folder: Path, proxy: str | None = None) -> None:
        self.settings = settings
        self.folder = folder
        self.version = "unknown"
        self._proxy = proxy
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
        await asyncio.wait(awaited, timeout=_START_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            raise self.fail(f"the browser's server did not start: {self._log_end()}")
        client = self._ready.result()
        if info := client.server_info:
            self.version = f"{info.name} {info.version}"
        listed = await self._answered("tools/list", client.list_tools(), self.settings.config.call_timeout_s)
        self.watch()
        self._own_files = frozenset(self.folder.iterdir())
        return [ToolSpec(name=t.name, description=t.description or "", parameters=t.input_schema) for t in listed.tools]

    async def _run(self) -> None:
        command, *args = self.settings.command(self.folder, self._proxy)
        parameters = StdioServerParameters(
            command=command,
            args=args,
            cwd=self.folder,
            env=self.settings.environ(self.folder),
            encoding_error_handler="replace",
        )
        try:
            (self.folder / CONFIG_FILE).write_text(self.settings.config_file(self._proxy))
            # Appended to, because `renew` truncates the log while the server writes to it.
            with (self.folder / _LOG).open("a") as log:
                # `legacy` is the initialize handshake; the default mode would first probe for a newer protocol.
                async with Client(stdio_client(parameters, errlog=log), mode="legacy") as client:
                    self._ready.set_result(client)
                    await self._stop.wait()
        # Isolation boundary: a client's task groups raise groups of any errors. Calls in flight get their own errors.
        except Exception as error:  # noqa: BLE001
            self._error = error

    async def call(self, tool: str, params: dict[str, Any]) -> Answer:
        """Call a tool. Raises `BrowserFault` if no answer comes, the tab crashed, or the browser was relaunched."""
        if self._fault:
            raise self._fault
        # A requested wait does not count against the timeout.
        wait_s = float(params.get("time", 0)) if tool == _WAIT else 0.0
        call = self._ready.result().call_tool(tool, params)
        result = await self._answered(tool, call, self.settings.config.call_timeout_s + wait_s)
        if not self._watch.alive():
            raise self.fail(_RELAUNCHED)
        text = next((block.text for block in result.content if block.type == "text"), "")
        image = next((block.data for block in result.content if block.type == "image"), None)
        if result.is_error and responses.says_crashed(text):
            raise self.fail(_CRASHED)
        return Answer(ok=not result.is_error, text=text, image=image)

    async def _answered(self, what: str, call: Coroutine[Any, Any, _T], limit_s: float) -> _T:
        self._unanswered += 1
        try:
            async with asyncio.timeout(limit_s):
                result = await call
        except TimeoutError:
            hangs = f"the page hangs: {what} gave no answer within {limit_s:g} s"
            raise self.fail(hangs if self._watch.alive() else _RELAUNCHED) from None
        except (MCPError, ValidationError, OSError, RuntimeError) as error:
            # The connection closes a moment before the process has ended.
            self._is_gone = True
            raise self.fail(f"the browser's server is gone: {what}: {error}; {self._log_end()}") from None
        # Not in a `finally`: after a timeout or a cancellation the answer may still come, which `renew` has to know.
        self._unanswered -= 1
        return result

    async def renew(self) -> None:
        """Remove every trace of the last task: an empty page in a new browser context, and no files.

        Raises `BrowserFault`, also if the server has not answered every call, because a late answer could still come.
        """
        if self._unanswered:
            raise self.fail("the browser's server still owes an answer")
        # The first call ends the old context; the second opens the new one, as any call would.
        for tool, params in (("browser_close", {}), ("browser_tabs", {"action": "list"})):
            answer = await self.call(tool, params)
            if not answer.ok:
                raise self.fail(f"the browser's context cannot be replaced: {answer.text[:300]}")
            # The old context can no longer write files, and the new one has not written any yet.
            for path in frozenset(self.folder.iterdir()) - self._own_files:
                if path.is_file():
                    path.unlink()
            os.truncate(self.folder / _LOG, 0)

    def watch(self) -> None:
        """From now on, raise a fault if the current browser has died or was replaced."""
        found = processes.family(processes.list_processes(), self.folder)
        self._groups = frozenset(one.group for one in found)
        self._watch.close()
        self._watch = processes.Watch([one.pid for one in found if processes.is_browser(one, self.folder)])
        self._server_watch.close()
        self._server_watch = processes.Watch([one.pid for one in found if processes.is_server(one, self.folder)])

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

    def fail(self, message: str) -> BrowserFault:
        """The fault to raise: always the first one."""
        if self._fault is None:
            self._fault = BrowserFault(message, remedy="the task is retried; `wabe doctor` lists what is missing")
        return self._fault

    def _log_end(self) -> str:
        text = f"{self._error or ''} {read_end(self.folder / _LOG, _MAX_LOG_BYTES)[-2000:]}".strip()
        return responses.clean_text(text or "its log is empty", hide=[str(self.folder)])[:500]

    async def end(self) -> None:
        """End the server, the browser and everything they started."""
        self._watch.close()
        self._server_watch.close()
        if self._task is None:
            return
        self._stop.set()
        if self._fault is None and not self._unanswered:
            # A server that exits by itself writes its compile cache. A faulty one is not given time for that.
            await asyncio.wait({self._task}, timeout=_GRACE_S)
        is_clean = await processes.end_family(self.folder, self._groups)
        if not self._task.done():
            # The client ends when it notices that the server is gone.
            await asyncio.wait({self._task}, timeout=_UNWIND_S)
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_UNWIND_S)
            is_clean = await processes.end_family(self.folder, self._groups)
        if not is_clean:
            _log.error("processes of a browser survive: %s", self.folder)


class PlaywrightBrowser:
    """A `judge.browser.session.Browser`: what a page shows and what an action does, through the server's tools."""

    def __init__(self, server: McpServer, tools: tuple[ToolSpec, ...], guard: Guard | None = None) -> None:
        found = server.settings.found
        self.folder = server.folder
        self.tools = tools
        self.versions = {
            "mcp_server": server.version,
            "browser": server.settings.version,
            "sandbox": "on" if found.sandbox else f"off: {found.sandbox_reason}",
        }
        self._server = server
        self._guard = guard
        self._navigations = NavigationLog(server.folder)
        self._requests = RequestLog(server.folder)
        self._console = ConsoleLog(server.folder)
        # Paths of this host that the server's messages may contain.
        self._hidden = (str(server.folder), str(Path(compute_driver_executable()[0]).parent))
        self._tab_count = 1
        self._url = _BLANK
        self._title = ""
        self._seen = ""
        self._reports: list[Report] = []
        self._downloads: tuple[str, ...] = ()
        self._settled_at = time.monotonic()
        # Whether the page has settled since the last action.
        self._is_settled = False

    async def log_in(self, task: Task) -> None:
        """See `judge.browser.session.Browser`."""
        state = task.storage_state.to_json() if isinstance(task.storage_state, StorageState) else None
        credentials = [
            {"username": each.username, "password": each.password, "origin": each.origin or task.website}
            for each in task.http_credentials
        ]
        if state is None and not credentials:
            return
        if not (await self._run(_LOG_IN % json.dumps([state, credentials]))).ok:
            # Without the browser's message, which may repeat the secrets.
            raise self._server.fail("the browser refused the task's storage_state or http_credentials")

    async def open(self, url: str, settle: SettleMode = "real-time") -> None:
        """See `judge.browser.session.Browser`."""
        answer = await self._run(begin_code(settle))
        if answer.ok:
            answer = await self._go(url)
        self._require_opened(answer, url)
        # From now on an empty page means a crash: a tab may crash before its first observation.
        self._url = url

    async def open_tabs(self, urls: Sequence[str]) -> None:
        """See `judge.browser.session.Browser`."""
        for url in urls:
            self._require_opened(await self._open_tab(url), url)
        if urls:
            await self._server.call("browser_tabs", {"action": "select", "index": 0})
        # So that the first observation does not follow these as newly opened tabs.
        self._tab_count += len(urls)

    async def _open_tab(self, url: str) -> Answer:
        answer = await self._server.call("browser_tabs", {"action": "new"})
        return await self._go(url) if answer.ok else answer

    async def _go(self, url: str) -> Answer:
        """Open an address. Not with the server's own tool, which waits for events that some pages never fire."""
        return await self._run(open_code(url, self._server.settings.config.navigation_timeout_s))

    def _require_opened(self, answer: Answer, url: str) -> None:
        if answer.ok:
            return
        text = self._clean(answer.text)
        # An error of `browserType.launch` or `connect`: there is no browser, even if the text mentions a timeout.
        if "browserType." in text or not (cause := _UNREACHABLE.search(text)):
            raise self._server.fail(f"the browser could not open a page: {text[:500]}")
        failure = self._guard.failure_at(url) if self._guard else None
        # Such as too many open files. The site is not to blame for that.
        if failure is not None and is_shortage(failure):
            raise InternalFault(f"this machine ran out of a resource: {failure.strerror}")
        why = f"{cause[0]} ({failure.strerror or 'no answer'})" if failure is not None else cause[0]
        raise SiteFault(f"{url[:200]} cannot be reached: {why}", remedy="check the address and the network")

    async def observe(self) -> Page:
        """See `judge.browser.session.Browser`."""
        page = await self._observed()
        # No other page can be a wall, and listing the frames costs a call.
        if page.http_status in WALL_STATUSES:
            page = page.model_copy(update={"wall": wall_on(page, await self._frames())})
        self._seen = page.snapshot
        since = {"refused": self._refused(), "downloads": self._take_downloads(), **self._settled()}
        return page.model_copy(update=since)

    async def _settle(self) -> None:
        # Half, so that settling ends before its own call times out, which would count as a page that hangs.
        answer = await self._run(settle_code(self._server.settings.config.call_timeout_s / 2))
        if not answer.ok and responses.modal_state(answer.text) is None:
            _log.warning("a page is observed without waiting for it: %s", self._clean(answer.text)[:300])
        report = read_report(answer.text)
        self._reports.append(report)
        self._downloads += report.downloads
        self._settled_at = time.monotonic()

    def _settled(self) -> dict[str, Any]:
        """The duration and findings of all settling since the last observation, as fields of a page."""
        waits, self._reports = self._reports, []
        settled = Settled(
            real_s=sum(wait.settled.real_s for wait in waits),
            page_s=sum(wait.settled.page_s for wait in waits),
            waited_for=tuple(dict.fromkeys(reason for wait in waits for reason in wait.settled.waited_for)),
        )
        return {"settled": settled, "vanished": tuple(text for wait in waits for text in wait.vanished)}

    def _take_downloads(self) -> tuple[str, ...]:
        taken, self._downloads = self._downloads, ()
        return taken

    async def _frames(self) -> list[str]:
        """The addresses of the page's frames; empty if an open dialog prevents reading them."""
        answer = await self._run(_FRAME_URLS)
        return responses.listed_texts(answer.text) if answer.ok else []

    async def _observed(self) -> Page:
        trouble, timeouts = "", 0
        for tries in range(_OBSERVE_TRIES):
            if not self._is_settled:
                await self._settle()
            self._is_settled = False
            answer = await self._snapshot()
            if state := responses.modal_state(answer.text):
                if not responses.is_file_chooser(state):
                    return await self._dialog_page(state)
                # Cancel the file chooser: uploads are not allowed, and an open chooser blocks every other tool.
                await self._server.call("browser_file_upload", {})
                continue
            if answer.ok:
                page = await self._parsed(answer.text)
                if page is not None and not page.url:
                    # A tab that never loaded, selected by the participant: a screenshot of it would time out.
                    return page
                page = page and await self._marked(page, tries)
                if page is None:
                    continue
                # In CSS pixels, because participants give coordinates in those.
                answer = await self._server.call("browser_take_screenshot", {"type": "jpeg", "scale": "css"})
                if answer.ok and answer.image:
                    if await self._stayed():
                        return page.model_copy(update={"screenshot": self._decoded(answer.image)})
                    continue
            # If a dialog opened before the screenshot, the next snapshot reports it.
            if not responses.modal_state(answer.text):
                trouble = self._clean(answer.text)
                timeouts += bool(_TIMEOUT.search(trouble))
                # Not five times, because each one takes the full timeout.
                if timeouts > 1:
                    raise self._server.fail(f"the page hangs: {trouble[:300]}")
        raise self._server.fail(f"the page could not be observed: {trouble[:500] or 'it keeps changing'}")

    async def _marked(self, page: Page, tries: int) -> Page | None:
        """The page with who wrote what its snapshot shows; `None` if the page has changed meanwhile: look again."""
        answer = await self._run(PROVENANCE_CODE)
        marked = mark(page.snapshot, read_documents(answer.text))
        if not marked.is_complete and tries < _MARK_TRIES:
            self._is_settled = True
            return None
        facts = {"snapshot": marked.snapshot, "origin": marked.origin, "is_mixed": marked.is_mixed}
        return page.model_copy(update=facts)

    async def _stayed(self) -> bool:
        """Whether the page was of one origin since it settled.

        The server reads the address after the snapshot. A page that went elsewhere in between would be recorded as one
        of the site that it went to.
        """
        return (await self._run(ORIGINS_CODE)).text == "1"

    async def _snapshot(self) -> Answer:
        """The snapshot; that of the previous page if the next one does not load within the navigation timeout."""
        try:
            async with asyncio.timeout(self._server.settings.config.navigation_timeout_s):
                # Always with boxes, whether participants see them or not: `in_view` and coordinates need them.
                return await self._server.call("browser_snapshot", {"boxes": True})
        except TimeoutError:
            await self._run(_STOP_LOADING)
            return await self._server.call("browser_snapshot", {"boxes": True})

    async def _run(self, code: str) -> Answer:
        """Run the judge's own code in the server's process; the answer's text is its result as JSON.

        The tool is never offered to participants.
        """
        answer = await self._server.call("browser_run_code_unsafe", {"code": _RUN % code})
        if not answer.text.startswith(_RETURNED):
            return answer
        # `JSON.stringify` writes a single line; the server adds others.
        return Answer(ok=True, text=answer.text.removeprefix(_RETURNED).partition("\n")[0])

    async def _parsed(self, text: str) -> Page | None:
        """The page in a snapshot's answer; `None` if a new tab had to be brought to the front first."""
        try:
            page = responses.parse_page(text)
        except responses.TabCrashed:
            raise self._server.fail(_CRASHED) from None
        except responses.UnreadableResponse as error:
            raise self._server.fail(f"the browser's server gave an unreadable answer: {error}") from None
        if page.url == _BLANK and self._url != _BLANK:
            self._refuse_reset()
        if len(page.tabs) > _MAX_TABS:
            raise SiteFault(f"the page opened more than {_MAX_TABS} tabs")
        # A tab without address and title never loaded, because its link was a download.
        loaded = [tab for tab in page.tabs if tab.url or tab.title]
        newest = loaded[-1] if len(loaded) > self._tab_count else None
        self._tab_count = len(loaded)
        if newest is not None and not newest.current:
            # The server stays on the old tab; a browser would show a person the new one.
            await self._server.call("browser_tabs", {"action": "select", "index": newest.index})
            return None
        self._url, self._title = page.url, page.title
        return page

    def _refuse_reset(self) -> None:
        """Raise a fault if an empty page has replaced a crashed one; a page may also be empty for other reasons.

        The server writes a note about the crash to the page's console log. It names that log only once, in the next
        answer of any kind, so all logs are read.
        """
        if not self._server.is_watched:
            raise self._server.fail("the browser was relaunched: its page is gone")
        if any(_RESET_NOTE in read_end(log, _MAX_LOG_BYTES) for log in self.folder.glob("console-*.log")):
            raise self._server.fail("the tab crashed; the server replaced it by an empty one")

    async def _dialog_page(self, state: str) -> Page:
        answer = await self._server.call("browser_tabs", {"action": "list"})
        try:
            tabs = responses.parse_tab_list(answer.text)
        except responses.UnreadableResponse:
            tabs = ()
        url = next((tab.url for tab in tabs if tab.current and tab.url), self._url)
        self._url, self._title = url, self._title if url == self._url else ""
        return Page(url=url, title=self._title, snapshot="", tabs=tabs, dialog=responses.dialog_text(state))

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        """See `judge.browser.session.Browser`."""
        answer = await self._run(probes.probe_code(page.url, expressions))
        return probes.read_values(answer.text, len(expressions))

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """See `judge.browser.session.Browser`."""
        if time.monotonic() - self._settled_at >= AWAKE_S:
            await self._run(WAKE_CODE)
        named = points.points_of(params)
        # Before the action, which may remove what is at the point.
        looked = await self._run(points.hit_code(named)) if named else None
        limit_s = self._server.settings.config.action_timeout_s
        answer, is_found_again = await lost_refs.call_again(
            self._call, self._snapshot, self._run, tool, params, seen=self._seen, url=self._url, limit_s=limit_s
        )
        if answer.ok and tool == "browser_tabs" and params.get("action") == "close":
            # The page may open another tab before it is observed.
            self._tab_count -= 1
        if answer.ok and tool != _WAIT:
            # Settle now, so that effects of the action, such as a download, are reported with it: there may be no later
            # observation in this episode. Not after a wait, which counts as the participant's time.
            await self._settle()
            self._is_settled = True
        if not answer.ok and tool == "browser_navigate" and _TIMEOUT.search(answer.text):
            await self._run(_STOP_LOADING)
        return ToolResult(
            ok=answer.ok,
            text=self._clean(answer.text),
            refused=self._refused(),
            downloads=self._take_downloads(),
            found_again=is_found_again,
            hit=points.read_hits(looked.text) if looked and looked.ok else None,
        )

    async def _call(self, tool: str, params: dict[str, Any]) -> Answer:
        match tool:
            case "browser_navigate":
                return await self._go(params["url"])
            case "browser_tabs" if "url" in params:
                return await self._open_tab(params["url"])
            case "browser_scroll":
                return await self._scroll(**params)
            case "browser_mouse_wheel":
                return await self._wheel(**params)
            case "browser_type" if "target" not in params:
                limit_ms = round(self._server.settings.config.action_timeout_s * 1000)
                code = points.typing_code(**params, limit_ms=limit_ms)
                return await self._run(code)
        return await self._server.call(tool, params)

    def take_hops(self) -> tuple[Hop, ...]:
        """See `judge.browser.session.Browser`."""
        return self._navigations.take()

    def begin_step(self, number: int) -> None:
        """See `judge.browser.session.Browser`."""
        self._requests.begin_step(number)
        self._console.begin_step(number)

    def traffic(self) -> Traffic | None:
        """See `judge.browser.session.Browser`."""
        if not self._server.runs:
            return None
        return self._requests.read().model_copy(update={"console": self._console.read()})

    async def _scroll(self, direction: str, amount: int, target: str | None = None) -> Answer:
        """Turn the wheel over the element, or over the middle of the page."""
        # The wheel turns what is under the mouse.
        if target:
            placed = await self._server.call("browser_hover", {"target": target})
        else:
            config = self._server.settings.config
            middle = {"x": config.viewport_width // 2, "y": config.viewport_height // 2}
            placed = await self._server.call("browser_mouse_move_xy", middle)
        if not placed.ok:
            return placed
        across, down = _WHEEL[direction]
        return await self._wheel(across * amount, down * amount)

    async def _wheel(self, deltaX: int = 0, deltaY: int = 0, **point: float) -> Answer:
        """Turn the wheel over a point, or where the mouse is."""
        if point:
            placed = await self._server.call("browser_mouse_move_xy", point)
            if not placed.ok:
                return placed
        return await self._server.call("browser_mouse_wheel", {"deltaX": deltaX, "deltaY": deltaY})

    def _refused(self) -> tuple[str, ...]:
        return self._guard.take_refusals() if self._guard else ()

    def _decoded(self, image: str) -> bytes:
        try:
            return base64.b64decode(image, validate=True)
        except binascii.Error:
            raise self._server.fail("the browser's server gave a screenshot that cannot be decoded") from None

    def _clean(self, text: str) -> str:
        return responses.clean_text(text, hide=self._hidden)
