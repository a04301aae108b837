import contextlib
from collections.abc import AsyncIterator
from importlib import metadata

import pytest

from helpers.a2a.agents import JPEG, served
from participants.base import MAX_ATTEMPTS, Action, Decide, Observation, build_participant, per_attempt
from shared import models
from shared.a2a.client import ParticipantClient, fetch_card
from shared.errors import ModelUnavailable, ParticipantError
from shared.models import Page, ToolSpec
from shared.protocol import parse_reply, render_observation

TOOLS = (
    ToolSpec(
        name="browser_click",
        description="Click.",
        parameters={
            "type": "object",
            "properties": {"target": {"type": "string"}},
            "required": ["target"],
            "additionalProperties": False,
        },
    ),
)


def message(instruction: str | None = None, *, feedback: str | None = None, title: str = "Shop") -> str:
    return render_observation(
        models.ObservationMessage(
            page=Page(url="http://shop.test/", title=title, snapshot="- main [ref=e1]"),
            tools=TOOLS,
            instruction=instruction,
            website=None if instruction is None else "http://shop.test/",
            feedback=feedback,
        )
    )


@contextlib.asynccontextmanager
async def playing(decide: Decide) -> AsyncIterator[ParticipantClient]:
    app = build_participant(decide, name="tested", card_url="http://participant.invalid/")
    async with served(app) as url, ParticipantClient(url) as client:
        yield client


@pytest.mark.parametrize(("version", "expected"), [("2.1", "2.1"), (None, metadata.version("wabe"))])
async def test_its_card_has_the_version_of_the_agent(version: str | None, expected: str) -> None:
    app = build_participant(Notes(), name="tested", card_url="http://participant.invalid/", version=version)
    async with served(app) as url:
        assert (await fetch_card(url, timeout_s=5)).version == expected


class Notes:
    """A participant that records its observations and clicks."""

    def __init__(self) -> None:
        self.observations: list[Observation] = []

    async def __call__(self, observation: Observation) -> Action:
        self.observations.append(observation)
        return Action(tool="browser_click", params={"target": "e1"}, thought="Why not?")


async def test_a_decision_arrives_at_the_judge_as_the_action_it_was() -> None:
    async with playing(Notes()) as judge:
        reply = await judge.send(message("Buy a chair."), image=JPEG, context_id="episode")
    assert parse_reply(reply).action == Action(tool="browser_click", params={"target": "e1"}, thought="Why not?")


async def test_the_first_observation_has_everything_the_judge_sent() -> None:
    notes = Notes()
    async with playing(notes) as judge:
        await judge.send(message("Buy a chair."), image=JPEG, context_id="episode")
    [observation] = notes.observations
    assert observation.text == message("Buy a chair.")
    assert (observation.context_id, observation.step, observation.feedback, observation.tools) == (
        "episode",
        0,
        None,
        TOOLS,
    )
    assert (observation.instruction, observation.website) == ("Buy a chair.", "http://shop.test/")
    assert observation.page == Page(
        url="http://shop.test/", title="Shop", snapshot="- main [ref=e1]", screenshot=JPEG, media_type="image/jpeg"
    )
    assert observation.message.instruction == "Buy a chair."


async def test_the_task_is_remembered_through_the_attempt_and_the_steps_are_counted() -> None:
    notes = Notes()
    async with playing(notes) as judge:
        await judge.send(message("Buy a chair."), context_id="episode")
        await judge.send(message(title="Chairs"), context_id="episode")
        await judge.send(message(feedback="There is no e1."), context_id="episode")
    assert [observation.step for observation in notes.observations] == [0, 1, 2]
    assert {(observation.instruction, observation.website) for observation in notes.observations} == {
        ("Buy a chair.", "http://shop.test/")
    }
    assert [observation.page.title for observation in notes.observations] == ["Shop", "Chairs", "Shop"]
    assert [observation.feedback for observation in notes.observations] == [None, None, "There is no e1."]
    assert [observation.message.instruction for observation in notes.observations] == ["Buy a chair.", None, None]


async def test_parallel_attempts_do_not_mix() -> None:
    notes = Notes()
    async with playing(notes) as judge:
        await judge.send(message("Buy a chair."), context_id="one")
        await judge.send(message("Find the opening hours."), context_id="two")
        await judge.send(message(), context_id="one")
    assert [
        (observation.context_id, observation.step, observation.instruction) for observation in notes.observations
    ] == [("one", 0, "Buy a chair."), ("two", 0, "Find the opening hours."), ("one", 1, "Buy a chair.")]


async def test_a_text_is_sent_unchanged() -> None:
    async def decide(observation: Observation) -> str:
        return "I would rather not say."

    async with playing(decide) as judge:
        assert await judge.send(message("Buy a chair."), context_id="episode") == "I would rather not say."


@pytest.mark.parametrize(
    ("error", "words"),
    [(ModelUnavailable("the model is down"), "the model is down"), (KeyError("detail"), "The agent failed: KeyError.")],
)
async def test_a_failed_decision_is_reported_to_the_judge(error: Exception, words: str) -> None:
    async def decide(observation: Observation) -> Action:
        raise error

    async with playing(decide) as judge:
        with pytest.raises(ParticipantError, match=f"failed: .*{words}"):
            await judge.send(message("Buy a chair."), context_id="episode")


async def test_a_message_that_is_not_from_a_judge_is_refused_and_the_next_one_answered() -> None:
    async with playing(Notes()) as judge:
        with pytest.raises(ParticipantError, match="not an observation of a WABE judge"):
            await judge.send("Hello there!", context_id="episode")
        assert parse_reply(await judge.send(message("Buy a chair."), context_id="episode")).action is not None


async def test_an_attempt_whose_first_message_was_missed_is_refused() -> None:
    async with playing(Notes()) as judge:
        with pytest.raises(ParticipantError, match="the task of this conversation is unknown"):
            await judge.send(message(), context_id="episode")


@pytest.mark.slow
async def test_only_the_newest_attempts_are_remembered() -> None:
    async with playing(Notes()) as judge:
        for number in range(MAX_ATTEMPTS + 1):
            await judge.send(message("Buy a chair."), context_id=f"episode {number}")
        await judge.send(message(), context_id="episode 1")
        with pytest.raises(ParticipantError, match="the task of this conversation is unknown"):
            await judge.send(message(), context_id="episode 0")


async def test_the_end_of_an_attempt_is_announced_once_to_an_agent_that_declares_it() -> None:
    ended: list[str] = []

    async def on_end(context_id: str) -> None:
        ended.append(context_id)

    app = build_participant(Notes(), name="tested", card_url="http://participant.invalid/", on_end=on_end)
    async with served(app) as url, ParticipantClient(url) as judge:
        await judge.end("unknown")
        await judge.send(message("Buy a chair."), context_id="one")
        await judge.send(message("Buy a lamp."), context_id="two")
        await judge.end("one")
        await judge.end("one")
        # Its task is forgotten, and no other one's.
        with pytest.raises(ParticipantError, match="the task of this conversation is unknown"):
            await judge.send(message(), context_id="one")
        await judge.send(message(), context_id="two")
    assert ended == ["one"]


async def test_per_attempt_creates_one_agent_for_each_attempt() -> None:
    def create(first: Observation) -> Decide:
        steps: list[int] = []

        async def decide(observation: Observation) -> str:
            steps.append(observation.step)
            return f"{first.instruction} {len(steps)}"

        return decide

    async with playing(per_attempt(create)) as judge:
        replies = [
            await judge.send(message("A."), context_id="one"),
            await judge.send(message("B."), context_id="two"),
            await judge.send(message(), context_id="one"),
            await judge.send(message("A."), context_id="one"),
        ]
    assert replies == ["A. 1", "B. 1", "A. 2", "A. 1"]
