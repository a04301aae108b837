"""The documentation scenario: a website that nobody here wrote, Debian's HTML manual of PostgreSQL."""

import json
from pathlib import Path

import pytest
import tomli

from helpers.paths import ROOT
from helpers.runner.commands import run_command
from helpers.scenario.copies import scenario_on_free_ports

DOCS = ROOT / "scenarios" / "docs"
MANUAL = Path("/usr/share/doc/postgresql-doc-15/html")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not MANUAL.is_dir(), reason="the manual is not installed: apt-get install postgresql-doc-15"),
]


def test_its_verdicts_are_the_expected_ones(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("docs", tmp_path)
    ended = run_command(
        tmp_path / "tmp", "agentbeats-run", scenario, "--max-parallel", "2", "--output-dir", tmp_path / "out"
    )
    assert ended.code == 0, ended.stdout + ended.stderr
    results = json.loads(next((tmp_path / "out" / "runs").glob("*/results.json")).read_text())
    found = {task["task_id"]: task["verdict"] for task in results["results"][0]["detail"]["tasks"]}
    expected = tomli.loads((DOCS / "expected.toml").read_text())
    assert found == {task_id: entry["verdict"] for task_id, entry in expected.items()}
    assert ended.left_processes == {}
