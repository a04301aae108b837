"""Anthropic's computer-use tool, `computer_toolset_20260801`: Claude Opus 4.8, Sonnet 5 and later models.

Wire format: https://platform.claude.com/docs/en/agents-and-tools/tool-use/computer-use-tool. Coordinates are pixels of
the screenshot. The full conversation is sent each time, unchanged, which the provider's cache makes cheap. Thinking
blocks are signed for exactly the content before them: if an old screenshot is left out, the later ones must go too.
So screenshots are left out rarely, and then many at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, Field

from judge.plugins.computer_use.computers import actions as computer
from shared.llm.providers.anthropic import AnthropicModel, Block, image_block, text_block

# How far one notch of the mouse wheel scrolls in most browsers.
_NOTCH_PX = 100
# The judge has no tool for these; `zoom` would show no more than the screenshot does.
_WITHHELD = ("cursor_position", "hold_key", "left_mouse_down", "left_mouse_up", "zoom")
_TOOLS = ({"type": "computer_toolset_20260801", "configs": {name: {"enabled": False} for name in _WITHHELD}},)
_MAX_SCREENSHOTS = 20
_KEPT_SCREENSHOTS = 10
_Coordinates = tuple[int, int]


class _Input(BaseModel):
    """The input of a tool call; which of the fields there are depends on the tool."""

    coordinate: _Coordinates | None = None
    start_coordinate: _Coordinates | None = None
    text: str | None = None
    scroll_direction: Literal["up", "down", "left", "right"] | None = None
    scroll_amount: int = 3
    duration: float = Field(1, ge=0)
    repeat: int = Field(1, ge=1, le=100)

    def need(self, name: str) -> Any:
        """The field `name`. Raises `ValueError` if it is missing."""
        value = getattr(self, name)
        if value is None or value == "":
            raise ValueError(f"{name} is missing")
        return value

    def without_keys(self) -> "_Input":
        """The input of a mouse action. Raises `ValueError` if keys are to be held, which the judge does not support."""
        if self.text:
            raise ValueError("it is not possible with keys held")
        return self


class AnthropicConversation:
    """See `actions.Conversation`. `_calls` are the calls whose results the model awaits."""

    def __init__(self, model: AnthropicModel, system: str, task: str) -> None:
        self._model = model
        self._system = system
        self._task = task
        self._messages: list[dict[str, Any]] = []
        self._calls: list[Block] = []
        self._screenshots = 0

    async def ask(self, view: computer.ScreenView) -> computer.ModelTurn:
        """See `actions.Conversation`."""
        if self._screenshots == _MAX_SCREENSHOTS:
            self._shorten()
        messages = [*self._messages, {"role": "user", "content": self._content(view)}]
        body = {
            "system": self._system,
            "tools": list(_TOOLS),
            "messages": messages,
            # What the model says between actions comes as thinking, by default without its text.
            "thinking": {"type": "adaptive", "display": "summarized"},
            "cache_control": {"type": "ephemeral"},
        }
        answer = await self._model.bounded(lambda: self._model.post(body))
        calls = [block for block in answer.content if block.type == "tool_use"]
        # An empty answer must not become part of the conversation.
        if calls or answer.text:
            self._messages = [*messages, {"role": "assistant", "content": answer.as_sent}]
            self._calls = calls
            self._screenshots += 1
        thoughts = "\n".join(block.thinking for block in answer.content if block.thinking)
        return computer.read_turn(
            [(call.name, call.input) for call in calls],
            _MEANINGS,
            lambda make, tool_input: make(_Input.model_validate(tool_input), view),
            # Without a call, the text is the answer to the task; thinking is not an answer.
            text=answer.text or (thoughts if calls else ""),
        )

    def _shorten(self) -> None:
        """Leave the older screenshots out, and all thoughts."""
        # A screenshot in each message, with an answer behind it.
        newest = len(self._messages) - 2 * _KEPT_SCREENSHOTS
        for place, message in enumerate(self._messages):
            content = message["content"] if place >= newest else _without_screenshot(message["content"])
            self._messages[place] = {**message, "content": _without_thoughts(content)}
        self._screenshots = _KEPT_SCREENSHOTS

    def _content(self, view: computer.ScreenView) -> list[dict[str, Any]]:
        picture = image_block(view.screenshot, view.media_type)
        # All calls led to the same page, so one image is enough. The note reports failures.
        content: list[dict[str, Any]] = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                **({"toolset_name": call.toolset_name} if call.toolset_name else {}),
                **({"content": [picture]} if call is self._calls[-1] else {}),
            }
            for call in self._calls
        ]
        content += [] if self._messages else [text_block(self._task)]
        content += [text_block(view.note)] if view.note else []
        content += [] if self._calls else [picture]
        return content


def _without_thoughts(content: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in content if block["type"] not in ("thinking", "redacted_thinking")]


def _without_screenshot(content: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    left_out = text_block("(an older screenshot, left out)")
    for block in content:
        if block["type"] == "image":
            yield left_out
        elif block["type"] == "tool_result" and "content" in block:
            yield {**block, "content": [left_out]}
        else:
            yield block


def _click(button: computer.Button = "left", count: int = 1) -> "_ActionMaker":
    def make(tool_input: _Input, _: computer.ScreenView) -> computer.Actions:
        x, y = tool_input.without_keys().need("coordinate")
        return computer.click(x, y, button=button, count=count)

    return make


def _move(tool_input: _Input, _: computer.ScreenView) -> computer.Actions:
    return computer.move(*tool_input.need("coordinate"))


def _drag(tool_input: _Input, _: computer.ScreenView) -> computer.Actions:
    return computer.drag(*tool_input.without_keys().need("start_coordinate"), *tool_input.need("coordinate"))


def _scroll(tool_input: _Input, view: computer.ScreenView) -> computer.Actions:
    x, y = tool_input.without_keys().coordinate or (view.width // 2, view.height // 2)
    right, down = computer.DIRECTIONS[tool_input.need("scroll_direction")]
    pixels = tool_input.scroll_amount * _NOTCH_PX
    return computer.scroll(x, y, right=right * pixels, down=down * pixels)


def _press(tool_input: _Input, _: computer.ScreenView) -> computer.Actions:
    keys = tool_input.need("text")
    pressed = keys.split("+") if len(keys) > 1 else list(keys)
    return computer.press(*pressed) * tool_input.repeat


_ActionMaker = Callable[[_Input, computer.ScreenView], computer.Actions]
_MEANINGS: Mapping[str, _ActionMaker] = MappingProxyType(
    {
        "left_click": _click(),
        "double_click": _click(count=2),
        "triple_click": _click(count=3),
        "right_click": _click("right"),
        "middle_click": _click("middle"),
        "left_click_drag": _drag,
        "mouse_move": _move,
        "scroll": _scroll,
        "type": lambda given, _: computer.type_text(given.need("text")),
        "key": _press,
        "wait": lambda given, _: computer.wait(given.duration),
        "screenshot": lambda _, __: (),
    }
)


CONVERSATION = AnthropicConversation
