"""One attempt: clocks that run for one party only."""

import asyncio

import pytest

from helpers.episode.scripted import SkippingLoop
from judge.config import RunConfig
from judge.episode.clock import Clock, OutOfTime


def run(steps: list[tuple[str, float]], clock: Clock) -> None:
    async def play() -> None:
        for what, seconds in steps:
            if what == "charge":
                clock.charge(seconds)
            elif what == "idle":
                await asyncio.sleep(seconds)
            else:
                async with clock.running():
                    await asyncio.sleep(seconds)

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(play())


@pytest.fixture
def clock() -> Clock:
    return Clock(10, OutOfTime("used up"))


def test_only_the_time_inside_counts(clock: Clock) -> None:
    run([("run", 3), ("idle", 100), ("run", 4), ("charge", 2)], clock)
    assert clock.used_s == pytest.approx(9, abs=0.5)


@pytest.mark.parametrize("last", ["run", "charge"])
def test_the_limit_holds_for_all_times_together(clock: Clock, last: str) -> None:
    with pytest.raises(OutOfTime):
        run([("run", 4), ("idle", 100), ("run", 4), (last, 4)], clock)


def test_time_counts_when_the_body_fails(clock: Clock) -> None:
    async def play() -> None:
        async with clock.running():
            await asyncio.sleep(3)
            raise TimeoutError("its own")

    with asyncio.Runner(loop_factory=SkippingLoop) as runner, pytest.raises(TimeoutError, match="its own"):
        runner.run(play())
    assert clock.used_s == pytest.approx(3, abs=0.5)


def test_an_attempt_has_room_for_all_pauses_and_for_a_slow_site() -> None:
    assert RunConfig().attempt_limit_s == 1800 + 15 * 60
    assert RunConfig(max_steps=1000, step_delay=60).attempt_limit_s > 1800 + 1000 * 60
    assert RunConfig(max_actions=4).attempt_limit_s == 1800 + 15 * 4 * 60
