"""Declared checks on recorded evidence: page, element, text, action, answer, request, fetch, probe, and one of
several.

Each kind reads the actual value, normalises it, compares it with the expected one, and reports what was found instead.
The rules that all kinds share (which looks count, which one is the end, what `not` means) are in `_over_looks`.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from judge.evaluators.addresses import is_at, query_difference
from judge.evaluators.base import MAX_FOUND_CHARS, Assertion, CheckKind, Decision, Found
from judge.evaluators.evidence import ActionDone, Look, MissingEvidence, Recording
from judge.evaluators.fetches import fetched
from judge.evaluators.findings import AddressFound, NodeFound, NodesFound, NumbersFound
from judge.evaluators.nearest import near_step
from judge.evaluators.provenance import LeftOut
from judge.evaluators.requests import requested
from judge.evaluators.sockets import messaged
from judge.records.checks import (
    CHECKS,
    ActionCheck,
    AnswerCheck,
    AnyOf,
    Check,
    ElementCheck,
    FetchCheck,
    OwnCheck,
    PageCheck,
    PluginCheck,
    ProbeCheck,
    RequestCheck,
    SocketCheck,
    TextCheck,
    as_tuple,
    expressions_of,
)
from judge.records.elements import Element, parse_element
from judge.records.normalise import NormaliseError, is_same, normalise, only_value, parse_number, shown, string
from judge.records.patterns import Pattern
from judge.records.tools import verb_of
from judge.trajectory.record import Trajectory
from shared.snapshot import Node, Snapshot
from shared.text import clip, counted, excerpt, one_line, plain, split_line

_MAX_SHOWN = 5
_COMMON_KEYS = ("at", "on", "within", "in_view", "editable", "count")
_POINT = r"[(\[] ?-?[\d.]+ ?, ?-?[\d.]+ ?[)\]]"
# The subject of an element without a name (`judge.browser.unnamed`): `button in row "sales.csv"`.
_DESCRIBED = re.compile(r'^[A-Za-z][\w-]* ((?:in|beside|under|with)(?: [a-z]+)?) ".*"$')
# As in `CLICK (12, 34)`, `CLICK: at (12, 34)` and `DRAG: to page (12, 34) to (56, 78)`.
_COORDINATES = re.compile(rf":?(?: ?at)? ?{_POINT}(?: to {_POINT})?$")


def evaluate(trajectory: Trajectory, allowed_sites: Iterable[str] = ()) -> tuple[Assertion, ...]:
    """One assertion for each check of the task, in order; undecided if evidence is missing."""
    recording = Recording(trajectory, tuple(allowed_sites))
    return tuple(_assertion(number, check, recording) for number, check in enumerate(trajectory.task.checks, 1))


def _assertion(number: int, check: Check, recording: Recording) -> Assertion:
    expected = describe(check.model_copy(update={"description": ""}))
    about = {"check": f"check {number}", "description": describe(check), "expected": expected}
    try:
        decision = _decide(check, recording, check.inverted)
    except MissingEvidence as missing:
        return Assertion(**about, passed=None, found=str(missing))
    found = decision.found
    normalised = None if found.normalised is None else clip(found.normalised, MAX_FOUND_CHARS)
    result = {
        "passed": decision.passed,
        "found": clip(found.text, MAX_FOUND_CHARS),
        "normalised": normalised,
        "facts": found.facts,
    }
    if decision.passed:
        return Assertion(**about, **result, step=decision.step)
    near = decision.near_step
    if near is None and decision.last_step is None:
        near = near_step(check, recording, _fits)
    return Assertion(**about, **result, step=decision.step, last_step=decision.last_step, near_step=near)


def elements_like(page: Snapshot, element: Element) -> list[Node]:
    """The elements of a page that an `element` check would find, whoever wrote them."""
    return _fitting(page, element, range(len(page.nodes)))


def describe(check: Check) -> str:
    """The check in words: its own description, otherwise its keys and values."""
    if check.description:
        return plain(check.description)
    if isinstance(check, AnyOf):
        words = (" and " if check.inverted else " or ").join(describe(each) for each in check.any_of)
        return f"none of: {words}" if check.inverted else words
    keys = check.model_dump(exclude_defaults=True, exclude={"kind", "inverted", "description"})
    # The keys of this kind come first, then those that every kind has.
    words = ", ".join(f"{key} {_in_words(keys[key])}" for key in sorted(keys, key=lambda key: key in _COMMON_KEYS))
    words = words if check.kind in keys else f"{check.kind} {words}"
    return f"not: {words}" if check.inverted else words


def _in_words(value: Any) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    return " then ".join(f"{each:g}" if isinstance(each, float) else shown(each) for each in values)


def _decide(check: Check, recording: Recording, inverted: bool) -> Decision:
    if isinstance(check, PluginCheck):
        kind: CheckKind = CHECKS.load(check.kind)
        return kind.decide(check, recording, inverted)
    return _decide_own(check, recording, inverted)


def _decide_own(check: OwnCheck, recording: Recording, inverted: bool) -> Decision:
    if isinstance(check, AnyOf):
        # "None of them" is "not the first, and not the second, …", so that each keeps its own rule for missing pages.
        inner = [_decide(each, recording, each.inverted != inverted) for each in check.any_of]
        passed = (all if inverted else any)(one.passed for one in inner)
        steps = [one.step for one in inner if one.step is not None]
        telling = [one.found for one in inner if one.passed == passed][: 1 if passed else None]
        text = "; ".join(found.text for found in telling)
        facts = tuple(fact for found in telling for fact in found.facts)
        last = max((one.last_step for one in inner if one.last_step is not None), default=None)
        near = max((one.near_step for one in inner if one.near_step is not None), default=None)
        return Decision(passed, Found(passed, text, facts=facts), min(steps, default=None), last, near)
    if isinstance(check, AnswerCheck):
        found = _answered(check, recording.trajectory.final_answer)
        passed = found.counts and found.passed != inverted
        steps = [look.step.index for look in recording.looks if look.step.outcome is not None]
        return Decision(passed, found, steps[-1] if steps and passed else None)
    if isinstance(check, FetchCheck):
        return fetched(check, recording, inverted=inverted)
    if not recording.looks:
        raise MissingEvidence("no steps were recorded")
    looks = [look for look in recording.looks if check.on is None or is_at(look, check.on, extra_query=True)]
    if isinstance(check, ActionCheck):
        found, step = _acted(check, list(recording.actions(looks)), inverted=inverted)
        passed = found.passed != inverted
        return Decision(passed, found, step if passed and not inverted else None)
    if isinstance(check, RequestCheck):
        return requested(check, recording, looks, inverted=inverted)
    if isinstance(check, SocketCheck):
        return messaged(check, recording, looks, inverted=inverted)
    if isinstance(check, PageCheck):
        return _over_looks(check, looks, inverted, _page_test(check, looks))
    if isinstance(check, ProbeCheck):
        return _over_looks(check, looks, inverted, _probe_test(check, looks, expressions_of(recording.played.checks)))
    if check.on is not None:
        looks = [look for look in looks if look.snapshot is not None]
    return _over_looks(check, looks, inverted, _snapshot_test(check, inverted=inverted))


def _over_looks(
    check: PageCheck | ElementCheck | TextCheck | ProbeCheck,
    looks: Sequence[Look],
    inverted: bool,
    test: Callable[[Look, bool], Found],
) -> Decision:
    """The rules of `at` and `not`.

    `at = "end"`: the last look decides. `at = "any"`: one look is enough. Inverted: no look may pass, and the last one
    must show a page, so that ending on a page without content cannot hide what must never be shown.
    `test` says whether a look passes, and explains why not if asked to, which takes longer.
    """
    if not looks:
        return Decision(False, Found(False, f"{check.on} was never on screen" if check.on else "no page"), None)
    # Of those that fail, only the last look's text is ever shown.
    found = [test(look, look is looks[-1]) for look in looks]
    last = found[-1]
    hits = [place for place, one in enumerate(found) if one.passed]
    first = looks[hits[0]].step.index if hits else None
    if inverted:
        if check.at == "any" and hits and first is not None:
            shows = found[hits[0]]
            held = looks[hits[0] - 1].step.index if hits[0] else None
            return Decision(False, shows._replace(text=f"at step {first + 1}: {shows.text}"), None, held)
        passed = last.counts and not last.passed
        met = [look.step.index for look, one in zip(looks, found, strict=True) if one.counts and not one.passed]
        return Decision(passed, last, looks[-1].step.index if passed else None, met[-1] if met else None)
    if check.at == "any":
        return Decision(bool(hits), found[hits[0]] if hits else last, first)
    held = looks[hits[-1]].step.index if hits else None
    if held is not None and not last.passed:
        last = last._replace(text=f"only until step {held + 1}; at the end {last.text}")
    return Decision(last.passed, last, first, held)


def _page_test(check: PageCheck, looks: Sequence[Look]) -> Callable[[Look, bool], Found]:
    """Tests address and title; of several addresses, whether the look is at the last one after all others in order."""
    *earlier, target = as_tuple(check.url) or ("",)
    missing: dict[int, str] = {}
    for look in looks:
        if earlier:
            missing[look.step.index] = earlier[0]
            if is_at(look, earlier[0], extra_query=check.extra_query):
                earlier.pop(0)

    def test(look: Look, _explains: bool) -> Found:
        there = AddressFound.of(look.step.url, is_own=look.is_own)
        if look.step.index in missing:
            return Found(False, f"{missing[look.step.index]} was not visited before {there}", facts=(there,))
        if target and not is_at(look, target, extra_query=check.extra_query):
            return Found(False, f"{_other_query(check, look, target)}{there}", facts=(there,))
        if check.title is not None and not (look.is_own and plain(look.step.title) == plain(check.title)):
            return Found.of(False, AddressFound.of(look.step.url, is_own=look.is_own, title=look.step.title))
        return Found.of(True, there)

    return test


def _other_query(check: PageCheck, look: Look, target: str) -> str:
    """The parameters that are missing, different or not expected, for the finding; empty if more than they differ."""
    found = query_difference(look, target, extra_query=check.extra_query)
    if found is None:
        return ""
    instead = dict(found.instead)
    parts = [
        f"{one_line(name, 60)} is {excerpt(instead[name])}"
        if name in instead
        else f"no {one_line(f'{name}={value}', 100)}"
        for name, value in found.missing
    ]
    parts += [f"also {one_line(f'{name}={value}', 100)}" for name, value in found.extra]
    more = [f"{len(parts) - _MAX_SHOWN} more differences"] if len(parts) > _MAX_SHOWN else []
    return f"{', '.join([*parts[:_MAX_SHOWN], *more])} in " if parts else ""


def _probe_test(check: ProbeCheck, looks: Sequence[Look], expressions: Sequence[str]) -> Callable[[Look, bool], Found]:
    """Tests the value read in the page; with `keep`, the first value read so far."""
    if check.expression not in expressions:
        raise MissingEvidence("the value of this expression was not read when the attempt was played: play it again")
    at = expressions.index(check.expression)
    found: dict[int, Found] = {}
    kept: Found | None = None
    for look in looks:
        if len(look.step.probes) != len(expressions):
            raise MissingEvidence(f"no value was read at step {look.step.index + 1}")
        read = look.step.probes[at]
        now = _compared(check, read.value) if read.value is not None else _without_value(look, read.error)
        if check.keep == "first" and kept is None and read.value is not None:
            kept = now
        found[look.step.index] = kept or now
    return lambda look, _explains: found[look.step.index]


def _without_value(look: Look, error: str | None) -> Found:
    why = one_line(error, 300) if error else "null"
    where = "" if look.is_own else f": {excerpt(look.step.url, 200)}"
    return Found(False, f"no value, {why}{where}", counts=False)


def _compared(check: ProbeCheck, value: bool | int | float | str) -> Found:
    text = excerpt(value, 300) if isinstance(value, str) else shown(value)
    if check.expected is not None:
        if isinstance(value, str) and isinstance(check.expected, str):
            return Found(plain(value) == plain(check.expected), text)
        # In Python `True == 1`.
        return Found(isinstance(value, bool) == isinstance(check.expected, bool) and value == check.expected, text)
    if isinstance(value, bool | str):
        return Found(False, f"{text} is not a number", counts=False)
    return Found((check.min is None or value >= check.min) and (check.max is None or value <= check.max), text)


def _snapshot_test(check: ElementCheck | TextCheck, *, inverted: bool) -> Callable[[Look, bool], Found]:
    """Tests the page, or the part of it that `within` names, for what the task's own site wrote.

    What is inside an editor counts only with `editable`. Inverted, the page must not pass with it nor without it: what
    must not be there must not be in an editor either, and what the participant wrote must not make up for what is.
    """
    within = parse_element(check.within) if check.within else None
    # Parsed once for all looks.
    wanted = check.elements if isinstance(check, ElementCheck) else ()
    pattern = Pattern(check.pattern) if isinstance(check, TextCheck) and check.pattern else None

    def shown(look: Look, page: Snapshot, explains: bool = False) -> Found:
        roots = None if within is None else _fitting(page, within, range(len(page.nodes)))
        if roots == []:
            return Found(False, f"no {check.within} on the page", counts=False)
        if isinstance(check, ElementCheck):
            return _elements_shown(check, wanted, look, page, roots, explains)
        text = look.texts(page, roots, check.in_view)
        return (
            _contained(text, as_tuple(check.contains), check.count)
            if pattern is None
            else _matched(text, pattern, check)
        )

    def test(look: Look, explains: bool) -> Found:
        if not look.is_own:
            return Found(False, f"a page of another site: {excerpt(look.step.url, 200)}", counts=False)
        if look.snapshot is None:
            what = f"an open dialog: {excerpt(look.step.dialog, 100)}" if look.step.dialog else "an empty page"
            return Found(False, what, counts=False)
        found = shown(look, look.evidence(editable=check.editable), explains)
        if found.passed:
            return found
        if inverted:
            with_editors = shown(look, look.evidence(editable=True)) if look.has_editors else found
            return with_editors if with_editors.passed else found
        if not explains:
            return found
        left_out = _left_out(look, editable=check.editable, passes=lambda page: shown(look, page).passed)
        return found._replace(text=f"it is {left_out}; elsewhere {found.text}") if left_out else found

    return test


def _left_out(look: Look, *, editable: bool, passes: Callable[[Snapshot], bool]) -> LeftOut | None:
    """Where the page shows what is expected without being evidence; `None` if it does not."""
    if not editable and look.has_editors and passes(look.evidence(editable=True)):
        return LeftOut("editor")
    for origin in look.other_origins:
        if passes(look.evidence(editable=editable, other_origin=origin)):
            return LeftOut("origin", origin)
    return None


def _elements_shown(
    check: ElementCheck,
    wanted: Sequence[Element],
    look: Look,
    page: Snapshot,
    roots: Sequence[Node] | None,
    explains: bool,
) -> Found:
    places: Sequence[int] = range(len(page.nodes))
    if roots is not None:
        places = sorted({node.position for root in roots for node in page.subtree(root)} - {r.position for r in roots})
    seen = [_fitting(page, element, places) for element in wanted]
    if check.in_view:
        seen = [[node for node in nodes if look.is_in_view(node)] for nodes in seen]
    if check.count is not None:
        return Found(len(seen[0]) == check.count, f"{len(seen[0])} of them")
    at = -1
    for element, nodes in zip(wanted, seen, strict=True):
        following = next((node.position for node in nodes if node.position > at), None)
        if following is None and not explains:
            return Found(False, "")
        if following is None:
            earlier = Found(False, "it comes earlier on the page")
            found = earlier if nodes else _instead(page, element, places, check.in_view)
            return found._replace(text=f"no {element.written}: {found.text}") if len(wanted) > 1 else found
        at = following
    return Found.of(True, NodesFound(nodes=tuple(_node_found(page, nodes[0]) for nodes in seen)))


def _fitting(page: Snapshot, element: Element, places: Sequence[int]) -> list[Node]:
    """The nodes that match the element. Of nested ones that only repeat each other's content, the innermost."""
    found = [page.nodes[at] for at in places if _fits(page, page.nodes[at], element)]
    if element.role is not None:
        return found
    outer = {node.parent for node in found if node.parent is not None}
    return [node for node in found if node.name or node.position not in outer]


def _fits(page: Snapshot, node: Node, element: Element) -> bool:
    # Two names of the same ARIA role.
    if element.role is not None and node.role != element.role and {node.role, element.role} != {"img", "image"}:
        return False
    for state, value in element.states:
        actual = str(node.level) if state == "level" else node.states.get(state, "false")
        if actual != value:
            return False
    if element.value is not None and plain(element.value) not in _values_of(page, node):
        return False
    if element.name is None and element.pattern is None:
        return True
    name = plain(page.name_of(node))
    if element.pattern is None:
        return name == plain(element.name or "")
    return bool(name) and element.pattern.search(name) is not None


def _values_of(page: Snapshot, node: Node) -> list[str]:
    """The value of an element, or what is selected in it."""
    return [plain(value) for value in (page.choices_in(node) or (page.value_of(node),))]


def _node_found(page: Snapshot, node: Node) -> NodeFound:
    return NodeFound.of(page, node, _values_of(page, node)[0])


def _instead(page: Snapshot, element: Element, places: Sequence[int], in_view: bool) -> Found:
    """The elements closest to the expected one."""
    if in_view and _fitting(page, element, places):
        return Found(False, "it is not in view")
    nodes = [page.nodes[at] for at in places if element.role in (None, page.nodes[at].role)]
    named = (_node_found(page, node) for node in nodes if page.name_of(node) or element.role)
    listed = {str(node): node for node in named}
    # `difflib` is slow, and a page may have thousands of elements.
    close = difflib.get_close_matches(element.written, list(listed)[:500], n=_MAX_SHOWN, cutoff=0.3)
    shown = close or list(listed)[:_MAX_SHOWN]
    return Found.of(False, NodesFound(nodes=tuple(listed[words] for words in shown), role=element.role))


def _contained(text: str, wanted: Sequence[str], count: int | None) -> Found:
    if count is not None:
        number = text.count(plain(wanted[0]))
        return Found(number == count, counted(number, "time"))
    at = 0
    for each in map(plain, wanted):
        place = text.find(each, at)
        if place < 0:
            order = " after what comes before it" if each in text else ""
            return Found(False, f'no "{each}"{order} in: {excerpt(text, 200)}')
        at = place + len(each)
    return Found(True, f'"{plain(wanted[-1])}"')


def _matched(text: str, pattern: Pattern, check: TextCheck) -> Found:
    if not check.reads_numbers and check.count is None:
        span = pattern.search(text)
        return Found(span is not None, excerpt(text[slice(*span)] if span else text, 200))
    matches = list(pattern.matches(text))
    is_counted = check.count is None or check.count == len(matches)
    if not check.reads_numbers:
        return Found(is_counted, counted(len(matches), "match", "matches"))
    if not matches:
        # With nothing to compare, the check fails even when inverted.
        return Found(False, f"no match in: {excerpt(text, 200)}", counts=False)
    written = [match.group(1) or "" for match in matches]
    values = []
    for each in written:
        value = parse_number(each)
        if value is None:
            return Found(False, f"{excerpt(each, 60)} is not a number", counts=False)
        values.append(value)
    low, high = (None if limit is None else Decimal(str(limit)) for limit in (check.min, check.max))
    is_within = all((low is None or value >= low) and (high is None or value <= high) for value in values)
    is_sorted = check.sorted is None or values == sorted(values, reverse=check.sorted == "descending")
    is_passed = is_within and is_sorted and is_counted
    return Found.of(is_passed, NumbersFound.of(written), ", ".join(map(str, values[:20])))


def _acted(check: ActionCheck, actions: Sequence[ActionDone], *, inverted: bool) -> tuple[Found, int | None]:
    """Whether the actions were executed in this order, and the step of the last one.

    Only those on what the task's own site wrote count; inverted, all do.
    """
    counting = [each for each in actions if inverted or each.counts(editable=check.editable)]
    last, missing = _executed(check, counting)
    if last is not None:
        return Found(True, last.line), last.step
    where = f" on {check.on}" if check.on else ""
    problem = "no such action" if check.pattern is not None else f"no {missing}"
    if not inverted and (last := _executed(check, actions)[0]):
        why = next(
            each.left_out
            for each in reversed(actions)
            if each.step <= last.step and not each.counts(editable=check.editable)
        )
        return Found(False, f"{problem}{where} that counts: an element was {why}"), None
    executed = [each.line for each in actions]
    wanted = check.pattern if check.pattern is not None else as_tuple(check.line)[0]
    close = difflib.get_close_matches(wanted, executed, n=3, cutoff=0.3) or executed[-3:]
    if not close:
        return Found(False, f"{problem}, since none was executed{where}"), None
    return Found(False, f"{problem} among {counted(len(actions), 'action')}{where}: {'; '.join(close)}"), None


def _executed(check: ActionCheck, actions: Sequence[ActionDone]) -> tuple[ActionDone | None, str]:
    """The action that completes what is expected, or `None` and the first line that is missing."""
    if check.pattern is not None:
        pattern = Pattern(check.pattern)
        fitting = (each for each in actions if _says(pattern, each.line) or _says(pattern, _line_key(each.line)))
        return next(fitting, None), ""
    waiting = list(as_tuple(check.line))
    for each in actions:
        if _line_key(each.line) == _line_key(waiting[0]):
            waiting.pop(0)
            if not waiting:
                return each, ""
    return None, waiting[0]


def _line_key(line: str) -> str:
    """The line as compared: white space collapsed, coordinates at its end removed.

    Coordinates are only removed where nothing was typed: trimming could turn typed text into the expected text.
    """
    line = plain(line)
    parts = split_line(line)
    return _COORDINATES.sub("", line) if parts is not None and verb_of(parts[1]).at_point else line


def _says(pattern: Pattern, line: str) -> bool:
    """Whether a line matches. A match that begins inside text that was typed, chosen or visited does not count."""
    span = pattern.search(line)
    parts = split_line(line)
    if span is None or parts is None:
        return False
    # What describes an element is the name of another one: only a pattern that says so is about this one.
    described = _DESCRIBED.search(parts[0])
    if described is not None and described[1] not in pattern.source:
        return False
    return parts[2] is None or span[0] < len(line) - len(parts[2])


def _answered(check: AnswerCheck, answer: str | None) -> Found:
    if answer is None or not answer.strip():
        return Found(False, "no answer was given", counts=False)
    quoted = excerpt(answer, 300)
    if check.contains is not None:
        return Found(plain(check.contains).casefold() in plain(answer).casefold(), quoted)
    if check.pattern is not None:
        return Found(Pattern(check.pattern).search(answer) is not None, quoted)
    kind = check.type or "string"
    has_expected = "expected" in check.model_fields_set
    expected = normalise(check.expected, kind) if has_expected else None
    try:
        actual = only_value(answer, kind, expected=expected)
    except NormaliseError as error:
        return Found(False, f"{error} in {quoted}", counts=False)
    if check.schema_ is not None and (problem := _schema_problem(check.schema_, actual)):
        return Found(False, f"{quoted}: {problem}", shown(actual))
    is_passed = not has_expected or is_same(actual, expected, kind, ordered=check.ordered)
    return Found(is_passed, quoted, string(shown(actual)) if kind == "string" else shown(actual))


def _schema_problem(schema: dict[str, Any], value: Any) -> str | None:
    # Imported here because few tasks have a schema, and the import takes longer than judging a task without one.
    from jsonschema import Draft202012Validator, ValidationError, validators
    from jsonschema.exceptions import best_match

    def matches(_: Any, written: Any, text: Any, __: Any) -> Any:
        if isinstance(text, str) and Pattern(written).search(text) is None:
            yield ValidationError(f"{text[:60]!r} does not match {written!r}")

    # RE2 instead of `re`, because a foreign pattern could make `re` run for hours.
    validator = validators.extend(Draft202012Validator, {"pattern": matches})
    try:
        error = best_match(validator(schema).iter_errors(value))
    except RecursionError:
        return "nested too deeply"
    return None if error is None else clip(plain(str(error.message)), 200)
