"""`wabe env serve` as users start it, with real browsers in two processes."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner
from websockets.asyncio.client import ClientConnection

from helpers.ports import free_port
from helpers.runner.commands import RunningCommand, command, listening, run_command
from helpers.scenario.copies import ports_of, scenario_on_free_ports
from judge.commands.app import app as wabe
from plugins.openenv.fakes import ask, dial
from shared.errors import ConfigError

FINISH = {"tool": "finish", "params": {"answer": "done"}}
RESET = {"task_id": "deal_of_the_day"}


def going(begun: dict[str, Any]) -> dict[str, Any]:
    """The action that does the task, by its first observation."""
    site = begun["observation"]["text"].partition("\nWebsite: ")[2].partition("\n")[0]
    return {"tool": "browser_navigate", "params": {"url": f"{site}product/fjord-reading-chair"}}


async def until_up(served: RunningCommand, place: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(60):
        while served.process.poll() is None:
            try:
                if (await client.get(f"http://{place}/health")).json() == {"status": "healthy"}:
                    return
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
    raise AssertionError(served.process.communicate())


async def right(client: ClientConnection) -> float | None:
    """The reward of an episode in which the task is done."""
    _, begun = await ask(client, "reset", RESET)
    await ask(client, "step", going(begun))
    return (await ask(client, "step", FINISH))[1].get("reward")


async def refused_until_free(place: str) -> ClientConnection:
    """A client that has got a session, once there is a free one."""
    async with asyncio.timeout(30):
        while True:
            client = await dial(place)
            if (await ask(client, "reset", RESET))[0] == "observation":
                return client
            await client.close()


async def episodes(served: RunningCommand, place: str) -> None:
    async with dial(place) as first:
        assert await right(first) == 1.0
        await ask(first, "reset", RESET)
        assert (await ask(first, "step", FINISH))[1]["reward"] == 0.0
        # What a policy writes is never an error.
        await ask(first, "reset", RESET)
        for reply in ("12", {"tool": "browser_navigate", "params": {"url": "chrome://crash"}}, ["<json>"], "", "prose"):
            kind, data = await ask(first, "step", reply)
            assert kind == "observation"
            if data["done"]:
                break
        else:
            _, data = await ask(first, "step", FINISH)
        assert data["reward"] == 0.0
        async with dial(place) as second:
            await ask(second, "reset", RESET)
            async with dial(place) as third:
                assert (await ask(third, "reset", RESET))[1]["code"] == "CAPACITY_REACHED"
            # A client that disappears frees its session.
            second.transport.abort()
        third = await refused_until_free(place)
        # The judge's processes are killed in the middle of two episodes.
        await ask(first, "reset", RESET)
        for pid in served.descendants("judge.plugins.openenv.worker"):
            os.kill(pid, signal.SIGKILL)
        for client in (first, third):
            _, lost = await ask(client, "step", FINISH)
            assert lost["message"] == "aborted: internal: the judge's process ended"
            assert await right(client) == 1.0
        await third.close()


@pytest.mark.e2e
@pytest.mark.own_browser
async def test_episodes_in_two_processes_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    scenario, port = scenario_on_free_ports("demo", tmp_path), free_port()
    place = f"127.0.0.1:{port}"
    options = ("--port", str(port), "--sessions", "2", "--processes", "2")
    with command(tmp_path / "temp", "wabe", "env", "serve", scenario, *options) as served:
        await until_up(served, place)
        await episodes(served, place)
        async with dial(place) as client:
            await ask(client, "reset", RESET)
            served.interrupt()
            completed = await asyncio.to_thread(served.end)
    assert (completed.code, completed.left_processes, completed.left_files) == (130, {}, [])
    assert "Traceback" not in completed.stderr
    assert not any(listening(each) for each in (port, *ports_of(scenario)))


@pytest.mark.slow
def test_a_mistake_that_a_judges_process_finds_is_one_line(tmp_path: Path) -> None:
    resettable = scenario_on_free_ports("demo", tmp_path)
    resettable.write_text(resettable.read_text().replace("static = true", 'reset_url = "/reset"'))
    options = ("--port", str(free_port()), "--sessions", "2", "--processes", "2")
    completed = run_command(tmp_path / "temp", "wabe", "env", "serve", resettable, *options)
    [error] = [line for line in completed.stderr.splitlines() if line.startswith("error: ")]
    assert "2 sessions, but only 1 at once" in error
    assert "Traceback" not in completed.stderr
    assert (completed.code, completed.left_processes, completed.left_files) == (2, {}, [])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--host", "0.0.0.0"), "other machines could open sessions"),
        (("--processes", "2"), "2 processes for 1 session"),
    ],
)
def test_options_that_cannot_be_served_are_refused(
    options: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WABE_AUTH_TOKEN", raising=False)
    with pytest.raises(ConfigError, match=problem):
        CliRunner().invoke(wabe, ["env", "serve", "demo", *options], catch_exceptions=False)
