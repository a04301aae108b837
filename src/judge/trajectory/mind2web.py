"""Reads a folder of Online-Mind2Web (v1: flat lists; v2: action steps).

Source: its official evaluator (arXiv:2504.01382). Like that evaluator, this reader drops the last action of a v2
folder, which is the agent's final statement and not a fact.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from judge.trajectory.foreign import IMAGE_SUFFIXES, V2_SCHEMA, from_document, validated
from judge.trajectory.paths import inside
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError


class _V1(BaseModel):
    """The fields of a v1 document besides the task. An action or thought may be an object that contains its text."""

    action_history: tuple[Any, ...] | None = None
    thoughts: tuple[Any, ...] | None = None
    final_result_response: str | None = None


class _V2Step(BaseModel):
    action: str
    screenshot: str
    thought: Any = None


class _V2(BaseModel):
    """The fields of a v2 document besides the task."""

    action_history: tuple[_V2Step, ...]
    agent_final_answer: str | None = None


def load_mind2web(folder: Path, result: dict[str, Any]) -> Trajectory:
    """The trajectory of a `result.json` that is not ours. Raises `TrajectoryError`."""
    schema = result.get("schema_version")
    if schema == V2_SCHEMA or (schema is None and _is_v2(result.get("action_history"))):
        return _load_v2(folder, result)
    return _load_v1(folder, result)


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
        raise TrajectoryError("no such folder", location=str(images), remedy="screenshots belong there")
    # The images are inside, but their folder may itself be a link that leads out.
    if not Path(os.path.realpath(images)).is_relative_to(os.path.realpath(folder)):
        raise TrajectoryError("points outside its folder", location=str(images))
    document = validated(_V1, folder, result)
    # By number, because by name `10.png` comes before `2.png`.
    numbered = [
        (int(number.group()), image.name)
        for image in images.iterdir()
        if image.suffix.lower() in IMAGE_SUFFIXES and (number := re.search(r"\d+", image.name))
    ]
    return from_document(
        folder,
        result,
        action_history=_texts(document.action_history, "action"),
        thoughts=_texts(document.thoughts, "thought"),
        screenshots=tuple(inside(folder, f"trajectory/{name}") for _, name in sorted(numbered)),
        final_answer=document.final_result_response,
    )


def _load_v2(folder: Path, result: dict[str, Any]) -> Trajectory:
    document = validated(_V2, folder, result)
    steps = document.action_history
    return from_document(
        folder,
        result,
        action_history=tuple(step.action for step in steps[:-1]),
        thoughts=tuple(step.thought for step in steps if isinstance(step.thought, str)),
        screenshots=tuple(inside(folder, f"trajectory/{step.screenshot}") for step in steps),
        final_answer=document.agent_final_answer,
    )


def _texts(items: tuple[Any, ...] | None, inner: str) -> tuple[str, ...]:
    """A list of strings; of an object only the string under `inner`, because an action may also contain thoughts."""
    texts = [item.get(inner) if isinstance(item, dict) else item for item in items or ()]
    return tuple(text if isinstance(text, str) else json.dumps(text) for text in texts if text is not None)
