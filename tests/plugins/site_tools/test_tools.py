"""The tool that calls a site's own tools: what may be sent, and its line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.server_tools import SERVER_TOOLS
from judge.browser.action_lines import action_line
from judge.browser.tools import CheckedAction, Complaint, check_action, offered_tools, spec_of
from judge.records.tools import MAX_GIVEN_CHARS
from shared.action_lines import MAX_VALUE_CHARS
from shared.models import Action
from shared.snapshot import parse_snapshot
from shared.text import split_line

PAGE = parse_snapshot('- button "Go" [ref=e1]')
CALLING = (*offered_tools(SERVER_TOOLS), spec_of("site_tool", name={"enum": ["add_to_cart", "finish"]}))


def called(**params: Any) -> Any:
    action_checked = check_action(Action(tool="site_tool", params=params), CALLING, PAGE)
    return action_checked.text if isinstance(action_checked, Complaint) else action_checked.params


@pytest.mark.parametrize("arguments", [{}, {"sku": "L-7", "n": None}, {"filter": {"colours": ["red"], "max": 3.5}}])
def test_a_site_tool_gets_the_arguments_as_they_were_sent(arguments: dict[str, Any]) -> None:
    assert called(name="finish", arguments=arguments) == {"name": "finish", "arguments": arguments}


def test_arguments_may_be_left_out_or_sent_as_json_text() -> None:
    assert called(name="finish") == {"name": "finish", "arguments": {}}
    assert called(name="finish", arguments='{"sku": "L-7"}')["arguments"] == {"sku": "L-7"}


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"name": "later"}, '"name" must be one of add_to_cart, finish, not "later"'),
        ({"arguments": {}}, '"name" is missing'),
        ({"name": "finish", "arguments": [1]}, "must be of type object"),
        ({"name": "finish", "arguments": "no json"}, "must be of type object"),
        ({"name": "finish", "frame": "x"}, 'no parameter "frame"'),
        ({"name": "finish", "arguments": {"a": "x" * MAX_GIVEN_CHARS}}, "send at most 10000"),
    ],
)
def test_a_call_that_names_no_tool_of_the_page_or_sends_too_much_is_refused(
    params: dict[str, Any], complaint: str
) -> None:
    assert complaint in called(**params)


@given(st.text())
def test_a_call_of_a_site_tool_is_one_line_whatever_its_arguments(text: str) -> None:
    checked = CheckedAction(tool="site_tool", params={"name": "add", "arguments": {"z": 1, "a": text}})
    subject, verb, value = split_line(action_line(checked, PAGE)) or ("", "", None)
    assert (subject, verb) == ('site tool "add"', "CALL")
    assert value is not None
    assert value.startswith('{"a": "')
    assert len(value) <= MAX_VALUE_CHARS


def test_equal_calls_have_equal_lines() -> None:
    for arguments in ({"sku": "L-7", "count": 2}, {"count": 2, "sku": "L-7"}):
        checked = CheckedAction(tool="site_tool", params={"name": "add_to_cart", "arguments": arguments})
        assert action_line(checked, PAGE) == '<site tool "add_to_cart"> -> CALL: {"count": 2, "sku": "L-7"}'
