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


def find_element(snapshot: Snapshot, wanted: ElementQuery) -> Node | None:
    """The element with a reference that a script means, if it is there."""
    return _chosen(elements_for(snapshot, wanted), wanted)


def elements_for(snapshot: Snapshot, wanted: ElementQuery) -> list[Node]:
    """The elements with a reference that `nth` of a script chooses from.

    By the exact name, otherwise by a case-insensitive part of it. An element without a name of its own is found by the
    text inside it.
    """
    # The judge accepts an element only by its reference.
    nodes = [node for node in _nodes_in(snapshot, wanted.within) if node.role == wanted.role and node.ref is not None]
    return _named(snapshot, wanted, nodes)


def written_name(snapshot: Snapshot, node: Node) -> str:
    """The whole name by which a script finds an element."""
    return plain(name_as_seen(node.name or snapshot.text_of(node)))


def places_for(snapshot: Snapshot, wanted: ElementQuery) -> list[Node]:
    """The elements, with or without a reference, that `nth` of a `within` chooses from."""
    return _named(snapshot, wanted, [node for node in _nodes_in(snapshot, wanted.within) if node.role == wanted.role])


def _nodes_in(snapshot: Snapshot, around: ElementQuery | None) -> Sequence[Node]:
    """The nodes inside that element, which needs no reference; every node without one."""
    if around is None:
        return snapshot.nodes
    outer = _chosen(places_for(snapshot, around), around)
    return [] if outer is None else list(snapshot.subtree(outer))[1:]


def _named(snapshot: Snapshot, wanted: ElementQuery, nodes: list[Node]) -> list[Node]:
    if wanted.name is None:
        return nodes
    name = plain(name_as_seen(wanted.name))
    named = [(node, written_name(snapshot, node)) for node in nodes]
    found = [node for node, own in named if own == name]
    found = found or [node for node, own in named if name.casefold() in own.casefold()]
    # Unlike the judge, which knows which pieces form a word, this puts a space between all of them.
    return found or [node for node, own in named if _squeezed(name) in _squeezed(own)]


def _chosen(nodes: Sequence[Node], wanted: ElementQuery) -> Node | None:
    return nodes[wanted.nth] if -len(nodes) <= wanted.nth < len(nodes) else None


def _squeezed(text: str) -> str:
    return "".join(text.casefold().split())
