"""Proposes checks on the content of pages: elements and texts, and those that have disappeared.

New content at the end is ranked by how specific it is to the task; only the best is proposed.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from judge.evaluators.evidence import Look
from judge.plugins.suggestions.relevance import Relevance, Specificity
from judge.records.tools import moves_pointer
from shared.fields import without_none
from shared.seen import ICON, name_as_seen
from shared.snapshot import FIELDS, Node, Snapshot
from shared.text import plain

MAX_TEXT_CHARS = 120
ComparedPart = tuple[str, str, str]
# Roles that may show a task's result; others are layout.
_WITH_STATES = FIELDS | {"checkbox", "radio", "switch", "option", "tab", "menuitemcheckbox", "menuitemradio"}
_SAYING = frozenset({"status", "alert"})
_ROLES_WITH_NAMES = frozenset(
    {"heading", "dialog", "alertdialog", "button", "link", "row", "listitem", "cell", "treeitem"}
)
# Roles whose own text is content.
_ROLES_WITH_TEXT = frozenset(
    {"paragraph", "text", "generic", "strong", "emphasis", "code", "blockquote", "caption", "term"}
)
_GROUPS = frozenset({"group", "radiogroup", "dialog", "form", "tablist", "listbox", "banner"})
_STATES = ("checked", "selected", "pressed", "expanded", "invalid")
_TICKED = frozenset({"checkbox", "switch", "menuitemcheckbox"})
_ONE_OF_SEVERAL = frozenset({"radio", "option", "tab", "menuitemradio"})
_LONG = frozenset({"button", "link", "row", "listitem", "cell"})
_CLICKED = frozenset({"button", "link"})
# Their names repeat what is inside them.
_AROUND = frozenset({"row", "listitem", "cell", "treeitem"})
_MAX_LONG_CHARS = 80
# What has rows, and their role.
_ROWS = MappingProxyType({"table": "row", "grid": "row", "treegrid": "row", "list": "listitem"})
_GOING = frozenset({"dialog", "alertdialog", "alert"})
_CONFIRMING = re.compile(
    r"\b(?:saved|created|added|updated|deleted|removed|sent|submitted|published|booked|ordered|placed|confirmed|"
    r"success(?:ful(?:ly)?)?|thank you|thanks|error|failed|invalid)\b",
    re.IGNORECASE,
)
_MIN_WORDS = 3
# Among equally specific elements, readable ones come before clickable ones.
_ROLE_ORDER = (
    "heading",
    "alert",
    "status",
    "text",
    "combobox",
    "textbox",
    "checkbox",
    "radio",
    "cell",
    "row",
    "listitem",
)
_MAX_ELEMENTS = 8
# With this many proposals, weak ones are left out.
_ENOUGH = 2
_MAX_OF_ROLE = 3
_MAX_HEADINGS = 4
_MAX_GONE = 2


class Rank(IntEnum):
    """The significance of an element for the task, from highest to none."""

    VALUE = 0
    CHANGED = 1
    ANNOUNCED = 2
    WORDS = 3
    WORD = 4
    TITLE = 5
    DIFFERS = 6
    ON = 7
    COMMON = 8
    NONE = 9


_WHY = {
    Rank.VALUE: "shows a value of the task",
    Rank.CHANGED: "changed during the attempt",
    Rank.ANNOUNCED: "said at the end, not at the start",
    Rank.WORDS: "named in the task, and not shown at the start",
    Rank.WORD: "named in the task, and not shown at the start",
    Rank.COMMON: "shares a common word with the task, and is not shown at the start",
}


class Content(NamedTuple):
    """A check on content, why it is proposed, and whether it has a pattern because its text differs each time."""

    check: dict[str, Any]
    why: str
    varies: bool = False


class ElementContent(NamedTuple):
    """An element of a page: in the notation of checks, its text if this is its content, and its group."""

    page: Snapshot
    node: Node
    notation: str
    text: str
    group: str

    @property
    def is_on(self) -> bool:
        """Whether it is checked, selected or pressed."""
        return any(self.node.states.get(state) == "true" for state in ("checked", "selected", "pressed"))

    @property
    def compared_part(self) -> ComparedPart:
        """The part that a check would compare."""
        return self.notation, self.text, self.group

    @property
    def identity(self) -> ComparedPart:
        """The element's identity across looks: without states, value and numbers (`Cart (2)`)."""
        name = self.notation.partition(" [")[0].partition(": ")[0]
        return self.node.role, re.sub(r"\d+", "#", name), self.group

    @property
    def is_text(self) -> bool:
        """Whether it is text outside of a named element."""
        return self.node.role in _ROLES_WITH_TEXT

    @property
    def is_content(self) -> bool:
        """Whether it is an element to be read, or a control switched on."""
        if self.is_text or self.is_offer or self.is_around_controls or len(self.notation) > _MAX_LONG_CHARS:
            return False
        return self.is_on or self.node.role not in _WITH_STATES

    @property
    def is_around_controls(self) -> bool:
        """Whether it contains fields or buttons, and so is layout."""
        return self.node.role in _AROUND and any(each.role in FIELDS or each.role == "button" for each in self._inside)

    @property
    def is_offer(self) -> bool:
        """Whether it is a clickable control, which says little about the result."""
        role = self.node.role
        return role in _CLICKED or (role == "listitem" and any(each.role in _CLICKED for each in self._inside))

    @property
    def _inside(self) -> Iterator[Node]:
        return itertools.islice(self.page.subtree(self.node), 1, None)


class Pages:
    """The looks of an attempt, and of another attempt that got the task wrong if there is one."""

    def __init__(
        self,
        looks: Sequence[Look],
        relevance: Relevance,
        *,
        generated: Sequence[str] = (),
        changed_by: int = 0,
        wrong: Sequence[Look] | None = None,
    ) -> None:
        """`generated` are numbers made by the attempt; `changed_by`: the last action, from 1, that changed the site."""
        self._facts = [list(_facts(look.evidence())) for look in looks]
        self._hovered = self._shown_by_hovering(looks)
        self._before = {
            fact.compared_part
            for look, facts in zip(looks, self._facts, strict=True)
            for fact in facts
            if look.step.index < changed_by
        }
        self._relevance, self._generated, self._is_against = relevance, generated, wrong is not None
        self._wrong = {fact.compared_part for look in (wrong or ())[-1:] for fact in _facts(look.evidence())}

    def _shown_by_hovering(self, looks: Sequence[Look]) -> set[ComparedPart]:
        """What only appeared when the pointer was moved over something."""
        before: set[ComparedPart] = set()
        hovered: set[ComparedPart] = set()
        for earlier, facts in zip((None, *looks), self._facts, strict=False):
            shown = {fact.compared_part for fact in facts}
            action = earlier.step.action if earlier is not None else None
            if action is not None and moves_pointer(action.tool):
                hovered |= shown - before
            before |= shown
        return hovered

    def proposed(self) -> Iterator[Content]:
        """Content of the last look that the first lacks, most specific first; and disappeared content."""
        chosen_content: list[ElementContent] = []
        counted_rows: list[dict[str, Any]] = []
        roles: Counter[str] = Counter()
        for rank, fact in self._ranked:
            role = "text" if fact.is_text else fact.node.role
            most = _MAX_HEADINGS if role == "heading" else _MAX_OF_ROLE
            if rank is Rank.NONE or roles[role] >= most or len(chosen_content) >= _MAX_ELEMENTS:
                continue
            if (rank > Rank.TITLE and len(chosen_content) >= _ENOUGH) or any(
                self._repeats(fact, other) for other in chosen_content
            ):
                continue
            roles[role] += 1
            chosen_content.append(fact)
            yield self._content(fact, rank)
            if rank <= Rank.ANNOUNCED and (rows := _rows_beside(fact)) is not None and rows not in counted_rows:
                # A second order, or a row too many, stands beside what was asked for.
                counted_rows.append(rows)
                yield Content(rows, "as many rows as there should be, so that there is nothing besides")
        still = {fact.identity for fact in self._facts[-1]}
        gone = [fact for fact in self._facts[0] if fact.node.role in _GOING and fact.identity not in still]
        for fact in gone[:_MAX_GONE]:
            yield Content({"kind": "element", "element": fact.notation, "not": True}, "shown at the start, and gone")

    @cached_property
    def _ranked(self) -> list[tuple[Rank, ElementContent]]:
        known = {fact.compared_part for fact in self._facts[0]} | self._wrong | self._hovered
        earlier: dict[ComparedPart, set[ComparedPart]] = {}
        for fact in itertools.chain.from_iterable(self._facts[:-1]):
            earlier.setdefault(fact.identity, set()).add(fact.compared_part)
        ranked = []
        for fact in {fact.compared_part: fact for fact in reversed(self._facts[-1])}.values():
            if fact.compared_part not in known:
                has_changed = any(other != fact.compared_part for other in earlier.get(fact.identity, ()))
                rank = _rank(fact, has_changed=has_changed, relevance=self._relevance)
                if rank in (Rank.WORDS, Rank.WORD) and (fact.is_offer or fact.compared_part in self._before):
                    rank = Rank.COMMON
                ranked.append((min(rank, Rank.DIFFERS) if self._is_against and fact.is_content else rank, fact))
        return sorted(ranked, key=lambda each: (each[0], _place(*each), each[1].node.position))

    def _repeats(self, fact: ElementContent, other: ElementContent) -> bool:
        """Whether a better fact, around it or inside it, makes a fact redundant."""
        if fact.is_text and not other.is_text:
            mine, its = plain(fact.text), plain(other.text or fact.page.name_of(other.node))
            if mine in its:
                return True
        inner, outer = sorted((fact.node, other.node), key=lambda node: -node.depth)
        if outer not in fact.page.parents(inner):
            return False
        values = self._relevance.found_in(fact.notation + " " + fact.text)
        return values <= self._relevance.found_in(other.notation + " " + other.text)

    def _content(self, fact: ElementContent, rank: Rank) -> Content:
        role, why = fact.node.role, _WHY.get(rank, "shown at the end, not at the start")
        if role in _SAYING or fact.is_text:
            return self._text(fact, why)
        # Without a state, an element matches in every state.
        element = f"{fact.notation} [checked=false]" if role in _TICKED and not fact.is_on else fact.notation
        pattern = self._pattern(plain(fact.page.name_of(fact.node)))
        if pattern:
            slashes = pattern.replace("/", "\\/")
            element = element.replace(f" {quoted(plain(fact.page.name_of(fact.node)))}", f" /^{slashes}$/", 1)
        check = {"kind": "element", **without_none(within=fact.group or None), "element": element}
        return Content(check, why, bool(pattern))

    def _text(self, fact: ElementContent, why: str) -> Content:
        role = fact.node.role
        within: dict[str, Any] = {}
        if role in _SAYING:
            within = {"within": f"{role} {quoted(plain(fact.page.name_of(fact.node)))}" if fact.node.name else role}
            why = f"a {role} that the start does not show"
        content = fact.text[:MAX_TEXT_CHARS]
        if pattern := self._pattern(content):
            return Content({"kind": "text", **within, "pattern": pattern}, why, varies=True)
        return Content({"kind": "text", **within, "contains": content}, why)

    def _pattern(self, text: str) -> str:
        """A pattern for a text with pieces that differ in every attempt; empty if it has none."""
        spans = self._relevance.varying(text, self._generated)
        pattern, at = "", 0
        for start, end in spans:
            pattern += _escaped(text[at:start]) + (r"\d+" if text[start:end].isdigit() else ".+")
            at = end
        return pattern + _escaped(text[at:]) if spans else ""


def _escaped(text: str) -> str:
    # Not `re.escape`, which escapes more than necessary.
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text)


def _place(rank: Rank, fact: ElementContent) -> int:
    """For elements that show the same value, readable ones come before clickable ones."""
    role = "text" if fact.is_text else fact.node.role
    return _ROLE_ORDER.index(role) if rank is Rank.VALUE and role in _ROLE_ORDER else len(_ROLE_ORDER)


def _rank(fact: ElementContent, *, has_changed: bool, relevance: Relevance) -> Rank:
    """The significance for the task of an element that the start does not show."""
    role, notation = fact.node.role, fact.notation
    if role in _WITH_STATES:
        # Among alternatives, only the selected one matters; an empty field would match any value.
        if role in FIELDS and ": " not in notation:
            return Rank.NONE
        if has_changed and role in _ONE_OF_SEVERAL and not relevance.are_about(fact.node.name):
            # An application selects by itself too, such as the first row of a list.
            return Rank.NONE
        if has_changed and (fact.is_on or role not in _ONE_OF_SEVERAL):
            return Rank.CHANGED
        return Rank.ON if fact.is_on or role in FIELDS else Rank.NONE
    if (role in _LONG and len(notation) > _MAX_LONG_CHARS) or fact.is_around_controls:
        return Rank.NONE
    if fact.is_text:
        is_confirming = _CONFIRMING.search(fact.text) is not None and len(fact.text.split()) >= _MIN_WORDS
        return Rank.VALUE if relevance.is_about_value(fact.text) else Rank.ANNOUNCED if is_confirming else Rank.NONE
    specificity = relevance.specificity(f"{notation} {fact.text}")
    if specificity is Specificity.VALUE:
        return Rank.VALUE if role not in _AROUND or relevance.is_about_value(notation) else Rank.WORDS
    if has_changed and any(character.isdigit() for character in notation):
        # As in `Cart (2)`.
        return Rank.CHANGED
    if role in _SAYING:
        return Rank.ANNOUNCED
    by_words = {Specificity.WORDS: Rank.WORDS, Specificity.WORD: Rank.WORD, Specificity.COMMON_WORD: Rank.COMMON}
    is_title = role in ("dialog", "alertdialog") or (role == "heading" and fact.node.level == 1)
    return min(by_words.get(specificity, Rank.NONE), Rank.TITLE if is_title else Rank.NONE)


def _facts(page: Snapshot) -> Iterator[ElementContent]:
    for node in page.nodes:
        if node.role in _WITH_STATES | _SAYING | _ROLES_WITH_NAMES:
            text = _without_icons(plain(page.text_of(node))) if node.role in _SAYING else ""
            notation = _notation(page, node)
            if text or notation != node.role:
                yield ElementContent(page, node, notation, text, _group_of(page, node))
        elif text := _own_text(page, node):
            yield ElementContent(page, node, "", text, "")


def _rows_beside(fact: ElementContent) -> dict[str, Any] | None:
    """A check of how many rows or items there are in the table or list around an element."""
    around = next((node for node in fact.page.parents(fact.node) if node.role in _ROWS), None)
    if around is None:
        return None
    role = _ROWS[around.role]
    count = sum(node.role == role for node in fact.page.subtree(around))
    within = f"{around.role} {quoted(plain(fact.page.name_of(around)))}" if around.name else around.role
    return {"kind": "element", "within": within, "element": role, "count": count}


def _own_text(page: Snapshot, node: Node) -> str:
    """The text on the line of a content node, without parts that markup inside it splits."""
    if node.role not in _ROLES_WITH_TEXT or any(parent.role in FIELDS | _SAYING for parent in page.parents(node)):
        return ""
    text = _without_icons(plain(node.text))
    if text.count("(") > text.count(")"):
        text = text.rpartition("(")[0]
    text = text.strip(" ,;:([")
    return text if len(text) > 1 else ""


def _without_icons(text: str) -> str:
    """The longest piece of a text without the pictures of icon fonts."""
    return max((piece.strip() for piece in ICON.split(text)), key=len)


def _notation(page: Snapshot, node: Node) -> str:
    """The element as a check writes it: role, name, states that matter, the value of a field."""
    name, value = plain(name_as_seen(page.name_of(node))), plain(_value(page, node))
    parts = [node.role]
    if name and len(name) <= MAX_TEXT_CHARS:
        parts.append(quoted(name))
    for state in _STATES:
        if (state_value := node.states.get(state)) is not None:
            parts.append(f"[{state}]" if state_value == "true" else f"[{state}={state_value}]")
    return " ".join(parts) + (f": {value}" if value and len(value) <= MAX_TEXT_CHARS else "")


def quoted(name: str) -> str:
    """A name as the element language quotes it."""
    return json.dumps(name, ensure_ascii=False)


def _value(page: Snapshot, node: Node) -> str:
    selected_options = [inner for inner in page.subtree(node) if inner.role == "option" and "selected" in inner.states]
    if node.role == "combobox" and selected_options:
        return page.name_of(selected_options[0])
    return page.value_of(node) if node.role in FIELDS else ""


def _group_of(page: Snapshot, node: Node) -> str:
    """The group around an element, because other groups may have one of the same name; empty if there is none."""
    for parent in page.parents(node):
        if parent.role in _GROUPS and (parent.name or parent.role == "banner"):
            return f"{parent.role} {quoted(plain(page.name_of(parent)))}" if parent.name else parent.role
    return ""


def text_of(looks: Iterable[Look]) -> str:
    """All texts of pages, for `Relevance.start`."""
    return " ".join(part for look in looks for node in look.evidence().nodes for part in (node.name, node.text) if part)
