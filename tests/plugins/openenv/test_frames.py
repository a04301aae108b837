import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.openenv.frames import Ask, PolicyReply, Refused, Reset, Rpc, error_frame, read_frame, rpc_refusal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


def code_of(text: str) -> str:
    found = read_frame(text)
    assert isinstance(found, Refused), found
    frame = json.loads(found.answer)
    assert frame["type"] == "error"
    return str(frame["data"]["code"])


@given(st.text(st.characters()) | JSON.map(json.dumps))
def test_any_text_is_understood_or_refused_with_a_code(text: str) -> None:
    found = read_frame(text)
    if isinstance(found, Refused):
        frame = json.loads(found.answer)
        assert frame["data"]["code"] in ("INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR")
        found.answer.encode()


@given(JSON)
def test_whatever_a_policy_writes_is_a_reply(action: Any) -> None:
    assert isinstance(read_frame(json.dumps({"type": "step", "data": action})), PolicyReply)


@pytest.mark.parametrize(
    "action",
    [
        "[" * 5_000 + "]" * 5_000,
        "1" * 5_000,
        '{"tool": ' * 2_000 + "1" + "}" * 2_000,
        "NaN",
        "-Infinity",
        '"\\ud800"',
        '{"tool": "a", "tool": "b"}',
        '"' + "x" * 1_000_000 + '"',
        "{",
    ],
)
def test_an_action_that_python_cannot_read_is_a_reply_and_not_an_error(action: str) -> None:
    assert isinstance(read_frame(f'{{"type": "step", "data": {action}}}'), PolicyReply)


def test_an_action_is_a_tool_call() -> None:
    action = {"tool": "browser_click", "params": {"target": "e1"}}
    assert read_frame(json.dumps({"type": "step", "data": action})) == PolicyReply(action)


@pytest.mark.parametrize(
    ("tool", "reply"),
    [
        ("I am done.", "I am done."),
        ('<json>{"tool": "finish"}</json>', '<json>{"tool": "finish"}</json>'),
        (12, "12"),
        (["a"], '["a"]'),
        (None, "null"),
        (math.nan, "NaN"),
        ("finish", {"tool": "finish"}),
    ],
)
def test_a_text_that_a_client_put_into_the_one_required_field_is_the_reply_itself(tool: Any, reply: Any) -> None:
    assert read_frame(json.dumps({"type": "step", "data": {"tool": tool}})) == PolicyReply(reply)


def test_the_arguments_of_reset_are_read_and_others_ignored() -> None:
    data = {"seed": 3, "episode_id": "e", "task_id": "t", "prompt": [{"role": "user"}]}
    assert read_frame(json.dumps({"type": "reset", "data": data})) == Reset(seed=3, episode_id="e", task_id="t")
    assert read_frame('{"type": "reset"}') == Reset()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "INVALID_JSON"),
        ("{", "INVALID_JSON"),
        ("1" * 5_000, "INVALID_JSON"),
        ("[]", "VALIDATION_ERROR"),
        ("null", "VALIDATION_ERROR"),
        ('"step"', "VALIDATION_ERROR"),
        ("{}", "UNKNOWN_TYPE"),
        ('{"type": ["step"]}', "UNKNOWN_TYPE"),
        ('{"type": "PolicyReply", "data": {}}', "UNKNOWN_TYPE"),
        ('{"type": "step"}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {}, "id": 1}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": []}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"seed": true}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"seed": "1"}}', "VALIDATION_ERROR"),
        (json.dumps({"type": "reset", "data": {"episode_id": "e" * 256}}), "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"split": "train"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"index": 1, "task_id": "t"}}', "VALIDATION_ERROR"),
    ],
)
def test_a_frame_that_is_not_understood_gets_the_code_for_it(text: str, code: str) -> None:
    assert code_of(text) == code


def test_a_mistake_in_an_argument_names_it() -> None:
    frame = read_frame('{"type": "reset", "data": {"seed": -1}}')
    assert isinstance(frame, Refused)
    [error] = json.loads(frame.answer)["data"]["errors"]
    assert error["loc"] == ["data", "seed"]


def test_the_other_questions_are_read() -> None:
    assert read_frame('{"type": "state"}') == Ask("state")
    assert read_frame('{"type": "close", "data": null}') == Ask("close")
    assert read_frame('{"type": "mcp", "data": {"method": "x"}}') == Rpc({"method": "x"})


@given(JSON)
def test_any_mcp_request_is_refused_in_its_own_form(request: Any) -> None:
    answer = rpc_refusal(request)
    assert answer["jsonrpc"] == "2.0"
    assert answer["error"]["code"] in (-32600, -32601)


def test_an_error_can_be_sent_whatever_it_quotes() -> None:
    error_frame("EXECUTION_ERROR", "a\udc80").encode()
