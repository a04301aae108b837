"""Gemini's computer-use tool, with the actions of the 2.5 and 3 models (`click_at`) and of the later ones (`click`).

Wire format: https://ai.google.dev/gemini-api/docs/computer-use. Coordinates are thousandths of the screenshot's sides.
The full conversation is sent each time, with only the newest screenshots.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from google.genai import types
from pydantic import BaseModel

from judge.plugins.computer_use.computers import actions as computer
from shared.llm.providers.gemini import GeminiModel

_GRID = 1000
_KEPT_SCREENSHOTS = 3
_CONFIRM = "require_confirmation"


class _FunctionCall(BaseModel):
    """A function call on a screenshot of this size; which of the other fields there are depends on the function."""

    width: int
    height: int
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

    def need(self, name: str) -> Any:
        """The argument `name`. Raises `ValueError` if it is missing."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} is missing")
        return value

    @property
    def side(self) -> int:
        """The screenshot's width or height, whichever the scroll direction is along."""
        return self.height if self.direction in ("up", "down") else self.width

    def point(self, x: str = "x", y: str = "y") -> tuple[int, int]:
        """A point in pixels."""
        return int(self.need(x) * self.width / _GRID), int(self.need(y) * self.height / _GRID)


class GeminiConversation:
    """See `actions.Conversation`. `_answers[i]` is the reply to the view at the same index."""

    def __init__(self, model: GeminiModel, system: str, task: str) -> None:
        self._model = model
        self._task = task
        self._views: list[computer.ScreenView] = []
        self._answers: list[types.Content] = []
        tool = types.ComputerUse(environment=types.Environment.ENVIRONMENT_BROWSER)
        self._config = types.GenerateContentConfig(
            system_instruction=system,
            tools=[types.Tool(computer_use=tool)],
            # By default the SDK calls Python functions itself.
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    async def ask(self, view: computer.ScreenView) -> computer.ModelTurn:
        """See `actions.Conversation`."""
        views = [*self._views, view]
        for place, old in enumerate(views[:-_KEPT_SCREENSHOTS]):
            views[place] = old.model_copy(update={"screenshot": b""})
        contents: list[types.Content] = []
        for place, each in enumerate(views):
            calls = _calls(self._answers[place - 1]) if place else []
            contents.append(types.Content(role="user", parts=self._parts(each, calls, is_first=place == 0)))
            contents += self._answers[place : place + 1]
        _, candidate = await self._model.bounded(lambda: self._model.generate(contents, self._config))
        answer = candidate.content or types.Content(role="model", parts=[])
        # An empty answer (a function call that the provider could not read) must not become part of the conversation.
        if answer.parts:
            self._views = views
            self._answers.append(answer)
        calls = _calls(answer)
        text = "\n".join(part.text for part in answer.parts or () if part.text and not part.thought)
        return computer.read_turn(
            [(str(call.name), call.args or {}) for call in calls],
            _MEANINGS,
            lambda make, args: make(_FunctionCall.model_validate({**args, "width": view.width, "height": view.height})),
            text=text or _intent(calls),
            reasons=[reason for call in calls if (reason := _confirmation(call)) is not None],
        )

    def _parts(self, view: computer.ScreenView, calls: list[types.FunctionCall], *, is_first: bool) -> list[types.Part]:
        """The parts of the next message: the results of the model's calls, which all led to this view, and the note."""
        parts = []
        for call in calls:
            blob = types.FunctionResponseBlob(mime_type=view.media_type, data=view.screenshot)
            # One image is enough.
            pictures = [types.FunctionResponsePart(inline_data=blob)] if view.screenshot and call is calls[-1] else None
            result = types.FunctionResponse(id=call.id, name=call.name, response={"url": view.url}, parts=pictures)
            parts.append(types.Part(function_response=result))
        if is_first:
            parts.append(types.Part(text=self._task))
        if view.note:
            parts.append(types.Part(text=view.note))
        if view.screenshot and not calls:
            parts.append(types.Part.from_bytes(data=view.screenshot, mime_type=view.media_type))
        return parts


def _calls(answer: types.Content) -> list[types.FunctionCall]:
    return [part.function_call for part in answer.parts or () if part.function_call is not None]


def _confirmation(call: types.FunctionCall) -> str | None:
    """Why the provider wants a person to confirm the call, if it does."""
    decision = (call.args or {}).get("safety_decision")
    if decision is None or (isinstance(decision, dict) and decision.get("decision") not in (None, _CONFIRM)):
        return None
    explanation = decision.get("explanation") if isinstance(decision, dict) else decision
    return str(explanation or "no reason given")


def _intent(calls: list[types.FunctionCall]) -> str:
    return "; ".join(str(intent) for call in calls if (intent := (call.args or {}).get("intent")))


def _click(button: computer.Button = "left", count: int = 1) -> "_FunctionMaker":
    return lambda call: computer.click(*call.point(), button=button, count=count)


def _drag(call: _FunctionCall) -> computer.Actions:
    if call.start_x is None:  # the older action
        return computer.drag(*call.point(), *call.point("destination_x", "destination_y"))
    return computer.drag(*call.point("start_x", "start_y"), *call.point("end_x", "end_y"))


def _type(call: _FunctionCall) -> computer.Actions:
    return computer.type_text(call.need("text")) + (computer.press("Enter") if call.press_enter else ())


def _type_at(call: _FunctionCall) -> computer.Actions:
    """The older action: click, replace the field's content unless told not to, type, and press Enter."""
    text = call.need("text")
    return (
        computer.click(*call.point())
        + (computer.press("Control", "a") if call.clear_before_typing else ())
        + (computer.type_text(text) if text else computer.press("Delete"))
        + (computer.press("Enter") if call.press_enter is not False else ())
    )


def _press(call: _FunctionCall) -> computer.Actions:
    keys = call.key or call.need("keys")
    if isinstance(keys, str) and len(keys) > 1:
        keys = keys.split("+")
    return computer.press(*keys)


def _scroll_at(call: _FunctionCall) -> computer.Actions:
    """The older action, whose magnitude is in thousandths too."""
    return _scrolled(call, call.point(), call.magnitude * call.side / _GRID)


def _scroll_document(call: _FunctionCall) -> computer.Actions:
    return _scrolled(call, (call.width // 2, call.height // 2), call.side * 0.8)


def _scrolled(call: _FunctionCall, point: tuple[int, int], pixels: float) -> computer.Actions:
    right, down = computer.DIRECTIONS[call.need("direction")]
    return computer.scroll(*point, right=right * round(pixels), down=down * round(pixels))


_FunctionMaker = Callable[[_FunctionCall], computer.Actions]
_MEANINGS: Mapping[str, _FunctionMaker] = MappingProxyType(
    {
        # Both
        "drag_and_drop": _drag,
        "navigate": lambda call: computer.visit(call.need("url")),
        "go_back": lambda _: computer.go_back(),
        "go_forward": lambda _: computer.go_forward(),
        # 2.5 and 3
        "click_at": _click(),
        "hover_at": lambda call: computer.move(*call.point()),
        "type_text_at": _type_at,
        "key_combination": _press,
        "scroll_at": _scroll_at,
        "scroll_document": _scroll_document,
        "wait_5_seconds": lambda _: computer.wait(5),
        "open_web_browser": lambda _: (),
        # Later ones
        "click": _click(),
        "double_click": _click(count=2),
        "triple_click": _click(count=3),
        "middle_click": _click("middle"),
        "right_click": _click("right"),
        "move": lambda call: computer.move(*call.point()),
        "type": _type,
        "press_key": _press,
        "hotkey": _press,
        "scroll": lambda call: _scrolled(call, call.point(), call.magnitude_in_pixels),
        "wait": lambda call: computer.wait(call.seconds),
        "take_screenshot": lambda _: (),
    }
)


CONVERSATION = GeminiConversation
