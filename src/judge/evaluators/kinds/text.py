"""`text` checks: what a page's text contains, with its numbers, or the final state that another program recorded."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import AfterValidator, model_validator

from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import Look, MissingEvidence, TrajectoryEvidence
from judge.evaluators.lookalikes import with_difference
from judge.evaluators.looks import over_content
from judge.evaluators.normalise import parse_number
from judge.evaluators.unmatchable import unmatchable
from judge.evaluators.values import json_differences
from judge.records.checks import AsWritten, OneOrMore, PathValues, PatternText, ShownCheck, Text, as_tuple, is_address
from judge.records.elements import parse_element
from judge.records.findings import Fact, NumbersFound
from shared.fields import Invalid
from shared.models import omit_default
from shared.patterns import Pattern
from shared.snapshot import Node, Snapshot
from shared.strict_json import parse_json
from shared.text import counted, excerpt, plain

# In place of a page's address: the final state of the site, as another program recorded it.
STATE = "state"
_MARK = "recorded by another program"


class NumberKeys(Protocol):
    """The keys of checks that count and compare what a pattern finds."""

    @property
    def pattern(self) -> str | None: ...
    @property
    def min(self) -> float | None: ...
    @property
    def max(self) -> float | None: ...
    @property
    def sorted(self) -> Literal["ascending", "descending"] | None: ...
    @property
    def count(self) -> int | None: ...


def require_numbers(check: NumberKeys) -> None:
    """Raises `Invalid` if `min`, `max` and `sorted` have no numbers to compare, or contradict each other."""
    if reads_numbers(check):
        if check.pattern is None:
            raise Invalid("min, max and sorted need a pattern", r"write pattern = '€(\d+)'")
        if Pattern(check.pattern).groups != 1:
            raise Invalid(
                f"{Pattern(check.pattern).groups} groups, where min, max and sorted need one",
                "put one pair of parentheses around the number, (?:…) elsewhere",
                key="pattern",
            )
    if check.min is not None and check.max is not None and check.min > check.max:
        raise Invalid(f"min {check.min:g} is larger than max {check.max:g}", "correct one of them", key="min")


def reads_numbers(check: NumberKeys) -> bool:
    """Whether the pattern's group is read as numbers."""
    return not (check.min is None and check.max is None and check.sorted is None)


class TextCheck(ShownCheck):
    """The page's text has `contains` or matches `pattern`, whose only group satisfies `min`, `max` and `sorted`.

    `on = "state"`: so does the final state that another program recorded, or its JSON has the values of `response`.
    """

    kind: Literal["text"]
    on: Annotated[Text, AfterValidator(lambda on: on if on == STATE else is_address(on)), AsWritten()] | None = None
    contains: OneOrMore[Text] | None = None
    pattern: PatternText | None = None
    min: float | None = None
    max: float | None = None
    sorted: Literal["ascending", "descending"] | None = None
    response: PathValues | None = omit_default(None)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.on == STATE and (self.at != "end" or self.within is not None or self.in_view or self.editable):
            raise Invalid("a recorded state is not a page", "leave out at, within, in_view and editable", key="on")
        if self.response is not None and self.on != STATE:
            raise Invalid("of a page, only the text is compared", f'write on = "{STATE}"', key="response")
        if [self.contains, self.pattern, self.response].count(None) != 2:
            raise Invalid("needs either contains or pattern", "give exactly one of them")
        if isinstance(self.contains, tuple) and self.count is not None:
            raise Invalid("a list of texts cannot be counted", "write one check for each", key="count")
        require_numbers(self)
        return self

    def wrong_filter(self, found: str, facts: Sequence[Fact], last: str, site: Any) -> str | None:
        """The list is in another order."""
        is_order = self.sorted is not None and (self.min, self.max, self.count) == (None, None, None)
        is_other = is_order and any(isinstance(each, NumbersFound) for each in facts)
        return f"not {self.sorted}: {found}" if is_other else None


def decide(check: TextCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the page's text, or the recorded state, is as expected."""
    # Parsed once for all looks.
    pattern = Pattern(check.pattern) if check.pattern else None

    def compared(text: str) -> ComparisonResult:
        if pattern is None:
            return contained(text, as_tuple(check.contains), check.count)
        return matched(text, pattern, check)

    def compare(look: Look, page: Snapshot, roots: Sequence[Node] | None, _explains: bool) -> ComparisonResult:
        return compared(look.texts(page, roots, check.in_view))

    if check.on != STATE:
        return over_content(check, recording, inverted, compare)
    state = recording.trajectory.texts.state if recording.trajectory.texts else None
    if state is None:
        raise MissingEvidence("no final state, which only recordings of other programs have")
    result = compared(" ".join(state.split())) if check.response is None else _with_values(state, check.response)
    return Decision(result.counts and result.passed != inverted, result._replace(text=f"{_MARK}: {result.text}"), None)


def _with_values(state: str, expected: dict[str, Any]) -> ComparisonResult:
    try:
        problem = next(json_differences("response", expected, parse_json(state)), None)
    except ValueError:
        return ComparisonResult(False, f"not JSON: {excerpt(state, 200)}", counts=False)
    text = excerpt(state, 200)
    return ComparisonResult(True, text) if problem is None else ComparisonResult(False, f"{problem} in {text}")


def contained(text: str, texts: Sequence[str], count: int | None) -> ComparisonResult:
    """Whether a text, with its white space collapsed, contains the wanted ones in this order, or one as often."""
    if count is not None:
        number = text.count(plain(texts[0]))
        return ComparisonResult(number == count, counted(number, "time"))
    at = 0
    for each in map(plain, texts):
        place = text.find(each, at)
        if place < 0:
            order = " after what comes before it" if each in text else ""
            message = f'no "{each}"{order} in: {excerpt(text, 200)}'
            return ComparisonResult(False, with_difference(message, each, [text]))
        at = place + len(each)
    return ComparisonResult(True, f'"{plain(texts[-1])}"')


def matched(text: str, pattern: Pattern, check: NumberKeys) -> ComparisonResult:
    """Whether a text matches the check's pattern, as often as it says and with such numbers."""
    if not reads_numbers(check) and check.count is None:
        span = pattern.search(text)
        return ComparisonResult(span is not None, excerpt(text[slice(*span)] if span else text, 200))
    matches = list(pattern.matches(text))
    is_counted = check.count is None or check.count == len(matches)
    if not reads_numbers(check):
        return ComparisonResult(is_counted, counted(len(matches), "match", "matches"))
    if not matches:
        # With nothing to compare, the check fails even when inverted.
        return ComparisonResult(False, f"no match in: {excerpt(text, 200)}", counts=False)
    numbers = [match.group(1) or "" for match in matches]
    values = []
    for each in numbers:
        value = parse_number(each)
        if value is None:
            return ComparisonResult(False, f"{excerpt(each, 60)} is not a number", counts=False)
        values.append(value)
    low, high = (None if limit is None else Decimal(str(limit)) for limit in (check.min, check.max))
    is_within = all((low is None or value >= low) and (high is None or value <= high) for value in values)
    is_sorted = check.sorted is None or values == sorted(values, reverse=check.sorted == "descending")
    is_passed = is_within and is_sorted and is_counted
    return ComparisonResult.of(is_passed, NumbersFound.of(numbers), ", ".join(map(str, values[:20])))


def warnings(check: TextCheck) -> Iterator[str]:
    """Elements in `within` that never match, and texts that any page could repeat."""
    if check.on == STATE:
        yield "only recordings of other programs have a final state, so it fails for what WABE plays"
    if check.within is not None:
        yield from unmatchable((parse_element(check.within),))
    if not check.inverted and check.on is None and check.within is None:
        yield "any page that repeats typed text could pass it (a search for it, say): add within or on"


KIND = CheckKind(TextCheck, decide, weighs_answers=True, warnings=warnings)
