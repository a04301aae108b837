"""Playwright's accessibility snapshot: parsed into nodes, cut to size, stripped of bounding boxes. Pure.

The judge reads it for checks and action lines, participants to find elements.

The text is YAML-like, one node per line, two spaces per level; the reference is Playwright's renderer
(`packages/isomorphic/ariaSnapshotRenderer.ts` and `yaml.ts`, 1.65)::

    - 'heading "a: b" [level=1] [ref=e2]'
    - textbox "Name" [active] [ref=e3]:
      - /placeholder: Your name
      - text: abc

This is a line parser and not a YAML library because it has to be linear in the text (megabytes in about a second) and
must not raise on any text. Unknown lines are ignored. Only a line feed ends a line: names may contain other separators.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote

from shared.scalars import YAML_QUOTED, scalar
from shared.seen import as_seen, folded, name_as_seen, without_icons
from shared.text import counted, without_surrogates

# An element's reference; `f2` says that it is in a frame.
REF = re.compile(r"(?:f[0-9]{1,9})?e[0-9]{1,9}")

# Possessive quantifiers (`*+`) throughout: no text can make these patterns backtrack. Before 3.11.5, Python goes on
# where the last repetition of such a group failed, not where it began, unless the group has a last alternative that
# never matches: `|(?!)`.
_HEAD = re.compile(
    r"""(?P<role>[A-Za-z][A-Za-z0-9_-]*+)
        (?:[ ](?:(?P<name>"(?:[^"\\]|\\.)*+")|/(?P<regex>(?:[^/\\]|\\.)*+)/))?
        (?P<states>(?:[ ]\[[^\]]*+\]|(?!))*+)
        (?:(?P<colon>:)(?:[ ](?P<value>.*+))?)?""",
    re.VERBOSE | re.DOTALL,
)
_PROPERTY = re.compile(r"/(url|placeholder): (.*+)", re.DOTALL)
_STATE = re.compile(r"\[([a-z-]+)(?:=([^\]]*))?\]")
_LEVEL = re.compile("[0-9]{1,4}")
_BOX = re.compile(",".join([r"(-?[0-9]{1,20}(?:\.[0-9]{1,20})?)"] * 4))
_NAME = r"""(?:[ ](?:"(?:[^"\\\n]|\\.)*+"|/(?:[^/\\\n]|\\.)*+/)|(?!))?+"""
# The line of an element or a text. `head` is what stands before its value: it ends with the states. Names are quoted,
# so text from a page cannot be mistaken for a state.
ANY_LINE = re.compile(
    rf"""^(?P<indent>[ ]*+)-[ ]'?
          (?P<head>(?P<role>[A-Za-z][A-Za-z0-9_-]*+){_NAME}(?P<states>(?:[ ]\[[^\]\n]*+\]|(?!))*+))'?""",
    re.VERBOSE | re.MULTILINE,
)
# The states that the judge adds (`judge.browser.provenance`), after the box of an element and the word of a text.
_MARKS = r"(?:[ ]\[(?:origin|editable|site|typed|added|joined|inserted|label)(?:=[^\]\n]*+)?\]|(?!))*+"
# A node's line up to its box.
_BOXED_LINE = re.compile(
    rf"^([ ]*+-[ ]'?[A-Za-z][A-Za-z0-9_-]*+{_NAME}(?:[ ]\[(?!box=)[^\]\n]*+\]|(?!))*+)([ ]\[box=[-0-9.,]*+\]){_MARKS}",
    re.MULTILINE,
)
_MARKED_TEXT = re.compile(rf"^([ ]*+-[ ]text){_MARKS}(?=:)", re.MULTILINE)
_NO_STATES: Mapping[str, str] = MappingProxyType({})
# Participants can type into these, so their values are part of neither a page's text nor an element's name.
FIELDS = frozenset({"textbox", "searchbox", "spinbutton", "slider", "combobox"})
# Roles whose name comes from a label beside them.
# Roles that a click on any element inside activates.
PRESSABLE = FIELDS | {
    "button",
    "checkbox",
    "link",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "radio",
    "switch",
    "tab",
    "treeitem",
}
_LABELLED = FIELDS | {"checkbox", "radio", "switch"}
MAX_NAME_CHARS = 500
# Characters of content kept beyond a name's length, so that deep pages do not take quadratic time.
_REPEATED_WITHIN = 2_000


class Node(NamedTuple):
    """One element, or a piece of text (role `text`).

    `position` and `parent` are indices into `Snapshot.nodes`. `states` maps a state to its value, `"true"` for a bare
    one: `checked`, `disabled`, `expanded`, `active`, `invalid`, `pressed`, `selected`, `cursor`, `aria-hidden`. `text`
    is the value on the node's line: a field's value, a paragraph's text. `box` is x, y, width and height in CSS
    pixels of the viewport.
    """

    position: int
    parent: int | None
    depth: int
    role: str
    name: str = ""
    ref: str | None = None
    level: int | None = None
    states: Mapping[str, str] = _NO_STATES
    text: str = ""
    url: str | None = None
    placeholder: str | None = None
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Snapshot:
    """The nodes of a snapshot in the order of its lines. `values` belong to fields whose nodes do not hold them;
    `repeating_others` are positions of nodes whose name repeats content that the nodes do not hold.

    Names, values and joined texts are given as people see them (`shared.seen`), nodes' as they are written.
    `is_folded`: as policies compare them. `verbatim`: all of them as they are written, as checks of other programs'
    recordings compare them.
    """

    nodes: tuple[Node, ...] = ()
    values: Mapping[int, str] = field(default_factory=dict)
    verbatim: bool = False
    is_folded: bool = False
    repeating_others: frozenset[int] = frozenset()

    @cached_property
    def _nodes_by_ref(self) -> dict[str, Node]:
        # Reversed, so that the first of two nodes with the same reference wins.
        return {node.ref: node for node in reversed(self.nodes) if node.ref is not None}

    def by_ref(self, ref: str) -> Node | None:
        """The element with that reference (`e12`, `f2e7`)."""
        return self._nodes_by_ref.get(ref)

    def find(self, role: str) -> list[Node]:
        """The nodes with that role, in order."""
        return [node for node in self.nodes if node.role == role]

    def parents(self, node: Node) -> Iterator[Node]:
        """The nodes around `node`, innermost first."""
        while node.parent is not None:
            node = self.nodes[node.parent]
            yield node

    def subtree(self, node: Node) -> Iterator[Node]:
        """`node` and everything inside it, in order."""
        return iter(self.nodes[node.position : self._end_of(node)])

    def value_of(self, node: Node) -> str:
        """The node's text and its direct text children's: a field's value."""
        if node.position in self.values:
            return self.values[node.position]
        texts = [node.text] if node.text else []
        texts += [inner.text for inner in self.subtree(node) if inner.parent == node.position and inner.role == "text"]
        return self._as_seen(" ".join(texts))

    def _as_seen(self, text: str) -> str:
        if self.is_folded:
            return folded(text)
        return text if self.verbatim else as_seen(text)

    def choices_in(self, field: Node) -> tuple[str, ...]:
        """The names of the options selected in a native select, which has no value of its own.

        Its options are its own children; other comboboxes' are in a list, which only suggests them.
        """
        if field.role != "combobox" or self.value_of(field):
            return ()
        options = (option for option in self._selected_options(field) if option.parent == field.position)
        return tuple(map(self.name_of, options))

    @cached_property
    def boxes(self) -> tuple[tuple[float, float, float, float] | None, ...]:
        """Where each node is in the viewport of the whole page, by its position: x, y, width, height.

        Boxes in a frame are shifted by the frame's position; a piece of text has its element's box.
        """
        boxes: list[tuple[float, float, float, float] | None] = []
        shifts: list[tuple[float, float]] = []
        for node in self.nodes:
            shift, around = (0.0, 0.0), None
            if node.parent is not None:
                shift, around = shifts[node.parent], boxes[node.parent]
                if around is not None and self.nodes[node.parent].role == "iframe":
                    shift = around[:2]
            shifts.append(shift)
            boxes.append((node.box[0] + shift[0], node.box[1] + shift[1], *node.box[2:]) if node.box else around)
        return tuple(boxes)

    def text_of(self, node: Node) -> str:
        """Every name and text inside the node, in order."""
        return self.joined((inner.position, part) for inner in self.subtree(node) for part in (inner.name, inner.text))

    def joined(self, pieces: Iterable[tuple[int, str]]) -> str:
        """Pieces of text as the browser renders them, each with its node's position, in order.

        They are separated by a space unless the snapshot says that they are parts of one word.
        """
        texts: list[str] = []
        last: int | None = None
        for at, text in pieces:
            if not text:
                continue
            if last is not None and not self._is_one_word(last, at):
                texts.append(" ")
            texts.append(text)
            last = at
        return self._as_seen("".join(texts))

    @cached_property
    def _has_joins(self) -> bool:
        return any("joined" in node.states for node in self.nodes)

    def _is_one_word(self, first: int, second: int) -> bool:
        """Whether the text of a node follows another one's without a space. Only if nothing is between them: content
        left out there may separate them, or be what they are joined to.
        """
        if not self._has_joins:
            return False
        texts_before = []
        at: int | None = second
        while at is not None and at > first:
            texts_before.append(self.nodes[at])
            at = self.nodes[at].parent
        if at == first or len(texts_before) != second - first:
            return False
        around = itertools.chain((self.nodes[first],), self.parents(self.nodes[first]))
        texts_after = itertools.takewhile(lambda node: node.position != at, around)
        return any(node.states.get("joined") in ("true", "before") for node in texts_before) or any(
            node.states.get("joined") in ("true", "after") for node in texts_after
        )

    def name_of(self, node: Node) -> str:
        """The node's name; where the snapshot omits it (because of inner markup), its visible content.

        A field is named only by its label. Content of more than `MAX_NAME_CHARS` characters gives no name. Pictures of
        icon fonts are not part of a name that has anything else.
        """
        name = self._name_of(node)
        return name if self.verbatim else self._as_seen(name_as_seen(name))

    def _name_of(self, node: Node) -> str:
        if node.name or node.role in FIELDS:
            return node.name
        texts: list[tuple[int, str]] = []
        room = MAX_NAME_CHARS
        for at, text in self.visible_texts(node):
            room -= len(text) + 1
            if room < 0:
                return ""
            texts.append((at, text))
        return " ".join(self.joined(texts).split())

    def visible_texts(self, root: Node | None = None) -> Iterator[tuple[int, str]]:
        """The text a reader sees inside `root` (default: the whole page), in pieces with their nodes' positions.

        Left out are the values of fields, options not selected, and a name that only repeats the content below
        it, so that nothing appears twice.
        """
        at = first = root.position if root else 0
        last = self._end_of(root) if root else len(self.nodes)
        while at < last:
            node = self.nodes[at]
            end = at + 1
            if node.role == "option" and node.states.get("selected", "false") == "false":
                at = self._end_of(node)
                continue
            # The root's name describes its content, so it counts only if there is no content.
            if node.name and at not in self.repeating and not (at == first and root and end < last):
                yield at, node.name
            # An editor (`judge.browser.provenance`) is read like any part of the page if its content counts.
            if node.role in FIELDS and "editable" not in node.states:
                # Inside a field, only options come from the page; the rest may have been typed (`contenteditable`).
                yield from ((option.position, self.text_of(option)) for option in self._selected_options(node))
                end = self._end_of(node)
            elif node.text and node.text != node.name:
                yield at, node.text
            at = end

    def _selected_options(self, field: Node) -> Iterator[Node]:
        """The selected options in a combobox."""
        after = field.position
        for node in self.subtree(field):
            if node.role == "option" and node.position >= after:
                after = self._end_of(node)
                if node.states.get("selected", "false") != "false":
                    yield node

    def _end_of(self, node: Node) -> int:
        """The position after the last node inside `node`."""
        at = node.position + 1
        while at < len(self.nodes) and self.nodes[at].depth > node.depth:
            at += 1
        return at

    @cached_property
    def repeating(self) -> frozenset[int]:
        """Positions of nodes whose name only repeats the content inside them, or the label beside them.

        Goes from the last node to the first, so that each node's content is assembled once. The values of fields count
        as content here: a row's name consists of everything in it, and must not reveal what was typed into its cells.
        """
        places: set[int] = set()
        inside: dict[int, str] = {}
        for node in reversed(self.nodes):
            at = node.position
            content = inside.pop(at, "")
            name = self._without_spaces(node.name)
            if name and (self._repeats(name, content) or (node.role in _LABELLED and self._has_label_beside(node))):
                places.add(at)
                name = ""
            if node.parent is not None and not (node.role == "option" and "selected" not in node.states):
                own = self._without_spaces(node.text) + content
                # A field contributes its value, or its label when it is empty.
                own = own or name if node.role in FIELDS else name + own
                room = len(self.nodes[node.parent].name) + _REPEATED_WITHIN
                inside[node.parent] = (own + inside.get(node.parent, ""))[:room]
        return frozenset(places) | self.repeating_others

    def _without_spaces(self, text: str) -> str:
        return "".join(self._as_seen(text).split())

    def _repeats(self, name: str, content: str) -> bool:
        """Whether a name only repeats content; a picture may be in just one of them."""
        if self.verbatim or name in content:
            return name in content
        plain = without_icons(name)
        return bool(plain) and plain in without_icons(content)

    def _has_label_beside(self, node: Node) -> bool:
        places = (node.position - 1, self._end_of(node))
        return any(0 <= at < len(self.nodes) and self.nodes[at].text == node.name for at in places)


def parse_snapshot(text: str) -> Snapshot:
    """The snapshot's nodes. Never raises; unknown lines are ignored."""
    nodes: list[Node] = []
    open_nodes: list[int] = []
    for line in text.split("\n"):
        body = line.lstrip(" ")
        depth = (len(line) - len(body)) // 2
        if not body.startswith("- "):
            continue
        while open_nodes and nodes[open_nodes[-1]].depth >= depth:
            open_nodes.pop()
        parent = open_nodes[-1] if open_nodes else None
        if body.startswith("- /"):
            match = _PROPERTY.fullmatch(body, 2)
            if match is not None and parent is not None:
                value, node = scalar(match[2]), nodes[parent]
                nodes[parent] = node._replace(url=value) if match[1] == "url" else node._replace(placeholder=value)
        elif (added := _parse_node(body[2:], len(nodes), parent, depth)) is not None:
            open_nodes.append(added.position)
            nodes.append(added)
    return Snapshot(tuple(nodes))


def with_own_names(page: Snapshot) -> Snapshot:
    """The page with the names that its site gave to elements that the judge named otherwise for an attack."""
    if not any("label" in node.states for node in page.nodes):
        return page
    nodes = [
        node._replace(name=unquote(node.states["label"][1:])) if "label" in node.states else node for node in page.nodes
    ]
    return Snapshot(tuple(nodes), page.values)


def cut_snapshot(text: str, max_chars: int) -> str:
    """The snapshot in at most `max_chars` characters, cut at the end of a line; a last line says what is missing.

    A text that fits comes back unchanged. If there is no room for even that last line, it is cut as well.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len(_note(text.count("\n") + 1, len(text))) - 1
    end = max(text.rfind("\n", 0, max(room, 0) + 1), 0)
    head, rest = text[:end], text[end:].removeprefix("\n")
    note = _note(rest.count("\n") + 1, len(rest))
    return f"{head}\n{note}" if head else note[: max(max_chars, 0)]


def as_shown(snapshot: str, *, boxes: bool = False) -> str:
    """The snapshot as participants see it: as the server renders it, without or with bounding boxes.

    Boxes and the facts of `judge.browser.provenance` are recorded for checks and reports.
    """
    return _MARKED_TEXT.sub(r"\1", _BOXED_LINE.sub(r"\1\2" if boxes else r"\1", snapshot))


def _note(lines: int, characters: int) -> str:
    # Every line of a snapshot begins with spaces and a dash, so no page can imitate this one.
    hidden = f"{counted(lines, 'more line')} ({counted(characters, 'character')})"
    return f"# {hidden} left out: use browser_find, or scroll to see them"


def _parse_node(body: str, position: int, parent: int | None, depth: int) -> Node | None:
    # YAML quotes the entire key where it would be ambiguous; the value then follows the quotes.
    quoted = YAML_QUOTED.fullmatch(body) if body.startswith("'") else None
    head = _HEAD.fullmatch(quoted[1].replace("''", "'") if quoted else body)
    if head is None or (quoted and head["colon"]):
        return None
    role, name, regex, state_text, _, value = head.groups()
    states: dict[str, str] = {}
    for key, state in _STATE.findall(state_text):
        states.setdefault(key, state or "true")
    ref, level, box = states.pop("ref", ""), states.pop("level", ""), states.pop("box", "")
    return Node(
        position,
        parent,
        depth,
        role,
        _name(name) if name else regex or "",
        ref if ref and REF.fullmatch(ref) else None,
        int(level) if level and _LEVEL.fullmatch(level) else None,
        MappingProxyType(states) if states else _NO_STATES,
        scalar((quoted[3] if quoted else value) or ""),
        box=_parse_box(box) if box else None,
    )


def _parse_box(text: str) -> tuple[float, float, float, float] | None:
    match = _BOX.fullmatch(text)
    if match is None:
        return None
    x, y, width, height = match.groups()
    return float(x), float(y), float(width), float(height)


def _name(quoted: str) -> str:
    if "\\" not in quoted:
        # Nothing to decode, as in most names.
        return without_surrogates(quoted[1:-1])
    try:
        name: str = json.loads(quoted, strict=False)
    except ValueError:
        return quoted[1:-1]
    return without_surrogates(name)
