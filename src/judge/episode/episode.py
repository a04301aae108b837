"""One attempt at one task: observe, ask, act, record; until the participant ends it or a limit does.

Retries sit elsewhere (`judge.episode.assessment`): an executed action is never executed again.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol
from uuid import uuid4

from pydantic import Field

from judge.browser.actions import CheckedAction
from judge.browser.session import Browser, BrowserFactory, ToolResult
from judge.config import RunConfig
from judge.episode.blame import Route, recorded
from judge.episode.clock import Clock, OutOfTime
from judge.episode.replies import understand
from judge.off_site import OFF_SITE
from judge.record_limits import clip_text
from judge.store import TaskStore
from shared.errors import BrowserFault, EnvironmentFault, ParticipantError, WabeError
from shared.models import Navigation, Observation, Outcome, Page, Record, Step, StopReason, Tab, Task, Timings
from shared.protocol import ENDING_TOOLS, FINISH, render_observation
from shared.snapshot import cut_snapshot, parse_snapshot
from shared.snapshot_boxes import without_boxes
from shared.text import without_surrogates

BLOCKED = "blocked_address"
MAX_UNREADABLE = 3
_TELLING_TOOLS = frozenset({"browser_find", "browser_tabs"})
_KEPT_TABS = 8


class Participant(Protocol):
    """The participant's end of the conversation; raises `ParticipantError` when no reply comes."""

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str: ...


class Hooks(Protocol):
    """What the assessment wants to hear of while an episode runs."""

    async def observed(self, step: Step) -> None:
        """A step's observation is on disk; the participant has not been asked yet."""
        ...

    async def stepped(self, step: Step) -> None:
        """A whole step is on disk."""
        ...


class EpisodeEnd(Record):
    """How an episode ended. `blame` and `error` name the cause of anything but a regular end."""

    steps: tuple[Step, ...]
    stop_reason: StopReason
    final_answer: str | None = None
    error: str | None = None
    blame: str | None = None
    started_at: float
    ended_at: float
    versions: dict[str, str] = Field(default_factory=dict)
    participant_s: float = 0.0
    """How much of `task_timeout_s` the participant used."""
    navigations: tuple[Navigation, ...] = ()
    """Where the browser went after the last recorded step; a page that breaks it on the way leaves no step."""
    is_astray: bool = False
    """Whether the participant itself had led the browser outside the task's website, and had not come back whole."""

    @property
    def is_aborted(self) -> bool:
        """Whether the episode counts for nothing: something around the participant failed."""
        return self.stop_reason in ("environment_fault", "cancelled")


class Episode:
    """One attempt. `run` never raises for what goes wrong in it, except cancellation."""

    def __init__(
        self,
        task: Task,
        config: RunConfig,
        browsers: BrowserFactory,
        participant: Participant,
        store: TaskStore,
        hooks: Hooks,
    ) -> None:
        self._task = task
        self._config = config
        self._browsers = browsers
        self._participant = participant
        self._store = store
        self._hooks = hooks
        self._context_id = uuid4().hex
        self._steps: list[Step] = []
        self._feedback: str | None = None
        self._unreadable = 0
        self._answer: str | None = None
        self._versions: dict[str, str] = {}
        self._route = Route(task.website, (*config.allowed_sites, *task.allowed_sites))
        self._navigations: tuple[Navigation, ...] = ()
        self._fault: EnvironmentFault | None = None
        self._content: object = None
        out_of_time = OutOfTime(f"its own time of {config.task_timeout_s:g} s (task_timeout_s) is used up")
        self._clock = Clock(config.task_timeout_s, out_of_time)

    async def run(self) -> EpisodeEnd:
        """Play the episode to its end and say how it ended."""
        started_at, begun = time.time(), time.monotonic()
        stop: StopReason
        error: WabeError | None = None
        try:
            async with asyncio.timeout(self._config.attempt_limit_s) as limit:
                stop = await self._play()
        except TimeoutError:
            if not limit.expired():
                raise
            # A fault that happened first is the cause, even if closing the browser took until the limit.
            message = f"the attempt was not done within {self._config.attempt_limit_s:g} s (attempt_timeout_s)"
            stop, error = "task_timeout", OutOfTime(message)
            if self._fault:
                stop, error = "environment_fault", self._fault
        except OutOfTime as caught:
            stop, error = "task_timeout", caught
        except ParticipantError as caught:
            stop, error = "participant_error", caught
        except EnvironmentFault as caught:
            stop, error = "environment_fault", caught
        except asyncio.CancelledError:
            raise
        # The one broad net of the house: a fault of our own must cost one episode, not the assessment.
        except Exception as caught:  # noqa: BLE001
            stop, error = "environment_fault", WabeError(f"judge fault: {type(caught).__name__}: {str(caught)[:500]}")
        return EpisodeEnd(
            steps=tuple(self._steps),
            stop_reason=stop,
            final_answer=self._answer,
            error=error.message if error else None,
            blame=error.blame if error else None,
            started_at=started_at,
            # By the clock that nobody can set: a machine whose time is corrected meanwhile still gives true durations.
            ended_at=started_at + (time.monotonic() - begun),
            versions=self._versions,
            participant_s=self._clock.used_s,
            navigations=self._navigations,
            is_astray=self._route.is_astray,
        )

    async def _play(self) -> StopReason:
        async with self._browsers() as browser:
            self._versions = browser.versions
            try:
                await browser.open(self._task.website)
                for index in range(self._config.max_steps):
                    if index and self._config.step_delay:
                        await asyncio.sleep(self._config.step_delay)
                    if stop := await self._step(browser, index):
                        if stop == "finished":
                            await self._look_finally(browser, index + 1)
                        return stop
            except EnvironmentFault as fault:
                self._fault = fault
                raise
            finally:
                self._navigations = recorded(self._route.went(browser.take_hops()))
        return "max_steps"

    async def _step(self, browser: Browser, index: int) -> StopReason | None:
        """One observation, one reply, one outcome; on disk in every case, also when a part of it fails."""
        fault = BrowserFault(f"step {index} took longer than {self._config.step_timeout_s:g} s")
        limit = Clock(self._config.step_timeout_s, fault)
        begun = time.monotonic()
        async with self._browser_time(limit):
            page = await browser.observe()
            draft = self._record_page(index, page, browser)
            self._content = _content(page)
        observed = asked = replied = acted = time.monotonic()
        changes: dict[str, Any] = {}
        try:
            await self._hooks.observed(draft)
            message = render_observation(self._observation(index, page, browser))
            asked = time.monotonic()
            text = await self._ask(message, page)
            replied = time.monotonic()
            changes["reply"] = text
            await self._act_on(text, page, browser, limit, changes)
            acted = time.monotonic()
        except WabeError as error:
            acted = time.monotonic()
            changes["outcome"] = Outcome(ok=False, message=f"{error.blame}: {error.message}")
            raise
        finally:
            timings = Timings(
                observe_s=observed - begun, reply_s=max(0.0, replied - asked), act_s=max(0.0, acted - replied)
            )
            if refused := changes.get("refused"):
                changes |= {"refused": draft.refused + refused, "flags": (*changes.get("flags", ()), BLOCKED)}
            changes["flags"] = (*dict.fromkeys((*draft.flags, *changes.get("flags", ()))),)
            changes["navigations"] = recorded((*draft.navigations, *changes.get("navigations", ())))
            step = draft.model_copy(update={**changes, "timings": timings})
            self._steps.append(self._store.append_step(step))
        await self._hooks.stepped(step)
        return self._stop_after(step)

    async def _look_finally(self, browser: Browser, index: int) -> None:
        """Record what the page became while the participant was replying, if it changed: checks judge the last look."""
        limit = Clock(self._config.step_timeout_s, BrowserFault("the final look took too long"))
        # The attempt has ended: whatever breaks now, it is judged on what is recorded already.
        with suppress(WabeError):
            async with self._browser_time(limit):
                page = await browser.observe()
                if _content(page) == self._content:
                    return
                step = self._record_page(index, page, browser)
            await self._hooks.observed(step)
            self._steps.append(self._store.append_step(step))

    @asynccontextmanager
    async def _browser_time(self, limit: Clock) -> AsyncIterator[None]:
        """Time of browser and site. Off site it is the participant's as well, or it could wait there for free."""
        is_charged, used_s = self._route.is_off_site, limit.used_s
        async with AsyncExitStack() as clocks:
            await clocks.enter_async_context(limit.running())
            if is_charged:
                await clocks.enter_async_context(self._clock.running())
            yield
        if self._route.is_off_site and not is_charged:
            # It turned out on the way that this led off the site.
            self._clock.charge(limit.used_s - used_s)

    async def _ask(self, message: str, page: Page) -> str:
        """The participant's reply, on the participant's own time."""
        async with self._clock.running():
            text = await self._participant.send(
                message, image=page.screenshot, media_type=page.media_type, context_id=self._context_id
            )
        return without_surrogates(text)

    def _record_page(self, index: int, page: Page, browser: Browser) -> Step:
        files = self._store.write_page(index, page)
        hops = browser.take_hops()
        if index == 0:
            self._route.landed(page)
        navigations = self._route.went(hops)
        self._route.saw(page)
        is_off_site = self._route.is_elsewhere(page.url) or self._route.left_site(navigations)
        off_site = OFF_SITE if is_off_site and self._config.off_site != "allow" else None
        blocked = BLOCKED if page.refused else None
        return Step(
            index=index,
            url=page.url,
            title=page.title,
            **files,
            dialog=page.dialog,
            feedback=self._feedback,
            flags=tuple(flag for flag in (off_site, blocked) if flag),
            refused=page.refused,
            tabs=_recorded(page.tabs),
            viewport=(self._config.viewport_width, self._config.viewport_height),
            navigations=navigations,
        )

    def _observation(self, index: int, page: Page, browser: Browser) -> Observation:
        limit = self._config.max_snapshot_chars
        return Observation(
            page=page.model_copy(update={"snapshot": cut_snapshot(without_boxes(page.snapshot), limit)}),
            tools=browser.tools,
            instruction=self._task.task if index == 0 else None,
            website=self._task.website if index == 0 else None,
            feedback=self._feedback,
        )

    async def _act_on(self, text: str, page: Page, browser: Browser, limit: Clock, changes: dict[str, Any]) -> None:
        """Do what a reply asks for. What it makes of the step's record goes into `changes`, as soon as it is known."""
        understood = understand(text, browser.tools, parse_snapshot(page.snapshot), open_tabs=max(1, len(page.tabs)))
        if understood.action is None:
            self._unreadable += 1
        else:
            self._unreadable = 0
            changes["action"] = understood.action
        checked = understood.checked
        if checked is None:
            self._feedback = understood.complaint
            changes["outcome"] = Outcome(ok=False, message=understood.complaint)
            return
        if checked.tool in ENDING_TOOLS:
            changes["outcome"] = self._end(checked, understood.line)
            return
        result = await self._do(checked, browser, limit, changes)
        # What a participant asked to be told comes back as feedback; of anything else it sees the next page.
        told = not result.ok or checked.tool in _TELLING_TOOLS
        self._feedback = result.text if told else None
        line = understood.line if result.ok else None
        changes["outcome"] = Outcome(ok=result.ok, message=result.text, line=line)
        if result.refused:
            changes["refused"] = result.refused
        if result.downloads:
            changes["downloads"] = result.downloads

    async def _do(self, checked: CheckedAction, browser: Browser, limit: Clock, changes: dict[str, Any]) -> ToolResult:
        """Execute an action; where it led is recorded even if it breaks the browser."""
        # What the page did by itself while the participant was thinking is not of this action's making.
        before = self._route.went(browser.take_hops())
        self._route.acts(checked.tool, checked.params)
        # The participant's wait is on its own clock alone: it must not pass for a page that hangs.
        is_wait = checked.tool == "browser_wait_for"
        async with self._clock.running() if is_wait else self._browser_time(limit):
            try:
                return await browser.act(checked.tool, checked.params)
            finally:
                navigations = (*before, *self._route.went(browser.take_hops()))
                changes["navigations"] = navigations
                if self._route.left_site(navigations) and self._config.off_site != "allow":
                    changes["flags"] = (OFF_SITE,)

    def _end(self, checked: CheckedAction, line: str) -> Outcome:
        self._feedback = None
        if checked.tool == FINISH:
            answer = checked.params.get("answer")
            self._answer = None if answer is None else str(answer)
        return Outcome(ok=True, line=line)

    def _stop_after(self, step: Step) -> StopReason | None:
        if self._unreadable >= MAX_UNREADABLE:
            return "unreadable_replies"
        if step.action and step.action.tool in ENDING_TOOLS and step.outcome and step.outcome.ok:
            return "finished"
        return None


def _content(page: Page) -> object:
    return page.url, page.title, page.snapshot, page.dialog


def _recorded(tabs: tuple[Tab, ...]) -> tuple[Tab, ...]:
    """The first tabs and the current one, bounded: a page may open a hundred with long addresses."""
    kept = [tab for tab in tabs if tab.current or tab.index < _KEPT_TABS]
    return tuple(
        tab.model_copy(update={"url": clip_text(tab.url, 500), "title": clip_text(tab.title, 200)}) for tab in kept
    )
