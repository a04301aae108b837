"""The adapter for TRL's `environment_factory`, in a thread as a trainer calls it, on our server."""

import ast
import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.plugins.openenv import trl
from judge.plugins.openenv.trl import BrowserEnvironment
from plugins.openenv.fakes import FakeSessions, a_page, an_end, fault, serving

UNAVAILABLE = "The browser is not available. Stop."


async def rolled_out(sessions: FakeSessions, rollout: Callable[[BrowserEnvironment], Any], **options: Any) -> Any:
    async with serving(sessions, **options) as place:
        environment = BrowserEnvironment(f"ws://{place}/ws")
        return await asyncio.to_thread(rollout, environment)


async def test_a_rollout_has_the_reward_of_its_end() -> None:
    def rollout(environment: BrowserEnvironment) -> Any:
        first = environment.reset(task_id="second", prompt=[{"role": "user"}])
        said = [
            environment.act("browser_click", {"target": "e1"}),
            environment.act("finish"),
            environment.act("finish"),
        ]
        return first, said, environment.get_reward()

    sessions = FakeSessions([a_page(), an_end(1.0)])
    first, said, reward = await rolled_out(sessions, rollout)
    assert "Do it." in first
    assert said[1:] == ["The episode is over."] * 2
    assert reward == 1.0
    assert sessions.active == 0
    assert sessions.opened[0].calls == [
        ("reset", ("second", None, None)),
        ("step", {"tool": "browser_click", "params": {"target": "e1"}}),
        ("step", {"tool": "finish", "params": {}}),
    ]


async def test_an_episode_that_the_model_leaves_open_is_ended_and_scored() -> None:
    def rollout(environment: BrowserEnvironment) -> Any:
        environment.reset(seed=3)
        return environment.get_reward()

    assert await rolled_out(FakeSessions([an_end(0.0)]), rollout) == 0.0


@pytest.mark.parametrize("script", [fault("aborted", "browser", "it died"), an_end(None)])
async def test_an_episode_without_a_score_has_none_and_its_cause_is_not_told_to_the_model(script: Any) -> None:
    def rollout(environment: BrowserEnvironment) -> Any:
        environment.reset(task_id="first")
        return environment.act("finish"), environment.act("finish"), environment.get_reward()

    assert await rolled_out(FakeSessions([script]), rollout) == (UNAVAILABLE, "The episode is over.", None)


async def test_a_reward_does_not_outlive_its_episode() -> None:
    def rollout(environment: BrowserEnvironment) -> Any:
        rewards = []
        for _ in range(2):
            environment.reset(task_id="first")
            environment.act("finish")
            rewards.append(environment.get_reward())
            sessions.script = [fault("unscored", "judge model", "no answer")]
        return rewards

    sessions = FakeSessions([an_end(1.0)])
    assert await rolled_out(sessions, rollout) == [1.0, None]


async def test_a_server_that_is_full_silent_or_gone_costs_the_rollout_and_not_the_training() -> None:
    def rollout(environment: BrowserEnvironment) -> Any:
        return environment.reset(task_id="first"), environment.act("finish"), environment.get_reward()

    lost = (UNAVAILABLE, "The episode is over.", None)
    assert await rolled_out(FakeSessions(maximum=0), rollout) == lost
    assert await asyncio.to_thread(rollout, BrowserEnvironment("ws://127.0.0.1:9/ws")) == lost

    def cut(environment: BrowserEnvironment) -> Any:
        environment.reset(task_id="first")
        sessions.may_answer.clear()
        return environment.act("finish"), environment.get_reward()

    sessions = FakeSessions()
    assert await rolled_out(sessions, cut, answer_s=0.1) == (UNAVAILABLE, None)


async def test_a_task_that_the_server_does_not_have_is_a_mistake_in_the_data() -> None:
    def rollout(environment: BrowserEnvironment) -> None:
        environment.reset(task_id="frist")

    with pytest.raises(ValueError, match="unknown task"):
        await rolled_out(FakeSessions(), rollout)


def test_the_model_sees_one_tool_whose_parameters_are_described() -> None:
    shown = [name for name, _ in inspect.getmembers(BrowserEnvironment, inspect.isfunction) if name[0] != "_"]
    assert shown == ["act", "get_reward", "reset"]
    doc = inspect.getdoc(BrowserEnvironment.act) or ""
    assert all(f"{name}: " in doc for name in list(inspect.signature(BrowserEnvironment.act).parameters)[1:])


def test_the_file_can_be_copied_to_where_neither_wabe_nor_trl_is() -> None:
    tree = ast.parse(Path(trl.__file__).read_text())
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert imported <= {"contextlib", "json", "logging", "typing", "websockets"}
