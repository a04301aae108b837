"""Which element of a snapshot is at a point of the screenshot, by the boxes of its elements. Pure."""

import itertools
from collections.abc import Iterable, Sequence

from shared.snapshot import PRESSABLE, Node, Snapshot

Box = tuple[float, float, float, float]
# Roles shown above the rest of the page, where nothing else can be clicked.
_LAYERS = frozenset({"alertdialog", "dialog", "listbox", "menu"})
# The rounding error allowed for a size.
_TOLERANCE_PX = 1.0


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
        nodes = [
            node
            for node in itertools.chain.from_iterable(corners.get(corner, ()) for corner in near)
            if node.box and abs(node.box[2] - width) <= _TOLERANCE_PX and abs(node.box[3] - height) <= _TOLERANCE_PX
        ]
        if nodes:
            # Of several elements with the same box, the last one is the innermost.
            return max(nodes, key=lambda node: node.position)
    return None


def _smallest_at(snapshot: Snapshot, point: tuple[float, float]) -> Node | None:
    """The smallest element whose box contains the point. Inside an open dialog or menu, only its content counts.

    What contains another one of them does not count: it is below, even where its box is smaller, as of a label in
    one line of text around a field.
    """
    there = [node for node in snapshot.nodes if node.box and _is_over(snapshot, node, point)]
    layer = next((node for node in reversed(there) if node.role in _LAYERS), None)
    if layer is not None:
        inside = {node.position for node in snapshot.subtree(layer)}
        there = [node for node in there if node.position in inside]
    around = {outer.position for node in there for outer in snapshot.parents(node)}
    there = [node for node in there if node.position not in around]
    # Reversed, so that the last one of equally small elements, which is the innermost, is taken.
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
