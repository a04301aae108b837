"""The random baseline: valid actions only, the same ones for the same seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.browser.tools import Complaint, check_action, offered_tools
from participants.random_policy import RandomPlayer
from shared.models import Action, Observation, Page, ToolSpec
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


def seen(
    snapshot: str = SNAPSHOT, dialog: str | None = None, instruction: str | None = "Find a warm tent"
) -> Observation:
    page = Page(url="https://a.test/", title="", snapshot=snapshot, dialog=dialog)
    return Observation(page=page, tools=TOOLS, instruction=instruction, website="https://a.test/")


async def play(seed: int, turns: int = 30) -> list[Action]:
    player = RandomPlayer(seed)
    return [await player.decide(seen(instruction="Find a warm tent" if turn == 0 else None)) for turn in range(turns)]


@given(st.integers(0, 2**32))
async def test_every_action_is_one_the_judge_accepts(seed: int) -> None:
    for action in await play(seed):
        if action.tool != "finish":
            checked = check_action(action, TOOLS, parse_snapshot(SNAPSHOT))
            assert not isinstance(checked, Complaint), checked


async def test_the_same_seed_gives_the_same_episode() -> None:
    assert await play(1) == await play(1)
    assert await play(1) != await play(2)


async def test_every_kind_of_action_comes_up() -> None:
    tools = {action.tool for seed in range(20) for action in await play(seed)}
    assert tools >= {"browser_click", "browser_type", "browser_select_option", "browser_scroll", "finish"}


async def test_disabled_elements_are_left_alone() -> None:
    targets = {action.params.get("target") for seed in range(20) for action in await play(seed)}
    assert "e4" not in targets
    assert targets >= {"e2", "e3", "e5", "e6"}


async def test_an_open_dialog_is_answered_first() -> None:
    action = await RandomPlayer(3).decide(seen(dialog="Leave the page?"))
    assert action.tool == "browser_handle_dialog"


async def test_a_page_without_tools_ends_the_episode() -> None:
    player = RandomPlayer(3)
    action = await player.decide(seen().model_copy(update={"tools": ()}))
    assert action.tool == "finish"


@pytest.mark.parametrize("instruction", ["", "   ", "x"])
async def test_any_task_gives_words_to_type(instruction: str) -> None:
    player = RandomPlayer(5)
    actions = [await player.decide(seen(instruction=instruction)) for _ in range(5)]
    assert all(action.params.get("text", "x") for action in actions)
