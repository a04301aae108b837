"""Participants built with other people's libraries, in their own processes, against the judge's client."""

import hashlib

import pytest

from helpers.a2a.agents import JPEG
from helpers.interop.programs import foreign_agent
from shared.a2a.client import AgentSummary, ParticipantClient, fetch_card

pytestmark = pytest.mark.usefixtures("environments")
TURNS = 50
SHAPES = ("message", "status", "artifact", "both", "input")
PARTICIPANTS = [
    *[("v03", shape) for shape in SHAPES],
    *[("v1", shape) for shape in SHAPES],
    *[("v1", f"rest-{shape}") for shape in ("message", "status", "input")],
    ("adk", "its own"),
]


def picture(turn: int) -> bytes:
    """A screenshot's 67 kB, different in every turn."""
    return JPEG + turn.to_bytes(2, "big")


def echoed(turn: int) -> str:
    """What an agent answers that got this turn, and all before it, as they were sent."""
    return f"{turn} What now, {turn}? {hashlib.sha256(picture(turn)).hexdigest()}"


@pytest.mark.parametrize(("kind", "shape"), PARTICIPANTS)
async def test_fifty_turns_with_screenshots_arrive_whole_and_in_one_conversation(kind: str, shape: str) -> None:
    turns = range(1, TURNS + 1)
    with foreign_agent(kind, shape) as url:
        async with ParticipantClient(url) as client:
            said = [
                await client.send(f"What now, {turn}?", image=picture(turn), context_id="episode") for turn in turns
            ]
    assert said == [echoed(turn) for turn in turns]


@pytest.mark.parametrize(("kind", "shape"), [("v03", "input"), ("v1", "input"), ("adk", "its own")])
async def test_two_episodes_on_one_line_are_two_conversations(kind: str, shape: str) -> None:
    with foreign_agent(kind, shape) as url:
        async with ParticipantClient(url) as client:
            said = [
                await client.send(f"What now, {turn}?", image=picture(turn), context_id=episode)
                for turn in (1, 2, 3)
                for episode in ("first", "second")
            ]
    assert said == [echoed(turn) for turn in (1, 2, 3) for _ in ("first", "second")]


@pytest.mark.parametrize(
    ("kind", "shape", "name", "protocol"),
    [
        ("v03", "message", "old agent", "0.3"),
        ("v1", "message", "new agent", "1.0"),
        ("v1", "rest-message", "new agent", "1.0"),
        ("adk", "its own", "adk_agent", "1.0"),
    ],
)
async def test_the_host_that_was_dialled_is_kept_whatever_host_the_card_names(
    kind: str, shape: str, name: str, protocol: str
) -> None:
    with foreign_agent(kind, shape) as url:
        assert await fetch_card(url, 10) == AgentSummary(name=name, url=f"{url}/", protocol=protocol)
