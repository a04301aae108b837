"""Reading replies: whatever a participant writes is an action, or a complaint about it."""

import json
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.server_tools import SERVER_TOOLS
from judge.browser.replies import CheckedReply, understand
from judge.browser.tools import offered_tools
from shared.models import Action, ToolSpec
from shared.protocol import render_reply
from shared.snapshot import parse_snapshot
from shared.text import split_line

TOOLS = offered_tools(SERVER_TOOLS)
SNAPSHOT = parse_snapshot('- button "Go" [ref=e1]\n- textbox "Name" [ref=e2]')


def of(tool: str, **params: object) -> CheckedReply:
    return understand(render_reply(Action(tool=tool, params=params)), TOOLS, SNAPSHOT, open_tabs=1)


def test_an_accepted_action_comes_with_its_line() -> None:
    reply_read = of("browser_click", ref="e1")
    assert reply_read.action == Action(tool="browser_click", params={"ref": "e1"})
    assert reply_read.checked is not None
    assert reply_read.checked.params == {"target": "e1"}
    assert reply_read.line == "<Go button> -> CLICK"


def test_the_line_of_an_ending_action_does_not_hold_the_answer() -> None:
    assert of("finish", answer="42").line == "<page> -> FINISH"


def test_a_refused_action_is_recorded_but_not_to_be_executed() -> None:
    reply_read = of("browser_click", target="e9")
    assert reply_read.action is not None
    assert reply_read.checked is None
    assert "there is no element e9" in reply_read.complaint


def test_an_unreadable_reply_has_no_action() -> None:
    reply_read = understand("hm", TOOLS, SNAPSHOT)
    assert (reply_read.action, reply_read.checked) == (None, None)
    assert reply_read.complaint.startswith("Your reply holds no")


def test_a_text_that_breaks_the_code_is_an_unreadable_reply() -> None:
    broken = ToolSpec(name="browser_click", description="", parameters={"properties": {"target": {"type": "?"}}})
    reply_read = understand(render_reply(Action(tool="browser_click", params={"target": "e1"})), [broken], SNAPSHOT)
    assert reply_read.action is None
    assert reply_read.complaint.startswith("Your reply cannot be read (UnknownType); send exactly one action")


class Starving(tuple[ToolSpec, ...]):
    def __iter__(self) -> NoReturn:
        raise MemoryError


def test_a_memory_shortage_is_not_blamed_on_the_participant() -> None:
    with pytest.raises(MemoryError):
        understand(render_reply(Action(tool="finish")), Starving(TOOLS), SNAPSHOT)


numbers = st.sampled_from(["0", "-0", "1e308", "1e-400", "9" * 16, "9" * 400, "1e400", "NaN", "-Infinity", "1" * 5_000])
strings = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=12).map(json.dumps)
leaves = numbers | strings | st.sampled_from(["true", "null", '"e1"', '"e2"', "[" * 50 + "]" * 50, '{"a":1,"a":2}'])
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(strings, inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=6,
)
names = st.sampled_from([json.dumps(key) for tool in TOOLS for key in tool.parameters.get("properties", {})])
params = st.lists(st.tuples(names | strings, values), max_size=4).map(
    lambda pairs: "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}"
)


@given(st.sampled_from([tool.name for tool in TOOLS]), params | values, values)
def test_whatever_a_reply_holds_can_be_recorded(tool: str, raw_params: str, thought: str) -> None:
    text = f'<json>{{"tool": "{tool}", "params": {raw_params}, "thought": {thought}}}</json>'
    reply_read = understand(text, TOOLS, SNAPSHOT, open_tabs=1)
    json.dumps(reply_read.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode()
    assert (reply_read.checked is None) == bool(reply_read.complaint)
    assert (reply_read.checked is None) or split_line(reply_read.line) is not None
