"""What evaluators of other tools recorded: verdicts, rubrics and tokens. Shared by the readers of their layouts."""

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from judge.records.key_points import MAX_WEIGHT
from judge.records.verdicts import INVALID_TASK, UNKNOWN_MODEL, JudgeInfo, Verdict, VerdictOutcome
from shared.claims import ClaimedUsage
from shared.text import clip

_MAX_TOKENS = 10**12
_MAX_TEXT_CHARS = 20_000
_MAX_CRITERIA = 200
INAPPLICABLE = "inapplicable"


def foreign_verdict(method: str, is_success: object, reason: object, **more: Any) -> Verdict:
    """The verdict of another tool's evaluator; unscored if `is_success` is neither true nor false."""
    outcome: VerdictOutcome = "success" if is_success is True else "failure" if is_success is False else "unscored"
    text = clip(str(reason or ""), _MAX_TEXT_CHARS)
    return Verdict(outcome=outcome, reason=text, judge=evaluator_named(method[:200]), **more)


def read_criteria(items: Iterable[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The criteria and marks of a rubric, from what a verifier says of each item."""
    criteria, marks = [], []
    for number, item in enumerate(islice(items, _MAX_CRITERIA), 1):
        most, earned = points_of(item.get("max_points")), points_of(item.get("earned_points"))
        if most <= 0:
            continue
        name, condition = f"c{number}", item.get("condition")
        requirement = clip(str(item.get("criterion") or name), 1_000)
        only_if = {"condition": clip(condition, 1_000)} if isinstance(condition, str) and condition.strip() else {}
        more = item.get("description")
        described = {"description": clip(more, 4_000)} if isinstance(more, str) and more else {}
        criteria.append({"id": name, "requirement": requirement, "weight": most, **only_if, **described})
        verdict = "met" if earned >= most else "not met"
        if item.get("is_condition_met") is False:
            verdict = INAPPLICABLE
        partial = {"points": earned} if 0 < earned < most else {}
        reason = clip(str(item.get("justification") or ""), 1_000)
        marks.append({"criterion": name, "verdict": verdict, "reason": reason, **partial})
    return criteria, marks


def points_of(value: object) -> float:
    """Points of a rubric; 0 for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and isinstance(value, int | float) and 0 <= value <= MAX_WEIGHT else 0.0


def of_invalid_task(verdict: Verdict, codes: Iterable[object]) -> Verdict:
    """A verdict on a task that its verifier calls invalid: it is not scored."""
    named = ", ".join(map(str, codes)) or "no code"
    reason = ": ".join(filter(None, (f"the task is invalid ({named})", verdict.reason)))
    return verdict.model_copy(update={"outcome": "unscored", "reason_code": INVALID_TASK, "reason": reason})


def evaluator_named(method: str) -> JudgeInfo:
    """The judge info of another tool's evaluator, of which only the name is known."""
    unknown = dict.fromkeys(("prompt_set", "prompt_version", "prompt_checksum", "package_version"), "unknown")
    return JudgeInfo(method=method, model=UNKNOWN_MODEL, threshold=0, code_checksum="unknown", **unknown)


def tokens_of(tokens_in: object, tokens_out: object, cost_usd: object = None) -> ClaimedUsage | None:
    """What another program says that the participant's model used; `None` without a usable number."""
    counts = [count if type(count) is int and 0 < count < _MAX_TOKENS else 0 for count in (tokens_in, tokens_out)]
    is_cost = isinstance(cost_usd, int | float) and not isinstance(cost_usd, bool) and 0 <= cost_usd < _MAX_TOKENS
    cost = float(cost_usd) if is_cost and isinstance(cost_usd, int | float) else None
    if not any(counts) and cost is None:
        return None
    return ClaimedUsage(basis="recorded", input=counts[0], output=counts[1], cost_usd=cost)
