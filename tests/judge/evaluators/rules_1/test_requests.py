"""Checks of requests on recordings that do not say who sent a navigation: the verdicts stay what they were."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, recorded_attempt, without_provenance
from judge.evaluators.checks import evaluate

CHECK: dict[str, Any] = {"kind": "request", "method": "POST", "url": "/order"}
EVIL = "http://evil.test"


def passed(folder: Path, check: dict[str, Any], **changes: Any) -> bool | None:
    steps = [RecordedStep(requests=(RecordedRequest(path="/order", **changes),))]
    (assertion,) = evaluate(without_provenance(recorded_attempt(folder, [check], steps)))
    return assertion.passed


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"sender": None}, True),
        ({"sender": None, "headers": {"Origin": "http://shop.test"}}, True),
        # A page with `no-referrer` sends its own form without an origin.
        ({"sender": None, "headers": {"Origin": "null", "Sec-Fetch-Site": "same-origin"}}, True),
        ({"sender": "null", "headers": {"Sec-Fetch-Site": "same-origin"}}, True),
        ({"sender": EVIL}, False),
        ({"sender": "null"}, False),
        ({"sender": None, "headers": {"Origin": EVIL}}, False),
        ({"sender": None, "headers": {"Origin": "null"}}, False),
        ({"sender": None, "headers": {"Origin": "null", "Sec-Fetch-Site": "cross-site"}}, False),
        ({"sender": "http://shop.test:81"}, False),
    ],
    ids=str,
)
def test_headers_decide_whose_a_navigation_is(tmp_path: Path, changes: dict[str, Any], counts: bool) -> None:
    assert passed(tmp_path, CHECK, **changes) is counts


def test_an_answer_too_large_to_be_recorded_leaves_the_check_undecided(tmp_path: Path) -> None:
    check = CHECK | {"response": {"total": 3}}
    assert passed(tmp_path / "large", check, is_answer_cut=True) is None
    assert passed(tmp_path / "failed", check, is_answer_cut=True, status=500) is False


def test_a_body_too_large_to_be_recorded_is_another_one(tmp_path: Path) -> None:
    assert passed(tmp_path, CHECK | {"not": True, "post_data": {"qty": 2}}, is_cut=True) is True


@pytest.mark.parametrize(("keys", "decided"), [({}, False), ({"not": True}, False), ({"at": "any"}, True)], ids=str)
def test_requests_that_went_unrecorded_fail_the_check(tmp_path: Path, keys: dict[str, Any], decided: bool) -> None:
    steps = [RecordedStep(requests=(RecordedRequest(path="/order"),))]
    trajectory = without_provenance(recorded_attempt(tmp_path, [CHECK | keys], steps))
    path = tmp_path / "network.har"
    har = json.loads(path.read_text())
    path.write_text(json.dumps({"log": har["log"] | {"_dropped": 7}}))
    (assertion,) = evaluate(trajectory)
    assert assertion.passed is decided
