"""An assessment: plays every task of a request, retries aborted attempts, judges them, and records everything.

Finished work is kept: a task with a settled `result.json` is not played again, and one that was played but not judged
is only judged. So the same function starts and resumes a run.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal

from judge.browser.session import Browser
from judge.config import RunConfig
from judge.episode.episode import Connect, Episode, EpisodeEnd
from judge.episode.reset import ResetFailed, SiteTurns, SiteUse
from judge.evaluators.attacks import evaluate_attack
from judge.evaluators.policies import evaluate_policies
from judge.judges.base import Judge
from judge.judges.rescoring import differences, is_by_this_code, judge_stored, recomputed, verdict_on_file
from judge.network.archives import Archives
from judge.network.attempt import InterceptorFactory, network_of, policy_of, require_network
from judge.network.policy import NetworkPolicy
from judge.records.events import (
    RunDone,
    RunStarted,
    Sink,
    StepBegun,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
)
from judge.records.steps import BlameFacts, Step
from judge.records.tasks import Task, key_of
from judge.records.verdicts import Verdict
from judge.results.metering import LEDGER, AttemptStart
from judge.results.progress import with_verdict
from judge.results.submission import TaskSummary
from judge.store.bounds import bounded
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.earlier import earlier_digests
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Attempt, Trajectory
from judge.trajectory.redaction import Redaction
from shared.concurrency import for_each
from shared.errors import Blame, TrajectoryError
from shared.logs import log_context

_log = logging.getLogger(__name__)


@dataclass
class Assessment:
    """The tasks and settings of one run, with the components that play and judge them.

    `browser` lends browsers (`judge.browser.pool.BrowserPool.browser`). `closed` are the addresses of the assessment's
    own servers, which are blocked. `archives` answer for frozen sites; `recorder` records the attempts' requests.
    """

    tasks: tuple[Task, ...]
    config: RunConfig
    browser: Callable[..., AbstractAsyncContextManager[Browser]]
    connect: Connect
    judge: Judge
    store: RunStore
    emit: Sink
    closed: tuple[str, ...] = ()
    archives: Archives | None = None
    recorder: InterceptorFactory | None = None

    def __post_init__(self) -> None:
        self._since = time.time()
        holds = self.archives.holds if self.archives else lambda _: False
        self._sites = SiteTurns(self.config, self._policy, holds)
        for task in self.tasks:
            require_network(task, self.config, archives=self.archives, is_recorded=self.recorder is not None)
        # For the digests that replace session cookies in network traces. Never stored.
        self._salt = secrets.token_bytes(16)

    async def run(self) -> tuple[TaskSummary, ...]:
        """Play and judge every task that is not settled yet. Returns one `TaskSummary` per task and epoch, in order.

        An epoch begins once all tasks of the previous one have begun, so that a stopped run has complete epochs.
        Cancellation stops all attempts and closes their browsers.
        """
        epochs = self.config.epochs
        plays = [(task, self.store.task(task.task_id, epoch)) for epoch in range(1, epochs + 1) for task in self.tasks]
        done: dict[str, TaskSummary] = {}
        for task, store in plays:
            if (kept := await asyncio.to_thread(self._kept, task, store)) is not None:
                done[store.key] = kept
        attacked = sum(task.attack is not None for task in self.tasks)
        self.emit(
            RunStarted(
                run_id=self.store.run_id, total=len(self.tasks), kept=len(done), epochs=epochs, attacked=attacked
            )
        )
        todo = [play for play in plays if play[1].key not in done]

        async def settle(play: tuple[Task, TaskStore]) -> None:
            task, store = play
            done[store.key] = await self._summary(task, store)

        await for_each(todo, settle, at_once=self.config.max_parallel)
        results = tuple(done[store.key] for _, store in plays)
        # Tasks under attack have figures of their own.
        outcomes = [result.outcome for result in results if result.task.attack is None]
        scored = outcomes.count("success") + outcomes.count("failure")
        self.emit(RunDone(successes=outcomes.count("success"), scored=scored, total=len(outcomes), epochs=epochs))
        return results

    async def _summary(self, task: Task, store: TaskStore) -> TaskSummary:
        with log_context(task=store.key):
            return await self._settled(task, store)

    async def _settled(self, task: Task, store: TaskStore) -> TaskSummary:
        try:
            result = await self._settle(task, store)
        except OSError as error:
            # For example a full disk.
            why = f"cannot write results: {error.strerror or error}"
            result = self._done(self._unplayed(task, store, why, blame="internal"))
        # Isolation boundary: an internal error fails only this task.
        except Exception as error:  # noqa: BLE001
            _log.exception("task %s", store.key)
            why = f"{type(error).__name__}; see the log"
            result = self._done(self._unplayed(task, store, why, blame="internal"))
        return TaskSummary.of(result, self.judge.judges_of(task)[0].id)

    def _kept(self, task: Task, store: TaskStore) -> TaskSummary | None:
        """The stored result if it is settled: undamaged evidence, and this judge's verdict on it."""
        judge = self.judge.judges_of(task)[0]
        try:
            stored = _stored(task, store)
            made = None if stored is None else recomputed(judge, stored[1], self.config.off_site)
            is_current = stored is None or _is_current(*stored)
        # `_settle` meets any error again inside the isolation boundary, and reports it.
        except Exception:  # noqa: BLE001
            return None
        if stored is None:
            return None
        result, trajectory = stored
        counted = result.verdict
        if result.excluded is not None and result.excluded == self.config.exclude.get(task.task_id):
            return TaskSummary.of(result, self.judge.judges_of(task)[0].id)
        if counted is None or result.outcome not in ("success", "failure"):
            return None
        found = verdict_on_file(store, judge.id, trajectory)
        # Otherwise `result.json` does not contain this judge's verdict, or other code gave it: judge again.
        is_same = found is not None and (found.outcome, found.reason) == (counted.outcome, counted.reason)
        # An edited verdict must not stand either, if the recording alone decides it.
        is_true = found is not None and (made is None or not differences(found, made))
        is_fit = is_same and is_true and is_current and is_by_this_code(found, judge)
        return TaskSummary.of(result, judge.id) if is_fit else None

    async def _settle(self, task: Task, store: TaskStore) -> Attempt:
        if (reason := self.config.exclude.get(task.task_id)) is not None:
            store.begin()
            left_out = self._unplayed(task, store, reason).model_copy(update={"stop_reason": "excluded"})
            store.write_result(left_out.to_json())
            return self._done(left_out)
        first = store.attempts() + 1
        try:
            stored = await asyncio.to_thread(_stored, task, store)
        except TrajectoryError as error:
            _log.warning("task %s is played again: %s", store.key, error)
            stored, cause = None, f"the recorded attempt is damaged: {error.message}"
            self._retried(store, max(1, first - 1), cause)
        if store.is_interrupted:
            # It uses up no retry: however often the judge is stopped, the task is played to its end.
            self._retried(store, first - 1, "the judge was stopped during the attempt", "internal")
        if stored is not None and not stored[0].is_aborted:
            return await self._judge(stored[0], store)
        last = first + self.config.max_task_retries
        in_real_time = False
        # For each attempt so far in which the site could be opened: whether the participant acted on it.
        acted: list[bool] = []
        for number in range(first, last + 1):
            end = await self._attempt(task, store, number, in_real_time=in_real_time)
            in_real_time |= end.needs_real_time
            # Page time failed, which is the judge's fault, so this does not use up a retry. Only on a site that can be
            # reset, because the failed attempt may have changed it.
            if end.needs_real_time and self._sites.can_reset(task):
                self._keep(end, store)
                self._retried(store, number, f"{end.error}: now in real time", end.blame)
                end = await self._attempt(task, store, number, in_real_time=True)
            acted += [end.has_acted] if end.steps else []
            if end.is_unreachable and acted:
                end = await self._blamed(end, has_acted=all(acted))
            # A fault of the participant's is final: such an attempt does not count as aborted.
            if not end.is_aborted or number == last:
                break
            self._keep(end, store)
            self._retried(store, number, end.error or end.stop_reason, end.blame)
        result = _as_recorded(end, store)
        # Written before judging, so that a crash from here on does not cost an attempt.
        store.write_result(result.to_json())
        if not end.is_aborted:
            return await self._judge(result, store)
        if task.watched:
            result = await self._with_policies(result, store)
            store.write_result(result.to_json())
        return self._done(result)

    def _keep(self, end: EpisodeEnd, store: TaskStore) -> None:
        """Record the end of an attempt that is played again: it counts for policies and goals."""
        if end.task.watched:
            store.write_result(_as_recorded(end, store).to_json())

    async def _with_policies(self, result: Attempt, store: TaskStore) -> Attempt:
        """The attempt with what became of its policies and of its attack, from the files on disk."""
        if not result.task.watched:
            return result
        trajectory = await asyncio.to_thread(load_trajectory, store.folder)
        found = {"policies": evaluate_policies, "attack": evaluate_attack}
        return result.model_copy(
            update={key: await asyncio.to_thread(decide, trajectory) for key, decide in found.items()}
        )

    async def _blamed(self, end: EpisodeEnd, *, has_acted: bool) -> EpisodeEnd:
        """The end of an attempt on a site that became unreachable after the participant had been on it.

        If it acted in every attempt, it may have shut the site down, unless even a reset does not make it work again.
        """
        works_again = has_acted and await self._sites.works_again(end.task, end.site_instances)
        party: Literal["participant", "site"] = "participant" if works_again else "site"
        facts = BlameFacts(fault="site_unreachable", party=party, has_acted=has_acted, works_again=works_again)
        changes: dict[str, Any] = {"blame_facts": facts}
        if works_again:
            error = f"acted on the site in every attempt, and only a reset makes it work again: {end.error}"
            changes |= {"stop_reason": "participant_error", "error": error, "blame": "participant"}
        return end.model_copy(update=changes)

    def _retried(self, store: TaskStore, attempt: int, cause: str, blame: str | None = None) -> None:
        with log_context(attempt=attempt):
            self.emit(TaskRetried(task_id=store.name, epoch=store.epoch, attempt=attempt, cause=cause, blame=blame))

    async def _attempt(self, task: Task, store: TaskStore, number: int, *, in_real_time: bool) -> EpisodeEnd:
        with log_context(attempt=number):
            return await self._attempted(task, store, number, in_real_time=in_real_time)

    async def _attempted(self, task: Task, store: TaskStore, number: int, *, in_real_time: bool) -> EpisodeEnd:
        """Play an attempt on sites in their initial state, or abort it because they could not be reset."""
        try:
            async with self._sites.turn(task, is_first=number == store.epoch == 1) as turn:
                end = await self._play(turn, store, number, in_real_time=in_real_time)
                if end.is_unreachable:
                    self._sites.put_aside(turn.instances)
            return end.model_copy(update={"shared_state": turn.shares_state, "site_instances": turn.instances})
        except ResetFailed as fault:
            self._begin(store, number)
            end = self._unplayed(task, store, fault.message, blame=fault.blame, number=number)
            return end.model_copy(update={"is_unreachable": True, "site_instances": fault.instances})

    def _policy(self, task: Task) -> NetworkPolicy:
        return policy_of(task, self.config, self.closed)

    def _begin(self, store: TaskStore, number: int) -> None:
        max_steps = self.config.max_steps
        self.emit(TaskStarted(task_id=store.name, epoch=store.epoch, attempt=number, max_steps=max_steps))
        store.begin()

    async def _play(self, turn: SiteUse, store: TaskStore, number: int, *, in_real_time: bool) -> EpisodeEnd:
        task = turn.task
        self._begin(store, number)
        self.judge.prefetch(task)

        def observed(step: Step) -> None:
            begun = StepBegun(task_id=store.name, epoch=store.epoch, step=step.index + 1, task=task.task, url=step.url)
            self.emit(begun)
            if step.screenshot is not None:
                self.judge.prefetch(task, store.folder / step.screenshot)

        def stepped(step: Step) -> None:
            line, problem = (step.outcome.line, step.outcome.message) if step.outcome else (None, "")
            self.emit(
                StepDone(
                    task_id=store.name,
                    epoch=store.epoch,
                    step=step.index + 1,
                    reply=0 if step.reply_index is None else step.of_reply + 1,
                    max_steps=self.config.max_steps,
                    action=line or f"no action: {problem}",
                    executed=line is not None,
                    recorded=step,
                )
            )

        episode = Episode(
            task,
            self.config,
            self.browser,
            self.connect,
            store,
            number=number,
            observed=observed,
            stepped=stepped,
            in_real_time=in_real_time,
            can_replay=self._sites.can_reset(task),
            redaction=Redaction(
                (*self.config.secrets, *task.secrets),
                keep=task.named_fields,
                files=[each.sha256 for each in task.files if each.sha256],
                salt=self._salt,
            ),
            network=network_of(task, self.config, turn.policy, archives=self.archives, recorder=self.recorder),
        )
        if self.config.meter:
            key = key_of(store.name, store.epoch)
            start = AttemptStart(attempt=episode.context_id, task=key, began=time.time(), since=self._since)
            start.write(self.store.folder / LEDGER)
        return await episode.run()

    def _unplayed(
        self, task: Task, store: TaskStore, why: str, *, blame: Blame | None = None, number: int = 1
    ) -> EpisodeEnd:
        """The end of an attempt that was aborted before it began."""
        now = time.time()
        return EpisodeEnd(
            task=task,
            steps=(),
            stop_reason="environment_fault",
            max_steps=self.config.max_steps,
            error=why,
            blame=blame,
            number=number,
            epoch=store.epoch,
            started_at=now,
            ended_at=now,
        )

    async def _judge(self, result: Attempt, store: TaskStore) -> Attempt:
        with log_context(attempt=result.number):
            return await self._judged(result, store)

    async def _judged(self, result: Attempt, store: TaskStore) -> Attempt:
        began = time.monotonic()
        asking = TaskJudging(task_id=result.task.task_id, epoch=result.epoch, steps=result.steps_taken)
        # A run has one judge: verdicts by other code, from before the run was resumed, are repeated.
        scored = await judge_stored(
            store, self.judge, off_site=self.config.off_site, by_this_code=True, asking=lambda: self.emit(asking)
        )
        # No verdict means that the folder could not be read or written, which is not a failure of the participant.
        verdict = scored.verdict or Verdict(outcome="unscored", reason=scored.reason, judge=self.judge.info)
        result = await self._with_policies(result, store)
        judged = with_verdict(result, verdict).model_copy(update={"judge_s": round(time.monotonic() - began, 3)})
        store.write_result(judged.to_json())
        return self._done(judged)

    def _done(self, result: Attempt) -> Attempt:
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
                    attacked=result.task.attack is not None,
                    blame=result.blame,
                )
            )
        return result


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


def _is_current(result: Attempt, trajectory: Trajectory) -> bool:
    """Whether its policies and its attack were decided as this code decides them."""
    return evaluate_policies(trajectory) == result.policies and evaluate_attack(trajectory) == result.attack


def _stored(task: Task, store: TaskStore) -> tuple[Attempt, Trajectory] | None:
    """The attempt that an earlier process recorded for this task, or `None` if there is no result.

    Raises `TrajectoryError` for a result that is damaged, whose files differ from those recorded, or that belongs to
    another task or an older version. Such a task is played again.
    """
    path = store.folder / "result.json"
    if not path.exists():
        return None
    trajectory = load_trajectory(store.folder)
    result = trajectory.attempt
    if trajectory.is_foreign or not trajectory.is_digested:
        raise TrajectoryError("recorded by an older version, without digests", location=str(path))
    if result.network is not None and trajectory.network is None:
        raise TrajectoryError(trajectory.network_missing or "no network trace", location=str(path))
    # Compare dumps, which exclude login data, because that may have been renewed.
    if result.task.model_dump() != task.model_dump() or result.epoch != store.epoch:
        raise TrajectoryError("records a different task or epoch", location=str(path))
    return result, trajectory
