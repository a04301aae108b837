"""The rubric method on a scripted model, and reading its records out of a model's JSON."""

from pathlib import Path
from typing import Any

import pytest

from helpers.llm.scripted import READING, Script, ScriptedModel, images_of, parts_for, rubric_script, stage, trajectory
from judge.judges.rubric import Criterion, RubricJudge, parse_marks, parse_reading, parse_rubric
from judge.records.tasks import Task

CRITERIA = (Criterion(id="c1", requirement="Red"), Criterion(id="c2", requirement="Under $5"))


async def rubric_verdict(tmp_path: Path, script: Script, **config: Any) -> Any:
    return await RubricJudge(parts_for(ScriptedModel(script), **config)).judge(trajectory(tmp_path))


async def test_the_rubric_scores_process_and_outcome_separately(tmp_path: Path) -> None:
    verdict = await rubric_verdict(tmp_path, rubric_script())
    rubric = verdict.evidence["rubric"]
    assert verdict.outcome == "success"
    assert (rubric["outcome_status"], rubric["process_score"]) == ("success", 0.5)
    assert rubric["first_failure"]["action"] == 1
    assert rubric["blockers"] == [{"kind": "out_of_stock", "avoidable": False, "seen": "sold out"}]


async def test_every_screenshot_is_related_to_every_criterion(tmp_path: Path) -> None:
    model = ScriptedModel(rubric_script())
    verdict = await RubricJudge(parts_for(model)).judge(trajectory(tmp_path, (b"a", b"b", b"b", b"c")))
    images = sorted(images_of(request)[0] for request in model.requests if stage(request) == "rubric_image")
    assert images == [b"a", b"b", b"c"]
    assert {len(reading["relations"]) for reading in verdict.evidence["rubric"]["readings"].values()} == {2}


async def test_a_reading_that_leaves_a_criterion_out_is_not_accepted(tmp_path: Path) -> None:
    partial = {"relations": (READING["relations"] or [])[:1], "blocker": None}
    verdict = await rubric_verdict(tmp_path, rubric_script(reading=partial))
    assert verdict.outcome == "unscored"
    assert "every criterion" in verdict.reason


@pytest.mark.parametrize("mark", ["not met", "blocked", "Not_Met"])
async def test_an_outcome_criterion_that_is_not_met_vetoes_success(tmp_path: Path, mark: str) -> None:
    marks = {"criteria": [{"criterion": "c1", "verdict": mark}, {"criterion": "c2", "verdict": "met"}]}
    verdict = await rubric_verdict(tmp_path, rubric_script(marks=marks))
    assert verdict.outcome == "failure"
    assert "Lamp in cart" in verdict.reason


async def test_an_outcome_decided_as_failure_is_a_failure_for_any_marks(tmp_path: Path) -> None:
    assert (await rubric_verdict(tmp_path, rubric_script(statuses=("failure",)))).outcome == "failure"
    assert (await rubric_verdict(tmp_path, rubric_script(statuses=("failure",), marks="?"))).outcome == "failure"


async def test_without_usable_marks_there_is_no_success(tmp_path: Path) -> None:
    assert (await rubric_verdict(tmp_path, rubric_script(marks="no json"))).outcome == "unscored"


@pytest.mark.parametrize(
    ("statuses", "votes", "outcome"),
    [
        (("success", "failure", "success"), 3, "success"),
        (("success", "failure", "failure"), 3, "failure"),
        (("success", "failure"), 2, "unscored"),
    ],
)
async def test_more_than_half_of_the_votes_decide(tmp_path: Path, statuses: Any, votes: int, outcome: str) -> None:
    model = ScriptedModel(rubric_script(statuses=statuses))
    verdict = await RubricJudge(parts_for(model, judge_votes=votes)).judge(trajectory(tmp_path))
    seeds = [request.seed for request in model.requests if stage(request) == "rubric_outcome"]
    assert verdict.outcome == outcome
    assert sorted(filter(None, seeds)) == list(range(1, votes + 1))
    assert len(verdict.evidence["rubric"]["votes"]) == votes


@pytest.mark.parametrize("sees", [True, False])
async def test_both_judgements_of_the_rubric_see_the_answer_or_neither(tmp_path: Path, sees: bool) -> None:
    model = ScriptedModel(rubric_script())
    await RubricJudge(parts_for(model, judge_sees_answer=sees)).judge(trajectory(tmp_path))
    reported = {stage(request) for request in model.requests if "SECRET ANSWER" in str(request.parts[0])}
    assert reported == ({"rubric_process", "rubric_outcome"} if sees else set())


async def test_every_vote_is_a_separate_reply_and_is_paid_for_once(tmp_path: Path) -> None:
    model = ScriptedModel(rubric_script(statuses=("success", "failure", "success")))
    parts = parts_for(model, tmp_path / "cache", judge_votes=3)
    first = await RubricJudge(parts).judge(trajectory(tmp_path))
    requests = [stage(request) for request in model.requests]
    assert (requests.count("rubric_process"), requests.count("rubric_outcome")) == (3, 3)
    assert {vote["outcome"] for vote in first.evidence["rubric"]["votes"]} == {"success", "failure"}
    assert (await RubricJudge(parts).judge(trajectory(tmp_path))).outcome == first.outcome
    assert len(model.requests) == len(requests)


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [b"9"]), (2, [b"8", b"9"]), (5, [b"5", b"6", b"7", b"8", b"9"]), (50, [str(n).encode() for n in range(10)])],
)
async def test_of_too_many_screenshots_the_outcome_is_decided_on_the_last_ones(
    tmp_path: Path, most: int, expected: list[bytes]
) -> None:
    model = ScriptedModel(rubric_script())
    images = tuple(str(number).encode() for number in range(10))
    await RubricJudge(parts_for(model, max_images=most)).judge(trajectory(tmp_path, images))
    (outcome,) = [request for request in model.requests if stage(request) == "rubric_outcome"]
    assert images_of(outcome) == expected


async def test_criteria_are_asked_for_once_per_task(tmp_path: Path) -> None:
    model = ScriptedModel(rubric_script())
    judge = RubricJudge(parts_for(model))
    for name in ("one", "two"):
        await judge.judge(trajectory(tmp_path / name, (name.encode(),)))
    assert [stage(request) for request in model.requests].count("rubric_criteria") == 1


async def test_the_scenarios_key_points_are_the_criteria_when_there_are_any(tmp_path: Path) -> None:
    model = ScriptedModel(rubric_script())
    task = Task(task_id="t", website="https://x.example", task="Do", key_points=("p1", "p2"))
    verdict = await RubricJudge(parts_for(model)).judge(trajectory(tmp_path, task=task))
    assert verdict.key_points == ("p1", "p2")
    assert "rubric_criteria" not in [stage(request) for request in model.requests]


@pytest.mark.parametrize("word", ["not met", "Not met", "NOT_MET", "not-met "])
def test_marks_are_read_in_any_spelling(word: str) -> None:
    first = '{"criterion": "C1", "verdict": "Met", "reason": null}'
    second = f'{{"criterion": "c2", "verdict": "{word}"}}'
    reply = f'{{"criteria": [{first}, {second}]}}'
    marks = parse_marks(reply, CRITERIA)
    assert marks is not None
    assert [(mark.criterion, mark.verdict, mark.reason) for mark in marks.criteria] == [
        ("c1", "met", ""),
        ("c2", "not met", ""),
    ]


def test_a_corrected_reading_replaces_the_one_before_it() -> None:
    reply = '{"relations": [{"criterion": "c1", "relation": "%s"}, {"criterion": "c2", "relation": "unrelated"}]}'
    reading = parse_reading(f"{reply % 'supports'}\nCorrected:\n{reply % 'Contradicts'}", CRITERIA)
    assert reading is not None
    assert [item.relation for item in reading.relations] == ["contradicts", "unrelated"]


@pytest.mark.parametrize("names", ['"c1"', '"c1", "c1"', '"c1", "c3"'])
def test_marks_that_leave_a_criterion_out_are_none(names: str) -> None:
    marks = ", ".join(f'{{"criterion": {name}, "verdict": "met"}}' for name in names.split(", "))
    assert parse_marks(f'{{"criteria": [{marks}]}}', CRITERIA) is None


@pytest.mark.parametrize("reply", ["", "I cannot.", '{"criteria": []}', '{"criteria": [{"requirement": "Red", "ki'])
def test_a_reply_without_criteria_has_none(reply: str) -> None:
    assert parse_rubric(reply) is None


def test_missing_remarks_do_not_invalidate_the_marks() -> None:
    marks = '{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "blocked"}'
    failure = '"first_failure": {"action": "3", "criterion": "c2", "why": null}'
    blockers = '"blockers": [{"kind": "Login-Wall", "seen": null}]'
    marks_read = parse_marks(f'{{"criteria": [{marks}], {failure}, {blockers}}}', CRITERIA)
    assert marks_read is not None
    assert marks_read.first_failure is not None
    assert (marks_read.first_failure.action, marks_read.first_failure.why) == (3, "")
    assert [(blocker.kind, blocker.avoidable) for blocker in marks_read.blockers] == [("login_wall", None)]
    bare = parse_marks(f'{{"criteria": [{marks}], "first_failure": null, "blockers": null}}', CRITERIA)
    assert bare is not None
    assert (bare.first_failure, bare.blockers) == (None, [])


def test_a_repeated_criterion_counts_once() -> None:
    messages = [("Red", "outcome"), ("Sorted", "process"), ("Red ", "outcome")]
    listed = ", ".join(f'{{"requirement": "{text}", "kind": "{kind}"}}' for text, kind in messages)
    rubric = parse_rubric(f'{{"criteria": [{listed}]}}')
    assert rubric is not None
    assert [(item.id, item.requirement, item.kind) for item in rubric.criteria] == [
        ("c1", "Red", "outcome"),
        ("c2", "Sorted", "process"),
    ]


@pytest.mark.parametrize("kind", ["null", "5", '""'])
def test_a_blocker_without_a_kind_is_not_accepted_or_counts_as_other(kind: str) -> None:
    marks = '{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "met"}'
    marks_read = parse_marks(f'{{"criteria": [{marks}], "blockers": [{{"kind": {kind}}}]}}', CRITERIA)
    assert (marks_read and [blocker.kind for blocker in marks_read.blockers]) == (["other"] if kind == '""' else None)
