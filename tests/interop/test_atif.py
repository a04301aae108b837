"""Our exports in ATIF, read by Harbor's own models in an environment of their own."""

import json
import subprocess
from pathlib import Path

import pytest

from helpers.interop.environments import IndexUnreachable, environment
from helpers.results import a_result, a_step, a_verdict, write_attempt
from judge.records.steps import Outcome, Step
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.formats import Source, writers
from shared.claims import ClaimedUsage
from shared.models import Action

PROGRAM = Path(__file__).parent / "programs" / "read_atif.py"
ODD = Action(tool="browser_type", params={"text": "a\udc80", "n": float("inf"), "deep": [{"x": None}]}, thought="")
CASES: dict[str, tuple[Step, ...]] = {
    "played": (a_step(0), a_step(1, line="<page> -> FINISH")),
    "without a step": (),
    "an unreadable reply": (a_step(0, action=None, outcome=None, reply="???", feedback="No JSON in it."),),
    "odd parameters": (a_step(0, action=ODD, reply='{"a": "\udc80"}'),),
    "an action that failed": (a_step(0, outcome=Outcome(ok=False, message="no such element")),),
    "without screenshots": (a_step(0, screenshot=None), a_step(1, screenshot=None)),
}


@pytest.mark.slow
@pytest.mark.nightly
def test_harbors_models_accept_what_we_export(tmp_path: Path) -> None:
    try:
        python = environment("harbor")
    except IndexUnreachable as error:
        pytest.skip(f"the package index cannot be reached: {error}")
    paths = []
    for number, steps in enumerate(CASES.values()):
        attempt = a_result(f"t{number}", steps=steps, claimed_usage=ClaimedUsage(basis="recorded", input=5, output=2))
        write_attempt(TaskStore(tmp_path / f"run{number}"), attempt)
        trajectory = load_trajectory(tmp_path / f"run{number}")
        written_submission = writers()["atif"].write(Source(f"t{number}", trajectory, a_verdict(), dict))
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(written_submission.texts["trajectory.json"])
    (tmp_path / "wrong.json").write_text('{"schema_version": "ATIF-v1.8", "agent": {}, "steps": []}')
    command = [str(python), str(PROGRAM), *map(str, paths), str(tmp_path / "wrong.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={}, timeout=120)
    *document, wrong = map(json.loads, done.stdout.splitlines())
    assert "error" in wrong
    assert [each.get("error") for each in document] == [None] * len(CASES)
    assert [each["steps"] for each in document] == [1 + len(steps) for steps in CASES.values()]
    assert document[0]["calls"] == ["browser_click", "browser_click"]
