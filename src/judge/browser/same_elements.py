"""Whether an element that a participant saw is still the same after its own actions: by role, name and place. Pure.

Other elements may have come or gone meanwhile, and a page may have put other content into the same element, such as the
next row of a table into the first one after that was deleted. So the texts around an element tell which of several
equal ones it is.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judge.browser import points
from judge.records.tools import TARGETS
from shared.points import element_at
from shared.snapshot import FIELDS, Node, Snapshot

# Roles around an element whose names are not made of what they contain, which may change.
_NAMED_PLACES = frozenset(
    "alertdialog complementary dialog form group iframe list main menu navigation region search table tabpanel toolbar"
    " tree".split()
)
_MANY = 1_000
_WORD = re.compile(r"[^\W\d_]+")


def same_element(old: Snapshot, ref: str, now: Snapshot) -> str | None:
    """The reference in a newer snapshot of the element `ref` of `old`; `None` if it is gone, or may be another one."""
    node = old.by_ref(ref)
    if node is None:
        return None
    name = old.name_of(node)
    before, after = (_equals(page, node.role, name) for page in (old, now))
    place = _place_of(old, node)
    other = _counterpart(old, node, before, now, after)
    if other is None or _place_of(now, other) != place:
        return None
    # Its element is still there, and is another one.
    is_other = other.ref != ref and any(each.ref == ref for each in after)
    return None if is_other else other.ref


def same_params(old: Snapshot, params: Mapping[str, Any], now: Snapshot) -> dict[str, Any] | None:
    """The parameters of an action with the references of a newer snapshot; `None` if an element is not the same.

    What is at a point is the same if it has the same role and name.
    """
    for point in points.points_of(params):
        there = [element_at(page, point) for page in (old, now)]
        if len({node and (node.role, page.name_of(node)) for node, page in zip(there, (old, now), strict=True)}) > 1:
            return None
    new_params: dict[str, Any] = dict(params)
    for key in filter(new_params.__contains__, TARGETS):
        if (ref := same_element(old, new_params[key], now)) is None:
            return None
        new_params[key] = ref
    if "fields" in new_params:
        fields = [same_params(old, each, now) for each in new_params["fields"]]
        if None in fields:
            return None
        new_params["fields"] = fields
    return new_params


def _equals(page: Snapshot, role: str, name: str) -> list[Node]:
    return [node for node in page.nodes if node.role == role and node.ref and page.name_of(node) == name]


def _place_of(page: Snapshot, node: Node) -> list[tuple[str, str]]:
    """The elements around this one."""
    around = (outer for outer in page.parents(node) if outer.role != "generic")
    return [(outer.role, outer.name if outer.role in _NAMED_PLACES else "") for outer in around]


def _counterpart(
    old: Snapshot, node: Node, before: Sequence[Node], now: Snapshot, after: Sequence[Node]
) -> Node | None:
    """Of the equal elements in the newer snapshot, the one with the same texts around it."""
    if len(before) <= 1 and len(after) <= 1:
        return after[0] if after else None
    levels = min(*_levels(old, before), *_levels(now, after), _MANY)
    texts = [_text_around(old, each, levels) for each in before]
    new_texts = [_text_around(now, each, levels) for each in after]
    place = before.index(node)
    if texts[place] in new_texts:
        same_place = _at_same_place(texts, place, new_texts)
        return None if same_place is None else after[same_place]
    # Its texts have changed: without their numbers, they must tell it from all others.
    words, new_words = ([" ".join(_WORD.findall(text)) for text in each] for each in (texts, new_texts))
    is_one = words.count(words[place]) == new_words.count(words[place]) == 1
    return after[new_words.index(words[place])] if is_one else None


def _at_same_place(texts: Sequence[str], place: int, new_texts: Sequence[str]) -> int | None:
    """The index of the same text, if it is there as often; of equal ones, the one as far down."""
    text = texts[place]
    old, new = ([at for at, each in enumerate(page) if each == text] for page in (texts, new_texts))
    return new[old.index(place)] if len(old) == len(new) else None


def _levels(page: Snapshot, equals: Sequence[Node]) -> list[int]:
    """For each of several equal elements, how many elements around it contain no other one of them."""
    levels = []
    for node in equals:
        others = {each.position for each in equals if each is not node}
        rows = 0
        for outer in page.parents(node) if others else ():
            if any(inner.position in others for inner in page.subtree(outer)):
                break
            rows += 1
        if others:
            levels.append(rows)
    return levels


def _text_around(page: Snapshot, node: Node, levels: int) -> str:
    """The texts in its row, or beside it where it has none; without what fields contain."""
    row = node
    for outer, _ in zip(page.parents(node), range(levels), strict=False):
        row = outer
    rows = [row]
    if levels == 0:
        siblings = [each for each in page.nodes if each.parent == node.parent]
        at = siblings.index(node)
        rows = siblings[max(0, at - 1) : at + 2]
    return page.joined(
        (inner.position, part)
        for each in rows
        for inner in page.subtree(each)
        for part in ((inner.name,) if inner.role in FIELDS else _parts(page, inner))
    )


def _parts(page: Snapshot, node: Node) -> tuple[str, ...]:
    is_value = node.parent is not None and page.nodes[node.parent].role in FIELDS
    return () if is_value else (node.name, node.text)
