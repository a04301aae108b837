"""`element` checks: an element on a page, or several in an order."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import model_validator

from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import Look, TrajectoryEvidence
from judge.evaluators.lookalikes import with_difference
from judge.evaluators.looks import over_content
from judge.evaluators.matching import fits, fitting, node_found
from judge.evaluators.nearest import CONTROLS, is_similar
from judge.evaluators.unmatchable import unmatchable
from judge.records.checks import ElementText, OneOrMore, ShownCheck, as_tuple, plain_checks
from judge.records.elements import Element, parse_element
from judge.records.findings import Fact, NodesFound
from shared.fields import Invalid
from shared.snapshot import Node, Snapshot

# The remedy for the parts of an element as keys of their own.
_ONE_LINE = """write role and name as one line of a snapshot: element = 'combobox "Kind"'"""
_MAX_SHOWN = 5
_MAX_COMPARED = 500
# Roles in whose name or text pages often repeat typed text: results for "…", you searched for …
_REFLECTING = ("heading", "paragraph", "status", "alert", "generic", "text", "listitem", "cell", "link")


class ElementCheck(ShownCheck):
    """The page shows `element`; for a list, all of them in this order."""

    kind: Literal["element"]
    element: OneOrMore[ElementText]

    @model_validator(mode="before")
    @classmethod
    def _is_one_line(cls, data: Any) -> Any:
        parts = [key for key in ("role", "name", "text", "state", "value") if isinstance(data, Mapping) and key in data]
        if parts:
            raise Invalid("unknown key", _ONE_LINE, key=parts[0], shows_value=False)
        return data

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.count is not None and isinstance(self.element, tuple):
            raise Invalid("a list of elements cannot be counted", "write one check for each", key="count")
        return self

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements, parsed."""
        return tuple(map(parse_element, as_tuple(self.element)))

    def wrong_filter(self, found: str, facts: Sequence[Fact], last: str, site: Any) -> str | None:
        """The page shows controls of that kind in another state."""
        elements = (element for element in self.elements if element.states or element.value is not None)
        roles = [element.role for element in elements if element.role in CONTROLS]
        there = [node.role for each in facts if isinstance(each, NodesFound) for node in each.nodes]
        is_there = not set(roles).isdisjoint(there)
        return f"{' and '.join(as_tuple(self.element))}: found {found}" if is_there else None


def decide(check: ElementCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the page shows the element, or all of them in this order."""
    # Parsed once for all looks.
    elements = check.elements

    def compare(look: Look, page: Snapshot, roots: Sequence[Node] | None, explains: bool) -> ComparisonResult:
        return _elements_shown(check, elements, look, page, roots, explains)

    return over_content(check, recording, inverted, compare)


def _elements_shown(
    check: ElementCheck,
    elements: Sequence[Element],
    look: Look,
    page: Snapshot,
    roots: Sequence[Node] | None,
    explains: bool,
) -> ComparisonResult:
    places: Sequence[int] = range(len(page.nodes))
    if roots is not None:
        places = sorted({node.position for root in roots for node in page.subtree(root)} - {r.position for r in roots})
    matching = [fitting(page, element, places) for element in elements]
    if check.in_view:
        matching = [[node for node in nodes if look.is_in_view(node)] for nodes in matching]
    if check.count is not None:
        return ComparisonResult(len(matching[0]) == check.count, f"{len(matching[0])} of them")
    at = -1
    for element, nodes in zip(elements, matching, strict=True):
        following = next((node.position for node in nodes if node.position > at), None)
        if following is None and not explains:
            return ComparisonResult(False, "")
        if following is None:
            earlier = ComparisonResult(False, "it comes earlier on the page")
            result = earlier if nodes else _instead(page, element, places, check.in_view)
            return result._replace(text=f"no {element.notation}: {result.text}") if len(elements) > 1 else result
        at = following
    return ComparisonResult.of(True, NodesFound(nodes=tuple(node_found(page, nodes[0]) for nodes in matching)))


def _instead(page: Snapshot, element: Element, places: Sequence[int], in_view: bool) -> ComparisonResult:
    """The elements closest to the expected one."""
    if in_view and fitting(page, element, places):
        return ComparisonResult(False, "it is not in view")
    nodes = [page.nodes[at] for at in places if element.role in (None, page.nodes[at].role)]
    named_nodes = (node_found(page, node) for node in nodes if page.name_of(node) or element.role)
    nodes_by_text = {str(node): node for node in named_nodes}
    # `difflib` is slow, and a page may have thousands of elements.
    close = difflib.get_close_matches(element.notation, list(nodes_by_text)[:_MAX_COMPARED], n=_MAX_SHOWN, cutoff=0.3)
    roles_shown = close or list(nodes_by_text)[:_MAX_SHOWN]
    result = ComparisonResult.of(
        False, NodesFound(nodes=tuple(nodes_by_text[words] for words in roles_shown), role=element.role)
    )
    names = (page.name_of(node) for node in nodes[:_MAX_COMPARED])
    expected_name = (element if page.verbatim else element.as_seen).name or ""
    return result._replace(text=with_difference(result.text, expected_name, names))


def near(check: ElementCheck, recording: TrajectoryEvidence) -> int | None:
    """The last action beside the expected element, or on it with another result.

    Elements that another check of the task expects are not wrong.
    """
    elements = [_bare(element) for element in check.elements if element.role in CONTROLS]
    others = [
        _bare(element)
        for other in plain_checks(recording.checks)
        if isinstance(other, ElementCheck) and other is not check
        for element in other.elements
        if element.name is not None or element.pattern is not None
    ]
    within = parse_element(check.within) if check.within else None
    nearest = None
    for look in recording.looks:
        page, node = _acted_on(look, editable=check.editable)
        if page is None or node is None or any(fits(page, node, other) for other in others):
            continue
        if within is not None and not any(fits(page, parent, within) for parent in page.parents(node)):
            continue
        if any(_is_near(page, node, element, is_inside=within is not None) for element in elements):
            nearest = look.step.index
    return nearest


def _bare(element: Element) -> Element:
    return replace(element, states=(), value=None)


def _acted_on(look: Look, *, editable: bool) -> tuple[Snapshot | None, Node | None]:
    """The part of the page that counts, and the element of the look's executed action if that counts."""
    action, outcome = look.step.action, look.step.outcome
    if action is None or outcome is None or not outcome.ok or look.snapshot is None:
        return None, None
    refs = outcome.refs or (action.params.get("target"), action.params.get("ref"))
    ref = next((ref for ref in refs if isinstance(ref, str) and ref), None)
    page = look.evidence(editable=editable)
    return page, page.by_ref(ref) if ref else None


def _is_near(page: Snapshot, node: Node, element: Element, *, is_inside: bool) -> bool:
    if fits(page, node, element):
        return True
    if node.role != element.role:
        return False
    if is_inside or (element.name is not None and is_similar(page.name_of(node), element.name)):
        return True
    # Beside the expected element, as in a group of radio buttons.
    beside = (page.nodes[at] for at in range(len(page.nodes)) if page.nodes[at].parent == node.parent)
    return any(fits(page, each, element) for each in beside)


def warnings(check: ElementCheck) -> Iterator[str]:
    """Elements that never match, and those that a page could show merely by repeating typed text."""
    elements = check.elements
    yield from unmatchable(elements if check.within is None else (*elements, parse_element(check.within)))
    if check.inverted or check.on is not None or check.within is not None:
        return
    for element in elements:
        if element.role in (None, *_REFLECTING) and element.pattern is not None:
            yield f"a page that repeats typed text could show {element.notation}: add within or on"


KIND = CheckKind(ElementCheck, decide, weighs_answers=True, near=near, warnings=warnings)
