"""Reads Playwright's accessibility snapshot: elements by reference, by role and name; cuts it to size. Pure.

Shared by the judge (facts for action lines) and by participants (finding elements), so it has no home in `judge`.

The text is YAML-like, one node per line, two blanks per level; the reference is Playwright's own renderer
(`packages/isomorphic/ariaSnapshotRenderer.ts` and `yaml.ts`, 1.65)::

    - 'heading "a: b" [level=1] [ref=e2]'
    - textbox "Name" [active] [ref=e3]:
      - /placeholder: Your name
      - text: abc

A line parser, not a YAML library: linear in the text, megabytes in about a second, and no text makes it raise. Lines
that it does not know are left out. Lines end at a line feed only: names may hold other separators.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from shared.text import without_surrogates

REF = re.compile(r"(?:f[0-9]{1,9})?e[0-9]{1,9}")

_HEAD = re.compile(
    r"""(?P<role>[A-Za-z][A-Za-z0-9_-]*+)
        (?:[ ](?:(?P<name>"(?:[^"\\]|\\.)*+")|/(?P<regex>(?:[^/\\]|\\.)*+)/))?
        (?P<states>(?:[ ]\[[^\]]*+\])*+)
        (?:(?P<colon>:)(?:[ ](?P<value>.*+))?)?""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"'((?:[^']|'')*+)'(:?)(?: (.*+))?", re.DOTALL)
_PROPERTY = re.compile(r"/([a-z]+): (.*+)", re.DOTALL)
_STATE = re.compile(r"\[([a-z-]+)(?:=([^\]]*))?\]")
_BOX = re.compile(r"(-?[0-9.]{1,20}),(-?[0-9.]{1,20}),(-?[0-9.]{1,20}),(-?[0-9.]{1,20})")
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NO_STATES: Mapping[str, str] = MappingProxyType({})
# Fields that a participant can write into: what they hold is no part of a page's text and of no element's name.
FIELDS = frozenset({"textbox", "searchbox", "spinbutton", "slider", "combobox"})
# What a label beside it names as well.
_LABELLED = FIELDS | {"checkbox", "radio", "switch"}
MAX_NAME_CHARS = 500
_REPEATED_WITHIN = 2_000


class Node(NamedTuple):
    """One element, or a piece of text (role `text`).

    `position` and `parent` are places in `Snapshot.nodes`; `line` counts from 0.
    `states` maps a state to its value, `"true"` for a bare one: `checked`, `disabled`, `expanded`, `active`,
    `invalid`, `pressed`, `selected`, `cursor`, `aria-hidden`. `text` is what stands in its own line: a field's value,
    a paragraph's text. `box` is x, y, width, height in CSS pixels of the viewport.
    """

    position: int
    parent: int | None
    depth: int
    line: int
    role: str
    name: str = ""
    ref: str | None = None
    level: int | None = None
    states: Mapping[str, str] = _NO_STATES
    text: str = ""
    url: str | None = None
    placeholder: str | None = None
    box: tuple[float, float, float, float] | None = None
    name_is_regex: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The nodes of a snapshot in the order of its lines."""

    nodes: tuple[Node, ...] = ()
    _by_ref: Mapping[str, Node] = field(default_factory=dict, repr=False, compare=False)

    def by_ref(self, ref: str) -> Node | None:
        """The element with that reference (`e12`, `f2e7`)."""
        return self._by_ref.get(ref)

    def find(self, role: str | None = None, name: str | None = None, *, exact: bool = True) -> tuple[Node, ...]:
        """All nodes of that role and name, in order; `None` matches any.

        White space in names counts as one blank. With `exact=False` the case does not matter and a part of the name
        is enough, as in Playwright's `get_by_role`.
        """
        wanted = None if name is None else _normal(name, exact)
        return tuple(
            node
            for node in self.nodes
            if (role is None or node.role == role)
            and (wanted is None or _same(_normal(node.name, exact), wanted, exact))
        )

    def parents(self, node: Node) -> Iterator[Node]:
        """The nodes around `node`, the nearest first."""
        while node.parent is not None:
            node = self.nodes[node.parent]
            yield node

    def subtree(self, node: Node) -> Iterator[Node]:
        """`node` and everything inside it, in order."""
        yield node
        for index in range(node.position + 1, len(self.nodes)):
            if self.nodes[index].depth <= node.depth:
                return
            yield self.nodes[index]

    def value_of(self, node: Node) -> str:
        """The node's own text with that of its direct text children: what a field holds."""
        texts = [node.text] if node.text else []
        texts += [inner.text for inner in self.subtree(node) if inner.parent == node.position and inner.role == "text"]
        return " ".join(texts)

    def text_of(self, node: Node) -> str:
        """Every name and text inside the node, in order, joined by blanks."""
        return " ".join(part for inner in self.subtree(node) for part in (inner.name, inner.text) if part)

    def name_of(self, node: Node) -> str:
        """The node's name; where the snapshot leaves it out (inner markup), its content as a reader sees it.

        A field is named by its label only. Content of more than `MAX_NAME_CHARS` characters names nothing.
        """
        if node.name or node.role in FIELDS:
            return node.name
        texts: list[str] = []
        room = MAX_NAME_CHARS
        for _, text in self.visible_texts(node):
            room -= len(text) + 1
            if room < 0:
                return ""
            texts.append(text)
        return " ".join(" ".join(texts).split())

    def visible_texts(self, root: Node | None = None, hidden: Collection[int] = ()) -> Iterator[tuple[int, str]]:
        """What a reader sees inside `root` (of the whole page without one): pieces of text, each with its node's place.

        Without what fields hold, options that are not selected, and whatever lies in `hidden` (places in `nodes`). A
        name that only repeats the content below it is left out, so that nothing stands there twice.
        """
        first = root.position if root else 0
        last = self._end_of(root) if root else len(self.nodes)
        at = first
        while at < last:
            node = self.nodes[at]
            end = at + 1
            if at in hidden or (node.role == "option" and node.states.get("selected", "false") == "false"):
                at = self._end_of(node)
                continue
            if node.name and at not in self._repeating and not (at == first and root and end < last):
                yield at, node.name
            if node.role in FIELDS:
                # Of what is inside, only options are the page's own; the rest may have been typed (`contenteditable`).
                yield from ((option.position, self.text_of(option)) for option in self._chosen(node, hidden))
                end = self._end_of(node)
            elif node.text and node.text != node.name:
                yield at, node.text
            at = end

    def _chosen(self, field: Node, hidden: Collection[int]) -> Iterator[Node]:
        """The selected options in a combobox."""
        after = field.position
        for node in self.subtree(field):
            if node.role == "option" and node.position >= after and node.position not in hidden:
                after = self._end_of(node)
                if node.states.get("selected", "false") != "false":
                    yield node

    def _end_of(self, node: Node) -> int:
        """The place after the last node inside `node`."""
        at = node.position + 1
        while at < len(self.nodes) and self.nodes[at].depth > node.depth:
            at += 1
        return at

    @cached_property
    def _repeating(self) -> frozenset[int]:
        """Places of nodes whose name only repeats what stands inside them, or the label beside them.

        From the last node to the first, so that each node's content is put together once. What fields hold counts as
        content here: a row is named by everything in it, and must not show what was typed into one of its cells.
        """
        found: set[int] = set()
        inside: dict[int, str] = {}
        for node in reversed(self.nodes):
            at = node.position
            content = inside.pop(at, "")
            name = _squeezed(node.name)
            if name and (name in content or (node.role in _LABELLED and self._has_label_beside(node))):
                found.add(at)
                name = ""
            if node.parent is not None and not (node.role == "option" and "selected" not in node.states):
                own = _squeezed(node.text) + content
                # A field stands for its value, and for its label only when it is empty.
                own = own or name if node.role in FIELDS else name + own
                room = len(self.nodes[node.parent].name) + _REPEATED_WITHIN
                inside[node.parent] = (own + inside.get(node.parent, ""))[:room]
        return frozenset(found)

    def _has_label_beside(self, node: Node) -> bool:
        places = (node.position - 1, self._end_of(node))
        return any(0 <= at < len(self.nodes) and self.nodes[at].text == node.name for at in places)


def parse_snapshot(text: str) -> Snapshot:
    """The snapshot's nodes. Never raises; unknown lines are left out."""
    nodes: list[Node] = []
    by_ref: dict[str, Node] = {}
    open_nodes: list[Node] = []
    for number, line in enumerate(text.split("\n")):
        body = line.lstrip(" ")
        depth = (len(line) - len(body)) // 2
        if not body.startswith("- "):
            continue
        while open_nodes and open_nodes[-1].depth >= depth:
            open_nodes.pop()
        parent = open_nodes[-1] if open_nodes else None
        if body.startswith("- /"):
            if parent is not None and (changed := _with_property(parent, body[2:])) is not None:
                nodes[parent.position] = open_nodes[-1] = changed
                if changed.ref and by_ref.get(changed.ref) is parent:
                    by_ref[changed.ref] = changed
            continue
        place = (len(nodes), parent.position if parent else None, depth, number)
        node = _node(body[2:], place)
        if node is None:
            continue
        nodes.append(node)
        open_nodes.append(node)
        if node.ref is not None:
            by_ref.setdefault(node.ref, node)
    return Snapshot(tuple(nodes), MappingProxyType(by_ref))


def cut_snapshot(text: str, max_chars: int) -> str:
    """The snapshot in at most `max_chars` characters, cut at the end of a line, its last line saying what is missing.

    A text that fits comes back unchanged. With too little room for even the note, the note is cut.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len(_note(text.count("\n") + 1, len(text))) - 1
    end = max(text.rfind("\n", 0, max(room, 0) + 1), 0)
    kept, rest = text[:end], text[end:].removeprefix("\n")
    note = _note(rest.count("\n") + 1, len(rest))
    return f"{kept}\n{note}" if kept else note[: max(max_chars, 0)]


def _note(lines: int, characters: int) -> str:
    # Every line of a snapshot begins with blanks and a dash, so no page can write this one.
    return f"# {lines} more lines ({characters} characters) left out: use browser_find, or scroll to see them"


def _node(body: str, place: tuple[int, int | None, int, int]) -> Node | None:
    value: str | None
    if body.startswith("'"):
        quoted = _QUOTED.fullmatch(body)
        if quoted is None:
            return None
        value = quoted[3]
        head = _HEAD.fullmatch(quoted[1].replace("''", "'"))
        if head is None or head["colon"]:
            return None
    else:
        head = _HEAD.fullmatch(body)
        if head is None:
            return None
        value = head["value"]
    role, text = head["role"], _scalar(value) if value else ""
    if not head["states"] and not head["name"] and not head["regex"]:
        return Node(*place, role, text=text)
    name = _name(head["name"]) if head["name"] else head["regex"] or ""
    return _with_states(Node(*place, role, name, text=text, name_is_regex=head["regex"] is not None), head["states"])


def _with_states(node: Node, written: str) -> Node:
    states: dict[str, str] = {}
    for key, value in _STATE.findall(written):
        states.setdefault(key, value or "true")
    if not states:
        return node
    ref, level = states.pop("ref", None), states.pop("level", "")
    box = _BOX.fullmatch(states.pop("box", ""))
    return node._replace(
        ref=ref if ref is not None and REF.fullmatch(ref) else None,
        level=int(level) if level.isascii() and level.isdigit() and len(level) < 5 else None,
        states=MappingProxyType(states) if states else _NO_STATES,
        box=_numbers(box) if box else None,
    )


def _with_property(parent: Node, body: str) -> Node | None:
    match = _PROPERTY.fullmatch(body)
    if match is None:
        return None
    if match[1] == "url":
        return parent._replace(url=_scalar(match[2]))
    if match[1] == "placeholder":
        return parent._replace(placeholder=_scalar(match[2]))
    return None


def _name(quoted: str) -> str:
    try:
        name: str = json.loads(quoted, strict=False)
    except ValueError:
        return quoted[1:-1]
    return without_surrogates(name)


def _scalar(value: str) -> str:
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        return _ESCAPE.sub(_unescape, value[1:-1])
    return value


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])


def _numbers(box: re.Match[str]) -> tuple[float, float, float, float] | None:
    try:
        x, y, width, height = (float(number) for number in box.groups())
    except ValueError:
        return None
    return x, y, width, height


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _normal(name: str, exact: bool) -> str:
    name = " ".join(name.split())
    return name if exact else name.casefold()


def _same(name: str, wanted: str, exact: bool) -> bool:
    return name == wanted if exact else wanted in name
