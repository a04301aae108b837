"""Points of the screenshot: which element is at a point, and which has the focus. Pure.

Participants that act by coordinates name no element. The judge finds the element (`shared.points`) by comparing its
snapshot's boxes with the boxes of the elements that the browser reports at the point, because boxes alone do not show
what covers what.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from judge.records.tools import POINTS
from shared.points import Box
from shared.snapshot import Node, Snapshot

Viewport = tuple[int, int]
# For each point, the boxes of the elements at it, from the innermost outwards.
Hits = tuple[tuple[Box, ...], ...]
# Validated, because a page can replace the functions that return its boxes.
_HITS: TypeAdapter[Hits] = TypeAdapter(Hits, config=ConfigDict(allow_inf_nan=False))
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


def typing_code(text: str, *, submit: bool = False, slowly: bool = False, limit_ms: int) -> str:
    """Code for the server that types into the focused element (`contents.cjs`). The text is embedded as data only."""
    values = {"text": text, "submit": submit, "slowly": slowly, "limit_ms": limit_ms}
    # Dumped twice: the JSON text as an ASCII string literal.
    return f"async page => page[Symbol.for('wabe.typing')](JSON.parse({json.dumps(json.dumps(values))}))"


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


def point_text(point: tuple[float, float]) -> str:
    """`(412, 88)`, to a tenth of a pixel."""
    return f"({round(point[0], 1):g}, {round(point[1], 1):g})"


def point_outside(params: Mapping[str, Any], viewport: Viewport) -> str | None:
    """The first point outside the viewport, as text."""
    width, height = viewport
    outside = (point for point in points_of(params) if not (0 <= point[0] < width and 0 <= point[1] < height))
    return next(map(point_text, outside), None)


def focused(snapshot: Snapshot) -> Node | None:
    """The focused element; `None` if that is only the page or a frame."""
    node = next((node for node in reversed(snapshot.nodes) if "active" in node.states), None)
    if node is None or node.role == "iframe":
        return None
    # The document's body has the focus if no other element has it.
    is_root = node.parent is None or snapshot.nodes[node.parent].role == "iframe"
    return None if is_root and node.role == "generic" else node
