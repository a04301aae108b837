"""The judge's own examples sent back: nothing is done, and the feedback says what to send instead."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from helpers.browser.server_tools import SERVER_TOOLS
from helpers.episode.still_page import SNAPSHOT, PlayedTask, play
from judge.browser.tools import Complaint, check_action, offered_tools
from participants.model import system_prompt
from shared.protocol import POINT_EXAMPLE, REPLY_EXAMPLE, parse_observation, parse_reply, reply_format
from shared.snapshot import REF, parse_snapshot

TOOLS = offered_tools(SERVER_TOOLS)
ROOT = Path(__file__).resolve().parent.parent.parent


class Echo:
    """Says the same every time, or what `part` takes from the message it is sent."""

    def __init__(self, part: Callable[[str], str]) -> None:
        self._part = part

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        return self._part(text)


def last_complaint(message: str) -> str:
    return parse_observation(message).feedback or REPLY_EXAMPLE


ECHOES: dict[str, Callable[[str], str]] = {
    "the example": lambda _: REPLY_EXAMPLE,
    "the example without its tags": lambda _: re.sub("</?json>", "", REPLY_EXAMPLE),
    "the example in a fence": lambda _: "```json\n" + re.sub("</?json>", "", REPLY_EXAMPLE) + "\n```",
    "the example as three lines": lambda _: 'THOUGHT: …\nACTION: browser_click\nPARAMS: {"target": "<ref>"}',
    "the example with the older name": lambda _: REPLY_EXAMPLE.replace('"target"', '"ref"'),
    "the example in a snapshot's brackets": lambda _: REPLY_EXAMPLE.replace("<ref>", "[ref=<ref>]"),
    "the reply format": lambda _: reply_format(()),
    "the lines of the reply format": lambda _: "THOUGHT: …\nACTION: <tool>\nPARAMS: <JSON object>",
    "the whole message": lambda message: message,
    "the last complaint": last_complaint,
    "a model's instructions": lambda _: system_prompt(1),
}


async def play_echo(folder: Path, part: Callable[[str], str]) -> PlayedTask:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Echo]:
        yield Echo(part)

    return await play(folder, connect)


@pytest.mark.parametrize("what", ECHOES)
async def test_an_agent_that_repeats_its_messages_does_nothing(tmp_path: Path, what: str) -> None:
    episode = await play_echo(tmp_path, ECHOES[what])
    assert episode.page.done == []
    assert episode.outcome == "failure"
    assert episode.entry["action_history"] == []


def test_an_agent_that_repeats_the_example_learns_what_to_put_in_its_place() -> None:
    action = parse_reply(REPLY_EXAMPLE).action
    assert action is not None
    complaint = check_action(action, TOOLS, parse_snapshot(SNAPSHOT))
    assert isinstance(complaint, Complaint)
    assert complaint.text == (
        'browser_click: "<ref>" as "target" is not an element reference; '
        "send the ref of an element, which the snapshot gives as [ref=…] (selectors are not accepted)."
    )


def test_the_replies_that_the_guide_shows_cannot_be_carried_out() -> None:
    guide = (ROOT / "PURPLE_AGENT_GUIDE.md").read_text()
    examples = re.findall(r"^```text\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    actions = [action for text in examples if (action := parse_reply(text).action)]
    targets = [action.params["target"] for action in actions if "target" in action.params]
    assert (len(actions), len(targets)) == (4, 2)
    assert not any(REF.fullmatch(target) for target in targets)
    both = offered_tools(SERVER_TOOLS, "both")
    assert all(isinstance(check_action(each, both, parse_snapshot(SNAPSHOT)), Complaint) for each in actions)


def test_the_example_of_a_point_cannot_be_carried_out() -> None:
    action = parse_reply(POINT_EXAMPLE).action
    assert action is not None
    complaint = check_action(action, offered_tools(SERVER_TOOLS, "coordinates"), parse_snapshot(SNAPSHOT))
    assert isinstance(complaint, Complaint)
    assert complaint.text.endswith("must be of type number, not text.")


def test_nothing_that_a_participant_receives_names_a_reference() -> None:
    message = "\n".join([reply_format(()), system_prompt(1), *map(str, TOOLS)])
    matches = re.findall(rf"\b{REF.pattern}\b", message)
    assert matches == []
