"""The episode behind the tools: its order, its end, and what its verdict is."""

import asyncio

import pytest

from judge.environment.errors import EpisodeFault, SessionClosed
from judge.plugins.harbor.episode import AgentEpisode
from plugins.harbor.sessions import END, WrittenSession

WON = END._replace(reward=1.0)
FAULT = EpisodeFault("aborted", "browser", "it was killed")


def playing(session: WrittenSession) -> AgentEpisode:
    return AgentEpisode(session, "t1")


@pytest.mark.parametrize(("end", "reward"), [(WON, 1.0), (END, 0.0)])
async def test_an_agent_learns_that_the_task_has_ended_but_not_how(end: object, reward: float) -> None:
    session = WrittenSession(finish=end)  # type: ignore[arg-type]
    episode = playing(session)
    answers = [await episode.tools.call(name, {}) for name in ("finish", "finish", "current_page")]
    assert {(answer.text, answer.is_error) for answer in answers} == {("The task has ended.", False)}
    verdict = await episode.end()
    assert (verdict.outcome, verdict.reward, verdict.blame) == ("scored", reward, None)
    assert len(session.replies) == 1


@pytest.mark.parametrize("where", ["reset", "browser_click"])
async def test_a_fault_has_no_reward_and_ends_the_episode(where: str) -> None:
    session = WrittenSession(**{where: FAULT})
    episode = playing(session)
    answers = [await episode.tools.call("browser_click", {}) for _ in range(2)]
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
    answer = await episode.tools.call("browser_click", {})
    verdict = await episode.end()
    assert (verdict.outcome, verdict.reward, verdict.blame) == ("aborted", None, "internal")
    assert "secret" not in f"{answer}{verdict}"


@pytest.mark.parametrize("actions", [0, 2])
async def test_an_agent_that_stops_without_finish_has_failed(actions: int) -> None:
    session = WrittenSession()
    episode = playing(session)
    for _ in range(actions):
        await episode.tools.call("browser_click", {})
    assert (await episode.end()).reward == 0
    assert (await episode.end()).reward == 0
    assert session.replies[actions:] == ["", "", ""]


async def test_a_verdict_does_not_wait_for_calls_of_an_agent_that_is_gone() -> None:
    session = WrittenSession()
    session.hold.clear()
    episode = playing(session)
    calls = [asyncio.create_task(episode.tools.call("browser_click", {"n": n})) for n in range(3)]
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
    call = asyncio.create_task(episode.tools.call("browser_click", {}))
    for _ in range(5):
        await asyncio.sleep(0)
    await episode.aclose()
    assert session.closed == 1
    with pytest.raises(asyncio.CancelledError):
        await call
