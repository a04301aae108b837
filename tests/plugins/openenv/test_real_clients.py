"""OpenEnv's real clients, of two versions, and verifiers' task set, in environments of their own, on our server."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.interop.environments import IndexUnreachable, environment
from helpers.interop.programs import PROGRAMS, program
from plugins.openenv.fakes import FakeSessions, a_page, an_end, fault, serving

# Their libraries take more than 1 GB.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]
# openenv 0.10.0, and the 0.4.1 that verifiers installs, whose client keeps its socket after a timeout.
CLIENTS = ("openenv", "verifiers")
RESET = {"do": "reset", "task_id": "first"}
STEP = {"do": "step", "action": {"tool": "finish"}}


class Talk:
    """A program that answers each line with a line."""

    def __init__(self, process: subprocess.Popen[str], common: dict[str, Any] | None = None) -> None:
        self._process = process
        self._common = common or {}

    async def __call__(self, **arguments: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self._ask, json.dumps(self._common | arguments))

    def named(self, name: str) -> "Talk":
        return Talk(self._process, {"name": name})

    def _ask(self, line: str) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(line + "\n")
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer


@pytest.fixture(scope="module")
def pythons() -> dict[str, Path]:
    try:
        return {name: environment(name) for name in CLIENTS}
    except IndexUnreachable as error:
        pytest.skip(f"the package index cannot be reached: {error}")


@pytest.fixture(scope="module", params=CLIENTS)
def clients(request: pytest.FixtureRequest, pythons: dict[str, Path]) -> Iterator[Talk]:
    """A process with clients of a version, since importing their library takes seconds."""
    with program(pythons[request.param], PROGRAMS / "openenv_client.py") as process:
        yield Talk(process)


@asynccontextmanager
async def on_server(
    sessions: FakeSessions, clients: Talk, *names: str, timeout_s: float = 60.0
) -> AsyncIterator[list[Talk]]:
    """The server, and clients of it."""
    async with serving(sessions) as place:
        named = [clients.named(name) for name in names]
        for each in named:
            await each(do="open", url=f"http://{place}", timeout_s=timeout_s)
        yield named


async def test_a_client_plays_an_episode_and_gets_its_reward_once(clients: Talk) -> None:
    async with on_server(FakeSessions([a_page(), an_end(1.0)]), clients, "a") as (talk,):
        answers = [await talk(**each) for each in (RESET, {"do": "state"}, STEP, STEP, STEP)]
    assert "Do it." in answers[0]["observation"]["text"]
    assert answers[1] == {"state": {"episode_id": "e", "task_id": "first", "step_count": 0}}
    assert [each.get("reward") for each in answers] == [None, None, None, 1.0, None]
    assert answers[3]["done"] is True
    assert "EXECUTION_ERROR" in answers[4]["error"]


async def test_a_client_sees_outcome_and_blame_of_an_episode_without_a_score(clients: Talk) -> None:
    async with on_server(FakeSessions([fault("aborted", "browser", "it died")]), clients, "a") as (talk,):
        await talk(**RESET)
        answer = await talk(**STEP)
        unknown = await talk(do="reset", task_id="frist")
    assert answer == {"error": "RuntimeError: Server error: aborted: browser: it died (code: EXECUTION_ERROR)"}
    assert "VALIDATION_ERROR" in unknown["error"]


async def test_a_late_answer_is_never_taken_for_that_to_the_next_question(clients: Talk) -> None:
    sessions = FakeSessions([an_end(1.0)], maximum=2)
    async with on_server(sessions, clients, "a", timeout_s=1.0) as (talk,):
        await talk(**RESET)
        sessions.may_answer.clear()
        late = await talk(**STEP)
        following = [await talk(do="reset", task_id="second") for _ in range(2)]
        sessions.may_answer.set()
        following += [await talk(do="reset", task_id="second") for _ in range(2)]
    assert "TimeoutError" in late["error"]
    # 0.4 errs for ever once its socket is closed; 0.10 opens another one.
    assert [each.get("reward") for each in following] == [None] * 4
    assert [each.get("done", False) for each in following] == [False] * 4


async def test_a_client_above_the_capacity_is_told(clients: Talk) -> None:
    async with on_server(FakeSessions(maximum=1), clients, "a", "b") as (first, second):
        await first(**RESET)
        refused = await second(**RESET)
    assert "CAPACITY_REACHED" in refused["error"]


async def test_openenvs_own_validation_passes(pythons: dict[str, Path]) -> None:
    async with serving(FakeSessions()) as place:
        command = (pythons["openenv"].with_name("openenv"), "validate", "--url", f"http://{place}")
        completed = await asyncio.to_thread(
            lambda: subprocess.run(
                command, capture_output=True, text=True, env={"PATH": os.defpath}, timeout=300, check=False
            )
        )
    assert completed.returncode == 0, completed.stdout
    assert completed.stdout.count("PASS ") == 6
    assert "FAIL" not in completed.stdout


async def test_verifiers_records_the_reward_of_each_end_and_none_for_an_error(pythons: dict[str, Path]) -> None:
    sessions = FakeSessions([a_page(), an_end(1.0)])
    with program(pythons["verifiers"], PROGRAMS / "verifiers_tasks.py") as process:
        async with serving(sessions) as place:
            talk = Talk(process, {"url": f"http://{place}"})
            # Replies that are no tool call.
            for reply in ("I am done.", "12", '["a"]', '{"action": "x"}', "NaN", "\ud83d"):
                result = await talk(reset={"task_id": "first"}, replies=[reply])
                assert result == {"rewards": {"openenv_reward": 1.0}, "turns": 2, "stopped": [], "error": None}
            sessions.script = [an_end(0.0)]
            assert (await talk(reset={"seed": 1}, replies=["x"]))["rewards"] == {"openenv_reward": 0.0}
            sessions.script = [a_page(), fault("unscored", "judge model", "no answer")]
            lost = await talk(reset={"index": 0}, replies=["x"])
            wrong = await talk(reset={"task_id": "frist"}, replies=["x"])
    assert (lost["rewards"], wrong["rewards"]) == ({}, {})
    assert "unscored: judge model: no answer" in lost["error"]
    assert "VALIDATION_ERROR" in wrong["error"]
