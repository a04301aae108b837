"""An assessment: plays every task of a request, retries aborted attempts, judges them, and records everything.

Finished work is kept: a task with a settled `result.json` is not played again, and one that was played but not judged
is only judged. So the same function starts and resumes a run.
"""

import asyncio
import logging
from dataclasses import dataclass

from judge.episode.attempts import Attempts, AttemptSetup
from judge.episode.episode import Connect
from judge.evaluators.watched import evaluate_watched
from judge.judges.rescoring import (
    differences,
    is_by_this_code,
    is_unreached,
    recomputed,
    verdict_on_file,
    with_last_probe,
)
from judge.records.events import RequestWarning, RunDone, RunStarted, Sink
from judge.records.tasks import Task
from judge.results.submission import TaskSummary
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Attempt, Trajectory
from shared.errors import TrajectoryError, is_full
from shared.logs import log_context

_log = logging.getLogger(__name__)


@dataclass
class Assessment:
    """The tasks of one run, with what plays, judges and records them."""

    tasks: tuple[Task, ...]
    setup: AttemptSetup
    connect: Connect
    store: RunStore
    emit: Sink

    def __post_init__(self) -> None:
        # Why no further task is begun.
        self._unwritable = ""
        # Whether a warning says that the judge model cannot be reached.
        self._has_noted = False
        for task in self.tasks:
            self.setup.require(task)

    async def run(self) -> tuple[TaskSummary, ...]:
        """Play and judge every task not settled yet. Returns one `TaskSummary` per task and epoch, in order.

        An epoch begins once all tasks of the previous one have begun, so that a stopped run has complete epochs.
        Cancellation stops all attempts and closes their browsers.
        """
        epochs = self.setup.config.epochs
        plays = [(task, self.store.task(task.task_id, epoch)) for epoch in range(1, epochs + 1) for task in self.tasks]
        done: dict[str, TaskSummary] = {}
        for task, store in plays:
            if (settled := await asyncio.to_thread(self._settled_result, task, store)) is not None:
                done[store.key] = settled
        attacked = sum(task.clean_task is not None for task in self.tasks)
        self.emit(
            RunStarted(
                run_id=self.store.run_id, total=len(self.tasks), kept=len(done), epochs=epochs, attacked=attacked
            )
        )
        todo = [play for play in plays if play[1].key not in done]

        async def settle(play: tuple[Task, TaskStore], is_last: bool) -> bool:
            task, store = play
            done[store.key], is_settled = await self._summary(task, store, is_last=is_last)
            return is_settled

        await with_last_probe(todo, settle, self.setup.judge, at_once=self.setup.config.max_parallel)
        results = tuple(done[store.key] for _, store in plays)
        # Tasks under attacks and variants have separate figures.
        outcomes = [result.outcome for result in results if result.task.clean_task is None]
        scored = outcomes.count("success") + outcomes.count("failure")
        self.emit(RunDone(successes=outcomes.count("success"), scored=scored, total=len(outcomes), epochs=epochs))
        return results

    async def _summary(self, task: Task, store: TaskStore, *, is_last: bool) -> tuple[TaskSummary, bool]:
        """How a task ended; and whether it is settled: otherwise it waits for the judge model."""
        attempts = Attempts(self.setup, task, store, self.connect, self.emit, is_last_try=is_last)
        with log_context(task=store.key):
            result = await self._result(attempts)
        is_settled = is_last or not is_unreached(result.verdict)
        if not (is_settled or self._has_noted):
            self._has_noted = True
            why = result.verdict.reason if result.verdict else ""
            self.emit(
                RequestWarning(text=f"{why}; it is tried again every minute, and what waits is judged at the end")
            )
        return TaskSummary.of(result, self.setup.judge.judges_of(task)[0].id), is_settled

    async def _result(self, attempts: Attempts) -> Attempt:
        if self._unwritable:
            return attempts.done(attempts.unplayed(self._unwritable, blame="internal"))
        try:
            return await self._settle(attempts)
        except OSError as error:
            why = f"cannot write results: {error.strerror or error}"
            if is_full(error):
                self._unwritable = f"not begun, because an earlier task {why}"
            return attempts.done(attempts.unplayed(why, blame="internal"))
        # Isolation boundary: an internal error fails only this task.
        except Exception as error:  # noqa: BLE001
            _log.exception("task %s", attempts.store.key)
            return attempts.done(attempts.unplayed(f"{type(error).__name__}; see the log", blame="internal"))

    def _settled_result(self, task: Task, store: TaskStore) -> TaskSummary | None:
        """The stored result if it is settled: undamaged evidence, and this judge's verdict on it."""
        judge = self.setup.judge.judges_of(task)[0]
        try:
            stored = _stored(task, store)
            recomputed_result = None if stored is None else recomputed(judge, stored[1], self.setup.config.off_site)
            is_current = stored is None or _is_current(*stored)
        # `_settle` meets any error again inside the isolation boundary, and reports it.
        except Exception:  # noqa: BLE001
            return None
        if stored is None:
            return None
        result, trajectory = stored
        counted = result.verdict
        if result.excluded is not None and result.excluded == self.setup.config.exclude.get(task.task_id):
            return TaskSummary.of(result, self.setup.judge.judges_of(task)[0].id)
        if counted is None or result.outcome not in ("success", "failure"):
            return None
        verdict = verdict_on_file(store, judge.id, trajectory)
        # Otherwise `result.json` does not contain this judge's verdict, or other code gave it: judge again.
        is_same = verdict is not None and (verdict.outcome, verdict.reason) == (counted.outcome, counted.reason)
        # An edited verdict must not stand either, if the recording alone decides it.
        is_true = verdict is not None and (recomputed_result is None or not differences(verdict, recomputed_result))
        is_fit = is_same and is_true and is_current and is_by_this_code(verdict, judge)
        return TaskSummary.of(result, judge.id) if is_fit else None

    async def _settle(self, attempts: Attempts) -> Attempt:
        task, store = attempts.task, attempts.store
        if (reason := self.setup.config.exclude.get(task.task_id)) is not None:
            store.begin()
            left_out = attempts.unplayed(reason).model_copy(update={"stop_reason": "excluded"})
            store.write_result(left_out.to_json())
            return attempts.done(left_out)
        first = store.attempts() + 1
        try:
            stored = await asyncio.to_thread(_stored, task, store)
        except TrajectoryError as error:
            _log.warning("task %s is played again: %s", store.key, error)
            stored, cause = None, f"the recorded attempt is damaged: {error.message}"
            attempts.retried(max(1, first - 1), cause)
        if store.is_interrupted:
            # It uses up no retry: however often the judge is stopped, the task is played to its end.
            attempts.retried(first - 1, "the judge was stopped during the attempt", "internal")
        if stored is not None and not stored[0].is_aborted:
            return await attempts.judge(stored[0])
        return await attempts.play(first)


def _is_current(result: Attempt, trajectory: Trajectory) -> bool:
    """Whether its policies and its attack were decided as this code decides them."""
    return all(getattr(result, key) == value for key, value in evaluate_watched(trajectory).items())


def _stored(task: Task, store: TaskStore) -> tuple[Attempt, Trajectory] | None:
    """The attempt that an earlier process recorded for this task, or `None` if there is no result.

    Raises `TrajectoryError` for a damaged result, one with other files than those recorded, or one of
    another task. Such a task is played again.
    """
    path = store.folder / "result.json"
    if not path.exists():
        return None
    trajectory = load_trajectory(store.folder)
    result = trajectory.attempt
    if trajectory.is_foreign:
        raise TrajectoryError("recorded by another program", location=str(path))
    if result.network is not None and trajectory.network is None:
        raise TrajectoryError(trajectory.network_missing or "no network trace", location=str(path))
    # Compare dumps, which exclude login data, because that may have been renewed.
    if result.task.model_dump() != task.model_dump() or result.epoch != store.epoch:
        raise TrajectoryError("records a different task or epoch", location=str(path))
    return result, trajectory
