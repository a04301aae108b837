"""The methods besides WebJudge, on a scripted model."""

import json
from pathlib import Path

import pytest

from helpers_scripted_model import JPEG, Script, ScriptedModel, parts_for, stage, trajectory, webjudge_script
from judge.judges.engine import ModelJudge
from judge.judges.factory import METHODS
from judge.judges.rubric import RubricJudge
from judge.judges.single_question import AgentTrekJudge, AutonomousJudge, WebVoyagerJudge
from judge.judges.webjudge import WebJudgeKeyPoints
from shared.llm.model import ImagePart, ModelRequest
from shared.models import Task


def images_of(request: ModelRequest) -> list[bytes]:
    return [part.data[len(JPEG) :] for part in request.parts if isinstance(part, ImagePart)]


def key_point_script(statuses: dict[str, str]) -> Script:
    plain = webjudge_script()

    def answer(request: ModelRequest) -> str:
        if stage(request) != "key_point":
            return plain(request)
        text = str(request.parts[0])
        return next(f"Status: {status}" for point, status in statuses.items() if f"\n{point}\n" in text)

    return answer


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ({"a": "success", "b": "success"}, "success"),
        ({"a": "success", "b": "failure"}, "failure"),
        ({"a": "unclear", "b": "success"}, "unscored"),
        ({"a": "unclear", "b": "failure"}, "failure"),
    ],
)
async def test_success_needs_every_key_point(tmp_path: Path, statuses: dict[str, str], outcome: str) -> None:
    judge = WebJudgeKeyPoints(parts_for(ScriptedModel(key_point_script(statuses))))
    verdict = await judge.judge(trajectory(tmp_path))
    assert verdict.outcome == outcome
    assert [checked["key_point"] for checked in verdict.evidence["key_points"]] == ["a", "b"]


async def test_webvoyager_sees_the_last_screenshots_and_the_answer_but_no_actions(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "Status: success")
    images = tuple(f"i{number}".encode() for number in range(20))
    verdict = await WebVoyagerJudge(parts_for(model)).judge(trajectory(tmp_path, images))
    (request,) = model.requests
    assert verdict.outcome == "success"
    assert images_of(request) == list(images[-15:])
    assert "SECRET ANSWER" in str(request.parts[0])
    assert "CLICK" not in str(request.parts[0])


async def test_autonomous_sees_the_last_screenshot_and_the_actions(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "Status: failure")
    verdict = await AutonomousJudge(parts_for(model)).judge(trajectory(tmp_path))
    (request,) = model.requests
    assert verdict.outcome == "failure"
    assert images_of(request) == [b"b"]
    assert "<Buy button> -> CLICK" in str(request.parts[0])
    assert "SECRET" not in str(request.parts[0])


async def test_agenttrek_sees_the_thoughts_as_claims(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "Status: success")
    await AgentTrekJudge(parts_for(model)).judge(trajectory(tmp_path))
    text = str(model.requests[0].parts[0])
    assert "SECRET THOUGHT" in text
    assert "claims and no evidence" in text
    assert "SECRET ANSWER" not in text


RUBRIC = {
    "criteria": [{"requirement": "Lamp in cart", "kind": "outcome"}, {"requirement": "Sorted", "kind": "process"}]
}
READING = {
    "relations": [
        {"criterion": "c1", "relation": "supports", "seen": "a lamp"},
        {"criterion": "c2", "relation": "unrelated", "seen": ""},
    ],
    "blocker": None,
}
MARKS = {
    "criteria": [
        {"criterion": "c1", "verdict": "met", "reason": "in the cart"},
        {"criterion": "c2", "verdict": "not met", "reason": "never sorted"},
    ],
    "first_failure": {"action": 1, "criterion": "c2", "why": "skipped sorting"},
    "blockers": [{"kind": "out_of_stock", "avoidable": False, "seen": "sold out"}],
}


def rubric_script(
    *, marks: object = MARKS, reading: object = READING, statuses: tuple[str, ...] = ("success",)
) -> Script:
    votes = iter(statuses * 20)

    def answer(request: ModelRequest) -> str:
        match stage(request):
            case "rubric_criteria":
                return json.dumps(RUBRIC)
            case "rubric_image":
                return f"```json\n{json.dumps(reading)}\n```"
            case "rubric_process":
                return json.dumps(marks)
            case _:
                return f"Status: {next(votes)}"

    return answer


async def rubric_verdict(tmp_path: Path, script: Script, **config: object):
    return await RubricJudge(parts_for(ScriptedModel(script), **config)).judge(trajectory(tmp_path))


async def test_the_rubric_scores_process_and_outcome_apart(tmp_path: Path) -> None:
    verdict = await rubric_verdict(tmp_path, rubric_script())
    rubric = verdict.evidence["rubric"]
    assert verdict.outcome == "success"
    assert (rubric["outcome_status"], rubric["process_score"]) == ("success", 0.5)
    assert rubric["first_failure"]["action"] == 1
    assert rubric["blockers"] == [{"kind": "out_of_stock", "avoidable": False, "seen": "sold out"}]


async def test_every_screenshot_is_related_to_every_criterion(tmp_path: Path) -> None:
    model = ScriptedModel(rubric_script())
    verdict = await RubricJudge(parts_for(model)).judge(trajectory(tmp_path, (b"a", b"b", b"b", b"c")))
    read = sorted(images_of(request)[0] for request in model.requests if stage(request) == "rubric_image")
    assert read == [b"a", b"b", b"c"]
    assert {len(reading["relations"]) for reading in verdict.evidence["rubric"]["readings"].values()} == {2}


async def test_a_reading_that_leaves_a_criterion_out_is_not_accepted(tmp_path: Path) -> None:
    partial = {"relations": READING["relations"][:1], "blocker": None}
    verdict = await rubric_verdict(tmp_path, rubric_script(reading=partial))
    assert verdict.outcome == "unscored"
    assert "every criterion" in verdict.reason


@pytest.mark.parametrize("mark", ["not met", "blocked", "Not_Met"])
async def test_an_outcome_criterion_that_is_not_met_vetoes_success(tmp_path: Path, mark: str) -> None:
    marks = {"criteria": [{"criterion": "c1", "verdict": mark}, {"criterion": "c2", "verdict": "met"}]}
    verdict = await rubric_verdict(tmp_path, rubric_script(marks=marks))
    assert verdict.outcome == "failure"
    assert "Lamp in cart" in verdict.reason


async def test_an_outcome_decided_as_failure_is_a_failure_whatever_the_marks(tmp_path: Path) -> None:
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
async def test_more_than_half_of_the_votes_decide(tmp_path: Path, statuses, votes: int, outcome: str) -> None:
    model = ScriptedModel(rubric_script(statuses=statuses))
    verdict = await RubricJudge(parts_for(model, judge_votes=votes)).judge(trajectory(tmp_path))
    seeds = [request.seed for request in model.requests if stage(request) == "rubric_outcome"]
    assert verdict.outcome == outcome
    assert sorted(seeds) == list(range(1, votes + 1))
    assert len(verdict.evidence["rubric"]["votes"]) == votes


@pytest.mark.parametrize("sees", [True, False])
async def test_both_judgements_of_the_rubric_see_the_answer_or_neither(tmp_path: Path, sees: bool) -> None:
    model = ScriptedModel(rubric_script())
    await RubricJudge(parts_for(model, judge_sees_answer=sees)).judge(trajectory(tmp_path))
    told = {stage(request) for request in model.requests if "SECRET ANSWER" in str(request.parts[0])}
    assert told == ({"rubric_process", "rubric_outcome"} if sees else set())


async def test_every_vote_is_a_reply_of_its_own_and_is_paid_for_once(tmp_path: Path) -> None:
    model = ScriptedModel(rubric_script(statuses=("success", "failure", "success")))
    parts = parts_for(model, tmp_path / "cache", judge_votes=3)
    first = await RubricJudge(parts).judge(trajectory(tmp_path))
    asked = [stage(request) for request in model.requests]
    assert (asked.count("rubric_process"), asked.count("rubric_outcome")) == (3, 3)
    assert {vote["outcome"] for vote in first.evidence["rubric"]["votes"]} == {"success", "failure"}
    assert (await RubricJudge(parts).judge(trajectory(tmp_path))).outcome == first.outcome
    assert len(model.requests) == len(asked)


@pytest.mark.parametrize(
    ("most", "shown"),
    [(1, [b"9"]), (2, [b"8", b"9"]), (5, [b"5", b"6", b"7", b"8", b"9"]), (50, [str(n).encode() for n in range(10)])],
)
async def test_of_too_many_screenshots_the_outcome_is_decided_on_the_last_ones(
    tmp_path: Path, most: int, shown: list[bytes]
) -> None:
    model = ScriptedModel(rubric_script())
    images = tuple(str(number).encode() for number in range(10))
    await RubricJudge(parts_for(model, max_images=most)).judge(trajectory(tmp_path, images))
    (outcome,) = [request for request in model.requests if stage(request) == "rubric_outcome"]
    assert images_of(outcome) == shown


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


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
async def test_working_ahead_changes_nothing_in_the_verdict(tmp_path: Path, method: type[ModelJudge]) -> None:
    def script(request: ModelRequest) -> str:
        rubric = stage(request).startswith("rubric")
        return (rubric_script() if rubric else key_point_script({"a": "success", "b": "failure"}))(request)

    one = trajectory(tmp_path)
    expected = await method(parts_for(ScriptedModel(script))).judge(one)
    judge = method(parts_for(ScriptedModel(script)))
    judge.prefetch(one.task)
    for index in range(2):
        judge.prefetch(one.task, tmp_path / f"trajectory/step_{index:03d}.jpg")
    verdict = await judge.judge(one)
    await judge.aclose()
    assert verdict.model_dump_json() == expected.model_dump_json()
    assert expected.outcome != "unscored"
