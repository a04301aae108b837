"""Declared checks on recorded evidence: page, element, text, action, answer, and one of several.

Each kind reads what is actually there, normalises it, compares it with what is expected, and says what was found
instead. The rules that all kinds share (which looks count, which is the end, what `not` means) are in `_over_looks`.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from judge.evaluators.addresses import is_at
from judge.evaluators.base import MAX_FOUND_CHARS, Assertion
from judge.evaluators.evidence import Look, MissingEvidence, Recording
from judge.trajectory.record import Trajectory
from shared.checks import (
    ActionCheck,
    AnswerCheck,
    AnyOf,
    Check,
    ElementCheck,
    PageCheck,
    PlainCheck,
    TextCheck,
    as_tuple,
)
from shared.elements import Element, parse_element
from shared.normalise import NormaliseError, is_same, normalise, only_value, parse_number, plain, shown, string
from shared.patterns import Pattern
from shared.snapshot import Node, Snapshot
from shared.text import clip, excerpt, split_line

_MAX_SHOWN = 5
_POINTER_VERBS = ("CLICK", "HOVER", "DRAG", "SCROLL")


class Found(NamedTuple):
    """What a comparison came to. `counts` is false where there was nothing to compare: no page, no answer."""

    passed: bool
    text: str
    normalised: str | None = None
    counts: bool = True


@dataclass(frozen=True)
class _Decision:
    """Passed or not, by which finding, and the step at which it passed first."""

    passed: bool
    found: Found
    step: int | None


class CheckEvaluator:
    """Evaluates a task's checks: a `judge.evaluators.base.Evaluator`."""

    def __init__(self, allowed_sites: Sequence[str] = ()) -> None:
        self._allowed_sites = tuple(allowed_sites)

    def evaluate(self, trajectory: Trajectory) -> tuple[Assertion, ...]:
        """One assertion for each check of the task, in order."""
        checks = trajectory.task.checks
        try:
            recording = Recording.of(trajectory, self._allowed_sites)
        except MissingEvidence as missing:
            return tuple(_missing(number, check, missing) for number, check in enumerate(checks, 1))
        return tuple(_assertion(number, check, recording) for number, check in enumerate(checks, 1))


def describe(check: Check) -> str:
    """The check in words: its own description, or what it asks for."""
    if check.description:
        return plain(check.description)
    if isinstance(check, AnyOf):
        words = (" and " if check.inverted else " or ").join(describe(each) for each in check.any_of)
        return f"none of: {words}" if check.inverted else words
    words = _asked(check)
    if isinstance(check, ElementCheck | TextCheck):
        words += f" in {check.within}" if check.within else ""
        words += " within view" if check.in_view else ""
        words += f", {check.count} times" if check.count is not None else ""
    words += f" on {check.on}" if check.on else ""
    when = (
        "" if isinstance(check, ActionCheck | AnswerCheck) else " at any time" if check.at == "any" else " at the end"
    )
    return f"not: {words}{when}" if check.inverted else f"{words}{when}"


def _asked(check: PlainCheck) -> str:
    if isinstance(check, PageCheck):
        parts = [" then ".join(as_tuple(check.url))] if check.url else []
        return "page " + " ".join([*parts, *([f'titled "{check.title}"'] if check.title else [])])
    if isinstance(check, ElementCheck):
        return "element " + " then ".join(as_tuple(check.element))
    if isinstance(check, TextCheck):
        texts = [f'"{text}"' for text in as_tuple(check.contains)] or [f"/{check.pattern}/"]
        limits = [f"{name} {value:g}" for name, value in (("min", check.min), ("max", check.max)) if value is not None]
        limits += [check.sorted] if check.sorted else []
        return "text " + " then ".join(texts) + (f" ({', '.join(limits)})" if limits else "")
    if isinstance(check, ActionCheck):
        return "action " + (" then ".join(as_tuple(check.line)) or f"/{check.pattern}/")
    if check.type is not None:
        wanted = "fits the schema" if "expected" not in check.model_fields_set else _literal(check.expected)
        return f"answer of type {check.type}: {wanted}"
    return "answer " + (f'has "{check.contains}"' if check.contains else f"matches /{check.pattern}/")


def _literal(value: Any) -> str:
    return shown(tuple(value)) if isinstance(value, list) else shown(value)


def _missing(number: int, check: Check, missing: MissingEvidence) -> Assertion:
    return Assertion(
        check=f"check {number}", description=describe(check), passed=None, expected=describe(check), found=str(missing)
    )


def _assertion(number: int, check: Check, recording: Recording) -> Assertion:
    try:
        decision = _decide(check, recording, check.inverted)
    except MissingEvidence as missing:
        return _missing(number, check, missing)
    found = decision.found
    return Assertion(
        check=f"check {number}",
        description=describe(check),
        passed=decision.passed,
        expected=describe(check.model_copy(update={"description": ""})),
        found=clip(found.text, MAX_FOUND_CHARS),
        normalised=None if found.normalised is None else clip(found.normalised, MAX_FOUND_CHARS),
        step=decision.step,
    )


def _decide(check: Check, recording: Recording, inverted: bool) -> _Decision:
    if isinstance(check, AnyOf):
        # "None of them" is "not the first, and not the second, …": each keeps its own rule for missing pages.
        inner = [_decide(each, recording, each.inverted != inverted) for each in check.any_of]
        passed = all(one.passed for one in inner) if inverted else any(one.passed for one in inner)
        steps = [one.step for one in inner if one.step is not None]
        telling = [one for one in inner if one.passed] if passed else [one for one in inner if not one.passed]
        text = telling[0].found.text if passed else "; ".join(one.found.text for one in telling)
        return _Decision(passed, Found(passed, text), min(steps, default=None))
    if isinstance(check, AnswerCheck):
        return _answered(check, recording, inverted)
    if not recording.has_steps:
        raise MissingEvidence("no steps were recorded")
    looks = [look for look in recording.looks if check.on is None or is_at(look, check.on, extra_query=True)]
    if isinstance(check, ActionCheck):
        return _acted(check, recording, looks, inverted)
    if isinstance(check, PageCheck):
        return _over_looks(check, looks, inverted, _PageTest(check, looks))
    test = _element_test(check) if isinstance(check, ElementCheck) else _text_test(check)
    if check.on is not None:
        looks = [look for look in looks if look.snapshot is not None]
    return _over_looks(check, looks, inverted, test)


def _over_looks(
    check: PageCheck | ElementCheck | TextCheck, looks: Sequence[Look], inverted: bool, test: Callable[[Look], Found]
) -> _Decision:
    """The rules of `at` and `not`.

    At the end: the last look decides. At any time: one look is enough; inverted, no look may pass, and the last one has
    to be there to see, so that nobody ends on a page that hides what must never show.
    """
    if not looks:
        return _Decision(False, Found(False, f"{check.on} was never on screen" if check.on else "no page"), None)
    found = [test(look) for look in looks]
    last = found[-1]
    passing = [place for place, one in enumerate(found) if one.passed]
    if inverted:
        hits = passing if check.at == "any" else [place for place in passing if place == len(found) - 1]
        passed = last.counts and not hits
        shows = found[hits[0]] if hits else last
        if check.at == "any" and hits:
            shows = shows._replace(text=f"at step {looks[hits[0]].step.index + 1}: {shows.text}")
        return _Decision(passed, shows, looks[-1].step.index if passed else None)
    first = looks[passing[0]].step.index if passing else None
    if check.at == "any":
        return _Decision(bool(passing), found[passing[0]] if passing else last, first)
    note = f"only until step {looks[passing[-1]].step.index + 1}; at the end {last.text}" if passing else last.text
    return _Decision(last.passed, last if last.passed else last._replace(text=note), first)


class _PageTest:
    """Address and title; of several addresses, whether the look is the last one of them, in this order."""

    def __init__(self, check: PageCheck, looks: Sequence[Look]) -> None:
        self._check = check
        self._done: dict[int, int] = {}
        urls, reached = as_tuple(check.url), 0
        for look in looks:
            if reached < len(urls) - 1 and self._is_at(look, urls[reached]):
                self._done[look.step.index] = reached
                reached += 1
                continue
            self._done[look.step.index] = reached

    def _is_at(self, look: Look, url: str) -> bool:
        return is_at(look, url, extra_query=self._check.extra_query)

    def __call__(self, look: Look) -> Found:
        urls, title = as_tuple(self._check.url), self._check.title
        there = f"{excerpt(look.step.url, 200)}" + ("" if look.is_own else ", which is not the task's site")
        if urls and self._done[look.step.index] < len(urls) - 1:
            return Found(False, f"{urls[self._done[look.step.index]]} was not visited before {there}")
        if urls and not self._is_at(look, urls[-1]):
            return Found(False, there)
        if title is not None and not (look.is_own and plain(look.step.title) == plain(title)):
            return Found(False, f"{there}, titled {excerpt(look.step.title, 200)}")
        return Found(True, there)


def _no_page(look: Look) -> Found | None:
    if not look.is_own:
        return Found(False, f"a page of another site: {excerpt(look.step.url, 200)}", counts=False)
    if look.snapshot is None:
        what = f"an open dialog: {excerpt(look.step.dialog, 100)}" if look.step.dialog else "an empty page"
        return Found(False, what, counts=False)
    return None


def _roots(look: Look, within: str | None) -> list[Node] | None:
    """The elements to look inside; `None` for the whole page, empty when they are not there."""
    if within is None or look.snapshot is None:
        return None
    return _fitting(look.snapshot, parse_element(within), range(len(look.snapshot.nodes)))


def _element_test(check: ElementCheck) -> Callable[[Look], Found]:
    wanted = check.elements

    def test(look: Look) -> Found:
        page = look.snapshot
        if (nothing := _no_page(look)) is not None or page is None:
            return nothing or Found(False, "no page", counts=False)
        roots = _roots(look, check.within)
        if roots == []:
            return Found(False, f"no {check.within} on the page", counts=False)
        places = range(len(page.nodes)) if roots is None else _inside(page, roots)
        seen = [_fitting(page, element, places) for element in wanted]
        if check.in_view:
            seen = [[node for node in nodes if look.is_in_view(node)] for nodes in seen]
        if check.count is not None:
            (nodes,) = seen
            return Found(len(nodes) == check.count, f"{len(nodes)} of them")
        at = -1
        for element, nodes in zip(wanted, seen, strict=True):
            following = next((node.position for node in nodes if node.position > at), None)
            if following is None:
                why = "it comes earlier on the page" if nodes else _instead(page, element, places, check.in_view)
                return Found(False, f"no {element.written}: {why}" if len(wanted) > 1 else why)
            at = following
        return Found(True, "; ".join(_shown_node(page, nodes[0]) for nodes in seen))

    return test


def _inside(page: Snapshot, roots: Sequence[Node]) -> list[int]:
    """The places of everything inside the roots, each once, in order."""
    return sorted({node.position for root in roots for node in page.subtree(root) if node.position != root.position})


def _fitting(page: Snapshot, element: Element, places: Sequence[int]) -> list[Node]:
    """The nodes that are the element. Of nested ones that only repeat each other's content, the innermost."""
    found = [page.nodes[at] for at in places if _fits(page, page.nodes[at], element)]
    if element.role is not None:
        return found
    outer = {node.parent for node in found if node.parent is not None}
    return [node for node in found if node.name or node.position not in outer]


def _fits(page: Snapshot, node: Node, element: Element) -> bool:
    if element.role is not None and node.role != element.role and {node.role, element.role} != {"img", "image"}:
        return False
    for state, value in element.states:
        actual = str(node.level) if state == "level" else node.states.get(state, "false")
        if actual != value:
            return False
    if element.value is not None and plain(page.value_of(node)) != plain(element.value):
        return False
    if element.name is not None:
        return plain(page.name_of(node)) == plain(element.name)
    if element.pattern is not None:
        name = plain(page.name_of(node))
        return bool(name) and element.pattern.search(name) is not None
    return True


def _shown_node(page: Snapshot, node: Node) -> str:
    """An element as a check would write it."""
    name, value = clip(plain(page.name_of(node)), 100), clip(plain(page.value_of(node)), 60)
    states = "".join(
        f" [{key}]" if state == "true" else f" [{key}={state}]"
        for key, state in node.states.items()
        if key in ("checked", "disabled", "expanded", "pressed", "selected")
    )
    level = f" [level={node.level}]" if node.level is not None else ""
    return (
        node.role + (f' "{name}"' if name else "") + level + states + (f": {value}" if value != name and value else "")
    )


def _instead(page: Snapshot, element: Element, places: Sequence[int], in_view: bool) -> str:
    """The elements that come closest."""
    if in_view and _fitting(page, element, places):
        return "it is not in view"
    nodes = [page.nodes[at] for at in places if element.role in (None, page.nodes[at].role)]
    listed = list(dict.fromkeys(_shown_node(page, node) for node in nodes if page.name_of(node) or element.role))
    if not listed:
        return f"no {element.role or 'element with a name'} at all"
    close = difflib.get_close_matches(element.written, listed[:500], n=_MAX_SHOWN, cutoff=0.3) or listed[:_MAX_SHOWN]
    return "; ".join(close)


def _text_test(check: TextCheck) -> Callable[[Look], Found]:
    pattern = Pattern(check.pattern) if check.pattern else None

    def test(look: Look) -> Found:
        if (nothing := _no_page(look)) is not None:
            return nothing
        roots = _roots(look, check.within)
        if roots == []:
            return Found(False, f"no {check.within} on the page", counts=False)
        text = look.texts(roots, check.in_view)
        if pattern is None:
            return _contained(text, as_tuple(check.contains), check.count)
        return _matched(text, pattern, check)

    return test


def _contained(text: str, wanted: Sequence[str], count: int | None) -> Found:
    if count is not None:
        number = text.count(plain(wanted[0]))
        return Found(number == count, f"{number} times")
    at = 0
    for each in wanted:
        place = text.find(plain(each), at)
        if place < 0:
            order = " after what comes before it" if plain(each) in text else ""
            return Found(False, f'no "{plain(each)}"{order} in: {excerpt(text, 200)}')
        at = place + len(plain(each))
    return Found(True, f'"{plain(wanted[-1])}"')


def _matched(text: str, pattern: Pattern, check: TextCheck) -> Found:
    if not check.reads_numbers:
        if check.count is None:
            span = pattern.search(text)
            return Found(span is not None, excerpt(text[slice(*span)] if span else text, 200))
        number = sum(1 for _ in pattern.matches(text))
        return Found(number == check.count, f"{number} matches")
    written = [found.group(1) or "" for found in pattern.matches(text)]
    if not written:
        # Nothing to compare: this fails inverted as well.
        return Found(False, f"no match in: {excerpt(text, 200)}", counts=False)
    numbers = [parse_number(each) for each in written]
    listed = ", ".join(written[:20])
    if None in numbers:
        return Found(False, f"{excerpt(written[numbers.index(None)], 60)} is not a number", counts=False)
    values = [value for value in numbers if value is not None]
    low, high = (None if limit is None else Decimal(str(limit)) for limit in (check.min, check.max))
    within = all((low is None or value >= low) and (high is None or value <= high) for value in values)
    in_order = check.sorted is None or values == sorted(values, reverse=check.sorted == "descending")
    counted = check.count is None or check.count == len(values)
    return Found(within and in_order and counted, listed, ", ".join(map(str, values[:20])))


def _acted(check: ActionCheck, recording: Recording, looks: Sequence[Look], inverted: bool) -> _Decision:
    actions = list(recording.actions(looks))
    where = f" on {check.on}" if check.on else ""
    lines = as_tuple(check.line)
    step: int | None = None
    if lines:
        reached = 0
        for index, actual in actions:
            if reached < len(lines) and _line_key(actual) == _line_key(lines[reached]):
                reached, step = reached + 1, index
        hit = reached == len(lines)
        instead = f"no {lines[reached]}" if not hit else lines[-1]
    else:
        pattern = Pattern(check.pattern or "")
        step = next((index for index, actual in actions if _says(pattern, actual)), None)
        hit = step is not None
        instead = next((actual for index, actual in actions if index == step), "no such action")
    if not hit:
        close = difflib.get_close_matches(
            lines[0] if lines else check.pattern or "", [line for _, line in actions], n=3, cutoff=0.3
        )
        done = close or [line for _, line in actions[-3:]]
        instead += (
            f" among {len(actions)} actions{where}: " + "; ".join(done) if done else f", since none was executed{where}"
        )
    passed = hit != inverted
    return _Decision(passed, Found(hit, instead), step if passed and not inverted else None)


def _line_key(line: str) -> str:
    """A line to compare: white space collapsed, coordinates at its end left out.

    Only where nothing was typed: what a participant writes must not be trimmed into something else.
    """
    line = plain(line)
    parts = split_line(line)
    if parts is None or not parts[1].endswith(_POINTER_VERBS):
        return line
    head, _, tail = line.rpartition("(") if line.endswith(")") else line.rpartition("[")
    numbers = tail.rstrip(")]").split(",")
    if head and line[-1] in ")]" and len(numbers) == 2 and all(parse_number(each) is not None for each in numbers):
        return head.rstrip().removesuffix(" at").rstrip().removesuffix(":")
    return line


def _says(pattern: Pattern, line: str) -> bool:
    """Whether a line matches. A match that begins inside what was typed, chosen or visited is not one."""
    span = pattern.search(line)
    parts = split_line(line)
    if span is None or parts is None:
        return False
    return parts[2] is None or span[0] < len(line) - len(parts[2])


def _answered(check: AnswerCheck, recording: Recording, inverted: bool) -> _Decision:
    answer = recording.answer
    if answer is None or not answer.strip():
        return _Decision(False, Found(False, "no answer was given", counts=False), None)
    found = _answer_found(check, answer)
    passed = found.counts and found.passed != inverted
    step = recording.looks[-1].step.index if recording.looks and passed else None
    return _Decision(passed, found, step)


def _answer_found(check: AnswerCheck, answer: str) -> Found:
    said = excerpt(answer, 300)
    if check.contains is not None:
        return Found(plain(check.contains).casefold() in plain(answer).casefold(), said)
    if check.pattern is not None:
        return Found(Pattern(check.pattern).search(answer) is not None, said)
    kind = check.type or "string"
    has_expected = "expected" in check.model_fields_set
    expected = normalise(check.expected, kind) if has_expected else None
    try:
        actual = only_value(answer, kind, expected=expected)
    except NormaliseError as error:
        return Found(False, f"{error} in {said}", counts=False)
    if check.schema_ is not None and (problem := _schema_problem(check.schema_, actual)):
        return Found(False, f"{said}: {problem}", shown(actual))
    same = not has_expected or is_same(actual, expected, kind, ordered=check.ordered)
    return Found(same, said, string(shown(actual)) if kind == "string" else shown(actual))


def _schema_problem(schema: dict[str, Any], value: Any) -> str | None:
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

    try:
        error = best_match(_linear_validator()(schema).iter_errors(value))
    except RecursionError:
        return "nested too deeply"
    return None if error is None else clip(plain(str(error.message)), 200)


def _linear_validator() -> Any:
    """The schema validator with RE2 in place of `re`, which a stranger's pattern could hang."""
    # Late: few tasks have a schema, and importing the validator takes longer than judging the others.
    from jsonschema import Draft202012Validator, ValidationError, validators  # type: ignore[import-untyped]

    def pattern(_: Any, written: Any, value: Any, __: Any) -> Any:
        if isinstance(value, str) and Pattern(written).search(value) is None:
            yield ValidationError(f"{value[:60]!r} does not match {written!r}")

    return validators.extend(Draft202012Validator, {"pattern": pattern})
