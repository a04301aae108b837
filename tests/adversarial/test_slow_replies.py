"""Replies made to keep the judge busy: reading one takes time in proportion to its length, and little of it."""

import gc
import json
import sys
from typing import Any

import pytest

from helpers.a2a.envelopes import CONTEXT, body_agent, encode, in_envelope, replaced, reply_documents
from helpers.browser.server_tools import SERVER_TOOLS
from judge.browser.replies import understand
from judge.browser.tools import offered_tools
from shared.a2a.client import ParticipantClient
from shared.a2a.transport import MAX_VALUES
from shared.errors import ParticipantError
from shared.protocol import MAX_REPLY_CHARS
from shared.snapshot import parse_snapshot

TOOLS = offered_tools(SERVER_TOOLS)
SNAPSHOT = parse_snapshot('- button "Go" [ref=e1]')
FAMILIES = {
    "parameters with trailing commas": ("ACTION: finish\n", 'PARAMS: {"a":1,}\n'),
    "parameters": ("ACTION: finish\n", 'PARAMS: {"a":1}\n'),
    "parameters that are lists": ("ACTION: finish\n", "PARAMS: [1,]\n"),
    "actions": ("", "ACTION: finish\n"),
    "thoughts": ("ACTION: finish\n", "THOUGHT: hm\n"),
    "blocks with trailing commas": ("", '<json>{"tool":"finish",}</json>'),
    "tags that open nothing": ("", "<json>"),
    "objects that never end": ("", "<json>{"),
    "fences": ("", "```json\n{"),
    "objects on lines of their own": ("", "{\n"),
    "trailing commas in one object": ('<json>{"tool":"finish","params":{"a":[', "[1,],"),
    "tags in one string": ('<json>{"tool":"finish","thought":"', "<json>{"),
}


def work(text: str) -> int:
    """How many calls it takes to read a reply: the same on every machine."""
    calls = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    # What other tests left behind would be finalized meanwhile.
    gc.disable()
    sys.setprofile(count)
    try:
        understand(text, TOOLS, SNAPSHOT)
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.mark.parametrize("family", FAMILIES)
def test_twice_the_text_takes_at_most_twice_the_work(family: str) -> None:
    head, unit = FAMILIES[family]
    once, twice = (work(head + unit * count) for count in (1_000, 2_000))
    assert twice <= 2.2 * once


def test_eleven_thousand_blocks_of_parameters_are_refused_after_ten() -> None:
    text = "ACTION: finish\n" + 'PARAMS: {"a":1,}\n' * 11_700
    complaint = understand(text, TOOLS, SNAPSHOT).complaint
    assert len(text) < MAX_REPLY_CHARS
    assert "holds more than 10 JSON blocks" in complaint


@pytest.mark.parametrize("item", [1, {}, {"target": "e1"}, [[]]], ids=["numbers", "objects", "half fields", "lists"])
def test_a_list_of_many_items_is_refused_before_each_is_looked_at(item: Any) -> None:
    def of(count: int) -> str:
        return "<json>" + json.dumps({"tool": "browser_fill_form", "params": {"fields": [item] * count}}) + "</json>"

    complaint = understand(of(5_000), TOOLS, SNAPSHOT).complaint
    assert complaint == 'browser_fill_form: "fields" has 5000 items; send at most 50.'
    assert work(of(5_000)) < 40 * 5_000


@pytest.mark.parametrize(
    "value",
    [[0] * MAX_VALUES, [[]] * MAX_VALUES, [{}] * MAX_VALUES, {str(n): 0 for n in range(MAX_VALUES)}],
    ids=["numbers", "lists", "objects", "members"],
)
async def test_an_answer_of_many_values_is_refused_before_it_is_decoded(value: Any) -> None:
    async with body_agent() as agent, ParticipantClient(agent.url) as client:
        agent.reply = encode(in_envelope(replaced(reply_documents("1.0")[0], ("message", "parts", 1, "data"), value)))
        with pytest.raises(ParticipantError, match="more than 20000 JSON values"):
            await client.send("What now?", context_id=CONTEXT)


async def test_an_answer_that_ends_within_a_string_of_escaped_quotes_is_refused_at_once() -> None:
    async with body_agent() as agent, ParticipantClient(agent.url) as client:
        # A search for the closing quote that began again at each escaped one would take many minutes.
        agent.reply = b"[" + b"0," * MAX_VALUES + b'"' + b'\\"' * 450_000
        with pytest.raises(ParticipantError, match="is not A2A"):
            await client.send("What now?", context_id=CONTEXT)


async def test_a_text_full_of_brackets_and_commas_counts_as_one_value() -> None:
    text = '{"a": [1, 2, "\\"], {"],' * 20_000
    async with body_agent() as agent, ParticipantClient(agent.url) as client:
        agent.reply = encode(
            in_envelope({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}})
        )
        reply = await client.send("What now?", context_id=CONTEXT)
    assert reply == text
