"""Open models that operate a computer by text, each in another dialect, at any OpenAI-compatible address.

A dialect is a row of `DIALECTS`: how a call is written, in which space its coordinates are, what its actions mean and
which of them stop. Fara and Qwen3-VL write `<tool_call>` with JSON, UI-TARS a line `Action: name(key='value')`. Points
are pixels of the screenshot as the model's own image processor resizes it, or thousandths of it.
"""

import ast
import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import AliasPath, BaseModel, Field

from judge.plugins.computer_use.computers import actions as computer
from shared.errors import ConfigError
from shared.fields import did_you_mean
from shared.text import clip, without_surrogates

if TYPE_CHECKING:
    from shared.llm.providers.openai import OpenAIModel

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TOOL_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)
_ACTION = re.compile(r"^\s*Action:\s*(.*)", re.DOTALL | re.MULTILINE)
# What such models are trained with: more screenshots are not better.
_MAX_SCREENSHOTS = 3
_MAX_TOKENS = 2_000
# A turn of the wheel that has a direction but no amount.
_SCROLL_PX = 500
_PAUSE_S = 3.0
Size = tuple[int, int]
WrittenCall = tuple[str, Mapping[str, Any]]


class Pointing:
    """The arguments of a call, with its points in pixels of the screenshot. `at` is where the mouse is."""

    def __init__(self, arguments: Mapping[str, Any], space: Size, screen: Size, at: Size) -> None:
        self._arguments = arguments
        self._space, self._screen = space, screen
        self.at = at

    def has(self, key: str) -> bool:
        """Whether the argument is there, and not empty."""
        return self._arguments.get(key) not in (None, "", [])

    def flag(self, key: str) -> bool:
        """Whether the argument is true."""
        return self._arguments.get(key) is True

    def text(self, key: str) -> str:
        """Raises `ValueError` if the argument is missing or not a text."""
        value = self._arguments.get(key)
        if not isinstance(value, str):
            raise ValueError(f"{key} is missing or not a text")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Raises `ValueError` if the argument is missing, without a default, or not a number."""
        value = self._arguments.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{key} is missing or not a number")
        return value

    def keys(self, key: str) -> list[str]:
        """Keys to press together: a list, or a text with spaces."""
        value = self._arguments.get(key)
        names = value.split() if isinstance(value, str) else value
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{key} names no key")
        return names

    def point(self, key: str) -> Size:
        """A point, or the middle of a box. Raises `ValueError` if there is none, or outside the screenshot."""
        value = self._arguments.get(key)
        found = _NUMBER.findall(value) if isinstance(value, str) else value
        numbers = [float(each) for each in found] if isinstance(found, list | tuple) and len(found) in (2, 4) else []
        if not numbers:
            raise ValueError(f"{key} is not a point")
        share = [
            (low + high) / 2 / side for low, high, side in zip(numbers[:2], numbers[-2:], self._space, strict=True)
        ]
        if not all(0 <= each <= 1 for each in share):
            raise ValueError(f"{key} is outside the screenshot")
        self.at = (
            min(round(share[0] * self._screen[0]), self._screen[0] - 1),
            min(round(share[1] * self._screen[1]), self._screen[1] - 1),
        )
        return self.at

    def point_or_mouse(self, key: str) -> Size:
        """The point of the argument, or where the mouse is."""
        return self.point(key) if self.has(key) else self.at


Meaning = Callable[[Pointing], computer.Actions]


def _typed(call: Pointing) -> computer.Actions:
    first = computer.click(*call.point("coordinate")) if call.has("coordinate") else ()
    cleared = computer.press("ControlOrMeta", "a") if call.flag("delete_existing_text") else ()
    entered = computer.press("Enter") if call.flag("press_enter") else ()
    return (*first, *cleared, *computer.type_text(call.text("text")), *entered)


def _content(call: Pointing) -> computer.Actions:
    text = call.text("content")
    line = text.removesuffix("\n")
    return (*computer.type_text(line), *(computer.press("Enter") if line != text else ()))


def _wheel(call: Pointing) -> computer.Actions:
    name = call.text("direction")
    if name not in computer.DIRECTIONS:
        raise ValueError(f"the direction is not one of {', '.join(computer.DIRECTIONS)}")
    right, down = computer.DIRECTIONS[name]
    return computer.scroll(*call.point_or_mouse("start_box"), right=right * _SCROLL_PX, down=down * _SCROLL_PX)


def _no_search(_: Pointing) -> computer.Actions:
    raise ValueError("there is no web search, only the task's website")


# Actions in JSON: positive pixels turn the wheel up.
_JSON: Mapping[str, tuple[str, Meaning]] = MappingProxyType(
    {
        "left_click": ("coordinate", lambda call: computer.click(*call.point("coordinate"))),
        "mouse_move": ("coordinate", lambda call: computer.move(*call.point("coordinate"))),
        "key": ("keys", lambda call: computer.press(*call.keys("keys"))),
        "scroll": ("pixels (positive: up)", lambda call: computer.scroll(*call.at, down=-round(call.number("pixels")))),
        "type": ("text", _typed),
        "wait": ("time", lambda call: computer.wait(call.number("time", _PAUSE_S))),
    }
)
_FARA: Mapping[str, tuple[str, Meaning]] = MappingProxyType(
    {
        **_JSON,
        "type": ("text, coordinate, press_enter, delete_existing_text", _typed),
        "visit_url": ("url", lambda call: computer.visit(call.text("url"))),
        "web_search": ("query", _no_search),
        "history_back": ("", lambda _: computer.go_back()),
        # What it says stays in the conversation.
        "pause_and_memorize_fact": ("fact", lambda _: ()),
    }
)
_QWEN: Mapping[str, tuple[str, Meaning]] = MappingProxyType(
    {
        **_JSON,
        "right_click": ("coordinate", lambda call: computer.click(*call.point("coordinate"), button="right")),
        "middle_click": ("coordinate", lambda call: computer.click(*call.point("coordinate"), button="middle")),
        "double_click": ("coordinate", lambda call: computer.click(*call.point("coordinate"), count=2)),
        "triple_click": ("coordinate", lambda call: computer.click(*call.point("coordinate"), count=3)),
        "left_click_drag": ("coordinate", lambda call: computer.drag(*call.at, *call.point("coordinate"))),
        "hscroll": ("pixels", lambda call: computer.scroll(*call.at, right=round(call.number("pixels")))),
    }
)
_TARS: Mapping[str, tuple[str, Meaning]] = MappingProxyType(
    {
        "click": ("start_box='(x,y)'", lambda call: computer.click(*call.point("start_box"))),
        "left_double": ("start_box='(x,y)'", lambda call: computer.click(*call.point("start_box"), count=2)),
        "right_single": ("start_box='(x,y)'", lambda call: computer.click(*call.point("start_box"), button="right")),
        "drag": (
            "start_box='(x,y)', end_box='(x,y)'",
            lambda call: computer.drag(*call.point("start_box"), *call.point("end_box")),
        ),
        "hotkey": ("key='ctrl c'", lambda call: computer.press(*call.keys("key"))),
        "type": ("content='text', with \\n at its end to press Enter", _content),
        "scroll": ("start_box='(x,y)', direction='up, down, left or right'", _wheel),
        "wait": ("", lambda _: computer.wait(_PAUSE_S)),
    }
)


def _json_calls(reply: str) -> tuple[str, list[WrittenCall]]:
    """What a reply says, and its calls. Raises `ValueError` for a call that cannot be read."""
    calls: list[WrittenCall] = []
    for text in _TOOL_CALL.findall(reply):
        value = json.loads(text)
        arguments = value.get("arguments") if isinstance(value, dict) else None
        if not isinstance(arguments, dict):
            raise ValueError("it has no arguments")
        calls.append((str(arguments.get("action")), arguments))
    return reply.partition("<tool_call>")[0].strip(), calls


def _line_calls(reply: str) -> tuple[str, list[WrittenCall]]:
    """As `_json_calls`; one call in each paragraph."""
    match = _ACTION.search(reply)
    said = (reply[: match.start()] if match else reply).strip().removeprefix("Thought:").strip()
    calls: list[WrittenCall] = []
    for text in filter(str.strip, match[1].split("\n\n") if match else ()):
        node = ast.parse(" ".join(text.split()), mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
            raise ValueError("it is not written as name(key='value')")
        calls.append((node.func.id, {each.arg or "": ast.literal_eval(each.value) for each in node.keywords}))
    return said, calls


def _resized(min_pixels: int, max_pixels: int = 12_845_056, patch: int = 28) -> Callable[[Size], Size]:
    """The size to which the model's image processor brings a screenshot: whole patches, and so many pixels at most."""

    def resize(screen: Size) -> Size:
        width, height = (max(patch, round(side / patch) * patch) for side in screen)
        if min_pixels <= width * height <= max_pixels:
            return width, height
        limit, rounded = (max_pixels, math.floor) if width * height > max_pixels else (min_pixels, math.ceil)
        scale = math.sqrt(limit / (screen[0] * screen[1]))
        wide, high = (rounded(side * scale / patch) * patch for side in screen)
        return max(patch, wide), max(patch, high)

    return resize


class Dialect(NamedTuple):
    """How a family of models writes its actions. `stops` are the actions that end, with the argument of the answer."""

    form: str
    read: Callable[[str], tuple[str, list[WrittenCall]]]
    space: Callable[[Size], Size]
    actions: Mapping[str, tuple[str, Meaning]]
    stops: Mapping[str, str]


_JSON_FORM = """Say in a sentence or two what you see and want, then give one call, and nothing after it:
<tool_call>
{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [x, y]}}
</tool_call>"""
_LINE_FORM = """Thought: what you see and want
Action: click(start_box='(x,y)')"""
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "fara": Dialect(_JSON_FORM, _json_calls, _resized(3_136), _FARA, MappingProxyType({"terminate": ""})),
        "qwen3-vl": Dialect(
            _JSON_FORM,
            _json_calls,
            lambda _: (1000, 1000),
            _QWEN,
            MappingProxyType({"answer": "text", "terminate": ""}),
        ),
        "ui-tars": Dialect(
            _LINE_FORM, _line_calls, _resized(78_400), _TARS, MappingProxyType({"finished": "content", "call_user": ""})
        ),
    }
)


def dialect_named(name: str) -> Dialect:
    """Raises `ConfigError` for an unknown one."""
    if name not in DIALECTS:
        raise ConfigError(f"--dialect: unknown dialect {name[:100]!r}", remedy=did_you_mean(name, DIALECTS))
    return DIALECTS[name]


class _Reply(BaseModel):
    content: str = Field(validation_alias=AliasPath("choices", 0, "message", "content"))


class DialectConversation:
    """See `actions.Conversation`."""

    def __init__(self, model: "OpenAIModel", system: str, task: str, dialect: Dialect) -> None:
        self._model = model
        self._system = system
        self._dialect = dialect
        self._task = task
        # Each reply, after what the model was shown for it.
        self._said: list[tuple[computer.ScreenView, str]] = []
        self._mouse: Size | None = None

    async def ask(self, view: computer.ScreenView) -> computer.ModelTurn:
        """See `actions.Conversation`."""
        body = {"messages": self._messages(view), "max_tokens": _MAX_TOKENS, "temperature": 0}
        reply = await self._model.bounded(lambda: self._model.post("/chat/completions", body, _Reply.model_validate))
        text = without_surrogates(reply.content)
        self._said.append((view, text))
        return self._turn(text, view)

    def _turn(self, reply: str, view: computer.ScreenView) -> computer.ModelTurn:
        try:
            said, calls = self._dialect.read(reply)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
            return computer.ModelTurn(problem=f"Not carried out: your call cannot be read: {clip(str(error), 200)}.")
        if not calls:
            return computer.ModelTurn(text=said, problem=f"Your last reply had no action. The form is:\n{self._form}")
        for name, arguments in calls:
            if name in self._dialect.stops:
                answer = arguments.get(self._dialect.stops[name])
                return computer.ModelTurn(is_answer=True, text=answer if isinstance(answer, str) and answer else said)
        return computer.read_turn(
            calls,
            {name: meaning for name, (_, meaning) in self._dialect.actions.items()},
            lambda meaning, arguments: self._carried_out(meaning, arguments, view),
            text=said,
        )

    def _carried_out(self, meaning: Meaning, arguments: Any, view: computer.ScreenView) -> computer.Actions:
        screen = (view.width, view.height)
        call = Pointing(arguments, self._dialect.space(screen), screen, self._mouse or (screen[0] // 2, screen[1] // 2))
        actions = meaning(call)
        self._mouse = call.at
        return actions

    @property
    def _form(self) -> str:
        return self._dialect.form

    def _instructions(self, view: computer.ScreenView) -> str:
        width, height = self._dialect.space((view.width, view.height))
        actions = "\n".join(f"- {name}: {arguments}" for name, (arguments, _) in self._dialect.actions.items())
        stops = "\n".join(f"- {name}: {argument} (ends the task)" for name, argument in self._dialect.stops.items())
        return (
            f"{self._system}\nThe screen has {width} x {height} points.\n\nThe form of a reply:\n{self._form}\n\n"
            f"The actions and their arguments:\n{actions}\n{stops}\n"
        )

    def _messages(self, view: computer.ScreenView) -> list[dict[str, Any]]:
        shown = [*self._said, (view, None)]
        messages: list[dict[str, Any]] = [{"role": "system", "content": self._instructions(view)}]
        for place, (each, reply) in enumerate(shown):
            has_image = place >= len(shown) - _MAX_SCREENSHOTS
            messages.append({"role": "user", "content": list(self._content(each, place == 0, has_image))})
            if reply is not None:
                messages.append({"role": "assistant", "content": reply})
        return messages

    def _content(self, view: computer.ScreenView, is_first: bool, has_image: bool) -> Iterator[dict[str, Any]]:
        texts: Sequence[str] = (self._task if is_first else "", view.note)
        yield {"type": "text", "text": "\n".join((*filter(None, texts), f"The page: {view.url}"))}
        if has_image:
            data = base64.b64encode(view.screenshot).decode("ascii")
            yield {"type": "image_url", "image_url": {"url": f"data:{view.media_type};base64,{data}"}}
