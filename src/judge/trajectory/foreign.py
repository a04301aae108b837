"""Shared by the readers of other tools' layouts: safe file access, the task, and the digest.

Such a folder was written by a third party, often the agent being judged. Its files are untrusted: reads are bounded and
never leave the folder.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from judge.records.steps import Outcome, Step
from judge.records.tasks import Task
from judge.trajectory.paths import TASK_FILE, inside
from judge.trajectory.record import Attempt, Texts, Trajectory
from shared.errors import TrajectoryError
from shared.fields import first_mistake, without_none
from shared.files import MAX_FILE_BYTES, read_errors, read_file, read_json, sha256_file, sha256_json
from shared.models import Action
from shared.text import one_line

V2_SCHEMA = "online-mind2web-v2"
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
_MAX_DOCUMENT_BYTES = 256_000_000
# More than any agent takes; bounds the work on a foreign file.
MAX_FOREIGN_STEPS = 1_000
_HEAD_BYTES = 64_000
_NOT_IN_A_VERB = re.compile("[^A-Z]+")
M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], folder: Path, value: Any, *, name: str = "result.json") -> M:
    """`value`, from the folder's file `name`, as a model. Raises `TrajectoryError`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise TrajectoryError(first_mistake(error), location=str(folder / name)) from None


def read_object(folder: Path, name: str, *, max_bytes: int = MAX_FILE_BYTES) -> dict[str, Any]:
    """The object in a JSON file of the folder. Raises `TrajectoryError`."""
    path = inside(folder, name, source=folder / name, max_bytes=max_bytes)
    with read_errors(path, kind=TrajectoryError):
        value = read_json(path, max_bytes=max_bytes)
    if not isinstance(value, dict):
        raise TrajectoryError(f"expected a JSON object, found {type(value).__name__}", location=str(path))
    return value


def read_document(folder: Path, name: str, model: type[M]) -> M:
    """A JSON file of the folder, which may contain images, as a model. Raises `TrajectoryError`."""
    return validated(model, folder, read_object(folder, name, max_bytes=_MAX_DOCUMENT_BYTES), name=name)


def starts_like(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Whether a file begins as its layout does: tools use the same name for different files."""
    try:
        return pattern.search(read_file(path, head_bytes=_HEAD_BYTES)) is not None
    except (OSError, ValueError):
        return False


def shown_page(folder: Path, source: Path, screenshot: object, url: object) -> dict[str, Any]:
    """What a step shows, as fields of a step: a screenshot that is in the folder, or none. Raises `TrajectoryError`."""
    name = local_name(screenshot) if screenshot and isinstance(screenshot, str) else None
    if name is not None:
        inside(folder, name, source=source)
    return {"screenshot": name, "url": url if isinstance(url, str) else ""}


def local_name(name: str) -> str:
    """The name of an image as a path relative to its folder: absolute paths refer to the recording machine."""
    path = PurePosixPath(name.replace("\\", "/"))
    return path.name if path.is_absolute() else path.as_posix()


def plain(value: object, limit: int = 400) -> str:
    """Foreign text for use in an action line: in one line, bounded, without angle brackets."""
    text = "+".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(one_line(text, limit).replace("<", "‹").replace(">", "›").split())


def tool_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """The action line of a call of another program's tool."""
    verb = _NOT_IN_A_VERB.sub(" ", tool.upper()).strip() or "ACT"
    return f"<page> -> {verb[:60].strip()}: {plain(json.dumps(arguments, ensure_ascii=False))}"


def period_of(stamps: Iterable[object]) -> tuple[float, float]:
    """The first and the last of these moments in ISO 8601, in seconds since 1970; zeros without a usable one."""
    times = []
    for stamp in stamps:
        try:
            moment = datetime.fromisoformat(str(stamp)).timestamp() if stamp else None
        except (ValueError, OverflowError, OSError):
            continue
        if moment is not None and 0 <= moment < 1e11:
            times.append(moment)
    return (min(times), max(times)) if times else (0.0, 0.0)


def foreign_task(folder: Path, metadata: Mapping[str, Any], *, source: Path) -> Task:
    """The task, from a foreign file's data and the folder's `task.json`, which takes precedence.

    Raises `TrajectoryError` if neither contains its text.
    """
    metadata = {**metadata, **(read_object(folder, TASK_FILE) if (folder / TASK_FILE).exists() else {})}
    task, level, length, points = (
        metadata.get(key) for key in ("task", "level", "reference_length", "scenario_key_points")
    )
    if not isinstance(task, str) or not task.strip():
        raise TrajectoryError(
            "key 'task' is missing or not a string",
            location=str(source),
            remedy="--tasks FILE supplies the tasks' texts",
        )
    task_id = metadata.get("task_id")
    fields = {
        "task_id": task_id if isinstance(task_id, str) else folder.name,
        "website": str(metadata.get("website") or ""),
        "task": task,
        # Other tools may use these keys with another meaning, so invalid values are dropped.
        "level": level if level in ("easy", "medium", "hard") else None,
        "reference_length": length if isinstance(length, int) and length >= 1 else None,
        "key_points": tuple(points) if isinstance(points, list) else (),
    }
    return validated(Task, folder, fields, name=source.name)


def from_document(
    folder: Path,
    result: Mapping[str, Any],
    *,
    action_history: Sequence[str],
    thoughts: Sequence[str] = (),
    screenshots: Sequence[Path] = (),
    final_answer: str | None = None,
) -> Trajectory:
    """A trajectory of flat lists, in which actions, thoughts and screenshots do not refer to each other."""
    task = foreign_task(folder, result, source=folder / "result.json")
    image_paths = result.get("input_image_paths")
    texts = Texts(action_history=tuple(action_history), thoughts=tuple(thoughts), final_answer=final_answer)
    return _with_digest(
        Trajectory(
            folder=folder,
            attempt=_by_place(task, texts, [path.relative_to(folder).as_posix() for path in screenshots]),
            texts=texts,
            screenshots=tuple(screenshots),
            input_images=tuple(name for name in image_paths if isinstance(name, str))
            if isinstance(image_paths, list)
            else (),
            is_foreign=True,
            is_flat=True,
        )
    )


def from_steps(
    folder: Path,
    task: Task,
    steps: Iterable[Step],
    *,
    screenshots: Sequence[Path] | None = None,
    actions: Sequence[str] | None = None,
    state: str | None = None,
    period: tuple[float, float] = (0.0, 0.0),
    network: Path | None = None,
    **facts: Any,
) -> Trajectory:
    """A trajectory of the steps that another program recorded; `facts` are further ones of the attempt.

    `actions` are their texts for judges, in the wording of that program; by default, the action lines. `screenshots`
    are by default the steps'; `state` is the site's final one, `period` start and end in seconds since 1970.
    Raises `TrajectoryError` for too many.
    """
    # One more than actions: the page after the last one.
    step_list = tuple(islice(steps, MAX_FOREIGN_STEPS + 2))
    if len(step_list) > MAX_FOREIGN_STEPS + 1:
        raise TrajectoryError(f"more than {MAX_FOREIGN_STEPS} actions", location=str(folder))
    attempt = Attempt(
        task=task,
        steps=step_list,
        # The budget is not known, but the record needs one.
        max_steps=max(1, sum(step.action is not None or step.outcome is not None for step in step_list)),
        started_at=period[0],
        ended_at=max(period),
        self_recorded=True,
        **facts,
    )
    texts = Texts(
        action_history=tuple(attempt.action_history if actions is None else actions),
        thoughts=tuple(attempt.thoughts),
        final_answer=attempt.final_answer,
        state=state,
    )
    if screenshots is None:
        screenshots = [folder / step.screenshot for step in step_list if step.screenshot]
    return _with_digest(
        Trajectory(
            folder=folder,
            attempt=attempt,
            texts=texts,
            screenshots=tuple(screenshots),
            network=network,
            network_missing=attempt.network_missing,
            is_foreign=True,
        )
    )


def _with_digest(trajectory: Trajectory) -> Trajectory:
    """The trajectory with a digest of everything that judges see. Raises `TrajectoryError`."""
    document: dict[str, Any] = {"task": trajectory.task.model_dump(mode="json")}
    if trajectory.texts is not None:
        document |= trajectory.texts.model_dump(mode="json")
    if not trajectory.is_flat:
        document |= {"stop_reason": trajectory.stop_reason, "error": trajectory.error}
    try:
        images = [sha256_file(path) for path in trajectory.screenshots]
        own = {name: _sha256_inside(trajectory.folder, name) for name in trajectory.input_images}
        network = sha256_file(trajectory.network) if trajectory.network else None
    except (OSError, ValueError) as error:
        raise TrajectoryError(str(error), location=str(trajectory.folder)) from None
    evidence = {**document, "screenshots": images, **without_none(input_images=own or None, network=network)}
    return trajectory.model_copy(update={"sha256": sha256_json(evidence)})


def _sha256_inside(folder: Path, name: str) -> str | None:
    """The digest of one of the task's images; `None` for an unusable one, which judges are not shown."""
    try:
        return sha256_file(inside(folder, name))
    except TrajectoryError:
        return None


def _by_place(task: Task, texts: Texts, shots: Sequence[str]) -> Attempt:
    """An attempt whose n-th step has the n-th screenshot, action and thought."""
    lines, thoughts = texts.action_history, texts.thoughts
    steps = [
        Step(
            index=place,
            url="",
            title="",
            screenshot=shots[place] if place < len(shots) else None,
            action=Action(tool="unknown", thought=thoughts[place]) if place < len(thoughts) else None,
            outcome=Outcome(ok=True, line=lines[place]) if place < len(lines) else None,
        )
        for place in range(max(len(lines), len(shots)))
    ]
    return Attempt(
        task=task,
        steps=tuple(steps),
        stop_reason="finished",
        max_steps=max(1, len(steps)),
        final_answer=texts.final_answer,
        started_at=0.0,
        ended_at=0.0,
        self_recorded=True,
    )
