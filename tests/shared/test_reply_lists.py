"""Replies with several actions, as JSON lists and as lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.models import Action
from shared.protocol import parse_reply, render_reply
from shared.replies import MAX_ACTIONS

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
ACTIONS = st.builds(
    Action,
    tool=st.from_regex(r"[a-z][a-z_]{0,20}", fullmatch=True).filter(
        lambda name: name not in ("finish", "browser_close")
    ),
    params=st.dictionaries(TEXTS.filter(lambda key: key.isidentifier()), TEXTS, max_size=3),
)


def as_lines(actions: list[Action]) -> str:
    calls = (f"ACTION: {each.tool}\nPARAMS: {json.dumps(each.params)}" for each in actions)
    return "\n".join((f"THOUGHT: {actions[0].thought}", *calls))


@given(st.lists(ACTIONS, min_size=1, max_size=MAX_ACTIONS), TEXTS)
def test_a_rendered_list_is_read_as_it_was(actions: list[Action], thought: str) -> None:
    body = [actions[0].model_copy(update={"thought": thought}), *actions[1:]]
    reply = parse_reply(render_reply(body), max_actions=MAX_ACTIONS)
    assert [reply.action, *reply.rest] == body


@given(st.lists(ACTIONS, min_size=1, max_size=MAX_ACTIONS))
def test_lines_are_read_like_a_list(actions: list[Action]) -> None:
    reply = parse_reply(as_lines(actions), max_actions=MAX_ACTIONS)
    assert [reply.action, *reply.rest] == actions


PIECES = st.sampled_from(
    [
        *("<json>", "</json>", "[", "]", "{", "}", ",", "```", "\n", "x", "[[", "<think>", "</think>"),
        *('{"tool": "browser_click"}', '"tool": "finish"', "ACTION: browser_click\n", "PARAMS: {}", "THOUGHT: hm\n"),
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(1, MAX_ACTIONS))
def test_any_text_is_so_many_actions_or_one_complaint(text: str, max_actions: int) -> None:
    reply = parse_reply(text, max_actions=max_actions)
    actions = [reply.action, *reply.rest] if reply.action else []
    assert len(actions) <= max_actions
    assert bool(actions) != bool(reply.complaint)
    assert all(each.thought == "" for each in reply.rest)
    assert all(each.tool != "finish" for each in actions[:-1])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_a_reply_with_one_action_means_the_same_where_several_are_allowed(text: str) -> None:
    """The forms are the same; only what is a list, or has several actions in lines, is read in another way."""
    one, several = parse_reply(text), parse_reply(text, max_actions=MAX_ACTIONS)
    if one.action is not None and text.count("ACTION:") < 2:
        assert several.action == one.action


REFUSED_REPLIES = {
    "<json>[]</json>": "is an empty list",
    '<json>[[{"tool": "a"}]]</json>': "has a list inside its list of actions",
    '<json>[{"tool": "a"}, [{"tool": "b"}]]</json>': "has a list inside its list of actions",
    '<json>[{"tool": "a"}, {"params": {}}]</json>': 'has no "tool" key (its keys: "params") (action 2 of 2)',
    '<json>[{"tool": "a"}, {"tool": "b", "args": {"x": 1}}]</json>': 'has "args" where "params" is meant (action 2',
    '<json>[{"tool": "a"}, {"tool": "a"}, {"tool": "a"}, {"tool": "a"}]</json>': "is a list of 4 actions, more than 3",
    '<json>[{"tool": "finish"}, {"tool": "a"}]</json>': "has actions after finish, which ends the task",
    '<json>[{"tool": "a"}]</json> <json>[{"tool": "b"}, oops]</json>': "is not valid JSON",
    "ACTION: a\nPARAMS: {}\nOBSERVATION: saved\nACTION: b\nPARAMS: {}": 'has "OBSERVATION: saved" between its actions',
    "ACTION: a\nPARAMS: {}\nTHOUGHT: good\nACTION: b": 'has "THOUGHT: good" between its actions',
    "ACTION: a\nPARAMS: {}\nPARAMS: {}": "has two PARAMS: lines for one action",
    "ACTION: a\nACTION: a\nACTION: a\nACTION: a": "has more than 3 ACTION: lines",
    'ACTION: a\nAction Input: {"x": 1}\nACTION: b': "between its actions",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED_REPLIES.items())
def test_a_list_that_is_unclear_is_refused(text: str, problem: str) -> None:
    reply = parse_reply(text, max_actions=3)
    assert reply.action is None
    assert problem in (reply.complaint or "")
    assert "send 1 to 3 actions, such as" in (reply.complaint or "")


ACCEPTED = {
    "in a fence": '```json\n[{"tool": "a"}, {"tool": "b"},]\n```',
    "alone": 'First a.\n[{"tool": "a"}, {"tool": "b"}]',
    "the last of several blocks": '<json>{"tool": "c"}</json> no: <json>[{"tool": "a"}, {"tool": "b"}]</json>',
    "decorated lines": "**ACTION:** `a`\n**PARAMS:** `{}`\n\n**ACTION:** b\n",
    "with a label inside a text": 'ACTION: a\nPARAMS: {}\nACTION: b\nPARAMS: {"x": "\nACTION: c"}',
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_a_list_is_read_in_the_usual_forms(text: str) -> None:
    reply = parse_reply(text, max_actions=3)
    assert [each.tool for each in (reply.action, *reply.rest) if each] == ["a", "b"], reply.complaint


def test_the_answer_of_the_last_action_must_not_be_lost() -> None:
    reply = parse_reply('<json>[{"tool": "a"}, {"tool": "finish", "answer": "42"}]</json>', max_actions=3)
    assert 'has "answer" beside "params"' in (reply.complaint or "")


def test_thoughts_of_later_actions_are_kept_in_the_first() -> None:
    reply = parse_reply('<json>[{"tool": "a", "thought": "x"}, {"tool": "b", "thought": "y"}]</json>', max_actions=3)
    assert reply.action == Action(tool="a", thought="x\ny")
    assert reply.rest == (Action(tool="b"),)
