"""What all judge methods on a model share."""

from pathlib import Path
from typing import Any

import pytest

from helpers.llm.scripted import ScriptedModel, key_point_script, parts_for, rubric_script, stage, trajectory
from judge.judges import engine
from judge.judges.engine import ModelJudge
from judge.judges.evidence import CLAIMS_VERSION
from judge.judges.factory import METHODS
from judge.judges.single_question import AgentTrekJudge, AutonomousJudge, WebVoyagerJudge
from judge.judges.webjudge import WebJudge
from shared.errors import ModelError
from shared.llm.model import Completion, ModelRequest


@pytest.mark.parametrize("method", [METHODS.load(name) for name in METHODS.names()], ids=METHODS.names())
async def test_prefetching_changes_nothing_in_the_verdict(tmp_path: Path, method: type[ModelJudge]) -> None:
    def script(request: ModelRequest) -> str | Completion | ModelError:
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


@pytest.mark.parametrize(
    ("method", "config", "sees_claims"),
    [
        (WebJudge, {}, False),
        (WebJudge, {"judge_sees_answer": True}, True),
        (WebJudge, {"judge_sees_thoughts": True}, True),
        (AutonomousJudge, {}, False),
        (AgentTrekJudge, {}, True),
        (WebVoyagerJudge, {}, True),
    ],
)
def test_the_wording_of_claims_is_part_of_the_id_of_a_judge_that_sees_them(
    monkeypatch: pytest.MonkeyPatch, method: type[ModelJudge], config: dict[str, Any], sees_claims: bool
) -> None:
    """The ids of all other judges stay, so that their earlier runs can be resumed."""
    before = method(parts_for(ScriptedModel(rubric_script()), **config)).id
    monkeypatch.setattr(engine, "CLAIMS_VERSION", CLAIMS_VERSION + 1)
    assert (method(parts_for(ScriptedModel(rubric_script()), **config)).id != before) == sees_claims
