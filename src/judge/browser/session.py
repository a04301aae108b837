"""What an episode needs from a browser, whatever drives it.

Implemented by `judge.browser.playwright`. Fakes implement it in tests of the episode loop only.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from judge.browser.points import Hits
from judge.browser.settle import SettleMode
from shared.models import Page, ProbeValue, Record, Task, ToolSpec


class ToolResult(Record):
    """What the browser's server answered to one tool call: `text` is bounded, and `ok` is false on an error.

    `refused` are network addresses requested in the meantime to which the guard refused the connection; `downloads` are
    the names of files that the page began to download, which the browser refuses. `found_again`: the page had rebuilt
    the element, and the action went to the one in its place (`judge.browser.lost_refs`). `hit` is what was, right
    before it, at the points that the action named.
    """

    ok: bool
    text: str
    refused: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    found_again: bool = False
    hit: Hits | None = None


class Hop(Record):
    """One request for a page in a main frame: where a navigation went, whether or not the page ever arrived."""

    url: str
    is_redirect: bool = False


class Traffic(Record):
    """The requests of an attempt so far, as entries of HAR 1.2 with nothing redacted.

    `dropped` is how many more there were than can be recorded; `is_pending`: an answer is still being read.
    """

    entries: tuple[dict[str, Any], ...] = ()
    dropped: int = 0
    is_pending: bool = False


class Browser(Protocol):
    """One open browser with one session. All methods raise `BrowserFault` when the browser or its server has died,
    takes longer than `call_timeout_s`, or came back without its pages (a silent relaunch).
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools a participant may use, including `finish` and `browser_scroll`."""
        ...

    @property
    def versions(self) -> dict[str, str]:
        """`{"mcp_server": …, "browser": …, "sandbox": "on" | "off: reason"}`, for provenance."""
        ...

    async def log_in(self, task: Task) -> None:
        """Give the browser the task's storage state and credentials, before the first page is opened."""
        ...

    async def open(self, url: str, settle: SettleMode = "real-time") -> None:
        """Open the task's website; a page with an HTTP error status is a page. `settle` is how pages are waited for.

        Raises `SiteFault` when the site cannot be reached.
        """
        ...

    async def open_tabs(self, urls: Sequence[str]) -> None:
        """Open more pages in tabs of their own, behind the first one. Raises `SiteFault` as `open` does."""
        ...

    async def observe(self) -> Page:
        """The current page once it has settled. Follows a new tab; with an open dialog, no snapshot or screenshot.

        Raises `ClockStalled` for a page that cannot be observed in page time.
        """
        ...

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        """The values of expressions in the page that was observed last, see `judge.browser.probes`."""
        ...

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """Execute one action that `judge.browser.tools` has checked and normalised."""
        ...

    def take_hops(self) -> tuple[Hop, ...]:
        """Where navigations went since the last call, every redirect included. Works after the browser has died."""
        ...

    def begin_step(self, number: int) -> None:
        """The step's action is about to be executed: requests from now on are its own. Steps are numbered from 1."""
        ...

    def traffic(self) -> Traffic | None:
        """The requests so far; `None` when the browser has died, so that some of them may be missing."""
        ...


BrowserFactory = Callable[[], AbstractAsyncContextManager[Browser]]
"""Opens browsers: `async with factory() as browser`. Closing leaves no process and no file behind."""
