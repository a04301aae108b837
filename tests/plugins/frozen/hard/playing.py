"""Attempts in the real browser without a judge: what each step showed, on a site or on its archive."""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import SettleMode
from judge.records.ledger import LedgerEntry
from judge.records.tasks import Task
from judge.records.tools import DEFAULT_SCROLL_PX, SCROLL
from participants.base import Observation, Reply
from participants.replay import Player, Script
from shared import models
from shared.models import Action, Page
from shared.replies import ENDING_TOOLS
from shared.snapshot import as_shown

Decide = Callable[[Observation], Awaitable[Reply]]
# What differs between two visits to the same page, as the benchmark states it.
MASKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("references, cursors and the focus", re.compile(r" \[(?:ref=[^\]]*|cursor=pointer|active)\]")),
    ("UUIDs", re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")),
    ("hexadecimal digits, 8 or more with a digit", re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b")),
    ("dates", re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d(?:(?:[T ]|%20)\d\d(?:(?::|%3A)\d\d)+(?:\.\d+)?Z?)?\b")),
    ("times of day", re.compile(r"(?<![\d.:])\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?(?![\d:])(?:\s?[AaPp]\.?[Mm]\b\.?)?")),
    ("ages and durations", re.compile(r"\b(?:\d[\d.]*|an?)\s?(?:ms|seconds?|minutes?|hours?|s)\b(?: ago)?")),
    ("numbers of 10 or more digits", re.compile(r"\d{10,}")),
    # The editor shows a random one.
    ("tips of Node-RED", re.compile(r'\n( +)- generic:[^\n]*(?:\n\1  - [^\n]*)*(?=\n\1- generic:\n\1  - link "\W?":)')),
)


@dataclass(frozen=True)
class Look:
    """What one step led to. `snapshot` is masked. `entries` are the requests since the look before."""

    action: str
    url: str
    snapshot: str
    seconds: float
    entries: tuple[LedgerEntry, ...] = ()

    @property
    def shows(self) -> tuple[str, str]:
        return self.url, self.snapshot

    @property
    def is_uncertain(self) -> bool:
        return any(entry.grade == "uncertain" for entry in self.entries)

    @property
    def is_missed(self) -> bool:
        return any(entry.miss == "decisive" for entry in self.entries)

    @property
    def is_flagged(self) -> bool:
        """Whether the ledger says that the step may differ from the live site, because of anything but a prefetch."""
        return self.is_uncertain or any(entry.miss in ("decisive", "cosmetic") for entry in self.entries)


def masked(text: str) -> str:
    """A snapshot or an address without what differs between two visits to the same page."""
    text = as_shown(text)
    for name, pattern in MASKS:
        text = pattern.sub("" if name.startswith("references") else "…", text)
    return text


def scripted(script: Script) -> Decide:
    """Plays a script."""
    player = Player(script)

    async def decide(observation: Observation) -> Reply:
        return player.reply(observation.page.snapshot, observation.feedback)

    return decide


async def play(
    browser: PlaywrightBrowser,
    task: Task,
    decide: Decide,
    *,
    limit: int,
    take: Callable[[], Sequence[LedgerEntry]] = tuple,
    clock_ms: int | None = None,
    settle: SettleMode = "page-time",
) -> list[Look]:
    """Play a task in a new browser: at most `limit` actions, or until `until` says that the looks are enough."""
    await browser.log_in(task)
    began = time.perf_counter()
    await browser.open(task.website, settle, clock_ms)
    looks: list[Look] = []

    async def look(action: str) -> Page:
        page = await browser.observe()
        seconds = time.perf_counter() - began
        looks.append(Look(action, masked(page.url), masked(page.snapshot), seconds, tuple(take())))
        return page

    page = await look("open")
    feedback: str | None = None
    for step in range(1, limit + 1):
        reply = await decide(_observation(browser, task, page, step - 1, feedback))
        if not isinstance(reply, Action) or reply.tool in ENDING_TOOLS:
            break
        browser.begin_step(step)
        params = {"amount": DEFAULT_SCROLL_PX, **reply.params} if reply.tool == SCROLL else reply.params
        began = time.perf_counter()
        done = await browser.act(reply.tool, params)
        feedback = None if done.ok else "The action failed."
        page = await look(_as_text(reply))
    return looks


def _observation(browser: PlaywrightBrowser, task: Task, page: Page, step: int, feedback: str | None) -> Observation:
    reported = {"instruction": task.task, "website": task.website, "feedback": feedback}
    message = models.ObservationMessage(page=page, tools=browser.tools, **reported)
    return Observation(page=page, tools=browser.tools, context_id="walk", step=step, message=message, **reported)


def _as_text(action: Action) -> str:
    words = {key: value for key, value in action.params.items() if key not in ("target", "startTarget", "endTarget")}
    return " ".join([action.tool.removeprefix("browser_"), *(str(value)[:60] for value in words.values())])


def stripped(look: Look) -> Look:
    """The look without what depends on how it was obtained."""
    return replace(look, seconds=0.0, entries=())
