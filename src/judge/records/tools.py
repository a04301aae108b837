"""The table of tools: one record for each, with everything that the judge knows about it. Pure.

Adding a tool of the browser's server means adding its record here. Tools not in the table are not offered,
including additions of newer servers. Left out deliberately, besides everything that runs code, reads or writes files or
changes the browser's configuration: `filename` and `isolatedContext` everywhere, and `regex` of `browser_find`, because
one expression can keep the server busy forever and so turn a lost task into a fault that does not count.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from judge.records.keys import key_name
from judge.records.user import MAX_QUESTIONS
from shared import action_lines as lines
from shared.fields import without_none
from shared.plugins import plugins
from shared.replies import CLOSE, FINISH

SCROLL = "browser_scroll"
ASK_USER = "ask_user"
FILE_UPLOAD, FILE_DROP = "browser_file_upload", "browser_drop"
# Their parameter: names of the task's files. The server's takes paths, which no participant can name.
FILE_NAMES = "paths"
# Its parameter where the task's answers declare permissions.
PERMISSION = "permission"
DEFAULT_SCROLL_PX = 600
MAX_SCROLL_PX = 10_000
MAX_WAIT_S = 30
# Well below the 100 that count as the site's fault: a participant must not be able to cause one.
MAX_OPEN_TABS = 20
MAX_CLICKS = 3
MAX_HOLD_MS = 10_000
# Of what a call is given, as JSON.
MAX_GIVEN_CHARS = 10_000

# The parameters that name an element, describe one, or name a point.
TARGETS = ("target", "startTarget", "endTarget")
DESCRIPTIONS = ("element", "startElement", "endElement", "name")
POINTS = (("x", "y"), ("startX", "startY"), ("endX", "endY"))
# How long the mouse button is held down before it is released, or moved in a drag.
HOLD = "hold_ms"

Params = Mapping[str, Any]
Schema = Mapping[str, Any]
# What an action can do to a page: show it, operate its controls, put something of the participant's into it, or
# replace it by an address that the participant names. The last kind ends the attempt.
Effect = Literal["looks", "presses", "writes", "goes", "ends"]


class ActionLineParts(NamedTuple):
    """The parts of an action line, before coordinates."""

    subject: str
    verb: str
    value: str = ""


class ActionPage(Protocol):
    """The page on which an action was executed; its elements as lines name them."""

    def element(self, ref: str) -> str:
        """The element with this reference."""
        ...

    def focused(self) -> str:
        """The element with the focus, or `page`."""
        ...

    def at_points(self) -> list[str]:
        """The elements at the action's points, in order, or `page`."""
        ...

    def shown(self, ref: str, asked: Sequence[str]) -> Sequence[str]:
        """What the element with this reference had after the action, as people see it; what was `asked` for before."""
        ...

    def other_value(self, ref: str, given: str | None = None) -> str | None:
        """The value of the element after the action, if it is known, may be recorded and is not the `given` one."""
        ...


@dataclass(frozen=True)
class Verb:
    """A verb of action lines, ours and other layouts'.

    `grammar` is how Online-Mind2Web's second schema writes it. `texts` are the texts in a line's value that the
    participant wrote, `None` for one that was not recorded. With `asks` they reach the judge, but no page. `at_point`:
    the line can end with coordinates. `enters`: it presses Enter after it wrote.
    """

    grammar: str
    texts: Callable[[str], Iterable[str | None]] = lambda value: (value,)
    asks: bool = False
    at_point: bool = False
    enters: bool = False


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool.

    The offer consists of a description (short, because it is sent with every message), each allowed parameter of the
    server with its description or with changes to its schema, and in `ours` the schemas of parameters that the judge
    itself handles. A tool with `by_server = False` is entirely the judge's.
    """

    offered: str
    does: Effect
    line: Callable[[Params, ActionPage], ActionLineParts]
    # What is recorded beside the line about the contents of elements.
    beside: Callable[[Params, ActionPage], str | None] = lambda params, scene: None
    params: Mapping[str, str | Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    ours: Mapping[str, Schema] = field(default_factory=dict)
    by_server: bool = True
    # It cannot be used without a reference, so participants that act by coordinates are not offered it.
    needs_element: bool = False
    # Its description where it acts on the focused element because it names none.
    at_focus: str = ""
    # The coordinates that it takes. Participants that act by references are not offered a tool with coordinates.
    points: tuple[tuple[str, str], ...] = ()
    # The parameters with text that the participant writes into pages, and that text.
    own_text: Mapping[str, Callable[[Any], Iterable[str | None]]] = field(default_factory=dict)
    # It can drop text selected elsewhere.
    drops: bool = False
    # The expected content of fields afterwards, by reference.
    fills: Callable[[Params], dict[str, str]] = lambda params: {}
    # The result is the answer itself, which the participant is sent.
    answers: bool = False
    # It takes time because the participant asks for it.
    waits: bool = False
    # Offered only for tasks or pages that need it.
    is_asked_for: bool = False
    # What it is given, all of which its line and its result repeat: recorded without listed secrets.
    given: Callable[[Params], Any] | None = None
    # For these settings, what carries it out in a browser (`judge.browser.own_tools.OwnTool`), if not the server.
    in_browser: Callable[[Any], Any] = lambda config: None
    # The probable mistakes in tasks about it, given these and the scenario's folder.
    warnings: Callable[[Any, Any], Iterable[str]] = lambda tasks, folder: ()
    # Rules that the schema does not express, given the number of open tabs: a sentence of refusal, or `None`. May
    # remove parameters without effect, and set defaults.
    rule: Callable[[dict[str, Any], int | None], str | None] = lambda params, open_tabs: None


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _integer(low: int, high: int | None = None) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, **without_none(maximum=high)}


# --- Action lines ---


def _click(params: Params) -> tuple[str, str]:
    clicks = {1: "CLICK", 2: "DOUBLE CLICK", 3: "TRIPLE CLICK"}
    verb = clicks[2 if params.get("doubleClick") else params.get("clickCount", 1)]
    if params.get(HOLD):
        verb = f"LONG {verb}"
    if params.get("button", "left") != "left":
        verb = f"{params['button'].upper()} {verb}"
    # In a fixed order, so that equal actions have equal lines.
    modifiers = sorted(set(params.get("modifiers") or ()))
    return verb, f"holding {'+'.join(modifiers)}" if modifiers else ""


def _target(params: Params, scene: ActionPage) -> str:
    return scene.element(params["target"]) if "target" in params else "page"


def _point(scene: ActionPage) -> str:
    return next(iter(scene.at_points()), "page")


def _type(params: Params, scene: ActionPage) -> ActionLineParts:
    subject = scene.element(params["target"]) if "target" in params else scene.focused()
    return ActionLineParts(subject, "TYPE AND ENTER" if params.get("submit") else "TYPE", lines.value(params["text"]))


def _typed_into(params: Params, scene: ActionPage) -> str | None:
    return scene.other_value(params.get("target", ""), params["text"])


def _fill(params: Params, scene: ActionPage) -> ActionLineParts:
    """`"Name textbox" = "Ann"; …`: quoted, so that no value can look like another field."""
    fields = [
        _field(scene, item["target"], ", ".join(scene.shown(item["target"], [item["value"]])))
        for item in params["fields"]
    ]
    return ActionLineParts("form", "FILL", "; ".join(fields[: lines.MAX_LISTED]) + lines.rest(fields, ";"))


def _filled_otherwise(params: Params, scene: ActionPage) -> str | None:
    others = [(each["target"], scene.other_value(each["target"], each["value"])) for each in params["fields"]]
    fields = [_field(scene, ref, value) for ref, value in others if value is not None]
    return "; ".join(fields) or None


def _field(scene: ActionPage, ref: str, value: str) -> str:
    return f"{lines.quoted(scene.element(ref))} = {lines.quoted(value)}"


def _tab(params: Params, _: ActionPage) -> ActionLineParts:
    if "url" in params:
        return ActionLineParts("navigation", "TAB", f"{params['action']} {lines.url(params['url'])}")
    index = f" {params['index']}" if "index" in params else ""
    return ActionLineParts("navigation", "TAB", f"{params['action']}{index}")


def _wait(params: Params, _: ActionPage) -> ActionLineParts:
    parts = [f"for {lines.quoted(params['text'])}"] if "text" in params else []
    parts += [f"until {lines.quoted(params['textGone'])} is gone"] if "textGone" in params else []
    parts += [f"{params['time']} s"] if "time" in params else []
    return ActionLineParts("page", "WAIT", ", ".join(parts))


def _dialog(params: Params, scene: ActionPage) -> ActionLineParts:
    if not params["accept"]:
        return ActionLineParts("dialog", "DIALOG", "dismiss")
    # Only a prompt takes a text.
    text = next(iter(scene.shown("", [params.get("promptText", "")])), "")
    return ActionLineParts("dialog", "DIALOG", f"accept with {lines.quoted(text)}" if text else "accept")


def _wheel(params: Params, scene: ActionPage) -> ActionLineParts:
    """`down 300, right 20`."""
    turns = (("deltaY", "up", "down"), ("deltaX", "left", "right"))
    moved = [(params.get(key, 0), back, forward) for key, back, forward in turns]
    value = ", ".join(f"{forward if delta > 0 else back} {abs(delta)}" for delta, back, forward in moved if delta)
    return ActionLineParts(_point(scene), "SCROLL", value)


def _unknown_line(_: Params, __: ActionPage) -> ActionLineParts:
    raise ValueError("a tool that is not in the table has no action line")


# --- The participant's text ---

_PASTING = re.compile(r"(?i)(?=.*(?:control|meta)).+\+(?:key)?v|shift\+insert")
# A key that writes a letter or digit; `Control+a` and the like write nothing.
_WRITING_KEY = re.compile(r"(?i)(?:shift\+)?(?:(?:key|digit|numpad)(\w)|(.))")


def _text(value: Any) -> Iterator[str]:
    yield str(value)


def _typed_by_key(key: Any) -> Iterator[str | None]:
    key = key_name(str(key))
    if _PASTING.fullmatch(key):
        yield None
    elif match := _WRITING_KEY.fullmatch(key):
        yield match[1] or match[2]
    elif not key.isascii():
        yield key


def _in_fields(fields: Any) -> Iterator[str]:
    # A participant may send the only field without a list.
    for each in fields if isinstance(fields, list) else [fields]:
        yield str(each.get("value", "") if isinstance(each, dict) else each or "")


_TYPED_FIELDS = frozenset({"textbox", "slider"})


def _filled_by_typing(params: Params) -> dict[str, str]:
    # A submitted text may rightly be gone.
    return {params["target"]: params["text"]} if "target" in params and not params.get("submit") else {}


def _filled_by_form(params: Params) -> dict[str, str]:
    return {each["target"]: each["value"] for each in params["fields"] if each.get("type") in _TYPED_FIELDS}


# --- Rules ---


def _tabs_rule(params: dict[str, Any], open_tabs: int | None) -> str | None:
    action = params["action"]
    if action == "select" and "index" not in params:
        return 'browser_tabs: "select" needs the "index" of a tab.'
    if action != "new":
        params.pop("url", None)
    if action not in ("select", "close"):
        params.pop("index", None)
    if open_tabs is not None and action == "close" and open_tabs < 2:
        # An attempt without a page would look like a fault of the browser.
        return "The only tab cannot be closed; call finish to end the task."
    if open_tabs is not None and action == "new" and open_tabs >= MAX_OPEN_TABS:
        return f"There are {open_tabs} open tabs; close one before you open another."
    return None


def _wait_rule(params: dict[str, Any], _: int | None) -> str | None:
    known = params.keys() & {"time", "text", "textGone"}
    return None if known else 'browser_wait_for: send "time", "text" or "textGone".'


def _key_rule(params: dict[str, Any], _: int | None) -> str | None:
    params["key"] = key_name(params["key"])
    return None if params["key"] else 'browser_press_key: "key" is empty; send a key such as Enter.'


def _find_rule(params: dict[str, Any], _: int | None) -> str | None:
    return None if params["text"].strip() else 'browser_find: "text" is empty; send the text to look for.'


def _form_rule(params: dict[str, Any], _: int | None) -> str | None:
    return None if params["fields"] else 'browser_fill_form: "fields" is empty; send at least one field.'


def _files_rule(params: dict[str, Any], _: int | None) -> str | None:
    params[FILE_NAMES] = list(dict.fromkeys(params[FILE_NAMES]))
    return None if params[FILE_NAMES] else f'"{FILE_NAMES}" is empty; send the name of at least one file.'


def _scroll_rule(params: dict[str, Any], _: int | None) -> None:
    params.setdefault("amount", DEFAULT_SCROLL_PX)


def _wheel_rule(params: dict[str, Any], _: int | None) -> str | None:
    if ("x" in params) != ("y" in params):
        return 'browser_mouse_wheel: send both "x" and "y", or neither.'
    if not (params.get("deltaX") or params.get("deltaY")):
        return 'browser_mouse_wheel: send "deltaX" or "deltaY", other than 0.'
    return None


# --- The table ---

_TARGET = {"type": "string", "description": "Element's ref, given in the snapshot as [ref=…]"}
_ELEMENT = "The element in words"
_OUR_ELEMENT = {"type": "string", "description": _ELEMENT}
_PRESS = {HOLD: {**_integer(0, MAX_HOLD_MS), "description": "For a long press: milliseconds until the release"}}
_GRAB = {HOLD: {**_integer(0, MAX_HOLD_MS), "description": "Milliseconds to hold before moving"}}
_FILE_LIST = {"type": "array", "items": {"type": "string"}, "description": "Names of files, without folders"}
_X, _Y = "CSS pixels from the left edge of the screenshot", "CSS pixels from its top"
_FORM_FIELD = {
    "target": _TARGET,
    "name": {"type": "string", "description": "The field in words"},
    "type": {"type": "string", "enum": ["textbox", "checkbox", "radio", "combobox", "slider"]},
    "value": {"type": "string", "description": "true or false for a checkbox"},
}
TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        "browser_navigate": Tool(
            offered="Go to a web address",
            params={"url": "http or https address"},
            does="goes",
            line=lambda params, _: ActionLineParts("navigation", "GOTO", lines.url(params["url"])),
            own_text={"url": _text},
        ),
        "browser_navigate_back": Tool(
            offered="Go back to the previous page", does="looks", line=lambda *_: ActionLineParts("navigation", "BACK")
        ),
        "browser_click": Tool(
            offered="Click an element",
            params={"target": _TARGET, "element": _ELEMENT, "doubleClick": {}, "button": {}, "modifiers": {}},
            ours=_PRESS,
            needs_element=True,
            does="presses",
            line=lambda params, scene: ActionLineParts(_target(params, scene), *_click(params)),
        ),
        "browser_type": Tool(
            offered="Type text into a field, replacing what it holds",
            params={
                "target": _TARGET,
                "element": _ELEMENT,
                "text": {},
                "submit": "Press Enter afterwards",
                "slowly": "One key at a time, for pages that react to keys",
            },
            at_focus="Type text into the focused field, at the caret",
            does="writes",
            line=_type,
            beside=_typed_into,
            own_text={"text": _text},
            fills=_filled_by_typing,
        ),
        "browser_fill_form": Tool(
            offered="Fill several fields",
            params={"fields": {"items": _object(_FORM_FIELD, "target", "name", "type", "value")}},
            needs_element=True,
            does="writes",
            line=_fill,
            beside=_filled_otherwise,
            own_text={"fields": _in_fields},
            fills=_filled_by_form,
            rule=_form_rule,
        ),
        "browser_select_option": Tool(
            offered="Select options in a dropdown",
            params={"target": _TARGET, "element": _ELEMENT, "values": {}},
            needs_element=True,
            does="writes",
            line=lambda params, scene: ActionLineParts(
                _target(params, scene), "SELECT", lines.quoted_list(scene.shown(params["target"], params["values"]))
            ),
            beside=lambda params, scene: scene.other_value(params["target"]),
        ),
        "browser_press_key": Tool(
            offered="Press a key",
            params={"key": "Such as Enter, ArrowDown, Control+a"},
            does="writes",
            # A space is a key, but white space alone would be lost as a line's value.
            line=lambda params, _: ActionLineParts("page", "PRESS", lines.value(params["key"]) or "Space"),
            own_text={"key": _typed_by_key},
            rule=_key_rule,
        ),
        "browser_hover": Tool(
            offered="Move the mouse over an element",
            params={"target": _TARGET, "element": _ELEMENT},
            needs_element=True,
            does="looks",
            line=lambda params, scene: ActionLineParts(_target(params, scene), "HOVER"),
        ),
        "browser_drag": Tool(
            offered="Drag one element onto another",
            params={"startTarget": _TARGET, "endTarget": _TARGET, "startElement": _ELEMENT, "endElement": _ELEMENT},
            ours=_GRAB,
            needs_element=True,
            does="writes",
            line=lambda params, scene: ActionLineParts(
                scene.element(params["startTarget"]), "DRAG", f"to {scene.element(params['endTarget'])}"
            ),
            drops=True,
        ),
        "browser_tabs": Tool(
            offered="List, open, close or select tabs",
            params={"action": {}, "index": {**_integer(0), "description": "For select and close"}, "url": "For new"},
            does="looks",
            line=_tab,
            own_text={"url": _text},
            answers=True,
            rule=_tabs_rule,
        ),
        "browser_wait_for": Tool(
            offered="Wait for a time, or for text to appear or go",
            params={
                "time": {"minimum": 0, "maximum": MAX_WAIT_S, "description": "Seconds"},
                "text": {},
                "textGone": {},
            },
            does="looks",
            line=_wait,
            waits=True,
            rule=_wait_rule,
        ),
        "browser_handle_dialog": Tool(
            offered="Answer the open dialog",
            params={"accept": {}, "promptText": "Answer to a prompt"},
            does="presses",
            line=_dialog,
            own_text={"promptText": _text},
        ),
        "browser_snapshot": Tool(
            offered="Get the snapshot of the page or of one element",
            params={"target": _TARGET, "depth": _integer(1, 100)},
            does="looks",
            line=lambda params, scene: ActionLineParts(_target(params, scene), "SNAPSHOT"),
        ),
        "browser_find": Tool(
            offered="Find text in the snapshot, also in what was left out",
            params={"text": {}, "maxResults": _integer(1, 100)},
            required=("text",),
            does="looks",
            line=lambda params, _: ActionLineParts("page", "FIND", lines.value(params["text"])),
            answers=True,
            rule=_find_rule,
        ),
        "browser_mouse_click_xy": Tool(
            offered="Click a point",
            params={"x": _X, "y": _Y, "button": {}, "clickCount": _integer(1, MAX_CLICKS)},
            ours={**_PRESS, "element": _OUR_ELEMENT},
            points=(("x", "y"),),
            does="presses",
            line=lambda params, scene: ActionLineParts(_point(scene), *_click(params)),
        ),
        "browser_mouse_move_xy": Tool(
            offered="Move the mouse to a point",
            params={"x": _X, "y": _Y},
            ours={"element": _OUR_ELEMENT},
            points=(("x", "y"),),
            does="looks",
            line=lambda _, scene: ActionLineParts(_point(scene), "HOVER"),
        ),
        "browser_mouse_drag_xy": Tool(
            offered="Drag from one point to another",
            params={"startX": _X, "startY": _Y, "endX": {}, "endY": {}},
            ours={**_GRAB, "startElement": _OUR_ELEMENT, "endElement": _OUR_ELEMENT},
            points=(("startX", "startY"), ("endX", "endY")),
            does="writes",
            line=lambda _, scene: ActionLineParts(_point(scene), "DRAG", f"to {scene.at_points()[1]}"),
            drops=True,
        ),
        "browser_mouse_wheel": Tool(
            offered="Turn the mouse wheel, at a point or where the mouse is",
            params={
                "deltaX": {**_integer(-MAX_SCROLL_PX, MAX_SCROLL_PX), "description": "Pixels to the right"},
                "deltaY": {**_integer(-MAX_SCROLL_PX, MAX_SCROLL_PX), "description": "Pixels down"},
            },
            ours={"x": {"type": "number"}, "y": {"type": "number"}, "element": _OUR_ELEMENT},
            points=(("x", "y"),),
            does="looks",
            line=_wheel,
            rule=_wheel_rule,
        ),
        SCROLL: Tool(
            offered="Scroll",
            by_server=False,
            ours={
                "direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
                "amount": {**_integer(1, MAX_SCROLL_PX), "description": f"Pixels, {DEFAULT_SCROLL_PX} if left out"},
                "target": {**_TARGET, "description": "Ref of what to scroll, the page if left out"},
                "element": _OUR_ELEMENT,
            },
            required=("direction",),
            does="looks",
            line=lambda params, scene: ActionLineParts(
                _target(params, scene), "SCROLL", f"{params['direction']} {params['amount']}"
            ),
            rule=_scroll_rule,
        ),
        FILE_UPLOAD: Tool(
            offered="Choose files of the task in the file chooser that the page has opened",
            by_server=False,
            is_asked_for=True,
            ours={FILE_NAMES: _FILE_LIST},
            required=(FILE_NAMES,),
            does="writes",
            line=lambda params, scene: ActionLineParts(
                "file chooser", "UPLOAD", lines.quoted_list(scene.shown("", params[FILE_NAMES]))
            ),
            rule=_files_rule,
        ),
        FILE_DROP: Tool(
            offered="Drop files of the task onto an element",
            by_server=False,
            is_asked_for=True,
            ours={"target": _TARGET, "element": _OUR_ELEMENT, FILE_NAMES: _FILE_LIST},
            required=("target", FILE_NAMES),
            needs_element=True,
            does="writes",
            line=lambda params, scene: ActionLineParts(
                _target(params, scene), "DROP", lines.quoted_list(params[FILE_NAMES])
            ),
            rule=_files_rule,
        ),
        ASK_USER: Tool(
            offered=f"Ask the user a question, at most {MAX_QUESTIONS} times",
            by_server=False,
            is_asked_for=True,
            ours={"question": {"type": "string", "description": "What to ask"}},
            required=("question",),
            does="looks",
            line=lambda params, _: ActionLineParts("user", "ASK", lines.value(params["question"])),
            answers=True,
        ),
        FINISH: Tool(
            offered="End the task",
            by_server=False,
            ours={"answer": {"type": "string", "description": "What the task asks for, or what was done"}},
            does="ends",
            line=lambda *_: ActionLineParts("page", "FINISH"),
        ),
        CLOSE: Tool(
            offered="End the task without an answer",
            by_server=False,
            does="ends",
            line=lambda *_: ActionLineParts("page", "CLOSE"),
        ),
    }
)
# A tool not in the table counts as writing.
_UNKNOWN = Tool(offered="", does="writes", line=_unknown_line)


def _none(_: str) -> tuple[()]:
    return ()


_WAITING = "WAIT page -> {verb} {value_or_subject}"
VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        "GOTO": Verb("page -> NAVIGATE -> go to {host}"),
        "TAB": Verb("page -> NAVIGATE -> tab: {tab}", texts=lambda value: (value,) if value.startswith("new ") else ()),
        "BACK": Verb("page -> GO_BACK -> return to the previous page", texts=_none),
        "CLICK": Verb("CLICK {target} -> {verb} the {subject}{more}", texts=_none, at_point=True),
        "DRAG": Verb("CLICK {target} -> drag the {subject} {value}", texts=_none, at_point=True),
        "TYPE": Verb("TYPE {target} -> type '{value}'"),
        "TYPE AND ENTER": Verb("TYPE {target} -> type '{value}' and press Enter", enters=True),
        "FILL": Verb("TYPE {target} -> fill in {value}"),
        "SELECT": Verb("SELECT {target} -> select '{value}'", texts=_none),
        "UPLOAD": Verb("CLICK {target} -> upload {value}", texts=_none),
        "DROP": Verb("CLICK {target} -> drop {value} on the {subject}", texts=_none, at_point=True),
        "PRESS": Verb("PRESS_KEY page -> press {value}", texts=_typed_by_key),
        "HOVER": Verb("HOVER {target} -> hover over the {subject}", texts=_none, at_point=True),
        "SCROLL": Verb("SCROLL {target} -> scroll {value}", texts=_none, at_point=True),
        "DIALOG": Verb(
            "PRESS_KEY page -> answer the dialog: {value}",
            texts=lambda value: (value,) if value.startswith("accept with ") else (),
        ),
        "WAIT": Verb(_WAITING, texts=lambda value: (value,) if '"' in value else (), asks=True),
        "FIND": Verb(_WAITING, asks=True),
        "ASK": Verb(_WAITING, asks=True),
        "CALL": Verb("CLICK page -> call the {subject} with {value}"),
        "SNAPSHOT": Verb(_WAITING, texts=_none),
        "FINISH": Verb(_WAITING, texts=_none),
        "CLOSE": Verb(_WAITING, texts=_none),
    }
)
# A verb of a foreign layout that none of our tools writes: its entire value counts as the participant's.
_FOREIGN = Verb("")


def tools() -> Mapping[str, Tool]:
    """All tools by name, in the order in which they are offered."""
    return {**TOOLS, **_of_plugins()}


@functools.cache
def _of_plugins() -> Mapping[str, Tool]:
    tables = (each.tools() for each in plugins().values() if each.tools)
    return {name: tool for table in tables for name, tool in table.items() if name not in TOOLS}


def tool_of(name: str) -> Tool:
    """The record of a tool."""
    return TOOLS.get(name) or _of_plugins().get(name, _UNKNOWN)


def verb_of(verb: str) -> Verb:
    """The record of an action line's verb: `DOUBLE CLICK`, `RIGHT CLICK` and the like are clicks."""
    return VERBS.get("CLICK" if verb.endswith("CLICK") else verb, _FOREIGN)


def moves_pointer(name: str) -> bool:
    """Whether a tool does no more than move the pointer, which shows what goes away again."""
    return name in ("browser_hover", "browser_mouse_move_xy")


def acts_on_page(name: str) -> bool:
    """Whether a tool can operate what a page offers, such as a link. Looking, waiting and changing pages cannot."""
    return tool_of(name).does in ("presses", "writes", "ends")


def writes(name: str, params: Params) -> bool:
    """Whether an action can put something of the participant's into the browser: text, a key, an address, a choice.

    The middle button pastes.
    """
    tool = tool_of(name)
    writes_always = tool.does in ("writes", "goes", "ends")
    return writes_always or not params.keys().isdisjoint(tool.own_text) or params.get("button") == "middle"


def saves_link(params: Params) -> bool:
    """Whether an action holds the key with which a browser saves what a link leads to, rather than opening it."""
    keys = [*(params.get("modifiers") or ()), *str(params.get("key", "")).split("+")]
    return any(key.lower().startswith("alt") for key in keys)


def texts_of(name: str, params: Params) -> Iterator[str | None]:
    """The text that an action writes into pages; `None` for text not recorded, such as a paste."""
    tool = tool_of(name)
    if tool.drops or params.get("button") == "middle":
        yield None
    for key, texts in tool.own_text.items():
        if params.get(key) is not None:
            yield from texts(params[key])


def reaches_into_frame(params: Params) -> bool:
    """Whether an action names an element of a frame: its reference begins with the frame's."""
    parts = (params, *params.get("fields", ()))
    return any(str(part.get(key, "")).startswith("f") for part in parts for key in TARGETS)
