"""Reads one trajectory folder: our own runs and the Online-Mind2Web layouts (v1: flat lists; v2: action steps).

Layout source: the official evaluator of Online-Mind2Web (arXiv:2504.01382). It drops the last action of a v2 folder,
since that is the agent's final statement and no fact; so does this reader.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import ValidationError

from judge.files import read_file, read_json, reason_of, sha256_file, sha256_json
from judge.trajectory.record import ABORTING, Trajectory, evidence_sha256
from judge.trajectory.schemas import OLDER_RESULT_SCHEMAS, RESULT_SCHEMA
from shared.errors import TrajectoryError
from shared.models import Step, StopReason, Task

V2_SCHEMA = "online-mind2web-v2"
_IMAGES = {".png", ".jpg", ".jpeg", ".webp"}


def load_trajectory(folder: Path | str) -> Trajectory:
    """Read a task folder. Raises `TrajectoryError`, which names the file and what is wrong with it."""
    folder = Path(folder)
    path = folder / "result.json"
    result = _read_result(path)
    schema = result.get("schema_version")
    if schema == V2_SCHEMA:
        return _load_v2(folder, path, result)
    if schema is None and _is_v2(result.get("action_history")):
        return _load_v2(folder, path, result)
    if schema in (RESULT_SCHEMA, *OLDER_RESULT_SCHEMAS):
        return _load_own(folder, path, result)
    if str(schema).startswith("wabe-"):
        raise TrajectoryError(f"{path}: schema_version {str(schema)[:60]!a} is not one that this version reads")
    return _load_v1(folder, path, result)


def read_steps(path: Path) -> tuple[Step, ...]:
    """The steps of a `steps.jsonl`. A torn last line (a kill while writing) is left out; other damage raises."""
    try:
        lines = read_file(path).split(b"\n")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise TrajectoryError(f"{path}: {reason_of(error)}") from None
    steps = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            steps.append(Step.model_validate_json(line))
        except ValidationError as error:
            if number == len(lines):
                break
            raise TrajectoryError(f"{path}: line {number} is not a step: {_first(error)}") from None
    return tuple(steps)


def _read_result(path: Path) -> dict[str, Any]:
    try:
        result = read_json(path)
    except FileNotFoundError:
        raise TrajectoryError(f"{path}: no such file", remedy="give a folder with a result.json in it") from None
    except json.JSONDecodeError as error:
        raise TrajectoryError(f"{path}: not JSON: {error.msg} at line {error.lineno}") from None
    except (OSError, ValueError) as error:
        raise TrajectoryError(f"{path}: {reason_of(error)}") from None
    if not isinstance(result, dict):
        raise TrajectoryError(f"{path}: a JSON object is expected, not {type(result).__name__}")
    return result


def with_digests(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """A `result.json` with the digests of its steps' files as they are now, `None` for one that is missing.

    Raises `TrajectoryError` for a file that cannot be read.
    """
    steps = []
    for step in result["steps"]:
        made = dict(step)
        for kind in ("screenshot", "snapshot"):
            path = folder / step[kind] if step.get(kind) else None
            try:
                made[f"{kind}_sha256"] = sha256_file(path) if path is not None and path.is_file() else None
            except OSError as error:
                raise TrajectoryError(f"{path}: {error.strerror or error}") from None
        steps.append(made)
    return {**result, "steps": steps}


def evidence_problems(recorded: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """What of a trajectory is not as its digests say, one sentence each.

    `recorded` is its `result.json`, `found` the same `with_digests` of the files.
    """
    for step, now in zip(recorded["steps"], found["steps"], strict=True):
        for kind in ("screenshot_sha256", "snapshot_sha256"):
            if step.get(kind) != now[kind]:
                name = step.get(kind.removesuffix("_sha256"))
                what = "missing" if now[kind] is None else "not the file that was recorded (SHA-256)"
                yield f"{name}: {what}, step {step['index']}"
    if recorded.get("trajectory_sha256") != evidence_sha256(recorded):
        yield "result.json: trajectory_sha256 is not the digest of the recorded task, steps, answer and stop reason"


def _load_own(folder: Path, path: Path, result: dict[str, Any]) -> Trajectory:
    raw = result.get("steps")
    if not isinstance(raw, list):
        raise TrajectoryError(f"{path}: key 'steps' is missing or no list")
    try:
        steps = tuple(Step.model_validate(step) for step in raw)
    except ValidationError as error:
        raise TrajectoryError(f"{path}: key 'steps': {_first(error)}") from None
    stop_reason = _stop_reason(path, result)
    is_digested = result["schema_version"] == RESULT_SCHEMA
    loaded = Trajectory(
        folder=folder,
        task=_task(path, result),
        action_history=tuple(step.outcome.line for step in steps if step.outcome and step.outcome.line),
        thoughts=tuple(step.action.thought for step in steps if step.action),
        screenshots=tuple(_inside(folder, path, step.screenshot) for step in steps if step.screenshot),
        snapshots=tuple(_inside(folder, path, step.snapshot) for step in steps if step.snapshot),
        steps=steps,
        final_answer=_text_or_none(path, result, "agent_final_answer"),
        stop_reason=stop_reason,
        error=_text_or_none(path, result, "error"),
        is_aborted=stop_reason in ABORTING or (not is_digested and result.get("is_aborted") is True),
        is_digested=is_digested,
    )
    found = with_digests(folder, result)
    try:
        if is_digested and (problem := next(evidence_problems(result, found), None)):
            raise TrajectoryError(f"{folder}/{problem}", remedy="resume the run to play this task again")
        return loaded.model_copy(update={"sha256": evidence_sha256(found)})
    except (ValueError, RecursionError) as error:
        raise TrajectoryError(f"{path}: not readable: {error}") from None


def _foreign(trajectory: Trajectory) -> Trajectory:
    """A trajectory of a foreign layout with a digest of everything that it shows."""
    shown = trajectory.model_dump(mode="json", include={"task", "action_history", "thoughts", "final_answer"})
    try:
        images = [sha256_file(path) for path in trajectory.screenshots]
    except OSError as error:
        raise TrajectoryError(f"{trajectory.folder}: {error}") from None
    return trajectory.model_copy(update={"sha256": sha256_json({**shown, "screenshots": images})})


def _is_v2(history: object) -> bool:
    """Whether an `action_history` is v2's, though the folder does not say so: objects with an action and its image."""
    return (
        isinstance(history, list)
        and bool(history)
        and all(isinstance(step, dict) and {"action", "screenshot"} <= step.keys() for step in history)
    )


def _load_v1(folder: Path, path: Path, result: dict[str, Any]) -> Trajectory:
    images = folder / "trajectory"
    if not images.is_dir():
        raise TrajectoryError(f"{images}: no such folder", remedy="screenshots belong there")
    numbered = []
    for image in images.iterdir():
        number = re.search(r"\d+", image.name)
        if image.suffix.lower() in _IMAGES and number:
            numbered.append((int(number.group()), image.name, image))
    return _foreign(
        Trajectory(
            folder=folder,
            task=_task(path, result),
            action_history=_strings(path, result, "action_history", "action"),
            thoughts=_strings(path, result, "thoughts", "thought"),
            screenshots=tuple(image for _, _, image in sorted(numbered)),
            final_answer=_text_or_none(path, result, "final_result_response"),
        )
    )


def _load_v2(folder: Path, path: Path, result: dict[str, Any]) -> Trajectory:
    steps = result.get("action_history")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise TrajectoryError(f"{path}: key 'action_history' is missing or no list of objects")
    for number, step in enumerate(steps):
        for key in ("action", "screenshot"):
            if not isinstance(step.get(key), str):
                raise TrajectoryError(f"{path}: action_history[{number}].{key} is missing or no text")
    shots = tuple(_inside(folder, path, f"trajectory/{step['screenshot']}") for step in steps)
    return _foreign(
        Trajectory(
            folder=folder,
            task=_task(path, result),
            action_history=tuple(step["action"] for step in steps[:-1]),
            thoughts=tuple(step["thought"] for step in steps if isinstance(step.get("thought"), str)),
            screenshots=shots,
            final_answer=_text_or_none(path, result, "agent_final_answer"),
        )
    )


def _task(path: Path, result: dict[str, Any]) -> Task:
    task = result.get("task")
    if not isinstance(task, str) or not task.strip():
        raise TrajectoryError(f"{path}: key 'task' is missing or no text")
    task_id = result.get("task_id")
    level, length = result.get("level"), result.get("reference_length")
    points = result.get("scenario_key_points")
    is_own = result.get("schema_version") in (RESULT_SCHEMA, *OLDER_RESULT_SCHEMAS)
    try:
        return Task(
            task_id=task_id if isinstance(task_id, str) else path.parent.name,
            website=str(result.get("website") or ""),
            task=task,
            level=level if level in ("easy", "medium", "hard") else None,
            reference_length=length if isinstance(length, int) and length >= 1 else None,
            key_points=tuple(points) if isinstance(points, list) else (),
            **({key: result[key] for key in ("checks", "allowed_sites") if key in result} if is_own else {}),
        )
    except ValidationError as error:
        raise TrajectoryError(f"{path}: {_first(error)}") from None


def _stop_reason(path: Path, result: dict[str, Any]) -> StopReason | None:
    value = result.get("stop_reason")
    for known in get_args(StopReason):
        if value == known:
            return cast("StopReason", known)
    if value is not None:
        raise TrajectoryError(f"{path}: key 'stop_reason' holds {str(value)[:60]!r}, which is no stop reason")
    return None


def _strings(path: Path, result: dict[str, Any], key: str, inner: str) -> tuple[str, ...]:
    """A list of texts; of objects in it only the text under `inner`: beside an action there may stand thoughts."""
    value = result.get(key) or []
    if not isinstance(value, list):
        raise TrajectoryError(f"{path}: key {key!r} is no list")
    texts = [item.get(inner) if isinstance(item, dict) else item for item in value]
    return tuple(text if isinstance(text, str) else json.dumps(text) for text in texts if text is not None)


def _text_or_none(path: Path, result: dict[str, Any], key: str) -> str | None:
    value = result.get(key)
    if value is not None and not isinstance(value, str):
        raise TrajectoryError(f"{path}: key {key!r} is no text")
    return value


def _inside(folder: Path, path: Path, relative: str) -> Path:
    """A file of the trajectory; one that lies outside its folder would let a result name any file of the host."""
    target = folder / relative
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise TrajectoryError(f"{path}: {relative[:100]!r} points outside its folder")
    if not target.is_file():
        raise TrajectoryError(f"{target}: no such file")
    return target


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
