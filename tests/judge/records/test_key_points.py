"""Key points with weights: how they are written, and what they change."""

from pathlib import Path
from typing import Any

import pytest

from helpers.results import JUDGE, a_result, a_submission, a_verdict
from judge.judges.rubric import Criterion
from judge.records.key_points import WeightedPoint
from judge.records.tasks import Task
from judge.results.progress import mean_score, progress_of, score_of
from judge.scenario.draft import RequestDraft
from judge.scenario.request import parse_request
from judge.scenario.toml import parse_scenario
from judge.trajectory.record import Attempt
from shared.errors import ConfigError
from shared.files import sha256_json

SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "w"
endpoint = "http://127.0.0.1:9019"
[config]
judge_model = "offline"
[[tasks]]
task_id = "a"
website = "https://example.org/"
task = "Fill the cart"
key_points = {points}
"""
HEAVY = WeightedPoint(text="two lamps", weight=3)


def read(points: str) -> Task:
    return parse_scenario(SCENARIO.format(points=points).encode(), Path("x.toml")).tasks[0]


def test_a_key_point_is_a_text_or_a_text_with_a_weight() -> None:
    task = read('["the cart", { text = "two lamps", weight = 3 }]')
    assert task.key_points == ("the cart", HEAVY)
    assert (task.point_texts, task.point_weights) == (("the cart", "two lamps"), (1.0, 3.0))


@pytest.mark.parametrize(
    ("points", "problem"),
    [
        ('[{ text = "a", weight = 0 }]', "key 'weight': 0 is not more than 0"),
        ('[{ text = "a", weight = -1 }]', "key 'weight': -1"),
        ('[{ text = "a", weight = inf }]', "key 'weight': inf is not a number"),
        ('[{ text = "a", weight = "2" }]', "key 'weight': '2' is not a number"),
        ('[{ text = "a" }]', "key 'weight'"),
        ('[{ text = "a", wight = 1 }]', "key 'wight': unknown key"),
        ("[3]", "key_points #1: 3 is not a string"),
    ],
)
def test_another_key_point_is_an_error_with_its_place(points: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(points)
    assert problem in str(caught.value)


def test_weights_reach_the_judge_and_the_record() -> None:
    scenario = parse_scenario(SCENARIO.format(points='[{ text = "two lamps", weight = 3 }]').encode(), Path("x.toml"))
    request = parse_request(RequestDraft.of(scenario).text(), lambda _: ())
    assert request.tasks[0].key_points == (HEAVY,)
    attempt = a_result(task=request.tasks[0])
    recorded = attempt.to_json()
    assert recorded["scenario_key_points"] == [{"text": "two lamps", "weight": 3.0}]
    assert Attempt.from_json(recorded, source="t").task.key_points == (HEAVY,)


def test_texts_have_the_digest_that_they_had_before_there_were_weights() -> None:
    task = read('["the cart", "two lamps"]')
    assert task.declared(exclude_defaults=True)["key_points"] == ["the cart", "two lamps"]
    assert sha256_json(task.declared(exclude_defaults=True)) == (
        "358f18d836be5ca5ae98b6169bdaadd2b8e5349ffa64138095681e292ac75582"
    )


def by_key_points(*marks: tuple[str, float | None]) -> Any:
    points = [
        {"key_point": f"p{n}", "status": status, **({} if weight is None else {"weight": weight})}
        for n, (status, weight) in enumerate(marks)
    ]
    names = tuple(each["key_point"] for each in points)
    return a_verdict("failure", key_points=names, evidence={"key_points": points})


def by_rubric(*marks: tuple[str, float]) -> Any:
    criteria = [Criterion(id=f"c{n}", requirement=f"p{n}", weight=w).model_dump() for n, (_, w) in enumerate(marks)]
    results = [{"criterion": f"c{n}", "verdict": verdict} for n, (verdict, _) in enumerate(marks)]
    return a_verdict("failure", key_points=(), evidence={"rubric": {"criteria": criteria, "marks": results}})


@pytest.mark.parametrize(
    ("verdict", "share"),
    [
        (by_key_points(("success", None), ("failure", None)), 0.5),
        (by_key_points(("success", 3), ("failure", None)), 0.75),
        (by_key_points(("success", 3), ("failure", 1e300)), 0.0),
        (by_key_points(("success", float("nan")), ("failure", None)), 0.5),
        (by_rubric(("met", 3), ("not met", 1)), 0.75),
        (by_rubric(("blocked", 1), ("met", 1)), 0.5),
        (a_verdict("success"), None),
    ],
)
def test_progress_and_score_are_the_share_by_weight(verdict: Any, share: float | None) -> None:
    assert score_of(verdict) == progress_of(verdict) == share


def test_a_weight_of_one_is_not_written() -> None:
    assert "weight" not in Criterion(id="c1", requirement="x").model_dump()


def test_a_submission_has_the_mean_score_with_its_interval_only_where_it_was_measured() -> None:
    detail = a_submission(
        a_result("a", verdict=by_key_points(("success", 3), ("failure", None))),
        a_result("b", verdict=by_key_points(("success", None), ("success", None))),
        a_result("c"),
        judge=JUDGE,
    )["results"][0]["detail"]
    assert [entry.get("score") for entry in detail["tasks"]] == [0.75, 1.0, None]
    assert (detail["score"], detail["score_tasks"]) == (0.875, 2)
    low, high = detail["score_interval_95"]
    assert 0.7 <= low < 0.875 < high <= 1
    assert "score" not in a_submission(a_result("c"))["results"][0]["detail"]


def test_the_mean_score_counts_a_task_once_however_often_it_was_played() -> None:
    assert mean_score([("a", 1.0), ("a", 0.0), ("a", 0.5), ("b", 1.0), ("b", None)])["score"] == 0.75
    assert mean_score([("a", 1.0)])["score_interval_95"] == [0.2065, 1.0]
