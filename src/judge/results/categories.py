"""Failure categories of an attempt, derived from its record without a model. Pure.

Categories can overlap, and a failure can have none. They are descriptive: no verdict or rate depends on them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Literal, NamedTuple

from judge.records.assertions import Assertion, assertions_in
from judge.records.checks import KindCheck, plain_checks
from judge.records.sites import BLOCKED, NONE_SHARED, OFF_SITE, SITE_BLOCKED
from judge.records.steps import Step
from judge.records.verdicts import Verdict
from judge.trajectory.record import Attempt
from shared.replies import ENDING_TOOLS
from shared.text import counted, one_line

Category = Literal[
    "loop", "wrong_filter", "gave_up_early", "over_budget", "off_site", "blocked", "rejected_actions"
]  # fmt: skip

_SAME_PAGE = 3
_IN_A_ROW = 5
_MIN_REJECTED = 3
_MAX_FOUND_CHARS = 240


class CategoryEvidence(NamedTuple):
    """A category, and the recorded fact that it was derived from."""

    category: Category
    evidence: str


def failure_categories(attempt: Attempt, verdict: Verdict | None = None) -> tuple[CategoryEvidence, ...]:
    """The categories of a failed attempt; for an aborted one only `blocked`. Successes and unscored ones have none.

    `verdict` is the one that counts, with its evidence (which `result.json` does not contain).
    """
    if attempt.outcome not in ("failure", "aborted"):
        return ()
    candidates: tuple[Category, ...] = CATEGORIES if attempt.outcome == "failure" else ("blocked",)
    noted = attempt.recorded_flags
    results = ((name, _RULES[name](attempt, verdict) or noted.get(name)) for name in candidates)
    return tuple(CategoryEvidence(name, one_line(text, _MAX_FOUND_CHARS)) for name, text in results if text)


def _loop(attempt: Attempt, _: Verdict | None) -> str | None:
    """The same action on the same page (address and snapshot) 3 times, or at the same address 5 times in a row.

    The same action means the same action line, or the same tool and parameters if it was not executed. The limit is
    higher at a changing page, where an action may have to be repeated, such as increasing a counter.
    """
    acts = [(step.url, step.snapshot_sha256, _act(step)) for step in attempt.steps]
    on_a_page = Counter((url, sha256, act) for url, sha256, act in acts if sha256 and act)
    for page, times in on_a_page.most_common(1):
        if times >= _SAME_PAGE:
            return f"{times} times on the same, unchanged page: {page[-1]}"
    rows = [(len(list(row)), act) for (_url, act), row in groupby((url, act) for url, _sha256, act in acts) if act]
    times, act = max(rows, default=(0, ""))
    return f"{times} times in a row: {act}" if times >= _IN_A_ROW else None


def _act(step: Step) -> str | None:
    if step.outcome is not None and step.outcome.line:
        return step.outcome.line
    return f"{step.action.tool} {step.action.params}" if step.action else None


def _wrong_filter(attempt: Attempt, verdict: Verdict | None) -> str | None:
    """A declared check on a query, a control or a sort order failed although its subject was there.

    That is: the page's path was right but its query was wrong; the request was sent with another query; the page showed
    controls of that kind in another state; the list was in another order. It is not a wrong filter if the participant
    never reached the page. Judge models' opinions do not count.
    """
    faults = (_filter_fault(attempt, check, assertion) for check, assertion in _failed_checks(attempt, verdict))
    return next(filter(None, faults), None)


def _failed_checks(attempt: Attempt, verdict: Verdict | None) -> Iterator[tuple[KindCheck, Assertion]]:
    """Failed checks with their results. Alternatives (`any_of`) are listed individually."""
    assertions = assertions_in(verdict)
    # There must be one assertion per check, in order; otherwise they belong to other checks.
    if len(assertions) != len(attempt.task.checks):
        return
    for check, assertion in zip(attempt.task.checks, assertions, strict=True):
        if assertion.passed is False:
            for each in plain_checks([check]):
                yield each, assertion


def _filter_fault(attempt: Attempt, check: KindCheck, assertion: Assertion) -> str | None:
    last = attempt.observations[-1].url if attempt.observations else ""
    site = NONE_SHARED.of(attempt.task, landed=next((step.url for step in attempt.steps), ""))
    return check.wrong_filter(assertion.found, assertion.facts or (), last, site)


def _gave_up_early(attempt: Attempt, _: Verdict | None) -> str | None:
    """The participant ended the attempt itself, with fewer executed actions than the human reference.

    If no reference is recorded: without any executed action.
    """
    if attempt.stop_reason != "finished":
        return None
    executed = sum(
        step.outcome is not None and step.outcome.ok and not (step.action and step.action.tool in ENDING_TOOLS)
        for step in attempt.steps
    )
    reference_length = attempt.task.reference_length or 1
    if executed >= reference_length:
        return None
    reference = f"; a human needed {reference_length}" if attempt.task.reference_length else ""
    return f"ended by the participant after {counted(executed, 'executed action')}{reference}"


def _over_budget(attempt: Attempt, _: Verdict | None) -> str | None:
    """The attempt ended because its steps or its time were used up."""
    if attempt.stop_reason == "max_steps":
        return "all steps were used" + ("" if attempt.self_recorded else f": {attempt.max_steps}")
    return "the time was used up" if attempt.stop_reason == "task_timeout" else None


def _off_site(attempt: Attempt, _: Verdict | None) -> str | None:
    """An observation or action is flagged `off_site`: it was on a page outside the task's site."""
    return _flagged(attempt, OFF_SITE)


def _blocked(attempt: Attempt, _: Verdict | None) -> str | None:
    """The site showed a bot wall or CAPTCHA, or the judge refused the address that an action led to."""
    if attempt.stop_reason == SITE_BLOCKED:
        return attempt.error or "a bot wall instead of the first page"
    refused_step = next((step for step in attempt.steps if BLOCKED in step.flags and _is_rejected(step)), None)
    if (wall := _flagged(attempt, SITE_BLOCKED)) or refused_step is None:
        return wall
    return f"step {refused_step.index + 1}: refused {', '.join(refused_step.refused)}"


def _flagged(attempt: Attempt, flag: str) -> str | None:
    return next((f"step {step.index + 1}: {step.url}" for step in attempt.observations if flag in step.flags), None)


def _rejected_actions(attempt: Attempt, _: Verdict | None) -> str | None:
    """At least 3 replies, and at least a third of all, led to no executed action; or unreadable ones ended the attempt.

    Such replies were unreadable, asked for a tool or an element that does not exist, or failed in the browser.
    """
    rejected = [step for step in attempt.steps if _is_rejected(step)]
    is_many = len(rejected) >= max(_MIN_REJECTED, len(attempt.steps) / 3)
    if not is_many and attempt.stop_reason != "unreadable_replies":
        return None
    last = f"; the last: {rejected[-1].outcome.message}" if rejected and rejected[-1].outcome else ""
    unit_words = ("reply", "replies") if attempt.max_actions == 1 else ("action", "actions")
    return f"{len(rejected)} of {counted(len(attempt.steps), *unit_words)} not executed{last}"


def _is_rejected(step: Step) -> bool:
    return step.outcome is not None and not step.outcome.ok


_Rule = Callable[[Attempt, Verdict | None], str | None]
_RULES: Mapping[Category, _Rule] = MappingProxyType(
    {
        "loop": _loop,
        "wrong_filter": _wrong_filter,
        "gave_up_early": _gave_up_early,
        "over_budget": _over_budget,
        "off_site": _off_site,
        "blocked": _blocked,
        "rejected_actions": _rejected_actions,
    }
)
CATEGORIES: tuple[Category, ...] = tuple(_RULES)
