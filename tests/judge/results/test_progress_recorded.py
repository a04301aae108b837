"""Progress where it is stored: in `result.json`, in a submission and its entries."""

from pathlib import Path

from helpers.results import a_result, a_submission, a_verdict, verdict_of_checks
from judge.records.tasks import Task
from judge.results.progress import with_verdict
from judge.trajectory.record import Attempt

CHECKS = [{"kind": "page", "url": "/*"}, {"kind": "page", "url": "/never"}]
TASK = {"task_id": "t", "website": "https://example.org/", "task": "x", "checks": CHECKS}


def half() -> Attempt:
    attempt = a_result("t", task=Task.model_validate(TASK))
    return with_verdict(attempt, verdict_of_checks(attempt))


def test_it_is_kept_in_the_result_whose_verdict_has_no_evidence() -> None:
    value = half().to_json()
    assert value["progress"] == 0.5
    again = Attempt.from_json(value, source="t")
    assert (again.progress, again.to_json()) == (0.5, value)


def test_an_attempt_without_points_has_none() -> None:
    assert "progress" not in a_result("t", verdict=a_verdict("success")).to_json()


def test_a_submission_has_the_mean_over_attempts_that_have_one(tmp_path: Path) -> None:
    detail = a_submission(half(), a_result("u", verdict=a_verdict("success")))["results"][0]["detail"]
    assert detail["progress"] == 0.5
    assert [entry.get("progress") for entry in detail["tasks"]] == [0.5, None]


def test_an_older_record_has_none_and_stays_as_it_is() -> None:
    value = half().to_json()
    del value["progress"]
    assert Attempt.from_json(value, source="t").to_json() == value
