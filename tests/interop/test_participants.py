"""Participants built with other people's libraries, in their own processes, against the judge's client."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import groupby

import pytest

from helpers.a2a.agents import JPEG
from helpers.cases import selected
from helpers.interop.programs import foreign_agents
from shared.a2a.client import AgentSummary, ParticipantClient, fetch_card

TURNS = 20
SHAPES = ("message", "status", "artifact", "both", "input")
KINDS = {"v03": SHAPES, "v1": (*SHAPES, "rest-message", "rest-status", "rest-input"), "adk": ("its own",)}
PARTICIPANTS = [(kind, shape) for kind, shapes in KINDS.items() for shape in shapes]


@pytest.fixture(scope="module")
def addresses(request: pytest.FixtureRequest, environments: None) -> Iterator[dict[tuple[str, str], str]]:
    """Those that are tested. Importing an SDK takes longer than talking to an agent, so a kind shares a process."""
    tested = [each for each in PARTICIPANTS if each in selected(request, "agent")]
    with ExitStack() as stack:
        urls = [
            url
            for kind, ones in groupby(tested, key=lambda each: each[0])
            for url in stack.enter_context(foreign_agents(kind, tuple(shape for _, shape in ones)))
        ]
        yield dict(zip(tested, urls, strict=True))


@pytest.fixture(
    params=[pytest.param(each, marks=[pytest.mark.nightly] if each[0] == "adk" else []) for each in PARTICIPANTS],
    ids=" ".join,
)
def agent(request: pytest.FixtureRequest, addresses: dict[tuple[str, str], str]) -> tuple[str, str]:
    """The kind and address of an agent."""
    return request.param[0], addresses[request.param]


def picture(turn: int) -> bytes:
    """A screenshot's 67 kB, different in every turn."""
    return JPEG + turn.to_bytes(2, "big")


def echoed(turn: int) -> str:
    """What an agent answers that got this turn, and all before it, as they were sent."""
    return f"{turn} What now, {turn}? {hashlib.sha256(picture(turn)).hexdigest()}"


async def test_many_turns_with_screenshots_arrive_whole_and_in_one_conversation(agent: tuple[str, str]) -> None:
    turns = range(1, TURNS + 1)
    async with ParticipantClient(agent[1]) as client:
        messages = [
            await client.send(f"What now, {turn}?", image=picture(turn), context_id="episode") for turn in turns
        ]
    assert messages == [echoed(turn) for turn in turns]


async def test_two_episodes_on_one_line_are_two_conversations(agent: tuple[str, str]) -> None:
    async with ParticipantClient(agent[1]) as client:
        messages = [
            await client.send(f"What now, {turn}?", image=picture(turn), context_id=episode)
            for turn in (1, 2, 3)
            for episode in ("first", "second")
        ]
    assert messages == [echoed(turn) for turn in (1, 2, 3) for _ in ("first", "second")]


CARDS = {"v03": ("old agent", "0.3"), "v1": ("new agent", "1.0"), "adk": ("adk_agent", "1.0")}


async def test_the_dialled_host_is_kept_regardless_of_the_host_in_the_card(agent: tuple[str, str]) -> None:
    kind, url = agent
    name, protocol = CARDS[kind]
    card = await fetch_card(url, 10)
    assert card == AgentSummary(name=name, url=f"{url}/", protocol=protocol, version=card.version)
