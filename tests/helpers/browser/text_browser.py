"""A browser without a browser process: fetches pages for real, shows their elements, runs no script.

For tests of what happens around the browser. Starting a real one costs more than the rest of such a test.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest

from helpers.browser.hops import typed, went
from helpers.browser.one_tab import OneTab
from helpers.browser.server_tools import SERVER_TOOLS
from judge.browser.chromium import BrowserSettings
from judge.browser.session import Browser, Hop, TakenDownload, ToolResult, Traffic
from judge.browser.settle import SettleMode
from judge.browser.tools import offered_tools
from judge.network.policy import NetworkPolicy
from judge.records.steps import ProbeValue
from judge.server import service
from shared.errors import SiteUnreachable
from shared.models import Page, Tab

JPEG = b"\xff\xd8\xff\xe0"
_HEADINGS = {f"h{level}": "heading" for level in range(1, 7)}
_ROLES = {"a": "link", "button": "button", **_HEADINGS, "p": "paragraph", "input": "textbox"}
# They are part of the name of the element that they are in.
_INLINE = {"b", "code", "em", "i", "span", "strong"}


class _Elements(HTMLParser):
    """The title, and for each element its role, name and the address that a link leads to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.title = ""
        self.elements: list[tuple[str, str, str]] = []
        self._open = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _INLINE:
            return
        self._open = tag
        if tag in _ROLES:
            known = dict(attrs)
            self.elements.append((_ROLES[tag], known.get("aria-label") or "", known.get("href") or ""))
            self._open = "" if tag == "input" or known.get("aria-label") else tag

    def handle_data(self, data: str) -> None:
        if self._open == "title":
            self.title += data
        elif self._open in _ROLES:
            role, name, href = self.elements[-1]
            self.elements[-1] = role, (name + data).strip(), href

    def handle_endtag(self, tag: str) -> None:
        if tag not in _INLINE:
            self._open = ""


class TextBrowser(OneTab):
    """A `judge.browser.session.Browser`. Clicks follow links, typing fills fields; whatever else is asked succeeds."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.tools = offered_tools(SERVER_TOOLS)
        self.versions = {"browser": "text"}
        self._http = http
        self._url = "about:blank"
        self._page = _Elements("")
        self._typed: dict[str, str] = {}
        self._hops: list[Hop] = []
        self._visited: list[str] = []
        self._looks = 0

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        """The task's website."""
        if trouble := await self._go(url, typed):
            raise SiteUnreachable(f"{url} cannot be reached: {trouble}")

    async def observe(self) -> Page:
        self._looks += 1
        snapshot = "\n".join(
            f"- {role}" + (f' "{_quoted(name)}"' if name else "") + f" [ref=e{number}]{self._value(f'e{number}')}"
            for number, (role, name, _) in enumerate(self._page.elements, 1)
        )
        picture = JPEG + hashlib.sha256(f"{self._looks} {self._url} {snapshot}".encode()).digest() * 16
        tab = Tab(index=0, title=self._page.title, url=self._url, current=True)
        return Page(
            url=self._url,
            title=self._page.title,
            origin=str(httpx.URL(self._url).join("/")).rstrip("/"),
            snapshot=snapshot,
            screenshot=picture,
            tabs=(tab,),
        )

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        return tuple(ProbeValue() for _ in expressions)

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        trouble = ""
        target = str(params.get("target", ""))
        if tool == "browser_navigate":
            trouble = await self._go(str(params["url"]), typed)
        elif tool == "browser_click" and (href := self._page.elements[int(target[1:]) - 1][2]):
            trouble = await self._go(urljoin(self._url, href))
        elif tool == "browser_navigate_back" and len(self._visited) > 1:
            trouble = await self._go(self._visited[-2], partial(went, cause="back"))
            del self._visited[-2:]
        elif tool == "browser_type":
            self._typed[target] = str(params["text"])
        elif tool == "browser_wait_for":
            await asyncio.sleep(float(params.get("time", 0)))
        return ToolResult(ok=not trouble, text=trouble or "done")

    def begin_step(self, number: int) -> None:
        pass

    def traffic(self) -> Traffic | None:
        return Traffic()

    def take_downloads(self, *, with_open: bool) -> tuple[TakenDownload, ...]:
        return ()

    def take_hops(self) -> tuple[Hop, ...]:
        hops, self._hops = tuple(self._hops), []
        return hops

    def _value(self, ref: str) -> str:
        return f": {self._typed[ref]!r}" if ref in self._typed else ""

    async def _go(self, url: str, hops_of: Callable[..., list[Hop]] = went) -> str:
        """Load a page; what went wrong, if anything did."""
        try:
            response = await self._http.get(url)
        except httpx.HTTPError as error:
            return f"net::ERR_FAILED {error}"
        self._hops += hops_of(*(str(hop.url) for hop in (*response.history, response)))
        self._url, self._page, self._typed = str(response.url), _Elements(response.text), {}
        self._visited.append(self._url)
        return ""


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


@asynccontextmanager
async def _opened() -> AsyncIterator[Browser]:
    async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as http:
        yield TextBrowser(http)


def text_browser() -> AbstractAsyncContextManager[Browser]:
    """Opens one: a `judge.browser.session.BrowserFactory`."""
    return _opened()


class TextBrowsers:
    """Stands in for a `judge.browser.pool.BrowserPool`."""

    def browser(self, _policy: NetworkPolicy) -> AbstractAsyncContextManager[Browser]:
        return text_browser()


def play_in_text_browsers(patch: pytest.MonkeyPatch) -> None:
    """Judges of this process play attempts in `TextBrowser`s until the patch is undone."""
    patch.setattr(BrowserSettings, "from_config", lambda *_: None)
    patch.setattr(service, "browser_pool", lambda _: nullcontext(TextBrowsers()))
