"""No false reward: 500 episodes in which faults are put at random places, against an oracle that knows them.

A reward is only ever the one that the same replies have without a fault; a fault that the policy did not cause, after
the first observation and before the policy has ended, is an error; and without a fault there is always a reward. A
browser that breaks on a page that the policy has named is a 0, unless another process killed it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.environment.scripted import GOAL, hosting
from helpers.episode.scripted import HOME, ScriptedBrowser
from judge.browser.session import Hop, Traffic
from judge.browser.settle import SettleMode
from judge.config import RunConfig
from judge.environment.errors import EpisodeFault
from judge.environment.host import HostSettings
from judge.environment.session import EnvironmentSession, StepResult
from judge.judges.checked import ChecksJudge
from judge.records.verdicts import Verdict
from judge.store.layout import TaskStore
from judge.trajectory.record import Trajectory
from shared.errors import BrowserFault, InternalFault, SiteBlocked, SiteUnreachable
from shared.models import Page

MAX_STEPS = 4
IDLE_S = 0.05


def click(target: str) -> dict[str, Any]:
    return {"tool": "browser_click", "params": {"target": target}}


NAMED = f"{HOME}named"
REPLIES: dict[str, object] = {
    "goal": click("e1"),
    "other": click("e2"),
    "named": {"tool": "browser_navigate", "params": {"url": NAMED}},
    "unreadable": "Let me think about it.",
    "unknown": {"tool": "browser_fly"},
    "finish": {"tool": "finish", "params": {"answer": "done"}},
}
ACTIONS = ("goal", "other", "named")
EXCEPTIONS = (BrowserFault, SiteUnreachable, SiteBlocked, InternalFault, RuntimeError, OSError)
PLACES = ("nowhere", "open", "observe", "act", "traffic", "judge", "begin", "end", "idle", "close", "reset")


class Fault(NamedTuple):
    """What goes wrong: at the call of this number in a place, from 0, and at so many calls from there on.

    `is_killed`: the browser, by another process; otherwise it crashed.
    """

    place: str
    at: int
    times: int
    error: type[Exception]
    is_killed: bool = False


NOTHING = Fault("nowhere", 0, 0, RuntimeError)


class Faults:
    """Counts calls and makes those of a fault fail. `fired` are the numbers of the calls that failed."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self._calls = 0
        self.fired: list[int] = []

    def call(self, place: str) -> bool:
        """Whether this call is to fail."""
        if place != self.fault.place:
            return False
        number, self._calls = self._calls, self._calls + 1
        is_due = self.fault.at <= number < self.fault.at + self.fault.times
        self.fired += [number] if is_due else []
        return is_due

    def at(self, place: str) -> None:
        if self.call(place):
            raise self.fault.error("injected")


class FaultyBrowser(ScriptedBrowser):
    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def _fails_at(self, place: str) -> None:
        try:
            self._faults.at(place)
        except BrowserFault:
            self._ends()
            raise

    def _ends(self) -> None:
        self.hops.append(Hop(event="lost", is_killed=self._faults.fault.is_killed))

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        self._fails_at("open")
        await super().open(url, settle, clock_ms)

    async def observe(self) -> Page:
        self._fails_at("observe")
        found = await super().observe()
        return found.model_copy(update={"snapshot": '- button "Go" [ref=e1]\n- button "Leave" [ref=e2]'})

    async def act(self, tool: str, params: dict[str, Any]) -> Any:
        self._fails_at("act")
        if "url" in params:
            self.goes_to(params["url"])
        else:
            self.goes(GOAL if params["target"] == "e1" else f"{HOME}other")
        return await super().act(tool, params)

    def traffic(self) -> Traffic | None:
        if not self._faults.call("traffic"):
            return super().traffic()
        self._ends()
        return None


class FaultyJudge(ChecksJudge):
    def __init__(self, faults: Faults) -> None:
        super().__init__(RunConfig(judge_model="offline"))
        self._faults = faults

    def recompute(self, trajectory: Trajectory) -> Verdict:
        self._faults.at("judge")
        return super().recompute(trajectory)


class FaultyEpisodes:
    """A disk that is full at the beginning or the end of an episode."""

    def __init__(self, folder: Path, faults: Faults) -> None:
        self._folder = folder
        self._faults = faults
        self._begun = 0

    def begin(self, task_id: str) -> TaskStore:
        self._faults.at("begin")
        self._begun += 1
        return TaskStore(self._folder / str(self._begun) / task_id)

    def end(self, store: TaskStore) -> None:
        self._faults.at("end")


class Truth(NamedTuple):
    """The reward of replies without a fault, and how many of them count."""

    reward: float
    replies: int
    is_judged: bool


def truth(replies: Sequence[str]) -> Truth:
    place, unreadable = "", 0
    for number, reply in enumerate(replies[:MAX_STEPS], 1):
        unreadable = unreadable + 1 if reply == "unreadable" else 0
        if unreadable == 3:
            return Truth(0.0, number, is_judged=False)
        if reply == "finish":
            return Truth(float(place == "goal"), number, is_judged=True)
        place = reply if reply in ACTIONS else place
    return Truth(0.0, MAX_STEPS, is_judged=False)


class Told(NamedTuple):
    """What the trainer got: a reward, or an error after so many answers."""

    reward: float | None
    answers: int


async def play(session: EnvironmentSession, replies: Sequence[str], fault: Fault, faults: Faults) -> Told:
    answers = 0
    try:
        answer: StepResult = await session.reset("first")
        for number, reply in enumerate(replies):
            answers += 1
            assert (answer.done, answer.reward) == (False, None), "a reward comes with the end only"
            if fault.place in ("idle", "close", "reset") and number == fault.at:
                faults.call(fault.place)
                faults.fired.append(number)
                await leave(session, fault.place)
            answer = await session.step(REPLIES[reply])
            if answer.done:
                assert answer.reward is not None
                return Told(answer.reward, answers)
    except EpisodeFault:
        return Told(None, answers)
    raise AssertionError("an episode without an end")


async def leave(session: EnvironmentSession, how: str) -> None:
    if how == "idle":
        await session.closed.wait()
        return
    await (session.close() if how == "close" else session.reset("second"))
    raise EpisodeFault("lost", "user", "as intended")


def is_the_policys(fault: Fault, fired: list[int], replies: Sequence[str], expected: Truth) -> bool:
    """Whether the browser broke on a page that the policy had named."""
    counts = {"act": fired, "observe": fired, "traffic": [expected.replies]}
    count = next(iter(counts.get(fault.place, [])), 0) if fired else 0
    acted = [reply for reply in replies if reply in ACTIONS] if fault.place == "act" else replies
    shown = [reply for reply in acted[:count] if reply in ACTIONS]
    breaks = fault.place == "traffic" or fault.error in (BrowserFault, SiteBlocked)
    is_killed = fault.is_killed and (fault.place == "traffic" or fault.error is BrowserFault)
    return breaks and not is_killed and shown[-1:] == ["named"]


def check(fault: Fault, fired: list[int], expected: Truth, told: Told, *, is_own: bool) -> None:
    """The oracle. `is_own`: the policy caused the fault."""
    if is_own:
        assert told.reward == 0.0
        return
    assert told.reward in (None, expected.reward), "a false reward"
    if not fired:
        assert told.reward == expected.reward, "an error without a fault"
    elif fault.place == "open" or (fault.place == "observe" and fired[0] == 0):
        # Played again once, as nothing was sent yet.
        assert (told.reward is None) == (len(fired) > 1)
        assert told.answers == (0 if len(fired) > 1 else expected.replies)
    elif fault.place == "observe":
        # A final look that fails leaves the verdict to what is recorded.
        assert told.reward is None or fired[0] >= expected.replies
    elif fault.place in ("traffic", "judge"):
        # They decide nothing if the policy did not end the episode itself.
        assert told.reward is None or not expected.is_judged
    else:
        assert told.reward is None


POLICIES = st.lists(st.sampled_from([*REPLIES, "goal", "finish"]), max_size=MAX_STEPS)
FAULTS = st.builds(
    Fault,
    st.sampled_from(PLACES),
    st.integers(0, MAX_STEPS),
    st.integers(1, 3),
    st.sampled_from(EXCEPTIONS),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(POLICIES, FAULTS)
async def test_no_reward_is_false(tmp_path_factory: pytest.TempPathFactory, policy: list[str], fault: Fault) -> None:
    folder = tmp_path_factory.mktemp("episodes")
    faults = Faults(fault)
    replies = [*policy, *["finish"] * MAX_STEPS]
    host_settings = HostSettings(idle_s=IDLE_S if fault.place == "idle" else 60.0)
    hosted: dict[str, Any] = {"judge": FaultyJudge(faults), "max_steps": MAX_STEPS, "record_network": True}
    async with hosting(
        folder, lambda: FaultyBrowser(faults), host=host_settings, episodes=FaultyEpisodes(folder, faults), **hosted
    ) as host:
        session = host.session()
        told = await play(session, replies, fault, faults)
        expected = truth(replies)
        check(fault, faults.fired, expected, told, is_own=is_the_policys(fault, faults.fired, replies, expected))
        if fault.place == "idle":
            return
        # Nothing of it reaches the next episode, whose answers are its own.
        faults.fault = NOTHING
        session = host.session() if session.closed.is_set() else session
        assert await play(session, ["goal", "finish"], NOTHING, faults) == Told(1.0, 2)
