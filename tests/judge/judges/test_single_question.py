"""The methods with a single question, on a scripted model."""

from pathlib import Path

from helpers.llm.scripted import ScriptedModel, images_of, parts_for, trajectory
from judge.judges.single_question import AgentTrekJudge, AutonomousJudge, WebVoyagerJudge


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
    assert "claims, not evidence" in text
    assert "SECRET ANSWER" not in text
