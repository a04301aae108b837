"""What the rubric method demands: outcome, process or both; points, conditions, votes of models, invalid tasks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.llm.scripted import RUBRIC, Script, ScriptedModel, images_of, parts_for, rubric_script, stage, trajectory
from judge.config import RunConfig
from judge.judges.factory import open_judge
from judge.judges.methods import check_judge
from judge.judges.rubric import Criterion, RubricJudge, parse_marks
from judge.records.tasks import Task
from judge.results.progress import score_of
from shared.errors import ConfigError
from shared.llm.cache import CachedModel
from shared.llm.model import ModelRequest
from shared.settings import Settings

POINTS: tuple[Any, ...] = (
    {"text": "Lamp in cart", "weight": 4.0},
    {"text": "Says that it is sold out", "weight": 2.0, "condition": "it is sold out"},
)
S, F, U = "success", "failure", "unscored"
# Marks of the two criteria (points of 4; met, missed or inapplicable), what the outcome stage says, and by hand the
# verdicts for outcome | process at 0.8 and at 0.5 | both at 0.8 and at 0.5.
BY_HAND: tuple[tuple[tuple[str, float | None], str, str | None, tuple[str, str, str, str, str]], ...] = (
    (("met", None), "met", S, (S, S, S, S, S)),  # 6 of 6
    (("met", None), "met", F, (F, S, S, F, F)),
    (("met", None), "met", None, (U, S, S, U, U)),
    (("met", None), "inapplicable", S, (S, S, S, S, S)),  # 4 of 4
    (("met", None), "inapplicable", F, (F, S, S, F, F)),
    (("met", None), "not met", S, (F, F, S, F, F)),  # 4 of 6: an outcome criterion is missed
    (("met", None), "not met", F, (F, F, S, F, F)),
    (("met", None), "blocked", S, (F, F, S, F, F)),
    (("met", 3.5), "inapplicable", S, (S, S, S, S, S)),  # 3.5 of 4 is 0.875
    (("met", 3.5), "inapplicable", None, (U, S, S, U, U)),
    (("met", 3.2), "inapplicable", S, (S, S, S, S, S)),  # exactly 0.8
    (("met", 3.1), "inapplicable", S, (S, F, S, F, S)),  # 0.775
    (("met", 2.0), "inapplicable", S, (S, F, S, F, S)),  # exactly 0.5
    (("met", 1.9), "inapplicable", S, (S, F, F, F, F)),  # 0.475
    (("met", 2.8), "met", S, (S, S, S, S, S)),  # 4.8 of 6 is 0.8
    (("met", 1.0), "met", S, (S, F, S, F, S)),  # 3 of 6
    (("met", 1.0), "met", None, (U, F, S, F, U)),
    (("not met", 3.5), "inapplicable", S, (F, S, S, F, F)),  # points for the process, and still missed
    (("not met", None), "inapplicable", S, (F, F, F, F, F)),
    (("blocked", 2.0), "met", F, (F, F, S, F, F)),  # 4 of 6
)


def marks(first: tuple[str, float | None], second: str) -> dict[str, Any]:
    verdict, points = first
    given = {} if points is None else {"points": points}
    return {"criteria": [{"criterion": "c1", "verdict": verdict, **given}, {"criterion": "c2", "verdict": second}]}


def attempt(tmp_path: Path, **fields: Any) -> Any:
    task = Task.model_validate({"task_id": "t", "website": "https://x.example", "task": "Do", "key_points": POINTS})
    return trajectory(tmp_path, **{"task": task, **fields})


async def verdict_of(tmp_path: Path, script: Script, **config: Any) -> Any:
    return await RubricJudge(parts_for(ScriptedModel(script), **config)).judge(attempt(tmp_path))


@pytest.mark.parametrize(("first", "second", "status", "verdicts"), BY_HAND)
async def test_twenty_scripted_verdicts_in_three_modes_and_two_thresholds(
    tmp_path: Path, first: tuple[str, float | None], second: str, status: str | None, verdicts: tuple[str, ...]
) -> None:
    script = rubric_script(marks=marks(first, second), statuses=(status or "none",))
    modes = [("outcome", 0.8), ("process", 0.8), ("process", 0.5), ("both", 0.8), ("both", 0.5)]
    found = [
        (await verdict_of(tmp_path, script, rubric_success=mode, rubric_threshold=threshold)).outcome
        for mode, threshold in modes
    ]
    assert tuple(found) == verdicts


async def test_f19_points_of_a_criterion_are_its_share_of_the_score(tmp_path: Path) -> None:
    verdict = await verdict_of(tmp_path, rubric_script(marks=marks(("met", 3.5), "met")))
    assert score_of(verdict) == round(5.5 / 6, 4)
    assert verdict.evidence["rubric"]["process_score"] == pytest.approx(5.5 / 6)


async def test_f20_a_criterion_whose_condition_does_not_hold_leaves_the_maximum(tmp_path: Path) -> None:
    verdict = await verdict_of(tmp_path, rubric_script(marks=marks(("met", 3.0), "inapplicable")))
    assert score_of(verdict) == 0.75


@pytest.mark.parametrize(
    "mark", [{"verdict": "inapplicable"}, {"verdict": "met", "points": 1.5}, {"verdict": "met", "points": -1}]
)
def test_marks_that_are_not_possible_are_asked_for_again(mark: dict[str, Any]) -> None:
    criteria = (Criterion(id="c1", requirement="Red"),)
    assert parse_marks(json.dumps({"criteria": [{"criterion": "c1", **mark}]}), criteria) is None


async def test_f18_each_criterion_is_marked_by_its_latest_screenshots_only(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Any:
        if stage(request) != "rubric_image":
            return rubric_script(marks=marks(("met", None), "met"))(request)
        (image,) = images_of(request)
        about = {b"0": "c1", b"1": "c1", b"2": "c1", b"3": "c2"}.get(image)
        relations = [
            {"criterion": name, "relation": "supports" if name == about else "unrelated"} for name in ("c1", "c2")
        ]
        return json.dumps({"relations": relations, "blocker": "captcha" if image == b"4" else None})

    model = ScriptedModel(script)
    images = tuple(str(number).encode() for number in range(6))
    await RubricJudge(parts_for(model, max_images_per_criterion=2)).judge(attempt(tmp_path, images=images))
    (process,) = [request for request in model.requests if stage(request) == "rubric_process"]
    assert images_of(process) == [b"1", b"2", b"3", b"4"]


def voters(**statuses: str) -> dict[str, CachedModel]:
    return {
        name: CachedModel(
            ScriptedModel(rubric_script(marks=marks(("met", None), "met"), statuses=(status,))),
            namespace=name,
            folder=None,
        )
        for name, status in statuses.items()
    }


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ({"a": "success", "b": "success", "c": "failure"}, "success"),
        ({"a": "success", "b": "failure", "c": "failure"}, "failure"),
        ({"a": "success", "b": "failure"}, "unscored"),
    ],
)
async def test_f21_several_models_vote_and_a_tie_is_unscored(
    tmp_path: Path, statuses: dict[str, str], outcome: str
) -> None:
    parts = parts_for(ScriptedModel(rubric_script()), judge_vote_models=list(statuses), judge_votes=2)
    judge = RubricJudge(replace(parts, voters=voters(**statuses)))
    verdict = await judge.judge(attempt(tmp_path))
    votes = [(vote["model"], vote["outcome"]) for vote in verdict.evidence["rubric"]["votes"]]
    assert verdict.outcome == outcome
    assert votes == [(name, status) for name, status in statuses.items() for _ in range(2)]
    assert judge.info.note == f"votes of {', '.join(statuses)}"


def criteria_script(task: dict[str, Any]) -> Script:
    def script(request: ModelRequest) -> Any:
        if stage(request) == "rubric_criteria":
            return json.dumps({**RUBRIC, "intent": "A lamp to read by", "task": task})
        return rubric_script()(request)

    return script


async def test_f22_an_invalid_task_is_unscored_and_its_code_is_named(tmp_path: Path) -> None:
    script = criteria_script({"invalid": ["Outdated"], "why": "The day is over."})
    verdict = await RubricJudge(parts_for(ScriptedModel(script))).judge(trajectory(tmp_path))
    assert (verdict.outcome, verdict.reason_code) == ("unscored", "invalid_task")
    assert verdict.reason == "the task is invalid (outdated): The day is over."
    assert verdict.evidence["rubric"]["task"]["invalid"] == ["outdated"]


async def test_f22_an_ambiguous_task_is_scored_and_its_code_is_recorded(tmp_path: Path) -> None:
    script = criteria_script({"ambiguous": ["several_readings"]})
    verdict = await RubricJudge(parts_for(ScriptedModel(script))).judge(trajectory(tmp_path))
    assert verdict.outcome == "success"
    assert verdict.evidence["rubric"]["task"]["ambiguous"] == ["several readings"]


async def test_f24_the_primary_intent_is_recorded(tmp_path: Path) -> None:
    by_model = await RubricJudge(parts_for(ScriptedModel(criteria_script({})))).judge(trajectory(tmp_path))
    declared = await verdict_of(tmp_path, rubric_script(marks=marks(("met", None), "met")))
    intents = [each.evidence["rubric"]["primary_intent"] for each in (by_model, declared)]
    assert intents == ["A lamp to read by", "Do"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"judge_vote_models": ["nobody:x"], "judge_method": "rubric"}, "unknown judge model 'nobody:x'"),
        ({"judge_vote_models": ["openai:x"]}, "'webjudge' has no votes"),
        (
            {"judge_vote_models": ["openai:x"], "judge_method": "rubric", "max_judge_cost_usd": 1.0},
            "the price of openai:x is not known",
        ),
    ],
)
def test_an_unusable_vote_is_refused_before_anything_is_asked(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_judge(RunConfig.model_validate(settings))


async def test_the_judges_address_is_not_given_the_keys_of_other_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: dict[str, str | None] = {}

    def opened(name: str, *_: object, base_url: str | None, **__: object) -> ScriptedModel:
        addresses[name] = base_url
        return ScriptedModel(rubric_script())

    monkeypatch.setattr("judge.judges.factory.open_model", opened)
    monkeypatch.setattr("judge.judges.factory.check_judge_model", lambda *_: None)
    own = "http://judge.test/v1"
    config = RunConfig.model_validate(
        {
            "judge_method": "rubric",
            "judge_model": "openai:a",
            "judge_base_url": own,
            "judge_vote_models": ["openai:b", "gemini:c"],
        }
    )
    judge = open_judge(config, Settings(), cache_dir=None)
    await judge.aclose()
    assert addresses == {"openai:a": own, "openai:b": own, "gemini:c": None}
