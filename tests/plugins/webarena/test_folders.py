"""Folders of WebArena-Verified that any program recorded, and its evaluator's results beside them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.plugins import skip_without_command
from judge.commands.app import app as wabe
from judge.judges.stored import find_trajectories
from judge.plugins.webarena.judge import WebArenaJudge
from judge.plugins.webarena.layout import FORMAT, finish, verdicts
from judge.plugins.webarena.tasks import SiteAddresses
from judge.records.verdicts import JudgeInfo, Verdict
from judge.trajectory.files import load_trajectory
from judge.trajectory.formats import Source
from plugins.webarena.sites import ABOUT, entry, har, imitation
from plugins.webarena.test_judge import result
from shared.errors import TrajectoryError

ANSWER = '{"action": "retrieve", "status": "SUCCESS"}'
ADDRESSES = SiteAddresses.model_validate({"environments": {"__SHOPPING__": {"urls": ["http://shop.test"]}}})


def recorded(folder: Path, *, answer: str | None = ANSWER, trace: Any = None, **results: Any) -> Path:
    folder.mkdir(parents=True)
    files = {"agent_response.json": answer, "network.har": json.dumps(trace or har(entry("http://shop.test/")))}
    for name, text in (files | {f"{name}.json": json.dumps(value) for name, value in results.items()}).items():
        if text is not None:
            (folder / name).write_text(text)
    return folder


def source(folder: Path) -> Source:
    return Source(folder.name, load_trajectory(folder), None, lambda: verdicts(folder))


def written(folder: Path, output: Path) -> dict[str, Any]:
    """The result that is exported for a task, as a file of the output."""
    assert FORMAT.writer is not None
    task = FORMAT.writer.write(source(folder))
    (output / task.name).mkdir(parents=True)
    for name, text in task.texts.items():
        (output / task.name / name).write_text(text)
    document: dict[str, Any] = json.loads(task.texts[f"{task.name}_eval_result.json"])
    return document


def test_v9_a_folder_of_any_harness_is_an_attempt_at_the_task_of_its_number(tmp_path: Path) -> None:
    trajectory = load_trajectory(recorded(tmp_path / "108"))
    assert (trajectory.task.task_id, trajectory.final_answer) == ("webarena-108", ANSWER)
    assert trajectory.network == tmp_path / "108" / "network.har"


def test_another_trace_is_another_trajectory(tmp_path: Path) -> None:
    digests = {
        load_trajectory(recorded(tmp_path / n / "7", trace=har(entry(f"http://{n}.test/")))).sha256 for n in "ab"
    }
    assert len(digests) == 2


async def test_the_evaluator_judges_a_folder_whose_instruction_is_not_stored(tmp_path: Path) -> None:
    reply = json.dumps({"result": result("success")})
    tasks = json.dumps({"tasks": [], "subsets": []})
    judge = await WebArenaJudge.open(imitation(tmp_path, json.dumps(ABOUT), tasks, reply), ADDRESSES)
    try:
        verdict = await judge.judge(load_trajectory(recorded(tmp_path / "7")))
    finally:
        await judge.aclose()
    assert verdict.outcome == "success"


@pytest.mark.parametrize(
    ("name", "left_out", "problem"),
    [
        ("shop", "", "the folder's name is not the number of a task"),
        ("7", "agent_response.json", "agent_response.json: no such file"),
    ],
)
def test_a_folder_that_is_almost_one_is_named_with_what_is_missing(
    tmp_path: Path, name: str, left_out: str, problem: str
) -> None:
    folder = recorded(tmp_path / "run" / name)
    recorded(tmp_path / "run" / "8")
    (folder / left_out).unlink() if left_out else None
    assert [found.name for found in find_trajectories(tmp_path / "run")] == sorted([name, "8"])
    with pytest.raises(TrajectoryError, match=problem):
        load_trajectory(folder)


def test_without_the_trace_the_rest_is_read(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "7")
    (folder / "network.har").unlink()
    trajectory = load_trajectory(folder)
    assert trajectory.final_answer == ANSWER
    assert str(trajectory.network_missing).endswith("network.har: no such file")


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        ("success", "success", "all evaluators passed"),
        ("failure", "failure", "NetworkEventEvaluator: failure"),
        ("partial_match", "failure", "partial match: NetworkEventEvaluator: partial_match"),
        ("error", "unscored", "NetworkEventEvaluator: error"),
    ],
)
def test_v6_the_recorded_result_is_a_verdict_and_a_partial_match_says_so(
    tmp_path: Path, status: str, outcome: str, reason: str
) -> None:
    (verdict,) = verdicts(recorded(tmp_path / "7", eval_result=result(status))).values()
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_a_damaged_result_is_unscored_and_names_its_key(tmp_path: Path) -> None:
    (verdict,) = verdicts(recorded(tmp_path / "7", eval_result={**result("success"), "sites": 3})).values()
    assert verdict.outcome == "unscored"
    assert "eval_result.json: sites:" in verdict.reason


def test_v7_a_result_is_written_as_the_package_writes_it(tmp_path: Path) -> None:
    package = result("success", actual={"status": "SUCCESS"}, expected=["a"], score=1.0)
    folder = recorded(tmp_path / "7", eval_result={**package, "intent_template_id": 253})
    document = written(folder, tmp_path / "out")
    assert (document["intent_template_id"], document["status"], document["score"]) == (253, "success", 1.0)
    (evaluator,) = document["evaluators_results"]
    assert (evaluator["actual"], evaluator["actual_normalized"], evaluator["expected"]) == (
        {"status": "SUCCESS"},
        None,
        ["a"],
    )


def test_a_success_that_does_not_count_is_written_as_a_failure_with_the_reason(tmp_path: Path) -> None:
    info = JudgeInfo.model_validate(
        dict.fromkeys(("model", "prompt_set", "prompt_version", "prompt_checksum", "package_version"), "1")
        | {"method": "webarena_verified", "threshold": 1, "code_checksum": "1"}
    )
    (read,) = verdicts(recorded(tmp_path / "7", eval_result=result("success"))).values()
    verdict = Verdict(outcome="failure", reason="a pattern", judge=info, evidence=read.evidence)
    assert FORMAT.writer is not None
    given = source(tmp_path / "7")._replace(verdicts=lambda: {"ours": verdict})
    document = json.loads(FORMAT.writer.write(given).texts["7_eval_result.json"])
    assert (document["status"], document["score"], document["error_msg"]) == ("failure", 0.0, "a pattern")


def test_v8_the_summary_lists_each_sites_tasks_with_their_status(tmp_path: Path) -> None:
    statuses = {"1": "success", "2": "failure", "3": "partial_match", "4": "error"}
    for name, status in statuses.items():
        sites = ["reddit", "gitlab"] if name == "4" else ["shopping"]
        written(
            recorded(tmp_path / "in" / name, eval_result={**result(status), "sites": sites}), output := tmp_path / "out"
        )
    finish(output, [output / name for name in statuses], {})
    summary = json.loads((output / "eval_summary.json").read_text())
    counts = [summary[key] for key in ("total", "success_count", "failed_count", "error_count")]
    assert counts == [4, 1, 2, 1]
    assert summary["per_site_summary"]["gitlab-reddit"] == [{"task_id": 4, "status": "error", "score": 0.0}]
    assert [each["task_id"] for each in summary["per_site_summary"]["shopping"]] == [1, 2, 3]
    assert len(summary["task_results"]) == 4
    assert summary["timestamp"]
    assert summary["webarena_verified_version"] == "0"


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_v7_the_documented_jq_recipes_run_unchanged_on_an_export(tmp_path: Path) -> None:
    skip_without_command("export")
    for name, status in (("1", "success"), ("2", "failure")):
        recorded(tmp_path / "in" / name, eval_result=result(status))
    arguments = [
        "export",
        str(tmp_path / "in"),
        "--format",
        "webarena-verified",
        "--output-dir",
        str(tmp_path / "runs"),
    ]
    CliRunner().invoke(wabe, [*arguments, "--output", str(tmp_path / "output")])
    recipe = 'find output -name "*_eval_result.json" -exec jq -r \'select(.status {} "success") | .task_id\' {{}} \\;'
    for operator, task in (("==", "1"), ("!=", "2")):
        found = subprocess.run(
            recipe.format(operator), shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert found.stdout.split() == [task]
