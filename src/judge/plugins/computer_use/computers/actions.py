"""Models that operate a browser through their provider's computer-use tool: their input and their actions.

Adapters translate each provider's action names, keys and units into calls of the judge's tools, with coordinates in
pixels of the screenshot. They return tuples of actions, because one provider action may need several tool calls.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from shared.models import Action, Record
from shared.text import clip, without_surrogates

M = TypeVar("M")
Actions = tuple[Action, ...]
Button = Literal["left", "right", "middle"]
CLICK, TYPE = "browser_mouse_click_xy", "browser_type"
# As (right, down).
DIRECTIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
)
_MAX_WAIT_S = 30
_MODIFIERS: Mapping[str, str] = MappingProxyType(
    {"control": "Control", "shift": "Shift", "alt": "Alt", "meta": "Meta", "super": "Meta", "hyper": "Meta"}
)
# From the providers' key names, in lower case, to Playwright's.
_KEYS: Mapping[str, str] = MappingProxyType(
    {**_MODIFIERS}
    | {"ctrl": "Control", "option": "Alt", "win": "Meta", "cmd": "ControlOrMeta", "command": "ControlOrMeta"}
    | {"controlormeta": "ControlOrMeta", "enter": "Enter", "return": "Enter", "tab": "Tab", "esc": "Escape"}
    | {"escape": "Escape", "space": "Space", " ": "Space", "backspace": "Backspace", "del": "Delete"}
    | {"delete": "Delete", "insert": "Insert", "home": "Home", "end": "End", "capslock": "CapsLock"}
    | {f"{prefix}{name}": f"Page{name.title()}" for prefix in ("page", "page_", "pg") for name in ("up", "down")}
    | {f"{prefix}{name}": f"Arrow{name.title()}" for prefix in ("arrow", "arrow_", "") for name in DIRECTIONS}
    # Names of the X window system.
    | {f"{name}_{side}": to for name, to in _MODIFIERS.items() for side in "lr"}
    | {"prior": "PageUp", "next": "PageDown", "menu": "ContextMenu", "caps_lock": "CapsLock", "iso_left_tab": "Tab"}
    | {"plus": "+", "minus": "-", "equal": "=", "comma": ",", "period": ".", "slash": "/", "backslash": "\\"}
    | {"semicolon": ";", "apostrophe": "'", "grave": "`", "bracketleft": "[", "bracketright": "]", "underscore": "_"}
    | {"asterisk": "*", "numbersign": "#", "at": "@", "exclam": "!", "question": "?", "colon": ":", "quotedbl": '"'}
    | {"multiply": "*", "add": "+", "subtract": "-", "divide": "/", "decimal": "."}
)
# The same keys on the number pad: `KP_Enter`.
_KEYPAD = "kp_"


def click(x: int, y: int, *, button: Button = "left", count: int = 1) -> Actions:
    """One or more clicks at a point."""
    other_button = {} if button == "left" else {"button": button}
    several = {} if count == 1 else {"clickCount": count}
    return _action(CLICK, x=x, y=y, **other_button, **several)


def move(x: int, y: int) -> Actions:
    """Move the mouse to a point."""
    return _action("browser_mouse_move_xy", x=x, y=y)


def drag(x: int, y: int, to_x: int, to_y: int) -> Actions:
    """Drag from one point to another with the left button."""
    return _action("browser_mouse_drag_xy", startX=x, startY=y, endX=to_x, endY=to_y)


def scroll(x: int, y: int, *, right: int = 0, down: int = 0) -> Actions:
    """Turn the mouse wheel over a point; amounts in pixels."""
    return _action("browser_mouse_wheel", x=x, y=y, deltaX=right, deltaY=down)


def type_text(text: str) -> Actions:
    """Type text into the focused element."""
    return _action(TYPE, text=text)


def press(*keys: str) -> Actions:
    """Press keys together, named as the provider names them."""
    names = [_named(key) for key in keys]
    # With a modifier, a capital letter would stand for Shift.
    letters = [name.lower() if len(names) > 1 and len(name) == 1 else name for name in names]
    # F1 to F12. Unknown names are passed on: the model receives the judge's complaint.
    spelled = [name.upper() if name[:1] in "fF" and name[1:].isdecimal() else name for name in letters]
    return _action("browser_press_key", key="+".join(spelled))


def _named(key: str) -> str:
    """The key's name for Playwright; an unknown one as it is."""
    name = key.lower() if key == " " else key.strip().lower().removeprefix(_KEYPAD)
    return _KEYS.get(name, name if key.strip().lower().startswith(_KEYPAD) else key)


def wait(seconds: float) -> Actions:
    """A pause."""
    return _action("browser_wait_for", time=min(max(seconds, 0), _MAX_WAIT_S))


def visit(url: str) -> Actions:
    """Open an address."""
    return _action("browser_navigate", url=url)


def go_back() -> Actions:
    """Go to the previous page."""
    return _action("browser_navigate_back")


def go_forward() -> Actions:
    """Go to the next page in the history, by keyboard: the judge has no tool for it."""
    return press("Alt", "ArrowRight")


def _action(tool: str, **params: object) -> Actions:
    return (Action(tool=tool, params=params),)


class ScreenView(Record):
    """What the model is shown: a screenshot and its size in pixels. `note` is feedback and other text for the model."""

    url: str
    screenshot: bytes
    media_type: str
    width: int
    height: int
    note: str = ""


class ModelTurn(Record):
    """A model's reply: actions with what it says about them, or its answer to the task.

    `problem` tells the model why a call was not executed, and with it all later ones. `confirmation` is the provider's
    reason for asking a person to confirm the actions.
    """

    actions: Actions = ()
    text: str = ""
    is_answer: bool = False
    problem: str = ""
    confirmation: str | None = None


def read_turn(
    calls: Sequence[tuple[str, Any]],
    models: Mapping[str, M],
    carry_out: Callable[[M, Any], Actions],
    *,
    text: str,
    reasons: Sequence[str] = (),
) -> ModelTurn:
    """The turn for a reply with these calls (names and arguments); without calls, `text` is the answer.

    `carry_out` receives the entry of `models` for a call's name, and the call's arguments. It raises `ValueError` for
    malformed arguments. `reasons` say why a person has to confirm.
    """
    actions: list[Action] = []
    problem = "" if calls or text.strip() else "Your last reply had neither an action nor text."
    for name, arguments in calls:
        try:
            if name not in models:
                raise ValueError("it is unknown")
            actions += carry_out(models[name], arguments)
        except ValueError as error:
            # Pydantic's message has a line for each mistake.
            why = clip(" ".join(str(error).split()), 200)
            problem = f"Not carried out, nor what you wanted after it: the action {clip(name, 40)!r}: {why}."
            break
    return ModelTurn(
        actions=tuple(actions),
        text=without_surrogates(text),
        is_answer=not calls and bool(text.strip()),
        problem=problem,
        confirmation="; ".join(reasons) if reasons else None,
    )


class Conversation(Protocol):
    """One attempt at a task."""

    async def ask(self, view: ScreenView) -> ModelTurn:
        """Show the result of the last actions and ask for the next. May be called again after a `ModelError`."""
        ...
