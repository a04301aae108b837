import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import participants
from helpers.a2a.agents import JPEG, served
from participants.base import (
    MAX_EPISODES,
    Action,
    Decide,
    Observation,
    ParticipantOptions,
    build_participant,
    per_episode,
)
from participants.command import register
from participants.discovery import ParticipantInfo, list_participants, load
from shared import models
from shared.a2a.client import ParticipantClient
from shared.errors import ConfigError, ModelUnavailable, ParticipantError
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
        models.Observation(
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


class Notes:
    """A participant that writes down what it is shown and clicks."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []

    async def __call__(self, observation: Observation) -> Action:
        self.seen.append(observation)
        return Action(tool="browser_click", params={"target": "e1"}, thought="Why not?")


async def test_a_decision_arrives_at_the_judge_as_the_action_it_was() -> None:
    async with playing(Notes()) as judge:
        reply = await judge.send(message("Buy a chair."), image=JPEG, context_id="episode")
    assert parse_reply(reply).action == Action(tool="browser_click", params={"target": "e1"}, thought="Why not?")


async def test_the_first_observation_holds_everything_the_judge_sent() -> None:
    notes = Notes()
    async with playing(notes) as judge:
        await judge.send(message("Buy a chair."), image=JPEG, context_id="episode")
    [seen] = notes.seen
    assert (seen.context_id, seen.step, seen.feedback, seen.tools) == ("episode", 0, None, TOOLS)
    assert (seen.instruction, seen.website) == ("Buy a chair.", "http://shop.test/")
    assert seen.page == Page(
        url="http://shop.test/", title="Shop", snapshot="- main [ref=e1]", screenshot=JPEG, media_type="image/jpeg"
    )
    assert seen.message.instruction == "Buy a chair."


async def test_the_task_is_remembered_through_the_episode_and_the_steps_are_counted() -> None:
    notes = Notes()
    async with playing(notes) as judge:
        await judge.send(message("Buy a chair."), context_id="episode")
        await judge.send(message(title="Chairs"), context_id="episode")
        await judge.send(message(feedback="There is no e1."), context_id="episode")
    assert [seen.step for seen in notes.seen] == [0, 1, 2]
    assert {(seen.instruction, seen.website) for seen in notes.seen} == {("Buy a chair.", "http://shop.test/")}
    assert [seen.page.title for seen in notes.seen] == ["Shop", "Chairs", "Shop"]
    assert [seen.feedback for seen in notes.seen] == [None, None, "There is no e1."]
    assert [seen.message.instruction for seen in notes.seen] == ["Buy a chair.", None, None]


async def test_episodes_at_the_same_time_are_told_apart() -> None:
    notes = Notes()
    async with playing(notes) as judge:
        await judge.send(message("Buy a chair."), context_id="one")
        await judge.send(message("Find the opening hours."), context_id="two")
        await judge.send(message(), context_id="one")
    assert [(seen.context_id, seen.step, seen.instruction) for seen in notes.seen] == [
        ("one", 0, "Buy a chair."),
        ("two", 0, "Find the opening hours."),
        ("one", 1, "Buy a chair."),
    ]


async def test_a_text_is_sent_as_it_is() -> None:
    async def decide(observation: Observation) -> str:
        return "I would rather not say."

    async with playing(decide) as judge:
        assert await judge.send(message("Buy a chair."), context_id="episode") == "I would rather not say."


@pytest.mark.parametrize(
    ("error", "words"),
    [(ModelUnavailable("the model is down"), "the model is down"), (KeyError("detail"), "The agent failed: KeyError.")],
)
async def test_a_decision_that_fails_is_told_to_the_judge(error: Exception, words: str) -> None:
    async def decide(observation: Observation) -> Action:
        raise error

    async with playing(decide) as judge:
        with pytest.raises(ParticipantError, match=f"failed: .*{words}"):
            await judge.send(message("Buy a chair."), context_id="episode")


async def test_a_message_that_is_no_judges_is_refused_and_the_next_one_answered() -> None:
    async with playing(Notes()) as judge:
        with pytest.raises(ParticipantError, match="not an observation of a WABE judge"):
            await judge.send("Hello there!", context_id="episode")
        assert parse_reply(await judge.send(message("Buy a chair."), context_id="episode")).action is not None


async def test_an_episode_whose_beginning_was_missed_is_refused() -> None:
    async with playing(Notes()) as judge:
        with pytest.raises(ParticipantError, match="its task is not known"):
            await judge.send(message(), context_id="episode")


async def test_only_the_newest_episodes_are_remembered() -> None:
    async with playing(Notes()) as judge:
        for number in range(MAX_EPISODES + 1):
            await judge.send(message("Buy a chair."), context_id=f"episode {number}")
        await judge.send(message(), context_id="episode 1")
        with pytest.raises(ParticipantError, match="its task is not known"):
            await judge.send(message(), context_id="episode 0")


async def test_per_episode_makes_one_agent_for_each_episode() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0
            self.task: str | None = None

        async def decide(self, observation: models.Observation) -> str:
            self.count += 1
            self.task = observation.instruction or self.task
            return f"{self.task} {self.count}"

    async with playing(per_episode(lambda: Counter().decide)) as judge:
        replies = [
            await judge.send(message("A."), context_id="one"),
            await judge.send(message("B."), context_id="two"),
            await judge.send(message(), context_id="one"),
            await judge.send(message("A."), context_id="one"),
        ]
    assert replies == ["A. 1", "B. 1", "A. 2", "A. 1"]


# --- found by name ----------------------------------------------------------------------------------------------------


@pytest.fixture
def dropped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that counts as part of the participants' package."""
    monkeypatch.setattr(participants, "__path__", [*participants.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("participants."):
            del sys.modules[name]


WAITER = '''"""Waits and sees.

More about it.
"""
from participants.base import Action

def create(options):
    async def decide(observation):
        return Action(tool="browser_wait_for", params={"time": options.seed})
    return decide
'''


def test_a_module_dropped_in_is_listed_with_its_first_line(dropped_in: Path) -> None:
    (dropped_in / "test_waiter.py").write_text(WAITER)
    assert ParticipantInfo(name="test_waiter", description="Waits and sees.") in list_participants()


@pytest.mark.parametrize("name", ["test_waiter", "test-waiter"])
async def test_a_module_dropped_in_can_be_run(dropped_in: Path, name: str) -> None:
    (dropped_in / "test_waiter.py").write_text(WAITER)
    async with playing(load(name)(ParticipantOptions(seed=7))) as judge:
        reply = parse_reply(await judge.send(message("Wait."), context_id="episode"))
    assert reply.action == Action(tool="browser_wait_for", params={"time": 7})


def test_modules_that_make_no_participant_are_not_listed(dropped_in: Path) -> None:
    (dropped_in / "test_helper.py").write_text("def other(): ...")
    (dropped_in / "test_broken.py").write_text("def create(options:")
    names = {info.name for info in list_participants()}
    assert not names & {"test_helper", "test_broken", "base", "discovery", "command"}


def test_listing_runs_no_module(dropped_in: Path) -> None:
    (dropped_in / "test_bomb.py").write_text("raise SystemExit(3)\ndef create(options): ...")
    assert "test_bomb" in {info.name for info in list_participants()}


@pytest.mark.parametrize("name", ["nobody", "base", "../base", "os", ""])
def test_a_name_that_is_no_participants_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no participant"):
        load(name)


def test_a_module_that_lacks_what_it_imports_is_said_to(dropped_in: Path) -> None:
    (dropped_in / "test_needy.py").write_text("import no_such_library\ndef create(options): ...")
    with pytest.raises(ConfigError, match=r"cannot be loaded: No module named 'no_such_library'"):
        load("test_needy")


def test_the_command_lists_participants(dropped_in: Path) -> None:
    (dropped_in / "test_waiter.py").write_text(WAITER)
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["--list"])
    assert result.exit_code == 0
    assert "test_waiter  Waits and sees.\n" in result.stdout


def test_the_command_without_a_name_is_bad_usage() -> None:
    app = typer.Typer()
    register(app)
    assert isinstance(CliRunner().invoke(app, []).exception, ConfigError)
