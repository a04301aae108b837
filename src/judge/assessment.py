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

from judge.config import RunConfig
from judge.environment import BrowserFactory
from judge.episode import Episode, EpisodeEnd, Participant
from judge.events import (
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
from judge.results import TaskResult, TaskSummary
from judge.store import RunStore, TaskStore
from judge.without_judge import verdict_without_judge
from shared.errors import ParticipantError, TrajectoryError
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
        settled = ((place, self._settled(store)) for place, store in enumerate(stores))
        done = {place: TaskSummary.of(result) for place, result in settled if result is not None}
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

    def _settled(self, store: TaskStore) -> TaskResult | None:
        """The stored result when it needs nothing more: scored, as success or failure."""
        result = _stored(store)
        return result if result is not None and result.verdict and result.outcome in ("success", "failure") else None

    async def _task(self, task: Task, store: TaskStore) -> TaskResult:
        stored = _stored(store)
        if stored is not None and not stored.is_aborted:
            return await self._judge(stored, store)
        first = stored.attempt + 1 if stored else 1
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
        await self._parts.judge.prefetch_task(task)
        began, clock = time.time(), time.monotonic()
        try:
            async with self._parts.connect() as participant:
                hooks = _Hooks(task, self._config, self._parts, store)
                return await Episode(task, self._config, self._parts.browsers(task), participant, store, hooks).run()
        except ParticipantError as error:
            # Not even the card could be read: the participant's fault before the first step.
            return EpisodeEnd(
                steps=(),
                stop_reason="participant_error",
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
            versions=end.versions,
        )

    async def _judge(self, result: TaskResult, store: TaskStore) -> TaskResult:
        asked = time.monotonic()
        judge = self._parts.judge
        verdict = verdict_without_judge(result.stop_reason, result.error, result.steps, self._config.off_site)
        if verdict is not None:
            verdict = verdict.model_copy(update={"judge": judge.info})
        else:
            self._parts.emit(TaskJudging(task_id=result.task.task_id, steps=len(result.steps)))
            verdict = store.read_verdict(judge.id)
            if verdict is None or verdict.outcome == "unscored":
                verdict = await self._asked(store)
        store.write_verdict(judge.id, verdict)
        judged = result.model_copy(update={"verdict": verdict, "judge_s": round(time.monotonic() - asked, 3)})
        store.write_result(judged.to_json())
        return self._done(judged)

    async def _asked(self, store: TaskStore) -> Verdict:
        """The judge's verdict; where the judge itself breaks, that nothing is known."""
        judge = self._parts.judge
        try:
            return await judge.judge(store.trajectory())
        # Isolation boundary: an internal error costs only this verdict; the attempt can be judged again.
        except Exception as error:  # noqa: BLE001
            _log.exception("judging %s", store.folder.name)
            reason = f"internal error while judging ({type(error).__name__}); see the log"
            return Verdict(outcome="unscored", reason=reason, judge=judge.info)

    def _done(self, result: TaskResult) -> TaskResult:
        reason = result.verdict.reason if result.verdict else result.error or result.stop_reason
        self._parts.emit(
            TaskDone(task_id=result.task.task_id, outcome=result.outcome, steps=len(result.steps), reason=reason)
        )
        return result


def _blamed(end: EpisodeEnd) -> EpisodeEnd:
    """The end of a participant that led the browser off the task's website in every attempt, to where it broke.

    Left aborted, a task that is lost could be kept out of the rates that way.
    """
    error = f"led the browser off the task's website, where it broke each time: {end.error}"
    return end.model_copy(update={"stop_reason": "participant_error", "error": error, "blame": "participant"})


def _stored(store: TaskStore) -> TaskResult | None:
    """What an earlier run left, when it can be read; a damaged file counts as none and the task runs again."""
    value = store.read_result()
    if value is None:
        return None
    try:
        return TaskResult.from_json(value, source=str(store.folder / "result.json"))
    except TrajectoryError:
        return None


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
                action=happened or f"no action: {problem}",
            )
        )
