"""The dialects of open computer-use models. The replies are our own, after each model's public documentation."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.llm.servers import ModelCall, openai_answer, serving
from judge.plugins.computer_use.computers.actions import (
    Actions,
    ModelTurn,
    ScreenView,
    click,
    drag,
    go_back,
    move,
    press,
    scroll,
    type_text,
    visit,
    wait,
)
from judge.plugins.computer_use.computers.dialects import DIALECTS, DialectConversation
from judge.plugins.computer_use.participant import create
from participants.base import ParticipantOptions
from shared.errors import ConfigError
from shared.settings import Settings

# As Fara and UI-TARS see it, 1,288 x 728.
VIEW = ScreenView(url="https://a.test/", screenshot=b"one", media_type="image/jpeg", width=1280, height=720)


def call(**arguments: Any) -> str:
    return f"I see it.\n<tool_call>\n{json.dumps({'name': 'computer_use', 'arguments': arguments})}\n</tool_call>"


def line(text: str) -> str:
    return f"Thought: I see it.\nAction: {text}"


async def turns(dialect: str, *replies: str, view: ScreenView = VIEW) -> tuple[list[ModelTurn], Sequence[ModelCall]]:
    from shared.llm.providers.openai import OpenAIModel

    async with serving(*map(openai_answer, replies)) as server:
        model = OpenAIModel("m", api_key="k", base_url=server.url, timeout_s=5, retry_delay_s=0.01)
        try:
            conversation = DialectConversation(model, "Be careful.", "Task: Buy", DIALECTS[dialect])
            return [await conversation.ask(view) for _ in replies], server.received
        finally:
            await model.aclose()


@pytest.mark.parametrize(
    ("dialect", "reply", "actions"),
    [
        ("fara", call(action="left_click", coordinate=[644, 364]), click(640, 360)),
        ("fara", call(action="mouse_move", coordinate=[1288, 728]), move(1279, 719)),
        ("fara", call(action="key", keys=["Control", "a"]), press("Control", "a")),
        (
            "fara",
            call(action="type", text="lamp", coordinate=[0, 0], press_enter=True, delete_existing_text=True),
            (*click(0, 0), *press("ControlOrMeta", "a"), *type_text("lamp"), *press("Enter")),
        ),
        ("fara", call(action="scroll", pixels=-400), scroll(640, 360, down=400)),
        ("fara", call(action="visit_url", url="https://a.test/x"), visit("https://a.test/x")),
        ("fara", call(action="history_back"), go_back()),
        ("fara", call(action="wait", time=2), wait(2)),
        ("fara", call(action="pause_and_memorize_fact", fact="It costs 5."), ()),
        ("qwen3-vl", call(action="left_click", coordinate=[500, 1000]), click(640, 719)),
        ("qwen3-vl", call(action="right_click", coordinate=[0, 0]), click(0, 0, button="right")),
        ("qwen3-vl", call(action="triple_click", coordinate=[500, 500]), click(640, 360, count=3)),
        ("qwen3-vl", call(action="left_click_drag", coordinate=[1000, 0]), drag(640, 360, 1279, 0)),
        ("qwen3-vl", call(action="hscroll", pixels=30), scroll(640, 360, right=30)),
        ("ui-tars", line("click(start_box='<|box_start|>(644,364)<|box_end|>')"), click(640, 360)),
        ("ui-tars", line("left_double(start_box='[600, 350, 688, 378]')"), click(640, 360, count=2)),
        ("ui-tars", line("drag(start_box='(0,0)', end_box='(644,364)')"), drag(0, 0, 640, 360)),
        ("ui-tars", line("hotkey(key='ctrl c')"), press("ctrl", "c")),
        ("ui-tars", line(r"type(content='it\'s\n')"), (*type_text("it's"), *press("Enter"))),
        ("ui-tars", line("scroll(start_box='(644,364)', direction='down')"), scroll(640, 360, down=500)),
        ("ui-tars", line("wait()"), wait(3)),
    ],
)
async def test_f31_an_action_is_understood_in_the_models_own_space(dialect: str, reply: str, actions: Actions) -> None:
    (turn,), _ = await turns(dialect, reply)
    assert (turn.actions, turn.is_answer, turn.problem, turn.text) == (actions, False, "", "I see it.")


@pytest.mark.parametrize(
    ("dialect", "reply", "answer"),
    [
        ("fara", call(action="terminate", status="success"), "I see it."),
        ("qwen3-vl", call(action="answer", text="It costs 5."), "It costs 5."),
        ("qwen3-vl", call(action="terminate", status="failure"), "I see it."),
        ("ui-tars", line("finished(content='It costs 5.')"), "It costs 5."),
        ("ui-tars", line("finished()"), "I see it."),
        ("ui-tars", line("call_user()"), "I see it."),
    ],
)
async def test_f31_a_stop_word_ends_with_its_answer_or_what_was_said_before_it(
    dialect: str, reply: str, answer: str
) -> None:
    (turn,), _ = await turns(dialect, reply)
    assert (turn.is_answer, turn.text, turn.actions) == (True, answer, ())


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        ("fara", "I am done."),
        ("fara", call(action="left_click", coordinate=[1289, 10])),
        ("fara", call(action="left_click", coordinate="here")),
        ("fara", call(action="web_search", query="lamps")),
        ("fara", call(action="triple_click", coordinate=[1, 1])),
        ("fara", "<tool_call>{"),
        ("fara", "<tool_call>[]</tool_call>"),
        ("qwen3-vl", call(action="type")),
        ("qwen3-vl", call(action="scroll", pixels=True)),
        ("ui-tars", "Thought: done"),
        ("ui-tars", line("click('(1,2)')")),
        ("ui-tars", line("click(start_box=open('/etc/passwd'))")),
        ("ui-tars", line("scroll(start_box='(1,1)', direction='away')")),
    ],
)
async def test_f31_what_cannot_be_carried_out_is_told_to_the_model(dialect: str, reply: str) -> None:
    (turn,), _ = await turns(dialect, reply)
    assert (turn.actions, turn.is_answer) == ((), False)
    assert turn.problem


@given(st.sampled_from(sorted(DIALECTS)), st.text(max_size=80), st.text(max_size=60))
def test_f31_no_reply_raises_anything(dialect: str, before: str, inside: str) -> None:
    conversation = DialectConversation(None, "", "", DIALECTS[dialect])  # type: ignore[arg-type]
    for reply in (before, f"{before}<tool_call>{inside}</tool_call>", f"{before}\nAction: {inside}", line(inside)):
        assert isinstance(conversation._turn(reply, VIEW), ModelTurn)


async def test_f31_the_conversation_keeps_what_was_said_and_the_last_three_screenshots() -> None:
    click_here = call(action="left_click", coordinate=[1, 1])
    _, requests = await turns("qwen3-vl", *[click_here] * 5, view=VIEW.model_copy(update={"note": "It failed."}))
    messages = requests[-1].body["messages"]
    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 4, "user"]
    images = [sum(part["type"] == "image_url" for part in each["content"]) for each in messages[1::2]]
    assert images == [0, 0, 1, 1, 1]
    assert "Task: Buy" in messages[1]["content"][0]["text"]
    assert "It failed." in messages[-1]["content"][0]["text"]
    assert "1000 x 1000" in messages[0]["content"]


def test_f31_an_unknown_dialect_is_answered_with_the_known_ones() -> None:
    settings = Settings(environ={"OPENAI_BASE_URL": "http://127.0.0.1:1"})
    with pytest.raises(ConfigError, match="unknown dialect 'phi'") as caught:
        create(ParticipantOptions(model="m", dialect="phi", settings=settings))
    assert all(name in str(caught.value) for name in DIALECTS)
    with pytest.raises(ConfigError, match="no model given"):
        create(ParticipantOptions(dialect="fara", settings=settings))
