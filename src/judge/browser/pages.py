"""What a page shows and what an action does, through the tools of Playwright's MCP server."""

import asyncio
import base64
import binascii
import re
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from judge.browser import responses as mcp_text
from judge.browser.guard.navigation_log import NavigationLog
from judge.browser.session import Hop, ToolResult
from judge.browser.tools import SCROLL
from shared.errors import BrowserFault, SiteFault
from shared.models import Page, ToolSpec

_OBSERVE_TRIES = 5
_MAX_TABS = 100
_BLANK = "about:blank"
_WHEEL = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_RESET_NOTE = "Page crashed and was reset"
_MAX_LOG_BYTES = 65_536
_TIMEOUT = re.compile(r"Timeout \d+ms exceeded")
# The judge's own, never a participant's. A navigation goes on after its call has given up, and no snapshot is answered
# meanwhile; no tool stops it, a script in the page waits just as long.
_STOP_LOADING = """async page => {
  const session = await page.context().newCDPSession(page);
  await session.send("Page.stopLoading");
  await session.detach();
}"""
_UNREACHABLE = re.compile(r"net::ERR_\w+|Timeout \d+ms exceeded")


class Answer(NamedTuple):
    """A tool's answer: its text, and its image as base64 where it has one."""

    ok: bool
    text: str
    image: str | None = None


class ToolCaller(Protocol):
    """The server's end. Raises `BrowserFault` when no answer comes, or when it comes from another browser."""

    folder: Path

    async def call(self, tool: str, params: dict[str, Any], *, extra_s: float = 0.0) -> Answer: ...

    def watch(self) -> None:
        """From now on tell a browser that is no more, or no longer the same."""
        ...

    def fail(self, message: str) -> BrowserFault:
        """The fault to raise; every later call raises it again."""
        ...

    @property
    def is_watched(self) -> bool:
        """Whether a relaunched browser is told by its process here."""
        ...


class McpBrowser:
    """A `judge.browser.session.Browser` over a `ToolCaller`."""

    def __init__(
        self,
        server: ToolCaller,
        *,
        tools: tuple[ToolSpec, ...],
        versions: dict[str, str],
        viewport: tuple[int, int],
        hidden: tuple[str, ...],
        patience_s: float = 30.0,
    ) -> None:
        """`patience_s` is how long a page may load before it is looked at as it stands; less than a call's limit."""
        self._server = server
        self._tools = tools
        self._versions = versions
        self._viewport = viewport
        self._hidden = hidden
        self._patience_s = patience_s
        self._navigations = NavigationLog(server.folder)
        self._tab_count = 1
        self._url = _BLANK
        self._title = ""
        self._timeouts = 0

    @property
    def folder(self) -> Path:
        """Where this browser keeps everything, and what its processes are told by."""
        return self._server.folder

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """See `judge.browser.session.Browser`."""
        return self._tools

    @property
    def versions(self) -> dict[str, str]:
        """See `judge.browser.session.Browser`."""
        return self._versions

    async def open(self, url: str) -> None:
        """Open the task's website. A page with an HTTP error status is a page. Raises `SiteFault`, `BrowserFault`."""
        answer = await self._server.call("browser_navigate", {"url": url})
        if not answer.ok:
            text = self._clean(answer.text)
            if "browserType.launch" in text or not (cause := _UNREACHABLE.search(text)):
                raise self._server.fail(f"the browser could not open a page: {text[:500]}")
            raise SiteFault(f"{url[:200]} cannot be reached: {cause[0]}", remedy="check the address and the network")
        # From now on an empty page is a question: a tab may crash before it is first looked at.
        self._url = url
        self._server.watch()

    async def observe(self) -> Page:
        """The current page. Follows a new tab; with an open dialog there is neither snapshot nor screenshot."""
        trouble = ""
        self._timeouts = 0
        for _ in range(_OBSERVE_TRIES):
            answer = await self._snapshot()
            if state := mcp_text.modal_state(answer.text):
                if mcp_text.is_file_chooser(state):
                    # Nobody may upload files, and an open chooser blocks every other tool.
                    await self._server.call("browser_file_upload", {})
                    continue
                return await self._dialog_page(state)
            if not answer.ok:
                trouble = self._trouble(answer)
                continue
            page = await self._parsed(answer.text)
            if page is None:
                continue
            answer = await self._server.call("browser_take_screenshot", {"type": "jpeg", "scale": "css"})
            if answer.ok and answer.image:
                return Page(
                    url=page.url,
                    title=page.title,
                    snapshot=page.snapshot,
                    screenshot=self._decoded(answer.image),
                    tabs=page.tabs,
                )
            if not mcp_text.modal_state(answer.text):
                trouble = self._trouble(answer)
        raise self._server.fail(f"the page could not be observed: {trouble[:500] or 'it keeps changing'}")

    async def _snapshot(self) -> Answer:
        """The snapshot; of a page that does not come, the one before it."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._server.call("browser_snapshot", {"boxes": True})
        except TimeoutError:
            await self._stop_loading()
            return await self._server.call("browser_snapshot", {"boxes": True})

    async def _stop_loading(self) -> None:
        await self._server.call("browser_run_code_unsafe", {"code": _STOP_LOADING})

    async def _parsed(self, text: str) -> mcp_text.PageText | None:
        """The page as the snapshot's answer tells it; `None` when a new tab had to be brought to the front first."""
        try:
            page = mcp_text.parse_page(text)
        except mcp_text.UnreadableResponse as error:
            raise self._server.fail(f"the browser's server gave an answer that cannot be read: {error}") from None
        if page.url == _BLANK and self._url != _BLANK:
            self._refuse_reset()
        if len(page.tabs) > _MAX_TABS:
            raise SiteFault(f"the page opened more than {_MAX_TABS} tabs")
        appeared = len(page.tabs) > self._tab_count and not page.tabs[-1].current
        self._tab_count = len(page.tabs)
        if appeared:
            # The server stays on the old tab; a person would see the new one.
            await self._server.call("browser_tabs", {"action": "select", "index": page.tabs[-1].index})
            return None
        self._url, self._title = page.url, page.title
        return page

    def _refuse_reset(self) -> None:
        """Tell an empty page that took the place of a crashed one from a page that is empty of its own.

        The server writes a note of it to the page's console log. Which log that is, it tells once, in whatever answer
        comes next: all of them are read.
        """
        if not self._server.is_watched:
            raise self._server.fail("the browser was relaunched: its page is gone")
        if any(_RESET_NOTE in _read_end(log) for log in self._server.folder.glob("console-*.log")):
            raise self._server.fail("the tab crashed; the server replaced it by an empty one")

    async def _dialog_page(self, state: str) -> Page:
        answer = await self._server.call("browser_tabs", {"action": "list"})
        try:
            tabs = mcp_text.parse_tab_list(answer.text)
        except mcp_text.UnreadableResponse:
            tabs = ()
        url = next((tab.url for tab in tabs if tab.current and tab.url), self._url)
        title = self._title if url == self._url else ""
        self._url, self._title = url, title
        return Page(url=url, title=title, snapshot="", tabs=tabs, dialog=mcp_text.dialog_text(state))

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """Execute one checked action; `browser_scroll` is a turn of the mouse wheel, the others are the server's."""
        if tool == SCROLL:
            answer = await self._scroll(params)
        else:
            # A wait that was asked for is no hang.
            asked = params.get("time") if tool == "browser_wait_for" else None
            answer = await self._server.call(tool, params, extra_s=float(asked or 0))
        if not answer.ok and mcp_text.says_crashed(answer.text):
            raise self._server.fail("the tab crashed")
        if not answer.ok and tool == "browser_navigate" and _TIMEOUT.search(answer.text):
            await self._stop_loading()
        return ToolResult(ok=answer.ok, text=self._clean(answer.text), downloads=mcp_text.downloads(answer.text))

    def take_hops(self) -> tuple[Hop, ...]:
        """See `judge.browser.session.Browser`."""
        return self._navigations.take()

    async def _scroll(self, params: dict[str, Any]) -> Answer:
        """Turn the wheel over the element, or over the middle of the page."""
        if target := params.get("target"):
            placed = await self._server.call("browser_hover", {"target": target})
        else:
            x, y = (size // 2 for size in self._viewport)
            placed = await self._server.call("browser_mouse_move_xy", {"x": x, "y": y})
        if not placed.ok:
            return placed
        across, down = _WHEEL[params.get("direction", "down")]
        amount = params["amount"]
        answer = await self._server.call("browser_mouse_wheel", {"deltaX": across * amount, "deltaY": down * amount})
        if answer.ok:
            # The scroll takes effect with the next frame; a second turn, by nothing, is answered after that.
            await self._server.call("browser_mouse_wheel", {"deltaX": 0, "deltaY": 0})
        return answer

    def _trouble(self, answer: Answer) -> str:
        if mcp_text.says_crashed(answer.text):
            raise self._server.fail("the tab crashed")
        text = self._clean(answer.text)
        if _TIMEOUT.search(text):
            self._timeouts += 1
            if self._timeouts > 1:
                raise self._server.fail(f"the page hangs: {text[:300]}")
        return text

    def _decoded(self, image: str) -> bytes:
        try:
            return base64.b64decode(image, validate=True)
        except binascii.Error:
            raise self._server.fail("the browser's server gave a screenshot that cannot be decoded") from None

    def _clean(self, text: str) -> str:
        return mcp_text.clean_text(text, hide=self._hidden)


def _read_end(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _MAX_LOG_BYTES))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
