"""Who wrote what a recording of version 2 shows, from what it says of elements with a reference. Pure."""

from typing import NamedTuple

from judge.evaluators.provenance import Authorship, origin_in, value_of_host
from judge.evaluators.rules_2.pieces import as_the_site_wrote
from shared.snapshot import FIELDS, Node, Snapshot

# The marks of nodes that are inside an editor, and of nodes whose content without a reference may be.
_INSIDE = frozenset({"true", "unknown"})
_MIXED = frozenset({"host", "text"})
_NONE: frozenset[str] = frozenset()


class _Around(NamedTuple):
    """What a node inherits: its document's origin, and whether all of it, or content without references, is typed."""

    origin: str | None
    is_inside: bool = False
    is_mixed: bool = False
    is_inserted: bool = False


def written_by(page: Snapshot, origin: str | None, *, is_mixed: bool) -> tuple[Authorship, ...]:
    """Who wrote each node. `origin` is the main document's; `is_mixed`: its content without references may be typed."""
    facts: list[Authorship] = []
    below: list[_Around] = []
    by_site: dict[int, Node] = {}
    for node in page.nodes:
        around = _Around(origin, is_mixed=is_mixed) if node.parent is None else below[node.parent]
        editable = node.states.get("editable")
        marks = frozenset(filter(None, editable.split("+"))) if editable else _NONE
        if "text" in marks and "site" in node.states:
            by_site |= as_the_site_wrote(page, node, node.states["site"])
        is_loose = node.ref is None and around.is_mixed
        known = None if around.is_inside else by_site.get(node.position)
        is_typed = is_loose and (known is None or not (known.role or known.text))
        is_inside = around.is_inside or is_typed or bool(marks & _INSIDE)
        is_inserted = around.is_inserted or "inserted" in node.states
        fact = Authorship(around.origin, node, node, node, is_inside, is_inserted, is_typed=is_inside)
        facts.append(_marked(fact, page, marks, known) if marks or known else fact)
        is_mixed_below = is_inside or is_loose or bool(marks & _MIXED)
        if is_inserted:
            below.append(_Around(around.origin, is_inside, is_mixed_below, is_inserted=True))
        elif not (is_inside or is_mixed_below or around.is_mixed) and node.role != "iframe":
            # It passes on what it inherits, as most nodes do.
            below.append(around)
        elif node.role == "iframe":
            below.append(_Around(origin_in(node), is_inside, is_mixed_below))
        else:
            below.append(_Around(around.origin, around.is_inside, is_mixed_below))
    return tuple(facts)


def _marked(fact: Authorship, page: Snapshot, marks: frozenset[str], original: Node | None) -> Authorship:
    """The facts of a node with marks, or of one that is known to be the site's (`original`: as it wrote it)."""
    node = fact.visible
    own, whole, as_shown = _own(node, marks, original), node, node
    if "foreign" in marks:
        whole, as_shown = own, _own(node, marks - {"host"}, None)
    elif fact.is_inside and original is not None and node.role in FIELDS:
        whole = node._replace(states={**node.states, "editable": "true"})
    return fact._replace(
        own=own,
        whole=whole,
        visible=as_shown,
        is_mixed=True,
        is_typed=fact.is_inside or "name" in marks,
        value=value_of_host(page, node) if "host" in marks else None,
    )


def _own(node: Node, marks: frozenset[str], original: Node | None) -> Node:
    if not marks:
        return original or node
    name = "" if "name" in marks else node.name
    # Without the state it is a field like any other, whose value does not belong to the page's text.
    states = {key: value for key, value in node.states.items() if key != "editable"}
    own = original.text if original else ""
    return node._replace(name=name, text=own if marks & _MIXED else node.text, states=states)
