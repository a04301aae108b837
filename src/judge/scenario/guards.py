"""What a task's checks leave open, or ask for without need: a second order, another filter, a page that may be left."""

import re
from collections.abc import Iterator

from judge.evaluators.kinds.element import ElementCheck
from judge.evaluators.kinds.page import PageCheck
from judge.evaluators.kinds.request import RequestCheck
from judge.evaluators.kinds.socket import SocketCheck
from judge.evaluators.kinds.text import TextCheck
from judge.records.checks import KindCheck, LookCheck, as_tuple, plain_checks
from judge.records.tasks import Task

# As in `Cart (2)` and `Total: €90`.
_SUM = re.compile(r"\(\d+\)|\b(?:total|sum|items?|in all)\b\W*\d", re.IGNORECASE)

# Of a check, what a filter more leaves true; and how often a pattern repeats something.
_NO_GUARDS = frozenset({"kind", "on", "within", "description", "at", "min", "max", "sorted"})
_REPEATED = re.compile(r"\{\d+(?:,\d*)?\}")


def open_questions(task: Task) -> Iterator[tuple[int, str]]:
    """The number of a check, and what it leaves open or asks for without need."""
    numbered = [(number, each) for number, check in enumerate(task.checks, 1) for each in plain_checks([check])]
    checks = [check for _, check in numbered]
    writes = any(_expects_write(check) for check in checks)
    for number, check in numbered:
        others = [each for each in checks if each is not check and not each.inverted]
        if writes and _must_stay(check):
            yield (
                number,
                (
                    "a right agent may leave this page or load it again after what it sent: "
                    'write at = "any" or on, or fetch the state'
                ),
            )
        if _is_sum(check) and not any(map(_counts, checks)):
            yield number, "a sum does not say what it is the sum of: count the rows beside it (count, times or only)"
        if isinstance(check, PageCheck) and check.extra_query and not check.inverted and not any(map(_guards, others)):
            yield number, "extra_query allows further filters: add a number of results, or write the whole query"
        if isinstance(check, RequestCheck) and check.only and not writes:
            yield (
                number,
                (
                    "only sees what is sent: a site that keeps its state in cookies or local storage sends nothing, "
                    "so add a check of a write, or of what the pages show"
                ),
            )


def _expects_write(check: KindCheck) -> bool:
    if isinstance(check, SocketCheck):
        return check.direction == "sent" and not check.inverted
    return isinstance(check, RequestCheck) and check.writes


def _must_stay(check: KindCheck) -> bool:
    """Whether it is about the last page, whichever that is."""
    if not isinstance(check, ElementCheck | TextCheck | PageCheck):
        return False
    return not check.inverted and check.at == "end" and check.on is None


def _is_sum(check: KindCheck) -> bool:
    if check.inverted or not isinstance(check, ElementCheck | TextCheck):
        return False
    texts = as_tuple(check.element if isinstance(check, ElementCheck) else check.contains)
    return any(_SUM.search(text) for text in texts)


def _counts(check: KindCheck) -> bool:
    is_closed = isinstance(check, RequestCheck) and check.only
    return is_closed or any(getattr(check, key, None) is not None for key in ("count", "times"))


def _guards(check: KindCheck) -> bool:
    """Whether a check sees a filter more: it has a number, other than the bounds that fewer rows keep as well."""
    if not isinstance(check, LookCheck) or isinstance(check, PageCheck):
        # An answer.
        return check.kind == "answer"
    values = check.model_dump(exclude=set(_NO_GUARDS), exclude_defaults=True)
    return any(character.isdigit() for character in _REPEATED.sub("", str(values)))
