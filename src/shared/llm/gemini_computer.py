"""Gemini's computer-use tool, with the actions of the 2.5 and 3 models (`click_at`) and of the later ones (`click`).

Wire format: https://ai.google.dev/gemini-api/docs/computer-use. Coordinates are thousandths of the screenshot's sides.
The whole conversation is sent each time, with the newest screenshots only.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from google.genai import types
from pydantic import BaseModel

from shared.llm import computer
from shared.llm.gemini import GeminiModel
from shared.text import without_surrogates

_GRID = 1000
_KEPT_SCREENSHOTS = 3
_CONFIRM = "require_confirmation"


class _Args(BaseModel):
    """The arguments of a function call; which of them there are depends on the function."""

    x: float | None = None
    y: float | None = None
    start_x: float | None = None
    start_y: float | None = None
    end_x: float | None = None
    end_y: float | None = None
    destination_x: float | None = None
    destination_y: float | None = None
    text: str | None = None
    press_enter: bool | None = None
    clear_before_typing: bool = True
    direction: Literal["up", "down", "left", "right"] | None = None
    magnitude: float = 800
    magnitude_in_pixels: float = 300
    key: str | None = None
    keys: str | list[str] | None = None
    seconds: float = 1
    url: str | None = None


class _Call(BaseModel):
    """A function call on a screenshot of a certain size."""

    args: _Args
    width: int
    height: int

    def need(self, name: str) -> Any:
        """An argument. Raises `ValueError` if it is missing."""
        value = getattr(self.args, name)
        if value is None:
            raise ValueError(f"{name} is missing")
        return value

    def point(self, x: str = "x", y: str = "y") -> tuple[int, int]:
        """A point in pixels."""
        return int(self.need(x) * self.width / _GRID), int(self.need(y) * self.height / _GRID)


class GeminiComputer(GeminiModel):
    """One model with the computer-use tool."""

    def converse(self, system: str, task: str) -> "_Conversation":
        """See `shared.llm.computer.ComputerModel`."""
        return _Conversation(self, system, task)

    async def respond(self, contents: list[types.Content], config: types.GenerateContentConfig) -> types.Content:
        """The model's part of the conversation. Raises a `ModelError`."""

        async def ask() -> types.Content:
            response = await self._generate(contents, config)
            return self._candidate(response).content or types.Content(role="model", parts=[])

        return await self._bounded(ask)


class _Conversation:
    """See `shared.llm.computer.Conversation`. `_calls` are those that the model awaits the result of."""

    def __init__(self, model: GeminiComputer, system: str, task: str) -> None:
        self._model = model
        self._task = task
        self._contents: list[types.Content] = []
        self._calls: list[types.FunctionCall] = []
        tool = types.ComputerUse(environment=types.Environment.ENVIRONMENT_BROWSER)
        self._config = types.GenerateContentConfig(
            system_instruction=system,
            tools=[types.Tool(computer_use=tool)],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    async def ask(self, view: computer.View) -> computer.Turn:
        """See `shared.llm.computer.Conversation`."""
        contents = [*self._contents, types.Content(role="user", parts=self._parts(view))]
        _drop_old_screenshots(contents)
        answer = await self._model.respond(contents, self._config)
        parts = answer.parts or []
        calls = [part.function_call for part in parts if part.function_call is not None]
        # An empty answer (a function call that the provider could not read) must not become part of the conversation.
        if parts:
            self._contents = [*contents, answer]
            self._calls = calls
        reasons = [reason for call in calls if (reason := _confirmation(call)) is not None]
        text = "\n".join(part.text for part in parts if part.text and not part.thought)
        return computer.Turn(
            gestures=tuple(each for call in calls for each in _gestures(call, view)),
            text=without_surrogates(text or _intent(calls)),
            confirmation="; ".join(reasons) if reasons else None,
        )

    def _parts(self, view: computer.View) -> list[types.Part]:
        parts = []
        for call in self._calls:
            blob = types.FunctionResponseBlob(mime_type=view.media_type, data=view.screenshot)
            # All calls led to the same page: one picture is enough.
            pictures = [types.FunctionResponsePart(inline_data=blob)] if call is self._calls[-1] else None
            result = types.FunctionResponse(id=call.id, name=call.name, response={"url": view.url}, parts=pictures)
            parts.append(types.Part(function_response=result))
        if not self._contents:
            parts.append(types.Part(text=self._task))
        if view.note:
            parts.append(types.Part(text=view.note))
        if not self._calls:
            parts.append(types.Part.from_bytes(data=view.screenshot, mime_type=view.media_type))
        return parts


def _drop_old_screenshots(contents: list[types.Content]) -> None:
    """Replace all but the newest contents with pictures by copies without them."""
    kept = 0
    for place in range(len(contents) - 1, -1, -1):
        parts = contents[place].parts or []
        if not any(_is_picture(part) for part in parts):
            continue
        kept += 1
        if kept > _KEPT_SCREENSHOTS:
            contents[place] = types.Content(role="user", parts=[made for part in parts if (made := _plain(part))])


def _is_picture(part: types.Part) -> bool:
    return part.inline_data is not None or (part.function_response is not None and bool(part.function_response.parts))


def _plain(part: types.Part) -> types.Part | None:
    if part.inline_data is not None:
        return None
    if part.function_response is None or not part.function_response.parts:
        return part
    return types.Part(function_response=part.function_response.model_copy(update={"parts": None}))


def _confirmation(call: types.FunctionCall) -> str | None:
    """Why the provider wants a person to confirm the call, if it does."""
    decision = (call.args or {}).get("safety_decision")
    if decision is None or (isinstance(decision, dict) and decision.get("decision") not in (None, _CONFIRM)):
        return None
    said = decision.get("explanation") if isinstance(decision, dict) else decision
    return str(said or "no reason given")


def _intent(calls: list[types.FunctionCall]) -> str:
    return "; ".join(str(intent) for call in calls if (intent := (call.args or {}).get("intent")))


def _gestures(call: types.FunctionCall, view: computer.View) -> computer.Gestures:
    """What one function call means."""

    def carry_out(make: _Make) -> computer.Gestures:
        return make(_Call(args=_Args.model_validate(call.args or {}), width=view.width, height=view.height))

    return computer.meaning_of(str(call.name), _GESTURES, carry_out)


def _click(button: computer.Button = "left", count: int = 1) -> "_Make":
    def make(call: _Call) -> computer.Gestures:
        x, y = call.point()
        return (computer.Click(x=x, y=y, button=button, count=count),)

    return make


def _move(call: _Call) -> computer.Gestures:
    x, y = call.point()
    return (computer.Move(x=x, y=y),)


def _drag(call: _Call) -> computer.Gestures:
    is_older = call.args.start_x is None
    x, y = call.point() if is_older else call.point("start_x", "start_y")
    to_x, to_y = call.point("destination_x", "destination_y") if is_older else call.point("end_x", "end_y")
    return (computer.Drag(x=x, y=y, to_x=to_x, to_y=to_y),)


def _type(call: _Call) -> computer.Gestures:
    enter = (computer.Press(keys=("Enter",)),) if call.args.press_enter else ()
    return (computer.Type(text=call.need("text")), *enter)


def _type_at(call: _Call) -> computer.Gestures:
    """The older action: a click, by default replacing what the field holds, and Enter after the text."""
    select = (computer.Press(keys=("Control", "a")),) if call.args.clear_before_typing else ()
    enter = (computer.Press(keys=("Enter",)),) if call.args.press_enter is not False else ()
    text = call.need("text")
    typed = computer.Type(text=text) if text else computer.Press(keys=("Delete",))
    return (*_click()(call), *select, typed, *enter)


def _press(call: _Call) -> computer.Gestures:
    keys = call.args.key or call.need("keys")
    return (computer.Press(keys=tuple(keys.split("+") if isinstance(keys, str) and len(keys) > 1 else keys)),)


def _scroll_at(call: _Call) -> computer.Gestures:
    """The older action, whose magnitude is in thousandths too."""
    side = call.height if call.args.direction in ("up", "down") else call.width
    return (_scrolled(call, call.point(), round(call.args.magnitude * side / _GRID)),)


def _scroll_document(call: _Call) -> computer.Gestures:
    middle = (call.width // 2, call.height // 2)
    side = call.height if call.args.direction in ("up", "down") else call.width
    return (_scrolled(call, middle, round(side * 0.8)),)


def _scrolled(call: _Call, point: tuple[int, int], pixels: int) -> computer.Gesture:
    right, down = computer.DIRECTIONS[call.need("direction")]
    return computer.Scroll(x=point[0], y=point[1], right=right * pixels, down=down * pixels)


_Make = Callable[[_Call], computer.Gestures]
_GESTURES: Mapping[str, _Make] = MappingProxyType(
    {
        # Both
        "drag_and_drop": _drag,
        "navigate": lambda call: (computer.Visit(url=call.need("url")),),
        "go_back": lambda _: (computer.Go(direction="back"),),
        "go_forward": lambda _: (computer.Go(direction="forward"),),
        # 2.5 and 3
        "click_at": _click(),
        "hover_at": _move,
        "type_text_at": _type_at,
        "key_combination": _press,
        "scroll_at": _scroll_at,
        "scroll_document": _scroll_document,
        "wait_5_seconds": lambda _: (computer.Wait(seconds=5),),
        "open_web_browser": lambda _: (computer.Look(),),
        # Later ones
        "click": _click(),
        "double_click": _click(count=2),
        "triple_click": _click(count=3),
        "middle_click": _click("middle"),
        "right_click": _click("right"),
        "move": _move,
        "type": _type,
        "press_key": _press,
        "hotkey": _press,
        "scroll": lambda call: (_scrolled(call, call.point(), round(call.args.magnitude_in_pixels)),),
        "wait": lambda call: (computer.Wait(seconds=call.args.seconds),),
        "take_screenshot": lambda _: (computer.Look(),),
    }
)
