"""Training environments from Python, and as Gymnasium's, on the demo shop."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import wabe
from helpers.scenario.copies import scenario_on_free_ports
from shared.errors import ConfigError
from wabe.gymnasium_environment import GymnasiumEnvironment

FINISH = '<json>{"tool": "finish", "params": {"answer": "done"}}</json>'


@pytest.mark.e2e
async def test_an_episode_from_python(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    async with wabe.environment(scenario, images=True) as env:
        answer = await env.reset("deal_of_the_day")
        assert answer.message is not None
        assert answer.screenshot is not None
        url = f"{answer.message.website}product/fjord-reading-chair"
        await env.step({"tool": "browser_navigate", "params": {"url": url}})
        answer = await env.step(FINISH)
        assert (answer.reward, answer.done) == (1.0, True)


@pytest.mark.e2e
def test_a_gymnasium_environment_is_as_gymnasium_wants_it(tmp_path: Path) -> None:
    env = GymnasiumEnvironment(scenario_on_free_ports("demo", tmp_path), images=True, render_mode="rgb_array")
    try:
        check_env(env, skip_render_check=True)
        observation, info = env.reset(options={"task_id": "deal_of_the_day"})
        assert (info["task_id"], observation["goal"][:8]) == ("deal_of_the_day", "Open the")
        assert observation["screenshot"].std() > 0
        assert np.array_equal(env.render(), observation["screenshot"])
        url = f"{observation['url']}product/fjord-reading-chair"
        observation, reward, is_over, is_cut, _ = env.step({"tool": "browser_navigate", "params": {"url": url}})
        assert (observation["url"], reward, is_over, is_cut) == (url, 0.0, False, False)
        _, reward, is_over, is_cut, info = env.step(FINISH)
        assert (reward, is_over, is_cut, info["step_count"]) == (1.0, True, False, 2)
    finally:
        env.close()
    env.close()


def test_an_environment_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a scenario file nor a bundled task set"):
        GymnasiumEnvironment("nothing")
    with pytest.raises(ConfigError, match="unknown render_mode 'human'"):
        GymnasiumEnvironment("demo", render_mode="human")
