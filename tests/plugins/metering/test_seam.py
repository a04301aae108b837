"""A run with a meter: what the participants receive, and what happens when the meter ends."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from helpers.runner.scenario_runs import write_scenario
from judge.plugins.metering.program import VARIABLE
from judge.plugins.metering.seam import metered
from judge.runner.launch import Member, start_child
from judge.runner.meter import METER, MeterLost, while_metered, with_meter
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import Plan, make_plan
from shared.errors import ConfigError
from shared.settings import Settings

ENV = {"PATH": "/usr/bin:/bin"}


def a_plan(tmp_path: Path, *, environ: dict[str, str] | None = None, meter: bool = True, **changes: str) -> Plan:
    scenario = write_scenario(tmp_path / "scenario.toml", **changes)
    options = RunOptions(scenario=scenario, output_dir=tmp_path / "out", meter=meter)
    return make_plan(options, Settings(environ=environ or {}))


def test_a_participant_gets_the_meters_address_and_the_meter_the_providers(tmp_path: Path) -> None:
    env = 'env = { OPENAI_BASE_URL = "http://gpu:8000/v1" }'
    plan = a_plan(tmp_path, env=env)
    meter, agent, judge = with_meter(plan, {"ANTHROPIC_BASE_URL": "http://gateway/a"})
    settings = json.loads(meter.env[VARIABLE])
    upstreams = {each["provider"]: each["url"] for each in settings["upstreams"]}
    assert upstreams == {
        "openai": "http://gpu:8000/v1",
        "anthropic": "http://gateway/a",
        "gemini": "https://generativelanguage.googleapis.com",
    }
    for number, each in enumerate(settings["upstreams"]):
        variable = {"openai": "OPENAI", "anthropic": "ANTHROPIC", "gemini": "GOOGLE_GEMINI"}[each["provider"]]
        assert agent.env[f"{variable}_BASE_URL"] == f"{meter.endpoint}{each['secret']}/{number}"
    assert agent.env["NO_PROXY"] == "127.0.0.1"
    assert judge.env == {}
    assert settings["one_slot"]


def test_every_participant_has_a_secret_of_its_own(tmp_path: Path) -> None:
    members = [
        Member(name=name, endpoint=f"http://127.0.0.1:{port}", cmd="x", is_agent=True)
        for name, port in (("a", 1), ("b", 2))
    ]
    meter, *_ = metered(members, ["a", "b"], ledger=tmp_path / "l", environ={}, one_slot=False, prices=None)
    upstreams = json.loads(meter.env[VARIABLE])["upstreams"]
    assert [each["role"] for each in upstreams] == ["a"] * 3 + ["b"] * 3
    assert len({(each["role"], each["secret"]) for each in upstreams}) == len({e["secret"] for e in upstreams}) == 2


def test_a_run_without_the_option_has_no_meter(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, meter=False)
    assert with_meter(plan, {}) == plan.members


def test_only_a_participant_that_is_started_here_can_be_metered(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--meter needs a judge and a participant that are started here"):
        a_plan(tmp_path, agent_cmd="")


def test_the_command_that_resumes_a_metered_run_meters_it(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    assert plan.store is not None
    assert " --meter --resume " in resume_command(plan.options, plan.store)


async def test_a_run_ends_with_its_meter(tmp_path: Path) -> None:
    child = await start_child(
        METER,
        f"{sys.executable} -c 'import time; time.sleep(600)'",
        env=ENV,
        log=tmp_path / "log",
        scenario_dir=tmp_path,
    )
    cancelled = asyncio.Event()

    async def assessment() -> None:
        child.process.kill()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(MeterLost, match="stopped: meter ended during the run by SIGKILL"):
        await while_metered(assessment(), [child])
    assert cancelled.is_set()


async def test_a_run_without_a_meter_is_awaited() -> None:
    async def assessment() -> int:
        return 7

    assert await while_metered(assessment(), []) == 7
