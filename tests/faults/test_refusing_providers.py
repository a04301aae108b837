"""The judge model's provider refuses a question, in each form that its API has.

Who is to blame for a refusal, `judge/judges/test_withholding.py` shows.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.llm.servers import (
    Answer,
    ModelCall,
    anthropic_answer,
    anthropic_error,
    gemini_answer,
    openai_answer,
    openai_error,
    serving,
)
from helpers.trajectory.attempts import BAD, attempt, clicked, typed
from judge.config import RunConfig
from judge.judges.factory import open_judge
from judge.records.verdicts import Verdict
from judge.trajectory.record import Trajectory
from shared.settings import Settings

pytestmark = pytest.mark.slow

YES = 'Reasoning: it is so.\nScore: 5\n\nStatus: "success"'
ANSWERS: dict[str, Callable[[str], Answer]] = {
    "openai": openai_answer,
    "gemini": gemini_answer,
    "anthropic": anthropic_answer,
}
MODERATED = {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"], "flagged_input": "x"}}
FORMS = {
    "openai: content_filter": openai_answer(None, finish="content_filter"),
    "openai: an answer that a filter cut": openai_answer('Status: "success"', finish="content_filter"),
    "openai: a refusal": openai_answer(None, refusal="I cannot help with that."),
    "openai: HTTP 400 content_filter": openai_error(400, "filtered", code="content_filter"),
    "openai: HTTP 400 invalid_prompt": openai_error(400, "flagged", code="invalid_prompt"),
    "openai: HTTP 403 of a moderation": Answer({"error": MODERATED}, 403),
    "openai: HTTP 200 with a moderation's error": Answer({"error": MODERATED}),
    "gemini: a blocked prompt": Answer({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
    "gemini: SAFETY": gemini_answer(None, finish="SAFETY"),
    "gemini: an answer that RECITATION cut": gemini_answer('Status: "success"', finish="RECITATION"),
    "gemini: LANGUAGE": gemini_answer(None, finish="LANGUAGE"),
    "anthropic: refusal": anthropic_answer(stop="refusal"),
    "anthropic: an answer that a refusal ends": anthropic_answer('Status: "success"', stop="refusal"),
    "anthropic: HTTP 400 of the output filter": anthropic_error(
        400, "invalid_request_error", "Output blocked by content filtering policy"
    ),
}


async def judged(one: Trajectory, form: str, folder: Path) -> tuple[Verdict, list[ModelCall]]:
    """The verdict of a judge whose provider refuses, in this form, what contains a word."""
    provider = form.partition(":")[0]

    def plan(call: ModelCall, _: int) -> Answer:
        return FORMS[form] if BAD in json.dumps(call.body) else ANSWERS[provider](YES)

    known: dict[str, Any] = {"OPENAI_API_KEY": "k", "GOOGLE_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    async with serving(plan=plan) as server:
        url = f"{server.url}/v1" if provider == "openai" else server.url
        config = RunConfig(judge_model=f"{provider}:judge", judge_base_url=url)
        judge = open_judge(config, Settings.from_environ(known), cache_dir=folder / "cache")
        verdict = await judge.judge(one)
        await judge.aclose()
    return verdict, server.received


@pytest.mark.parametrize("form", FORMS)
async def test_typed_text_that_the_provider_refuses_is_scored_zero(tmp_path: Path, form: str) -> None:
    verdict, request = await judged(attempt(tmp_path, typed(0, BAD), clicked(1)), form, tmp_path)
    assert (verdict.outcome, verdict.reason_code) == ("failure", "withheld_evidence")
    # Two screenshots, the decision, and the decision without the text.
    assert len(request) == 4
