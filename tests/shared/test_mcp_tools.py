"""A task's tools over MCP: their order, and what each call returns."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from shared.mcp_tools import TaskOver, TaskTools, TurnPage
from shared.models import ObservationMessage, Page, ToolSpec

CLICK = ToolSpec(name="browser_click", description="Click", parameters={"type": "object", "properties": {}})
FINISH = ToolSpec(name="finish", description="End", parameters={"type": "object", "properties": {}})


def observed(
    title: str,
    *,
    instruction: str | None = None,
    feedback: str | None = None,
    tools: tuple[ToolSpec, ...] = (CLICK, FINISH),
) -> TurnPage:
    page = Page(url="https://a.test/", title=title, snapshot="- button [ref=e1]", screenshot=None)
    message = ObservationMessage(page=page, tools=tools, instruction=instruction, feedback=feedback)
    return TurnPage(message, b"picture", "image/jpeg")


class WrittenTurns:
    """Shows `answers`, then the next pages; `finish` ends the task. `hold`: an action waits for this event."""

    def __init__(self, *answers: TurnPage) -> None:
        self.answers = list(answers)
        self.replies: list[Mapping[str, Any]] = []
        self.begun = 0
        self.hold = asyncio.Event()
        self.hold.set()

    async def begin(self) -> TurnPage:
        self.begun += 1
        return observed("page 0", instruction="Buy a lamp.")

    async def act(self, reply: Mapping[str, Any]) -> TurnPage:
        await self.hold.wait()
        self.replies.append(reply)
        if reply["tool"] == "finish":
            raise TaskOver
        return self.answers.pop(0) if self.answers else observed(f"page {len(self.replies)}")


async def test_an_episode_begins_with_the_first_request_and_only_once() -> None:
    turns = WrittenTurns()
    tools = TaskTools(turns)
    assert turns.begun == 0
    assert [tool.name for tool in await tools.tools()] == ["current_page", "browser_click", "finish"]
    await tools.tools()
    await tools.call("browser_click", {})
    assert turns.begun == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"text": "x" * 300_000}, "The call has 3000"), ({"ref": float("nan")}, "a number that JSON does not have")],
)
async def test_a_call_that_cannot_be_sent_is_an_error_and_no_action(arguments: dict[str, Any], problem: str) -> None:
    turns = WrittenTurns()
    answer = await TaskTools(turns).call("browser_type", arguments)
    assert problem in answer.text
    assert (answer.is_error, turns.replies) == (True, [])


async def test_the_current_page_says_the_task_and_takes_no_action() -> None:
    turns = WrittenTurns()
    tools = TaskTools(turns)
    await tools.call("browser_click", {"target": "e1"})
    answer = await tools.call("current_page", {})
    assert answer.text.startswith("Task: Buy a lamp.\n")
    assert "Title: page 1" in answer.text
    assert turns.replies == [{"tool": "browser_click", "params": {"target": "e1"}}]


async def test_an_action_returns_the_page_after_it_without_the_tools() -> None:
    answer = await TaskTools(WrittenTurns()).call("browser_click", {})
    assert answer.text.startswith("Page: https://a.test/\nTitle: page 1\n")
    assert (answer.screenshot, answer.media_type, answer.is_error) == (b"picture", "image/jpeg", False)


async def test_tools_that_a_page_adds_are_in_the_text() -> None:
    added = ToolSpec(name="site_tool", description="Call a tool", parameters={"type": "object"})
    turns = WrittenTurns(observed("more", tools=(CLICK, FINISH, added)))
    assert "- site_tool: Call a tool" in (await TaskTools(turns).call("browser_click", {})).text


async def test_whatever_is_called_is_the_agents_reply() -> None:
    turns = WrittenTurns()
    answer = await TaskTools(turns).call("rm -rf", {"x": [None]})
    assert not answer.is_error
    assert turns.replies == [{"tool": "rm -rf", "params": {"x": [None]}}]


async def test_calls_at_the_same_time_are_executed_in_order() -> None:
    turns = WrittenTurns()
    tools = TaskTools(turns)
    answers = await asyncio.gather(*(tools.call("browser_click", {"n": n}) for n in range(5)))
    assert [reply["params"]["n"] for reply in turns.replies] == [0, 1, 2, 3, 4]
    assert ["page 1" in answers[0].text, "page 5" in answers[4].text] == [True, True]


async def test_calls_without_end_are_refused() -> None:
    turns = WrittenTurns()
    turns.hold.clear()
    tools = TaskTools(turns)
    waiting = [asyncio.create_task(tools.call("browser_click", {})) for _ in range(40)]
    await asyncio.sleep(0)
    turns.hold.set()
    answers = await asyncio.gather(*waiting)
    assert sum(answer.is_error for answer in answers) == 40 - len(turns.replies) == 8


async def test_an_action_is_executed_to_its_end_if_its_client_goes_away() -> None:
    turns = WrittenTurns()
    turns.hold.clear()
    tools = TaskTools(turns)
    call = asyncio.create_task(tools.call("browser_click", {"n": 1}))
    for _ in range(5):
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    turns.hold.set()
    answer = await tools.call("browser_click", {"n": 2})
    assert [reply["params"]["n"] for reply in turns.replies] == [1, 2]
    assert "page 2" in answer.text


@pytest.mark.parametrize(("feedback", "is_error"), [("A key is missing.", True), ("Result: 42", False)])
async def test_a_complaint_is_an_error_and_an_output_is_none(feedback: str, *, is_error: bool) -> None:
    tools = TaskTools(WrittenTurns(observed("page", feedback=feedback)))
    answer = await tools.call("browser_click", {})
    assert answer.text.startswith(f"Feedback: {feedback}\nPage: ")
    assert answer.is_error == is_error
    # Looking again is no mistake.
    assert not (await tools.call("current_page", {})).is_error


async def test_the_largest_result_is_known() -> None:
    tools = TaskTools(WrittenTurns(observed("a long title" * 10), observed("short")))
    longest = len((await tools.call("browser_click", {})).text)
    await tools.call("browser_click", {})
    assert tools.largest == longest > 150


async def test_calls_after_the_end_are_refused() -> None:
    turns = WrittenTurns()
    tools = TaskTools(turns)
    answers = [await tools.call(name, {}) for name in ("finish", "browser_click", "current_page")]
    assert {answer.text for answer in answers} == {"The task has ended."}
    assert len(turns.replies) == 1
