"""Reads the folders of Fara 1.5, webeval's successor: one data point each.

A data point is `data_point.json`, or the same in parts: `task.json`, `solver_log/status.json`,
`solver_log/events.jsonl` and `verification.jsonl`. Its events are observations (with a screenshot: the page) and
actions. An observation that names an action is the page after it; the others are the pages before the next one.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from judge.plugins.webeval.layout import ENDINGS, NO_ANSWER, action_line
from judge.plugins.webeval.recorded import read_lines, usage_of
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
    tool_line,
    validated,
)
from judge.trajectory.foreign_verdicts import foreign_verdict
from judge.trajectory.formats import Format, FormatReader
from judge.trajectory.paths import usable_id
from judge.trajectory.record import Trajectory
from shared.claims import ClaimedUsage
from shared.fields import as_mapping, as_mappings
from shared.models import Action
from shared.text import clip

_FILE = "data_point.json"
_TASK, _LOG = "task.json", "solver_log"
_STATUS, _EVENTS, _VERIFICATION = f"{_LOG}/status.json", f"{_LOG}/events.jsonl", "verification.jsonl"
# Where verifiers put their verdict, if not in the score.
_FLAGS = ("output_success", "rubric_is_success")


class _PointTask(BaseModel):
    task_id: str | None = None
    instruction: str = Field(min_length=1)


class _Outcome(BaseModel):
    answer: str = ""


class _Log(BaseModel):
    events: tuple[dict[str, Any], ...] = ()
    status: str
    outcome: _Outcome | None = None


class _DataPoint(BaseModel):
    """The fields that are read."""

    task: _PointTask
    solver_log: _Log
    verification: dict[str, dict[str, Any]] = Field(default_factory=dict)


def files(folder: Path) -> list[Path]:
    """The data point, whole or its task and status."""
    whole, parts = folder / _FILE, [folder / _TASK, folder / _STATUS]
    return [whole] if whole.is_file() else parts if all(path.is_file() for path in parts) else []


def load(folder: Path) -> Trajectory:
    """Read a folder. Raises `TrajectoryError`, which names the file, the key and what is missing."""
    point, source = _read(folder)
    log = point.solver_log
    steps = tuple(_steps(folder, source, log.events))
    acting = [step for step in steps if step.action is not None]
    stop_reason, error = _end(log, acting)
    known = {"task_id": usable_id(point.task.task_id or folder.resolve().name), "task": point.task.instruction}
    return from_steps(
        folder,
        foreign_task(folder, known, source=source).model_copy(update={"task_id": known["task_id"]}),
        steps,
        period=period_of(event.get("timestamp") for event in log.events),
        stop_reason=stop_reason,
        final_answer=log.outcome.answer if log.outcome and stop_reason == "finished" else None,
        error=error,
        claimed_usage=_usage(log.events),
    )


def verdicts(folder: Path) -> dict[str, Verdict]:
    """The verifiers' results as verdicts, by id."""
    point, _ = _read(folder)
    found = {}
    for name, result in point.verification.items():
        score = result.get("score")
        flags = [result[key] for key in _FLAGS if isinstance(result.get(key), bool)]
        is_success = flags[0] if flags else score >= 0.5 if isinstance(score, int | float) else None
        found[f"fara-{usable_id(name)}"] = foreign_verdict(f"fara {name}", is_success, result.get("reasoning"))
    return found


def _read(folder: Path) -> tuple[_DataPoint, Path]:
    if (folder / _FILE).is_file():
        return read_document(folder, _FILE, _DataPoint), folder / _FILE
    status = read_object(folder, _STATUS)
    events, results = (
        tuple(read_lines(folder, name)) if (folder / name).exists() else () for name in (_EVENTS, _VERIFICATION)
    )
    parts = {
        "task": read_object(folder, _TASK),
        "solver_log": {**status, "events": events},
        "verification": {str(each.get("verifier_name")): each for each in results},
    }
    return validated(_DataPoint, folder, parts, name=_LOG), folder / _TASK


def _steps(folder: Path, source: Path, events: tuple[dict[str, Any], ...]) -> Iterator[Step]:
    """A step for each action, with the page before it; then the page after the last one."""
    errors = {event.get("action_id"): str(event["error"]) for event in events if event.get("error")}
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    index = 0
    for event in events:
        if "action_name" in event:
            yield _step(folder, source, index, event, before or after, errors.get(event.get("id")))
            index, before, after = index + 1, {}, {}
        elif event.get("screenshot_path"):
            if event.get("action_id"):
                after = event
            else:
                before = event
    pages = [each for each in (after, before) if each]
    if not events:
        pages = [{"screenshot_path": path.name} for path in sorted(folder.glob("screenshot_*.png"))[:MAX_FOREIGN_STEPS]]
    for place, page in enumerate(pages[:1] if events else pages, index):
        yield Step(index=place, title="", **_page(folder, source, page))


def _step(
    folder: Path, source: Path, index: int, event: Mapping[str, Any], page: Mapping[str, Any], error: str | None
) -> Step:
    content = as_mapping(event.get("content"))
    arguments = {key: value for key, value in as_mapping(content.get("arguments")).items() if key != "action"}
    thought = arguments.pop("thoughts", "")
    tool = str(event.get("action_name") or content.get("action") or "unknown")
    line = action_line(tool, arguments) or tool_line(tool, arguments)
    return Step(
        index=index,
        title="",
        action=Action(tool=tool, params=arguments, thought=thought if isinstance(thought, str) else ""),
        outcome=Outcome(ok=error is None, message=clip(error or "", 3_000), line=None if error else line),
        **_page(folder, source, page),
    )


def _page(folder: Path, source: Path, event: Mapping[str, Any]) -> dict[str, Any]:
    return shown_page(folder, source, event.get("screenshot_path"), event.get("url"))


def _end(log: _Log, acting: list[Step]) -> tuple[StopReason, str | None]:
    if log.status == "waiting_for_user":
        return "participant_error", "it asked the user, and nobody answered"
    if log.status != "complete":
        return "environment_fault", f"status {log.status[:100]!a}, not 'complete'"
    last = acting[-1].action if acting else None
    is_ended = last is None or last.tool in ENDINGS
    has_answer = log.outcome is not None and log.outcome.answer not in ("", NO_ANSWER)
    return ("finished" if is_ended and has_answer else "max_steps"), None


def _usage(events: tuple[dict[str, Any], ...]) -> ClaimedUsage | None:
    """The tokens of all calls of the model."""
    messages = [
        message
        for event in events
        for message in as_mappings(as_mapping(event.get("llm_conversation")).get("messages"))
        if isinstance(message.get("usage"), dict)
    ]
    return usage_of({json.dumps(place): message["usage"] for place, message in enumerate(messages)})


FORMAT = Format(reader=FormatReader(files=files, load=load, verdicts=verdicts))
