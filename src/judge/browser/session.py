"""The environment's protocol: what an episode needs of a browser, whoever drives it.

Implemented by `judge.browser.playwright`; fakes of it stand in tests of the episode loop only.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from shared.models import Page, Record, ToolSpec


class ToolResult(Record):
    """What the browser's server answered to one tool call. `text` is its words, bounded; `ok` is false on an error.

    `refused` are network addresses that were asked for meanwhile and that the guard kept pages from; `downloads` are
    names of files that the page began to download, which the browser refuses.
    """

    ok: bool
    text: str
    refused: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()


class Hop(Record):
    """One request for a page in a main frame: where a navigation went, whether or not the page ever arrived."""

    url: str
    is_redirect: bool = False


class Browser(Protocol):
    """One open browser with one session. All methods raise `BrowserFault` when the browser or its server is gone,
    hangs past `call_timeout_s`, or came back without its pages (a silent relaunch).
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools a participant may use, `finish` and `browser_scroll` among them."""
        ...

    @property
    def versions(self) -> dict[str, str]:
        """`{"mcp_server": …, "browser": …, "sandbox": "on" | "off: reason"}`, for provenance."""
        ...

    async def open(self, url: str) -> None:
        """Open the task's website. Raises `SiteFault` when the site cannot be reached."""
        ...

    async def observe(self) -> Page:
        """The current page: address, title, accessibility snapshot, screenshot, tabs, dialog. Follows a new tab."""
        ...

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """Execute one action that `judge.browser.actions` has checked and normalised."""
        ...

    def take_hops(self) -> tuple[Hop, ...]:
        """Where navigations went since the last call, every redirect included. Works after the browser has died."""
        ...


class BrowserFactory(Protocol):
    """Opens browsers: `async with factory() as browser`. Closing leaves no process and no file behind."""

    def __call__(self) -> AbstractAsyncContextManager[Browser]: ...
