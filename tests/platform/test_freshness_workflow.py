"""The weekly workflow that checks tasks on live websites."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.paths import ROOT

WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "freshness.yml").read_text())
JOB: dict[str, Any] = WORKFLOW["jobs"]["check"]
STEPS: list[dict[str, Any]] = JOB["steps"]


def using(action: str) -> dict[str, Any]:
    (step,) = [step for step in STEPS if step.get("uses", "").startswith(f"{action}@")]
    return step


def test_without_a_scenario_the_job_is_skipped_and_not_passed() -> None:
    assert JOB["if"] == JOB["env"]["SCENARIO"] == "${{ inputs.scenario || vars.FRESHNESS_SCENARIO }}"


def test_what_was_seen_is_kept_also_when_the_check_fails() -> None:
    # `actions/cache` itself saves nothing in a job that fails.
    restored, saved = using("actions/cache/restore"), using("actions/cache/save")
    assert saved["if"].startswith("${{ !cancelled()")
    assert restored["with"]["path"] == saved["with"]["path"]
    assert saved["with"]["key"].startswith(restored["with"]["restore-keys"])


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_check_ends_as_the_command_does_and_its_report_is_in_the_summary(tmp_path: Path, code: int) -> None:
    (step,) = [step for step in STEPS if step.get("name") == "Check"]
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    (programs / "wabe").write_text(f'#!/bin/sh\necho "asked: $*"\nexit {code}\n')
    (programs / "wabe").chmod(0o755)
    (tmp_path / "step.sh").write_text(step["run"])
    environ = {**os.environ, "SCENARIO": "my tasks.toml", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    words = step["shell"].replace("{0}", "step.sh").split()
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    request = "asked: tasks check my tasks.toml --state freshness.json --propose exclusions.toml"
    assert (done.returncode, done.stdout) == (code, f"{request}\n"), done.stderr
    assert (tmp_path / "summary.md").read_text() == f"```\n{request}\n```\n"
