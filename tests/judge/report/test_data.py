"""Reading a run for its report."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from helpers.runs import JUDGE_ID, write_synthetic_run, write_task
from judge.records.tasks import Task
from judge.records.verdicts import Verdict
from judge.report.data import TaskView, host_of, read_run, read_task
from judge.store.layout import RunStore

TASK = Task(task_id="t1", website="https://www.lamps.example/", task="Find a lamp.", level="easy", reference_length=3)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    run = RunStore(tmp_path, "20260101-000000-test")
    run.create()
    return run


def read(store: RunStore, **changes: Any) -> TaskView:
    write_task(store, TASK, **changes)
    return read_task(store.task("t1"))


def test_a_judged_task_has_its_facts_in_its_row(store: RunStore) -> None:
    row = read(store, outcome="success", steps=4).row
    assert (row.outcome, row.site, row.steps, row.reference_length) == ("success", "lamps.example", 4, 3)
    assert len(row.scores) == 4


def test_the_phases_add_up_to_the_attempt(store: RunStore) -> None:
    row = read(store, steps=3).row
    phases = row.phases
    assert row.duration_s == pytest.approx(phases.observe_s + phases.reply_s + phases.act_s + phases.other_s)


def test_the_element_of_an_action_is_found_in_the_recorded_snapshot(store: RunStore) -> None:
    element = read(store).steps[0].element
    assert element is not None
    assert (element.label, element.box) == ('searchbox "Search"', (48, 150, 420, 36))


def test_a_name_that_looks_like_a_reference_is_not_mistaken_for_one(store: RunStore) -> None:
    write_task(store, TASK)
    for path in (store.task("t1").folder / "snapshots").iterdir():
        path.write_text('- link "x [ref=e4] [box=1,1,1,1]" [ref=e9]\n- searchbox "Search" [ref=e4] [box=5,6,7,8]\n')
    element = read_task(store.task("t1")).steps[0].element
    assert element is not None
    assert (element.label, element.box) == ('searchbox "Search"', (5, 6, 7, 8))


def test_a_snapshot_without_boxes_gives_the_element_and_no_box(store: RunStore) -> None:
    write_task(store, TASK)
    for path in (store.task("t1").folder / "snapshots").iterdir():
        path.write_text('- textbox "Search" [ref=e4]')
    element = read_task(store.task("t1")).steps[0].element
    assert element is not None
    assert element.box is None


def test_each_screenshot_has_its_score(store: RunStore) -> None:
    task = read(store, steps=3)
    assert [step.score.Score for step in task.steps if step.score] == list(task.row.scores)


def test_scores_are_not_assigned_to_steps_unless_there_is_one_per_screenshot(store: RunStore) -> None:
    write_task(store, TASK, steps=3)
    place = store.task("t1")
    verdict = place.read_verdict(JUDGE_ID)
    assert verdict is not None
    place.write_verdict(JUDGE_ID, verdict.model_copy(update={"image_judge_record": verdict.image_judge_record[:2]}))
    task = read_task(place)
    assert {step.score for step in task.steps} == {None}
    assert task.counted is not None
    assert len(task.counted.scores) == 2


def test_the_verdict_that_counts_comes_first_and_others_beside_it(store: RunStore) -> None:
    write_task(store, TASK, "success")
    store.task("t1").write_verdict("another-1", Verdict(outcome="failure", reason="no"))
    task = read_task(store.task("t1"))
    assert [verdict.judge_id for verdict in task.verdicts] == [JUDGE_ID, "another-1"]
    assert {each.judge_id: each.outcome for each in task.row.given_verdicts} == {
        JUDGE_ID: "success",
        "another-1": "failure",
    }


def test_without_verdict_files_the_verdict_of_the_result_is_shown(store: RunStore) -> None:
    write_task(store, TASK, "success")
    (store.task("t1").folder / "verdicts" / f"{JUDGE_ID}.json").unlink()
    task = read_task(store.task("t1"))
    assert task.counted is not None
    assert (task.counted.outcome, [each.is_stored for each in task.row.given_verdicts]) == ("success", [False])


def test_a_damaged_verdict_file_is_shown_and_does_not_hide_the_rest(store: RunStore) -> None:
    write_task(store, TASK, "success")
    (store.task("t1").folder / "verdicts" / "torn-1.json").write_text('{"outcome": "succ')
    assert [verdict.outcome for verdict in read_task(store.task("t1")).verdicts] == ["success", "unreadable"]


@pytest.mark.parametrize("content", ['{"schema_version": "wabe-1"', "[]", '{"schema_version": "other"}', "{}"])
def test_a_damaged_result_is_listed_as_unfinished_with_the_cause(store: RunStore, content: str) -> None:
    write_task(store, TASK)
    (store.task("t1").folder / "result.json").write_text(content)
    task = read_task(store.task("t1"))
    assert (task.row.outcome, len(task.steps)) == ("unfinished", 4)
    assert "result.json" in task.row.why


def test_an_attempt_without_a_result_shows_its_recorded_steps(store: RunStore) -> None:
    write_task(store, TASK, steps=2)
    (store.task("t1").folder / "result.json").unlink()
    task = read_task(store.task("t1"))
    assert (task.row.outcome, len(task.steps), task.steps[0].image) == ("unfinished", 2, "step_000.png")


def test_a_task_that_never_began_is_listed(store: RunStore) -> None:
    store.write_run({"task_ids": ["t1", "later"]})
    write_task(store, TASK)
    assert [read_task(store.task(name)).row.outcome for name in read_run(store).task_ids] == ["success", "unfinished"]


def test_tasks_are_in_the_order_of_the_scenario(store: RunStore) -> None:
    store.write_run({"task_ids": ["z", "t1"]})
    write_task(store, TASK)
    assert read_run(store).task_ids == ("z", "t1")


def test_a_run_without_run_json_can_be_read(tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, tasks=2)
    (store.folder / "run.json").unlink()
    run = read_run(store)
    assert (run.role, run.task_ids) == ("", ("task_000", "task_001"))


def test_a_screenshot_path_outside_the_folder_is_not_followed(store: RunStore) -> None:
    write_task(store, TASK, steps=1)
    path = store.task("t1").folder / "result.json"
    result = json.loads(path.read_text())
    result["steps"][0] |= {"screenshot": "trajectory/../../../../secret.png", "snapshot": "snapshots/../../x"}
    path.write_text(json.dumps(result))
    (step,) = read_task(store.task("t1")).steps
    assert (step.image, step.element) == (None, None)


def test_an_aborted_attempt_that_was_set_aside_is_counted(store: RunStore) -> None:
    write_task(store, TASK, "aborted")
    assert read(store).earlier_attempts == 1


def test_refused_addresses_are_shown_with_their_step(store: RunStore) -> None:
    write_task(store, TASK, steps=1)
    path = store.task("t1").folder / "result.json"
    result = json.loads(path.read_text())
    result["steps"][0]["refused"] = ["10.0.0.1:80"]
    path.write_text(json.dumps(result))
    assert read_task(store.task("t1")).steps[0].record.refused == ("10.0.0.1:80",)


@pytest.mark.parametrize(("action", "step"), [(1, 1), (3, 3), (9, None), (0, None)])
def test_the_step_that_went_wrong_is_found_by_its_action(store: RunStore, action: int, step: int | None) -> None:
    write_task(store, TASK, "failure", steps=3, stop_reason="finished", seed=1)
    place = store.task("t1")
    verdict = place.read_verdict(JUDGE_ID)
    assert verdict is not None
    evidence = {"rubric": {"first_failure": {"action": action}}}
    place.write_verdict(JUDGE_ID, verdict.model_copy(update={"evidence": evidence}))
    task = read_task(place)
    assert all(each.line for each in task.steps)
    assert task.wrong_step == step


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://www.Maps.example/x", "maps.example"), ("http://u:p@h:81/", "h:81"), ("", "unknown"), ("odd", "odd")],
)
def test_websites_are_grouped_by_host(url: str, host: str) -> None:
    assert host_of(url) == host


def test_of_several_verdicts_of_checks_the_newest_is_the_ground_truth(store: RunStore) -> None:
    judged = read(store, outcome="success").row
    assert judged.outcome == "success"
    place = store.task("t1")
    counted = place.read_verdict(JUDGE_ID)
    assert counted is not None
    assert counted.judge is not None
    by_checks = {"judge": counted.judge.model_copy(update={"method": "checks"})}
    for judge_id, outcome, written_at in (("checks-b", "failure", 1), ("checks-a", "success", 2)):
        place.write_verdict(judge_id, counted.model_copy(update={"outcome": outcome, **by_checks}))
        os.utime(place.folder / "verdicts" / f"{judge_id}.json", (written_at, written_at))
    assert read_task(place).row.differences == ()


@pytest.mark.parametrize(("outcome", "expected"), [("failure", 3), ("success", None), ("aborted", None)])
def test_a_failure_without_a_step_that_went_wrong_opens_at_its_last_step(
    store: RunStore, outcome: str, expected: int | None
) -> None:
    assert read(store, outcome=outcome, steps=3).first_shown == expected
