"""Points of the screenshot: which element is at a point, and which has the focus. Pure.

Participants that act by coordinates name no element. The judge finds the element by comparing its snapshot's boxes with
the boxes of the elements that the browser reports at the point, because boxes alone do not show what covers what.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from judge.records.tools import POINTS
from shared.snapshot import PRESSABLE, Node, Snapshot

Viewport = tuple[int, int]
Box = tuple[float, float, float, float]
# For each point, the boxes of the elements at it, from the innermost outwards.
Hits = tuple[tuple[Box, ...], ...]
# Validated, because a page can replace the functions that return its boxes.
_HITS: TypeAdapter[Hits] = TypeAdapter(Hits, config=ConfigDict(allow_inf_nan=False))
# Roles shown above the rest of the page, where nothing else can be clicked.
_LAYERS = frozenset({"alertdialog", "dialog", "listbox", "menu"})
# The rounding error allowed for a size.
_TOLERANCE_PX = 1.0
# What a snapshot's boxes are as well.
_PLACES = Path(__file__).with_name("places.js")
# Returns hits. A label counts as the element that it labels. Elements in a frame are shifted by the frame's box, as in
# a snapshot.
_HIT = """async page => {
  const boxes = async ([x, y]) => {
    let frame = page.mainFrame(), left = 0, top = 0;
    for (;;) {
      const handle = await frame.evaluateHandle(([x, y]) => {
        let hit = document.elementFromPoint(x, y);
        for (let inner; (inner = hit?.shadowRoot?.elementFromPoint(x, y)) && inner !== hit;) hit = inner;
        return hit;
      }, [x, y]);
      const element = handle.asElement(), inside = await element?.contentFrame();
      if (!inside)
        return element ? element.evaluate((hit, [left, top]) => {
          const { boxOf } = (%s)();
          const found = [], labelled = hit.closest("a, button, input, label, select, textarea")?.control;
          for (let e = hit; e; e = e.assignedSlot || e.parentElement || e.getRootNode().host) found.push(e);
          return (labelled ? [labelled, ...found] : found).slice(0, 100).map(boxOf)
            .map(r => [r.x + left, r.y + top, r.width, r.height]);
        }, [left, top]) : [];
      const at = await element.evaluate(e => {
        const box = e.getBoundingClientRect(), style = getComputedStyle(e);
        return {box: [box.x, box.y], in: [box.x + e.clientLeft + parseFloat(style.paddingLeft),
                                          box.y + e.clientTop + parseFloat(style.paddingTop)]};
      });
      [left, top, x, y, frame] = [left + at.box[0], top + at.box[1], x - at.in[0], y - at.in[1], inside];
    }
  };
  return Promise.race([Promise.all(%s.map(boxes)), new Promise(done => setTimeout(done, 2000, null))]);
}"""
_TYPE = """async page => {
  const {text, submit, slowly, limit_ms} = JSON.parse(%s);
  if (!slowly) {
    await page.keyboard.insertText(text);
  } else {
    const end = Date.now() + limit_ms;
    for (const [typed, key] of [...text].entries()) {
      if (Date.now() > end)
        throw new Error(`Timeout ${limit_ms}ms exceeded: typed ${typed} of ${[...text].length} characters`);
      await page.keyboard.type(key);
    }
  }
  if (submit)
    await page.keyboard.press("Enter");
}"""


def typing_code(text: str, *, submit: bool = False, slowly: bool = False, limit_ms: int) -> str:
    """Code for the server that types into the focused element. The text is embedded as data only."""
    given = {"text": text, "submit": submit, "slowly": slowly, "limit_ms": limit_ms}
    # Dumped twice: the JSON text as an ASCII string literal.
    return _TYPE % json.dumps(json.dumps(given))


def hit_code(points: Sequence[tuple[float, float]]) -> str:
    """Code for the server that finds the elements at the points; see `read_hits`."""
    return _HIT % (_PLACES.read_text(), json.dumps(points))


def read_hits(text: str) -> Hits | None:
    """The result of `hit_code`; `None` if the page gave no answer."""
    try:
        return _HITS.validate_json(text)
    except ValidationError:
        return None


def points_of(params: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The points in a tool's parameters, in order."""
    return [(params[x], params[y]) for x, y in POINTS if x in params and y in params]


def written(point: tuple[float, float]) -> str:
    """`(412, 88)`, to a tenth of a pixel."""
    return f"({round(point[0], 1):g}, {round(point[1], 1):g})"


def point_outside(params: Mapping[str, Any], viewport: Viewport) -> str | None:
    """The first point outside the viewport, as text."""
    width, height = viewport
    outside = (point for point in points_of(params) if not (0 <= point[0] < width and 0 <= point[1] < height))
    return next(map(written, outside), None)


def element_at(snapshot: Snapshot, point: tuple[float, float], hit: Sequence[Box] | None = None) -> Node | None:
    """The element that a click on the point goes to; `None` if only the page itself is there.

    `hit` are the boxes of the elements that the browser found there, innermost first. Without them, the smallest
    element there according to the recorded boxes. Inside a control (the text of a link), the control.
    """
    innermost = _smallest_at(snapshot, point) if hit is None else _first_of(snapshot, hit)
    if innermost is None:
        return None
    for node in (innermost, *snapshot.parents(innermost)):
        if node.role in PRESSABLE or node.states.get("cursor") == "pointer":
            return node
    # Any other element without a name or text of its own is only a container.
    return innermost if innermost.name or snapshot.value_of(innermost) else None


def _first_of(snapshot: Snapshot, boxes: Iterable[Box]) -> Node | None:
    """The element with the first of these boxes that matches an element."""
    # Indexed by corner, because a page may have tens of thousands of elements.
    corners: dict[tuple[int, int], list[Node]] = {}
    for node in snapshot.nodes:
        if node.box and (box := snapshot.boxes[node.position]):
            corners.setdefault((round(box[0]), round(box[1])), []).append(node)
    for x, y, width, height in boxes:
        # Rounding may move a corner by one pixel.
        near = [(round(x) + across, round(y) + down) for across in (-1, 0, 1) for down in (-1, 0, 1)]
        found = [
            node
            for node in itertools.chain.from_iterable(corners.get(corner, ()) for corner in near)
            if node.box and abs(node.box[2] - width) <= _TOLERANCE_PX and abs(node.box[3] - height) <= _TOLERANCE_PX
        ]
        if found:
            # Of several elements with the same box, the last one is the innermost.
            return max(found, key=lambda node: node.position)
    return None


def _smallest_at(snapshot: Snapshot, point: tuple[float, float]) -> Node | None:
    """The smallest element whose box contains the point. Inside an open dialog or menu, only its content counts."""
    there = [node for node in snapshot.nodes if node.box and _is_over(snapshot, node, point)]
    layer = next((node for node in reversed(there) if node.role in _LAYERS), None)
    if layer is not None:
        inside = {node.position for node in snapshot.subtree(layer)}
        there = [node for node in there if node.position in inside]
    # Reversed, so that of equally small elements the last one, which is the innermost, is taken.
    return min(reversed(there), key=_area, default=None)


def _is_over(snapshot: Snapshot, node: Node, point: tuple[float, float]) -> bool:
    """Whether the point is in the element's box, and visible inside all surrounding frames."""
    if not _contains(snapshot.boxes[node.position], point):
        return False
    frames = (outer for outer in snapshot.parents(node) if outer.role == "iframe")
    return all(_contains(snapshot.boxes[frame.position], point) for frame in frames)


def _contains(box: Box | None, point: tuple[float, float]) -> bool:
    if box is None:
        return False
    x, y, width, height = box
    return x <= point[0] < x + width and y <= point[1] < y + height


def _area(node: Node) -> float:
    return node.box[2] * node.box[3] if node.box else 0.0


def focused(snapshot: Snapshot) -> Node | None:
    """The focused element; `None` if that is only the page or a frame."""
    node = next((node for node in reversed(snapshot.nodes) if "active" in node.states), None)
    if node is None or node.role == "iframe":
        return None
    # The document's body has the focus if no other element has it.
    is_root = node.parent is None or snapshot.nodes[node.parent].role == "iframe"
    return None if is_root and node.role == "generic" else node
