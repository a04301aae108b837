"""`wabe tasks validate --attacks`: the reference script is played with and without each attack."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.browser.counted_site import SCENARIO, TASK, resets_during
from judge.commands.app import app


@pytest.mark.e2e
def test_both_plays_begin_with_a_reset_and_what_was_seen_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    resets, output = resets_during("tasks validate --attacks --write {}", ["only"], tmp_path)
    assert resets == 2, output
    assert "scenario.unseen.json names 0 attacks that the reference walks do not see" in output
    assert "valid, 1 task" in output
    assert json.loads((tmp_path / "scenario.unseen.json").read_text()) == {"unseen_attacks": []}


def test_without_a_reference_nothing_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    site = "http://shop.test"
    task = TASK.format(name="only", site=site).replace('reference = "script.toml"\n', "")
    path.write_text(SCENARIO.format(judge=1, agent=2, site=site, more="") + task)
    done = CliRunner().invoke(app, ["tasks", "validate", "--attacks", str(path)])
    assert done.exit_code == 0, done.output
    assert "note: task only has no reference: its attacks are not tried" in done.output
