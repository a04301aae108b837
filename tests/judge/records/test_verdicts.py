"""What a verdict cost."""

import pytest

from helpers.results import JUDGE, a_verdict
from judge.records.verdicts import INTERNAL_ERROR, JudgeInfo, VerdictOutcome
from judge.trajectory.foreign_verdicts import evaluator_named
from shared.models import TokenUsage

MODEL = JUDGE.model_copy(update={"model": "openai:m"})
CHECKS = JUDGE.model_copy(update={"model": "offline"})


@pytest.mark.parametrize(
    ("judge", "calls", "outcome", "code", "recorded", "cost"),
    [
        (MODEL, 2, "success", None, 0.25, 0.25),
        # The price is unknown.
        (MODEL, 2, "success", None, None, None),
        # All replies came from the cache.
        (MODEL, 0, "success", None, 0.0, 0.0),
        # The attempt's end settled it, so nobody asked the model.
        (MODEL, 0, "failure", "max_steps", None, 0.0),
        (CHECKS, 0, "failure", None, None, 0.0),
        (None, 0, "failure", None, None, 0.0),
        # Calls may have been paid for before the error.
        (MODEL, 0, "unscored", INTERNAL_ERROR, None, None),
        (CHECKS, 0, "unscored", INTERNAL_ERROR, None, 0.0),
        # Another program asked its own model, and does not say what it paid.
        (evaluator_named("webeval score"), 0, "success", None, None, None),
    ],
)
def test_an_unknown_cost_is_never_zero(
    judge: JudgeInfo | None,
    calls: int,
    outcome: VerdictOutcome,
    code: str | None,
    recorded: float | None,
    cost: float | None,
) -> None:
    verdict = a_verdict(
        outcome, judge=judge, reason_code=code, cost_usd=recorded, token_usage=TokenUsage(calls=calls, input=calls)
    )
    assert verdict.cost == cost
