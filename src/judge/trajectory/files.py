"""Reads one trajectory folder: our own runs and the Online-Mind2Web layouts (v1: flat lists; v2: action steps).

Layout source: the official evaluator of Online-Mind2Web (arXiv:2504.01382). It drops the last action of a v2 folder,
which is the agent's final statement and no fact; so does this reader.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from judge.trajectory.record import RESULT_SCHEMA, Attempt, Trajectory, evidence_sha256, first_mistake
from shared.errors import TrajectoryError
from shared.files import read_file, read_json, reason_of, sha256_file, sha256_json
from shared.models import Step, Task

V2_SCHEMA = "online-mind2web-v2"
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
M = TypeVar("M", bound=BaseModel)


class _V1(BaseModel):
    """What is read of a v1 document beside the task. An action or thought may be an object that holds its text."""

    action_history: tuple[Any, ...] | None = None
    thoughts: tuple[Any, ...] | None = None
    final_result_response: str | None = None


class _V2Step(BaseModel):
    action: str
    screenshot: str
    thought: Any = None


class _V2(BaseModel):
    """What is read of a v2 document beside the task."""

    action_history: tuple[_V2Step, ...]
    agent_final_answer: str | None = None


def load_trajectory(folder: Path | str) -> Trajectory:
    """Read a task folder. Raises `TrajectoryError`, which names the file and what is wrong with it."""
    folder = Path(folder)
    result = read_result(folder)
    schema = result.get("schema_version")
    if schema == V2_SCHEMA or (schema is None and _is_v2(result.get("action_history"))):
        return _load_v2(folder, result)
    # Unknown versions are refused there.
    if str(schema).startswith("wabe-"):
        return _load_own(folder, result)
    return _load_v1(folder, result)


def read_result(folder: Path, *, source: str = "") -> dict[str, Any]:
    """The object in a task folder's `result.json`. Raises `TrajectoryError`, which names `source` or else the path."""
    source = source or str(folder / "result.json")
    try:
        result = read_json(folder / "result.json")
    except FileNotFoundError:
        raise TrajectoryError(f"{source}: no such file", remedy="give a folder with a result.json in it") from None
    except (OSError, ValueError) as error:
        raise TrajectoryError(f"{source}: {reason_of(error)}") from None
    if not isinstance(result, dict):
        raise TrajectoryError(f"{source}: expected a JSON object, found {type(result).__name__}")
    return result


def read_attempt(folder: Path, *, source: str = "") -> Attempt:
    """The attempt that our own `result.json` records; files and digests are not looked at. Raises `TrajectoryError`."""
    return Attempt.from_json(read_result(folder, source=source), source=source or str(folder / "result.json"))


def read_steps(path: Path) -> tuple[Step, ...]:
    """The steps of a `steps.jsonl`. A torn last line (a kill while writing) is left out.

    Raises `TrajectoryError` for other damage, naming the file without its folder.
    """
    try:
        lines = read_file(path).split(b"\n")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise TrajectoryError(f"{path.name}: {reason_of(error)}") from None
    steps = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            steps.append(Step.model_validate_json(line))
        except ValidationError as error:
            if number == len(lines):
                break
            raise TrajectoryError(f"{path.name}: line {number} is not a step: {first_mistake(error)}") from None
    return tuple(steps)


def with_digests(folder: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """A `result.json` with the digests of its files as they are now, `None` for one that is missing.

    Raises `TrajectoryError` for a file that cannot be read.
    """
    made = {**result, "steps": [_with_digests(folder, step) for step in result["steps"]]}
    if result.get("final_look"):
        made["final_look"] = _with_digests(folder, result["final_look"])
    if result.get("network"):
        made["network"] = {**result["network"], "sha256": _digest(folder / result["network"]["file"])}
    return made


def _with_digests(folder: Path, page: Mapping[str, Any]) -> dict[str, Any]:
    digests = {
        f"{kind}_sha256": _digest(folder / page[kind]) if page.get(kind) else None
        for kind in ("screenshot", "snapshot")
    }
    return {**page, **digests}


def _digest(path: Path) -> str | None:
    try:
        return sha256_file(path) if path.is_file() else None
    except OSError as error:
        raise TrajectoryError(f"{path}: {error.strerror or error}") from None


def recorded_pages(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of a `result.json` and its final look."""
    final_look = result.get("final_look")
    return [*result["steps"], *([final_look] if final_look else [])]


def evidence_problems(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Every difference between a trajectory and its digests, one sentence each.

    `recorded` is its `result.json`, `found` the same `with_digests` of the files.
    """
    for step, now in zip(recorded_pages(recorded), recorded_pages(found), strict=True):
        for kind in ("screenshot", "snapshot"):
            digest = now[f"{kind}_sha256"]
            if step.get(f"{kind}_sha256") != digest:
                yield f"{step.get(kind)}: {_problem(digest)}, step {step['index']}"
    network, network_now = recorded.get("network"), found.get("network")
    if network and network_now and network["sha256"] != network_now["sha256"]:
        yield f"{network['file']}: {_problem(network_now['sha256'])}"
    if recorded.get("trajectory_sha256") != evidence_sha256(recorded):
        yield "result.json: trajectory_sha256 is not the digest of the recorded task, steps, answer and stop reason"


def _problem(digest: str | None) -> str:
    return "missing" if digest is None else "not the file that was recorded (SHA-256)"


def _load_own(folder: Path, result: dict[str, Any]) -> Trajectory:
    path = folder / "result.json"
    attempt = Attempt.from_json(result, source=str(path))
    is_digested = result["schema_version"] == RESULT_SCHEMA
    screenshots = tuple(_inside(folder, step.screenshot) for step in attempt.steps if step.screenshot)
    final_look = attempt.final_look
    others = [step.snapshot for step in attempt.observations] + ([final_look.screenshot] if final_look else [])
    for name in filter(None, others):
        _inside(folder, name)
    found = with_digests(folder, result)
    network: Path | None = None
    missing = attempt.network_missing
    if attempt.network is not None:
        network = folder / attempt.network.file
        if network.parent != folder:
            raise TrajectoryError(f"{path}: {attempt.network.file[:100]!r} points outside its folder")
        if found["network"]["sha256"] is None:
            # Whoever passes a run on may withhold its requests: what needs them is unscored, and the rest is as it was.
            found["network"], network, missing = result["network"], None, f"{attempt.network.file}: no such file"
    try:
        if is_digested and (problem := next(evidence_problems(result, found), None)):
            raise TrajectoryError(f"{folder}/{problem}", remedy="resume the run to play this task again")
        sha256 = evidence_sha256(found)
    except (ValueError, RecursionError) as error:
        raise TrajectoryError(f"{path}: not readable: {error}") from None
    return Trajectory(
        folder=folder,
        task=attempt.task,
        action_history=tuple(attempt.action_history),
        thoughts=tuple(attempt.thoughts),
        screenshots=screenshots,
        steps=attempt.steps,
        final_look=final_look,
        final_answer=attempt.final_answer,
        stop_reason=attempt.stop_reason,
        error=attempt.error,
        # Older versions could abort an attempt whatever its stop reason was.
        is_aborted=attempt.is_aborted or (not is_digested and result.get("is_aborted") is True),
        sha256=sha256,
        is_digested=is_digested,
        network=network,
        network_missing=missing,
        attempt=attempt,
    )


def _is_v2(history: object) -> bool:
    """Whether an `action_history` without a version is v2's: objects with an action and its screenshot."""
    return (
        isinstance(history, list)
        and bool(history)
        and all(isinstance(step, dict) and {"action", "screenshot"} <= step.keys() for step in history)
    )


def _load_v1(folder: Path, result: dict[str, Any]) -> Trajectory:
    images = folder / "trajectory"
    if not images.is_dir():
        raise TrajectoryError(f"{images}: no such folder", remedy="screenshots belong there")
    document = _validated(_V1, folder, result)
    numbered = [
        (int(number.group()), image.name, image)
        for image in images.iterdir()
        if image.suffix.lower() in IMAGE_SUFFIXES and (number := re.search(r"\d+", image.name))
    ]
    return _foreign(
        folder,
        result,
        action_history=_texts(document.action_history, "action"),
        thoughts=_texts(document.thoughts, "thought"),
        screenshots=tuple(image for _, _, image in sorted(numbered)),
        final_answer=document.final_result_response,
    )


def _load_v2(folder: Path, result: dict[str, Any]) -> Trajectory:
    document = _validated(_V2, folder, result)
    steps = document.action_history
    return _foreign(
        folder,
        result,
        action_history=tuple(step.action for step in steps[:-1]),
        thoughts=tuple(step.thought for step in steps if isinstance(step.thought, str)),
        screenshots=tuple(_inside(folder, f"trajectory/{step.screenshot}") for step in steps),
        final_answer=document.agent_final_answer,
    )


def _foreign(folder: Path, result: Mapping[str, Any], **fields: Any) -> Trajectory:
    """A trajectory of a foreign layout, with a digest of everything that judges see of it."""
    task, level, length = result.get("task"), result.get("level"), result.get("reference_length")
    task_id, points = result.get("task_id"), result.get("scenario_key_points")
    if not isinstance(task, str) or not task.strip():
        raise TrajectoryError(f"{folder / 'result.json'}: key 'task' is missing or not a text")
    known = {
        "task_id": task_id if isinstance(task_id, str) else folder.name,
        "website": str(result.get("website") or ""),
        "task": task,
        # What other tools write under these keys may mean something else.
        "level": level if level in ("easy", "medium", "hard") else None,
        "reference_length": length if isinstance(length, int) and length >= 1 else None,
        "key_points": tuple(points) if isinstance(points, list) else (),
    }
    trajectory = Trajectory(folder=folder, task=_validated(Task, folder, known), **fields)
    shown = trajectory.model_dump(mode="json", include={"task", "action_history", "thoughts", "final_answer"})
    try:
        images = [sha256_file(path) for path in trajectory.screenshots]
    except OSError as error:
        raise TrajectoryError(f"{folder}: {error}") from None
    return trajectory.model_copy(update={"sha256": sha256_json({**shown, "screenshots": images})})


def _validated(model: type[M], folder: Path, value: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise TrajectoryError(f"{folder / 'result.json'}: {first_mistake(error)}") from None


def _texts(items: tuple[Any, ...] | None, inner: str) -> tuple[str, ...]:
    """A list of texts; of objects in it only the text under `inner`, since an action's object may hold thoughts."""
    texts = [item.get(inner) if isinstance(item, dict) else item for item in items or ()]
    return tuple(text if isinstance(text, str) else json.dumps(text) for text in texts if text is not None)


def _inside(folder: Path, relative: str) -> Path:
    """A file of the trajectory. One outside its folder is refused, or a result could name any file of the host."""
    target = folder / relative
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise TrajectoryError(f"{folder / 'result.json'}: {relative[:100]!r} points outside its folder")
    if not target.is_file():
        raise TrajectoryError(f"{target}: no such file")
    return target
