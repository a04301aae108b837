"""The episode behind the tools: its order, its end, and what its verdict is."""

import asyncio

import pytest

from judge.environment.errors import EpisodeFault, SessionClosed
from judge.plugins.harbor.episode import AgentEpisode
from plugins.harbor.sessions import CLICK, END, FINISH, WrittenSession, observed
from shared.models import ToolSpec

WON = END._replace(reward=1.0)
FAULT = EpisodeFault("aborted", "browser", "it was killed")


def playing(session: WrittenSession) -> AgentEpisode:
    return AgentEpisode(session, "t1")


async def test_an_episode_begins_with_the_first_request_and_only_once() -> None:
    session = WrittenSession()
    episode = playing(session)
    assert session.resets == 0
    assert [tool.name for tool in await episode.tools()] == ["current_page", "browser_click", "finish"]
    await episode.tools()
    await episode.call("browser_click", {})
    assert session.resets == 1


async def test_the_current_page_says_the_task_and_takes_no_action() -> None:
    session = WrittenSession()
    episode = playing(session)
    await episode.call("browser_click", {"target": "e1"})
    answer = await episode.call("current_page", {})
    assert answer.text.startswith("Task: Buy a lamp.\n")
    assert "Title: page 1" in answer.text
    assert session.replies == [{"tool": "browser_click", "params": {"target": "e1"}}]


async def test_an_action_returns_the_page_after_it_without_the_tools() -> None:
    answer = await playing(WrittenSession()).call("browser_click", {})
    assert answer.text.startswith("Page: https://a.test/\nTitle: page 1\n")
    assert (answer.screenshot, answer.media_type, answer.is_error) == (b"picture", "image/jpeg", False)


async def test_tools_that_a_page_adds_are_in_the_text() -> None:
    added = ToolSpec(name="site_tool", description="Call a tool", parameters={"type": "object"})
    session = WrittenSession(browser_click=observed("more", tools=(CLICK, FINISH, added)))
    assert "- site_tool: Call a tool" in (await playing(session).call("browser_click", {})).text


async def test_whatever_is_called_is_the_agents_reply() -> None:
    session = WrittenSession()
    answer = await playing(session).call("rm -rf", {"x": [None]})
    assert not answer.is_error
    assert session.replies == [{"tool": "rm -rf", "params": {"x": [None]}}]


@pytest.mark.parametrize(("end", "reward"), [(WON, 1.0), (END, 0.0)])
async def test_an_agent_learns_that_the_task_has_ended_but_not_how(end: object, reward: float) -> None:
    session = WrittenSession(finish=end)  # type: ignore[arg-type]
    episode = playing(session)
    answers = [await episode.call(name, {}) for name in ("finish", "finish", "current_page")]
    assert {(answer.text, answer.is_error) for answer in answers} == {("The task has ended.", False)}
    verdict = await episode.end()
    assert (verdict.outcome, verdict.reward, verdict.blame) == ("scored", reward, None)
    assert len(session.replies) == 1


@pytest.mark.parametrize("where", ["reset", "browser_click"])
async def test_a_fault_has_no_reward_and_ends_the_episode(where: str) -> None:
    session = WrittenSession(**{where: FAULT})
    episode = playing(session)
    answers = [await episode.call("browser_click", {}) for _ in range(2)]
    assert all(answer.is_error and "no fault of yours" in answer.text for answer in answers)
    verdict = await episode.end()
    assert verdict.model_dump() == {
        "outcome": "aborted",
        "reward": None,
        "blame": "browser",
        "message": "aborted: browser: it was killed",
    }
    assert session.resets == 1


@pytest.mark.parametrize("error", [SessionClosed("closed"), KeyError("secret check")])
async def test_an_error_of_ours_is_a_fault_that_quotes_nothing(error: Exception) -> None:
    episode = playing(WrittenSession(browser_click=error))
    answer = await episode.call("browser_click", {})
    verdict = await episode.end()
    assert (verdict.outcome, verdict.reward, verdict.blame) == ("aborted", None, "internal")
    assert "secret" not in f"{answer}{verdict}"


@pytest.mark.parametrize("actions", [0, 2])
async def test_an_agent_that_stops_without_finish_has_failed(actions: int) -> None:
    session = WrittenSession()
    episode = playing(session)
    for _ in range(actions):
        await episode.call("browser_click", {})
    assert (await episode.end()).reward == 0
    assert (await episode.end()).reward == 0
    assert session.replies[actions:] == ["", "", ""]


async def test_calls_at_the_same_time_are_executed_in_order() -> None:
    session = WrittenSession()
    episode = playing(session)
    answers = await asyncio.gather(*(episode.call("browser_click", {"n": n}) for n in range(5)))
    assert [reply["params"]["n"] for reply in session.replies] == [0, 1, 2, 3, 4]
    assert ["page 1" in answers[0].text, "page 5" in answers[4].text] == [True, True]


async def test_calls_without_end_are_refused() -> None:
    session = WrittenSession()
    session.hold.clear()
    episode = playing(session)
    waiting = [asyncio.create_task(episode.call("browser_click", {})) for _ in range(40)]
    await asyncio.sleep(0)
    session.hold.set()
    answers = await asyncio.gather(*waiting)
    assert sum(answer.is_error for answer in answers) == 40 - len(session.replies) == 8


async def test_an_action_is_executed_to_its_end_if_its_client_goes_away() -> None:
    session = WrittenSession()
    session.hold.clear()
    episode = playing(session)
    call = asyncio.create_task(episode.call("browser_click", {"n": 1}))
    for _ in range(5):
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    session.hold.set()
    answer = await episode.call("browser_click", {"n": 2})
    assert [reply["params"]["n"] for reply in session.replies] == [1, 2]
    assert "page 2" in answer.text


async def test_a_verdict_does_not_wait_for_calls_of_an_agent_that_is_gone() -> None:
    session = WrittenSession()
    session.hold.clear()
    episode = playing(session)
    calls = [asyncio.create_task(episode.call("browser_click", {"n": n})) for n in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    ending = asyncio.create_task(episode.end())
    await asyncio.sleep(0)
    session.hold.set()
    assert (await ending).reward == 0
    assert session.replies == [{"tool": "browser_click", "params": {"n": 0}}, "", "", ""]
    assert [(await call).is_error for call in calls] == [False, True, True]


async def test_closing_abandons_what_is_in_progress() -> None:
    session = WrittenSession()
    session.hold.clear()
    episode = playing(session)
    call = asyncio.create_task(episode.call("browser_click", {}))
    for _ in range(5):
        await asyncio.sleep(0)
    await episode.aclose()
    assert session.closed == 1
    with pytest.raises(asyncio.CancelledError):
        await call
