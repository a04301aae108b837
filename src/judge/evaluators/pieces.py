"""Decides which content without a reference the site wrote, next to an editor whose text is shown in the same element.
Pure.

The snapshot does not say where such content comes from. `judge.browser.provenance` knows the drawn text of the document
in order, and who wrote each piece. The two are aligned: if they are the same text, apart from white space, each
character's position gives its author. If they differ (generated content, labels, alternative texts), none of it counts
as the site's.

The result is a state of the element around (`[site=0-12,20-31,heading:20-31]`): ranges of its content that the site
wrote, and whole elements of the site with their roles. Only those may count as elements: a typed element cannot have
the same role and text as one of them unless the site shows it too.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.snapshot import Node, Snapshot

_UNSEEN = re.compile(r"[\s\u200b\u00ad]+")
_RANGE = re.compile(r"(?:([a-z]{1,30}):)?([0-9]{1,9})-([0-9]{1,9})")
_ROLE = re.compile("[a-z]{1,30}")
_MAX_RANGES = 2_000
# All of it was typed.
_NOTHING = "0-0"


class _Piece(NamedTuple):
    """A node's own text, or its name if it has no other content; `begin` and `end` leave white space out."""

    node: Node
    text: str
    begin: int
    end: int


class _Region:
    """The content without a reference in one element, by place."""

    def __init__(self, page: Snapshot, around: Node) -> None:
        self.pieces: list[_Piece] = []
        # The ranges of the nodes without a reference, by position.
        self.ranges: dict[int, tuple[int, int]] = {}
        length = 0
        open_nodes: list[Node] = []
        for node, own in _own_texts(page, around):
            self._close(open_nodes, node, length)
            begin, length = length, length + len(_plain(own))
            self.ranges[node.position] = (begin, length)
            if own:
                self.pieces.append(_Piece(node, own, begin, length))
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


@dataclass
class _Told:
    """What the browser reported about the content of one element."""

    texts: list[str] = field(default_factory=list)
    length: int = 0
    # The ranges that were typed, and those of the site's elements with their roles.
    typed: list[tuple[int, int]] = field(default_factory=list)
    site: list[tuple[int, int]] = field(default_factory=list)
    elements: list[tuple[str, int, int]] = field(default_factory=list)

    def add(self, kind: str, text: str) -> None:
        begin, self.length = self.length, self.length + len(text)
        self.texts.append(text)
        (self.site if kind == "site" else self.typed).append((begin, self.length))

    def state(self) -> str:
        whole = [
            f"{role}:{begin}-{end}"
            for role, begin, end in self.elements
            if not any(first < end and last > begin for first, last in self.typed)
        ]
        found = [*(f"{begin}-{end}" for begin, end in _merged(self.site)), *whole]
        if len(found) > _MAX_RANGES:
            return ""
        return ",".join(found) or _NOTHING


def _merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last: tuple[int, int] | None = None
    for begin, end in ranges:
        if last is not None and last[1] == begin:
            last = (last[0], end)
        else:
            if last is not None:
                yield last
            last = (begin, end)
    if last is not None:
        yield last


def written_by_site(page: Snapshot, pieces: Sequence[tuple[str, str]], mixed: Collection[str]) -> dict[str, str]:
    """The state of each element in `mixed` for which the author of its content without references is known.

    `pieces` are those of one document (`provenance.js`).
    """
    told = _told(pieces, {node.ref for node in page.nodes if node.ref})
    found = {}
    for ref in mixed:
        node, content = page.by_ref(ref), told.get(ref)
        if node is None or content is None:
            continue
        if _Region(page, node).text == "".join(content.texts) and (state := content.state()):
            found[ref] = state
    return found


def _told(pieces: Sequence[tuple[str, str]], shown: Collection[str]) -> Mapping[str, _Told]:
    found: dict[str, _Told] = {}
    # The content that is being read, with the role and the place of the element that was opened.
    open_elements: list[tuple[_Told, str, int]] = [(_Told(), "", 0)]
    for kind, value in pieces:
        content = open_elements[-1][0]
        if kind == "in":
            # An element that the snapshot does not show is not a boundary.
            inner = found.setdefault(value, _Told()) if value in shown else content
            open_elements.append((inner, "", 0))
        elif kind == "as":
            open_elements.append((content, value if _ROLE.fullmatch(value) else "", content.length))
        elif kind == "out":
            _, role, begin = open_elements.pop() if len(open_elements) > 1 else open_elements[0]
            if role and content.length > begin:
                content.elements.append((role, begin, content.length))
        else:
            content.add(kind, _plain(value))
    return found


def as_the_site_wrote(page: Snapshot, around: Node, state: str) -> dict[int, Node]:
    """The element and its content without references, by position, reduced to what the site wrote. `state` is that of
    `written_by_site`. Nodes that are not known to be the site's elements lose role and name.
    """
    region = _Region(page, around)
    ranges = [match for each in state.split(",") if (match := _RANGE.fullmatch(each))]
    texts = [(int(match[2]), int(match[3])) for match in ranges if not match[1]]
    is_sites = bytearray(len(region.text))
    for begin, end in texts:
        is_sites[begin:end] = b"\1" * len(is_sites[begin:end])
    elements = {(match[1], int(match[2]), int(match[3])) for match in ranges if match[1]}
    kept = {piece.node.position: _kept(piece, is_sites) for piece in region.pieces}
    found = {around.position: around._replace(text=kept.get(around.position, ""))}
    for position, (begin, end) in region.ranges.items():
        node, text = page.nodes[position], kept.get(position, "")
        if node is around:
            continue
        if (node.role, begin, end) in elements:
            name = node.name if _plain(node.name) == region.text[begin:end] else ""
            found[position] = node._replace(name=name, text=text if node.text else "")
        else:
            found[position] = Node(position, node.parent, node.depth, role="", text=text)
    return found


def _kept(piece: _Piece, is_sites: bytes | bytearray) -> str:
    """The characters that the site wrote; a space stands for each of the others."""
    kept: list[str] = []
    at = piece.begin
    for char in piece.text:
        is_seen = _UNSEEN.fullmatch(char) is None
        kept.append(char if not is_seen or is_sites[at] else " ")
        at += is_seen
    return " ".join("".join(kept).split())
