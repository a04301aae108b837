"""Waits until a page shows the effect of the last action, so that nobody sees or judges a page that is not ready.

`settle.cjs` does the waiting inside the MCP server's process; `recorder.js` and `page.js` run in the page. Two modes:

- *real-time*: requests in flight are done, then the page is quiet for 500 ms;
- *page-time*: the page's clock (Chromium's virtual time) is moved ahead in small steps until nothing happens for 1 s of
  page time. Timers that an action started are waited for without spending their time. Between observations the clock
  runs at the speed of the wall clock.

A page can notice page time: its clock is ahead of the wall clock by what the observations have skipped, `setTimeout`
is wrapped, and events are stamped by the page's clock. Pages about real time need real time.
"""

import asyncio
import json
import socket
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from judge.sites import place_of, refuse_ip
from shared.errors import SiteFault
from shared.models import Record, Settled
from shared.text import clip

SettleMode = Literal["page-time", "real-time"]
SETTLER = Path(__file__).with_name("settle.cjs")
MAX_SETTLE_S = 8.0
_MAX_VANISHED = 20
_MAX_VANISHED_CHARS = 300
_CONTEXT = "page.context()[Symbol.for('wabe.settle')]"


class ClockStalled(SiteFault):
    """A script did not end. In page time, one that waits in a loop for its clock to move never does."""

    def __init__(self) -> None:
        super().__init__(
            "a script of the page did not end: in page time, a loop that waits for the clock never does",
            remedy='set settle = "real-time", or declare how its site is reset',
        )


class _Report(Record):
    real_ms: float = Field(ge=0)
    page_ms: float = Field(ge=0)
    waited_for: tuple[str, ...]
    vanished: tuple[str, ...]
    hung: bool


async def settle_mode(setting: Literal["auto", "page-time", "real-time"], website: str) -> SettleMode:
    """The mode for a website; `auto` is page time on this machine and private networks, where benchmarks are hosted."""
    return await asyncio.to_thread(_mode_for, website) if setting == "auto" else setting


def _mode_for(website: str) -> SettleMode:
    place = place_of(website)
    if place is None:
        return "real-time"
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return "real-time"
    return "page-time" if found and all(refuse_ip(address) for address in found) else "real-time"


def begin_code(mode: SettleMode) -> str:
    """The code that prepares a new context, before its first navigation."""
    return f"async page => {_CONTEXT}.begin(page, {json.dumps(mode == 'page-time')})"


def settle_code(limit_s: float) -> str:
    """The code that settles the current page within `limit_s` of real time."""
    return f"async page => {_CONTEXT}.settle(page, {round(min(limit_s, MAX_SETTLE_S) * 1000)})"


# The code that has the clock of a page move frame by frame again, before an action. When `AWAKE_S` have passed since
# the page settled, it moves in larger steps.
WAKE_CODE = f"async page => {_CONTEXT}.wake(page)"
AWAKE_S = 1.0


def read_report(text: str) -> tuple[Settled, tuple[str, ...]]:
    """What settling took, and the text that vanished, from the answer of the server's code tool.

    Both are empty when it did not finish, such as under an open dialog.

    Raises `ClockStalled`.
    """
    lines = text.split("\n", 2)
    if len(lines) < 2 or lines[0] != "### Result":
        return Settled(), ()
    try:
        report = _Report.model_validate_json(lines[1])
    except ValidationError:
        return Settled(), ()
    if report.hung:
        raise ClockStalled
    vanished = tuple(clip(text, _MAX_VANISHED_CHARS) for text in report.vanished[:_MAX_VANISHED])
    settled = Settled(real_s=report.real_ms / 1000, page_s=report.page_ms / 1000, waited_for=report.waited_for)
    return settled, vanished
