"""Finds the elements of a page that a check describes."""

from collections.abc import Sequence

from judge.records.elements import Element
from judge.records.findings import NodeFound
from shared.snapshot import Node, Snapshot
from shared.text import plain


def elements_like(page: Snapshot, element: Element) -> list[Node]:
    """The elements of a page that an `element` check would find, regardless of their author."""
    return fitting(page, element, range(len(page.nodes)))


def fitting(page: Snapshot, element: Element, places: Sequence[int]) -> list[Node]:
    """The nodes that match the element. Of nested ones that only repeat each other's content, the innermost."""
    nodes = [page.nodes[at] for at in places if fits(page, page.nodes[at], element)]
    if element.role is not None:
        return nodes
    outer = {node.parent for node in nodes if node.parent is not None}
    return [node for node in nodes if node.name or node.position not in outer]


def fits(page: Snapshot, node: Node, element: Element) -> bool:
    """Whether a node matches the element; both as people see them, unless the page is taken verbatim."""
    if not page.verbatim:
        element = element.folded if page.is_folded else element.as_seen
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


def node_found(page: Snapshot, node: Node) -> NodeFound:
    """A node as a finding."""
    return NodeFound.of(page, node, _values_of(page, node)[0])
