"""Judges recorded attempts with the checks, key points and policies of an edited scenario, as if it had been played.

The recording does not change: if it lacks evidence that an edited check needs, the verdict is unscored.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from judge.evaluators.policies import evaluate_policies
from judge.judges.base import Judge, Workload, judge_id
from judge.records.edits import EDITED, Edit
from judge.records.policies import PolicyResult
from judge.records.tasks import Task
from judge.records.verdicts import Verdict
from judge.trajectory.record import POLICIES, Trajectory
from shared.files import sha256_json
from shared.models import Record
from shared.text import excerpt, plain

_RESULTS: TypeAdapter[tuple[PolicyResult, ...]] = TypeAdapter(tuple[PolicyResult, ...])


class EditedJudge(Judge):
    """Another judge, which sees each task as a scenario now has it.

    `id` covers the checks, key points and policies of the whole scenario, so its verdicts are stored beside the run's
    own.
    """

    def __init__(self, judge: Judge, edits: Mapping[str, Edit], scenario: str) -> None:
        self._judge, self._edits, self._scenario = judge, edits, scenario
        digest = sha256_json({name: edit.model_dump(mode="json") for name, edit in edits.items()})
        note = f"judged with the tasks of {excerpt(scenario)}"
        self.id = judge_id(judge.info.method, judge.id, digest)
        self.info = judge.info.model_copy(update={"note": note})

    def judges_of(self, task: Task) -> tuple[Judge, ...]:
        """The judges of the edited task."""
        judges = self._judge.judges_of(self._edited(task))
        return tuple(EditedJudge(one, self._edits, self._scenario) for one in judges)

    def recompute(self, trajectory: Trajectory) -> Verdict | None:
        """The verdict, if the recording alone decides it."""
        verdict = self._judge.recompute(self._with_edit(trajectory))
        return None if verdict is None else self._labelled(verdict, trajectory)

    def probe(self) -> None:
        """See `Judge`."""
        self._judge.probe()

    def workload(self, trajectory: Trajectory) -> Workload:
        """What the model will be asked about the edited task."""
        return self._judge.workload(self._with_edit(trajectory))

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """The verdict on the edited task."""
        return self._labelled(await self._judge.judge(self._with_edit(trajectory)), trajectory)

    def confirmed(self, verdict: Verdict, trajectory: Trajectory) -> Verdict:
        """The verdict, confirmed as the edited judge's."""
        return self._judge.confirmed(verdict, self._with_edit(trajectory))

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()

    def _policy_results(self, trajectory: Trajectory) -> dict[str, Any]:
        """What became of the edited policies; they change no verdict."""
        results = evaluate_policies(self._with_edit(trajectory))
        return {POLICIES: [each.model_dump(mode="json") for each in results]} if results else {}

    def _edited(self, task: Task) -> Task:
        edit = self._edits.get(task.task_id)
        return task if edit is None else edit.of_task(task)

    def _with_edit(self, trajectory: Trajectory) -> Trajectory:
        return trajectory.as_task(self._edited(trajectory.task))

    def _labelled(self, verdict: Verdict, trajectory: Trajectory) -> Verdict:
        task = trajectory.task
        info = verdict.judge or self.info
        notes = "; ".join(filter(None, (info.note, self.info.note)))
        edit = self._edits.get(task.task_id, Edit.of(task)).model_dump(mode="json")
        return verdict.model_copy(
            update={
                "judge": info.model_copy(update={"note": notes}),
                "evidence": {
                    **verdict.evidence,
                    EDITED: {"scenario": self._scenario, **edit},
                    **self._policy_results(trajectory),
                },
            }
        )


def policies_in(verdict: Verdict | None) -> tuple[PolicyResult, ...]:
    """What became of the edited policies; empty if there are none."""
    stored_policies = verdict.evidence.get(POLICIES) if verdict is not None else None
    try:
        return _RESULTS.validate_python(stored_policies or ())
    except ValidationError:
        return ()


class EditedTasks(Record):
    """Recorded folders and the tasks of an edited scenario.

    `refused` are sentences on tasks that no longer are the recorded ones, `absent` the ids that the scenario lacks.
    """

    folders: tuple[Path, ...]
    refused: tuple[str, ...]
    absent: tuple[str, ...]


def paired(recorded: Mapping[Path, Task | None], tasks: Sequence[Task]) -> EditedTasks:
    """Match recorded tasks with a scenario's by id. A folder whose task cannot be read (`None`) is kept."""
    known = {task.task_id: task for task in tasks}
    folders: list[Path] = []
    refusals: dict[str, None] = {}
    absent: dict[str, None] = {}
    for folder, task in recorded.items():
        if task is None:
            folders.append(folder)
        elif (now := known.get(task.task_id)) is None:
            absent[task.task_id] = None
        elif problem := _difference(task, now):
            refusals[f"{task.task_id}: not judged: {problem}"] = None
        else:
            folders.append(folder)
    return EditedTasks(folders=tuple(folders), refused=tuple(refusals), absent=tuple(absent))


def _difference(recorded: Task, now: Task) -> str:
    """Why a recording of one task cannot be judged as the other; empty if it can."""
    for name, before, after in (
        ("website", recorded.website, now.website),
        ("task", plain(recorded.task), plain(now.task)),
    ):
        if before != after:
            return f"its {name} was {excerpt(before, 120)} when it was played, and is now {excerpt(after, 120)}"
    return ""
