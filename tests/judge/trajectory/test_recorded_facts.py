"""What is recorded stays the same to the byte: runs and attempts as the version of 2026-11-27 wrote them."""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.recorded import recorded_run
from helpers.trajectory.varied import attempts
from judge.commands.app import app
from judge.records.verdicts import Verdict
from judge.results.entries import counts_of, read_entries
from judge.results.run_record import judge_id_of
from judge.results.submission import TaskSummary, detail_of
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import load_trajectory, read_attempt, read_result, read_steps
from judge.trajectory.record import Attempt, evidence_sha256
from shared.claims import ClaimedUsage

RECORDED = ROOT / "tests" / "fixtures" / "recorded_facts"
# Later columns, as they are where nothing of them was recorded.
ADDED = {
    **dict.fromkeys(("sealed", "score", "site_tools", "actions", "max_actions", "isolation")),
    "site_tool_calls": 0,
}
KINDS = ("demo", "held", "safety", "miniwob", "hosted", "frozen", "shards")
EPOCHS = recorded_run()


@cache
def recorded(name: str) -> Any:
    return json.loads(lzma.decompress((RECORDED / f"{name}.json.xz").read_bytes()))


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with the recorded runs: their records, without images and snapshots."""
    folder = tmp_path_factory.mktemp("recorded")
    for name, text in recorded("runs")["files"].items():
        path = folder / "runs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def dumped(attempt: Attempt) -> str:
    return json.dumps(attempt.to_json(), indent=2, ensure_ascii=False, allow_nan=False)


def tasks_of(output: Path, kind: str) -> list[TaskStore]:
    run = RunStore(output, kind)
    return [task for each in (run, *run.shards()) for task in each.tasks()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_written_as_it_was_recorded(output: Path, kind: str) -> None:
    tasks = tasks_of(output, kind)
    assert tasks
    for task in tasks:
        text = (task.folder / "result.json").read_text()
        assert dumped(read_attempt(task.folder)) == text.removesuffix("\n")
        result = read_result(task.folder)
        assert evidence_sha256(result) == result["trajectory_sha256"]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_verdicts_are_written_as_they_were_recorded(output: Path, kind: str, tmp_path: Path) -> None:
    for place, task in enumerate(tasks_of(output, kind)):
        again = TaskStore(tmp_path / str(place))
        again.begin()
        for step in read_steps(task.folder / "steps.jsonl"):
            again.append_step(step)
        for path in task.folder.glob("verdicts/*.json"):
            again.write_verdict(path.stem, Verdict.model_validate_json(path.read_bytes()))
        for path in (*task.folder.glob("steps.jsonl"), *task.folder.glob("verdicts/*.json")):
            assert (again.folder / path.relative_to(task.folder)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_submission_is_made_as_it_was_recorded(output: Path, kind: str) -> None:
    run = RunStore(output, kind)
    record = run.read_run() or {}
    (result,) = json.loads((run.folder / "results.json").read_text())["results"]
    detail = result["detail"]
    done = [TaskSummary.of(read_attempt(t.folder), judge_id_of(record, t.name, t.epoch)) for t in run.tasks()]
    by_key = {(entry["task_id"], entry["epoch"]): entry for entry in (each.entry for each in done)}
    assert [by_key[entry["task_id"], entry["epoch"]] for entry in detail["tasks"]] == detail["tasks"]
    assert [list(by_key[entry["task_id"], entry["epoch"]]) for entry in detail["tasks"]] == list(
        map(list, detail["tasks"])
    )
    known = {key: detail[key] for key in ("judge", "cost_usd", "provenance")}
    again = detail_of(read_entries(detail["tasks"]), **known)
    # The metered usage is added when the run has ended.
    metered = [key for key in detail if key not in again]
    assert all(key.startswith("participant") for key in metered)
    assert json.dumps(again) == json.dumps({key: detail[key] for key in detail if key not in metered})
    assert counts_of(detail["tasks"]).items() >= {"success_rate": detail["success_rate"]}.items()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_as_they_were(output: Path, kind: str) -> None:
    done = CliRunner().invoke(app, ["export", str(output / "runs" / kind), "--format", "jsonl", "--output", "-"])
    assert done.exit_code == 0, done.output
    expected = [row | ADDED for row in recorded("runs")["rows"][kind]]
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


@pytest.mark.parametrize("layout", ["online-mind2web-v2", "webeval"])
def test_digests_of_foreign_folders_are_as_they_were(tmp_path: Path, layout: str) -> None:
    done = CliRunner().invoke(app, ["export", str(EPOCHS), "--format", layout, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    digests = recorded("runs")["foreign"][layout]
    assert sorted(digests) == sorted(folder.name for folder in tmp_path.iterdir() if folder.is_dir())
    for name, digest in digests.items():
        if layout == "webeval":
            (tmp_path / name / "task.json").write_text('{"task": "x"}')
        assert load_trajectory(tmp_path / name).sha256 == digest


def test_an_attempt_with_any_facts_is_written_as_it_was() -> None:
    for each in recorded("attempts"):
        facts = each["attempt"]
        claimed = facts["claimed_usage"] and ClaimedUsage.model_validate(facts["claimed_usage"])
        assert dumped(Attempt.model_validate({**facts, "claimed_usage": claimed})) == each["result"]


def test_an_attempt_with_any_facts_is_read_and_written_again_unchanged() -> None:
    for each in recorded("attempts"):
        assert dumped(Attempt.from_json(json.loads(each["result"]), source="result.json")) == each["result"]


@settings(max_examples=60)
@given(attempts())
def test_what_is_written_is_read_back_with_every_fact(attempt: Attempt) -> None:
    again = Attempt.from_json(json.loads(json.dumps(attempt.to_json())), source="result.json")
    assert again.to_json() == attempt.to_json()
