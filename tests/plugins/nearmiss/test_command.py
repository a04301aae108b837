"""`wabe tasks mutate`: what it refuses and skips, what it keeps, and one play with a real browser."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.runner.concluded import concluded
from helpers.runner.scenario_runs import write_scenario
from helpers.scenario.copies import scenario_on_free_ports
from judge.commands.app import app
from judge.plugins.nearmiss.deciding import checks_digest
from judge.plugins.nearmiss.figure import BesideRates, figure_of
from judge.plugins.nearmiss.recordings import keep, recorded, write_report
from judge.plugins.nearmiss.walks import reference_digest
from judge.records.tasks import Task
from judge.scenario.sources import scenario_toml, toml_value
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.files import write_json

from .packing import START, play, script, walk_of

ADDED = {"kind": "request", "method": "POST", "url": "/api/things", "post_data": {"name": "Rope"}}
ONLY = {**ADDED, "only": True, "allow": [{"method": "POST", "url": "/api/look"}]}
RIGHT = script("Add Rope")


def a_scenario(folder: Path, *checks: Mapping[str, object], reference: str | None = "replay.toml") -> Path:
    steps = ", ".join(map(toml_value, RIGHT))
    (folder / "replay.toml").write_text(f'[[scripts]]\ntask = "Pack it all."\nsteps = [{steps}]\n')
    known = {"task_id": "pack", "website": START, "task": "Pack it all.", "checks": checks, "reference": reference}
    path = folder / "scenario.toml"
    path.write_text(scenario_toml([Task.model_validate(known)], participant="replay"))
    return path


def mutated(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["tasks", "mutate", *map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--operator", "twise"], "--operator 'twise' is not known (did you mean 'twice'?)"),
        (["--watch"], "--watch repeats --decide"),
        (["--decide"], "has no near misses of these tasks"),
        (["--task", "unpack"], "unpack"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(tmp_path: Path, options: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        mutated(a_scenario(tmp_path, ADDED), *options)


def test_a_task_that_cannot_be_tried_is_skipped_with_the_reason_and_counted(tmp_path: Path) -> None:
    for checks, reference, why in (
        ([ADDED], None, "it has no reference script"),
        ([], "replay.toml", "it has no checks"),
    ):
        code, output = mutated(path := a_scenario(tmp_path, *checks, reference=reference))
        assert code == 1
        assert f"skipped pack: {why}" in output
        assert "1 task of 1 skipped" in output
    (tmp_path / "replay.toml").write_text('[[scripts]]\ntask = "Another."\nsteps = [{ say = "a" }]\n')
    path.write_text(path.read_text() + f"checks = [{toml_value(ADDED)}]\n")
    assert "skipped pack: replay.toml has no script for it" in mutated(path)[1]


def test_what_was_kept_is_decided_again_with_the_checks_as_they_are_now(tmp_path: Path) -> None:
    path = a_scenario(tmp_path, ADDED)
    digest = reference_digest(Task(task_id="pack", website=START, task="Pack it all."), RIGHT)
    walks = [walk_of(RIGHT, f"right-{number}") for number in (1, 2)]
    walks.append(walk_of(script("Add Rope", "Add Rope"), "twice-1", "twice"))
    for each in walks:
        trajectory, _ = play(tmp_path / "played" / each.walk_id, each.steps, [ADDED])
        write_json(trajectory.folder / "result.json", trajectory.attempt.to_json())
        keep(each.model_copy(update={"reference": digest}), trajectory, tmp_path / "near-misses")
    # One of another script does not count.
    keep(walk_of(script(), "stop-1", "stop"), trajectory, tmp_path / "near-misses")
    assert len(list(recorded(tmp_path / "near-misses"))) == 4
    code, output = mutated(path, "--decide")
    assert code == 0
    assert "pack twice-1" in output
    assert "1 near miss: 1 survivor\nlet through 1 of 1: 1 twice" in output
    report = json.loads((tmp_path / "near-misses" / "report.json").read_text())
    assert report["let_through"] == {"survivors": {"twice": 1}, "of": 1}
    assert str(figure_of(path)) == "let through 1 of 1: 1 twice"
    # What is listed may be some of it; the report has all.
    assert "0 near misses: none" in mutated(path, "--decide", "--operator", "also")[1]
    assert json.loads((tmp_path / "near-misses" / "report.json").read_text()) == report
    edited = a_scenario(tmp_path, {**ONLY, "times": 1})
    assert figure_of(edited) is None
    assert "let through 0 of 1" in mutated(edited, "--decide")[1]
    assert str(figure_of(edited)) == "let through 0 of 1"


def test_a_run_says_beside_its_rate_what_its_checks_let_through(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "shop" / "scenario.toml")
    tasks = sorted(load_scenario(path).tasks, key=lambda each: each.task_id)
    of_tasks = {"checks_sha256": checks_digest(tasks), "tasks": [each.task_id for each in tasks]}
    report = {"let_through": {"survivors": {"twice": 1}, "of": 4}, **of_tasks}
    write_report(path.parent / "near-misses", report)
    assert "Near misses: the checks let through 1 of 4: 1 twice" in concluded(tmp_path, followers=[BesideRates])[1]
    write_report(path.parent / "near-misses", {**report, "checks_sha256": "0"})
    assert "Near misses" not in concluded(tmp_path, followers=[BesideRates])[1]


@pytest.mark.nightly
@pytest.mark.e2e
@pytest.mark.own_browser
def test_a_check_without_only_lets_another_cancelled_order_through(tmp_path: Path) -> None:
    path = scenario_on_free_ports("hire", tmp_path)
    shutil.copy(ROOT / "scenarios" / "hire" / "replay.toml", tmp_path)
    whole = path.read_text()
    without = re.sub(r'only = true, (description = "Order 1002[^"]*"), allow = \[.*?\n  \] ', r"\1 ", whole, flags=re.S)
    assert without != whole
    path.write_text(without)
    code, output = mutated(path, "--task", "hire_cancel", "--operator", "also", "--limit", "1")
    assert code == 0, output
    assert "let through 1 of 1: 1 also" in output
    assert "sends DELETE /api/orders/" in output
    assert "only = true" in output
    path.write_text(whole)
    code, output = mutated(path, "--task", "hire_cancel", "--decide")
    assert "let through 0 of 1" in output
