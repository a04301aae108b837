"""The browser interface that an episode uses, independent of what drives the browser.

Implemented by `judge.browser.playwright`. Fakes implement it in tests of the episode loop only.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from judge.browser.contents import Contents
from judge.browser.points import Hits
from judge.browser.settle import SettleMode
from judge.records.causes import Cause
from judge.records.files import DownloadState
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.trajectory.fetched import FetchResponse
from judge.trajectory.network import LeftOut, MessagesLeftOut, RequestSource, Unread
from shared.models import Notice, Page, Record, ToolSpec


class ToolResult(Record):
    """The result of one tool call: `text` is the server's answer, bounded; `ok` is false on an error.

    `refused` are network addresses requested meanwhile that the guard blocked; `downloads` are the names of files that
    the page began to download, which the browser refuses. `found_again`: the page had rebuilt the element, and the
    action went to its replacement (`judge.browser.lost_refs`). `hit` are the elements that were at the action's
    coordinates just before it; `contents`, by reference, what the elements contained after it (`""`: one without).
    `has_begun`: it failed after it had reached an element of the page.
    """

    ok: bool
    text: str
    refused: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    found_again: bool = False
    hit: Hits | None = None
    contents: dict[str, Contents] = Field(default_factory=dict)
    has_begun: bool = False


class TakenDownload(Record):
    """A download of a page, as the browser reported it. `path` is where its file is now, if it was taken.

    `state`: `cut` at its bound, `unfinished` when it was looked for, `failed` in the browser; `left_out` stands for
    all further ones. `sender` and `cause` are as for requests (`judge.trajectory.network.Entry`). `type` is the
    media type of the answer if it is known, otherwise what the name suggests.
    """

    name: str = ""
    url: str = ""
    type: str = ""
    state: DownloadState
    size: int | None = None
    sha256: str | None = None
    sender: str | None = None
    step: int = 0
    cause: Cause | None = None
    chain: tuple[str, ...] = ()
    path: Path | None = None


HopEvent = Literal["request", "document", "ended", "gone", "closed", "renamed", "worker", "goto", "overflow", "lost"]


class Hop(Record):
    """What happened to the documents in the browser, as reported by it (`navigations.cjs`).

    `request`: one was requested, `is_redirect` by the answer to the frame's previous request, whether or not it ever
    arrived. `document`: it is shown. `ended`: it will not be. `gone`: the frame was removed; `closed`: the tab was.
    `renamed`: the page changed its own address. `worker`: a service worker runs. `goto`: the server was asked to open
    the address. `overflow`: nothing more is recorded. `lost`: the browser's process is gone; `is_killed` if another
    process has killed it, and it was not the kernel because memory ran out.

    Addresses are the browser's, without a fragment. `request` is the number of the request. A negative `frame`
    stands for a new tab that the browser has not announced yet, so its `tab` is unknown. `cause` is `goto` or `back`
    if the server itself navigated; otherwise a page did, by any means. `referrer` is the origin that the browser
    names as the sender.
    """

    url: str = ""
    event: HopEvent = "request"
    is_redirect: bool = False
    request: int = 0
    frame: int = 0
    tab: int | None = None
    in_frame: bool = False
    cause: Literal["goto", "back", "page"] = "page"
    referrer: str = ""
    is_killed: bool = False


class Traffic(Record):
    """The requests of an attempt so far, as entries of HAR 1.2 with nothing redacted.

    `left_out` are requests beyond the limits, `messages_left_out` messages of web sockets; `is_pending`: a body is
    still being read. `console` are the messages of the pages' consoles (`judge.trajectory.console`). `seen_by` and
    `unread` are as in `judge.trajectory.network.Log`.
    """

    entries: tuple[dict[str, Any], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    messages_left_out: MessagesLeftOut = MessagesLeftOut()
    is_pending: bool = False
    seen_by: RequestSource | None = None
    unread: tuple[Unread, ...] = ()
    console: tuple[dict[str, Any], ...] = ()


class Browser(Protocol):
    """One open browser with one session. All methods raise `BrowserFault` if the browser or its server has died, or
    came back without its pages (a silent relaunch). What a page does to its own tab is not a fault.
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools a participant may use, including `finish` and `browser_scroll`."""
        ...

    @property
    def versions(self) -> dict[str, str]:
        """`{"mcp_server": …, "browser": …, "browser_mode": …, "sandbox": "on" | "off: reason"}`, for provenance.

        With `"guarded": "false"` if nothing limits where the browser connects.
        """
        ...

    async def log_in(self, task: Task) -> None:
        """Give the browser the task's storage state and credentials, before the first page is opened."""
        ...

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        """Open the task's website. `settle` is how to wait for pages; in page time, their clock starts at `clock_ms`.

        Raises `SiteFault` if the site cannot be reached, or its page does not answer. A page with an HTTP error status
        counts as reached.
        """
        ...

    async def open_tabs(self, urls: Sequence[str]) -> None:
        """Open more pages in tabs behind the first one. Raises `SiteFault` as `open` does."""
        ...

    async def observe(self) -> Page:
        """The current page once it has settled. Follows a new tab; under an open dialog, has no snapshot or screenshot.

        A page that cannot be observed is an observation as well (`Page.notice`); its tab may have been replaced by an
        empty one.
        """
        ...

    async def replace_tab(self, why: Notice) -> Page:
        """Put an empty tab in place of the current one, and observe that."""
        ...

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        """The values of expressions in the last observed page, see `judge.browser.probes`."""
        ...

    async def fetch(self, url: str, key: str | None) -> FetchResponse:
        """What the address answers to the browser's request client, see `judge.browser.fetches`; no page is involved.

        With `key`, the request has the token that the local storage of the address' origin has under that name.
        """
        ...

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """Execute one action that `judge.browser.tools` has validated and normalised."""
        ...

    def take_hops(self) -> tuple[Hop, ...]:
        """What happened to documents since the last call, in order. Works even after the browser has died."""
        ...

    def take_downloads(self, *, with_open: bool) -> tuple[TakenDownload, ...]:
        """The downloads that have ended since the last call; `with_open`, also those that have not ended yet."""
        ...

    def begin_step(self, number: int) -> None:
        """The step's action is about to be executed; later requests are assigned to it. Steps are numbered from 1."""
        ...

    def traffic(self) -> Traffic | None:
        """The requests so far; `None` if the browser has died, because some may be missing."""
        ...


BrowserFactory = Callable[..., AbstractAsyncContextManager[Browser]]
"""Opens browsers: `async with factory(policy) as browser`; with a second argument, an interceptor answers its requests
(`judge.browser.pool.BrowserPool.browser`). Closing leaves no process and no file behind.
"""
