"""The attempts at one task, until one of them counts: retries, blame, policies, and the verdict on the last one.

Used by assessments, which play each task once and in order, and by environments, in which a trainer chooses the tasks.
"""

import asyncio
import logging
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from judge.browser.session import Browser
from judge.config import RunConfig
from judge.episode.episode import Connect, Episode, EpisodeEnd
from judge.episode.first_page import OPEN_TO_LOSS, loss_of
from judge.episode.part import AttemptStage
from judge.episode.reset import ResetFailed, SiteTurns, SiteUse
from judge.evaluators.watched import evaluate_watched
from judge.judges.base import Judge
from judge.judges.rescoring import Scored, is_unreached, judge_stored
from judge.network.archives import Archives
from judge.network.attempt import AttemptNetwork, InterceptorFactory, network_of, policy_of, require_network
from judge.network.policy import NetworkPolicy
from judge.records.events import (
    RequestWarning,
    Sink,
    StepBegun,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
)
from judge.records.steps import MAX_STEPS, BlameFacts, Step
from judge.records.tasks import Task, key_of
from judge.records.verdicts import Verdict
from judge.results.metering import AttemptStart
from judge.results.progress import with_verdict
from judge.store.bounds import bounded
from judge.store.layout import VERDICTS, TaskStore
from judge.trajectory.earlier import earlier_digests
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import JUDGED_ENDS, Attempt
from judge.trajectory.redaction import Redaction
from shared.errors import Blame, TrajectoryError
from shared.logs import log_context

_TOO_BUSY = (
    "this machine is too busy for {} at once: time limits wait for it, but everything takes long; stop what else it"
    " runs, or play fewer at once (--max-parallel)"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AttemptSetup:
    """What attempts are played with, and judged by. Attempts played at the same time share one.

    `browser` lends browsers (`judge.browser.pool.BrowserPool.browser`). `closed` are the addresses of the judge's
    servers, which are blocked. `archives` answer for frozen sites; `recorder` records the attempts' requests. `ledger`
    is the file in which a meter counts participants' calls, if it does.
    """

    config: RunConfig
    browser: Callable[..., AbstractAsyncContextManager[Browser]]
    judge: Judge
    _: KW_ONLY
    closed: tuple[str, ...] = ()
    archives: Archives | None = None
    recorder: InterceptorFactory | None = None
    ledger: Path | None = None
    sites: SiteTurns = field(init=False)
    # The notes of which each is given once.
    noted: set[str] = field(default_factory=set, init=False)
    since: float = field(default_factory=time.time)
    # For the digests that replace session cookies in network traces. Never stored.
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)

    def __post_init__(self) -> None:
        holds = self.archives.holds if self.archives else lambda _: False
        object.__setattr__(self, "sites", SiteTurns(self.config, self.policy, holds))

    def policy(self, task: Task) -> NetworkPolicy:
        """Which addresses a browser may reach in attempts at the task."""
        return policy_of(task, self.config, self.closed)

    def require(self, task: Task) -> None:
        """Raises `ConfigError` for a task that cannot be played on this network."""
        require_network(task, self.config, archives=self.archives, is_recorded=self.recorder is not None)


@dataclass
class Attempts:
    """The attempts at one task. `connect` leads to its participant; `emit` receives what happens.

    `in_real_time`: page time is known not to work for the task's sites; set as soon as this is found. `is_last_try`:
    an attempt for which the judge model cannot be reached will not be judged again.
    """

    setup: AttemptSetup
    task: Task
    store: TaskStore
    connect: Connect
    emit: Sink
    _: KW_ONLY
    in_real_time: bool = False
    is_last_try: bool = True

    @property
    def config(self) -> RunConfig:
        """The settings of its attempts: a variant may change some."""
        if self.task.played_variant is None:
            return self.setup.config
        config, more = self.setup.config, self.task.played_variant.declared.more_steps
        max_steps = min(config.max_steps + more, MAX_STEPS // config.max_actions)
        return config.model_copy(update={**self._changes, "max_steps": max_steps})

    @property
    def _changes(self) -> Mapping[str, Any]:
        return self.task.played_variant.declared.changes if self.task.played_variant else {}

    async def play(self, first: int = 1, may_retry: Callable[[], bool] = lambda: True) -> Attempt:
        """Play the task until an attempt counts, and judge that one. Returns it as recorded.

        `first` is the number of the first attempt. `may_retry` is asked before each further one.
        """
        task, store, config = self.task, self.store, self.setup.config
        last = first + config.max_task_retries
        # For each attempt so far in which the site could be opened: whether the participant acted on it.
        acted: list[bool] = []
        for number in range(first, last + 1):
            end = await self._attempt(number)
            # Page time failed, which is the judge's fault, so this does not use up a retry. Only on a site that can be
            # reset, because the failed attempt may have changed it.
            if end.needs_real_time and self.setup.sites.can_reset(task) and may_retry():
                self._keep(end)
                self.retried(number, f"{end.error}: now in real time", end.blame)
                end = await self._attempt(number)
            acted += [end.has_acted] if end.steps else []
            if end.is_unreachable and acted:
                end = await self._blamed(end, has_acted=all(acted))
            # A fault of the participant's is final: such an attempt does not count as aborted.
            if not end.is_aborted or number == last or not may_retry():
                break
            self._keep(end)
            self.retried(number, end.error or end.stop_reason, end.blame)
        result = _as_recorded(end, store)
        # Written before judging, so that a crash from here on does not cost an attempt.
        store.write_result(result.to_json())
        if not end.is_aborted:
            return await self.judge(result)
        if task.watched:
            result = await self._with_policies(result)
            store.write_result(result.to_json())
        return self.done(result)

    async def judge(self, result: Attempt) -> Attempt:
        """Judge a recorded attempt. Returns it with its verdict, as recorded."""
        with log_context(attempt=result.number):
            return await self._judged(result)

    def unplayed(self, why: str, *, blame: Blame | None = None, number: int = 1) -> EpisodeEnd:
        """The end of an attempt aborted before it began."""
        now = time.time()
        return EpisodeEnd(
            task=self.task,
            steps=(),
            stop_reason="environment_fault",
            max_steps=self.config.max_steps,
            error=why,
            blame=blame,
            number=number,
            epoch=self.store.epoch,
            started_at=now,
            ended_at=now,
        )

    def done(self, result: Attempt) -> Attempt:
        """Emit how the task ended."""
        why = result.error if result.excluded is None else result.cause
        reason = result.verdict.reason if result.verdict else why or result.stop_reason
        with log_context(attempt=result.number):
            self.emit(
                TaskDone(
                    task_id=result.task.task_id,
                    epoch=result.epoch,
                    outcome=result.outcome,
                    steps=result.steps_taken,
                    reason=reason,
                    reason_code=result.verdict.reason_code if result.verdict else None,
                    attacked=result.task.clean_task is not None,
                    blame=result.blame,
                )
            )
        return result

    def retried(self, attempt: int, cause: str, blame: str | None = None) -> None:
        """Emit that the task is played again."""
        store = self.store
        with log_context(attempt=attempt):
            self.emit(TaskRetried(task_id=store.name, epoch=store.epoch, attempt=attempt, cause=cause, blame=blame))

    def _keep(self, end: EpisodeEnd) -> None:
        """Record the end of an attempt played again: it counts for policies and goals."""
        if end.task.watched:
            self.store.write_result(_as_recorded(end, self.store).to_json())

    async def _with_policies(self, result: Attempt) -> Attempt:
        """The attempt with what became of its policies and of its attack, from the files on disk."""
        if not result.task.watched:
            return result
        trajectory = await asyncio.to_thread(load_trajectory, self.store.folder)
        return result.model_copy(update=await asyncio.to_thread(evaluate_watched, trajectory))

    async def _blamed(self, end: EpisodeEnd, *, has_acted: bool) -> EpisodeEnd:
        """The end of an attempt on a site that became unreachable after the participant had been on it.

        If it acted in every attempt, it may have shut the site down, unless even a reset does not make it work again.
        """
        works_again = has_acted and await self.setup.sites.works_again(end.task, end.site_instances)
        party: Literal["participant", "site"] = "participant" if works_again else "site"
        facts = BlameFacts(fault="site_unreachable", party=party, has_acted=has_acted, works_again=works_again)
        changes: dict[str, Any] = {"blame_facts": facts}
        if works_again:
            error = f"acted on the site in every attempt, and only a reset makes it work again: {end.error}"
            changes |= {"stop_reason": "participant_error", "error": error, "blame": "participant"}
        return end.model_copy(update=changes)

    async def _attempt(self, number: int) -> EpisodeEnd:
        with log_context(attempt=number):
            end = await self._attempted(number)
        self.in_real_time |= end.needs_real_time
        note = _TOO_BUSY.format(self.setup.config.max_parallel)
        if end.has_starved and note not in self.setup.noted:
            self.setup.noted.add(note)
            self.emit(RequestWarning(text=note))
        return end

    async def _attempted(self, number: int) -> EpisodeEnd:
        """Play an attempt on sites in their initial state, or abort it because they could not be reset."""
        try:
            async with self.setup.sites.turn(self.task, is_first=number == self.store.epoch == 1) as turn:
                end = await self._play(turn, number)
                end = end.model_copy(update={"shared_state": turn.shares_state, "site_instances": turn.instances})
                end = await self._unless_lost(turn, end)
                if end.is_unreachable:
                    self.setup.sites.put_aside(turn.instances)
            return end.model_copy(update={"shared_state": turn.shares_state})
        except ResetFailed as fault:
            self._begin(number)
            end = self.unplayed(fault.message, blame=fault.blame, number=number)
            return end.model_copy(update={"is_unreachable": True, "site_instances": fault.instances})

    async def _unless_lost(self, turn: SiteUse, end: EpisodeEnd) -> EpisodeEnd:
        """The end of an attempt; aborted if it failed on a site that has been lost meanwhile. Who is to blame for that
        is decided as for a site that cannot be opened.
        """
        # An archive answers always, and a recorder is not to record more.
        is_live = end.frozen is None and self.setup.recorder is None
        if not (is_live and end.may_be_lost and end.stop_reason in OPEN_TO_LOSS and await self._has_failed(end)):
            return end
        is_paged = end.settle == "page-time"
        network = self._network(turn)
        fault = await loss_of(turn.task, self.setup.config, network, self.setup.browser, is_page_time=is_paged)
        if fault is None:
            return end
        error = f"the site was lost during the attempt: {fault.message}"
        changes = {"stop_reason": "environment_fault", "error": error, "blame": fault.blame, "is_unreachable": True}
        site_fault = end.model_copy(update=changes)
        # An aborted attempt has no verdict.
        shutil.rmtree(self.store.folder / VERDICTS, ignore_errors=True)
        self.store.write_result(_as_recorded(site_fault, self.store).to_json())
        return site_fault

    async def _has_failed(self, end: EpisodeEnd) -> bool:
        if end.stop_reason not in JUDGED_ENDS:
            return True
        result = _as_recorded(end, self.store)
        # Judging reads the files.
        self.store.write_result(result.to_json())
        scored = await self._scored(result)
        return scored.verdict is not None and scored.verdict.outcome == "failure"

    def _begin(self, number: int) -> None:
        store, max_steps = self.store, self.config.max_steps
        self.emit(TaskStarted(task_id=store.name, epoch=store.epoch, attempt=number, max_steps=max_steps))
        store.begin()

    async def _play(self, turn: SiteUse, number: int) -> EpisodeEnd:
        """Play an attempt at the task, which is logged in to its sites."""
        setup, store, task, config = self.setup, self.store, turn.task, self.config
        self._begin(number)
        setup.judge.prefetch(task)

        def observed(step: Step) -> None:
            event = StepBegun(task_id=store.name, epoch=store.epoch, step=step.index + 1, task=task.task, url=step.url)
            self.emit(event)
            if step.screenshot is not None:
                setup.judge.prefetch(task, store.folder / step.screenshot)

        def stepped(step: Step) -> None:
            line, problem = (step.outcome.line, step.outcome.message) if step.outcome else (None, "")
            self.emit(
                StepDone(
                    task_id=store.name,
                    epoch=store.epoch,
                    step=step.index + 1,
                    reply=0 if step.reply_index is None else step.of_reply + 1,
                    max_steps=config.max_steps,
                    action=line or f"no action: {problem}",
                    executed=line is not None,
                    recorded=step,
                )
            )

        stage = AttemptStage(
            task,
            config,
            store,
            Redaction(
                (*config.secrets, *task.secrets),
                keep=task.named_fields,
                files=[each.sha256 for each in task.files if each.sha256],
                salt=setup.salt,
            ),
            self._network(turn),
            number=number,
            in_real_time=self.in_real_time,
            can_replay=setup.sites.can_reset(task),
        )
        if config.meter and setup.ledger is not None:
            key = key_of(store.name, store.epoch)
            start = AttemptStart(attempt=stage.context_id, task=key, began=time.time(), since=setup.since)
            start.write(setup.ledger)
        browsers = partial(setup.browser, changes=changes) if (changes := self._changes) else setup.browser
        return await Episode(stage, browsers, self.connect, observed=observed, stepped=stepped).run()

    def _network(self, turn: SiteUse) -> AttemptNetwork:
        setup = self.setup
        return network_of(turn.task, setup.config, turn.policy, archives=setup.archives, recorder=setup.recorder)

    async def _scored(self, result: Attempt) -> Scored:
        """The verdict on a recorded attempt. One given before is not asked for again."""
        asking = TaskJudging(task_id=result.task.task_id, epoch=result.epoch, steps=result.steps_taken)
        # A run has one judge: verdicts by other code, from before the run was resumed, are repeated.
        return await judge_stored(
            self.store,
            self.setup.judge,
            off_site=self.setup.config.off_site,
            by_this_code=True,
            asking=lambda: self.emit(asking),
        )

    async def _judged(self, result: Attempt) -> Attempt:
        began = time.monotonic()
        scored = await self._scored(result)
        # No verdict means that the folder could not be read or written, which is not a failure of the participant.
        verdict = scored.verdict or Verdict(outcome="unscored", reason=scored.reason, judge=self.setup.judge.info)
        result = await self._with_policies(result)
        judged = with_verdict(result, verdict).model_copy(update={"judge_s": round(time.monotonic() - began, 3)})
        self.store.write_result(judged.to_json())
        return judged if is_unreached(judged.verdict) and not self.is_last_try else self.done(judged)


def _as_recorded(end: EpisodeEnd, store: TaskStore) -> Attempt:
    """The attempt within the limits of records; not the task, which is not foreign text and must not be cut."""
    recorded = bounded(end).model_copy(update={"task": end.task})
    if not end.task.watched:
        return recorded
    try:
        earlier = earlier_digests(store.folder)
    except (TrajectoryError, OSError) as error:
        _log.warning("task %s: %s", store.key, error)
        # Unknown, so policies stay undecided.
        earlier = ("unreadable",)
    return recorded.model_copy(update={"earlier_attempts": earlier})
