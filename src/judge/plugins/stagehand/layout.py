"""Reads the folders that Stagehand's evaluations keep for their verifier: `trajectory.json`, `screenshots/`, `scores/`.

Each step has the page after it (`probeEvidence`), so a step's page is the one that the step before it led to. The
verifier's results (`scores/*.json`) are verdicts, with its criteria and their points.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, Field

from judge.records.steps import Outcome, Step, StopReason
from judge.records.verdicts import Verdict
from judge.trajectory.foreign import (
    MAX_FOREIGN_STEPS,
    foreign_task,
    from_steps,
    period_of,
    read_document,
    read_object,
    shown_page,
    starts_like,
    tool_line,
)
from judge.trajectory.foreign_verdicts import foreign_verdict, of_invalid_task, points_of, read_criteria, tokens_of
from judge.trajectory.formats import Format, FormatReader
from judge.trajectory.paths import usable_id
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.fields import as_mapping, as_mappings
from shared.models import Action
from shared.text import clip

_FILE = "trajectory.json"
_HEAD = re.compile(rb'"task"\s*:\s*\{[^{}]*"instruction"\s*:')
_MAX_SCORES = 50
_ENDS: Mapping[str, tuple[StopReason, str | None]] = MappingProxyType(
    {
        "complete": ("finished", None),
        "stalled": ("participant_error", "it stalled"),
        "aborted": ("environment_fault", "the run was aborted"),
        "error": ("environment_fault", "the run ended with an error"),
    }
)


class _TaskSpec(BaseModel):
    id: str = ""
    instruction: str = Field(min_length=1)
    initUrl: str | None = None
    precomputedRubric: dict[str, Any] | None = None


class _HarnessStep(BaseModel):
    actionName: str
    actionArgs: dict[str, Any] = Field(default_factory=dict)
    reasoning: str = ""
    probeEvidence: dict[str, Any] = Field(default_factory=dict)
    toolOutput: dict[str, Any] = Field(default_factory=dict)
    startedAt: str | None = None
    finishedAt: str | None = None


class _HarnessRun(BaseModel):
    """The fields that are read."""

    task: _TaskSpec
    steps: tuple[_HarnessStep, ...] = Field(max_length=MAX_FOREIGN_STEPS)
    status: str
    finalAnswer: str | None = None
    finalObservation: dict[str, Any] | None = None
    usage: dict[str, Any] = Field(default_factory=dict)
    timing: dict[str, Any] = Field(default_factory=dict)


def files(folder: Path) -> list[Path]:
    """The trajectory, if the folder has one of this layout: other tools use the name for other files."""
    path = folder / _FILE
    return [path] if starts_like(path, _HEAD) else []


def load(folder: Path) -> Trajectory:
    """Read a folder. Raises `TrajectoryError`, which names the file, the key and what is missing."""
    document = read_document(folder, _FILE, _HarnessRun)
    task = document.task
    known = {
        "task_id": usable_id(task.id or folder.resolve().name),
        "task": task.instruction,
        "website": task.initUrl,
        "scenario_key_points": list(_points(task.precomputedRubric)),
    }
    unknown: tuple[StopReason, str | None] = ("environment_fault", f"unknown status {document.status[:100]!a}")
    stop_reason, error = _ENDS.get(document.status, unknown)
    moments = [moment for step in document.steps for moment in (step.startedAt, step.finishedAt)]
    return from_steps(
        folder,
        foreign_task(folder, known, source=folder / _FILE),
        _steps(folder, document),
        period=period_of((*document.timing.values(), *moments)),
        stop_reason=stop_reason,
        final_answer=document.finalAnswer or None,
        error=error,
        claimed_usage=tokens_of(document.usage.get("input_tokens"), document.usage.get("output_tokens")),
    )


def _points(rubric: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    for item in as_mappings(as_mapping(rubric).get("items")):
        points, condition = points_of(item.get("maxPoints", item.get("max_points"))), item.get("condition")
        head, more = (str(item.get(key) or "") for key in ("criterion", "description"))
        if not head or not points:
            continue
        only_if = {"condition": clip(condition, 1_000)} if isinstance(condition, str) and condition else {}
        yield {"text": clip(": ".join(filter(None, (head, more))), 1_000), "weight": points, **only_if}


def _steps(folder: Path, document: _HarnessRun) -> Iterator[Step]:
    page: Mapping[str, Any] = {"url": document.task.initUrl}
    for index, step in enumerate(document.steps):
        output = step.toolOutput
        is_ok = output.get("ok") is not False
        message = "" if is_ok else clip(str(output.get("error") or ""), 3_000)
        line = tool_line(step.actionName, step.actionArgs) if is_ok else None
        yield Step(
            index=index,
            title="",
            action=Action(tool=step.actionName, params=step.actionArgs, thought=step.reasoning),
            outcome=Outcome(ok=is_ok, message=message, line=line),
            **_page(folder, page),
        )
        page = step.probeEvidence or {"url": page.get("url")}
    last = document.finalObservation or page
    if last.get("screenshotPath"):
        yield Step(index=len(document.steps), title="", **_page(folder, last))


def _page(folder: Path, page: Mapping[str, Any]) -> dict[str, Any]:
    return shown_page(folder, folder / _FILE, page.get("screenshotPath"), page.get("url"))


def verdicts(folder: Path) -> dict[str, Verdict]:
    """The verifier's results as verdicts, by id; unscored if a file cannot be read."""
    paths = sorted((folder / "scores").glob("*.json"))[:_MAX_SCORES]
    return {f"stagehand-{usable_id(path.stem)}": _verdict(folder, path) for path in paths}


def _verdict(folder: Path, path: Path) -> Verdict:
    method = f"stagehand {path.stem}"
    try:
        result = read_object(folder, f"scores/{path.name}")
        if not isinstance(is_success := result.get("outcomeSuccess"), bool):
            raise TrajectoryError("key 'outcomeSuccess' is missing or not true or false", location=str(path))
    except TrajectoryError as error:
        return foreign_verdict(method, None, error)
    criteria, marks = read_criteria(
        {
            **{key: item.get(key) for key in ("criterion", "justification")},
            "max_points": item.get("maxPoints"),
            "earned_points": item.get("earnedPoints"),
            # Without points, the criterion's condition did not hold.
            "is_condition_met": item.get("earnedPoints") is not None,
        }
        for item in as_mappings(result.get("perCriterion"))
    )
    steps = as_mapping(result.get("rawSteps"))
    validity = as_mapping(result.get("taskValidity"))
    known = foreign_verdict(
        method,
        is_success,
        steps.get("reasoning") or result.get("explanation"),
        key_points=tuple(str(each["requirement"]) for each in criteria),
        evidence={"rubric": {"criteria": criteria, "marks": marks, "success": "outcome", "task": dict(validity)}},
    )
    is_invalid = validity.get("isInvalid") is True
    return of_invalid_task(known, validity.get("invalidTaskCodes") or ()) if is_invalid else known


FORMAT = Format(reader=FormatReader(files=files, load=load, verdicts=verdicts))
