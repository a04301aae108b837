"""Malformed answers and cards: whatever decoding them breaks, the sender scores 0 and nothing is aborted."""

import json

import pytest

from helpers.a2a.envelopes import (
    PROTOCOLS,
    body_agent,
    card_document,
    cards,
    encode,
    envelopes,
    faults,
    outcomes_of_cards,
    outcomes_of_envelopes,
    replaced,
)
from judge.runner.follow import request_assessment

COUNT = 200

CARD_PLACES = {
    "supportedInterfaces": ("supportedInterfaces",),
    "one of supportedInterfaces": ("supportedInterfaces", 0),
    "capabilities": ("capabilities",),
    "one of the extensions": ("capabilities", "extensions", 0),
    "provider": ("provider",),
    "one of the signatures": ("signatures", 0),
    "one of the skills": ("skills", 0),
    "a tenant": ("supportedInterfaces", 0, "tenant"),
}


@pytest.mark.slow
@pytest.mark.parametrize("polled", [False, True], ids=["sent", "polled"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_mutated_answers_are_replies_or_the_participants_error(protocol: str, polled: bool) -> None:
    # Polling takes two requests for each.
    count = COUNT // 2 if polled else COUNT
    bodies = envelopes(protocol, count, polled=polled)
    counts = await outcomes_of_envelopes(protocol, bodies, polled=polled)
    assert not faults(counts)
    assert counts.total() == count
    # Neither all refused at once nor all harmless: the damage lies in places that are decoded.
    assert count / 10 < counts["reply"] < count * 0.9


@pytest.mark.slow
async def test_mutated_cards_are_usable_or_the_participants_error() -> None:
    counts = await outcomes_of_cards(cards(COUNT))
    assert not faults(counts)
    assert counts.total() == COUNT
    assert 20 < counts["reply"] < COUNT - 20


@pytest.mark.parametrize("place", CARD_PLACES)
async def test_a_judge_with_a_broken_card_is_reported_in_one_line(place: str) -> None:
    async with body_agent() as agent:
        agent.card = encode(replaced(card_document("1.0"), CARD_PLACES[place], "\ud800"))
        outcome = await request_assessment(agent.url, json.dumps({}), lambda _: None)
    assert outcome.state == "lost"
    assert outcome.message.startswith("the agent's answer is not A2A: ")
    assert outcome.message.isprintable()
