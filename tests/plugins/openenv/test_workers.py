"""Sessions of a judge's process, as the server sees them. The process is this one, its browser is scripted."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from helpers.environment.scripted import FINISH, GO, LEAVE
from judge.environment.errors import CapacityReached, EpisodeFault, NotReset
from judge.environment.session import StepResult
from judge.plugins.openenv.calls import Fault, Unusable
from plugins.openenv.processes import playing, workers_of
from shared.errors import ConfigError, EnvironmentFault
from shared.models import ObservationMessage


def without_picture(result: StepResult) -> ObservationMessage:
    """The message as it is passed on: the screenshot goes beside it, if it is wanted."""
    assert result.message is not None
    page = result.message.page.model_copy(update={"screenshot": None})
    return result.message.model_copy(update={"page": page})


async def test_an_episode_in_another_process_is_the_same_as_in_this_one(tmp_path: Path) -> None:
    async with playing(tmp_path, sessions=3) as processes:
        session, here = await workers_of(processes).open(), processes[0].host.session()
        answers = [await session.reset("second", episode_id="e"), await session.step(GO)]
        expected = [await here.reset("second", episode_id="e"), await here.step(GO)]
        assert [each.text for each in answers] == [each.text for each in expected]
        assert [each.message for each in answers] == [without_picture(each) for each in expected]
        assert session.state() == here.state()
        end = await session.step(FINISH)
        assert (end.reward, end.done, end.message) == (1.0, True, None)
        with pytest.raises(NotReset):
            await session.step(FINISH)
        await session.reset("first")
        await session.step(LEAVE)
        assert (await session.step(FINISH)).reward == 0.0
        await session.close()


async def test_what_a_policy_writes_arrives_as_its_reply(tmp_path: Path) -> None:
    async with playing(tmp_path) as processes:
        session = await workers_of(processes).open()
        await session.reset("first")
        for reply in ("\ud800", {"tool": float("nan")}, ["<json>"]):
            result = await session.step(reply)
        assert (result.reward, result.done) == (0.0, True)
        await session.close()


async def test_an_unknown_task_is_the_clients_mistake(tmp_path: Path) -> None:
    async with playing(tmp_path) as processes:
        session = await workers_of(processes).open()
        with pytest.raises(ConfigError, match="not on offer"):
            await session.reset("fourth")
        await session.close()


async def test_the_end_of_a_process_is_a_fault_and_the_next_reset_finds_another_one(tmp_path: Path) -> None:
    async with playing(tmp_path) as processes:
        session = await workers_of(processes).open()
        await session.reset("first")
        await processes[0].kill()
        with pytest.raises(EpisodeFault, match=r"^aborted: internal: the judge's process ended$"):
            await session.step(FINISH)
        with pytest.raises(NotReset):
            await session.step(FINISH)
        await processes[0].start()
        await session.reset("first")
        assert (await session.step(FINISH)).done
        await session.close()


async def test_a_reset_that_finds_a_process_about_to_end_is_answered_by_another_one(tmp_path: Path) -> None:
    async with playing(tmp_path, count=2) as processes:
        session = await workers_of(processes).open()
        await session.reset("first")
        await processes[0].kill()
        with pytest.raises(EpisodeFault, match="the judge's process ended"):
            await session.step(FINISH)
        processes[1].begin_to_end()
        begun = asyncio.create_task(session.reset("first"))
        await asyncio.sleep(0.1)
        await processes[1].kill()
        await processes[0].start()
        await begun
        assert (await session.step(FINISH)).done
        await session.close()


@pytest.mark.slow
async def test_sessions_are_divided_among_processes_and_counted_together(tmp_path: Path) -> None:
    async with playing(tmp_path, count=2) as processes:
        workers = workers_of(processes)
        sessions = [await workers.open() for _ in range(2)]
        for each in sessions:
            await each.reset("first")
        assert [each.worker.load for each in processes] == [1, 1]
        with pytest.raises(CapacityReached) as full:
            await workers.open()
        assert (full.value.active, full.value.maximum) == (2, 2)
        for each in sessions:
            await each.close()
            await each.close()
        assert [each.worker.load for each in processes] == [0, 0]
        assert processes[0].host.active == 0


async def test_a_client_that_is_back_before_the_server_knows_that_it_left_gets_its_place(tmp_path: Path) -> None:
    async with playing(tmp_path, sessions=1) as processes:
        workers = workers_of(processes, sessions=1)
        session = await workers.open()
        returning = asyncio.create_task(workers.open())
        await asyncio.sleep(0.1)
        assert not returning.done()
        await session.close()
        await (await returning).close()


async def test_a_session_that_is_being_closed_makes_room_for_a_waiting_client(tmp_path: Path) -> None:
    async with playing(tmp_path, sessions=1) as processes:
        workers = workers_of(processes, sessions=1)
        session = await workers.open()
        await session.reset("first")
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        following = await workers.open()
        assert closing.done()
        assert (await following.reset("first")).done is False
        await following.close()


async def test_a_server_that_gives_a_session_up_in_a_step_frees_its_browser(tmp_path: Path) -> None:
    async with playing(tmp_path) as processes:
        session = await workers_of(processes).open()
        await session.reset("first")
        step = asyncio.create_task(session.step(GO))
        await asyncio.sleep(0)
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        await session.close()
        assert processes[0].host.active == 0


async def test_health_says_whether_processes_are_up(tmp_path: Path) -> None:
    async with playing(tmp_path, count=2) as processes:
        workers = workers_of(processes)
        seen = [workers.health]
        for each in processes:
            await each.kill()
            seen.append(workers.health)
        assert seen == ["healthy", "degraded", "unhealthy"]


async def test_an_internal_error_does_not_tell_what_it_says(tmp_path: Path) -> None:
    def broken() -> Any:
        raise ValueError("expected €349")

    async with playing(tmp_path, opened=broken, max_task_retries=0) as processes:
        session = await workers_of(processes).open()
        with pytest.raises(EpisodeFault) as fault:
            await session.reset("first")
        assert "349" not in str(fault.value)
        await session.close()


@pytest.mark.parametrize("kind", ["fault", "not_reset", "refused", "failed"])
def test_a_fault_is_never_a_result(kind: Any) -> None:
    assert isinstance(Fault(kind=kind, why="x").error(), Exception)


def test_a_users_mistake_keeps_its_parts_on_the_way() -> None:
    error = ConfigError("no tasks", key="tasks", location="shop.toml", remedy="list some")
    again = Unusable.model_validate_json(Unusable.of(error).model_dump_json()).error()
    assert (str(again), again.key, again.location) == (str(error), "tasks", "shop.toml")


async def test_faults_of_a_browser_name_it(tmp_path: Path) -> None:
    def broken() -> Any:
        raise EnvironmentFault("it died")

    async with playing(tmp_path, opened=broken, max_task_retries=0) as processes:
        session = await workers_of(processes).open()
        with pytest.raises(EpisodeFault, match=r"^aborted: browser: it died$"):
            await session.reset("first")
        await session.close()
