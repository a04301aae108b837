"""Time limits that do not run out because the machine is too busy."""

import asyncio

import pytest

from helpers.episode.scripted import SkippingLoop
from shared import patience
from shared.patience import Patience


def waited(limit_s: float, sleep_s: float) -> Patience:
    """A limit over a wait, in a loop in which nobody waits."""
    limit = Patience(limit_s)

    async def wait() -> None:
        try:
            async with limit.running():
                await asyncio.sleep(sleep_s)
        except TimeoutError:
            assert limit.has_run_out

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(wait())
    return limit


@pytest.fixture
def starved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_measured", lambda *_: 0.05)


def test_a_limit_runs_out_on_a_machine_that_computes() -> None:
    assert not waited(10, 9).has_run_out
    assert waited(10, 11).has_run_out


@pytest.mark.usefixtures("starved")
def test_it_is_patient_while_the_machine_starves_but_not_for_ever() -> None:
    patient = waited(10, 100)
    assert not patient.has_run_out
    assert patient.starved_s / patient.used_s == pytest.approx(19, abs=3)
    assert waited(10, 300).has_run_out


def test_time_in_which_the_process_itself_was_stopped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = Patience(100)

    async def wait(loop: SkippingLoop) -> None:
        async with limit.running():
            await asyncio.sleep(0)
            loop.now_s += 3600
            await asyncio.sleep(1)

    loop = SkippingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(wait(loop))
    assert limit.used_s < 10


async def test_an_error_of_the_body_is_its_own() -> None:
    limit = Patience(10)
    with pytest.raises(TimeoutError, match="its own"):
        async with limit.running():
            raise TimeoutError("its own")
    assert not limit.has_run_out


def test_the_share_of_a_cpu_is_what_a_computation_gets() -> None:
    times = iter((100.0, 101.0))
    assert patience._measured(lambda: next(times), 0) == pytest.approx(0.02, abs=0.01)
