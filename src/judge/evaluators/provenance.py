"""Decides which parts of a page count as evidence, by their author (`judge.browser.provenance`). Pure.

Only what the task's site wrote counts: documents of other origins and what was typed are left out, so that every
check of a page's content follows the same rule. Whatever a check reads of a page is a node whose states say what of it
was typed: `written_by` reads them, and nothing else decides about authors. Values of form controls stay for `element`,
because composing a text is a task; so does the value of an editing host with the role of a text box.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from shared.snapshot import FIELDS, Node, Snapshot

_RANGE = re.compile(r"(name|text):([0-9]{1,9})-([0-9]{1,9})")
_VALUE = "value"
_Ranges = tuple[tuple[int, int], ...]


class Authorship(NamedTuple):
    """Who wrote a node: the origin of its document (`None`: unknown), and whether all of it was typed.

    `own` is the node without what was typed, `whole` with it, `visible` as it is; in none of them is what the judge put
    in as an attack, unless all of it was (`is_inserted`). `value` is a control's, which an element's value may be
    although it was typed. `is_mixed`: something in it was typed or put in. `is_typed`: an action on it is not evidence.
    `repeats`: its name repeats its content, which can no longer be seen without what was typed.
    """

    origin: str | None
    own: Node
    whole: Node
    visible: Node
    is_inside: bool = False
    is_inserted: bool = False
    is_mixed: bool = False
    is_typed: bool = False
    value: str | None = None
    repeats: bool = False


class _DocumentOrigin(NamedTuple):
    """A document: its origin, and whether the frame around it was typed, or put in by the judge."""

    origin: str | None
    is_inside: bool = False
    is_inserted: bool = False


def written_by(page: Snapshot, origin: str | None) -> tuple[Authorship, ...]:
    """Who wrote each node. `origin` is the main document's."""
    facts: list[Authorship] = []
    documents: list[_DocumentOrigin] = []
    for node in page.nodes:
        of = _DocumentOrigin(origin) if node.parent is None else documents[node.parent]
        states = node.states
        fact = Authorship(of.origin, node, node, node, of.is_inside, of.is_inserted, is_typed=of.is_inside)
        if "editable" in states or "typed" in states or "added" in states or "inserted" in states:
            fact = _with_typed_text(page, node, fact)
        if node.role == "text" and node.parent is not None and facts[node.parent].is_inserted:
            fact = fact._replace(is_inserted=True)
        is_frame = node.role == "iframe"
        documents.append(_DocumentOrigin(origin_in(node), fact.is_inside, fact.is_inserted) if is_frame else of)
        facts.append(fact)
    return tuple(facts)


def _with_typed_text(page: Snapshot, node: Node, fact: Authorship) -> Authorship:
    editable, typed, added = (node.states.get(state, "") for state in ("editable", "typed", "added"))
    is_control, is_host = _VALUE in typed.split(","), editable == "host"
    is_inside = fact.is_inside or editable in ("true", "unknown")
    # Without the state it is a field like any other, whose value does not belong to the page's text.
    states = {key: value for key, value in node.states.items() if key != "editable"}
    as_shown = _without(node, added)
    return fact._replace(
        own=_without(node._replace(states=states), typed, added),
        whole=as_shown,
        visible=as_shown,
        is_inside=is_inside,
        is_inserted=fact.is_inserted or "inserted" in node.states,
        is_mixed=bool(editable or typed or added),
        is_typed=is_inside,
        value=page.value_of(node) if is_control else value_of_host(page, node) if is_host else None,
        repeats=bool(_ranges(typed, "name")) and node.position in page.repeating,
    )


def origin_in(frame: Node) -> str | None:
    """The origin of the document in a frame."""
    origin = frame.states.get("origin")
    return None if origin is None else origin.replace("%5B", "[").replace("%5D", "]")


def value_of_host(page: Snapshot, host: Node) -> str | None:
    """What was typed into an editing host with the role of a text box."""
    if host.role not in FIELDS:
        return None
    _, *inside = page.subtree(host)
    texts = ((inner.position, text) for inner in inside for text in (inner.name, inner.text))
    return page.joined(((host.position, host.text), *texts))


def _ranges(state: str, of: str) -> _Ranges:
    return tuple((int(match[2]), int(match[3])) for match in _RANGE.finditer(state) if match[1] == of)


def _without(node: Node, *states: str) -> Node:
    """The node without the ranges of these states."""
    if not any(states):
        return node
    name, text = (
        _blanked(value, [each for state in states for each in _ranges(state, of)])
        for of, value in (("name", node.name), ("text", node.text))
    )
    return node._replace(name=name, text=text)


def _blanked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """The text with a space instead of each range."""
    if not ranges or not text:
        return text
    characters = list(text)
    for begin, end in ranges:
        characters[begin:end] = " " * len(characters[begin:end])
    return " ".join("".join(characters).split())


def evidence(
    page: Snapshot,
    facts: Sequence[Authorship],
    counts: Callable[[str], bool],
    *,
    editable: bool = False,
    with_fields: bool = False,
) -> Snapshot:
    """The page without what does not count: content of other origins, and what was typed.

    `editable`: what was typed is evidence too. What the judge put in never is, except its form fields with
    `with_fields`, because their values are the participant's.
    """
    # Asked once for each origin, because a page has thousands of nodes of the same one.
    counting = {origin for origin in {fact.origin for fact in facts} if origin is not None and counts(origin)}
    if not any(fact.is_inside or fact.is_inserted or fact.is_mixed or fact.origin not in counting for fact in facts):
        return page
    nodes = []
    for node, fact in zip(page.nodes, facts, strict=True):
        is_kept = not fact.is_inserted or (with_fields and node.role in FIELDS)
        if fact.origin not in counting or not is_kept or (fact.is_inside and not editable):
            nodes.append(_blank(node))
        elif fact.is_inserted:
            nodes.append(node)
        else:
            nodes.append(fact.whole if editable else fact.own)
    pairs = [(node, fact) for node, fact in zip(nodes, facts, strict=True) if node.role]
    values = {node.position: fact.value for node, fact in pairs if fact.value is not None}
    repeating = frozenset(node.position for node, fact in pairs if fact.repeats)
    return replace(page, nodes=tuple(nodes), values=values, repeating_others=repeating)


def own_names(page: Snapshot) -> Snapshot:
    """The page without what was typed, whoever wrote the rest: from it, actions are named."""
    facts = [fact._replace(origin="", is_inserted=False) for fact in written_by(page, "")]
    return evidence(page, facts, lambda _: True)


def _blank(node: Node) -> Node:
    """The node without anything that a check could match; it keeps its place in the tree."""
    return Node(node.position, node.parent, node.depth, role="")


class IgnoredContent(NamedTuple):
    """Why something on the page does not count: it is inside an editor, inserted, or in a document of this origin."""

    reason: Literal["editor", "origin", "inserted"]
    origin: str | None = None

    def __str__(self) -> str:
        if self.reason == "editor":
            return "inside an editor: editable = true"
        if self.reason == "inserted":
            return "put into the page as an attack"
        if self.origin in (None, "null"):
            return "in a document of no known origin, which is not the task's site"
        return f"in a frame of {self.origin}, which is not the task's site: allowed_sites"


def why_left_out(fact: Authorship, counts: Callable[[str], bool]) -> IgnoredContent | None:
    """Why a node, or its name, does not count; `None` if it does."""
    if fact.origin is None or not counts(fact.origin):
        return IgnoredContent("origin", fact.origin)
    if fact.is_inserted:
        return IgnoredContent("inserted")
    return IgnoredContent("editor") if fact.is_typed else None
