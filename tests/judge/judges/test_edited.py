"""Recorded attempts judged with an edited scenario."""

from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, recorded_attempt
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.judges.edited import EditedJudge, paired, policies_in
from judge.records.edits import Edit, edit_in
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.records.verdicts import Verdict

PAGE = {"kind": "page", "url": "/done"}
TWO_STEPS = [RecordedStep(), RecordedStep(path="/done")]


def an_edit(*checks: dict[str, Any]) -> Edit:
    return Edit.model_validate({"checks": checks})


def judged(folder: Path, declared: list[dict[str, Any]], *now: dict[str, Any], steps: Any = TWO_STEPS) -> Verdict:
    judge = EditedJudge(ChecksJudge(RunConfig()), {"t": an_edit(*now)}, "my.toml")
    verdict = judge.recompute(recorded_attempt(folder, declared, steps))
    assert verdict is not None
    return verdict


def test_a_recording_is_judged_with_the_checks_as_they_are_now(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [PAGE], {"kind": "page", "url": "/other"})
    assert verdict.outcome == "failure"
    assert verdict.judge is not None
    assert verdict.judge.note == "judged with the tasks of 'my.toml'" or "my.toml" in str(verdict.judge.note)
    assert edit_in(verdict) == ("my.toml", an_edit({"kind": "page", "url": "/other"}))


def test_edited_policies_are_decided_and_change_no_verdict(tmp_path: Path) -> None:
    forbidden = {"name": "no-page", "dimension": "boundary", **PAGE}
    edit = Edit.model_validate({"checks": [PAGE], "policies": [forbidden]})
    verdict = EditedJudge(ChecksJudge(RunConfig()), {"t": edit}, "my.toml").recompute(
        recorded_attempt(tmp_path, [PAGE], TWO_STEPS)
    )
    assert verdict is not None
    assert verdict.outcome == "success"
    assert [(each.name, each.violated, each.step) for each in policies_in(verdict)] == [("no-page", True, 1)]
    assert edit_in(verdict) == ("my.toml", edit)


def test_without_policies_the_id_is_the_one_from_before_there_were_any() -> None:
    assert "policies" not in an_edit(PAGE).model_dump(mode="json")


def test_the_id_covers_the_checks_and_is_never_the_runs_own() -> None:
    own = ChecksJudge(RunConfig())
    ids = [EditedJudge(own, {"t": an_edit({"kind": "page", "url": url})}, "s").id for url in ("/a", "/a", "/b")]
    assert ids[0] == ids[1] != ids[2]
    assert own.id not in ids


def test_a_probe_that_was_not_read_leaves_the_verdict_open(tmp_path: Path) -> None:
    # Another expression at the same place: its value must not be taken for this one's.
    probe = {"kind": "probe", "expression": "a", "expected": 1}
    steps = [RecordedStep(probes=(ProbeValue(value=1),))]
    verdict = judged(tmp_path, [probe], {"kind": "probe", "expression": "b", "expected": 1}, steps=steps)
    assert verdict.outcome == "unscored"
    assert "was not read when the attempt was played" in verdict.reason


def test_a_probe_that_was_read_is_judged_wherever_it_now_stands(tmp_path: Path) -> None:
    probe = [{"kind": "probe", "expression": name, "expected": 1} for name in ("a", "b")]
    steps = [RecordedStep(probes=(ProbeValue(value=1), ProbeValue(value=2)))]
    assert judged(tmp_path, probe, {**probe[1], "expected": 2}, steps=steps).outcome == "success"


@pytest.mark.parametrize(("names", "outcome"), [([], "unscored"), (["password"], "failure")])
def test_a_field_that_was_redacted_leaves_the_verdict_open(tmp_path: Path, names: list[str], outcome: str) -> None:
    request = RecordedRequest(path="/login", post='{"password": "hunter22"}')
    check = {"kind": "request", "method": "POST", "url": "/login", "post_data": {"password": "other"}}
    judge = EditedJudge(ChecksJudge(RunConfig()), {"t": an_edit(check)}, "my.toml")
    trajectory = recorded_attempt(tmp_path, [], [RecordedStep(requests=(request,))], keep_fields=names)
    verdict = judge.recompute(trajectory)
    assert verdict is not None
    assert (verdict.outcome, "play it again" in verdict.reason) == (outcome, outcome == "unscored")


def test_an_address_with_too_many_fields_is_not_searched_for_redacted_ones(tmp_path: Path) -> None:
    request = RecordedRequest(method="GET", path="/order?" + "a=1&" * 2000)
    check = {"kind": "request", "method": "GET", "url": "/order", "query": {"password": "other"}}
    verdict = judged(tmp_path, [], check, steps=[RecordedStep(requests=(request,)), RecordedStep()])
    assert verdict.outcome == "failure"


def test_what_a_participant_sends_does_not_leave_a_played_check_open(tmp_path: Path) -> None:
    check = {"kind": "request", "method": "POST", "url": "/order", "post_data": {"key": "other"}}
    request = RecordedRequest(path="/order", post='{"key": "[redacted]"}')
    verdict = ChecksJudge(RunConfig()).recompute(
        recorded_attempt(tmp_path, [check], [RecordedStep(requests=(request,))])
    )
    assert verdict.outcome == "failure"


def test_requests_that_were_not_recorded_leave_the_verdict_open(tmp_path: Path) -> None:
    judge = EditedJudge(ChecksJudge(RunConfig()), {"t": an_edit({"kind": "request", "url": "/order"})}, "my.toml")
    trajectory = recorded_attempt(tmp_path, [PAGE], TWO_STEPS).model_copy(
        update={"network": None, "network_missing": "record_network = false"}
    )
    verdict = judge.recompute(trajectory)
    assert verdict is not None
    assert verdict.outcome == "unscored"
    assert "record_network = false" in verdict.reason


def a_task(task_id: str, text: str = "Do it.", website: str = "http://shop.test/") -> Task:
    return Task(task_id=task_id, website=website, task=text)


def test_tasks_are_matched_by_id_and_refused_where_they_differ() -> None:
    recorded: dict[Path, Task | None] = {Path(name): a_task(name) for name in ("same", "text", "site", "gone")}
    recorded[Path("broken")] = None
    now = [a_task("same", "Do  it."), a_task("text", "Do that."), a_task("site", website="http://shop.test/b")]
    result = paired(recorded, now)
    assert result.folders == (Path("same"), Path("broken"))
    assert result.absent == ("gone",)
    assert result.refused == (
        'text: not judged: its task was "Do it." when it was played, and is now "Do that."',
        'site: not judged: its website was "http://shop.test/" when it was played, and is now "http://shop.test/b"',
    )


def test_epochs_of_a_refused_task_are_one_line() -> None:
    recorded: dict[Path, Task | None] = {Path(name): a_task("t") for name in ("1", "2")}
    assert len(paired(recorded, [a_task("t", "Do that.")]).refused) == 1
