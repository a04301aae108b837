"""What a run starts."""

from pathlib import Path

import pytest

from judge.runner.launch import members_of
from judge.runner.start import on_running_agents
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.settings import Settings

SCENARIO = Path(__file__).parents[3] / "scenarios" / "held" / "scenario.toml"


def test_agents_that_run_already_are_found_at_their_addresses_and_only_sites_are_started() -> None:
    settings = Settings.from_environ({"WABE_AGENTS_RUN": "http://127.0.0.1:1 http://127.0.0.1:2"})
    scenario = on_running_agents(load_scenario(SCENARIO), settings.agents_run)
    members = {member.name: member for member in members_of(scenario, settings)}
    assert [(name, member.endpoint, member.cmd is None) for name, member in members.items()] == [
        ("shop", "http://127.0.0.1:9180", False),
        ("white_agent", "http://127.0.0.1:2", True),
        ("green_agent", "http://127.0.0.1:1", True),
    ]


def test_another_number_of_addresses_than_agents_is_an_error() -> None:
    with pytest.raises(ConfigError, match="WABE_AGENTS_RUN: 1 addresses for 2 agents"):
        on_running_agents(load_scenario(SCENARIO), ["http://127.0.0.1:1"])


def test_a_scenario_keeps_its_agents_if_no_addresses_are_given() -> None:
    scenario = load_scenario(SCENARIO)
    assert on_running_agents(scenario, ()) is scenario
