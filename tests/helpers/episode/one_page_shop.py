"""An assessment with a scripted browser: a shop of one page."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from helpers.browser.one_tab import OneTab
from judge.browser.session import Hop, TakenDownload, ToolResult, Traffic
from judge.browser.settle import SettleMode
from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.episode.attempts import AttemptSetup
from judge.judges.base import Judge
from judge.judges.factory import open_judge
from judge.network.policy import NetworkPolicy
from judge.records.events import Event
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.results.metering import LEDGER
from judge.results.submission import TaskSummary
from judge.store.layout import RunStore
from shared.models import Page, ToolSpec
from shared.protocol import Participant
from shared.settings import Settings

CLICK = ToolSpec(name="browser_click", description="Click", parameters={"properties": {"target": {"type": "string"}}})
FINISH = ToolSpec(name="finish", description="", parameters={"properties": {"answer": {"type": "string"}}})
SNAPSHOT = '- button "Go" [ref=e1] [box=0,0,10,10]'


class OnePageShop(OneTab):
    """A browser with one page; only its picture changes, from look to look."""

    def __init__(self) -> None:
        self.tools: tuple[ToolSpec, ...] = (CLICK, FINISH)
        self.versions = {"browser": "scripted"}
        self._looks = 0

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        """Nothing to load."""

    async def observe(self) -> Page:
        self._looks += 1
        picture = b"\xff\xd8\xff" * 300 + bytes([self._looks % 256])
        return Page(url="https://example.org/", title="OnePageShop", snapshot=SNAPSHOT, screenshot=picture)

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        return tuple(ProbeValue() for _ in expressions)

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        return ToolResult(ok=True, text="clicked")

    def begin_step(self, number: int) -> None:
        pass

    def traffic(self) -> Traffic | None:
        return Traffic()

    def take_downloads(self, *, with_open: bool) -> tuple[TakenDownload, ...]:
        return ()

    def take_hops(self) -> tuple[Hop, ...]:
        return ()


async def assess_in_shop(
    folder: Path,
    participant: Participant,
    number: int,
    *,
    max_steps: int,
    judge: Judge | None = None,
    events: list[Event] | None = None,
    shop: type[OnePageShop] = OnePageShop,
    website: str = "https://example.org/",
    checks: Sequence[Mapping[str, Any]] = (),
    policies: Sequence[Mapping[str, Any]] = (),
    user: Mapping[str, Any] = MappingProxyType({}),
    **config: Any,
) -> tuple[TaskSummary, ...]:
    """Run `number` tasks, one after the other, in the run `r` under `folder`; `events` takes what is emitted."""
    store = RunStore(folder, "r")
    store.create()
    settings = RunConfig(judge_model="offline", max_steps=max_steps, **{"settle": "real-time"} | config)

    @asynccontextmanager
    async def browser(_: NetworkPolicy) -> AsyncIterator[OnePageShop]:
        yield shop()

    @asynccontextmanager
    async def connect() -> AsyncIterator[Participant]:
        yield participant

    judge = judge or open_judge(settings, Settings(), cache_dir=None)
    named = [f"t{each}" for each in range(number)]
    declared = {"website": website, "task": "Go.", "checks": checks, "policies": policies, **user}
    tasks = tuple(Task.model_validate({"task_id": name, **declared}) for name in named)

    def emit(event: Event) -> None:
        if events is not None:
            events.append(event)

    try:
        return await Assessment(
            tasks, AttemptSetup(settings, browser, judge, ledger=store.folder / LEDGER), connect, store, emit
        ).run()
    finally:
        await judge.aclose()
