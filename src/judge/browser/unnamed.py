"""Describes elements without a name as a person would: `button in row "sales.csv"`. Pure.

The text comes from other elements, so an action on such an element is evidence only if those are
(`ElementDescription.by`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from shared.snapshot import FIELDS, Node, Snapshot
from shared.text import clip

_ROWS = {"row": "row", "listitem": "item", "article": "article", "treeitem": "item", "option": "option"}
_CELLS = frozenset({"cell", "gridcell", "rowheader"})
_TABLES = frozenset({"table", "grid", "treegrid"})
_GROUPS = frozenset(
    {
        "alertdialog",
        "dialog",
        "figure",
        "form",
        "group",
        "list",
        "menu",
        "menubar",
        "navigation",
        "radiogroup",
        "region",
    }
    | {"search", "table", "tablist", "toolbar", "tree", "grid", "complementary", "tabpanel", "iframe"}
)
_LABELLED = FIELDS | {"checkbox", "radio", "switch"}
_TEXTS = frozenset({"generic", "paragraph", "strong", "emphasis", "term", "cell", "text", "heading", "LabelText"})
# Neighbours and rows are searched only this far, because a page may have tens of thousands of elements.
_REACH = 200
_MAX_CHARS = 40


class ElementDescription(NamedTuple):
    """What stands for a name, and the elements from which it comes."""

    text: str
    by: tuple[Node, ...] = ()


def description(page: Snapshot, node: Node) -> ElementDescription | None:
    """What distinguishes an element without a name from others; `None` if nothing does."""
    if node.placeholder:
        return ElementDescription(f'with placeholder "{_plain(node.placeholder)}"')
    return _in_row(page, node) or _beside(page, node) or _in_group(page, node) or _under_heading(page, node)


def _in_row(page: Snapshot, node: Node) -> ElementDescription | None:
    row = next((outer for outer in page.parents(node) if outer.role in _ROWS), None)
    if row is None:
        return None
    inside = frozenset(inner.position for inner in page.subtree(node))
    around = frozenset(outer.position for outer in page.parents(node))
    naming = next(_naming(page, row, inside | around), None)
    column = _column(page, row, node)
    words = [f'in {_ROWS[row.role]} "{_plain(page.name_of(naming))}"'] if naming else []
    words += [f'{"and" if words else "in"} column "{_plain(page.name_of(column))}"'] if column else []
    return ElementDescription(" ".join(words), tuple(filter(None, (naming, column)))) if words else None


def _naming(page: Snapshot, around: Node, without: frozenset[int]) -> Iterator[Node]:
    """The elements inside another that a name can come from, in order."""
    end = around.position + 1 + _REACH
    for inner in page.nodes[around.position + 1 : end]:
        if inner.depth <= around.depth:
            return
        if inner.ref and inner.position not in without and inner.role not in _LABELLED and _plain(page.name_of(inner)):
            yield inner


def _column(page: Snapshot, row: Node, node: Node) -> Node | None:
    """The header of the column that a cell without a name, or an element in one, is in."""
    cells = [each for each in page.subtree(row) if each.parent == row.position and each.role in _CELLS]
    inside = {node.position, *(outer.position for outer in page.parents(node))}
    place = next((at for at, cell in enumerate(cells) if cell.position in inside), None)
    table = next((outer for outer in page.parents(row) if outer.role in _TABLES), None)
    if place is None or table is None:
        return None
    heads = [each for each in page.nodes[table.position : table.position + _REACH] if each.role == "columnheader"]
    rows = {each.parent for each in heads}
    is_plain = len(rows) == 1 and len(heads) == len(cells)
    return heads[place] if is_plain and heads[place].ref and page.name_of(heads[place]) else None


def _beside(page: Snapshot, node: Node) -> ElementDescription | None:
    """The text just before a field."""
    if node.role not in _LABELLED:
        return None
    for inner in (node, *page.parents(node)):
        before = [
            each
            for each in page.nodes[max(0, inner.position - _REACH) : inner.position]
            if each.parent == inner.parent and each.depth == inner.depth
        ]
        if not before:
            continue
        label = before[-1]
        is_text = label.ref and label.role in _TEXTS and "cursor" not in label.states and _plain(page.name_of(label))
        return ElementDescription(f'beside "{_plain(page.name_of(label))}"', (label,)) if is_text else None
    return None


def _in_group(page: Snapshot, node: Node) -> ElementDescription | None:
    group = next((outer for outer in page.parents(node) if outer.role in _GROUPS and outer.name and outer.ref), None)
    return ElementDescription(f'in {group.role} "{_plain(group.name)}"', (group,)) if group else None


def _under_heading(page: Snapshot, node: Node) -> ElementDescription | None:
    before = page.nodes[: node.position]
    heading = next((each for each in reversed(before) if each.role == "heading" and each.ref), None)
    name = _plain(page.name_of(heading)) if heading else ""
    return ElementDescription(f'under heading "{name}"', (heading,)) if heading and name else None


def _plain(text: str) -> str:
    return clip(" ".join(text.replace('"', "'").split()), _MAX_CHARS)
