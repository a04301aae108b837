"""Verdicts of WebArena-Verified's evaluator. The evaluator itself: `tests/judge/evaluators/test_webarena.py`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.plugins.webarena.judge import WebArenaJudge
from judge.plugins.webarena.tasks import SiteAddresses
from judge.records.verdicts import Verdict
from judge.trajectory.record import Trajectory
from plugins.webarena.sites import ABOUT, entry, har, imitation

ADDRESSES = SiteAddresses.model_validate({"environments": {"__SHOPPING__": {"urls": ["http://shop.test"]}}})
TASK = {"task_id": 7, "sites": ["shopping", "reddit"], "start_urls": ["__SHOPPING__"], "intent": "x", "fields": []}
TASKS = json.dumps({"tasks": [TASK], "subsets": []})


def result(status: str, **evaluator: Any) -> dict[str, Any]:
    results = {"evaluator_name": "NetworkEventEvaluator", "status": status, "expected": "POST /x", **evaluator}
    return {
        "task_id": 7,
        "sites": ["shopping"],
        "task_revision": 1,
        "status": status,
        "score": float(status == "success"),
        "evaluators_results": [results],
        "webarena_verified_version": "0",
        "webarena_verified_evaluator_checksum": "0",
        "webarena_verified_data_checksum": "0",
    }


def attempt(folder: Path, task_id: str = "webarena-7", trace: Mapping[str, Any] | None = None) -> Trajectory:
    recorded = recorded_attempt(folder / "attempt", [], [RecordedStep()], "answer", task_id=task_id)
    (folder / "attempt" / "network.har").write_text(json.dumps(trace or har(entry("http://shop.test/"))))
    return recorded


async def verdict_on(folder: Path, trajectory: Trajectory, *replies: Mapping[str, Any]) -> Verdict:
    settings = imitation(folder, json.dumps(ABOUT), TASKS, *map(json.dumps, replies))
    judge = await WebArenaJudge.open(settings, ADDRESSES)
    try:
        return await judge.judge(trajectory)
    finally:
        await judge.aclose()


async def test_the_packages_result_is_kept_as_evidence(tmp_path: Path) -> None:
    verdict = await verdict_on(tmp_path, attempt(tmp_path), {"result": result("success")})
    assert (verdict.outcome, verdict.key_points) == ("success", ("request: POST /x",))
    assert verdict.evidence["webarena_verified"]["webarena_verified_data_checksum"] == "0"
    assert verdict.judge is not None
    assert verdict.judge.method == "webarena_verified"


async def test_a_failure_says_what_was_not_found(tmp_path: Path) -> None:
    assertion = {"assertion_name": "missing", "status": "failure", "assertion_msgs": ["No matching request."]}
    verdict = await verdict_on(tmp_path, attempt(tmp_path), {"result": result("failure", assertions=[assertion])})
    assert (verdict.outcome, verdict.reason) == ("failure", "NetworkEventEvaluator: No matching request.")


async def test_a_success_that_is_refused_is_a_failure(tmp_path: Path) -> None:
    verdict = await verdict_on(tmp_path, attempt(tmp_path), {"result": result("success"), "refusal": "a pattern"})
    assert (verdict.outcome, verdict.reason) == ("failure", "a pattern")


async def test_an_error_that_another_answer_does_not_cause_is_the_participants_failure(tmp_path: Path) -> None:
    replies = ({"result": result("error", error_msg="int has no strip")}, {"result": result("failure")})
    verdict = await verdict_on(tmp_path, attempt(tmp_path), *replies)
    assert (verdict.outcome, verdict.reason) == ("failure", "the answer cannot be read: int has no strip")


async def test_an_error_of_the_evaluator_leaves_the_attempt_unscored(tmp_path: Path) -> None:
    replies = [{"result": result("error", error_msg="out of order")}] * 3
    verdict = await verdict_on(tmp_path, attempt(tmp_path), *replies)
    assert (verdict.outcome, verdict.reason) == ("unscored", "out of order")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task_id": "t-7"}, "not a task that was imported"),
        ({"trace": har()}, "holds no request"),
        ({"trace": {"log": 1}}, "not a HAR file"),
    ],
)
async def test_what_cannot_be_evaluated_is_unscored(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    verdict = await verdict_on(tmp_path, attempt(tmp_path, **changes))
    assert verdict.outcome == "unscored"
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("evaluator", "outcome"), [("NetworkEventEvaluator", "failure"), ("AgentResponseEvaluator", "success")]
)
async def test_requests_beyond_those_recorded_neither_pass_a_task_nor_leave_it_unscored(
    tmp_path: Path, evaluator: str, outcome: str
) -> None:
    recorded = attempt(tmp_path, trace={"log": {"entries": [entry("http://shop.test/")], "_dropped": 3}})
    verdict = await verdict_on(tmp_path, recorded, {"result": result("success", evaluator_name=evaluator)})
    assert verdict.outcome == outcome


async def test_an_attempt_without_a_trace_is_unscored(tmp_path: Path) -> None:
    verdict = await verdict_on(tmp_path, attempt(tmp_path).model_copy(update={"network": None}))
    assert (verdict.outcome, verdict.reason) == ("unscored", "no network trace was recorded")


async def test_a_task_on_two_sites_is_a_group_of_its_own(tmp_path: Path) -> None:
    judge = await WebArenaJudge.open(imitation(tmp_path, json.dumps(ABOUT), TASKS), ADDRESSES)
    await judge.aclose()
    assert [judge.site_of(name) for name in ("webarena-7", "webarena-8", "t")] == ["reddit-shopping", "other", "other"]


async def test_other_addresses_make_another_judge(tmp_path: Path) -> None:
    other = SiteAddresses.model_validate({"environments": {"__SHOPPING__": {"urls": ["http://other.test"]}}})
    ids = []
    for addresses in (ADDRESSES, ADDRESSES, other):
        judge = await WebArenaJudge.open(imitation(tmp_path, json.dumps(ABOUT), TASKS), addresses)
        await judge.aclose()
        ids.append(judge.id)
    assert ids[0] == ids[1] != ids[2]
