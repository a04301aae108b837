"""An edited verdict that needs no judge model: found by `wabe verify`, replaced by `wabe score` and on resume."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.episode.one_page_shop import assess_in_shop
from helpers.json_files import edit
from helpers.plugins import skip_without_command, verify_run
from helpers.results import A_TRACE, JUDGE, a_finished_run, a_result, a_verdict, verdict_of_checks, write_verdict_on
from judge.commands.app import app
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.judges.code import code_checksum
from judge.records.tasks import Task
from judge.records.verdicts import NO_PROMPTS
from judge.results.progress import with_verdict
from judge.store.layout import RunStore
from judge.trajectory.record import CURRENT_RULES, Attempt
from shared.models import Action
from shared.protocol import render_reply

Edit = Callable[[dict[str, Any]], object]
CHECKS = ChecksJudge(RunConfig(judge_model="offline")).id
BY_CODE = JUDGE.model_copy(update={"method": "webarena_verified", "prompt_set": NO_PROMPTS})


def attempt(task_id: str, url: str, stop_reason: Any = "finished", checks: Any = (), **changes: Any) -> Attempt:
    task = Task.model_validate(
        {
            "task_id": task_id,
            "website": "https://example.org/",
            "task": "Find it.",
            "checks": checks or [{"kind": "page", "url": url}],
        }
    )
    result = a_result(task_id, stop_reason, task=task, verdict=None, **changes)
    return result if stop_reason != "finished" else with_verdict(result, verdict_of_checks(result))


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    """A finished run: a task that its checks fail, one that they pass."""
    return a_finished_run(tmp_path, attempt("lost", "/never"), attempt("won", "/*"), judge_id=CHECKS)


def verdict_file(run: RunStore, task: str = "lost") -> Path:
    return run.task(task).folder / f"verdicts/{CHECKS}.json"


def score(run: RunStore, *options: str) -> str:
    skip_without_command("score")
    done = CliRunner().invoke(app, ["score", run.run_id, "--output-dir", str(run.output_dir), *options])
    assert done.exit_code in (0, 1), done.output
    return done.output


def pass_every_check(verdict: dict[str, Any]) -> None:
    for check in verdict["evidence"]["checks"]:
        check["passed"] = True


EDITS: dict[str, tuple[Edit, str]] = {
    "outcome": (lambda v: v.update(outcome="success"), 'outcome: "success" is stored, expected "failure"'),
    "outcome, unscored": (lambda v: v.update(outcome="unscored"), 'outcome: "unscored" is stored'),
    "reason": (lambda v: v.update(reason="the check passed"), 'reason: "the check passed" is stored'),
    "reason with controls": (lambda v: v.update(reason="\x1b[2J\u202e"), "reason: "),
    "evidence": (pass_every_check, "evidence.checks[0].passed: true is stored, expected false"),
    "evidence removed": (lambda v: v.update(evidence={}), "evidence: {} is stored"),
    "key points": (lambda v: v.update(key_points=[]), "key_points: [] is stored"),
    "screenshots' scores": (lambda v: v["image_judge_record"][0].update(Score=5), "image_judge_record"),
    "flags": (lambda v: v.update(flags=["suspected_injection"]), "flags"),
    "cost": (lambda v: v.update(cost_usd=9.0), "cost_usd: 9.0 is stored, expected 0.0"),
    "rules": (lambda v: v["judge"].update(prompt_version="99"), 'judge.prompt_version: "99" is stored'),
    "judge removed": (lambda v: v.update(judge=None, outcome="success"), 'outcome: "success" is stored'),
    "passed off as a model's": (
        lambda v: v.update(outcome="success", judge={**v["judge"], "method": "webjudge", "model": "m"}),
        'outcome: "success" is stored',
    ),
    "passed off as of other code": (
        lambda v: v.update(outcome="success", judge={**v["judge"], "code_checksum": "0"}),
        'outcome: "success" is stored',
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_verdict_of_checks_is_named_by_verify_and_replaced_by_score(run: RunStore, what: str) -> None:
    assert verify_run(run).mismatches == ()
    whole = json.loads(verdict_file(run).read_text())
    change, expected = EDITS[what]
    edit(verdict_file(run), change)
    mismatches = verify_run(run).mismatches
    assert any(f"results/lost/verdicts/{CHECKS}.json: {expected}" in line for line in mismatches), mismatches
    assert "(kept)" not in score(run)
    stored = json.loads(verdict_file(run).read_text())
    assert {**stored, "judge": None} == {**whole, "judge": None}
    assert verify_run(run).mismatches == ()


def edit_everywhere(run: RunStore) -> None:
    """The failure as a success, in the verdict, in the attempt's result and in the submission."""
    edit(verdict_file(run), lambda v: v.update(outcome="success", reason="the check passed"))
    edit(
        run.task("lost").folder / "result.json",
        lambda v: v.update(verdict="success", verdict_of_judge="success", reason="the check passed"),
    )

    def change(value: Any) -> None:
        entry = value["results"][0]["detail"]["tasks"][0]
        entry.update(verdict="success", success=True, reason="the check passed")

    edit(run.folder / "results.json", change)


def test_a_verdict_edited_in_all_three_places_is_found_and_replaced(run: RunStore) -> None:
    edit_everywhere(run)
    verification = verify_run(run)
    assert any(f"verdicts/{CHECKS}.json: outcome" in line for line in verification.mismatches)
    printed = score(run)
    assert "lost: failure (the stored verdict differed)" in printed
    assert "1 stored verdict differed from what the recording gives, and was replaced: lost" in printed
    assert verify_run(run).mismatches == ()


def test_score_counts_replaced_verdicts_in_its_json(run: RunStore) -> None:
    edit_everywhere(run)
    summary = json.loads(score(run, "--json"))
    assert (summary["replaced"], summary["updated"], summary["kept"]) == (["lost"], ["lost"], 0)
    assert json.loads(score(run, "--json"))["replaced"] == []


def test_a_score_of_another_judge_does_not_take_over_an_edited_verdict_of_checks(run: RunStore) -> None:
    """The run's judge was of other code, so that the installed one has another id and writes another file."""
    older = "checks-000000000000"
    for task in run.tasks():
        path = task.folder / f"verdicts/{CHECKS}.json"
        edit(path, lambda v: v["judge"].update(code_checksum="0" * 64, prompt_checksum="0" * 64))
        path.rename(path.with_name(f"{older}.json"))
    edit(run.folder / "run.json", lambda v: v.update(judge_id=older))
    edit(run.task("lost").folder / f"verdicts/{older}.json", lambda v: v.update(outcome="success"))
    score(run)
    result = json.loads((run.task("lost").folder / "result.json").read_text())
    assert result["verdict"] == "failure"
    assert json.loads((run.task("lost").folder / f"verdicts/{older}.json").read_text())["outcome"] == "failure"


@pytest.mark.parametrize("stop_reason", ["max_steps", "task_timeout", "participant_error", "unreadable_replies"])
def test_an_edited_verdict_that_the_end_settles_is_found_and_replaced(tmp_path: Path, stop_reason: str) -> None:
    run = a_finished_run(tmp_path, attempt("t1", "/*", stop_reason), judge_id=CHECKS)
    score(run)
    assert verify_run(run).mismatches == ()
    edit(verdict_file(run, "t1"), lambda v: v.update(outcome="success", reason="the check passed"))
    mismatches = verify_run(run).mismatches
    printed = score(run)
    assert f'results/t1/verdicts/{CHECKS}.json: outcome: "success" is stored, expected "failure"' in mismatches
    assert "t1: failure (the stored verdict differed)" in printed


def test_an_edited_model_verdict_on_an_attempt_over_budget_is_found(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, a_result("t1", "max_steps", verdict=a_verdict("failure", judge=None)))
    assert verify_run(run).mismatches == ()
    edit(run.task("t1").folder / "verdicts/webjudge-1.json", lambda v: v.update(outcome="success"))
    mismatches = verify_run(run).mismatches
    assert any("webjudge-1.json: outcome" in line for line in mismatches)


def test_verify_counts_the_verdicts_that_it_cannot_recompute(tmp_path: Path) -> None:
    code = code_checksum()
    model = a_verdict(judge=JUDGE.model_copy(update={"code_checksum": code, "prompt_checksum": code}))
    run = a_finished_run(tmp_path, a_result("t1", verdict=model), a_result("t2", verdict=model))
    write_verdict_on(run.task("t2"), "webarena_verified-1", a_verdict(judge=BY_CODE))
    verification = verify_run(run)
    assert verification.mismatches == ()
    assert "not recomputed: 2 verdicts by a judge model" in verification.notes
    assert "not recomputed: 1 verdict by webarena_verified" in verification.notes


def test_a_forged_verdict_of_a_model_does_not_decide_a_task_with_checks(run: RunStore) -> None:
    write_verdict_on(run.task("lost"), "webjudge-1", a_verdict())
    edit(run.folder / "run.json", lambda v: v.update(judge_ids={"lost": "webjudge-1"}))
    verification = verify_run(run)
    assert any('names "webjudge-1" as its judge, but its checks decide' in line for line in verification.mismatches)


def of_other_code(verdict: dict[str, Any], **changes: str) -> None:
    verdict["judge"].update({"code_checksum": "0" * 64, "prompt_checksum": "0" * 64} | changes)


def as_recorded_by_other_code(run: RunStore, change: Edit) -> None:
    """As another version of WABE would have recorded the run."""

    def in_detail(value: Any) -> None:
        detail = value["results"][0]["detail"]
        change(detail)
        detail["provenance"].update(judge_code_checksum="0" * 64, prompt_checksum="0" * 64)

    for task in run.tasks():
        edit(verdict_file(run, task.name), change)
        edit(task.folder / "result.json", change)
    edit(run.folder / "results.json", in_detail)
    edit(run.folder / "run.json", change)


def test_a_run_judged_by_other_code_with_the_same_rules_still_matches(run: RunStore) -> None:
    as_recorded_by_other_code(run, of_other_code)
    # Another version may word differently what it found.
    for task in run.tasks():
        edit(verdict_file(run, task.name), lambda v: v["evidence"]["checks"][0].update(found="in other words"))
    verification = verify_run(run)
    assert verification.mismatches == ()
    assert any("judging code" in note for note in verification.notes)


def test_a_run_judged_by_unknown_rules_is_reported_as_not_checked(run: RunStore) -> None:
    as_recorded_by_other_code(run, lambda v: of_other_code(v, prompt_version="99"))
    verification = verify_run(run)
    assert verification.mismatches == ()
    assert (
        "not recomputed: 2 verdicts by version 99 of the rules of checks, which is not installed" in verification.notes
    )
    assert CURRENT_RULES != "99"


def test_a_verdict_of_checks_given_without_the_runs_settings_is_recomputed_without_them(tmp_path: Path) -> None:
    elsewhere = attempt("t1", "https://pay.example/")
    run = a_finished_run(
        tmp_path,
        elsewhere,
        judge_id=ChecksJudge(RunConfig(allowed_sites=("pay.example",))).id,
        config=RunConfig(judge_model="offline", allowed_sites=("pay.example",)),
    )
    skip_without_command("score")
    done = CliRunner().invoke(app, ["score", str(run.task("t1").folder), "--model", "offline"])
    assert done.exit_code == 0, done.output
    verification = verify_run(run)
    assert len(list(run.task("t1").folder.glob("verdicts/checks-*.json"))) == 2
    assert verification.mismatches == ()


class Player:
    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        return render_reply(Action(tool="finish"))


@pytest.mark.parametrize("what", ["the verdict only", "the verdict and the result", "its evidence only"])
async def test_an_edited_verdict_of_checks_does_not_survive_resuming(tmp_path: Path, what: str) -> None:
    checks = [{"kind": "page", "url": "/never"}]
    first = await assess_in_shop(tmp_path, Player(), 1, max_steps=3, checks=checks)
    folder = RunStore(tmp_path, "r").task("t0").folder
    (path,) = folder.glob("verdicts/*.json")
    if what == "its evidence only":
        edit(path, pass_every_check)
    else:
        edit(path, lambda v: v.update(outcome="success", reason="the check passed"))
    if what == "the verdict and the result":
        edit(folder / "result.json", lambda v: v.update(verdict_of_judge="success", reason="the check passed"))
    done = await assess_in_shop(tmp_path, Player(), 1, max_steps=3, checks=checks)
    assert [first[0].outcome, done[0].outcome] == ["failure", "failure"]
    assert json.loads(path.read_text())["outcome"] == "failure"
    assert not json.loads(path.read_text())["evidence"]["checks"][0]["passed"]
    assert not (folder / "attempts").exists()


def test_a_success_whose_evidence_was_deleted_is_not_scored_again(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, attempt("t1", "/*"), judge_id=CHECKS)
    shutil.rmtree(run.task("t1").folder / "snapshots")
    printed, verification = score(run), verify_run(run)
    assert "broken" in printed
    assert any("snapshots/" in line for line in verification.mismatches)
    assert "not recomputed: 1 verdict on a recording that is damaged" in verification.notes


def test_a_success_by_a_request_is_unscored_without_the_trace(tmp_path: Path) -> None:
    """What cannot be recomputed because its evidence is gone does not stay a success."""
    requested = {"kind": "request", "url": "/**", "method": "GET"}
    run = a_finished_run(tmp_path, attempt("t1", "/*", network=A_TRACE, checks=[requested]), judge_id=CHECKS)
    edit(verdict_file(run, "t1"), lambda v: v.update(outcome="success"))
    (run.task("t1").folder / "network.har").unlink()
    verification, printed = verify_run(run), score(run)
    assert verification.mismatches
    assert "t1: unscored (the stored verdict differed)" in printed
