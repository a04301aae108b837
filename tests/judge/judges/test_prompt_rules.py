"""The rules of the default prompts, on recordings that differ only in what a rule is about."""

from pathlib import Path

import pytest

from helpers.llm.scripted import ScriptedModel, parts_for, stage, webjudge_script
from helpers.recorded import unpacked
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.judges.prompt_set import load_prompts
from judge.judges.webjudge import WebJudge
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.llm.model import ImagePart, ModelRequest

FOLDER = unpacked("judge_rules/results.tar.xz")
# Each rule by words of the prompt that state it.
RULES = {
    "empty_result": "An empty result is not a failure in itself",
    "all_shown": "No filter or sorting is needed",
    "exact_range": "A range must have exactly the limits",
    "superlative": "the website's own sorting must have been",
}


def recorded(rule: str) -> tuple[Trajectory, Trajectory]:
    """The recording that keeps the rule and the one that breaks it."""
    return load_trajectory(FOLDER / "kept" / rule), load_trajectory(FOLDER / "broken" / rule)


async def outcome_request(trajectory: Trajectory) -> ModelRequest:
    """What the model is asked at the end, all screenshots being relevant."""
    model = ScriptedModel(webjudge_script())
    await WebJudge(parts_for(model)).judge(trajectory)
    return next(request for request in model.requests if stage(request) == "outcome")


def test_every_recorded_pair_has_a_rule() -> None:
    assert sorted(path.name for path in (FOLDER / "kept").iterdir()) == sorted(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_the_outcome_prompt_states_the_rule(rule: str) -> None:
    assert RULES[rule] in load_prompts(None).render("outcome", {}).system


@pytest.mark.parametrize("rule", RULES)
async def test_one_recording_of_a_pair_succeeded_and_the_other_failed(rule: str) -> None:
    judge = ChecksJudge(RunConfig(judge_model="offline"))
    assert [(await judge.judge(one)).outcome for one in recorded(rule)] == ["success", "failure"]


@pytest.mark.parametrize("rule", RULES)
async def test_a_judge_is_asked_the_same_of_both_but_for_one_action_and_what_it_led_to(rule: str) -> None:
    intact, broken = recorded(rule)
    assert intact.task == broken.task
    requests = [await outcome_request(one) for one in (intact, broken)]
    assert requests[0].system == requests[1].system
    texts = [[line for line in str(request.parts[0]).splitlines() if "[[" not in line] for request in requests]
    differing = [lines for lines in zip(*texts, strict=True) if lines[0] != lines[1]]
    assert len(differing) == 1
    pictures = [[part.data for part in request.parts if isinstance(part, ImagePart)] for request in requests]
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize("kind", ["kept", "broken"])
def test_the_recordings_are_whole(kind: str) -> None:
    assert all(load_trajectory(path).is_digested for path in Path(FOLDER / kind).iterdir())
