"""Ports: agents get free ones, and runs that start the same site take turns."""

import asyncio
from pathlib import Path

import pytest

from helpers.ports import free_ports
from helpers.runner.scenario_runs import write_scenario
from judge.runner.ports import on_free_ports, turn_at
from judge.scenario.toml import load_scenario


def test_agents_that_are_started_get_ports_of_their_own(tmp_path: Path) -> None:
    path = write_scenario(
        tmp_path / "s.toml",
        judge_cmd='cmd = "serve --port 9009 --card-url http://127.0.0.1:9009/ --seed 19009"',
        agent_cmd='cmd = "play --port=9019"',
    )
    moved = on_free_ports(load_scenario(path))
    judge, (agent,) = moved.green_agent, moved.participants
    assert judge.endpoint is not None
    port = judge.endpoint.rpartition(":")[2]
    assert judge.cmd == f"serve --port {port} --card-url http://127.0.0.1:{port}/ --seed 19009"
    assert agent.endpoint == f"http://127.0.0.1:{str(agent.cmd).partition('=')[2]}"
    assert len({port, "9009", "9019", agent.endpoint.rpartition(":")[2]}) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"agent_cmd": ""},
        {"agent_cmd": 'cmd = "play"'},
        {"agent": "http://agent.test:9019", "agent_cmd": 'cmd = "p 9019"'},
    ],
    ids=["it already runs", "its command names no port", "it is on another machine"],
)
def test_other_agents_keep_their_ports(tmp_path: Path, changes: dict[str, str]) -> None:
    scenario = load_scenario(write_scenario(tmp_path / "s.toml", **changes))
    assert on_free_ports(scenario).participants == scenario.participants


def test_a_command_may_leave_its_port_open(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml", agent_cmd='cmd = "play --url http://127.0.0.1:{port}/"')
    (agent,) = on_free_ports(load_scenario(path)).participants
    assert agent.cmd == f"play --url {agent.endpoint}/"


async def test_a_run_waits_for_another_one_that_has_started_the_same_site() -> None:
    first, second = free_ports(2)
    shop, docs = ("shop", f"http://127.0.0.1:{first}"), ("docs", f"http://127.0.0.1:{second}/manual")
    messages: list[str] = []
    order: list[str] = []

    async def later() -> None:
        async with turn_at([docs, shop], messages.append):
            order.append("second")

    async with turn_at([shop], messages.append):
        waiting = asyncio.create_task(later())
        # Another site is not a reason to wait.
        async with turn_at([docs], messages.append):
            order.append("other")
        while not messages and not waiting.done():
            await asyncio.sleep(0.01)
        order.append("first")
    await waiting
    assert order == ["other", "first", "second"]
    # Whichever it saw first, each at most once.
    assert messages[-1] == (
        f"Waiting for site shop at http://127.0.0.1:{first}: another run has started it, and both need its port"
    )
    assert len(messages) == len(set(messages))


async def test_whoever_is_cancelled_while_waiting_leaves_the_site_to_the_next() -> None:
    (port,) = free_ports(1)
    site = ("shop", f"http://127.0.0.1:{port}")
    messages: list[str] = []

    async def wait() -> None:
        async with turn_at([site], messages.append):
            raise AssertionError("it is not its turn")

    async with turn_at([site], messages.append):
        waiting = asyncio.create_task(wait())
        while not messages:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with turn_at([site], messages.append):
        assert len(messages) == 1
