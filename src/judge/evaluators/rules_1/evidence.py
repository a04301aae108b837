"""Guesses from the participant's actions which elements other than fields contain text that it typed. Pure.

For recordings of version 1 only. Later ones say which elements are inside an editor (`judge.browser.provenance`).
"""

import re
from collections.abc import Collection, Iterator

from judge.records.steps import Step
from shared.snapshot import FIELDS, Node, Snapshot

# Reference and role of an element.
TypedValues = frozenset[tuple[str, str]]
_TYPING = frozenset({"browser_type", "browser_fill_form"})
_DRAGGING = frozenset({"browser_drag", "browser_mouse_drag_xy"})
# Keys that only act. All others can change the text where the focus is: `a`, `KeyA`, `Shift+a`, `Control+Shift+V`.
_ACTING_KEYS = re.compile(
    r"(?i)\s+|space|enter|numpadenter|tab|escape|arrow\w+|home|end|page(?:up|down)|f\d+|control\w*|shift\w*|alt\w*|meta\w*"
)
# Roles that receive focus and key presses, but contain no typed text.
_PRESSED = frozenset(
    """button checkbox radio switch link menuitem menuitemcheckbox menuitemradio option tab treeitem iframe listbox menu
    menubar radiogroup tablist grid tree treegrid dialog alertdialog document main region""".split()
)


def typed_by(step: Step, before: Snapshot | None, after: Snapshot | None) -> TypedValues:
    """The elements that the action of a step on the task's site may have typed into, by the snapshots around it."""
    old, new = before or Snapshot(), after or Snapshot()
    if _was_done(step, _TYPING):
        return frozenset(_typed_into(step, old, new))
    return frozenset(_edited(old, new)) if _edits(step) else frozenset()


def _edits(step: Step) -> bool:
    """Whether the action can change the text where the focus is afterwards: a key, dropped text, a middle click."""
    if _was_done(step, _DRAGGING):
        return True
    params = step.action.params if step.action else {}
    key = str(params.get("key", ""))
    is_key = _was_done(step, {"browser_press_key"}) and _ACTING_KEYS.fullmatch(key.rpartition("+")[2] or key) is None
    return is_key or params.get("button") == "middle"


def _was_done(step: Step, tools: Collection[str]) -> bool:
    return bool(step.action and step.outcome and step.outcome.ok and step.action.tool in tools)


def _typed_into(step: Step, before: Snapshot, after: Snapshot) -> Iterator[tuple[str, str]]:
    """Reference and role of elements that were typed into although their role is not that of a field.

    These are the element that the action named (or else the focused one) and the element focused afterwards, because an
    element that is named by its content gets a new reference when the content changes.
    """
    action = step.action
    params = action.params if action else {}
    fields = params.get("fields")
    entries = [params, *(entry for entry in (fields if isinstance(fields, list) else ()) if isinstance(entry, dict))]
    refs = {entry.get(key) for entry in entries for key in ("target", "ref") if isinstance(entry.get(key), str)}
    is_typed_at_focus = action is not None and action.tool == "browser_type" and not refs
    for page, is_at_focus in ((before, is_typed_at_focus), (after, True)):
        for node in page.nodes:
            is_target = node.ref in refs or (is_at_focus and "active" in node.states and node.parent is not None)
            if is_target and _can_be_edited(node):
                yield node.ref or "", node.role


def _edited(old: Snapshot, new: Snapshot) -> Iterator[tuple[str, str]]:
    """Reference and role of the element that has the focus now, where its text is new and its role not a field's."""
    for node in new.nodes:
        if "active" in node.states and node.parent is not None and _can_be_edited(node):
            text = new.text_of(node)
            if all(old.text_of(each) != text for each in old.find(node.role)):
                yield node.ref or "", node.role


def _can_be_edited(node: Node) -> bool:
    return node.ref is not None and node.role not in FIELDS and node.role not in _PRESSED
