"""`action` checks: what the participant did."""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from judge.evaluators.amounts import Amounts, arguments_of
from judge.evaluators.base import CheckKind, ComparisonResult, Decision, happened, how_often
from judge.evaluators.evidence import ActionDone, TrajectoryEvidence
from judge.evaluators.lookalikes import with_difference
from judge.evaluators.looks import looks_at
from judge.evaluators.nearest import is_similar
from judge.evaluators.provenance import IgnoredContent
from judge.evaluators.values import is_value
from judge.records.checks import Editable, LookCheck, OneOrMore, PatternText, Text, Times, as_tuple
from judge.records.tools import verb_of
from shared.fields import Invalid
from shared.models import omit_default
from shared.patterns import Pattern
from shared.seen import TextForm, as_seen, without_icons
from shared.strict_json import parse_json
from shared.text import counted, plain, split_line

_POINT = r"[(\[] ?-?[\d.]+ ?, ?-?[\d.]+ ?[)\]]"
# The subject of an element without a name (`judge.browser.unnamed`): `button in row "sales.csv"`.
_DESCRIBED = re.compile(r'^[A-Za-z][\w-]* ((?:in|beside|under|with)(?: [a-z]+)?) ".*"$')
# As in `CLICK (12, 34)`, `CLICK: at (12, 34)` and `DRAG: to page (12, 34) to (56, 78)`.
_COORDINATES = re.compile(rf":?(?: ?at)? ?{_POINT}(?: to {_POINT})?$")


class ActionCheck(LookCheck):
    """An executed action equals `line` or matches `pattern`, at any step; with `times`, so many do."""

    of_actions: ClassVar[bool] = True

    kind: Literal["action"]
    line: OneOrMore[Text] | None = None
    pattern: PatternText | None = None
    editable: Editable = omit_default(False)
    times: Times | None = omit_default(None)

    def as_seen(self, form: TextForm = as_seen) -> Self:
        """The check as people see its texts. Action lines have no pictures of icon fonts."""
        adapted = super().as_seen(form)
        lines = tuple(map(_without_icons, as_tuple(adapted.line)))
        if lines == as_tuple(adapted.line):
            return adapted
        return adapted.model_copy(update={"line": lines[0] if isinstance(adapted.line, str) else lines})

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.line is None) == (self.pattern is None):
            raise Invalid("needs either line or pattern", "give exactly one of them")
        if self.times is not None and isinstance(self.line, tuple):
            raise Invalid("only one action can be counted", "write one check for each line", key="times")
        return self


def _without_icons(line: str) -> str:
    # A picture at the beginning of a name may be followed by a space.
    return plain(without_icons(line)).replace("< ", "<")


def decide(check: ActionCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the actions were executed, and the step of the last one."""
    looks = looks_at(check, recording)
    actions = list(recording.actions(looks))
    if recording.counts_all:
        if recording.site.is_lenient:
            actions = _with_amounts(recording, actions)
        # Typed text counts as well: it may be exactly what the participant must not write.
        last, missing = _executed(check, actions, anywhere=True, with_typed=True)
        if not happened(check.times, count := _count(check, actions, anywhere=True, with_typed=True), at_least=True):
            return Decision(False, ComparisonResult(False, how_often(check.times, count, "such action")), None)
        return Decision(
            last is not None, ComparisonResult(last is not None, last.line if last else missing), last and last.step
        )
    result, step = _acted(check, actions, inverted=inverted)
    passed = result.passed != inverted
    return Decision(passed, result, step if passed and not inverted else None)


def _with_amounts(recording: TrajectoryEvidence, actions: Sequence[ActionDone]) -> list[ActionDone]:
    """The actions with all that each could have been. What was typed before on other pages counts as well."""
    looks, amounts, lines_by_step, arguments = recording.looks, Amounts(), {}, {}
    for each in recording.actions(looks):
        place = next(place for place, look in enumerate(looks) if look.step.index == each.step)
        after = looks[place + 1] if place + 1 < len(looks) else None
        lines_by_step[each.step] = (*amounts.of(each.line, looks[place], after), *filter(None, [each.typed_line]))
        arguments[each.step] = recording.as_compared(arguments_of(looks[place]))
    return [
        each._replace(amounts=recording.as_compared(lines_by_step[each.step]), arguments=arguments[each.step])
        for each in actions
    ]


def _acted(check: ActionCheck, actions: Sequence[ActionDone], *, inverted: bool) -> tuple[ComparisonResult, int | None]:
    """Whether the actions were executed in this order, and the step of the last one.

    Only those on what the task's site wrote count; inverted, all do.
    """
    counting = [each for each in actions if inverted or each.counts(editable=check.editable)]
    with_typed = inverted or check.editable
    last, missing = _executed(check, counting, with_typed=with_typed)
    count = _count(check, counting, with_typed=with_typed)
    if last is not None and not happened(check.times, count, at_least=inverted):
        return ComparisonResult(False, f"{how_often(check.times, count, 'such action')}: {last.line}"), None
    if last is not None:
        return ComparisonResult(True, last.line), last.step
    where = f" on {check.on}" if check.on else ""
    problem = "no such action" if check.pattern is not None else f"no {missing}"
    if not inverted and (last := _executed(check, actions, with_typed=True)[0]):
        why = next(
            (
                each.left_out
                for each in reversed(actions)
                if each.step <= last.step and not each.counts(editable=check.editable)
            ),
            IgnoredContent("editor"),
        )
        return ComparisonResult(False, f"{problem}{where} that counts: an element was {why}"), None
    executed = [each.line for each in actions]
    line_or_pattern = check.pattern if check.pattern is not None else as_tuple(check.line)[0]
    close = difflib.get_close_matches(line_or_pattern, executed, n=3, cutoff=0.3) or executed[-3:]
    if not close:
        return ComparisonResult(False, f"{problem}, since none was executed{where}"), None
    message = f"{problem} among {counted(len(actions), 'action')}{where}: {'; '.join(close)}"
    return ComparisonResult(
        False, with_difference(message, "" if check.pattern is not None else missing, executed)
    ), None


def _executed(
    check: ActionCheck, actions: Sequence[ActionDone], *, with_typed: bool, anywhere: bool = False
) -> tuple[ActionDone | None, str]:
    """The action that completes what is expected, or `None` and the first missing line.

    `anywhere`: a pattern may match any part of a line. `with_typed`: an element may be named with what was typed.
    """

    if check.pattern is not None:
        pattern = Pattern(check.pattern)
        says = _is_in if anywhere else _says
        fitting = (
            each
            for each in actions
            if any(says(pattern, line) or says(pattern, _line_key(line)) for line in each.lines(with_typed=with_typed))
        )
        return next(fitting, None), ""
    waiting = list(as_tuple(check.line))
    for each in actions:
        is_line = _line_key(waiting[0]) in map(_line_key, each.lines(with_typed=with_typed))
        if is_line or (each.arguments is not None and _is_called_with(waiting[0], each)):
            waiting.pop(0)
            if not waiting:
                return each, ""
    return None, waiting[0]


def _is_called_with(line: str, action: ActionDone) -> bool:
    """Whether the tool of a line was called with at least its arguments."""
    expected, actual = split_line(plain(line)), split_line(action.line)
    if expected is None or actual is None or expected[:2] != actual[:2]:
        return False
    try:
        return is_value(parse_json(expected[2] or "{}"), action.arguments)
    except ValueError:
        return False


def _count(check: ActionCheck, actions: Sequence[ActionDone], *, with_typed: bool, anywhere: bool = False) -> int:
    """How many of the actions are the expected one; only counted where the check says how many."""
    if check.times is None:
        return 1
    return sum(_executed(check, [each], with_typed=with_typed, anywhere=anywhere)[0] is not None for each in actions)


def _line_key(line: str) -> str:
    """The line as compared: white space collapsed, coordinates at its end removed.

    Coordinates are only removed where nothing was typed: trimming could turn typed text into the expected text.
    """
    line = plain(line)
    parts = split_line(line)
    return _COORDINATES.sub("", line) if parts is not None and verb_of(parts[1]).at_point else line


def _is_in(pattern: Pattern, line: str) -> bool:
    return pattern.search(line) is not None


def _says(pattern: Pattern, line: str) -> bool:
    """Whether a line matches. A match that begins inside typed, chosen or visited text does not count."""
    span = pattern.search(line)
    parts = split_line(line)
    if span is None or parts is None:
        return False
    # The description of an element is the name of another one, so only a pattern that contains the description is about
    # this one.
    described = _DESCRIBED.search(parts[0])
    if described is not None and described[1] not in pattern.source:
        return False
    return parts[2] is None or span[0] < len(line) - len(parts[2])


def near(check: ActionCheck, recording: TrajectoryEvidence) -> int | None:
    """The last step with the same action elsewhere, where it does not count, with another value, or beside it."""
    if check.pattern is not None:
        return None
    actions = tuple(recording.actions(recording.looks))
    done = [(each.step, split_line(each.line)) for each in actions]
    lines = {plain(each.line) for each in actions if each.counts(editable=check.editable)}
    # Those that were executed on another page are missing as well.
    missing = [line for line in as_tuple(check.line) if check.on is not None or plain(line) not in lines]
    expected_line = split_line(missing[0]) if missing else None
    if expected_line is None:
        return None
    near = [
        step
        for step, parts in done
        if parts and parts[1] == expected_line[1] and is_similar(parts[0], expected_line[0])
    ]
    return max(near, default=None)


def warnings(check: ActionCheck) -> Iterator[str]:
    """Patterns that typed text could match, lines never recorded, and keys without meaning."""
    if check.pattern is not None and not check.pattern.lstrip("^").startswith("<"):
        yield "typed text could match the pattern: begin it with ^<"
    if unlike := [line for line in as_tuple(check.line) if " -> " not in line]:
        yield f"no action is recorded like {unlike[0]!r}: write it like <Save button> -> CLICK"
    if "at" in check.model_fields_set:
        yield "'at' has no meaning for action: remove it"


KIND = CheckKind(ActionCheck, decide, weighs_answers=True, near=near, warnings=warnings)
