"""One attempt at one task: observe, ask, act, record; until the participant ends it or a limit does.

Retries sit elsewhere (`judge.assessment`): an executed action is never executed again.
"""

import asyncio
import time
from typing import Any, Protocol
from uuid import uuid4

from pydantic import Field

from judge.action_lines import action_line
from judge.actions import CheckedAction, Complaint, check_action
from judge.config import RunConfig
from judge.environment import Browser, BrowserFactory
from judge.off_site import OFF_SITE, off_site_flag, site_of
from judge.record_limits import clip_text
from judge.sites import Site
from judge.store import TaskStore
from shared.errors import BrowserFault, EnvironmentFault, ParticipantError, WabeError
from shared.models import Observation, Outcome, Page, Record, Step, StopReason, Tab, Task, Timings
from shared.protocol import ENDING_TOOLS, FINISH, parse_reply, render_observation
from shared.snapshot import cut_snapshot, parse_snapshot
from shared.snapshot_boxes import without_boxes
from shared.text import without_surrogates

BLOCKED = "blocked_address"
MAX_UNREADABLE = 3
_TELLING_TOOLS = frozenset({"browser_find", "browser_tabs"})
_KEPT_TABS = 8
_BACK_TOOLS = frozenset({"browser_navigate_back", "browser_press_key"})


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
        self._landed = ""
        self._allowed = Site(frozenset(), (*config.allowed_sites, *task.allowed_sites))
        self._has_strayed = self._is_astray = False

    async def run(self) -> EpisodeEnd:
        """Play the episode to its end and say how it ended."""
        started_at, begun = time.time(), time.monotonic()
        stop: StopReason
        error: WabeError | None = None
        try:
            async with asyncio.timeout(self._config.task_timeout_s) as limit:
                stop = await self._play()
        except TimeoutError:
            if not limit.expired():
                raise
            stop = "task_timeout"
            error = ParticipantError(f"the task was not done within {self._config.task_timeout_s:g} s")
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
            is_astray=self._is_astray,
        )

    def _is_elsewhere(self, url: str) -> bool:
        is_off = off_site_flag(self._task.website, url, landed=self._landed) is not None
        return is_off and not self._allowed.holds(url)

    def _is_home(self, url: str) -> bool:
        return site_of(url) is not None and not self._is_elsewhere(url)

    async def _play(self) -> StopReason:
        async with self._browsers() as browser:
            self._versions = browser.versions
            await browser.open(self._task.website)
            for index in range(self._config.max_steps):
                if index and self._config.step_delay:
                    await asyncio.sleep(self._config.step_delay)
                stop = await self._step_within_limit(browser, index)
                if stop:
                    return stop
        return "max_steps"

    async def _step_within_limit(self, browser: Browser, index: int) -> StopReason | None:
        try:
            async with asyncio.timeout(self._config.step_timeout_s) as limit:
                return await self._step(browser, index, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise BrowserFault(f"step {index} took longer than {self._config.step_timeout_s:g} s") from None

    async def _step(self, browser: Browser, index: int, limit: asyncio.Timeout) -> StopReason | None:
        """One observation, one reply, one outcome; on disk in every case, also when a part of it fails."""
        begun = time.monotonic()
        page = await browser.observe()
        draft = self._record_page(index, page)
        observed = asked = replied = acted = time.monotonic()
        changes: dict[str, Any] = {}
        try:
            await self._hooks.observed(draft)
            message = render_observation(self._observation(index, page, browser))
            asked = time.monotonic()
            text = await self._ask(message, page, limit)
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
            step = draft.model_copy(update={**changes, "timings": timings})
            self._steps.append(self._store.append_step(step))
        await self._hooks.stepped(step)
        return self._stop_after(step)

    async def _ask(self, message: str, page: Page, limit: asyncio.Timeout) -> str:
        """The participant's reply. Its time is limited by itself and does not count for the step's limit, or a
        participant could make its own slowness pass for a fault of the browser.
        """
        now = asyncio.get_running_loop().time
        left = (limit.when() or now()) - now()
        limit.reschedule(None)
        try:
            text = await self._participant.send(
                message, image=page.screenshot, media_type=page.media_type, context_id=self._context_id
            )
        finally:
            limit.reschedule(now() + left)
        return without_surrogates(text)

    def _record_page(self, index: int, page: Page) -> Step:
        files = self._store.write_page(index, page)
        if index == 0:
            # Where the website's own address leads, before anybody has done anything, is nobody's off-site play.
            self._landed = page.url
        if all(self._is_home(url) for url in (page.url, *(tab.url for tab in page.tabs))):
            self._is_astray = False
        off_site = OFF_SITE if self._is_elsewhere(page.url) and self._config.off_site != "allow" else None
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

    async def _act_on(
        self, text: str, page: Page, browser: Browser, limit: asyncio.Timeout, changes: dict[str, Any]
    ) -> None:
        """Do what a reply asks for. What it makes of the step's record goes into `changes`, as soon as it is known."""
        reply = parse_reply(text)
        if reply.action is None:
            self._unreadable += 1
            self._feedback = reply.complaint or "Your reply could not be read."
            changes["outcome"] = Outcome(ok=False, message=self._feedback)
            return
        self._unreadable = 0
        changes["action"] = reply.action
        snapshot = parse_snapshot(page.snapshot)
        checked = check_action(reply.action, browser.tools, snapshot, open_tabs=max(1, len(page.tabs)))
        if isinstance(checked, Complaint):
            self._feedback = checked.text
            changes["outcome"] = Outcome(ok=False, message=checked.text)
            return
        if checked.tool in ENDING_TOOLS:
            changes["outcome"] = self._end(checked)
            return
        is_elsewhere = self._is_elsewhere(checked.params.get("url", ""))
        # Before it is done: a page may break the browser before the action has an outcome.
        self._has_strayed |= is_elsewhere
        self._is_astray |= is_elsewhere or (self._has_strayed and checked.tool in _BACK_TOOLS)
        if checked.tool == "browser_wait_for" and (when := limit.when()) is not None:
            # A wait that was asked for is no hang.
            limit.reschedule(when + float(checked.params.get("time", 0)))
        result = await browser.act(checked.tool, checked.params)
        # What a participant asked to be told comes back as feedback; of anything else it sees the next page.
        told = not result.ok or checked.tool in _TELLING_TOOLS
        self._feedback = result.text if told else None
        line = action_line(checked, snapshot) if result.ok else None
        changes["outcome"] = Outcome(ok=result.ok, message=result.text, line=line)
        if result.refused:
            changes["refused"] = result.refused
        if result.downloads:
            changes["downloads"] = result.downloads
        if result.ok and is_elsewhere and self._config.off_site != "allow":
            # Also when that page leads on before it is looked at.
            changes["flags"] = (OFF_SITE,)

    def _end(self, checked: CheckedAction) -> Outcome:
        self._feedback = None
        if checked.tool == FINISH:
            answer = checked.params.get("answer")
            self._answer = None if answer is None else str(answer)
        return Outcome(ok=True, line=action_line(CheckedAction(tool=checked.tool, params={}), None))

    def _stop_after(self, step: Step) -> StopReason | None:
        if self._unreadable >= MAX_UNREADABLE:
            return "unreadable_replies"
        if step.action and step.action.tool in ENDING_TOOLS and step.outcome and step.outcome.ok:
            return "finished"
        return None


def _recorded(tabs: tuple[Tab, ...]) -> tuple[Tab, ...]:
    """The first tabs and the current one, bounded: a page may open a hundred with long addresses."""
    kept = [tab for tab in tabs if tab.current or tab.index < _KEPT_TABS]
    return tuple(
        tab.model_copy(update={"url": clip_text(tab.url, 500), "title": clip_text(tab.title, 200)}) for tab in kept
    )
