"""`wabe verify`: a run as it was written matches; every change to it is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.json_files import edit
from helpers.results import A_TRACE, JUDGE, a_finished_run, a_result, a_step, a_verdict
from judge.commands.app import app
from judge.judges.code import code_checksum
from judge.plugins.verification.verifying import verify_run
from judge.store.layout import RunStore
from judge.trajectory.record import evidence_sha256
from shared.errors import ConfigError


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """A finished run of three tasks: a success, a failure without a model, an abort."""
    code = code_checksum()
    judge = JUDGE.model_copy(update={"code_checksum": code, "prompt_checksum": code})
    return a_finished_run(
        tmp_path,
        a_result(
            "t1",
            verdict=a_verdict(judge=judge),
            versions={"browser": "Chromium 1"},
            final_look=a_step(2, line=None),
            network=A_TRACE,
        ),
        a_result("t2", "max_steps", verdict=a_verdict("failure", judge=None)),
        a_result("t3", "environment_fault", steps=(), error="gone", blame="browser"),
    )


def mismatches(store: RunStore) -> tuple[str, ...]:
    return verify_run(store).mismatches


def detail(value: Any) -> Any:
    return value["results"][0]["detail"]


def test_a_run_as_it_was_written_matches(store: RunStore) -> None:
    assert mismatches(store) == ()


CHANGES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "rate": ("results.json", lambda v: detail(v).update(success_rate=99.0), "success_rate"),
    "count": ("results.json", lambda v: detail(v).update(aborted_tasks=0), "aborted_tasks"),
    "rate of all": ("results.json", lambda v: detail(v).pop("success_rate_of_all"), "success_rate_of_all"),
    "cost": ("results.json", lambda v: detail(v).update(cost_usd=0), "cost_usd"),
    "entry": ("results.json", lambda v: detail(v)["tasks"][1].update(success=True), "t2: success"),
    "entry's count": ("results.json", lambda v: detail(v)["tasks"][1].pop("steps_taken"), "t2: steps_taken"),
    "added": ("results.json", lambda v: detail(v)["tasks"][0].update(bonus=1), "t1: bonus"),
    "dropped": ("results.json", lambda v: detail(v)["tasks"].pop(), "t3 is missing"),
    "invented": ("results.json", lambda v: detail(v)["tasks"].append({"task_id": "t9"}), '"t9" has no files'),
    "twice": ("results.json", lambda v: detail(v)["tasks"].append(detail(v)["tasks"][0]), "entries"),
    "tasks": ("results.json", lambda v: detail(v)["provenance"].update(task_set_checksum="0"), "task_set_checksum"),
    "config": ("results.json", lambda v: detail(v)["provenance"].update(config_checksum="0"), "config_checksum"),
    "code": ("results.json", lambda v: detail(v)["provenance"].update(judge_code_checksum="0"), "judge_code_checksum"),
    "prompts": ("results.json", lambda v: detail(v)["provenance"].update(prompt_checksum="0"), "prompt_checksum"),
    "settings": ("run.json", lambda v: v["config"].update(max_steps=99), "config_checksum"),
    "verdict": ("results/t2/result.json", lambda v: v.update(verdict_of_judge="success"), "verdict of result.json"),
    "instruction": ("results/t1/result.json", lambda v: v.update(task="Another"), "task_set_checksum"),
    "action": ("results/t1/result.json", lambda v: v["steps"][0]["outcome"].update(line="<x> -> CLICK"), "step 0"),
    "steps": ("results/t1/result.json", lambda v: v["steps"].pop(), "number of steps"),
    "final look": ("results/t1/result.json", lambda v: v["final_look"].update(url="https://x/"), "trajectory_sha256"),
    "no final look": ("results/t1/result.json", lambda v: v.update(final_look=None), "trajectory_sha256"),
    "judge": ("results/t1/result.json", lambda v: v["judge"].update(code_checksum="0"), "judging code"),
    "prompt set": ("results/t1/result.json", lambda v: v["judge"].update(prompt_checksum="0"), "prompt set"),
    "unreadable": ("results/t1/result.json", lambda v: v.clear(), "results/t1/result.json"),
    "scores": ("results/t1/result.json", lambda v: v["image_judge_record"][0].update(Score=5), "image_judge_record"),
    "credit": ("run.json", lambda v: v["config"].update(participant_ids={"white_agent": "id-1"}), "participants"),
    "winner": ("results.json", lambda v: v["results"][0].update(winner="another"), "winner"),
    "verdict file": ("results/t1/verdicts/webjudge-1.json", lambda v: v.update(outcome="failure"), "verdict of"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found_and_named(store: RunStore, name: str) -> None:
    path, change, text = CHANGES[name]
    edit(store.folder / path, change)
    assert any(text in mismatch for mismatch in mismatches(store)), mismatches(store)


@pytest.mark.parametrize(
    "name",
    """
        trajectory/step_000.jpg snapshots/step_001.yaml final/screenshot.jpg final/snapshot.yaml network.har
        result.json steps.jsonl verdicts/webjudge-1.json
    """.split(),
)
def test_a_missing_file_is_found(store: RunStore, name: str) -> None:
    (store.folder / "results" / "t1" / name).unlink()
    assert mismatches(store)


@pytest.mark.parametrize(
    "name", ["trajectory/step_000.jpg", "snapshots/step_001.yaml", "final/screenshot.jpg", "network.har"]
)
def test_a_changed_file_is_found(store: RunStore, name: str) -> None:
    path = store.folder / "results" / "t1" / name
    path.write_bytes(path.read_bytes() + b"!")
    assert any(name in mismatch for mismatch in mismatches(store))


def test_a_file_beside_the_final_look_belongs_to_nothing(store: RunStore) -> None:
    (store.folder / "results" / "t1" / "final" / "more.jpg").write_bytes(b"more")
    assert mismatches(store) == ('results/t1/final/"more.jpg": belongs to no step',)


def test_a_network_trace_that_was_not_recorded_is_found(store: RunStore) -> None:
    (store.folder / "results" / "t2" / "network.har").write_text("{}")
    assert mismatches(store) == ("results/t2/network.har: belongs to no recorded network trace",)


def test_an_attempt_without_a_network_trace_has_the_digest_of_one_from_before_there_were_any() -> None:
    result = a_result("t1").to_json()
    before = {key: value for key, value in result.items() if key not in ("network", "network_missing")}
    assert evidence_sha256(before) == result["trajectory_sha256"]


def test_an_attempt_without_a_final_look_has_the_digest_of_one_from_before_there_were_any() -> None:
    result = a_result("t1").to_json()
    assert (
        evidence_sha256({key: value for key, value in result.items() if key != "final_look"})
        == (result["trajectory_sha256"])
    )


def test_a_run_that_is_not_finished_does_not_match(store: RunStore) -> None:
    (store.folder / "results.json").unlink()
    assert any("not finished" in mismatch for mismatch in mismatches(store))


def test_other_versions_are_a_note_and_not_a_mismatch(store: RunStore) -> None:
    edit(store.folder / "run.json", lambda v: v["packages"].update(mcp="0.0.1"))
    findings = verify_run(store)
    assert findings.mismatches == ()
    assert any("mcp: made with 0.0.1" in note for note in findings.notes)


def test_a_folder_without_a_run_is_a_config_error(store: RunStore) -> None:
    (store.folder / "run.json").unlink()
    with pytest.raises(ConfigError, match=r"run\.json"):
        verify_run(store)


def test_the_command_ends_with_1_when_something_does_not_match(store: RunStore, tmp_path: Path) -> None:
    arguments = ["verify", "run-1", "--output-dir", str(tmp_path)]
    good = CliRunner().invoke(app, arguments)
    assert (good.exit_code, "match" in good.output) == (0, True)
    edit(store.folder / "results.json", lambda v: detail(v).update(success_rate=99.0))
    bad = CliRunner().invoke(app, arguments)
    assert bad.exit_code == 1
    assert "success_rate: 99.0 is stored, expected 50.0" in bad.output


def test_what_decided_a_task_is_checked(store: RunStore) -> None:
    edit(store.folder / "results.json", lambda value: detail(value)["tasks"][0].update(decided_by="checks"))
    edit(store.folder / "run.json", lambda run: run["decided_by"].update(judge=7))
    assert any("decided_by" in each for each in mismatches(store) if each.startswith("results.json"))
    assert any("decided_by" in each for each in mismatches(store) if each.startswith("run.json"))


def a_run_of_two_epochs(folder: Path) -> RunStore:
    """Two tasks, one of which fails the second time."""
    code = code_checksum()
    judge = JUDGE.model_copy(update={"code_checksum": code, "prompt_checksum": code})
    return a_finished_run(
        folder,
        *(
            a_result(
                task,
                epoch=epoch,
                verdict=a_verdict("failure" if (task, epoch) == ("t2", 2) else "success", judge=judge),
            )
            for epoch in (1, 2)
            for task in ("t1", "t2")
        ),
    )


def test_a_run_of_several_epochs_matches(tmp_path: Path) -> None:
    store = a_run_of_two_epochs(tmp_path)
    assert mismatches(store) == ()
    counts = detail(json.loads((store.folder / "results.json").read_text()))
    assert (counts["success_rate"], counts["total_tasks"], counts["attempts"]) == (75.0, 2, 4)


EPOCH_CHANGES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "epoch": ("epochs/2/results/t1/result.json", lambda v: v.update(epoch=1), "epochs/2/results/t1: epoch"),
    "verdict": ("epochs/2/results/t1/result.json", lambda v: v.update(verdict="failure"), "epochs/2/results/t1"),
    "dropped": ("results.json", lambda v: detail(v)["tasks"].pop(), "t2.2 is missing"),
    "repeats": ("results.json", lambda v: detail(v)["repeats"].update(variance=0), "repeats"),
    "fewer": ("run.json", lambda v: v["config"].pop("epochs"), "epochs/2/results/t1: not a task of run.json"),
}


@pytest.mark.parametrize("name", EPOCH_CHANGES)
def test_changes_to_a_run_of_several_epochs_are_found(tmp_path: Path, name: str) -> None:
    store = a_run_of_two_epochs(tmp_path)
    path, change, expected = EPOCH_CHANGES[name]
    edit(store.folder / path, change)
    assert any(expected in each for each in mismatches(store)), mismatches(store)


@pytest.mark.slow
def test_a_large_run_is_verified_in_several_processes(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.plugins.verification.verifying._MANY_TASKS", 2)
    alone = verify_run(store)
    assert alone.mismatches == ()
    assert "not recomputed: 1 verdict by a judge model" in alone.notes
    edit(store.folder / "results/t1/result.json", lambda v: v["key_points"].pop())
    assert any("key_points" in line for line in mismatches(store))
