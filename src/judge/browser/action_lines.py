"""Executed actions as factual lines in Mind2Web style: `<Search textbox> -> TYPE: Las Vegas`. Pure.

The format is Mind2Web's (Deng et al., 2023). The element's role and name come from the judge's snapshot. Text from a
page or a participant (names, typed text, addresses) is bounded, put on one line and stripped of angle brackets, so a
line always parses as one subject, one verb and one value (`shared.text.split_line`), and no text can look like a second
action. An element without a name is described (`judge.browser.unnamed`). Coordinates come last:
`<Search textbox> -> CLICK (412, 88)`.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from judge.browser import points
from judge.browser.tools import CheckedAction
from judge.browser.unnamed import description
from shared.snapshot import Node, Snapshot
from shared.text import clip

MAX_NAME_CHARS = 100
MAX_VALUE_CHARS = 200
MAX_SHOWN_URL_CHARS = 500
MAX_LISTED = 10
MAX_DOWNLOADS = 3

# Subject, verb and coordinates.
_BEFORE_VALUE = re.compile(r"<[^<>]+> -> [A-Z]+(?: [A-Z]+)*(?: \([\d., -]*\))?")
_BRACKETS = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})
# Control characters other than white space, bidirectional controls, invisible formatters, surrogates, tags, and private
# characters, which are the pictures of icon fonts.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\uf8ff\U000e0000-\U000e01ef\U000f0000-\U0010ffff]"
)


def action_line(checked: CheckedAction, snapshot: Snapshot | None, hit: points.Hits | None = None) -> str:
    """The line for an executed action. `snapshot` is the one that the action was checked against.

    `hit` are the elements that the browser found at the action's coordinates.
    """
    subject, verb, value = _facts(checked.tool, checked.params, snapshot, hit)
    at = " to ".join(map(points.written, points.points_of(checked.params)))
    return f"<{subject}> -> {verb}" + (f": {value}" if value else "") + (f" {at}" if at else "")


def acted_on(checked: CheckedAction, snapshot: Snapshot | None, hit: points.Hits | None = None) -> tuple[str, ...]:
    """The references of the elements that the line of `action_line` names; empty for an element without one."""
    tool, params, page = checked.tool, checked.params, snapshot or Snapshot()
    parts = (params, *params.get("fields", ()))
    refs = [part[key] for part in parts for key in ("target", "startTarget", "endTarget") if key in part]
    at_points = points.points_of(params)
    nodes = [points.element_at(page, *at) for at in zip(at_points, hit or [None] * len(at_points), strict=True)]
    if tool == "browser_type" and not refs:
        nodes.append(points.focused(page))
    named = [*(page.by_ref(ref) for ref in refs), *nodes]
    naming = [each for node in named if node is not None for each in _naming(page, node)]
    return (*refs, *(node.ref or "" for node in (*nodes, *naming) if node is not None))


def _name(page: Snapshot, node: Node) -> str:
    return one_line(page.name_of(node), MAX_NAME_CHARS)


def _naming(page: Snapshot, node: Node) -> tuple[Node, ...]:
    """The other elements from which the line takes what it calls this one."""
    described = None if _name(page, node) else description(page, node)
    return described.by if described else ()


def with_downloads(line: str, names: Sequence[str]) -> str:
    """The line with the names of the files that the page began to download: `<List link> -> CLICK (download: a.pdf)`.

    They come before the value, which the participant may have written, so that a value cannot fake a download.
    """
    if not names:
        return line
    # Parentheses would end the note.
    shown = [one_line(name, MAX_NAME_CHARS).replace("(", "[").replace(")", "]") for name in names[:MAX_DOWNLOADS]]
    more = f" and {len(names) - MAX_DOWNLOADS} more" if len(names) > MAX_DOWNLOADS else ""
    head = _BEFORE_VALUE.match(line)
    at = head.end() if head else len(line)
    return f"{line[:at]} (download: {', '.join(shown)}{more}){line[at:]}"


def one_line(text: str, limit: int) -> str:
    """Foreign text for use in a line: white space collapsed, invisible characters removed, angle brackets replaced."""
    # Cut twice: first to bound the work, then to the limit.
    short = clip(text, limit * 4)
    return clip(" ".join(_INVISIBLE.sub("", short).translate(_BRACKETS).split()), limit)


_CLICKS = MappingProxyType({1: "CLICK", 2: "DOUBLE CLICK", 3: "TRIPLE CLICK"})
# Subject and verb of the tools whose line depends on no parameter.
_PLAIN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "browser_navigate_back": ("navigation", "BACK"),
        "finish": ("page", "FINISH"),
        "browser_close": ("page", "CLOSE"),
    }
)


def _facts(
    tool: str, params: dict[str, Any], snapshot: Snapshot | None, hit: points.Hits | None
) -> tuple[str, str, str]:
    """Subject, verb and value of a line."""
    if tool in _PLAIN:
        return *_PLAIN[tool], ""
    facts = _element_facts(tool, params, snapshot) or _point_facts(tool, params, snapshot, hit)
    return facts or _page_facts(tool, params, snapshot)


def _element_facts(tool: str, params: dict[str, Any], snapshot: Snapshot | None) -> tuple[str, str, str] | None:
    """The facts of a tool that acts on an element, or on the page if it names none."""
    subject = _element(params["target"], snapshot) if "target" in params else "page"
    if tool == "browser_type" and "target" not in params:
        subject = _named(points.focused(snapshot) if snapshot else None, snapshot, "page")
    match tool:
        case "browser_click":
            return subject, *_click(params)
        case "browser_type":
            return subject, "TYPE AND ENTER" if params.get("submit") else "TYPE", _value(params["text"])
        case "browser_select_option":
            return subject, "SELECT", _list(params["values"])
        case "browser_hover":
            return subject, "HOVER", ""
        case "browser_drag":
            end = _element(params["endTarget"], snapshot)
            return _element(params["startTarget"], snapshot), "DRAG", f"to {end}"
        case "browser_snapshot":
            return subject, "SNAPSHOT", ""
        case "browser_scroll":
            return subject, "SCROLL", f"{params['direction']} {params['amount']}"
    return None


def _point_facts(
    tool: str, params: dict[str, Any], snapshot: Snapshot | None, hit: points.Hits | None
) -> tuple[str, str, str] | None:
    """The facts of a tool that acts on coordinates."""
    named = points.points_of(params)
    under = [
        points.element_at(snapshot or Snapshot(), *at) for at in zip(named, hit or [None] * len(named), strict=True)
    ]
    subject, *ends = [_named(node, snapshot, "page") for node in under] or ["page"]
    match tool:
        case "browser_mouse_click_xy":
            return subject, *_click(params)
        case "browser_mouse_move_xy":
            return subject, "HOVER", ""
        case "browser_mouse_drag_xy":
            return subject, "DRAG", f"to {ends[0]}"
        case "browser_mouse_wheel":
            return subject, "SCROLL", _wheel(params)
    return None


def _page_facts(tool: str, params: dict[str, Any], snapshot: Snapshot | None) -> tuple[str, str, str]:
    match tool:
        case "browser_navigate":
            return "navigation", "GOTO", _url(params["url"])
        case "browser_fill_form":
            return "form", "FILL", _fields(params["fields"], snapshot)
        case "browser_press_key":
            # A space is a key, but white space alone would be lost as a line's value.
            return "page", "PRESS", _value(params["key"]) or "Space"
        case "browser_tabs":
            return "navigation", "TAB", _tab(params)
        case "browser_wait_for":
            return "page", "WAIT", _wait(params)
        case "browser_handle_dialog":
            return "dialog", "DIALOG", _dialog(params)
        case "browser_find":
            return "page", "FIND", _value(params["text"])
    raise ValueError(f"no action line is known for the tool {tool!r}")


def _element(ref: str, snapshot: Snapshot | None) -> str:
    return _named(snapshot.by_ref(ref) if snapshot else None, snapshot, "element")


def _named(node: Node | None, snapshot: Snapshot | None, missing: str) -> str:
    if node is None or snapshot is None:
        return missing
    name = _name(snapshot, node)
    role = one_line(node.role, 40)
    if name:
        return f"{name} {role}"
    # The role comes first, so that no name looks like this.
    described = description(snapshot, node)
    return f"{role} {one_line(described.text, MAX_NAME_CHARS)}" if described else role


def _click(params: dict[str, Any]) -> tuple[str, str]:
    verb = _CLICKS[2 if params.get("doubleClick") else params.get("clickCount", 1)]
    if params.get("button", "left") != "left":
        verb = f"{params['button'].upper()} {verb}"
    # In a fixed order, so that equal actions have equal lines.
    held = sorted(set(params.get("modifiers") or ()))
    return verb, f"holding {'+'.join(held)}" if held else ""


def _wheel(params: dict[str, Any]) -> str:
    """`down 300, right 20`."""
    turns = (("deltaY", "up", "down"), ("deltaX", "left", "right"))
    moved = [(params.get(key, 0), back, forward) for key, back, forward in turns]
    return ", ".join(f"{forward if delta > 0 else back} {abs(delta)}" for delta, back, forward in moved if delta)


def _fields(fields: list[dict[str, Any]], snapshot: Snapshot | None) -> str:
    """`"Name textbox" = "Ann"; …`: quoted, so that no value can look like another field."""
    written = [f"{_quoted(_element(item['target'], snapshot))} = {_quoted(item['value'])}" for item in fields]
    return "; ".join(written[:MAX_LISTED]) + _rest(written, ";")


def _list(values: list[str]) -> str:
    if len(values) == 1:
        # Quotation marks are only around the values of a longer list.
        return _value(values[0]).replace('"', "'")
    return ", ".join(map(_quoted, values[:MAX_LISTED])) + _rest(values)


def _rest(listed: list[str], mark: str = "") -> str:
    more = len(listed) - MAX_LISTED
    return f"{mark} and {more} more" if more > 0 else ""


def _tab(params: dict[str, Any]) -> str:
    if "url" in params:
        return f"{params['action']} {_url(params['url'])}"
    return f"{params['action']} {params['index']}" if "index" in params else str(params["action"])


def _wait(params: dict[str, Any]) -> str:
    parts = [f"for {_quoted(params['text'])}"] if "text" in params else []
    parts += [f"until {_quoted(params['textGone'])} is gone"] if "textGone" in params else []
    parts += [f"{params['time']} s"] if "time" in params else []
    return ", ".join(parts)


def _dialog(params: dict[str, Any]) -> str:
    if not params["accept"]:
        return "dismiss"
    return f"accept with {_quoted(params['promptText'])}" if params.get("promptText") else "accept"


def _value(text: str) -> str:
    return one_line(text, MAX_VALUE_CHARS)


def _quoted(text: str) -> str:
    return '"' + _value(text).replace('"', "'") + '"'


def _url(url: str) -> str:
    """The address as the browser encodes it: without spaces and angle brackets."""
    plain = url.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
    return one_line(plain, MAX_SHOWN_URL_CHARS)
