"""Decides which content without a reference the site wrote, next to an editor whose text is shown in the same element.
Pure.

A state of the element around says so (`[site=0-12,20-31,heading:20-31]`): ranges of its content that the site wrote,
and whole elements of the site with their roles. Only those may count as elements: a typed element cannot have the same
role and text as one of them unless the site shows it too.
"""

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from shared.snapshot import Node, Snapshot

_UNSEEN = re.compile(r"[\s\u200b\u00ad]+")
_RANGE = re.compile(r"(?:([a-z]{1,30}):)?([0-9]{1,9})-([0-9]{1,9})")


class _TextPiece(NamedTuple):
    """A node's own text, or its name if it has no other content; `begin` and `end` leave white space out."""

    node: Node
    text: str
    begin: int
    end: int


class _Region:
    """The content without a reference in one element, by place."""

    def __init__(self, page: Snapshot, around: Node) -> None:
        self.pieces: list[_TextPiece] = []
        # The ranges of the nodes without a reference, by position.
        self.ranges: dict[int, tuple[int, int]] = {}
        length = 0
        open_nodes: list[Node] = []
        for node, own in _own_texts(page, around):
            self._close(open_nodes, node, length)
            begin, length = length, length + len(_plain(own))
            self.ranges[node.position] = (begin, length)
            if own:
                self.pieces.append(_TextPiece(node, own, begin, length))
            open_nodes.append(node)
        self._close(open_nodes, around, length)

    def _close(self, open_nodes: list[Node], following: Node, length: int) -> None:
        while open_nodes and open_nodes[-1].depth >= following.depth:
            node = open_nodes.pop()
            self.ranges[node.position] = (self.ranges[node.position][0], length)

    @property
    def text(self) -> str:
        """All of it, without white space."""
        return "".join(_plain(piece.text) for piece in self.pieces)


def _own_texts(page: Snapshot, around: Node) -> Iterator[tuple[Node, str]]:
    yield around, around.text
    inside = list(page.subtree(around))
    deepest: int | None = None
    for node, following in itertools.zip_longest(inside[1:], inside[2:]):
        if deepest is not None and node.depth > deepest:
            continue
        deepest = node.depth if node.ref is not None else None
        if deepest is None:
            is_leaf = following is None or following.depth <= node.depth
            yield node, node.text or (node.name if is_leaf else "")


def _plain(text: str) -> str:
    """The text without white space and invisible characters."""
    return _UNSEEN.sub("", text)


def as_the_site_wrote(page: Snapshot, around: Node, state: str) -> dict[int, Node]:
    """The element and its content without references, by position, reduced to what the site wrote, which `state` says.

    Nodes that are not known to be the site's elements lose role and name.
    """
    region = _Region(page, around)
    ranges = [match for each in state.split(",") if (match := _RANGE.fullmatch(each))]
    texts = [(int(match[2]), int(match[3])) for match in ranges if not match[1]]
    is_sites = bytearray(len(region.text))
    for begin, end in texts:
        is_sites[begin:end] = b"\1" * len(is_sites[begin:end])
    elements = {(match[1], int(match[2]), int(match[3])) for match in ranges if match[1]}
    texts_by_position = {piece.node.position: _site_text(piece, is_sites) for piece in region.pieces}
    facts_by_position = {around.position: around._replace(text=texts_by_position.get(around.position, ""))}
    for position, (begin, end) in region.ranges.items():
        node, text = page.nodes[position], texts_by_position.get(position, "")
        if node is around:
            continue
        if (node.role, begin, end) in elements:
            name = node.name if _plain(node.name) == region.text[begin:end] else ""
            facts_by_position[position] = node._replace(name=name, text=text if node.text else "")
        else:
            facts_by_position[position] = Node(position, node.parent, node.depth, role="", text=text)
    return facts_by_position


def _site_text(piece: _TextPiece, is_sites: bytes | bytearray) -> str:
    """The characters that the site wrote; a space stands for each of the others."""
    pieces: list[str] = []
    at = piece.begin
    for char in piece.text:
        is_seen = _UNSEEN.fullmatch(char) is None
        pieces.append(char if not is_seen or is_sites[at] else " ")
        at += is_seen
    return " ".join("".join(pieces).split())
