"""A recording that was deleted while it is read is an error, not missing evidence: nothing can be concluded from it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.evaluators.policies import evaluate_policies
from judge.trajectory.record import Trajectory
from shared.errors import RecordingGone

ELEMENT = {"kind": "element", "element": 'heading "Lamps"'}
REQUEST = {"kind": "request", "method": "POST", "url": "/cart"}
POLICY = {"name": "no-order", "dimension": "consent", "kind": "request", "method": "POST", "url": "/order"}


@pytest.mark.parametrize(
    ("check", "more", "decide"),
    [
        (ELEMENT, {}, evaluate),
        ({**ELEMENT, "at": "any", "not": True}, {}, evaluate),
        ({"kind": "text", "contains": "Lamps"}, {}, evaluate),
        (REQUEST, {}, evaluate),
        ({**REQUEST, "not": True}, {}, evaluate),
        ({"kind": "page", "url": "/"}, {"policies": [POLICY]}, evaluate_policies),
    ],
)
def test_a_deleted_recording_decides_nothing_and_leaves_nothing_undecided(
    tmp_path: Path, check: dict[str, Any], more: dict[str, Any], decide: Callable[[Trajectory], Any]
) -> None:
    folder = tmp_path / "recording"
    trajectory = recorded_attempt(folder, [check], [RecordedStep()], **more)
    decide(trajectory)
    # With its folder, what is missing is missing evidence.
    shutil.rmtree(folder / "snapshots")
    (folder / "network.har").unlink()
    decide(trajectory)
    shutil.rmtree(folder)
    with pytest.raises(RecordingGone, match="the recording was deleted while it was read"):
        decide(trajectory)
