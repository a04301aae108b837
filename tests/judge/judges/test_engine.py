"""What all judge methods on a model share."""

from pathlib import Path

import pytest

from helpers.llm.scripted import ScriptedModel, key_point_script, parts_for, rubric_script, stage, trajectory
from judge.judges.engine import ModelJudge
from judge.judges.factory import METHODS
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
