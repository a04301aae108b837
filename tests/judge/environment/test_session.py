"""Sessions of a host, with a scripted browser: which answer each call has, and what is an error."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.environment.scripted import FINISH, GO, GOAL, LEAVE, hosting, navigates
from helpers.episode.scripted import HOME, ScriptedBrowser
from judge.browser.settle import SettleMode
from judge.environment.errors import CapacityReached, EpisodeFault, NotReset, SessionClosed
from judge.environment.host import HostSettings
from judge.environment.session import EnvironmentSession
from shared.errors import BrowserFault, ConfigError
from shared.models import Notice, Page


async def reward_of(session: EnvironmentSession, *replies: object, **reset: Any) -> float | None:
    """The reward of an episode with these replies; every answer before the last one has none."""
    answer = await session.reset(**reset)
    for reply in replies:
        assert (answer.done, answer.reward) == (False, None)
        answer = await session.step(reply)
    assert answer.done
    assert answer.message is None
    return answer.reward


async def test_an_episode_has_one_reward_at_its_end(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        session = host.session()
        assert await reward_of(session, GO, FINISH) == 1.0
        assert await reward_of(session, FINISH) == 0.0
        assert await reward_of(session, LEAVE, GO, LEAVE, FINISH) == 0.0
    assert list(tmp_path.iterdir()) == [], "nothing is kept of an unrecorded episode"


async def test_an_observation_is_what_a_participant_is_sent(tmp_path: Path) -> None:
    async with hosting(tmp_path, host=HostSettings(images=True)) as host:
        session = host.session()
        first = await session.reset("second", episode_id="mine")
        assert first.message is not None
        assert first.message.instruction == "Reach the goal."
        assert first.message.page.url == HOME
        assert first.screenshot == first.message.page.screenshot == b"\xff\xd8"
        assert "- browser_navigate" in first.text
        then = await session.step(GO)
        assert then.message is not None
        assert then.message.tools == first.message.tools
        assert then.text == f"Page: {GOAL}\nTitle: \nSnapshot:\n- text", "the tools are known by now"
        assert session.state().model_dump() == {"episode_id": "mine", "task_id": "second", "step_count": 1}


async def test_screenshots_are_sent_only_if_the_host_says_so(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        assert (await host.session().reset()).screenshot is None


async def test_tasks_come_in_order_or_by_id_or_by_seed(tmp_path: Path) -> None:
    async with hosting(tmp_path, host=HostSettings(sessions=2)) as host:
        chosen: list[list[str | None]] = []
        for session in (host.session(), host.session()):
            chosen.append([])
            ways: list[dict[str, Any]] = [{}, {"task_id": "third"}, {}, {}, {}, *({"seed": seed} for seed in range(6))]
            for how in ways:
                await session.reset(**how)
                chosen[-1].append(session.state().task_id)
        assert chosen[0][:5] == ["first", "third", "second", "third", "first"]
        assert chosen[0] == chosen[1]
        assert set(chosen[0][5:]) == {"first", "second", "third"}
        with pytest.raises(ConfigError, match="task 'fourth' is not on offer"):
            await session.reset("fourth")
        assert await session.step(FINISH), "the episode in progress goes on"


async def test_a_step_needs_an_episode(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        session = host.session()
        for _ in range(2):
            with pytest.raises(NotReset):
                await session.step(FINISH)
            await reward_of(session, FINISH)


async def test_a_reset_in_the_middle_abandons_the_episode(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        session = host.session()
        await session.reset()
        await session.step(GO)
        assert await reward_of(session, FINISH) == 0.0, "nothing of the first one counts"


async def test_there_is_no_waiting_for_a_session(tmp_path: Path) -> None:
    async with hosting(tmp_path, host=HostSettings(sessions=2)) as host:
        first, _ = host.session(), host.session()
        with pytest.raises(CapacityReached, match="capacity reached: 2 of 2 sessions are open") as caught:
            host.session()
        assert (caught.value.active, caught.value.maximum) == (2, 2)
        await first.close()
        assert host.active == 1
        host.session()


async def test_sessions_on_a_site_that_is_reset_are_as_many_as_may_play_at_once(tmp_path: Path) -> None:
    resets: dict[str, Any] = {"site_resets": {HOME: f"{HOME}reset"}}
    with pytest.raises(ConfigError, match="2 sessions, but only 1 at once can play task first, whose site is reset"):
        async with hosting(tmp_path, host=HostSettings(sessions=2), **resets):
            pass
    async with hosting(tmp_path, host=HostSettings(sessions=2), site_resets={HOME: "static"}) as host:
        assert host.session()


async def test_an_idle_episode_is_abandoned_and_its_place_is_free(tmp_path: Path) -> None:
    async with hosting(tmp_path, host=HostSettings(idle_s=0.05)) as host:
        session = host.session()
        await asyncio.sleep(0.2)
        await session.reset()
        await asyncio.wait_for(session.closed.wait(), 5)
        assert host.active == 0
        with pytest.raises(EpisodeFault, match=r"^lost: user: no action came within 0.05 s$") as caught:
            await session.step(FINISH)
        assert (caught.value.ending, caught.value.party) == ("lost", "user")
        with pytest.raises(SessionClosed):
            await session.reset()


async def test_a_trainers_time_is_nobodys(tmp_path: Path) -> None:
    limits: dict[str, Any] = {
        "action_timeout_s": 0.1,
        "navigation_timeout_s": 0.11,
        "call_timeout_s": 0.12,
        "reply_timeout_s": 0.1,
    }
    limits |= {"step_timeout_s": 0.3, "task_timeout_s": 0.31, "attempt_timeout_s": 0.32}
    async with hosting(tmp_path, **limits) as host:
        session = host.session()
        await session.reset()
        await session.step(GO)
        await asyncio.sleep(0.4)
        assert (await session.step(FINISH)).reward == 1.0


async def test_a_question_before_the_last_answer_closes_the_session(tmp_path: Path) -> None:
    async def waits(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
        await asyncio.sleep(0.2)

    async with hosting(tmp_path, lambda: ScriptedBrowser(waits)) as host:
        session = host.session()
        await session.reset()
        first = asyncio.create_task(session.step(GO))
        await asyncio.sleep(0.05)
        with pytest.raises(SessionClosed, match="a question came before the last answer"):
            await session.reset()
        with pytest.raises(EpisodeFault, match=r"^lost: user: "):
            await first
        assert host.active == 0


async def test_a_client_that_stops_waiting_gets_no_late_answer(tmp_path: Path) -> None:
    async def waits(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
        await asyncio.sleep(0.2)

    async with hosting(tmp_path, lambda: ScriptedBrowser(waits)) as host:
        session = host.session()
        await session.reset()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.step(GO), 0.05)
        assert host.active == 0
        with pytest.raises(SessionClosed):
            await session.step(FINISH)


async def test_a_fault_before_the_first_observation_is_played_again(tmp_path: Path) -> None:
    faults = [BrowserFault("killed")]

    class Breaking(ScriptedBrowser):
        async def open(self, *args: Any, **kwargs: Any) -> None:
            if faults:
                raise faults.pop()
            await super().open(*args, **kwargs)

    async with hosting(tmp_path, lambda: Breaking(navigates)) as host:
        assert await reward_of(host.session(), GO, FINISH) == 1.0
        assert faults == []
    faults += [BrowserFault("killed"), BrowserFault("killed")]
    async with hosting(tmp_path, lambda: Breaking(navigates)) as host:
        with pytest.raises(EpisodeFault, match=r"^aborted: browser: killed$"):
            await host.session().reset()


async def test_a_fault_after_the_first_observation_is_an_error_and_nothing_is_played_again(tmp_path: Path) -> None:
    attempts: list[str] = []

    async def breaks(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
        attempts.append(tool)
        raise BrowserFault("killed")

    async with hosting(tmp_path, lambda: ScriptedBrowser(breaks)) as host:
        session = host.session()
        await session.reset()
        with pytest.raises(EpisodeFault, match=r"^aborted: browser: killed"):
            await session.step({"tool": "browser_press_key", "params": {"key": "a"}})
        assert attempts == ["browser_press_key"]
        with pytest.raises(NotReset):
            await session.step(FINISH)
        assert await reward_of(session, FINISH) == 0.0


async def test_page_time_that_does_not_work_for_a_site_is_an_error_once(tmp_path: Path) -> None:
    modes: list[SettleMode] = []

    class Stopping(ScriptedBrowser):
        async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
            modes.append(settle)
            await super().open(url, settle, clock_ms)

        async def observe(self) -> Page:
            found = await super().observe()
            is_stopped = modes[-1] == "page-time" and found.url == GOAL
            return found.model_copy(update={"notice": Notice(code="script_stopped", seconds=1)} if is_stopped else {})

    async def follows(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
        browser.goes(GOAL)

    static: dict[str, Any] = {"settle": "page-time", "site_resets": {HOME: "static"}}
    async with hosting(tmp_path, lambda: Stopping(follows), names=["first"], **static) as host:
        session = host.session()
        await session.reset()
        press = {"tool": "browser_press_key", "params": {"key": "Enter"}}
        with pytest.raises(EpisodeFault, match=r"^aborted: site: a script of the page did not end"):
            await session.step(press)
        assert await reward_of(session, press, FINISH) == 1.0
        assert modes == ["page-time", "real-time"]


async def test_an_episode_that_cannot_be_judged_is_an_error_that_quotes_no_check(tmp_path: Path) -> None:
    checks = [{"kind": "request", "url": "/secret-path", "method": "POST"}]
    async with hosting(tmp_path, checks=checks, record_network=False) as host:
        session = host.session()
        await session.reset()
        with pytest.raises(EpisodeFault, match=r"^unscored: judge model: ") as caught:
            await session.step(FINISH)
        assert "secret-path" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=9), inner, max_size=3)
    ),
    max_leaves=12,
)
ACTIONS = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["browser_navigate", "browser_press_key", "browser_wait_for", "finish", "nothing"])
        | JSON
    },
    optional={"params": JSON | st.fixed_dictionaries({"url": JSON}), "thought": JSON},
)
NESTED: object = "x"
for _ in range(2000):
    NESTED = [NESTED]
REPLIES = (
    JSON | ACTIONS | st.sampled_from(["\ud800", "<json>" * 50, "a" * 1_100_000, object(), {1: 2}, {(1,): 2}, NESTED])
)


@pytest.mark.slow
@given(st.lists(REPLIES, max_size=5))
async def test_nothing_that_a_policy_writes_is_an_error(
    tmp_path_factory: pytest.TempPathFactory, replies: list[Any]
) -> None:
    async with hosting(tmp_path_factory.mktemp("episodes")) as host:
        session = host.session()
        answer = await session.reset()
        for reply in (*replies, *["still nothing"] * 3):
            if answer.done:
                break
            assert answer.reward is None
            answer = await session.step(reply)
        assert answer.done
        assert answer.reward in (0.0, 1.0)
