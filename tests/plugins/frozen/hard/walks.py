"""Walks through the hard cases in the real browser, by the judge's own browser layer."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from helpers.network.served_sites import Addresses
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import SettleMode
from judge.network.policy import NetworkPolicy
from judge.records.access import HttpCredentials
from judge.records.ledger import LedgerEntry
from judge.records.tasks import Task
from plugins.frozen.hard.case import Case, Step, Walk
from plugins.frozen.hard.playing import Look, masked
from plugins.frozen.hard.site import CREDENTIALS
from shared.models import Page
from shared.snapshot import parse_snapshot

# A step that takes longer than this has not worked.
_PATIENCE_S = 6.0
_AGAIN_S = 0.2
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class StepFinding:
    """What one step of a case showed; `why` says what is wrong, if anything is."""

    case: str
    look: Look
    why: str = ""


def policy_for(places: Addresses) -> NetworkPolicy:
    return NetworkPolicy.for_websites([places.own, places.other, places.closed])


def task_for(places: Addresses, path: str = "/") -> Task:
    """A task on the site, with the credentials of the one case that needs some."""
    user, password = CREDENTIALS
    credentials = HttpCredentials(username=user, password=password)
    own = {"website": places.own + path, "allowed_sites": (places.other, places.closed)}
    task_id = path.strip("/") or "walk"
    return Task(task_id=task_id, task="Walk through a hard case.", http_credentials=(credentials,), **own)


class Walker:
    """Takes steps in one new browser."""

    def __init__(
        self,
        browser: PlaywrightBrowser,
        places: Addresses,
        take: Callable[[], Sequence[LedgerEntry]] = tuple,
        clock_ms: int | None = None,
        settle: SettleMode = "page-time",
    ) -> None:
        self._browser, self._places, self._take_entries = browser, places, take
        self._clock_ms, self._settle = clock_ms, settle
        self._page: Page | None = None
        self.findings: list[StepFinding] = []

    async def walk(self, walks: Iterable[tuple[Case, Walk]]) -> list[StepFinding]:
        """Open each case's page and take its steps. Returns what was seen after each."""
        for case, steps in walks:
            await self._open(case)
            for step in steps:
                await self._take(case, step)
        return self.findings

    async def _open(self, case: Case) -> None:
        address = self._places.own + case.path
        if self._page is not None:
            await self._take(case, Step("browser_navigate", case.opens, params={"url": address}))
            return
        await self._browser.log_in(task_for(self._places))
        began = time.perf_counter()
        await self._browser.open(address, self._settle, self._clock_ms)
        await self._look(case, "open", case.opens, began)

    async def _take(self, case: Case, step: Step) -> None:
        assert self._page is not None
        named = " ".join(filter(None, (step.tool.removeprefix("browser_"), step.role, step.name)))
        params = dict(step.params)
        if step.role is not None:
            node_found = parse_snapshot(self._page.snapshot).find(step.role)
            target = next((node.ref for node in node_found if node.name == step.name and node.ref), None)
            if target is None:
                self._add(case, named, 0.0, f"no {step.role} {step.name!r}")
                return
            params["target"] = target
        self._browser.begin_step(len(self.findings))
        began = time.perf_counter()
        done = await self._browser.act(step.tool, params)
        await self._look(case, named, step.shows, began, "" if done.ok else done.text[:200])

    async def _look(self, case: Case, name: str, shows: str, began: float, failure: str = "") -> None:
        until = time.monotonic() + _PATIENCE_S
        while True:
            self._page = page = await self._browser.observe()
            seconds = time.perf_counter() - began
            if (is_shown := is_on_page(page, shows)) or time.monotonic() > until:
                break
            await asyncio.sleep(_AGAIN_S)
        self._add(case, name, seconds, "" if is_shown else f"does not show {shows!r} {failure}")

    def _add(self, case: Case, name: str, seconds: float, why: str) -> None:
        assert self._page is not None
        url, snapshot = masked(self._page.url), masked(self._page.snapshot)
        self.findings.append(
            StepFinding(case.name, Look(name, url, snapshot, seconds, tuple(self._take_entries())), why)
        )


def is_on_page(page: Page, expected: str) -> bool:
    """Whether a page shows a text: a regular expression, or the text as it is."""
    text = _SPACES.sub(" ", page.snapshot.replace('\\"', '"'))
    return expected in text or re.search(expected, text) is not None


def wrong(findings: Sequence[StepFinding]) -> list[str]:
    """The steps that did not lead to what they should, one line each."""
    return [f"{one.case}, {one.look.action}: {one.why}\n{one.look.snapshot[-1500:]}" for one in findings if one.why]
