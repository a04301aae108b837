"""What a person does on the page, and the judge's tool for it. Pure.

A place is an element if the snapshot has one there, otherwise a point: elements make recordings that can be read and
replayed, and a point is exact wherever it matters which part of an element is meant.
"""

from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from shared.errors import ConfigError
from shared.fields import printable, without_none
from shared.models import Action, Record, ToolSpec
from shared.points import element_at
from shared.snapshot import Node, Snapshot
from shared.text import clip

# Where in the element matters.
_POSITIONAL = frozenset({"slider", "img", "application", "iframe", "document", "separator", "scrollbar"})
_MAX_NAME_CHARS = 100
_Coordinate = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
_Pixels = Annotated[int, Field(ge=-10_000, le=10_000)]


class AimPlace(Record):
    """An element by its reference, or a point of the screenshot in CSS pixels; `exact`: the point itself."""

    ref: Annotated[str, Field(max_length=30)] | None = None
    x: _Coordinate | None = None
    y: _Coordinate | None = None
    exact: bool = False

    @property
    def point(self) -> tuple[float, float] | None:
        """The point, if it is one."""
        return None if self.x is None or self.y is None else (self.x, self.y)


class Click(Record):
    """One or more clicks."""

    kind: Literal["click"]
    at: AimPlace
    button: Literal["left", "right", "middle"] = "left"
    count: int = Field(default=1, ge=1, le=3)


class Hover(Record):
    """The mouse is moved there."""

    kind: Literal["hover"]
    at: AimPlace


class Typing(Record):
    """Text for a field, whose text it replaces, or without one for the caret."""

    kind: Literal["type"]
    at: AimPlace | None = None
    text: str
    submit: bool = False
    slowly: bool = False


class Choosing(Record):
    """Options of a list."""

    kind: Literal["select"]
    at: AimPlace
    values: tuple[str, ...] = Field(min_length=1, max_length=50)


class Drag(Record):
    """From one place to another."""

    kind: Literal["drag"]
    start: AimPlace
    end: AimPlace


class Wheel(Record):
    """The mouse wheel at a place, in pixels to the right and down."""

    kind: Literal["wheel"]
    at: AimPlace
    dx: _Pixels = 0
    dy: _Pixels = 0


class DirectCall(Record):
    """Any tool with its parameters, such as a key, a tab, the answer to a dialog, or the end of the task."""

    kind: Literal["call"]
    tool: str = Field(max_length=100)
    params: dict[str, Any] = Field(default_factory=dict)


Gesture = Annotated[Click | Hover | Typing | Choosing | Drag | Wheel | DirectCall, Field(discriminator="kind")]


def action_of(gesture: Gesture, snapshot: Snapshot, tools: Iterable[ToolSpec]) -> Action:
    """The tool call for a gesture. Raises `ConfigError` if none of the offered tools can do it."""
    offered = {tool.name: tool.parameters.get("properties", {}) for tool in tools}
    match gesture:
        case DirectCall():
            action = Action(tool=gesture.tool, params=gesture.params)
        case Click():
            action = _click(gesture, snapshot, offered.get("browser_click", {}))
        case Hover():
            action = _at(gesture.at, snapshot, "browser_hover", "browser_mouse_move_xy")
        case Typing():
            params = without_none(text=gesture.text, submit=gesture.submit or None, slowly=gesture.slowly or None)
            target = {} if gesture.at is None else _target_params(_element(gesture.at, snapshot), snapshot)
            action = Action(tool="browser_type", params=target | params)
        case Choosing():
            target = _target_params(_element(gesture.at, snapshot), snapshot)
            action = Action(tool="browser_select_option", params=target | {"values": list(gesture.values)})
        case Drag():
            action = _drag(gesture, snapshot)
        case Wheel():
            action = _wheel(gesture, snapshot)
    if action.tool not in offered:
        problem = f"the judge does not offer {printable(action.tool)} for this"
        raise ConfigError(problem, remedy="choose an element from the list, or another tool")
    return action


def aim_at(place: AimPlace, snapshot: Snapshot) -> Node | None:
    """The element that a place stands for; `None` for a point that has none, or within which the place matters."""
    if place.ref is not None:
        node = snapshot.by_ref(place.ref)
        if node is None:
            raise ConfigError(f"no element {printable(place.ref)} on this page", remedy="choose another one")
        return node
    if place.exact or place.point is None:
        return None
    node = element_at(snapshot, place.point)
    if node is None or node.ref is None or node.role in _POSITIONAL:
        return None
    # A click on an element goes to its centre, where something else may be, such as a button in a card.
    centre = _centre(node, snapshot)
    return node if centre is not None and element_at(snapshot, centre) is node else None


def _element(place: AimPlace, snapshot: Snapshot) -> Node:
    if (node := aim_at(place, snapshot)) is None:
        raise ConfigError("there is no element at this point", remedy="choose one from the list")
    return node


def _target_params(
    node: Node, snapshot: Snapshot, *, target: str = "target", element: str = "element"
) -> dict[str, Any]:
    """The parameters that name an element. The words are for readers of the recording."""
    name = clip(snapshot.name_of(node), _MAX_NAME_CHARS)
    return {target: node.ref, element: f"{node.role} {name}".strip()}


def _click(gesture: Click, snapshot: Snapshot, tools: Collection[str]) -> Action:
    button = {} if gesture.button == "left" else {"button": gesture.button}
    # By element there are at most two clicks, and only without coordinates are they asked for in that way.
    if gesture.count <= 2 and "target" in tools and (node := aim_at(gesture.at, snapshot)) is not None:
        twice = {"doubleClick": True} if gesture.count == 2 else {}
        return Action(tool="browser_click", params=_target_params(node, snapshot) | button | twice)
    count = {} if gesture.count == 1 else {"clickCount": gesture.count}
    return Action(tool="browser_mouse_click_xy", params=_point(gesture.at, snapshot) | button | count)


def _at(place: AimPlace, snapshot: Snapshot, by_element: str, by_point: str) -> Action:
    if (node := aim_at(place, snapshot)) is not None:
        return Action(tool=by_element, params=_target_params(node, snapshot))
    return Action(tool=by_point, params=_point(place, snapshot))


def _drag(gesture: Drag, snapshot: Snapshot) -> Action:
    start, end = aim_at(gesture.start, snapshot), aim_at(gesture.end, snapshot)
    if start is not None and end is not None and not _is_around(snapshot, start, end):
        from_, to = _target_params(start, snapshot, target="startTarget", element="startElement"), end
        return Action(
            tool="browser_drag", params=from_ | _target_params(to, snapshot, target="endTarget", element="endElement")
        )
    return Action(
        tool="browser_mouse_drag_xy",
        params=_point(gesture.start, snapshot, "startX", "startY") | _point(gesture.end, snapshot, "endX", "endY"),
    )


def _is_around(snapshot: Snapshot, one: Node, other: Node) -> bool:
    """Whether both are the same element or one contains the other, so that the way within it matters."""
    return one is other or one in snapshot.parents(other) or other in snapshot.parents(one)


def _wheel(gesture: Wheel, snapshot: Snapshot) -> Action:
    turned = without_none(deltaX=gesture.dx or None, deltaY=gesture.dy or None)
    return Action(tool="browser_mouse_wheel", params=_point(gesture.at, snapshot) | turned)


def _point(place: AimPlace, snapshot: Snapshot, x: str = "x", y: str = "y") -> dict[str, Any]:
    point = place.point
    if point is None and place.ref is not None and (node := snapshot.by_ref(place.ref)) is not None:
        point = _centre(node, snapshot)
    if point is None:
        raise ConfigError("the judge has not said where this is", remedy="choose a point of the screenshot")
    return {x: round(point[0], 1), y: round(point[1], 1)}


def _centre(node: Node, snapshot: Snapshot) -> tuple[float, float] | None:
    if node.box is None or (box := snapshot.boxes[node.position]) is None:
        return None
    return box[0] + box[2] / 2, box[1] + box[3] / 2
