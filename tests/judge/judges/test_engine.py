"""What all judge methods on a model share."""

from pathlib import Path
from typing import Any

import pytest

from helpers.llm.scripted import (
    Script,
    ScriptedModel,
    key_point_script,
    parts_for,
    rubric_script,
    stage,
    trajectory,
    webjudge_script,
)
from judge.judges import engine
from judge.judges.engine import ModelJudge
from judge.judges.evidence import CLAIMS_VERSION
from judge.judges.methods import model_method, model_methods
from judge.judges.single_question import AgentTrekJudge, AutonomousJudge, WebVoyagerJudge
from judge.judges.webjudge import WebJudge
from shared.errors import ModelError
from shared.llm.model import Completion, ModelRequest


@pytest.mark.parametrize("method", [model_method(name) for name in model_methods()], ids=model_methods())
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


@pytest.mark.parametrize(
    "reply",
    [
        "<think>If so:\nStatus: success",
        "[THINK]If so:\nStatus: success[/THINK]I cannot decide.",
        "analysisIf so:\nStatus: success",
        "Status: success\n</think>\nNothing else.",
        "Status: success\nStatus: failure",
    ],
)
async def test_a_reply_without_a_verdict_of_its_own_is_asked_again(tmp_path: Path, reply: str) -> None:
    def script(again: str) -> Script:
        usual = webjudge_script()

        def answer(request: ModelRequest) -> Any:
            if stage(request) != "outcome":
                return usual(request)
            return again if "An earlier reply" in str(request.parts[0]) else reply

        return answer

    for again, outcome in (("Status: failure", "failure"), (reply, "unscored")):
        verdict = await WebJudge(parts_for(ScriptedModel(script(again)))).judge(trajectory(tmp_path / outcome))
        assert verdict.outcome == outcome
        requests = [call["reply"] for call in verdict.evidence["calls"] if call["stage"] == "outcome"]
        assert requests == [reply, again]
