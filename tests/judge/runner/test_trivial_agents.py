"""`wabe run --trivial-agents`: what is played in the place of the scenario's participant, and where."""

import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers.runner.scenario_runs import interrupted_run
from judge.runner.agents import BundledAgent, with_agents
from judge.runner.boundary import Interrupted
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.runner.trivial_agents import play_trivial_agents
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.settings import Settings

DEMO = Path(__file__).parents[3] / "scenarios" / "demo" / "scenario.toml"
SETTINGS = Settings.from_environ(os.environ)


async def play_run(folder: Path, play: Any, **options: Any) -> None:
    store = RunStore(folder, "r")
    run_options = RunOptions(scenario=DEMO, trivial_agents=True, **options)
    await play_trivial_agents(store, run_options, SETTINGS, Console(quiet=True), play, "wabe run demo --resume r")


async def test_each_is_a_run_of_its_own_in_the_folder_of_the_run(tmp_path: Path) -> None:
    options_seen: list[RunOptions] = []

    async def play(options: RunOptions, *_: object) -> int:
        options_seen.append(options)
        return 1

    await play_run(tmp_path, play, limit=3, task=("a",), fail_under=90.0, output=tmp_path / "x", display="json")
    assert [each.player for each in options_seen] == ["random", "idle"]
    assert {each.output_dir for each in options_seen} == {tmp_path / "runs" / "r" / "baselines"}
    # The same tasks; what is asked of the agent's run only is not asked of them.
    assert {(each.limit, each.task, each.fail_under, each.output, each.display) for each in options_seen} == {
        (3, ("a",), None, None, "none")
    }


async def test_an_interruption_says_how_to_resume_the_whole_run(tmp_path: Path) -> None:
    async def play(*_: object) -> int:
        raise Interrupted("interrupted", remedy="resume with: something else")

    with pytest.raises(Interrupted, match=r"during the run of the trivial agent random.*wabe run demo --resume r"):
        await play_run(tmp_path, play)


def test_the_participant_is_replaced_and_the_rest_of_the_scenario_is_not() -> None:
    scenario = load_scenario(DEMO)
    replaced = with_agents(scenario, {"white_agent": BundledAgent("idle")}, "docker")
    (agent,) = replaced.participants
    assert (agent.role, shlex.split(str(agent.cmd))[:3]) == ("white_agent", ["wabe", "participant", "idle"])
    assert shlex.split(str(agent.cmd))[-2:] == ["--port", "{port}"]
    assert replaced.model_copy(update={"participants": scenario.participants}) == scenario


def test_an_interrupted_one_continues_under_its_name(tmp_path: Path) -> None:
    options = RunOptions(scenario=DEMO, output_dir=tmp_path, player="idle")
    first = make_plan(options, SETTINGS)
    assert first.store is not None
    assert (first.store.run_id, first.resumes) == ("idle", False)
    # On another port: that is the same agent.
    assert interrupted_run(DEMO, tmp_path, SETTINGS, player="idle").run_id == "idle"
    assert make_plan(options, SETTINGS).resumes


@pytest.mark.parametrize(("option", "value"), [("serve_only", True), ("shards", "2")])
def test_it_needs_a_judge_that_is_started_here_and_all_tasks(tmp_path: Path, option: str, value: Any) -> None:
    options = RunOptions(scenario=DEMO, output_dir=tmp_path, trivial_agents=True).model_copy(update={option: value})
    with pytest.raises(ConfigError, match="--trivial-agents"):
        make_plan(options, SETTINGS)
