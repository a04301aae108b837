"""Reads browser-use's histories (`Agent.save_history`), a JSON file and its screenshots, as trajectories.

Source: `browser_use/agent/views.py`. The file is `{"history": [item, …]}`; an item is one observation and the actions
chosen from it: `model_output.action` (one `{tool: parameters}` each), `result` (one for each executed action), `state`
(`url`, `title`, `screenshot_path`, `interacted_element`) and `metadata` (times). The paths are absolute paths on the
recording machine, so the files are looked up beside the history and in `screenshots/`. Older versions contain the
images themselves (`state.screenshot`, base64), which are unpacked into `screenshots/` when the history is read, and
have the thoughts under `model_output.current_state`.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, Field

from judge.records.steps import Outcome, Step, StopReason
from judge.records.verdicts import Verdict
from judge.trajectory.foreign import MAX_FOREIGN_STEPS, foreign_task, from_steps, plain, read_document, tool_line
from judge.trajectory.foreign_verdicts import foreign_verdict, tokens_of
from judge.trajectory.formats import Format, FormatReader
from judge.trajectory.paths import inside, usable_id
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.fields import as_mapping
from shared.files import read_errors, read_file, write_atomic
from shared.images import SUFFIXES, media_type
from shared.models import Action
from shared.text import clip

_IMAGES = "screenshots"


class _Thoughts(BaseModel):
    thinking: str | None = None
    memory: str | None = None
    next_goal: str | None = None


class _Output(_Thoughts):
    action: tuple[dict[str, Any], ...] = ()
    current_state: _Thoughts | None = None


class _ActionResult(BaseModel):
    is_done: bool | None = None
    error: str | None = None
    extracted_content: str | None = None
    judgement: dict[str, Any] | None = None


class _BrowserState(BaseModel):
    url: str | None = None
    title: str | None = None
    screenshot_path: str | None = None
    screenshot: str | None = None
    interacted_element: tuple[dict[str, Any] | None, ...] | None = None


class _Times(BaseModel):
    step_start_time: float = Field(default=0.0, ge=0, lt=1e11)
    step_end_time: float = Field(default=0.0, ge=0, lt=1e11)
    input_tokens: int | None = Field(default=None, ge=0)


class _HistoryItem(BaseModel):
    model_output: _Output | None = None
    result: tuple[_ActionResult, ...] = ()
    state: _BrowserState = _BrowserState()
    metadata: _Times | None = None


class _History(BaseModel):
    """The fields read from a history."""

    history: tuple[_HistoryItem, ...] = Field(max_length=MAX_FOREIGN_STEPS)


def history_files(folder: Path) -> list[Path]:
    """The histories in a folder; a folder that has any is a trajectory of this layout."""
    return sorted(path for path in folder.glob("*.json") if "history" in path.name.lower())


def load(folder: Path) -> Trajectory:
    """Read the folder of one history. Raises `TrajectoryError`, which names the file and what is wrong with it."""
    path, items = _read(folder)
    last = items[-1].result[-1] if items and items[-1].result else _ActionResult()
    times = [item.metadata for item in items if item.metadata]
    return from_steps(
        folder,
        foreign_task(folder, {"task_id": usable_id(folder.resolve().name)}, source=path),
        _steps(folder, path, items),
        period=(times[0].step_start_time, times[-1].step_end_time) if times else (0.0, 0.0),
        stop_reason=_stop_reason(last),
        final_answer=last.extracted_content if last.is_done else None,
        error=None if last.is_done else last.error,
        claimed_usage=tokens_of(sum(time.input_tokens or 0 for time in times), None),
    )


def verdicts(folder: Path) -> dict[str, Verdict]:
    """The verdict of browser-use's judge, if there is one."""
    _, items = _read(folder)
    judgement = items[-1].result[-1].judgement if items and items[-1].result else None
    if not judgement or not isinstance(judgement.get("verdict"), bool):
        return {}
    reason = judgement.get("failure_reason") or judgement.get("reasoning")
    return {"browser-use-judgement": foreign_verdict("browser-use judgement", judgement["verdict"], reason)}


def _read(folder: Path) -> tuple[Path, tuple[_HistoryItem, ...]]:
    paths = history_files(folder)
    if len(paths) != 1:
        raise TrajectoryError(f"{len(paths)} histories (*history*.json), expected one", location=str(folder))
    return paths[0], read_document(folder, paths[0].name, _History).history


def _stop_reason(last: _ActionResult) -> StopReason:
    """How the attempt ended. An agent that never called `done` ran out of steps or gave up after errors."""
    if last.is_done:
        return "finished"
    return "participant_error" if last.error else "max_steps"


def _steps(folder: Path, path: Path, items: tuple[_HistoryItem, ...]) -> Iterator[Step]:
    """A step for each action; only the first action of an item has the item's screenshot."""
    index = 0
    for number, item in enumerate(items):
        state, output = item.state, item.model_output or _Output()
        page = {"url": state.url or "", "title": state.title or ""}
        screenshot = _screenshot(folder, path, state, number)
        state_or_output = output.current_state or output
        thought = "\n".join(filter(None, (state_or_output.thinking, state_or_output.memory, state_or_output.next_goal)))
        for place, action in enumerate(output.action or ({},)):
            action_step = _action(action, thought if place == 0 else "")
            element = state.interacted_element[place : place + 1] if state.interacted_element else ()
            result = item.result[place] if place < len(item.result) else None
            yield Step(
                index=index,
                **page,
                screenshot=screenshot if place == 0 else None,
                action=action_step,
                outcome=_outcome(action_step, element[0] if element else None, result),
            )
            index += 1


def _screenshot(folder: Path, path: Path, state: _BrowserState, number: int) -> str | None:
    if not state.screenshot_path:
        return _unpacked(folder, path, state.screenshot, number) if state.screenshot else None
    # The history may have been recorded on Windows.
    name = PurePosixPath(state.screenshot_path.replace("\\", "/")).name
    relative = f"{_IMAGES}/{name}" if (folder / _IMAGES).is_dir() else name
    inside(folder, relative, source=path)
    return relative


def _unpacked(folder: Path, path: Path, encoded: str, number: int) -> str:
    """Write an image contained in the history; returns its path relative to the folder."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    kind = media_type(data)
    if kind is None:
        raise TrajectoryError(
            f"history.{number}.state.screenshot: not a JPEG, PNG or WebP image in base64", location=str(path)
        )
    target = folder / _IMAGES / f"unpacked_{number:03d}.{SUFFIXES[kind]}"
    if not Path(os.path.realpath(target.parent)).is_relative_to(os.path.realpath(folder)):
        raise TrajectoryError("points outside its folder", location=str(target.parent))
    with read_errors(target, "copy the history to a writable folder", kind=TrajectoryError):
        if not target.is_file() or read_file(target) != data:
            write_atomic(target, data)
    inside(folder, f"{_IMAGES}/{target.name}", source=path)
    return f"{_IMAGES}/{target.name}"


def _action(action: Mapping[str, Any], thought: str) -> Action | None:
    tool, params = next(iter(action.items()), ("", {}))
    if not tool:
        return None
    return Action(tool=tool, params=params if isinstance(params, dict) else {"value": params}, thought=thought)


def _outcome(action: Action | None, element: Mapping[str, Any] | None, result: _ActionResult | None) -> Outcome | None:
    """The outcome of an action. Actions without a result were dropped because the page had changed."""
    if action is None or result is None:
        return None
    if result.error:
        return Outcome(ok=False, message=clip(result.error, 3_000))
    return Outcome(ok=True, message=clip(result.extracted_content or "", 3_000), line=_line(action, element))


def _line(action: Action, element: Mapping[str, Any] | None) -> str:
    """The action as one of our action lines, with the element as described in the history."""
    params, subject = action.params, _subject(element)

    def first_text(*keys: str) -> str:
        return plain(next((params[key] for key in keys if key in params), ""))

    match action.tool:
        case "click" | "click_element" | "click_element_by_index":
            return f"<{subject}> -> CLICK"
        case "input" | "input_text":
            return f"<{subject}> -> TYPE: {first_text('text')}"
        case "select_dropdown" | "select_dropdown_option":
            return f"<{subject}> -> SELECT: {first_text('text')}"
        case "navigate" | "go_to_url" | "open_tab":
            return f"<navigation> -> GOTO: {first_text('url')}"
        case "go_back":
            return "<navigation> -> BACK"
        case "switch" | "switch_tab":
            return f"<navigation> -> TAB: select {first_text('tab_id', 'page_id')}"
        case "send_keys":
            return f"<page> -> PRESS: {first_text('keys')}"
        case "scroll" | "scroll_down" | "scroll_up":
            down = action.tool != "scroll_up" and params.get("down", True) is not False
            return f"<page> -> SCROLL: {'down' if down else 'up'}"
        case "wait":
            return f"<page> -> WAIT: {first_text('seconds')} s"
        case "done":
            return "<page> -> FINISH"
    return tool_line(action.tool, params)


def _subject(element: Mapping[str, Any] | None) -> str:
    """An element as its name and kind: `Search button`."""
    if element is None:
        return "element"
    known = as_mapping(element.get("attributes"))
    labels = (element.get("ax_name"), *(known.get(key) for key in ("aria-label", "placeholder", "name", "id")))
    name = next((plain(label, 100) for label in labels if isinstance(label, str) and plain(label, 100)), "")
    role = plain(known.get("role") or element.get("node_name") or "element", 40).lower()
    return f"{name} {role}".strip() or "element"


READER = FormatReader(files=history_files, load=load, verdicts=verdicts)
FORMAT = Format(reader=READER)
