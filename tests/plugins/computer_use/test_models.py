"""The providers' computer-use tools over the wire: what is asked, and what the answers mean."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from helpers.llm.servers import (
    Answer,
    ModelCall,
    anthropic_answer,
    anthropic_call,
    anthropic_thought,
    computer_call,
    gemini_answer,
    gemini_calls,
    openai_error,
    openai_message,
    openai_response,
    serving,
)
from judge.plugins.computer_use.computers.actions import (
    Actions,
    Conversation,
    ModelTurn,
    ScreenView,
    click,
    drag,
    go_back,
    go_forward,
    move,
    press,
    scroll,
    type_text,
    visit,
    wait,
)
from judge.plugins.computer_use.participant import converse
from shared.errors import ModelBlocked, ModelError, ModelKeyRefused, ModelMalformed, ModelUnavailable
from shared.llm.http import HTTPModel

pytestmark = pytest.mark.slow

VIEW = ScreenView(url="https://a.test/", screenshot=b"one", media_type="image/jpeg", width=1000, height=500)
NEXT = VIEW.model_copy(update={"screenshot": b"two", "note": "It failed."})
PREVIEW = "computer-use-preview"


def adapter_of(provider: str) -> type[HTTPModel]:
    # Late: every test process imports this file, one runs its tests, and each SDK takes a second.
    from shared.llm.providers.anthropic import AnthropicModel
    from shared.llm.providers.gemini import GeminiModel
    from shared.llm.providers.openai import OpenAIModel

    return {"anthropic": AnthropicModel, "gemini": GeminiModel, "openai": OpenAIModel}[provider]


@asynccontextmanager
async def talking(
    provider: Literal["anthropic", "gemini", "openai"], *answers: Answer, model: str = "m"
) -> AsyncIterator[tuple[Conversation, list[ModelCall]]]:
    """A conversation with a server that gives these answers, and the requests that it received."""
    async with serving(*answers) as server:
        client = adapter_of(provider)(model, api_key="secret-key", base_url=server.url, timeout_s=5, retry_delay_s=0.01)
        try:
            yield converse(client, "Be careful.", "Task: Buy"), server.received
        finally:
            await client.aclose()


# --- OpenAI ---


async def openai_turn(*actions: dict[str, Any]) -> ModelTurn:
    async with talking("openai", openai_response(computer_call(*actions))) as (conversation, _):
        return await conversation.ask(VIEW)


@pytest.mark.parametrize(
    ("action", "actions"),
    [
        ({"type": "click", "x": 4, "y": 5, "button": "left"}, click(4, 5)),
        ({"type": "click", "x": 4, "y": 5, "button": "wheel", "keys": None}, click(4, 5, button="middle")),
        ({"type": "click", "x": 4, "y": 5, "button": "back"}, go_back()),
        ({"type": "double_click", "x": 4, "y": 5}, click(4, 5, count=2)),
        ({"type": "move", "x": 4, "y": 5}, move(4, 5)),
        ({"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 9, "y": 9}, {"x": 3, "y": 4}]}, drag(1, 2, 3, 4)),
        ({"type": "scroll", "x": 4, "y": 5, "scroll_x": 0, "scroll_y": -300}, scroll(4, 5, down=-300)),
        ({"type": "type", "text": "lamp"}, type_text("lamp")),
        ({"type": "keypress", "keys": ["CTRL", "A"]}, press("CTRL", "A")),
        ({"type": "wait"}, wait(2)),
        ({"type": "screenshot"}, ()),
    ],
)
async def test_an_action_of_openais_is_understood(action: dict[str, Any], actions: Actions) -> None:
    assert (await openai_turn(action)).actions == actions


@pytest.mark.parametrize(
    "action",
    [
        {"type": "teleport", "x": 1, "y": 1},
        {"type": "click"},
        {"type": "click", "x": "far", "y": 1},
        {"type": "click", "x": 1, "y": 1, "button": "third"},
        {"type": "click", "x": 1, "y": 1, "keys": ["SHIFT"]},
        {"type": "drag", "path": [{"x": 1, "y": 1}]},
        {"type": "type"},
        {"type": "keypress", "keys": []},
        {"x": 1},
    ],
)
async def test_an_unknown_or_malformed_action_of_openais_is_named(action: dict[str, Any]) -> None:
    turn = await openai_turn(action)
    assert turn.actions == ()
    assert "Not carried out" in turn.problem
    assert len(turn.problem) < 300


async def test_several_actions_and_calls_of_openais_are_one_turn() -> None:
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Search first."}]},
        computer_call({"type": "move", "x": 1, "y": 1}, {"type": "type", "text": "a"}, call_id="c1"),
        computer_call({"type": "wait"}, call_id="c2"),
    ]
    async with talking("openai", openai_response(*items), openai_response(openai_message("Done."))) as (
        conversation,
        requests,
    ):
        turn = await conversation.ask(VIEW)
        last = await conversation.ask(NEXT)
    assert turn.actions == move(1, 1) + type_text("a") + wait(2)
    assert (turn.text, turn.confirmation) == ("Search first.", None)
    assert (last.actions, last.text) == ((), "Done.")
    results = [item for item in requests[1].body["input"] if item.get("type") == "computer_call_output"]
    assert [result["call_id"] for result in results] == ["c1", "c2"]


async def test_openai_is_asked_with_the_task_first_and_the_result_later() -> None:
    answers = [
        openai_response(computer_call({"type": "wait"}), response_id="r1"),
        openai_response(openai_message("ok")),
    ]
    async with talking("openai", *answers) as (conversation, requests):
        await conversation.ask(VIEW)
        await conversation.ask(NEXT)
    first, second = (request.body for request in requests)
    assert requests[0].path.endswith("/responses")
    assert (first["model"], first["instructions"], first["tools"]) == ("m", "Be careful.", [{"type": "computer"}])
    text, image = first["input"][0]["content"]
    assert text == {"type": "input_text", "text": "Task: Buy"}
    assert base64.b64decode(image["image_url"].partition(",")[2]) == b"one"
    assert second["previous_response_id"] == "r1"
    result, note = second["input"]
    assert base64.b64decode(result["output"]["image_url"].partition(",")[2]) == b"two"
    assert "acknowledged_safety_checks" not in result
    assert note["content"] == [{"type": "input_text", "text": "It failed."}]


async def test_the_older_model_of_openais_gets_the_older_tool() -> None:
    async with talking("openai", openai_response(openai_message("ok")), model=PREVIEW) as (conversation, requests):
        await conversation.ask(VIEW)
    size = {"display_width": 1000, "display_height": 500}
    assert requests[0].body["tools"] == [{"type": "computer_use_preview", **size, "environment": "browser"}]
    assert requests[0].body["truncation"] == "auto"


async def test_openais_safety_checks_want_a_confirmation() -> None:
    call = computer_call({"type": "wait"}, checks=("The page gives instructions.", "Sensitive site."))
    async with talking("openai", openai_response(call)) as (conversation, _):
        turn = await conversation.ask(VIEW)
    assert turn.confirmation == "The page gives instructions.; Sensitive site."


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(b"not json"), ModelMalformed),
        (Answer({"id": "r", "output": "text"}), ModelMalformed),
        (Answer({"output": []}), ModelMalformed),
        (Answer({"id": "r", "output": [], "error": {"message": "overloaded"}}), ModelUnavailable),
        (openai_response({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}), ModelBlocked),
        (openai_error(401, "bad secret-key"), ModelKeyRefused),
    ],
)
async def test_an_unusable_answer_of_openais_is_a_model_error(answer: Answer, error: type[ModelError]) -> None:
    async with talking("openai", answer) as (conversation, _):
        with pytest.raises(error) as caught:
            await conversation.ask(VIEW)
    assert "secret-key" not in str(caught.value)


async def test_after_an_error_the_same_is_asked_again() -> None:
    answers = [openai_response(computer_call({"type": "wait"})), Answer(b"?"), openai_response(openai_message("ok"))]
    async with talking("openai", *answers) as (conversation, requests):
        await conversation.ask(VIEW)
        with pytest.raises(ModelMalformed):
            await conversation.ask(NEXT)
        assert (await conversation.ask(NEXT)).text == "ok"
    assert requests[1].body == requests[2].body


# --- Gemini ---


async def gemini_turn(name: str, args: dict[str, Any]) -> ModelTurn:
    async with talking("gemini", gemini_calls((name, args))) as (conversation, _):
        return await conversation.ask(VIEW)


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("KP_Enter", "Enter"),
        ("KP_5", "5"),
        ("KP_Add", "+"),
        ("KP_Page_Up", "PageUp"),
        ("Control_L a", "Control+a"),
        ("Shift_R Tab", "Shift+Tab"),
        ("Super_L", "Meta"),
        ("ctrl plus", "Control++"),
        ("minus", "-"),
        ("Page_Down", "PageDown"),
        ("Prior", "PageUp"),
        ("F5", "F5"),
        ("nothing", "nothing"),
    ],
)
def test_key_names_of_the_x_window_system_are_translated(keys: str, key: str) -> None:
    assert [action.params for action in press(*keys.split())] == [{"key": key}]


SELECT = press("Control", "a")
ENTER = press("Enter")
POINT = {"x": 500, "y": 500}


@pytest.mark.parametrize(
    ("name", "args", "actions"),
    [
        ("click_at", {"x": 999, "y": 0}, click(999, 0)),
        ("click_at", POINT, click(500, 250)),
        ("hover_at", POINT, move(500, 250)),
        ("type_text_at", POINT | {"text": "a"}, click(500, 250) + SELECT + type_text("a") + ENTER),
        ("type_text_at", POINT | {"text": ""}, click(500, 250) + SELECT + press("Delete") + ENTER),
        (
            "type_text_at",
            POINT | {"text": "a", "press_enter": False, "clear_before_typing": False},
            click(500, 250) + type_text("a"),
        ),
        ("key_combination", {"keys": "Control+A"}, press("Control", "A")),
        ("scroll_at", POINT | {"direction": "down", "magnitude": 400}, scroll(500, 250, down=200)),
        ("scroll_document", {"direction": "left"}, scroll(500, 250, right=-800)),
        ("drag_and_drop", POINT | {"destination_x": 100, "destination_y": 100}, drag(500, 250, 100, 50)),
        ("navigate", {"url": "https://a.test/x"}, visit("https://a.test/x")),
        ("go_back", {}, go_back()),
        ("go_forward", {}, go_forward()),
        ("wait_5_seconds", {}, wait(5)),
        ("open_web_browser", {}, ()),
        ("triple_click", POINT | {"intent": "select"}, click(500, 250, count=3)),
        ("right_click", POINT, click(500, 250, button="right")),
        ("type", {"text": "a", "press_enter": True}, type_text("a") + ENTER),
        ("press_key", {"key": "+"}, press("+")),
        ("hotkey", {"keys": ["CTRL", "A"]}, press("CTRL", "A")),
        ("scroll", POINT | {"direction": "up"}, scroll(500, 250, down=-300)),
        ("drag_and_drop", {"start_x": 0, "start_y": 0, "end_x": 100, "end_y": 100}, drag(0, 0, 100, 50)),
        ("wait", {"seconds": 3}, wait(3)),
    ],
)
async def test_an_action_of_geminis_is_understood(name: str, args: dict[str, Any], actions: Actions) -> None:
    assert (await gemini_turn(name, args)).actions == actions


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("search", {}),
        ("mouse_down", POINT),
        ("click_at", {"x": 1}),
        ("click_at", {"x": "left", "y": []}),
        ("type", {}),
        ("scroll", POINT | {"direction": "around"}),
        ("press_key", {}),
    ],
)
async def test_an_unknown_or_malformed_action_of_geminis_is_named(name: str, args: dict[str, Any]) -> None:
    turn = await gemini_turn(name, args)
    assert turn.actions == ()
    assert "Not carried out" in turn.problem
    assert len(turn.problem) < 300


async def test_gemini_is_sent_the_conversation_with_a_result_for_each_call() -> None:
    answers = [gemini_calls(("go_back", {}), ("wait_5_seconds", {}), text="I go back."), gemini_answer("Done.")]
    async with talking("gemini", *answers) as (conversation, requests):
        turn = await conversation.ask(VIEW)
        last = await conversation.ask(NEXT)
    assert (turn.actions, turn.text) == (go_back() + wait(5), "I go back.")
    assert (last.actions, last.text) == ((), "Done.")
    assert requests[0].body["tools"] == [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}]
    task, model, results = requests[1].body["contents"]
    assert task["parts"][0] == {"text": "Task: Buy"}
    # The signature must come back as it was.
    assert [part.get("thoughtSignature") for part in model["parts"]] == [None, "c2ln", "c2ln"]
    first, second, note = results["parts"]
    assert [part["functionResponse"]["id"] for part in (first, second)] == ["f0", "f1"]
    assert first["functionResponse"]["response"] == {"url": "https://a.test/"}
    assert "parts" not in first["functionResponse"]
    (picture,) = second["functionResponse"]["parts"]
    # As the SDK writes it; the API takes both spellings.
    assert base64.urlsafe_b64decode(picture["inline_data"]["data"]) == b"two"
    assert note == {"text": "It failed."}


async def test_gemini_is_sent_the_newest_screenshots_only() -> None:
    async with talking("gemini", gemini_calls(("wait_5_seconds", {}))) as (conversation, requests):
        for _ in range(6):
            await conversation.ask(VIEW)
    parts = [part for content in requests[-1].body["contents"] for part in content["parts"]]
    pictured = [part for part in parts if "inlineData" in part or "parts" in part.get("functionResponse", {})]
    assert (len(pictured), parts[0]) == (3, {"text": "Task: Buy"})
    assert len([part for part in parts if "functionResponse" in part]) == 5


@pytest.mark.parametrize(
    ("decision", "confirmation"),
    [
        ({"decision": "require_confirmation", "explanation": "A cookie banner."}, "A cookie banner."),
        ({"explanation": "Unclear."}, "Unclear."),
        ("confirm", "confirm"),
        ({"decision": "regular"}, None),
        (None, None),
    ],
)
async def test_geminis_safety_decision_wants_a_confirmation(decision: object, confirmation: str | None) -> None:
    async with talking("gemini", gemini_calls(("go_back", {"safety_decision": decision}))) as (conversation, _):
        assert (await conversation.ask(VIEW)).confirmation == confirmation


@pytest.mark.parametrize("before", [[], [gemini_calls(("go_back", {}))]], ids=["at the start", "with a call open"])
async def test_an_empty_answer_of_geminis_leaves_no_trace_in_the_conversation(before: list[Answer]) -> None:
    malformed = gemini_calls(finish="MALFORMED_FUNCTION_CALL")
    async with talking("gemini", *before, malformed, gemini_answer("Done.")) as (conversation, requests):
        for _ in before:
            await conversation.ask(VIEW)
        turn = await conversation.ask(VIEW)
        await conversation.ask(VIEW)
    assert (turn.actions, turn.text) == ((), "")
    assert requests[-2].body["contents"] == requests[-1].body["contents"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(b"not json"), ModelMalformed),
        (Answer({"candidates": []}), ModelMalformed),
        (gemini_calls(finish="SAFETY"), ModelBlocked),
        (Answer({"promptFeedback": {"blockReason": "OTHER"}}), ModelBlocked),
    ],
)
async def test_an_unusable_answer_of_geminis_is_a_model_error(answer: Answer, error: type[ModelError]) -> None:
    async with talking("gemini", answer) as (conversation, _):
        with pytest.raises(error):
            await conversation.ask(VIEW)


# --- Anthropic ---


async def anthropic_turn(name: str, **tool_input: Any) -> ModelTurn:
    async with talking("anthropic", anthropic_answer(anthropic_call(name, **tool_input))) as (conversation, _):
        return await conversation.ask(VIEW)


AT = {"coordinate": [4, 5]}


@pytest.mark.parametrize(
    ("name", "tool_input", "actions"),
    [
        ("left_click", AT, click(4, 5)),
        ("right_click", AT, click(4, 5, button="right")),
        ("middle_click", AT, click(4, 5, button="middle")),
        ("double_click", AT, click(4, 5, count=2)),
        ("triple_click", AT, click(4, 5, count=3)),
        ("left_click_drag", AT | {"start_coordinate": [1, 2]}, drag(1, 2, 4, 5)),
        ("mouse_move", AT, move(4, 5)),
        ("scroll", AT | {"scroll_direction": "up", "scroll_amount": 2}, scroll(4, 5, down=-200)),
        ("scroll", {"scroll_direction": "right", "scroll_amount": 1}, scroll(500, 250, right=100)),
        ("type", {"text": "lamp"}, type_text("lamp")),
        ("key", {"text": "ctrl+s"}, press("ctrl", "s")),
        ("key", {"text": "+"}, press("+")),
        ("key", {"text": "Down", "repeat": 2}, press("Down") + press("Down")),
        ("wait", {"duration": 3}, wait(3)),
        ("screenshot", {}, ()),
    ],
)
async def test_an_action_of_anthropics_is_understood(name: str, tool_input: dict[str, Any], actions: Actions) -> None:
    assert (await anthropic_turn(name, **tool_input)).actions == actions


@pytest.mark.parametrize(
    ("name", "tool_input"),
    [
        ("zoom", {"region": [0, 0, 9, 9]}),
        ("left_mouse_down", {}),
        ("left_click", {}),
        ("left_click", {"coordinate": [4]}),
        ("left_click", {"coordinate": ["far", 5]}),
        ("left_click", AT | {"text": "shift"}),
        ("left_click_drag", AT),
        ("scroll", AT | {"scroll_direction": "around"}),
        ("type", {"text": ""}),
        ("key", {"text": "Down", "repeat": 101}),
    ],
)
async def test_an_unknown_or_malformed_action_of_anthropics_is_named(name: str, tool_input: dict[str, Any]) -> None:
    turn = await anthropic_turn(name, **tool_input)
    assert turn.actions == ()
    assert "Not carried out" in turn.problem
    assert len(turn.problem) < 300


async def test_anthropic_is_sent_the_conversation_unchanged_with_a_result_for_each_call() -> None:
    messages = [
        anthropic_thought("First a click."),
        anthropic_call("left_click", "t1", **AT),
        anthropic_call("wait", "t2"),
    ]
    async with talking("anthropic", anthropic_answer(*messages), anthropic_answer("Done.")) as (conversation, requests):
        turn = await conversation.ask(VIEW)
        last = await conversation.ask(NEXT)
    assert (turn.actions, turn.text) == (click(4, 5) + wait(1), "First a click.")
    assert (last.actions, last.text) == ((), "Done.")
    first, second = (request.body for request in requests)
    assert (requests[0].path, first["model"], first["system"]) == ("/v1/messages", "m", "Be careful.")
    text, image = first["messages"][0]["content"]
    assert text == {"type": "text", "text": "Task: Buy"}
    assert base64.b64decode(image["source"]["data"]) == b"one"
    assert second["messages"][:2] == [first["messages"][0], {"role": "assistant", "content": messages}]
    without, pictured, note = second["messages"][2]["content"]
    assert without == {"type": "tool_result", "tool_use_id": "t1", "toolset_name": "computer"}
    assert base64.b64decode(pictured["content"][0]["source"]["data"]) == b"two"
    assert note == {"type": "text", "text": "It failed."}


async def test_anthropics_older_screenshots_are_left_out_many_at_once_and_with_all_thoughts() -> None:
    text = anthropic_answer(anthropic_thought("First a click."), anthropic_call("wait"))
    async with talking("anthropic", text) as (conversation, requests):
        for _ in range(22):
            await conversation.ask(VIEW)
    bodies = [json.dumps(request.body["messages"]) for request in requests]
    assert [body.count('"type": "image"') for body in bodies] == [*range(1, 21), 11, 12]
    # Signed for what stood before them, the thoughts of before are no longer valid.
    assert [body.count('"type": "thinking"') for body in bodies] == [*range(20), 0, 1]
    assert requests[21].body["messages"][:41] == requests[20].body["messages"]
    task, picture = requests[20].body["messages"][0]["content"]
    assert (task["text"], picture["type"]) == ("Task: Buy", "text")
    (result,) = requests[20].body["messages"][2]["content"]
    assert (result["tool_use_id"], result["content"]) == ("t1", [picture])


async def test_anthropic_is_offered_only_what_the_judge_can_do() -> None:
    async with talking("anthropic", anthropic_answer("Done.")) as (conversation, requests):
        await conversation.ask(VIEW)
    (tool,) = requests[0].body["tools"]
    assert tool["type"] == "computer_toolset_20260801"
    assert {name for name, config in tool["configs"].items() if not config["enabled"]} >= {"zoom", "left_mouse_down"}
    # The toolset is no longer a beta.
    assert "anthropic-beta" not in requests[0].headers


async def test_an_empty_answer_from_anthropic_is_not_an_answer_and_leaves_its_calls_open() -> None:
    answers = [
        anthropic_answer(anthropic_call("wait")),
        anthropic_answer(anthropic_thought("Done?")),
        anthropic_answer("Yes."),
    ]
    async with talking("anthropic", *answers) as (conversation, requests):
        await conversation.ask(VIEW)
        empty = await conversation.ask(VIEW)
        await conversation.ask(VIEW)
    assert (empty.actions, empty.text) == ((), "")
    assert requests[1].body == requests[2].body


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(b"not json"), ModelMalformed),
        (Answer({"content": "text"}), ModelMalformed),
        (anthropic_answer("I cannot.", stop="refusal"), ModelBlocked),
    ],
)
async def test_an_unusable_answer_of_anthropics_is_a_model_error(answer: Answer, error: type[ModelError]) -> None:
    async with talking("anthropic", answer) as (conversation, _):
        with pytest.raises(error):
            await conversation.ask(VIEW)


async def test_reasoning_from_openai_without_a_call_is_not_an_answer() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Search first."}]}
    async with talking("openai", openai_response(thought)) as (conversation, _):
        turn = await conversation.ask(VIEW)
    assert (turn.actions, turn.text, turn.is_answer) == ((), "", False)
