"""Malformed answers and cards: whatever decoding them breaks, the sender scores 0 and nothing is aborted."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.a2a.envelopes import (
    PROTOCOLS,
    body_agent,
    card_document,
    cards,
    encode,
    envelopes,
    faults,
    in_envelope,
    outcomes_of_cards,
    outcomes_of_envelopes,
    raw,
    replaced,
    reply_documents,
)
from helpers.episode.still_page import PlayedTask, play
from judge.runner.follow import request_assessment
from shared.a2a.client import ParticipantClient

COUNT = 200
Record = Callable[[str, object], None]

BROKEN_REPLIES: dict[str, tuple[str, bytes]] = {
    "a lone surrogate as the message": ("1.0", encode(in_envelope({"message": "\ud800"}))),
    "a lone surrogate as a part": ("1.0", encode(in_envelope({"message": {"parts": ["\ud800"]}}))),
    "a lone surrogate as the text": ("1.0", encode(in_envelope({"message": {"parts": [{"text": "\ud800"}]}}))),
    "400 digits in a data part": ("1.0", encode(in_envelope({"message": {"parts": [{"data": {"n": 10**400}}]}}))),
    "5,000 digits": ("1.0", encode(in_envelope({"message": {"parts": [{"data": raw("1" * 5_000)}]}}))),
    "two members of a choice": ("1.0", encode(in_envelope({"message": {}, "task": {}}))),
    "a lone surrogate as the message, 0.3": ("0.3", encode(in_envelope("\ud800"))),
    "400 digits in a data part, 0.3": (
        "0.3",
        encode(in_envelope(replaced(reply_documents("0.3")[0], ("parts", 1, "data"), {"n": 10**400}))),
    ),
    "a lone surrogate over HTTP+JSON": ("http+json", encode({"message": "\ud800"})),
    "an error message that is a number of 400 digits": (
        "1.0",
        encode({"jsonrpc": "2.0", "id": "1", "error": {"code": 10**400, "message": 10**400}}),
    ),
    "UTF-16": ("1.0", encode(in_envelope(reply_documents("1.0")[0])).decode().encode("utf-16")),
    "100,000 lists": ("1.0", b"[" * 100_000),
}
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


async def play_against(
    folder: Path, protocol: str, *, reply: bytes | None = None, card: bytes | None = None
) -> PlayedTask:
    async with body_agent(protocol) as agent:
        agent.reply, agent.card = reply or agent.reply, card or agent.card

        @asynccontextmanager
        async def connect() -> AsyncIterator[ParticipantClient]:
            async with ParticipantClient(agent.url, reply_timeout_s=5) as client:
                yield client

        return await play(folder, connect)


def scored_zero(attempt: PlayedTask) -> bool:
    is_blamed = attempt.error.startswith("participant: ") and attempt.entry["stop_reason"] == "participant_error"
    return attempt.outcome == "failure" and is_blamed and attempt.retries == 0


@pytest.mark.slow
@pytest.mark.parametrize("polled", [False, True], ids=["sent", "polled"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_mutated_answers_are_replies_or_the_participants_error(
    protocol: str, polled: bool, record_property: Record
) -> None:
    # Polling takes two requests for each.
    count = COUNT // 2 if polled else COUNT
    bodies = envelopes(protocol, count, polled=polled)
    counts = await outcomes_of_envelopes(protocol, bodies, polled=polled)
    record_property("outcome", dict(counts))
    assert not faults(counts)
    assert counts.total() == count
    # Neither all refused at once nor all harmless: the damage lies in places that are decoded.
    assert count / 10 < counts["reply"] < count * 0.9


@pytest.mark.slow
async def test_mutated_cards_are_usable_or_the_participants_error(record_property: Record) -> None:
    counts = await outcomes_of_cards(cards(COUNT))
    record_property("outcome", dict(counts))
    assert not faults(counts)
    assert counts.total() == COUNT
    assert 20 < counts["reply"] < COUNT - 20


@pytest.mark.parametrize("what", BROKEN_REPLIES)
async def test_a_task_answered_with_a_broken_envelope_is_scored_zero(
    tmp_path: Path, what: str, record_property: Record
) -> None:
    protocol, body = BROKEN_REPLIES[what]
    attempts = await play_against(tmp_path, protocol, reply=body)
    record_property("outcome", attempts.summary())
    assert scored_zero(attempts), attempts.summary()


@pytest.mark.parametrize("value", ["\ud800", 10**400], ids=["a surrogate", "400 digits"])
@pytest.mark.parametrize("place", CARD_PLACES)
async def test_a_task_of_a_participant_with_a_broken_card_is_scored_zero(
    tmp_path: Path, place: str, value: Any, record_property: Record
) -> None:
    card = encode(replaced(card_document("1.0"), CARD_PLACES[place], value))
    attempts = await play_against(tmp_path, "1.0", card=card)
    record_property("outcome", attempts.summary())
    assert scored_zero(attempts), attempts.summary()


@pytest.mark.parametrize("place", CARD_PLACES)
async def test_a_judge_with_a_broken_card_is_reported_in_one_line(place: str, record_property: Record) -> None:
    async with body_agent() as agent:
        agent.card = encode(replaced(card_document("1.0"), CARD_PLACES[place], "\ud800"))
        outcome = await request_assessment(agent.url, json.dumps({}), lambda _: None)
    record_property("outcome", f"{outcome.state}: {outcome.message}")
    assert outcome.state == "lost"
    assert outcome.message.startswith("the agent's answer is not A2A: ")
    assert outcome.message.isprintable()


@pytest.mark.parametrize("what", [name for name, (protocol, _) in BROKEN_REPLIES.items() if protocol == "1.0"])
async def test_a_judge_that_answers_with_a_broken_envelope_is_reported_in_one_line(
    what: str, record_property: Record
) -> None:
    async with body_agent() as agent:
        agent.reply = agent.polled = BROKEN_REPLIES[what][1]
        outcome = await request_assessment(agent.url, json.dumps({}), lambda _: None)
    record_property("outcome", f"{outcome.state}: {outcome.message}")
    assert outcome.state == "lost"
    assert outcome.message.startswith("the agent")
    assert outcome.message.isprintable()
