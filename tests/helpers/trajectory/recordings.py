"""Recorded attempts made by hand: pages as snapshots, actions as lines, and what the task's checks make of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from judge.evaluators.base import Assertion
from judge.evaluators.checks import CheckEvaluator
from judge.trajectory.record import Trajectory
from shared.models import Action, Outcome, ProbeValue, Record, Step, Task

SHOP = "http://shop.test"
VIEWPORT = (1280, 720)


class RecordedStep(Record):
    """One observation, and the action that followed it."""

    path: str = "/"
    snapshot: str = '- heading "Shop" [level=1] [ref=e1]'
    title: str = "Shop"
    line: str | None = None
    dialog: str | None = None
    tool: str = "browser_click"
    params: dict[str, Any] = Field(default_factory=dict)
    is_ok: bool = True
    viewport: tuple[int, int] | None = VIEWPORT
    probes: tuple[ProbeValue, ...] = ()


def recorded_attempt(
    folder: Path, checks: Sequence[dict[str, Any]], seen: Sequence[RecordedStep], answer: str | None = None, **task: Any
) -> Trajectory:
    """A finished attempt whose snapshots are on disk."""
    (folder / "snapshots").mkdir(parents=True, exist_ok=True)
    steps = []
    for index, one in enumerate(seen):
        name = f"snapshots/step_{index:03d}.yaml"
        (folder / name).write_text("" if one.dialog else one.snapshot, encoding="utf-8")
        steps.append(
            Step(
                index=index,
                url=one.path if "://" in one.path or one.path.startswith(("about:", "data:")) else SHOP + one.path,
                title=one.title,
                screenshot=None if one.dialog else f"trajectory/step_{index:03d}.jpg",
                snapshot=name,
                dialog=one.dialog,
                viewport=one.viewport,
                probes=one.probes,
                action=Action(tool=one.tool, params=one.params),
                outcome=Outcome(ok=one.is_ok, line=one.line if one.is_ok else None),
            )
        )
    known = {"task_id": "t", "website": f"{SHOP}/", "task": "Do it.", "checks": list(checks), **task}
    return Trajectory(
        folder=folder,
        task=Task.model_validate(known),
        action_history=tuple(one.line for one in seen if one.line),
        steps=tuple(steps),
        final_answer=answer,
        stop_reason="finished",
    )


def evaluate_check(
    folder: Path,
    check: dict[str, Any],
    seen: Sequence[RecordedStep] = (RecordedStep(),),
    answer: str | None = None,
    **task: Any,
) -> Assertion:
    """What one check makes of an attempt."""
    (assertion,) = CheckEvaluator().evaluate(recorded_attempt(folder, [check], seen, answer, **task))
    return assertion
