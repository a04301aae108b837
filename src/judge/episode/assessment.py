"""An assessment: every task of a request, some at a time, retried when aborted, judged, and written down.

What is finished stays as it is: a task with a settled `result.json` is not run again, an episode that is over but not
judged is only judged. So resuming a run and starting one are the same function.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from judge.browser.session import BrowserFactory
from judge.config import RunConfig
from judge.episode.episode import Episode, EpisodeEnd, Participant
from judge.events import (
    NO_ACTION,
    Event,
    RunDone,
    RunStarted,
    Sink,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
)
from judge.judges.base import Judge
from judge.judges.rescoring import judge_stored, verdict_on_file
from judge.record_limits import bounded
from judge.results.submission import TaskResult, TaskSummary
from judge.store import RunStore, TaskStore
from judge.trajectory.record import Trajectory
from shared.errors import EnvironmentFault, ParticipantError, TrajectoryError
from shared.models import Step, Task, Verdict

_log = logging.getLogger(__name__)


def _nobody(_: Event) -> None:
    """The sink of an assessment that nobody watches."""


@dataclass(frozen=True)
class Parts:
    """What an assessment is made with; everything foreign comes in from outside."""

    browsers: Callable[[Task], BrowserFactory]
    connect: Callable[[], AbstractAsyncContextManager[Participant]]
    judge: Judge
    store: RunStore
    emit: Sink = _nobody


class Assessment:
    """Runs tasks with the given parts. `run` returns one `TaskSummary` per task, in the order of the tasks."""

    def __init__(self, tasks: tuple[Task, ...], config: RunConfig, parts: Parts) -> None:
        self._tasks = tasks
        self._config = config
        self._parts = parts

    async def run(self) -> tuple[TaskSummary, ...]:
        """Run every task that is not settled yet. Cancellation stops all episodes and closes their browsers."""
        stores = [self._parts.store.task(task.task_id) for task in self._tasks]
        done: dict[int, TaskSummary] = {}
        for place, (task, store) in enumerate(zip(self._tasks, stores, strict=True)):
            if (kept := await asyncio.to_thread(self._kept, task, store)) is not None:
                done[place] = kept
        self._parts.emit(RunStarted(run_id=self._parts.store.run_id, total=len(self._tasks), kept=len(done)))
        places = asyncio.Semaphore(self._config.max_parallel)

        async def one(place: int) -> None:
            task, store = self._tasks[place], stores[place]
            async with places:
                try:
                    result = await self._task(task, store)
                except OSError as error:
                    # A full disk costs this task its record, and is said; the others go on.
                    result = self._done(self._lost(task, f"cannot write results: {error.strerror or error}"))
                # Isolation boundary: an internal error fails only this task.
                except Exception as error:  # noqa: BLE001
                    _log.exception("task %s", task.task_id)
                    result = self._done(self._lost(task, f"{type(error).__name__}; see the log"))
                done[place] = TaskSummary.of(result)

        # Nobody else holds on to the jobs: one that is over goes at once, with all that its episode left in it.
        async with asyncio.TaskGroup() as group:
            for place in range(len(stores)):
                if place not in done:
                    group.create_task(one(place))
        results = tuple(done[place] for place in range(len(stores)))
        counts = [result.outcome for result in results]
        scored = counts.count("success") + counts.count("failure")
        self._parts.emit(RunDone(successes=counts.count("success"), scored=scored, total=len(results)))
        return results

    def _kept(self, task: Task, store: TaskStore) -> TaskSummary | None:
        """The stored result when it needs nothing more: whole evidence, and this judge's verdict on it."""
        try:
            stored = _stored(task, store)
        # Whatever it is, `_task` meets it again inside its isolation boundary, and reports it.
        except Exception:  # noqa: BLE001
            return None
        result, trajectory = stored or (None, None)
        if (
            result is None
            or trajectory is None
            or result.verdict is None
            or result.outcome not in ("success", "failure")
        ):
            return None
        found = verdict_on_file(store, self._parts.judge.judges_of(task)[0].id, trajectory)
        is_same = found is not None and (found.outcome, found.reason) == (result.verdict.outcome, result.verdict.reason)
        return TaskSummary.of(result) if is_same else None

    async def _task(self, task: Task, store: TaskStore) -> TaskResult:
        first = store.attempts() + 1
        try:
            stored = await asyncio.to_thread(_stored, task, store)
        except TrajectoryError as error:
            _log.warning("task %s is played again: %s", task.task_id, error)
            stored, cause = None, f"the recorded attempt is damaged: {error.message}"
            self._parts.emit(TaskRetried(task_id=task.task_id, attempt=max(1, first - 1), cause=cause))
        if stored is not None and not stored[0].is_aborted:
            return await self._judge(stored[0], store)
        last = first + self._config.max_task_retries
        is_astray = True
        for attempt in range(first, last + 1):
            end = await self._attempt(task, store, attempt)
            is_astray = is_astray and end.is_astray
            if not end.is_aborted or attempt == last:
                break
            self._parts.emit(TaskRetried(task_id=task.task_id, attempt=attempt, cause=end.error or end.stop_reason))
        if end.is_aborted and is_astray:
            end = _blamed(end)
        result = self._result(task, end, attempt)
        # On disk before the judge is asked: a crash from here on costs no episode.
        store.write_result(result.to_json())
        if end.is_aborted:
            return self._done(result)
        return await self._judge(result, store)

    async def _attempt(self, task: Task, store: TaskStore, attempt: int) -> EpisodeEnd:
        self._parts.emit(TaskStarted(task_id=task.task_id, attempt=attempt, max_steps=self._config.max_steps))
        store.begin()
        await self._parts.judge.prefetch_task(task)
        began, clock = time.time(), time.monotonic()
        try:
            async with self._parts.connect() as participant:
                hooks = _Hooks(task, self._config, self._parts, store)
                return await Episode(task, self._config, self._parts.browsers(task), participant, store, hooks).run()
        except (ParticipantError, EnvironmentFault) as error:
            # The card could not be read. Whose fault that is, the error says.
            return EpisodeEnd(
                steps=(),
                stop_reason="participant_error" if isinstance(error, ParticipantError) else "environment_fault",
                error=error.message,
                blame=error.blame,
                started_at=began,
                ended_at=began + (time.monotonic() - clock),
            )

    def _lost(self, task: Task, why: str) -> TaskResult:
        now = time.time()
        end = EpisodeEnd(
            steps=(), stop_reason="environment_fault", error=why, blame="internal", started_at=now, ended_at=now
        )
        return self._result(task, end, attempt=1)

    def _result(self, task: Task, end: EpisodeEnd, attempt: int) -> TaskResult:
        end = bounded(end)
        return TaskResult(
            task=task,
            steps=end.steps,
            stop_reason=end.stop_reason,
            max_steps=self._config.max_steps,
            final_answer=end.final_answer,
            error=end.error,
            blame=end.blame,
            attempt=attempt,
            started_at=end.started_at,
            ended_at=end.ended_at,
            participant_s=end.participant_s,
            navigations=end.navigations,
            versions=end.versions,
        )

    async def _judge(self, result: TaskResult, store: TaskStore) -> TaskResult:
        asked = time.monotonic()
        judge, said = self._parts.judge, TaskJudging(task_id=result.task.task_id, steps=result.steps_taken)
        scored = await judge_stored(store, judge, off_site=self._config.off_site, asking=lambda: self._parts.emit(said))
        # Without a verdict the folder could not be read back or written to: nothing is known, never a failure.
        verdict = scored.verdict or Verdict(outcome="unscored", reason=scored.reason, judge=judge.info)
        judged = result.model_copy(update={"verdict": verdict, "judge_s": round(time.monotonic() - asked, 3)})
        store.write_result(judged.to_json())
        return self._done(judged)

    def _done(self, result: TaskResult) -> TaskResult:
        reason = result.verdict.reason if result.verdict else result.error or result.stop_reason
        self._parts.emit(
            TaskDone(task_id=result.task.task_id, outcome=result.outcome, steps=result.steps_taken, reason=reason)
        )
        return result


def _blamed(end: EpisodeEnd) -> EpisodeEnd:
    """The end of a participant that led the browser off the task's website in every attempt, to where it broke.

    Left aborted, a task that is lost could be kept out of the rates that way.
    """
    error = f"led the browser off the task's website, where it broke each time: {end.error}"
    return end.model_copy(update={"stop_reason": "participant_error", "error": error, "blame": "participant"})


def _stored(task: Task, store: TaskStore) -> tuple[TaskResult, Trajectory] | None:
    """What an earlier process left of this task, or `None` when it left no result.

    Raises `TrajectoryError` for a result that is not whole: damaged, with other files than it recorded, of another task
    or of an older version. Such a task is played again.
    """
    path = store.folder / "result.json"
    if not path.exists():
        return None
    trajectory = store.trajectory()
    result = TaskResult.from_json(store.read_result() or {}, source=str(path))
    if not trajectory.is_digested:
        raise TrajectoryError(f"{path}: recorded by an older version, without digests")
    if result.task != task:
        raise TrajectoryError(f"{path}: records another task than the one of this run")
    return result, trajectory


class _Hooks:
    """Connects an episode to the judge that works ahead and to whoever watches."""

    def __init__(self, task: Task, config: RunConfig, parts: Parts, store: TaskStore) -> None:
        self._task = task
        self._config = config
        self._parts = parts
        self._folder = str(store.folder)

    async def observed(self, step: Step) -> None:
        await self._parts.judge.prefetch_step(self._task, step, self._folder)

    async def stepped(self, step: Step) -> None:
        happened = step.outcome.line if step.outcome and step.outcome.line else None
        problem = step.outcome.message if step.outcome else ""
        self._parts.emit(
            StepDone(
                task_id=self._task.task_id,
                step=step.index + 1,
                max_steps=self._config.max_steps,
                action=happened or f"{NO_ACTION}: {problem}",
            )
        )
