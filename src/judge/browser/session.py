"""The browser interface that an episode uses, independent of what drives the browser.

Implemented by `judge.browser.playwright`. Fakes implement it in tests of the episode loop only.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from judge.browser.points import Hits
from judge.browser.settle import SettleMode
from shared.models import Page, ProbeValue, Record, Task, ToolSpec


class ToolResult(Record):
    """The result of one tool call: `text` is the server's answer, bounded; `ok` is false on an error.

    `refused` are network addresses requested meanwhile that the guard blocked; `downloads` are the names of files that
    the page began to download, which the browser refuses. `found_again`: the page had rebuilt the element, and the
    action went to its replacement (`judge.browser.lost_refs`). `hit` are the elements that were at the action's
    coordinates just before it.
    """

    ok: bool
    text: str
    refused: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    found_again: bool = False
    hit: Hits | None = None


class Hop(Record):
    """One request for a page in a main frame, whether or not the page ever arrived."""

    url: str
    is_redirect: bool = False


class Traffic(Record):
    """The requests of an attempt so far, as entries of HAR 1.2 with nothing redacted.

    `dropped` is the number of requests beyond the limit; `is_pending`: a response is still being read. `console` are
    the messages of the pages' consoles (`judge.trajectory.console`).
    """

    entries: tuple[dict[str, Any], ...] = ()
    dropped: int = 0
    is_pending: bool = False
    console: tuple[dict[str, Any], ...] = ()


class Browser(Protocol):
    """One open browser with one session. All methods raise `BrowserFault` if the browser or its server has died,
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
        """Open the task's website. `settle` is how to wait for pages.

        Raises `SiteFault` if the site cannot be reached. A page with an HTTP error status counts as reached.
        """
        ...

    async def open_tabs(self, urls: Sequence[str]) -> None:
        """Open more pages in tabs behind the first one. Raises `SiteFault` as `open` does."""
        ...

    async def observe(self) -> Page:
        """The current page once it has settled. Follows a new tab; under an open dialog, has no snapshot or screenshot.

        Raises `ClockStalled` for a page that cannot be observed in page time.
        """
        ...

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        """The values of expressions in the last observed page, see `judge.browser.probes`."""
        ...

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """Execute one action that `judge.browser.tools` has validated and normalised."""
        ...

    def take_hops(self) -> tuple[Hop, ...]:
        """All navigations since the last call, including every redirect. Works after the browser has died."""
        ...

    def begin_step(self, number: int) -> None:
        """The step's action is about to be executed; later requests are assigned to it. Steps are numbered from 1."""
        ...

    def traffic(self) -> Traffic | None:
        """The requests so far; `None` if the browser has died, because some may be missing."""
        ...


BrowserFactory = Callable[[], AbstractAsyncContextManager[Browser]]
"""Opens browsers: `async with factory() as browser`. Closing leaves no process and no file behind."""
