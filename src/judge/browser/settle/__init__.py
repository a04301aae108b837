"""Waits until a page shows the effect of the last action, so that no page is observed before it is ready.

`settle.cjs` does the waiting inside the MCP server's process; `recorder.js` and `page.js` run in the page. Two modes:

- *real-time*: requests in flight are done, then the page is quiet for 500 ms;
- *page-time*: the page's clock (Chromium's virtual time) is advanced in small steps until the page is quiet for 1 s of
page time, or nothing is pending in it. So timers that an action started fire without a real wait. Between observations
the clock runs at the speed of the wall clock.

A page can detect page time: its clock is ahead of the wall clock by the skipped time, what calls back is wrapped, and
events are stamped with the page's clock. Pages that depend on real time need the real-time mode. After an act that
disqualifies what it causes, `page.js` wraps these and other functions in both modes.
"""

import asyncio
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from judge.browser.settle.vanished import RawVanished, read_vanished
from judge.browser.uploads import IS_OPEN
from judge.network.policy import refuse_ip
from judge.records.sites import place_of
from shared.errors import SiteFault
from shared.models import Record, SettleTime, Vanished

SettleMode = Literal["page-time", "real-time"]
SETTLER = Path(__file__).with_name("settle.cjs")
MAX_SETTLE_S = 8.0
# CPU time of the page's thread, after which a script that blocks everything else is stopped.
MAX_CPU_S = 10.0
_MAX_DOWNLOADS = 20
_MAX_NAME_CHARS = 200
_CONTEXT = "page.context()[Symbol.for('wabe.settle')]"


class ClockStalled(SiteFault):
    """A script was stopped in page time, where a loop that waits for the clock never ends."""

    def __init__(self) -> None:
        super().__init__(
            "a script of the page did not end: in page time, a loop that waits for the clock never does",
            remedy='set settle = "real-time", or declare how its site is reset',
        )


class DocumentState(Record):
    """What kind of document the page is, as reported by the browser."""

    type: str
    has_body: bool
    is_loading: bool


class Report(Record):
    """How long settling took, what vanished meanwhile, and the names of files that pages began to download.

    `links` are addresses of other origins in the page, each after the origin of the document that has it.
    `stopped`: a script was stopped after too much CPU time; `silent`: the page did not answer; `lost_document`: it
    answers, but has no document and does not load one; `restless`: it kept navigating to other pages; `lost`:
    how a tab was lost; `closed_tabs`: how many tabs were closed because there were too many; `has_chooser`: a file
    chooser is open. Empty if settling did
    not finish, for example under an open dialog.
    """

    settled: SettleTime = SettleTime()
    vanished: tuple[Vanished, ...] = ()
    downloads: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    document: DocumentState | None = None
    stopped: bool = False
    silent: bool = False
    lost_document: bool = False
    restless: bool = False
    lost: Literal["crashed", "flooded"] | None = None
    closed_tabs: int = 0
    has_chooser: bool = False


class _RawReport(Record):
    real_ms: float = Field(ge=0)
    page_ms: float = Field(ge=0)
    waited_for: tuple[str, ...]
    vanished: tuple[RawVanished, ...]
    downloads: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    document: DocumentState | None
    stopped: bool
    silent: bool
    lost_document: bool
    restless: bool
    lost: Literal["crashed", "flooded"] | None
    closed_tabs: int = Field(ge=0)
    has_chooser: bool


async def settle_mode(setting: Literal["auto", "page-time", "real-time"], website: str) -> SettleMode:
    """The mode for a website; `auto` is page time on this machine and private networks, where benchmarks are hosted."""
    return await asyncio.to_thread(_mode_for, website) if setting == "auto" else setting


def _mode_for(website: str) -> SettleMode:
    place = place_of(website)
    if place is None:
        return "real-time"
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return "real-time"
    # All of them: a name that also has a public address is a public website.
    return "page-time" if addresses and all(refuse_ip(address) for address in addresses) else "real-time"


def begin_code(
    mode: SettleMode,
    clock_ms: int | None = None,
    attack: Mapping[str, Any] | None = None,
    *,
    has_own_clipboard: bool = False,
    slow: Mapping[str, Any] | None = None,
) -> str:
    """The code that prepares a new context, before its first navigation.

    In page time, the pages' clock begins at `clock_ms` (since 1970), or else at this machine's. `attack` is what goes
    into the pages (`judge.browser.attacks.placed`). A clipboard of the browser's own is emptied. `slow` is set
    if the guard delays requests: the address (`clock`) and headers (`own`) with which the page's time is reported.
    """
    arguments = (mode == "page-time", MAX_CPU_S, clock_ms, attack, has_own_clipboard, slow)
    return f"async page => {_CONTEXT}.begin(page, {', '.join(map(json.dumps, arguments))})"


def open_code(url: str, limit_s: float) -> str:
    """The code that opens an address in the current page and waits at most `limit_s` for the document."""
    return f"async page => {_CONTEXT}.open(page, {json.dumps(url)}, {round(limit_s * 1000)})"


def settle_code(limit_s: float, script_limit_s: float, *, links: bool = False) -> str:
    """The code that settles the current page within `limit_s`, or within `script_limit_s` if a script computes.

    With `links` it reads the page's links as well.
    """
    limits = f"{round(min(limit_s, MAX_SETTLE_S) * 1000)}, {round(script_limit_s * 1000)}"
    code = f"await {_CONTEXT}.settle(page, {limits}, {json.dumps(links)})"
    return f"async page => ({{ ...{code}, has_chooser: {IS_OPEN} }})"


def click_code(params: Mapping[str, Any]) -> str:
    """The code that clicks a point several times, or for long, with the parameters of `browser_mouse_click_xy`."""
    return f"async page => {_CONTEXT}.clickAt(page, {json.dumps(params)})"


def drag_code(params: Mapping[str, Any]) -> str:
    """The code that drags between two points, with the parameters of `browser_mouse_drag_xy`."""
    return f"async page => {_CONTEXT}.dragAt(page, {json.dumps(params)})"


def hold_code(hold_ms: int) -> str:
    """The code that makes the next click or drag of an element hold the mouse down for so long."""
    return f"async page => {{ {_CONTEXT}.hold = {hold_ms}; }}"


def beside_code(quality: int, limit_s: float, *, again: bool) -> str:
    """The code that reads what belongs to the snapshot just taken: `Beside`, with a JPEG taken within `limit_s`.

    `again`: it was called for the same page before, and some document was missing.
    """
    return f"async page => {_CONTEXT}.beside(page, {quality}, {round(limit_s * 1000)}, {json.dumps(again)})"


# The code that replaces the current tab by an empty one, and returns its index.
REPLACE_CODE = f"async page => {_CONTEXT}.replace(page)"
# The code that stops a navigation, and closes other tabs that do not answer; returns whether the page was navigating.
UNBLOCK_CODE = f"async page => {_CONTEXT}.unblock(page)"
# The code that returns the address, the title and the picture of a page of which there is no snapshot.
GLANCE_CODE = f"async page => {_CONTEXT}.glance(page)"
# The code that, before an action, makes a page's clock advance frame by frame again. `AWAKE_S` after the page settled,
# the clock switches to larger steps.
WAKE_CODE = f"async page => {_CONTEXT}.wake(page)"
AWAKE_S = 1.0


class Glance(Record):
    """What can be read of a page without a snapshot; `image` is a JPEG as base64."""

    url: str
    title: str
    image: str | None


def read_glance(text: str) -> Glance | None:
    """Read what `GLANCE_CODE` returned; `None` if it failed."""
    try:
        return Glance.model_validate_json(text)
    except ValidationError:
        return None


class Beside(Record):
    """What belongs to a snapshot: the documents it shows (`judge.browser.provenance.DocumentReport`), a JPEG as base64
    if it was taken in time, and how many origins the page has had since it settled.
    """

    documents: tuple[Any, ...]
    image: str | None
    origins: int


def read_beside(text: str) -> Beside | None:
    """Read what `beside_code` returned; `None` if it failed."""
    try:
        return Beside.model_validate_json(text)
    except ValidationError:
        return None


def read_report(text: str) -> Report:
    """Read what `settle_code` returned."""
    try:
        raw = _RawReport.model_validate_json(text)
    except ValidationError:
        return Report()
    return Report(
        settled=SettleTime(real_s=raw.real_ms / 1000, page_s=raw.page_ms / 1000, waited_for=raw.waited_for),
        vanished=read_vanished(raw.vanished),
        downloads=tuple(name[:_MAX_NAME_CHARS] for name in raw.downloads[:_MAX_DOWNLOADS]),
        links=raw.links,
        **raw.model_dump(
            include={"document", "stopped", "silent", "lost_document", "restless", "lost", "closed_tabs", "has_chooser"}
        ),
    )
