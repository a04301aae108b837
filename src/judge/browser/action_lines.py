"""Executed actions as factual lines in Mind2Web style: `<Search textbox> -> TYPE: Las Vegas`. Pure.

The format is Mind2Web's (Deng et al., 2023). The element's role and name come from the judge's snapshot. Text from a
page or a participant (names, typed text, addresses) is bounded, put on one line and stripped of angle brackets, so a
line always parses as one subject, one verb and one value (`shared.text.split_line`), and no text can look like a second
action. An element without a name is described (`judge.browser.unnamed`). Coordinates come last:
`<Search textbox> -> CLICK (412, 88)`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from judge.browser import points
from judge.browser.contents import Contents, differing
from judge.browser.tools import CheckedAction
from judge.browser.unnamed import description
from judge.records.tools import TARGETS, tool_of
from shared.action_lines import MAX_NAME_CHARS, one_line
from shared.points import element_at
from shared.snapshot import Node, Snapshot

MAX_DOWNLOADS = 3

# Subject, verb and coordinates.
_BEFORE_VALUE = re.compile(r"<[^<>]+> -> [A-Z]+(?: [A-Z]+)*(?: \([\d., -]*\))?")


def action_line(
    checked: CheckedAction,
    snapshot: Snapshot | None,
    hit: points.Hits | None = None,
    contents: Mapping[str, Contents] = MappingProxyType({}),
) -> str:
    """The line for an executed action. `snapshot` is the one that the action was checked against.

    `hit` are the elements that the browser found at the action's coordinates; `contents` what elements contained after
    it, by reference. Without them, the line says what was asked for.
    """
    page = _ObservedPage(checked.params, snapshot, hit, contents)
    subject, verb, value = tool_of(checked.tool).line(checked.params, page)
    at = " to ".join(map(points.point_text, points.points_of(checked.params)))
    return f"<{subject}> -> {verb}" + (f": {value}" if value else "") + (f" {at}" if at else "")


def recorded_value(checked: CheckedAction, snapshot: Snapshot | None, contents: Mapping[str, Contents]) -> str | None:
    """What the line does not say of the contents of its elements; `None` if it says everything."""
    page = _ObservedPage(checked.params, snapshot, None, contents)
    return tool_of(checked.tool).beside(checked.params, page)


def acted_on(checked: CheckedAction, snapshot: Snapshot | None, hit: points.Hits | None = None) -> tuple[str, ...]:
    """The references of the elements that the line of `action_line` names; empty for an element without one."""
    params, page = checked.params, snapshot or Snapshot()
    parts = (params, *params.get("fields", ()))
    refs = [part[key] for part in parts for key in TARGETS if key in part]
    at_points = points.points_of(params)
    nodes = [element_at(page, *at) for at in zip(at_points, hit or [None] * len(at_points), strict=True)]
    if tool_of(checked.tool).at_focus and not refs:
        nodes.append(points.focused(page))
    nodes_named = [*(page.by_ref(ref) for ref in refs), *nodes]
    naming = [each for node in nodes_named if node is not None for each in _naming(page, node)]
    return (*refs, *(node.ref or "" for node in (*nodes, *naming) if node is not None))


def _name(page: Snapshot, node: Node) -> str:
    return one_line(page.name_of(node), MAX_NAME_CHARS)


def _naming(page: Snapshot, node: Node) -> tuple[Node, ...]:
    """The other elements from which the line takes the name of this one."""
    described = None if _name(page, node) else description(page, node)
    return described.by if described else ()


def with_downloads(line: str, names: Sequence[str]) -> str:
    """The line with the names of the files that the page began to download: `<List link> -> CLICK (download: a.pdf)`.

    They come before the value, which the participant may have written, so that a value cannot fake a download.
    """
    if not names:
        return line
    # Parentheses would end the note.
    names_shown = [one_line(name, MAX_NAME_CHARS).replace("(", "[").replace(")", "]") for name in names[:MAX_DOWNLOADS]]
    more = f" and {len(names) - MAX_DOWNLOADS} more" if len(names) > MAX_DOWNLOADS else ""
    head = _BEFORE_VALUE.match(line)
    at = head.end() if head else len(line)
    return f"{line[:at]} (download: {', '.join(names_shown)}{more}){line[at:]}"


@dataclass(frozen=True)
class _ObservedPage:
    """The page on which an action was executed: see `judge.records.tools.ActionPage`."""

    params: Mapping[str, Any]
    snapshot: Snapshot | None
    hit: points.Hits | None
    contents: Mapping[str, Contents]

    def element(self, ref: str) -> str:
        return self._describe(self.snapshot.by_ref(ref) if self.snapshot else None, "element")

    def focused(self) -> str:
        return self._describe(points.focused(self.snapshot) if self.snapshot else None, "page")

    def at_points(self) -> list[str]:
        points_named = points.points_of(self.params)
        page = self.snapshot or Snapshot()
        at = zip(points_named, self.hit or [None] * len(points_named), strict=True)
        return [self._describe(element_at(page, *each), "page") for each in at]

    def shown(self, ref: str, asked: Sequence[str]) -> Sequence[str]:
        contents = self.contents.get(ref)
        return asked if contents is None or contents.shown is None else contents.shown

    def other_value(self, ref: str, given: str | None = None) -> str | None:
        return differing(given, self.contents.get(ref))

    def _describe(self, node: Node | None, missing: str) -> str:
        if node is None or self.snapshot is None:
            return missing
        name = _name(self.snapshot, node)
        role = one_line(node.role, 40)
        if name:
            return f"{name} {role}"
        # The role comes first, so that no name looks like this.
        described = description(self.snapshot, node)
        return f"{role} {one_line(described.text, MAX_NAME_CHARS)}" if described else role
