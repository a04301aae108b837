"""A run that an older version recorded is read, shown, scored and verified, and never rewritten."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judge.commands.app import app
from judge.report.build import make_report
from judge.results.verify import verify_run
from judge.store import load_trajectory
from judge.store.layout import OLDER_RUN_SCHEMAS, RunStore
from judge.trajectory.files import read_result
from judge.trajectory.record import FIRST_RULES, OLDER_RESULT_SCHEMAS
from shared.errors import TrajectoryError

RECORDED = Path(__file__).parents[2] / "fixtures" / "runs" / "20261121-235844-81a1"


@pytest.fixture
def older(tmp_path: Path) -> RunStore:
    """A copy of the recorded run."""
    store = RunStore(tmp_path, RECORDED.name)
    shutil.copytree(RECORDED, store.folder)
    return store


def results(store: RunStore) -> dict[str, bytes]:
    """Every file but verdicts, which judges may add, and the lock that a writer holds."""
    paths = sorted(path for path in store.folder.rglob("*") if path.is_file() and path.parent.name != "verdicts")
    paths = [path for path in paths if path.name != ".judge.lock"]
    return {str(path): path.read_bytes() for path in paths}


def test_the_recorded_run_is_of_an_older_version(older: RunStore) -> None:
    run = older.read_run() or {}
    assert run["schema_version"] in OLDER_RUN_SCHEMAS
    assert read_result(older.task("red_rugs").folder)["schema_version"] in OLDER_RESULT_SCHEMAS


def test_its_trajectories_load_with_a_digest_of_what_is_on_disk(older: RunStore) -> None:
    trajectory = load_trajectory(older.task("red_rugs").folder)
    assert (len(trajectory.steps), trajectory.is_digested) == (6, False)
    assert trajectory.sha256 is not None


def test_its_missing_digests_are_a_note_and_not_a_mismatch(older: RunStore) -> None:
    findings = verify_run(older)
    assert findings.mismatches == ()
    assert findings.notes[0] == "older version (wabe-run-1): digests not recorded, not checked"


def test_its_counts_are_still_checked(older: RunStore) -> None:
    path = older.folder / "results.json"
    value = json.loads(path.read_text())
    value["results"][0]["detail"]["success_rate"] = 100.0
    path.write_text(json.dumps(value))
    assert any("success_rate" in line for line in verify_run(older).mismatches)


def test_it_has_a_report(older: RunStore, tmp_path: Path) -> None:
    assert "red_rugs" in make_report([older], tmp_path / "report").read_text()


def test_scoring_it_adds_verdicts_and_rewrites_nothing(older: RunStore) -> None:
    before = results(older)
    done = CliRunner().invoke(app, ["score", older.run_id, "--output-dir", str(older.output_dir), "--again"])
    # Its tasks declare no checks, which that version did not know.
    assert (done.exit_code, "2 trajectories, 0 success, 0 failure, 2 unscored" in done.stdout) == (1, True)
    assert len(list(older.folder.rglob("verdicts/checks-*.json"))) == 2
    assert results(older) == before


def test_a_result_of_a_version_that_is_not_known_is_refused(older: RunStore) -> None:
    path = older.task("red_rugs").folder / "result.json"
    path.write_text(path.read_text().replace('"wabe-1"', '"wabe-99"'))
    with pytest.raises(TrajectoryError, match="wabe-99"):
        load_trajectory(path.parent)


def test_its_aborted_attempts_stay_aborted_and_keep_their_recorded_blame(older: RunStore) -> None:
    folder = older.task("red_rugs").folder
    recorded = read_result(folder) | {"is_aborted": True, "error": "no disk space", "blame": "us"}
    (folder / "result.json").write_text(json.dumps(recorded))
    trajectory = load_trajectory(folder)
    assert trajectory.attempt is not None
    assert (trajectory.is_aborted, trajectory.attempt.cause) == (True, "us: no disk space")


def test_a_recording_without_provenance_is_judged_by_the_rules_of_its_version(tmp_path: Path) -> None:
    recorded = RECORDED.with_name("20261123-083136-d85abfa0")
    store = RunStore(tmp_path, recorded.name)
    shutil.copytree(recorded, store.folder)
    before = {task.name: read_result(task.folder)["verdict"] for task in store.tasks()}
    assert before == dict.fromkeys(("deal_of_the_day", "express_order", "product_by_suggestion"), "success")
    code = ("judging code", "prompt set")
    assert [line for line in verify_run(store).mismatches if not line.startswith(code)] == []
    done = CliRunner().invoke(
        app, ["score", store.run_id, "--output-dir", str(tmp_path), "--model", "offline", "--again"]
    )
    assert (done.exit_code, "3 trajectories, 3 success" in done.stdout) == (0, True), done.output
    document = [json.loads(path.read_text()) for path in store.folder.rglob("verdicts/checks-*.json")]
    again = [verdict for verdict in document if "note" in verdict["judge"] and verdict["judge"]["note"]]
    assert [verdict["judge"]["prompt_version"] for verdict in again] == [FIRST_RULES] * 3
