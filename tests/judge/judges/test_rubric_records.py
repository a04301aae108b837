"""Reading the rubric's records out of a judge model's JSON."""

import pytest

from judge.judges.rubric import Criterion, parse_criteria, parse_marks, parse_reading

CRITERIA = (Criterion(id="c1", requirement="Red"), Criterion(id="c2", requirement="Under $5"))


@pytest.mark.parametrize("word", ["not met", "Not met", "NOT_MET", "not-met "])
def test_a_verdict_is_read_however_it_is_spelled(word: str) -> None:
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


@pytest.mark.parametrize("named", ['"c1"', '"c1", "c1"', '"c1", "c3"'])
def test_marks_that_leave_a_criterion_out_are_none(named: str) -> None:
    marks = ", ".join(f'{{"criterion": {name}, "verdict": "met"}}' for name in named.split(", "))
    assert parse_marks(f'{{"criteria": [{marks}]}}', CRITERIA) is None


@pytest.mark.parametrize("reply", ["", "I cannot.", '{"criteria": []}', '{"criteria": [{"requirement": "Red", "ki'])
def test_a_reply_without_criteria_has_none(reply: str) -> None:
    assert parse_criteria(reply) is None


def test_what_a_model_leaves_unsaid_beside_the_marks_costs_no_marks() -> None:
    marks = '{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "blocked"}'
    failure = '"first_failure": {"action": "3", "criterion": "c2", "why": null}'
    blockers = '"blockers": [{"kind": "Login-Wall", "seen": null}]'
    read = parse_marks(f'{{"criteria": [{marks}], {failure}, {blockers}}}', CRITERIA)
    assert read is not None
    assert read.first_failure is not None
    assert (read.first_failure.action, read.first_failure.why) == (3, "")
    assert [(blocker.kind, blocker.avoidable) for blocker in read.blockers] == [("login_wall", None)]
    bare = parse_marks(f'{{"criteria": [{marks}], "first_failure": null, "blockers": null}}', CRITERIA)
    assert bare is not None
    assert (bare.first_failure, bare.blockers) == (None, [])


def test_a_criterion_said_twice_counts_once() -> None:
    said = [("Red", "outcome"), ("Sorted", "process"), ("Red ", "outcome")]
    listed = ", ".join(f'{{"requirement": "{text}", "kind": "{kind}"}}' for text, kind in said)
    criteria = parse_criteria(f'{{"criteria": [{listed}]}}')
    assert criteria is not None
    assert [(item.id, item.requirement, item.kind) for item in criteria] == [
        ("c1", "Red", "outcome"),
        ("c2", "Sorted", "process"),
    ]
