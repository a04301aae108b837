"""The random baseline: valid actions only, the same ones for the same seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.participants import observed
from judge.browser.tools import Complaint, check_action, offered_tools
from participants.base import Observation
from participants.random import RandomAgent
from shared.models import Action, Page, ToolSpec
from shared.snapshot import parse_snapshot

SNAPSHOT = """\
- main [ref=e1]:
  - searchbox "Search" [ref=e2]
  - button "Go" [ref=e3]
  - button "Sold out" [disabled] [ref=e4]
  - combobox "Sort" [ref=e5]:
    - option "Price" [selected]
    - option "Name"
  - link "Help" [ref=e6]:
    - /url: /help"""
SERVER_TOOLS = tuple(
    ToolSpec(name=name, description="", parameters={"type": "object", "properties": properties, "required": required})
    for name, properties, required in (
        ("browser_click", {"target": {"type": "string"}, "element": {"type": "string"}}, ["target"]),
        (
            "browser_type",
            {
                "target": {"type": "string"},
                "element": {"type": "string"},
                "text": {"type": "string"},
                "submit": {"type": "boolean"},
            },
            ["target", "text"],
        ),
        (
            "browser_select_option",
            {
                "target": {"type": "string"},
                "element": {"type": "string"},
                "values": {"type": "array", "items": {"type": "string"}},
            },
            ["target", "values"],
        ),
        ("browser_navigate_back", {}, []),
        ("browser_press_key", {"key": {"type": "string"}}, ["key"]),
        ("browser_handle_dialog", {"accept": {"type": "boolean"}}, ["accept"]),
    )
)
TOOLS = offered_tools(SERVER_TOOLS)


TASK = "Find a warm tent"


def observation_of(
    dialog: str | None = None, instruction: str = TASK, tools: tuple[ToolSpec, ...] = TOOLS
) -> Observation:
    page = Page(url="https://a.test/", title="", snapshot=SNAPSHOT, dialog=dialog)
    return observed(page, tools, instruction=instruction)


async def play(seed: int, turns: int = 30) -> list[Action]:
    agent = RandomAgent(seed, observation_of())
    return [await agent(observation_of()) for _ in range(turns)]


@given(st.integers(0, 2**32))
async def test_every_action_is_one_the_judge_accepts(seed: int) -> None:
    for action in await play(seed):
        if action.tool != "finish":
            checked = check_action(action, TOOLS, parse_snapshot(SNAPSHOT))
            assert not isinstance(checked, Complaint), checked


async def test_the_same_seed_gives_the_same_attempt() -> None:
    assert await play(1) == await play(1)
    assert await play(1) != await play(2)


async def test_every_kind_of_action_occurs() -> None:
    tools = {action.tool for seed in range(20) for action in await play(seed)}
    assert tools >= {"browser_click", "browser_type", "browser_select_option", "browser_scroll", "finish"}


async def test_disabled_elements_are_not_used() -> None:
    targets = {action.params.get("target") for seed in range(20) for action in await play(seed)}
    assert "e4" not in targets
    assert targets >= {"e2", "e3", "e5", "e6"}


async def test_an_open_dialog_is_answered_first() -> None:
    action = await RandomAgent(3, observation_of())(observation_of(dialog="Leave the page?"))
    assert action.tool == "browser_handle_dialog"


async def test_a_page_without_tools_ends_the_attempt() -> None:
    action = await RandomAgent(3, observation_of())(observation_of(tools=()))
    assert action.tool == "finish"


@pytest.mark.parametrize("instruction", ["", "   ", "x"])
async def test_any_task_gives_words_to_type(instruction: str) -> None:
    agent = RandomAgent(5, observation_of(instruction=instruction))
    actions = [await agent(observation_of(instruction=instruction)) for _ in range(5)]
    assert all(action.params.get("text", "x") for action in actions)
