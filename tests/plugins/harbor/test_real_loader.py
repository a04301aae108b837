"""Our task folders, read by Harbor's own loader and linter in an environment of their own."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.interop.environments import IndexUnreachable, environment
from helpers.interop.programs import PROGRAMS
from helpers.paths import ROOT
from judge.scenario.toml import load_scenario
from judge.trajectory.formats import tasks_writers
from shared.settings import Settings

SCENARIOS = ("demo", "miniwob", "frozen", "apps")


@pytest.mark.slow
@pytest.mark.nightly
def test_harbors_loader_and_linter_accept_what_we_export(tmp_path: Path) -> None:
    try:
        python = environment("harbor")
    except IndexUnreachable as error:
        pytest.skip(f"the package index cannot be reached: {error}")
    settings = Settings.from_environ({"WABE_SCENARIOS": "/none"})
    expected = {}
    for name in SCENARIOS:
        # A copy is no bundled scenario: its files are exported as well.
        scenario = shutil.copytree(ROOT / "scenarios" / name, tmp_path / name) / "scenario.toml"
        task = load_scenario(scenario).tasks[0]
        folder = tmp_path / "tasks" / name
        assert tasks_writers()["harbor"].write(scenario, [task.task_id], folder, settings) == {task.task_id: None}
        expected[folder / task.task_id] = (f"wabe/{name}-{task.task_id}", task.task)
    broken = shutil.copytree(next(iter(expected)), tmp_path / "broken")
    (broken / "tests" / "test.sh").unlink()
    (broken / "tests" / "Dockerfile").unlink()
    command = [str(python), str(PROGRAMS / "read_tasks.py"), *map(str, expected), str(broken)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={}, timeout=120)
    *found, wrong = map(json.loads, done.stdout.splitlines())
    assert "error" in wrong
    for each, (name, text) in zip(found, expected.values(), strict=True):
        assert each.get("name") == name
        assert text in each["instruction"]
        assert each["mcp"] == ["http://wabe:8000/mcp"]
        assert each["collected_in"] == ["wabe"]
        # An image of its own, which no file of `environment` is part of.
        assert each["verifier"] == ["tests", True]
        assert each["findings"] == []
