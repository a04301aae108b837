"""Folders of trajectories that WABE did not record: reports, checks and exports take what `wabe score` takes."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.plugins import skip_without_command, verify_run
from helpers.results import JUDGE, a_finished_run, a_result, a_verdict, write_attempt, write_verdict_on
from judge.commands.app import app as wabe
from judge.judges.stored import find_trajectories
from judge.report.build import make_report
from judge.report.data import read_task
from judge.results.folders import FolderStore, resolve_store
from judge.store.layout import TaskStore
from plugins.webeval.folders import TASK, write_score, write_webeval
from shared.errors import ConfigError
from wabe import RunConfig, score

V1 = {"task": "Find it", "action_history": ["<a> -> CLICK"], "thoughts": ["I look."], "final_result_response": "42"}


def write_v1(folder: Path) -> Path:
    (folder / "trajectory").mkdir(parents=True)
    (folder / "trajectory" / "0_full_screenshot.png").write_bytes(b"\x89PNG\r\n\x1a\n 0")
    (folder / "result.json").write_text(json.dumps(V1))
    return folder


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Three layouts at different depths; one trajectory over its budget, two with equal names."""
    folder = tmp_path / "field"
    write_webeval(folder / "a" / "same")
    write_webeval(folder / "b" / "same", dialect="spoken", answer={"final_answer": "<no_answer>"})
    write_v1(folder / "v1")
    write_attempt(TaskStore(folder / "own"), a_result("own"))
    return folder


def test_every_layout_is_a_task_with_an_id_of_its_own(mixed: Path, tmp_path: Path) -> None:
    store = resolve_store(str(mixed), tmp_path)
    assert [(task.name, task.folder.relative_to(mixed).as_posix()) for task in store.tasks()] == [
        ("same", "a/same"),
        ("same-2", "b/same"),
        ("own", "own"),
        ("v1", "v1"),
    ]


def test_the_report_shows_every_layout_with_its_images(mixed: Path, tmp_path: Path) -> None:
    store = resolve_store(str(mixed), tmp_path)
    page = make_report([store])
    assert page.is_relative_to(tmp_path / "folders")
    for name in ("same", "same-2", "own", "v1"):
        assert (page.parent / "tasks" / f"{name}.html").is_file()
    assert {path.name for path in (page.parent / "images" / "same").iterdir()} == {
        f"screenshot{number}.png" for number in range(5)
    }
    assert (page.parent / "images" / "v1" / "0_full_screenshot.png").is_file()
    assert "the evidence comes from the agent itself" in page.read_text()
    # Nothing is written to a folder that somebody else made.
    assert find_trajectories(mixed) == tuple(task.folder for task in store.tasks())


def test_verdicts_of_this_judge_and_of_its_own_evaluators_stand_side_by_side(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "field" / "t")
    write_score(folder, "gpt_eval", 0)
    write_verdict_on(TaskStore(folder), "webjudge-1", a_verdict("success"))
    (task,) = FolderStore(tmp_path / "field", tmp_path).tasks()
    view = read_task(task)
    assert view.row.outcome == "success"
    judged = {each.judge_id: each.outcome for each in view.row.given_verdicts}
    assert judged == {"webjudge-1": "success", "webeval-gpt_eval": "failure"}


def test_without_verdicts_of_this_judge_those_of_its_own_evaluators_count(tmp_path: Path) -> None:
    write_score(write_webeval(tmp_path / "field" / "t"), "gpt_eval", 1)
    (task,) = FolderStore(tmp_path / "field", tmp_path).tasks()
    assert read_task(task).row.outcome == "success"


def test_the_rate_of_completed_attempts_leaves_out_those_over_budget(tmp_path: Path) -> None:
    for name, answer in (("a", {}), ("b", {"final_answer": "<no_answer>"}), ("c", {"is_aborted": True})):
        write_score(write_webeval(tmp_path / "field" / name, answer=answer), "gpt_eval", 1)
    page = make_report([resolve_store(str(tmp_path / "field"), tmp_path)]).read_text()
    assert "1 of 2 scored tasks" in page
    assert "of which 100.0\u00a0% succeeded" in page


def test_a_folder_is_judged_and_then_verified(mixed: Path, tmp_path: Path) -> None:
    scored = asyncio.run(score(mixed, RunConfig(judge_model="offline")))
    assert {one.folder.parent.name: one.outcome for one in scored}["b"] == "failure"
    assert verify_run(resolve_store(str(mixed), tmp_path)).mismatches == ()
    (mixed / "a" / "same" / "screenshot2.png").write_bytes(b"\x89PNG\r\n\x1a\n another picture")
    assert [text.split("/")[0] for text in verify_run(resolve_store(str(mixed), tmp_path)).mismatches] == ["same"]


def test_a_folder_that_cannot_be_read_is_found_by_verify_and_shown_in_the_report(tmp_path: Path) -> None:
    (write_webeval(tmp_path / "field" / "t") / "screenshot2.png").unlink()
    store = resolve_store(str(tmp_path / "field"), tmp_path)
    assert [text.split(":")[0] for text in verify_run(store).mismatches] == ["t"]
    (task,) = store.tasks()
    assert read_task(task).row.outcome == "unfinished"


def test_a_run_stays_a_run(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, a_result())
    for argument in (run.run_id, "latest", str(run.folder)):
        assert type(resolve_store(argument, tmp_path)) is type(run)
    with pytest.raises(ConfigError, match="--tasks is for folders of other tools"):
        resolve_store("latest", tmp_path, tmp_path / "tasks.json")


def test_f2_the_commands_take_a_foreign_folder_with_a_file_of_tasks(tmp_path: Path) -> None:
    write_webeval(tmp_path / "field" / "Shop--0", task_file=False)
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps(TASK))
    output = ["--output-dir", str(tmp_path / "out")]
    arguments = [str(tmp_path / "field"), "--tasks", str(tasks), *output]
    # Offline there are no checks for it, so it stays unscored: exit code 1.
    skip_without_command("score")
    assert CliRunner().invoke(wabe, ["score", *arguments, "--model", "offline"]).exit_code == 1
    skip_without_command("verify")
    assert CliRunner().invoke(wabe, ["verify", str(tmp_path / "field"), *output]).exit_code == 0
    assert CliRunner().invoke(wabe, ["report", str(tmp_path / "field"), *output]).exit_code == 0
    skip_without_command("export")
    completed = CliRunner().invoke(wabe, ["export", str(tmp_path / "field"), "--format", "webeval", *output])
    assert completed.exit_code == 0, completed.output
    (files,) = (tmp_path / "out" / "folders").glob("*_field-*/export/webeval")
    assert json.loads((files / "tasks.json").read_text())[0]["confirmed_task"] == TASK["ques"]
    # The path of the tool: system, model, user, benchmark, run.
    (log,) = files.glob("runs/*/*/*/*/*/traj/Shop--0/web_surfer.log")
    assert log.is_file()


def test_the_judge_of_a_foreign_score_is_named(tmp_path: Path) -> None:
    write_score(write_webeval(tmp_path / "field" / "t"), "gpt_eval", 1)
    (task,) = FolderStore(tmp_path / "field", tmp_path).tasks()
    (view,) = read_task(task).verdicts
    assert view.judge_id == "webeval-gpt_eval"
    assert JUDGE.method not in str(view.facts)


def test_reports_of_folders_of_the_same_name_lie_apart(tmp_path: Path) -> None:
    stores = [FolderStore(write_webeval(tmp_path / name / "traj" / "t").parent, tmp_path) for name in ("a/x", "b/x")]
    assert len({make_report([store]) for store in stores}) == 2


def test_a_judge_that_decided_nothing_does_not_hide_the_scores_of_others(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "field" / "t")
    write_score(folder, "gpt_eval", 1)
    write_verdict_on(TaskStore(folder), "checks-1", a_verdict("unscored"))
    (task,) = FolderStore(tmp_path / "field", tmp_path).tasks()
    assert read_task(task).row.outcome == "success"


def test_the_scores_of_other_evaluators_are_compared_with_labels(tmp_path: Path) -> None:
    write_score(write_webeval(tmp_path / "field" / "t"), "gpt_eval", 1)
    (tmp_path / "labels.csv").write_text("task_id,human\nt,1\n")
    arguments = ["--verdicts", str(tmp_path / "field"), "--labels", str(tmp_path / "labels.csv")]
    skip_without_command("agreement")
    completed = CliRunner().invoke(wabe, ["agreement", *arguments, "--json"])
    assert "webeval-gpt_eval" in completed.output, completed.output


def test_verify_says_what_it_did_not_check_in_a_folder(tmp_path: Path) -> None:
    write_webeval(tmp_path / "field" / "t")
    verification = verify_run(resolve_store(str(tmp_path / "field"), tmp_path))
    assert (verification.mismatches, verification.is_foreign) == ((), True)
    assert verification.notes[1:] == (
        "digests of 1 of 1 trajectory: not recorded, not checked",
        "counts, rates and checksums: a folder that is not a run of WABE has none, not checked",
    )


def test_verify_reports_git_lfs_pointers_instead_of_screenshots(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "field" / "t")
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    for number in (1, 2):
        (folder / f"screenshot{number}.png").write_bytes(pointer)
    (folder / "screenshot4.png").write_bytes(b"<html>")
    assert verify_run(resolve_store(str(tmp_path / "field"), tmp_path)).mismatches == (
        't: Git LFS pointers instead of images (run git lfs pull): 2 of 5 screenshots, such as "screenshot1.png"',
        't: neither JPEG, PNG nor WebP: 1 of 5 screenshots, such as "screenshot4.png"',
    )
    result = CliRunner().invoke(wabe, ["verify", str(tmp_path / "field"), "--output-dir", str(tmp_path)])
    assert result.exit_code == 1
