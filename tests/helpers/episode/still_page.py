"""Whole assessments without a browser process: one page that never changes and keeps what was done to it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from helpers.browser.one_tab import OneTab
from helpers.browser.server_tools import SERVER_TOOLS
from judge.browser.session import Hop, TakenDownload, ToolResult, Traffic
from judge.browser.settle import SettleMode
from judge.browser.tools import offered_tools
from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.episode.attempts import AttemptSetup
from judge.judges.factory import open_judge
from judge.network.policy import NetworkPolicy
from judge.records.events import Event, TaskRetried
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.results.submission import TaskSummary
from judge.store.layout import RunStore
from shared.models import Page
from shared.protocol import Participant
from shared.settings import Settings

SITE = "https://shop.example.org/"
SNAPSHOT = '- link "Lamps" [ref=e12]\n- button "Buy" [ref=e2]\n- textbox "Name" [ref=f1e3]'


class StillPage(OneTab):
    """A browser; `done` is what it was asked to do."""

    def __init__(self) -> None:
        self.tools = offered_tools(SERVER_TOOLS)
        self.versions = {"browser": "scripted"}
        self.done: list[tuple[str, dict[str, Any]]] = []

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        """Nothing to load."""

    async def observe(self) -> Page:
        return Page(url=SITE, title="Shop", snapshot=SNAPSHOT, screenshot=b"\xff\xd8" * 500)

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        return tuple(ProbeValue() for _ in expressions)

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        self.done.append((tool, params))
        return ToolResult(ok=True, text="done")

    def begin_step(self, number: int) -> None:
        pass

    def traffic(self) -> Traffic | None:
        return Traffic()

    def take_downloads(self, *, with_open: bool) -> tuple[TakenDownload, ...]:
        return ()

    def take_hops(self) -> tuple[Hop, ...]:
        return ()


class PlayedTask:
    """What came of the task, and what happened on the way."""

    def __init__(self, summary: TaskSummary, page: StillPage, events: list[Event], folder: Path) -> None:
        self.outcome = summary.outcome
        self.entry = summary.entry
        self.error = str(summary.entry["error"])
        self.page = page
        self.retries = sum(isinstance(event, TaskRetried) for event in events)
        self.folder = folder

    def summary(self) -> str:
        return f"{self.outcome} ({self.entry['stop_reason']}), {self.error}, {self.retries} retries"


async def play(
    folder: Path, connect: Callable[[], AbstractAsyncContextManager[Participant]], **config: Any
) -> PlayedTask:
    """One task from start to verdict; checks only, so an answer without evidence is unscored."""
    store = RunStore(folder, "r")
    store.create()
    settings = RunConfig.model_validate({"judge_model": "offline", "max_steps": 4, **config})
    page, events = StillPage(), list[Event]()

    @asynccontextmanager
    async def browser(_: NetworkPolicy) -> AsyncIterator[StillPage]:
        yield page

    judge = open_judge(settings, Settings(), cache_dir=None)
    task = Task(task_id="t", website=SITE, task="Buy a lamp.")
    try:
        assessment = Assessment((task,), AttemptSetup(settings, browser, judge), connect, store, events.append)
        (summary,) = await assessment.run()
    finally:
        await judge.aclose()
    return PlayedTask(summary, page, events, store.task("t").folder)
