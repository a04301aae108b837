"""One episode without a browser and without a network: both sides are scripted, and time passes at once."""

import asyncio
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from helpers.browser.hops import typed, went
from helpers.browser.one_tab import OneTab
from judge.browser.session import Hop, TakenDownload, ToolResult, Traffic
from judge.browser.settle import SettleMode
from judge.config import RunConfig
from judge.episode.episode import Episode, EpisodeEnd
from judge.episode.part import AttemptStage
from judge.network.attempt import network_of
from judge.network.policy import NetworkPolicy
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.store.layout import TaskStore
from judge.trajectory.redaction import Redaction
from shared.models import Action, Page, Tab, ToolSpec
from shared.protocol import render_reply

HOME = "https://shop.example/"
FINISH = Action(tool="finish", params={"answer": "done"})
_TEXT = {"type": "string"}
TOOLS = (
    ToolSpec(name="browser_click", description="", parameters={"properties": {}}),
    ToolSpec(name="browser_navigate", description="", parameters={"properties": {"url": _TEXT}}),
    ToolSpec(name="browser_navigate_back", description="", parameters={"properties": {}}),
    ToolSpec(name="browser_type", description="", parameters={"properties": {"text": _TEXT}}),
    ToolSpec(name="browser_press_key", description="", parameters={"properties": {"key": _TEXT}}),
    ToolSpec(name="browser_wait_for", description="", parameters={"properties": {"time": {"type": "number"}}}),
    ToolSpec(name="finish", description="", parameters={"properties": {"answer": _TEXT}}),
)


Acts = Action | str | Callable[[], Awaitable[Action]] | None


class _SkippingSelector(selectors.DefaultSelector):
    """Instead of waiting, has its loop's clock jump to the next timer."""

    loop: "SkippingLoop"

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(0 if timeout else timeout)
        if not events and timeout:
            self.loop.now_s += timeout
        return events


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop in which nobody waits: what sleeps for an hour is back at once, and an hour has passed.

    Nothing else takes time, however slow the machine is.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        selector = _SkippingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now_s


class ScriptedBrowser(OneTab):
    """Shows one page. `does` is called with each action, and may move it by `goes`, take its time or break.

    `values` are what probes read in the page.
    """

    tools: tuple[ToolSpec, ...] = TOOLS
    versions: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, does: Callable[["ScriptedBrowser", str, dict[str, Any]], Awaitable[None]] | None = None) -> None:
        self.does = does
        self.hops: list[Hop] = []
        self.url = HOME
        self.values: dict[str, int] = {}

    def goes(self, *urls: str) -> None:
        """Request a page and the redirects from it, and show the last one."""
        self.hops += went(*urls)
        self.url = urls[-1]

    def goes_to(self, *urls: str) -> None:
        """Open an address that the participant named, and the redirects from it."""
        self.hops += typed(*urls)
        self.url = urls[-1]

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        self.goes_to(url)

    async def observe(self) -> Page:
        tab = Tab(index=0, title="", url=self.url, current=True)
        return Page(url=self.url, title="", snapshot="- text", screenshot=b"\xff\xd8", tabs=(tab,))

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        return tuple(ProbeValue(value=self.values.get(expression)) for expression in expressions)

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        if self.does:
            await self.does(self, tool, params)
        return ToolResult(ok=True, text="")

    def begin_step(self, number: int) -> None:
        pass

    def traffic(self) -> Traffic | None:
        return Traffic()

    def take_downloads(self, *, with_open: bool) -> tuple[TakenDownload, ...]:
        return ()

    def take_hops(self) -> tuple[Hop, ...]:
        hops, self.hops = tuple(self.hops), []
        return hops


class ScriptedParticipant:
    """Sends its actions one by one, then `finish`. A function is called for one; a text is the reply itself.

    `None` is a reply that never comes.

    `messages` are the judge's messages.
    """

    def __init__(self, *actions: Acts) -> None:
        self._actions = iter(actions)
        self.messages: list[str] = []

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        self.messages.append(text)
        action = next(self._actions, FINISH)
        if action is None:
            await asyncio.Event().wait()
        if isinstance(action, str):
            return action
        return render_reply(await action() if callable(action) else action or FINISH)


def play_episode(
    folder: Path,
    browser: ScriptedBrowser,
    *actions: Acts,
    closing: Callable[[], Awaitable[None]] | None = None,
    messages: list[str] | None = None,
    loop: Callable[[], asyncio.AbstractEventLoop] = SkippingLoop,
    checks: Sequence[dict[str, Any]] = (),
    task_id: str = "t",
    task: Mapping[str, Any] | None = None,
    **config: Any,
) -> EpisodeEnd:
    """Play the actions; `closing` is what it takes to close the browser. The judge's messages are added to `messages`.

    `task` are further keys of the task.
    """

    @asynccontextmanager
    async def opened(_: NetworkPolicy) -> AsyncIterator[ScriptedBrowser]:
        try:
            yield browser
        finally:
            if closing:
                await closing()

    known = {"task_id": task_id, "website": HOME, "task": "Reach the goal.", "checks": checks}
    task_played = Task.model_validate(known | dict(task or {}))
    # A thread would take no time on a loop that skips it, and run into every limit.
    settings = RunConfig(**{"judge_model": "offline", "settle": "real-time", "record_network": False} | config)
    store = TaskStore(folder)
    store.begin()
    participant = ScriptedParticipant(*actions)
    stage = AttemptStage(
        task_played, settings, store, Redaction(settings.secrets, salt=b"test"), network_of(task_played, settings)
    )
    episode = Episode(stage, opened, lambda: nullcontext(participant), observed=lambda _: None, stepped=lambda _: None)
    with asyncio.Runner(loop_factory=loop) as runner:
        end = runner.run(episode.run())
    if messages is not None:
        messages += participant.messages
    return end
