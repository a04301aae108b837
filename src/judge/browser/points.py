"""Points of the screenshot: which element lies under one, and what has the focus. Pure.

Participants that act by coordinates name nothing. What they acted on is told by the boxes of the judge's own snapshot.
"""

import json
from collections.abc import Mapping
from typing import Any

from shared.snapshot import FIELDS, Node, Snapshot

Viewport = tuple[int, int]
_POINTS = (("x", "y"), ("startX", "startY"), ("endX", "endY"))
# What a click on anything inside activates.
_CONTROLS = FIELDS | {
    *("button", "checkbox", "link", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "radio", "switch"),
    *("tab", "treeitem"),
}
# What is shown above the rest of the page, so that nothing else is hit there.
_LAYERS = frozenset({"alertdialog", "dialog", "listbox", "menu"})
_TYPE = """async page => {
  const {text, submit, slowly, limit_ms} = JSON.parse(%s);
  if (!slowly) {
    await page.keyboard.insertText(text);
  } else {
    const end = Date.now() + limit_ms;
    for (const [typed, key] of [...text].entries()) {
      if (Date.now() > end)
        throw new Error(`Timeout ${limit_ms}ms exceeded: ${typed} characters were typed`);
      await page.keyboard.type(key);
    }
  }
  if (submit)
    await page.keyboard.press("Enter");
}"""


def typing_code(text: str, *, submit: bool = False, slowly: bool = False, limit_ms: int) -> str:
    """Code for the server that types where the focus is. The text is in it as data only."""
    given = {"text": text, "submit": submit, "slowly": slowly, "limit_ms": limit_ms}
    # Twice: the JSON text as a string literal, in ASCII.
    return _TYPE % json.dumps(json.dumps(given))


def points_of(params: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The points that a tool's parameters name, in order."""
    return [(params[x], params[y]) for x, y in _POINTS if x in params and y in params]


def written(point: tuple[float, float]) -> str:
    """`(412, 88)`, to a tenth of a pixel."""
    return f"({round(point[0], 1):g}, {round(point[1], 1):g})"


def point_outside(params: Mapping[str, Any], viewport: Viewport) -> str | None:
    """The first point outside the viewport, in writing."""
    width, height = viewport
    outside = (point for point in points_of(params) if not (0 <= point[0] < width and 0 <= point[1] < height))
    return next(map(written, outside), None)


def element_at(snapshot: Snapshot, point: tuple[float, float]) -> Node | None:
    """The element that a click on the point goes to, as far as boxes tell; `None` where there is only the page.

    The smallest one there or, if that is inside a control (the text in a link), the control. In an open dialog or menu
    only what is inside it counts.
    """
    there = [node for node in snapshot.nodes if node.box and _is_over(snapshot, node, point)]
    layer = next((node for node in reversed(there) if node.role in _LAYERS), None)
    if layer is not None:
        inside = {node.position for node in snapshot.subtree(layer)}
        there = [node for node in there if node.position in inside]
    if not there:
        return None
    # Of several of the same size the last one is the innermost.
    innermost = min(reversed(there), key=_area)
    for node in (innermost, *snapshot.parents(innermost)):
        if node.role in _CONTROLS or node.states.get("cursor") == "pointer":
            return node
    # Anything else without words of its own is a part of the page that only holds others.
    return innermost if innermost.name or snapshot.value_of(innermost) else None


def _is_over(snapshot: Snapshot, node: Node, point: tuple[float, float]) -> bool:
    """Whether the point is in the element's box, and in the part of it that the frames around it show."""
    if not _contains(snapshot.boxes[node.position], point):
        return False
    frames = (outer for outer in snapshot.parents(node) if outer.role == "iframe")
    return all(_contains(snapshot.boxes[frame.position], point) for frame in frames)


def _contains(box: tuple[float, float, float, float] | None, point: tuple[float, float]) -> bool:
    if box is None:
        return False
    x, y, width, height = box
    return x <= point[0] < x + width and y <= point[1] < y + height


def _area(node: Node) -> float:
    return node.box[2] * node.box[3] if node.box else 0.0


def focused(snapshot: Snapshot) -> Node | None:
    """The element that has the focus; `None` where it is only the page or a frame."""
    node = next((node for node in reversed(snapshot.nodes) if "active" in node.states), None)
    if node is None or node.role == "iframe":
        return None
    # The document's own body has the focus when nothing else has.
    is_root = node.parent is None or snapshot.nodes[node.parent].role == "iframe"
    return None if is_root and node.role == "generic" else node
