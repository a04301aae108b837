"""One attempt at one task: observe, ask, act and record, until the participant or a limit ends it.

A loop over parts (`judge.episode.part`). `judge.episode.attempts` retries: here, no executed action is repeated.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import KW_ONLY, dataclass

from judge.browser.action_lines import acted_on
from judge.browser.session import BrowserFactory
from judge.browser.settle import ClockStalled
from judge.episode.action_list import SeenPage
from judge.episode.clock import Clock, OutOfTime, StepOverdue
from judge.episode.dialogue import Dialogue
from judge.episode.draft import StepDraft, StepTimes
from judge.episode.evidence import Answers, FrozenSites, Trace
from judge.episode.first_page import first_address, mode_of, require_page
from judge.episode.offers import Files, User
from judge.episode.pages import PageObserver
from judge.episode.part import Act, AttemptPart, AttemptStage, PageLook
from judge.episode.travel import Travel
from judge.records.steps import Outcome, Step, StopReason
from judge.records.tools import tool_of
from judge.trajectory.record import CURRENT_RULES, JUDGED_ENDS, Attempt
from shared.errors import EnvironmentFault, ParticipantError, SiteBlocked, SiteUnreachable, WabeError, is_full
from shared.models import Page, ToolSpec
from shared.patience import Patience
from shared.plugins import plugins
from shared.protocol import Participant
from shared.replies import ENDING_TOOLS, FINISH
from shared.snapshot import parse_snapshot, with_own_names

Connect = Callable[[], AbstractAsyncContextManager[Participant]]


class EpisodeEnd(Attempt):
    """An ended attempt without a verdict, plus unrecorded facts that decide whether it is played again."""

    has_acted: bool = False
    """Whether the participant acted."""
    is_unreachable: bool = False
    """Whether the site could not be opened or reset."""
    has_failed: bool = False
    """Whether a request to the site failed, or this is unknown."""
    needs_real_time: bool = False
    """Whether page time does not work for the site."""
    has_starved: bool = False
    """Whether this machine was too busy most of the time."""

    @property
    def may_be_lost(self) -> bool:
        """Whether the site may be."""
        return self.has_failed or any(each.error is not None for each in self.fetched)


@dataclass
class Episode:
    """One attempt. Whatever goes wrong, `run` raises only `CancelledError`.

    `observed` is called when a step's observation is on disk, before the participant is asked; `stepped` when the
    complete step is on disk.
    """

    stage: AttemptStage
    browsers: BrowserFactory
    connect: Connect
    _: KW_ONLY
    observed: Callable[[Step], None]
    stepped: Callable[[Step], None]

    def __post_init__(self) -> None:
        stage = self.stage
        self._limit = Patience(stage.config.attempt_limit_s)
        self._answer: str | None = None
        self._fault: EnvironmentFault | None = None
        self._stop: StopReason | ParticipantError | None = None
        self._pages, self._travel = PageObserver(stage), Travel(stage)
        self._dialogue, self._answers, self._trace = Dialogue(stage), Answers(stage), Trace(stage)
        # The order in which they are called. A part that may refuse an action comes before those that expect it.
        self._parts: tuple[AttemptPart, ...] = (
            *(each.part(stage) for each in plugins().values() if each.part),
            User(stage),
            Files(stage),
            self._travel,
            FrozenSites(stage),
            self._pages,
            self._dialogue,
            self._answers,
            self._trace,
        )

    async def run(self) -> EpisodeEnd:
        """Play the attempt to its end."""
        stage = self.stage
        started_at, began = time.time(), time.monotonic()
        error = self._travel.blamed(await self._played())
        stop: StopReason = "site_blocked" if isinstance(error, SiteBlocked) else "environment_fault"
        outcome = error or self._stop
        if isinstance(outcome, ParticipantError):
            error, stop = outcome, "task_timeout" if isinstance(outcome, OutOfTime) else "participant_error"
        elif isinstance(outcome, str):
            stop = outcome
        facts = {key: fact for part in self._parts for key, fact in part.ends().items()}
        return EpisodeEnd(
            task=stage.task,
            max_steps=stage.config.max_steps,
            max_actions=stage.config.max_actions,
            context_id=stage.context_id,
            number=stage.number,
            epoch=stage.store.epoch,
            steps=tuple(stage.steps),
            final_look=stage.final_look,
            stop_reason=stop,
            final_answer=self._answer,
            error=self._trace.explained(error) if error else None,
            blame=error.blame if error else None,
            started_at=started_at,
            # Monotonic, so that the duration is right even if the machine's clock is corrected meanwhile.
            ended_at=started_at + (time.monotonic() - began),
            versions=stage.versions,
            is_unreachable=isinstance(error, SiteUnreachable),
            settle=stage.settle,
            needs_real_time=isinstance(error, ClockStalled),
            has_starved=self._limit.starved_s > self._limit.used_s,
            rules_version=CURRENT_RULES,
            **facts,
        )

    async def _played(self) -> WabeError | None:
        """Play; returns what ended the attempt if it was not the participant or the page."""
        limit_s = self._limit.limit_s
        try:
            async with self._limit.running():
                await self._play()
        except TimeoutError:
            if not self._limit.has_run_out:
                raise
            # The first end is the cause, even if the final observation or closing the browser then reached the limit.
            # But if the network trace, which a verdict may need, is missing, the timeout counts: otherwise a
            # participant could become unscored by ending at the last moment.
            if self._stop is None or (self._stop in JUDGED_ENDS and self._trace.is_unwritten):
                return self._fault or OutOfTime(f"the attempt did not end within {limit_s:g} s (attempt_timeout_s)")
        except (ParticipantError, EnvironmentFault) as caught:
            return caught
        # Isolation boundary: an internal error fails only this attempt.
        except Exception as caught:
            if is_full(caught):
                # It would fail every attempt.
                raise
            return WabeError(f"judge fault: {type(caught).__name__}: {str(caught)[:500]}")
        return None

    async def _play(self) -> None:
        stage = self.stage
        async with self.connect() as participant, stage.network.browser(self.browsers) as browser:
            stage.browser, stage.versions = browser, browser.versions
            try:
                stage.settle = await mode_of(stage)
                await browser.log_in(stage.task)
                await browser.open(first_address(stage.task), stage.settle, stage.clock_ms)
                await browser.open_tabs(stage.task.start_urls[1:])
                try:
                    self._stop = await self._take_steps(participant)
                # Stored rather than raised, because the final observation and the network trace still follow.
                except ParticipantError as error:
                    self._stop = error
                await self._observe_finally()
                await self._answers.ask()
            except EnvironmentFault as fault:
                self._fault = fault
                raise
            finally:
                await self._dialogue.end(participant)
                for part in self._parts:
                    await part.closes()
            if self._trace.fault and self._stop in JUDGED_ENDS:
                # The verdict may depend on the lost trace.
                raise self._trace.fault

    async def _take_steps(self, participant: Participant) -> StopReason:
        while self._dialogue.goes_on:
            if self.stage.steps and self.stage.config.step_delay:
                await asyncio.sleep(self.stage.config.step_delay)
            if stop := await self._step(participant):
                return stop
        return "max_steps"

    async def _step(self, participant: Participant) -> StopReason | None:
        """Take one step: observation, action, outcome. It is recorded even if a part of it fails.

        The action is the next one of the last reply, if it had several, or the first one of another reply.
        """
        stage, talk, index = self.stage, self._dialogue, len(self.stage.steps)
        limit = Clock(stage.config.step_timeout_s, StepOverdue(f"step {index} took too long"))
        times = StepTimes()
        with times.observing:
            look = self._followed(await self._pages.observe(limit))
            page = look.page
            # Not before the first action: the participant has not done anything yet.
            if index and self._pages.has_ended(look):
                # Not a step, because the participant is not asked again.
                self._record_finally(look)
                return "ended_by_page"
            seen = SeenPage(page, with_own_names(parse_snapshot(page.snapshot)), stage.route.documents)
            action = talk.next_listed(seen)
            if action is None and not talk.may_ask:
                self._record_finally(look)
                return "max_steps"
            message = talk.message(action, look, self._tools(page, is_named=False))
            draft = StepDraft(look.recorded(index, stage.store.write_page(index, page)))
        try:
            require_page(stage, page, draft.navigations)
            self.observed(draft.observed)
            if message is not None:
                with times.replying:
                    await talk.ask(participant, message, draft)
            used_s = limit.used_s
            with times.acting:
                tools = self._tools(page, is_named=True)
                act = talk.read_listed(action, seen, tools, draft) if action else talk.read(seen, tools, draft)
                stop = await self._act(act, limit) if act else talk.gives_up
            self._pages.acted_s = limit.used_s - used_s
        except WabeError as error:
            draft.outcome = Outcome(ok=False, message=f"{error.blame}: {error.message}", **draft.attempted)
            raise
        finally:
            stage.steps.append(step := stage.store.append_step(draft.recorded(times.recorded(page.settled))))
        self.stepped(step)
        return stop

    def _tools(self, page: Page, *, is_named: bool) -> tuple[ToolSpec, ...]:
        offered: Sequence[ToolSpec] = self.stage.browser.tools
        for part in reversed(self._parts):
            offered = part.tools(offered, page, is_named=is_named)
        return tuple(offered)

    def _followed(self, look: PageLook) -> PageLook:
        for part in self._parts:
            part.observed(look)
        return look

    async def _observe_finally(self) -> None:
        """Record the page once more if it has changed since the last step's observation.

        Checks judge it and reports show it; no judge model sees it.
        """
        if self.stage.final_look is not None:
            return
        # The attempt has ended: whatever fails now, it is judged on what is already recorded.
        with suppress(WabeError):
            look = await self._pages.observe_finally()
            if self._pages.is_new(look):
                self._record_finally(self._followed(look))
            if self._stop == "max_steps" and self._pages.has_ended(look):
                self._stop = "ended_by_page"

    def _record_finally(self, look: PageLook) -> None:
        stage = self.stage
        stage.final_look = look.recorded(len(stage.steps), stage.store.write_final_page(look.page))

    async def _act(self, act: Act, limit: Clock) -> StopReason | None:
        """Execute an action."""
        checked, draft = act.action, act.draft
        if checked.tool in ENDING_TOOLS:
            answer = checked.params.get("answer") if checked.tool == FINISH else None
            self._answer = None if answer is None else str(answer)
            draft.outcome = Outcome(ok=True, line=act.line)
            return "finished"
        for part in self._parts:
            if (outcome := part.acting(act)) is not None:
                self._dialogue.done(outcome, draft, answers=True)
                return None
        await self._execute(act, limit)
        for part in self._parts:
            part.acted(act)
        outcome = act.outcome(self.stage.redaction)
        draft.attempted = {}
        # The answer of these tools is their result; the effect of other actions shows in the next observation.
        self._dialogue.done(outcome, draft, answers=tool_of(checked.tool).answers)
        return None

    async def _execute(self, act: Act, limit: Clock) -> None:
        """Execute an action. The navigations that it causes are recorded even if it breaks the browser."""
        stage, checked = self.stage, act.action
        line = act.line if stage.task.watched else None
        act.draft.attempted = {"attempted": line, "refs": acted_on(act.shown, act.snapshot)}
        # A requested wait does not count against the browser's timeout, only against the participant's.
        is_wait = tool_of(checked.tool).waits
        try:
            async with stage.clock.running() if is_wait else self._pages.browser_time(limit):
                try:
                    act.result = await stage.browser.act(checked.tool, checked.params)
                finally:
                    # Before the time is charged, which depends on where the action led.
                    self._travel.moved(act.draft)
        except StepOverdue:
            self._pages.overdue(act)
