"""What is said, before a run is resumed, about verdicts of other code."""

from pathlib import Path
from typing import Any

import pytest

from helpers.results import JUDGE, a_finished_run, a_result, a_verdict
from judge.judges.code import code_checksum
from judge.judges.prompt_set import load_prompts
from judge.runner.other_code import rejudging_note
from judge.store.layout import RunStore
from shared.models import TokenUsage

MODEL = "openai:gpt-4.1-mini"
NOW = JUDGE.model_copy(
    update={"model": MODEL, "code_checksum": code_checksum(), "prompt_checksum": load_prompts(None).checksum}
)
CALLS = {"token_usage": TokenUsage(calls=12, input=9_000, output=100), "cost_usd": 0.0156}


def a_run(folder: Path, *, judge_model: str = MODEL, **changes: Any) -> RunStore:
    """Two attempts that were judged with these changes of today's judge."""
    verdict = a_verdict("success", judge=NOW.model_copy(update=changes), **CALLS)
    store = a_finished_run(folder, a_result("t1", verdict=verdict), a_result("t2", verdict=verdict))
    store.write_run({**(store.read_run() or {}), "judge_model": judge_model})
    return store


def test_verdicts_of_this_code_are_not_mentioned(tmp_path: Path) -> None:
    assert rejudging_note(a_run(tmp_path), None) is None


@pytest.mark.parametrize("key", ["code_checksum", "prompt_checksum"])
def test_calls_that_may_be_made_again_are_announced_with_their_price(tmp_path: Path, key: str) -> None:
    assert rejudging_note(a_run(tmp_path, **{key: "x"}), None) == (
        "2 attempts judged by other code will be judged again from the recordings: "
        "up to 24 model calls ($0.0312 before), within the run's budget; cached replies cost nothing"
    )


def test_verdicts_of_other_judges_are_not_mentioned(tmp_path: Path) -> None:
    assert rejudging_note(a_run(tmp_path, judge_model="openai:o4-mini", code_checksum="x"), None) is None
