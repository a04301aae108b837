"""Recorded steps as references: a page, the true actions before it, and the expected next action.

`wabe steps make` writes them from successful attempts of our runs as `steps.jsonl`, one JSON object per line, with
the screenshots in `images/` beside it. Multimodal-Mind2Web rows are read by `judge.plugins.steps.mind2web`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from judge.browser.tools import CheckedAction, check_action
from judge.records.metadata import Metadata
from judge.records.steps import Step
from judge.records.tasks import TaskId
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.paths import MAX_IMAGE_BYTES, inside
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.fields import first_mistake
from shared.files import MAX_FILE_BYTES, opened, read_errors, read_file, write_atomic
from shared.models import Record, ToolSpec, omit_default
from shared.snapshot import REF, parse_snapshot
from shared.strict_json import parse_json

STEPS_FILE = "steps.jsonl"
Op = Literal["CLICK", "TYPE", "SELECT"]
_TARGET = {"type": "string", "description": "The ref of the element, which the snapshot gives as [ref=…]"}
_ELEMENT = {"type": "string", "description": "The element in words"}
_TEXT = {"type": "string", "description": "The text to type"}
_SUBMIT = {"type": "boolean", "description": "Press Enter after it"}
_VALUES = {"type": "array", "items": {"type": "string"}, "description": "The options to select"}


def _tool(name: str, description: str, **params: dict[str, Any]) -> ToolSpec:
    required = ["target", *(key for key in params if key != "submit")]
    schema = {"type": "object", "properties": {"element": _ELEMENT, "target": _TARGET, **params}, "required": required}
    return ToolSpec(name=name, description=description, parameters=schema)


# Mind2Web's three operations, with the tool names and main parameters of a live run.
TOOLS = (
    _tool("browser_click", "Click an element"),
    _tool("browser_type", "Type text into an element", text=_TEXT, submit=_SUBMIT),
    _tool("browser_select_option", "Select an option in a dropdown", values=_VALUES),
)


class Operation(Record):
    """An operation on an element. A click has no value."""

    op: Op
    value: str = ""


class Reference(Record):
    """One step. `accepted` are the correct refs; empty if the data names no usable element.

    `snapshot` may contain boxes, which participants do not see; `history` are the earlier true actions, one line each.
    `screenshot` is a path relative to the file of references.
    """

    task_id: TaskId
    task: str
    website: str = ""
    metadata: Metadata = omit_default({})
    index: int = Field(ge=0)
    history: tuple[str, ...] = ()
    url: str = ""
    title: str = ""
    snapshot: str
    screenshot: str | None = None
    accepted: tuple[str, ...]
    operation: Operation


ReferencePage = tuple[Reference, bytes | None]


def operation_of(checked: CheckedAction) -> tuple[str, Operation] | None:
    """The element and operation of an action that has both; `None` for any other."""
    params = checked.params
    match checked.tool:
        case "browser_click":
            return params["target"], Operation(op="CLICK")
        case "browser_type":
            return params["target"], Operation(op="TYPE", value=params["text"])
        case "browser_select_option":
            return params["target"], Operation(op="SELECT", value=", ".join(params["values"]))
    return None


def references_of(trajectory: Trajectory) -> Iterator[tuple[Reference, Path | None]]:
    """The steps of one of our attempts that click, type or select, each with the path of its screenshot."""
    history: list[str] = []
    task = trajectory.task
    for step in trajectory.steps:
        snapshot = _snapshot(trajectory, step)
        choice = _choice_of(step, snapshot)
        if choice is not None:
            reference = Reference(
                task_id=task.task_id,
                task=task.task,
                website=task.website,
                metadata=task.metadata,
                index=step.index,
                history=tuple(history),
                url=step.url,
                title=step.title,
                snapshot=snapshot,
                accepted=(choice[0],),
                operation=choice[1],
            )
            yield reference, trajectory.folder / step.screenshot if step.screenshot else None
        if step.outcome and step.outcome.line:
            history.append(step.outcome.line)


def _snapshot(trajectory: Trajectory, step: Step) -> str:
    if step.snapshot is None:
        return ""
    path = inside(trajectory.folder, step.snapshot)
    with read_errors(path, kind=TrajectoryError):
        return read_file(path).decode("utf-8", "replace")


def _choice_of(step: Step, snapshot: str) -> tuple[str, Operation] | None:
    """The element and operation of an executed action that names an element of the snapshot."""
    if step.action is None or step.outcome is None or not step.outcome.ok:
        return None
    checked = check_action(step.action, TOOLS, parse_snapshot(snapshot))
    return operation_of(checked) if isinstance(checked, CheckedAction) else None


def make_references(tasks: Iterable[TaskStore], folder: Path) -> Iterator[tuple[str, int, str]]:
    """Write the references of all successful attempts; yields each task's id, number of steps, and why there are none.

    Raises `ConfigError` if the folder cannot be written to.
    """
    lines = []
    for store in tasks:
        count, why = 0, ""
        try:
            trajectory = load_trajectory(store.folder)
            outcome = trajectory.attempt.outcome
            if outcome != "success":
                why = f"its outcome is {outcome}"
            for reference, image in references_of(trajectory) if outcome == "success" else ():
                name = None
                if image is not None:
                    name = f"images/{reference.task_id}_{reference.index:03d}{image.suffix}"
                    write_atomic(folder / name, read_file(image, max_bytes=MAX_IMAGE_BYTES))
                with_screenshot = reference.model_copy(update={"screenshot": name})
                lines.append(json.dumps(with_screenshot.model_dump(mode="json")))
                count += 1
        except (TrajectoryError, ValueError) as error:
            why = str(error)
        yield store.name, count, why or ("" if count else "no step of it clicks, types or selects")
    if lines:
        write_atomic(folder / STEPS_FILE, "".join(f"{line}\n" for line in lines).encode())


def read_references(path: Path) -> Iterator[ReferencePage]:
    """The references of a `steps.jsonl`, each with its screenshot. Raises `ConfigError` naming the line."""
    for number, value in json_rows(path):
        try:
            reference = Reference.model_validate(value)
        except ValidationError as error:
            raise ConfigError(f"{path}: line {number}: {first_mistake(error)}", remedy="see wabe steps make") from None
        if wrong := [ref for ref in reference.accepted if REF.fullmatch(ref) is None]:
            raise ConfigError(
                f"{path}: line {number}: {wrong[0][:40]!r} is not an element reference", remedy="such as e12"
            )
        yield reference, None if reference.screenshot is None else image_beside(path, reference.screenshot)


def json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """The values in a JSON lines file with their line numbers, with one line in memory at a time."""
    with read_errors(path, "give a file of recorded steps"), opened(path, max_bytes=None) as stream:
        for number in range(1, 10_000_000):
            line = stream.readline(MAX_FILE_BYTES + 1)
            if not line:
                return
            if len(line) > MAX_FILE_BYTES:
                raise ConfigError(f"{path}: line {number}: larger than {MAX_FILE_BYTES} bytes", remedy="shorten it")
            if line.strip():
                with read_errors(f"{path}: line {number}", "give one JSON object a line"):
                    value = parse_json(line.decode())
                yield number, value


def image_beside(path: Path, name: str) -> bytes:
    """An image that a file names, from the file's folder. Raises `ConfigError`."""
    try:
        return read_file(inside(path.parent, name, source=path), max_bytes=MAX_IMAGE_BYTES)
    except (TrajectoryError, OSError, ValueError) as error:
        raise ConfigError(str(error), remedy="keep the screenshots beside the file") from None
