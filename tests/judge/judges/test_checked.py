from pathlib import Path

import pytest

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, recorded_attempt
from judge.config import RunConfig
from judge.judges.base import Judge
from judge.judges.checked import CheckedJudge, ChecksJudge
from judge.judges.factory import open_judge
from judge.judges.methods import check_judge_model
from judge.records.tasks import Task
from judge.records.verdicts import JudgeInfo, Verdict
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError
from shared.settings import Settings

AT_HOME = {"kind": "page", "url": "/", "description": "The start page is open"}
ORDER_CHECK = {"kind": "page", "url": "/done", "description": "The order is placed"}
WALK = (RecordedStep(), RecordedStep(path="/cart"), RecordedStep(path="/done"))


def checks(**config: object) -> ChecksJudge:
    return ChecksJudge(RunConfig.model_validate(config))


class CountingJudge(Judge):
    """A judge on a model, which counts what it is asked."""

    id = "webjudge-1"
    info = JudgeInfo(
        method="webjudge", model="m", prompt_set="p", prompt_version="1", prompt_checksum="p", threshold=3,
        package_version="1", code_checksum="c",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls = 0

    def prefetch(self, task: Task, screenshot: Path | None = None) -> None:
        self.calls += 1

    async def judge(self, trajectory: Trajectory) -> Verdict:
        self.calls += 1
        return Verdict(outcome="failure", reason="the model says no")


async def test_a_verdict_names_the_checks_and_where_each_first_passed(tmp_path: Path) -> None:
    verdict = await checks().judge(recorded_attempt(tmp_path, [{**AT_HOME, "at": "any"}, ORDER_CHECK], WALK))
    assert (verdict.outcome, verdict.judge and verdict.judge.method) == ("success", "checks")
    assert verdict.key_points == ("The start page is open", "The order is placed")
    assert [score.Score for score in verdict.image_judge_record] == [5, 1, 5]
    assert [check["passed"] for check in verdict.evidence["checks"]] == [True, True]
    assert verdict.cost_usd == 0


async def test_a_failure_states_what_was_found_instead(tmp_path: Path) -> None:
    verdict = await checks().judge(recorded_attempt(tmp_path, [ORDER_CHECK], WALK[:2]))
    assert verdict.outcome == "failure"
    assert verdict.reason == 'The order is placed: failed, found "http://shop.test/cart"'


async def test_a_recording_without_causes_is_unscored_and_says_why(tmp_path: Path) -> None:
    order = RecordedRequest(path="/order", post="item=desk", cause=None)
    check = {"kind": "request", "method": "POST", "url": "/order"}
    verdict = await checks().judge(recorded_attempt(tmp_path, [check], [RecordedStep(requests=(order,))]))
    assert verdict.outcome == "unscored"
    assert "what started requests and downloads was not recorded, play the attempt again" in verdict.reason


@pytest.mark.parametrize("is_marked", [True, False])
async def test_the_verdict_on_a_recording_of_another_program_has_a_note(tmp_path: Path, is_marked: bool) -> None:
    verdict = await checks().judge(recorded_attempt(tmp_path, [AT_HOME], WALK[:1], is_marked=is_marked))
    assert verdict.outcome == "success"
    assert verdict.judge is not None
    assert ("recorded by another program" in str(verdict.judge.note)) is not is_marked


async def test_a_task_without_checks_is_unscored(tmp_path: Path) -> None:
    verdict = await checks().judge(recorded_attempt(tmp_path, [], WALK))
    assert (verdict.outcome, "declares no checks" in verdict.reason) == ("unscored", True)


async def test_a_damaged_recording_is_unscored_and_names_the_check(tmp_path: Path) -> None:
    trajectory = recorded_attempt(
        tmp_path, [{"kind": "element", "element": "button", "description": "There is a button"}], WALK
    )
    (tmp_path / "snapshots" / "step_002.yaml").unlink()
    verdict = await checks().judge(trajectory)
    assert verdict.outcome == "unscored"
    assert "There is a button" in verdict.reason


def test_the_id_covers_the_settings_that_can_change_a_verdict() -> None:
    assert checks().id == checks(max_steps=3).id
    assert checks().id != checks(allowed_sites=["pay.test"]).id


async def test_with_a_judge_model_a_task_with_checks_costs_no_call(tmp_path: Path) -> None:
    model = CountingJudge()
    judge = CheckedJudge(checks(), model, RunConfig())
    trajectory = recorded_attempt(tmp_path, [ORDER_CHECK], WALK)
    judge.prefetch(trajectory.task)
    judge.prefetch(trajectory.task, tmp_path / "step_000.jpg")
    assert (await judge.judge(trajectory)).outcome == "success"
    assert model.calls == 0
    assert (await judge.judge(recorded_attempt(tmp_path, [], WALK))).reason == "the model says no"


@pytest.mark.parametrize(
    ("config", "methods"),
    [
        ({}, ["checks"]),
        ({"truth": "judge"}, ["checks"]),
        ({"judge_checked_tasks": True}, ["checks", "webjudge"]),
        ({"judge_checked_tasks": True, "truth": "judge"}, ["webjudge", "checks"]),
    ],
)
def test_truth_selects_the_verdict_that_counts(tmp_path: Path, config: dict[str, object], methods: list[str]) -> None:
    judge = CheckedJudge(checks(), CountingJudge(), RunConfig.model_validate(config))
    judges = judge.judges_of(recorded_attempt(tmp_path, [ORDER_CHECK], WALK).task)
    assert [one.info.method for one in judges] == methods


async def test_offline_means_checks_only() -> None:
    judge = open_judge(RunConfig(judge_model="offline"), Settings(), cache_dir=None)
    assert judge.id.startswith("checks-")
    with pytest.raises(ConfigError, match="judge_method"):
        check_judge_model(RunConfig(judge_model="offline", judge_method="rubric"), Settings())
