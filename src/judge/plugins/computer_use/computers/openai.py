"""OpenAI's computer-use tools: `computer`, and `computer_use_preview` for the model of that name.

Wire format: the Responses API (https://platform.openai.com/docs/guides/tools-computer-use). The provider keeps the
conversation; each request names the response that it follows.
"""

import base64
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, Field

from judge.plugins.computer_use.computers import actions as computer
from shared.errors import ModelBlocked
from shared.llm.providers.openai import OpenAIModel

_PREVIEW = "openai:computer-use-preview"
_BUTTONS: Mapping[str, computer.Button] = MappingProxyType({"left": "left", "right": "right", "wheel": "middle"})
# The model's action names no duration.
_WAIT_S = 2


class _PathPoint(BaseModel):
    x: float
    y: float


class _ComputerAction(BaseModel):
    """An action; which of the fields there are depends on its type."""

    type: str
    x: float | None = None
    y: float | None = None
    button: str = "left"
    keys: list[str] | None = None
    path: list[_PathPoint] = Field(default_factory=list)
    scroll_x: float = 0
    scroll_y: float = 0
    text: str | None = None

    @property
    def point(self) -> tuple[int, int]:
        """Raises `ValueError` if there is none."""
        if self.x is None or self.y is None:
            raise ValueError("x and y are missing")
        return round(self.x), round(self.y)


class _Check(BaseModel):
    code: str | None = None
    message: str | None = None


class _OutputPart(BaseModel):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _OutputItem(BaseModel):
    """One item of an answer: a call of the computer, a message, the model's reasoning, or another."""

    type: str
    call_id: str | None = None
    action: dict[str, Any] | None = None
    actions: list[dict[str, Any]] | None = None
    pending_safety_checks: list[_Check] | None = None
    content: list[_OutputPart] | None = None
    summary: list[_OutputPart] | None = None


class _Response(BaseModel):
    id: str
    output: list[_OutputItem]


class OpenAIConversation:
    """See `actions.Conversation`. `_calls` are the calls whose results the model awaits."""

    def __init__(self, model: OpenAIModel, system: str, task: str) -> None:
        self._model = model
        self._system = system
        self._task = task
        self._previous: str | None = None
        self._calls: list[str] = []

    async def ask(self, view: computer.ScreenView) -> computer.ModelTurn:
        """See `actions.Conversation`."""
        body: dict[str, Any] = {
            "instructions": self._system,
            "tools": [self._tool(view)],
            "input": self._input(view),
            # Long conversations lose their oldest items instead of failing; computer-use-preview requires it.
            "truncation": "auto",
            **({"previous_response_id": self._previous} if self._previous else {}),
        }
        response = await self._model.bounded(lambda: self._model.post("/responses", body, self._response))
        calls = [item for item in response.output if item.type == "computer_call"]
        self._previous = response.id
        self._calls = [item.call_id for item in calls if item.call_id]
        checks = [check for item in calls for check in item.pending_safety_checks or ()]
        return computer.read_turn(
            [(str(action.get("type")), action) for item in calls for action in _actions(item)],
            _MEANINGS,
            lambda make, item: make(_read(item)),
            # Without a call, the text is the answer to the task; reasoning is not an answer.
            text=_text(response.output, "message") or (_text(response.output, "reasoning") if calls else ""),
            reasons=[check.message or check.code or "no reason given" for check in checks],
        )

    def _response(self, answer: object) -> _Response:
        response = _Response.model_validate(answer)
        pieces = [piece for item in response.output for piece in item.content or ()]
        if refusal := next((piece.refusal for piece in pieces if piece.refusal), None):
            raise ModelBlocked(f"{self._model.name} refused: {self._model.clean(refusal)}")
        return response

    def _tool(self, view: computer.ScreenView) -> dict[str, Any]:
        if not self._model.name.startswith(_PREVIEW):
            return {"type": "computer"}
        size = {"display_width": view.width, "display_height": view.height}
        return {"type": "computer_use_preview", **size, "environment": "browser"}

    def _input(self, view: computer.ScreenView) -> list[dict[str, Any]]:
        data = base64.b64encode(view.screenshot).decode("ascii")
        url = f"data:{view.media_type};base64,{data}"
        items: list[dict[str, Any]] = [
            {
                "type": "computer_call_output",
                "call_id": call,
                "output": {"type": "computer_screenshot", "image_url": url},
            }
            for call in self._calls
        ]
        texts = [] if self._previous else [self._task]
        texts += [view.note] if view.note else []
        content: list[dict[str, Any]] = [{"type": "input_text", "text": text} for text in texts]
        # The result of a call is the screenshot.
        content += [] if self._calls else [{"type": "input_image", "image_url": url}]
        return items + ([{"role": "user", "content": content}] if content else [])


def _actions(item: _OutputItem) -> list[dict[str, Any]]:
    if item.actions is not None:
        return item.actions
    # A call without an action becomes one without a type, so that the model gets a complaint.
    return [{}] if item.action is None else [item.action]


def _text(items: list[_OutputItem], kind: str) -> str:
    pieces = [piece for item in items if item.type == kind for piece in (item.content or item.summary or ())]
    return "\n".join(piece.text for piece in pieces if piece.text)


def _read(item: dict[str, Any]) -> _ComputerAction:
    action = _ComputerAction.model_validate(item)
    if action.keys and action.type != "keypress":
        raise ValueError("it is not possible with keys held")
    return action


def _click(action: _ComputerAction) -> computer.Actions:
    if action.button == "back":
        return computer.go_back()
    if action.button == "forward":
        return computer.go_forward()
    if action.button not in _BUTTONS:
        raise ValueError(f"unknown button {action.button[:40]!r}")
    return computer.click(*action.point, button=_BUTTONS[action.button])


def _drag(action: _ComputerAction) -> computer.Actions:
    if len(action.path) < 2:
        raise ValueError("the path has fewer than two points")
    start, end = action.path[0], action.path[-1]
    return computer.drag(round(start.x), round(start.y), round(end.x), round(end.y))


def _scroll(action: _ComputerAction) -> computer.Actions:
    return computer.scroll(*action.point, right=round(action.scroll_x), down=round(action.scroll_y))


def _type(action: _ComputerAction) -> computer.Actions:
    if action.text is None:
        raise ValueError("text is missing")
    return computer.type_text(action.text)


def _press(action: _ComputerAction) -> computer.Actions:
    if not action.keys:
        raise ValueError("keys are missing")
    return computer.press(*action.keys)


_MEANINGS: Mapping[str, Callable[[_ComputerAction], computer.Actions]] = MappingProxyType(
    {
        "click": _click,
        "double_click": lambda action: computer.click(*action.point, count=2),
        "move": lambda action: computer.move(*action.point),
        "drag": _drag,
        "scroll": _scroll,
        "type": _type,
        "keypress": _press,
        "wait": lambda _: computer.wait(_WAIT_S),
        "screenshot": lambda _: (),
    }
)


CONVERSATION = OpenAIConversation
