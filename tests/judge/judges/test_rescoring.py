"""Judging stored trajectories."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from helpers.llm.scripted import JPEG, ScriptedModel, parts_for, webjudge_script
from helpers.results import a_result, a_step, digested
from judge.judges.rescoring import Scored, judge_stored
from judge.judges.stored import find_trajectories, score_all
from judge.judges.webjudge import WebJudge
from judge.records.ledger import Frozen, LedgerEntry
from judge.records.verdicts import Verdict
from judge.store.layout import TaskStore
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError, ModelUnavailable


def v1_folder(parent: Path, name: str, **more: Any) -> Path:
    folder = parent / name
    (folder / "trajectory").mkdir(parents=True)
    for number in range(2):
        (folder / "trajectory" / f"{number}.jpg").write_bytes(JPEG + f"{name}{number}".encode())
    result = {"task": f"Do {name}", "task_id": name, "action_history": ["<a> -> CLICK"], "thoughts": [], **more}
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def v2_folder(parent: Path, name: str) -> Path:
    folder = v1_folder(parent, name)
    steps = [{"action": "<a> -> CLICK", "screenshot": "0.jpg"}, {"action": "done", "screenshot": "1.jpg"}]
    result = {"schema_version": "online-mind2web-v2", "task": "Do it", "task_id": name, "action_history": steps}
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def own_folder(parent: Path, name: str, **more: Any) -> Path:
    folder = v1_folder(parent, name)
    steps = (a_step(0, screenshot="trajectory/0.jpg", snapshot=None),)
    result = digested(folder, a_result(name, steps=steps).to_json() | more)
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def judge_with(model: ScriptedModel, **config: Any) -> WebJudge:
    return WebJudge(parts_for(model, **config))


async def score_one(folder: Path, judge: WebJudge, **options: Any) -> Scored:
    return await judge_stored(TaskStore(folder), judge, **options)


async def score(folders: list[Path], judge: WebJudge, **options: Any) -> list[Scored]:
    done: list[Scored] = []
    await score_all(folders, judge, max_parallel=3, done=done.append, **options)
    return sorted(done, key=lambda scored: scored.folder)


@pytest.mark.parametrize("make", [v1_folder, v2_folder, own_folder])
async def test_every_layout_is_scored_and_its_verdict_written(tmp_path: Path, make: Any) -> None:
    folder = make(tmp_path, "t1")
    judge = judge_with(ScriptedModel(webjudge_script()))
    scored = await score_one(folder, judge)
    stored = Verdict.model_validate_json((folder / "verdicts" / f"{judge.id}.json").read_bytes())
    assert scored.outcome == "success"
    assert stored == scored.verdict


async def test_verdicts_of_several_judges_are_kept_side_by_side(tmp_path: Path) -> None:
    folder = v1_folder(tmp_path, "t1")
    for threshold in (2, 3):
        await score_one(folder, judge_with(ScriptedModel(webjudge_script()), score_threshold=threshold))
    assert len(list((folder / "verdicts").iterdir())) == 2


async def test_a_verdict_given_before_is_kept_and_costs_nothing(tmp_path: Path) -> None:
    folder = v1_folder(tmp_path, "t1")
    await score_one(folder, judge_with(ScriptedModel(webjudge_script())))
    model = ScriptedModel(webjudge_script(status="failure"))
    scored = await score_one(folder, judge_with(model))
    assert (scored.outcome, scored.kept, model.requests) == ("success", True, [])


async def test_again_judges_what_has_a_verdict(tmp_path: Path) -> None:
    folder = v1_folder(tmp_path, "t1")
    await score_one(folder, judge_with(ScriptedModel(webjudge_script())))
    scored = await score_one(folder, judge_with(ScriptedModel(webjudge_script(status="failure"))), again=True)
    assert (scored.outcome, scored.kept) == ("failure", False)


async def test_a_failing_model_does_not_replace_an_earlier_verdict(tmp_path: Path) -> None:
    folder = v1_folder(tmp_path, "t1")
    first = await score_one(folder, judge_with(ScriptedModel(webjudge_script())))
    judge = judge_with(ScriptedModel(lambda _: ModelUnavailable("down")))
    second = await score_one(folder, judge, again=True)
    stored = Verdict.model_validate_json((folder / "verdicts" / f"{judge.id}.json").read_bytes())
    assert second.outcome == "unscored"
    assert stored == first.verdict


async def test_a_success_that_a_frozen_site_does_not_confirm_is_judged_once(tmp_path: Path) -> None:
    missed = LedgerEntry(step=0, method="GET", url="https://example.org/x", kind="fetch", grade="miss")
    frozen = Frozen(archives=()).with_ledger([missed]).model_dump(mode="json")
    folder = own_folder(tmp_path, "t1", frozen=frozen, coverage="off_archive")
    model = ScriptedModel(webjudge_script())
    judge = judge_with(model)
    first = await score_one(folder, judge)
    asked = len(model.requests)
    second = await score_one(folder, judge)
    assert first.verdict is not None
    assert (first.outcome, first.verdict.reason_code) == ("unscored", "off_archive")
    assert (second.outcome, second.kept, len(model.requests)) == ("unscored", True, asked)
    tally = pytest.importorskip("judge.plugins.rejudging.output").JudgeTally(judge, is_run=True, is_quiet=True)
    tally.take(second)
    assert tally.is_complete


async def test_an_unscored_trajectory_is_judged_again(tmp_path: Path) -> None:
    folder = v1_folder(tmp_path, "t1")
    first = await score_one(folder, judge_with(ScriptedModel(lambda _: ModelUnavailable("down"))))
    second = await score_one(folder, judge_with(ScriptedModel(webjudge_script())))
    assert (first.outcome, second.outcome) == ("unscored", "success")


async def test_a_broken_folder_is_reported_and_the_others_are_scored(tmp_path: Path) -> None:
    good, broken, damaged = (v1_folder(tmp_path, name) for name in ("a", "b", "c"))
    (broken / "result.json").write_text("{")
    (tmp_path / "d").mkdir()
    results = await score([good, broken, damaged, tmp_path / "d"], judge_with(ScriptedModel(webjudge_script())))
    assert [scored.outcome for scored in results] == ["success", "broken", "success", "broken"]
    assert "result.json" in results[1].reason


async def test_a_folder_with_a_missing_image_is_broken(tmp_path: Path) -> None:
    folder = v2_folder(tmp_path, "t1")
    (folder / "trajectory" / "1.jpg").unlink()
    scored = await score_one(folder, judge_with(ScriptedModel(webjudge_script())))
    assert scored.outcome == "broken"
    assert "1.jpg" in scored.reason


async def test_a_folder_with_an_impossible_file_name_is_broken(tmp_path: Path) -> None:
    folder = v2_folder(tmp_path, "t1")
    result = json.loads((folder / "result.json").read_text())
    result["action_history"][0]["screenshot"] = "x" * 5000
    (folder / "result.json").write_text(json.dumps(result))
    assert (await score_one(folder, judge_with(ScriptedModel(webjudge_script())))).outcome == "broken"


async def test_an_aborted_task_is_not_judged(tmp_path: Path) -> None:
    model = ScriptedModel(webjudge_script())
    folder = own_folder(tmp_path, "t1", stop_reason="environment_fault", is_aborted=True, error="browser died")
    scored = await score_one(folder, judge_with(model))
    assert (scored.outcome, model.requests) == ("aborted", [])
    assert "browser died" in scored.reason


@pytest.mark.parametrize("stop_reason", ["max_steps", "task_timeout", "participant_error", "unreadable_replies"])
async def test_an_end_that_settles_the_score_asks_no_model(tmp_path: Path, stop_reason: str) -> None:
    model = ScriptedModel(webjudge_script())
    scored = await score_one(own_folder(tmp_path, "t1", stop_reason=stop_reason), judge_with(model))
    assert (scored.outcome, model.requests) == ("failure", [])


async def test_a_verdict_settled_without_a_judge_still_names_the_judge(tmp_path: Path) -> None:
    judge = judge_with(ScriptedModel(webjudge_script()))
    scored = await score_one(own_folder(tmp_path, "t1", stop_reason="max_steps"), judge)
    assert scored.verdict is not None
    assert scored.verdict.judge == judge.info


async def test_max_parallel_limits_concurrent_judging(tmp_path: Path) -> None:
    running, peak, three = 0, 0, asyncio.Barrier(3)

    class Counting(WebJudge):
        async def judge(self, trajectory: Trajectory) -> Verdict:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            await three.wait()
            running -= 1
            return Verdict(outcome="success", reason="")

    folders = [v1_folder(tmp_path, f"t{number}") for number in range(9)]
    await score(folders, Counting(parts_for(ScriptedModel(webjudge_script()))))
    assert peak == 3


def test_a_single_folder_a_folder_of_folders_and_a_run_are_found(tmp_path: Path) -> None:
    results = tmp_path / "results"
    folders = tuple(v1_folder(results, name) for name in ("a", "b"))
    assert find_trajectories(folders[0]) == folders[:1]
    assert find_trajectories(results) == folders
    assert find_trajectories(tmp_path) == folders


def test_a_folder_without_any_trajectory_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no trajectory"):
        find_trajectories(tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        find_trajectories(tmp_path / "absent")
