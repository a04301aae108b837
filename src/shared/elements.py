"""Elements of a snapshot by role and name, as replay scripts write them. Pure."""

from collections.abc import Sequence

from shared.fields import Table
from shared.seen import name_as_seen
from shared.snapshot import Node, Snapshot
from shared.text import plain


class ElementQuery(Table):
    """An element by role and name, anywhere or within another one."""

    role: str
    name: str | None = None
    nth: int = 0
    within: "ElementQuery | None" = None

    def __str__(self) -> str:
        number = f" number {self.nth + 1}" if self.nth > 0 else ""
        own = f'{self.role} "{self.name}"{number}' if self.name is not None else f"{self.role}{number}"
        return own if self.within is None else f"{own} in {self.within}"


def find_element(snapshot: Snapshot, query: ElementQuery) -> Node | None:
    """The element with a reference that a script means, if it is there."""
    return _nth(elements_for(snapshot, query), query)


def elements_for(snapshot: Snapshot, query: ElementQuery) -> list[Node]:
    """The elements with a reference that `nth` of a script chooses from.

    By the exact name, otherwise by a case-insensitive part of it. An element without a name is found by the
    text inside it.
    """
    # The judge accepts an element only by its reference.
    nodes = [node for node in _nodes_in(snapshot, query.within) if node.role == query.role and node.ref is not None]
    return _with_name(snapshot, query, nodes)


def written_name(snapshot: Snapshot, node: Node) -> str:
    """The whole name by which a script finds an element."""
    return plain(name_as_seen(node.name or snapshot.text_of(node)))


def places_for(snapshot: Snapshot, query: ElementQuery) -> list[Node]:
    """The elements, with or without a reference, that `nth` of a `within` chooses from."""
    return _with_name(snapshot, query, [node for node in _nodes_in(snapshot, query.within) if node.role == query.role])


def _nodes_in(snapshot: Snapshot, around: ElementQuery | None) -> Sequence[Node]:
    """The nodes inside that element, which needs no reference; every node without one."""
    if around is None:
        return snapshot.nodes
    outer = _nth(places_for(snapshot, around), around)
    return [] if outer is None else list(snapshot.subtree(outer))[1:]


def _with_name(snapshot: Snapshot, query: ElementQuery, nodes: list[Node]) -> list[Node]:
    if query.name is None:
        return nodes
    name = plain(name_as_seen(query.name))
    nodes_with_names = [(node, written_name(snapshot, node)) for node in nodes]
    nodes_matched = [node for node, own in nodes_with_names if own == name]
    nodes_matched = nodes_matched or [node for node, own in nodes_with_names if name.casefold() in own.casefold()]
    # Unlike the judge, which knows which pieces form a word, this puts a space between all of them.
    return nodes_matched or [node for node, own in nodes_with_names if _squeezed(name) in _squeezed(own)]


def _nth(nodes: Sequence[Node], query: ElementQuery) -> Node | None:
    return nodes[query.nth] if -len(nodes) <= query.nth < len(nodes) else None


def _squeezed(text: str) -> str:
    return "".join(text.casefold().split())
