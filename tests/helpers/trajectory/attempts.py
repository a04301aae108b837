"""Attempts for judge models, with text that a filter may object to, and screenshots that can be told apart."""

from pathlib import Path
from typing import Any

from helpers.llm.scripted import trajectory
from judge.records.steps import Outcome, Step
from judge.records.tasks import Task
from judge.trajectory.record import Trajectory
from shared.models import Action

SITE = "https://shop.example/"
ELSEWHERE = "https://evil.test/page"
TASK = Task(
    task_id="t1", website=SITE, task="Buy the cheapest lamp", key_points=("a lamp is bought", "it is the cheapest")
)
BAD = "gunpowder"


def a_step(
    place: int, line: str | None = None, tool: str = "browser_click", at: str = SITE, ok: bool = True, **params: Any
) -> Step:
    return Step(
        index=place,
        url=at,
        title="",
        screenshot=f"trajectory/step_{place:03d}.jpg",
        action=Action(tool=tool, params=params),
        outcome=Outcome(ok=ok, line=line if ok else None),
    )


def typed(place: int, text: str, **fields: Any) -> Step:
    return a_step(place, f"<Search textbox> -> TYPE: {text}", "browser_type", text=text, **fields)


def clicked(place: int, name: str = "Lamps link", **fields: Any) -> Step:
    return a_step(place, f"<{name}> -> CLICK", **fields)


def attempt(folder: Path, *steps: Step, **fields: Any) -> Trajectory:
    """An attempt whose screenshots contain their numbers: `shot 0` and so on."""
    images = tuple(f"shot {step.index}".encode() for step in steps)
    lines = tuple(step.outcome.line for step in steps if step.outcome and step.outcome.line)
    known = {"task": TASK, "steps": steps, "action_history": lines, "thoughts": (), "final_answer": None}
    return trajectory(folder, images, **{**known, **fields})
