"""Metering is refused before a run where an agent's model calls do not reach the meter."""

import pytest

from helpers.paths import ROOT
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from shared.errors import ConfigError
from shared.settings import Settings


@pytest.mark.parametrize("text", ["http://127.0.0.1:1/", "image:me/agent"])
def test_the_meter_is_refused_for_what_does_not_reach_it(text: str) -> None:
    scenario = ROOT / "scenarios" / "demo" / "scenario.toml"
    with pytest.raises(ConfigError, match="--meter"):
        make_plan(RunOptions(scenario=scenario, agent=(text,), meter=True), Settings.from_environ({}))
