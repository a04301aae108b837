"""What an executed action amounts to, for policies and goals: every action line that it could have been. Pure.

An element can be clicked once or twice, with other buttons and modifiers, at a point, inside of it, or by a key while
it has the focus. A text can be typed at once, key by key, after what is already in the field, or pasted. An address can
be spelled in many ways. A tool of the site can be called with more arguments. A policy names one of them and means all.

For evidence of a task only the line itself counts (`judge.evaluators.kinds.action`).
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from judge.evaluators.evidence import Look
from judge.evaluators.readings import decoded, readings
from judge.records.sites import origin_of
from judge.records.tools import MAX_GIVEN_CHARS, texts_of, tool_of, verb_of
from shared.action_lines import MAX_NAME_CHARS, one_line, url
from shared.seen import values_as_seen
from shared.snapshot import FIELDS, PRESSABLE, Node, Snapshot
from shared.text import split_line

# Keys that press the control with the focus, after modifiers.
_PRESSING = re.compile(r"(?i)(?:.*\+)?(?:enter|numpadenter|return|space| )")
_ERASING = re.compile(r"(?i)(?:.*\+)?(?:backspace|delete)")
_MENU = re.compile(r"(?i)contextmenu|shift\+f10")
_NEW_TAB = "new "
_MAX_TYPED_CHARS = 10_000


class Amounts:
    """The lines of an attempt's actions, which are given one after the other, each with the look that followed it."""

    def __init__(self) -> None:
        # By element, as lines name it: what was typed into it.
        self._typed: dict[str, str] = {}

    def of(self, line: str, look: Look, after: Look | None) -> tuple[str, ...]:
        """Every line that the action could have been, beginning with its own."""
        lines = dict.fromkeys([line])
        parts = split_line(line)
        if parts is not None:
            subject, verb, value = parts[0], parts[1], parts[2] or ""
            page = look.snapshot or Snapshot()
            subjects = list(dict.fromkeys([*_subjects(page, look), subject]))
            lines |= dict.fromkeys(_clicks(subjects, verb, value))
            lines |= dict.fromkeys(self._lines_of_typing(subjects, verb, value, look))
            lines |= dict.fromkeys(_addresses(verb, value))
            lines |= dict.fromkeys(_whole_call(subject, look))
            lines |= dict.fromkeys(_changed(page, after.snapshot if after else None))
        return tuple(lines)

    def _lines_of_typing(self, subjects: Sequence[str], verb: str, value: str, look: Look) -> Iterator[str]:
        action = look.step.action
        if action is None:
            return
        presses = verb_of(verb).enters or (verb == "PRESS" and _PRESSING.fullmatch(value) is not None)
        if verb == "PRESS" and _ERASING.fullmatch(value):
            self._typed = {name: text[:-1] if name in subjects else text for name, text in self._typed.items()}
        texts = [text for text in texts_of(action.tool, action.params) if text is not None]
        for name in subjects:
            for text in texts:
                # It may have been added to what was there, or have replaced it.
                self._typed[name] = (self._typed.get(name, "") + text)[-_MAX_TYPED_CHARS:]
                yield from _typings(name, text, presses=presses)
            if typed := self._typed.get(name):
                yield from _typings(name, typed, presses=presses)


def _typings(name: str, text: str, *, presses: bool) -> Iterator[str]:
    value = one_line(text, _MAX_TYPED_CHARS)
    yield f"<{name}> -> TYPE: {value}"
    if presses:
        yield f"<{name}> -> TYPE AND ENTER: {value}"


def _subjects(page: Snapshot, look: Look) -> Iterator[str]:
    """The elements that an action reached: those that it named or the one with the focus, and controls around them."""
    outcome = look.step.outcome
    nodes = [page.by_ref(ref) for ref in outcome.refs if ref] if outcome else []
    reached = [node for node in nodes if node] or [node for node in page.nodes if "active" in node.states]
    for node in reached:
        for each in (node, *page.parents(node)):
            if each is node or each.role in PRESSABLE:
                yield _describe(page, each)


def _describe(page: Snapshot, node: Node) -> str:
    name, role = one_line(page.name_of(node), MAX_NAME_CHARS), one_line(node.role, 40)
    return f"{name} {role}" if name else role


def _clicks(subjects: Sequence[str], verb: str, value: str) -> Iterator[str]:
    if verb.endswith("CLICK"):
        kind = verb.removesuffix("CLICK").split()
        verbs = {"CLICK", " ".join([*kind[:1], "CLICK"])}
        if "TRIPLE" in kind:
            verbs |= {"DOUBLE CLICK", " ".join([*(part for part in kind if part != "TRIPLE"), "DOUBLE CLICK"])}
    elif verb == "PRESS" and _PRESSING.fullmatch(value):
        verbs = {"CLICK"}
    elif verb == "PRESS" and _MENU.fullmatch(value):
        verbs = {"RIGHT CLICK"}
    else:
        return
    for name in subjects:
        yield from (f"<{name}> -> {each}" for each in sorted(verbs))


def _addresses(verb: str, value: str) -> Iterator[str]:
    if verb == "TAB" and value.startswith(_NEW_TAB):
        value = value.removeprefix(_NEW_TAB)
    elif verb != "GOTO":
        return
    if origin_of(value) is None:
        return
    head, _, query = value.partition("#")[0].partition("?")
    start = "/".join(head.split("/", 3)[:3])
    path = head[len(start) :] or "/"
    # As it is, once decoded, and in every way in which a server could read it.
    paths = dict.fromkeys([path, unquote(path), *sorted(readings(path).texts)])
    tails = dict.fromkeys(["", f"?{query}", *(f"?{each}" for each in decoded(query))] if query else [""])
    for each in paths:
        for tail in tails:
            yield f"<navigation> -> GOTO: {url(f'{start}{each}{tail}')}"


def arguments_of(look: Look) -> dict[str, Any] | None:
    """What the action gave to its tool, as lines have it, but not cut; `None` if the line does not show all of it."""
    action = look.step.action
    given = tool_of(action.tool).given if action else None
    if action is None or given is None:
        return None
    arguments: dict[str, Any] = values_as_seen(given(action.params), lambda text: one_line(text, MAX_GIVEN_CHARS))
    return arguments


def _whole_call(subject: str, look: Look) -> Iterator[str]:
    """The line with all arguments, which is cut where it is shown."""
    arguments = arguments_of(look)
    if arguments is not None:
        yield f"<{subject}> -> CALL: {json.dumps(arguments, ensure_ascii=False, sort_keys=True)}"


def _changed(before: Snapshot, after: Snapshot | None) -> Iterator[str]:
    """The fields that show something else afterwards, however it came there."""
    if after is None:
        return
    known = {(_describe(before, node), value) for node in before.nodes for value in _values(before, node)}
    for node in after.nodes:
        for value in _values(after, node):
            name = _describe(after, node)
            if value and (name, value) not in known:
                verb = "SELECT" if node.role == "combobox" else "TYPE"
                yield f"<{name}> -> {verb}: {one_line(value, _MAX_TYPED_CHARS)}"


def _values(page: Snapshot, node: Node) -> tuple[str, ...]:
    if node.role not in FIELDS and "editable" not in node.states:
        return ()
    return page.choices_in(node) or (page.value_of(node),)
