"""Variables in a scenario: `${NAME}` reaches an agent with its value, or the run does not start."""

from pathlib import Path

import pytest

from helpers.runner.scenario_runs import run_here, write_scenario
from judge.judges.methods import check_judge_model
from judge.runner.launch import child_environ, launched, members_of
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.settings import Settings

SHOW = "cmd = \"sh -c 'echo key=$MY_KEY mode=$MODE'\""


async def log_of_the_agent(folder: Path, env: str, environ: dict[str, str]) -> str:
    """What an agent that prints its environment and ends has printed."""
    scenario = load_scenario(write_scenario(folder / "s.toml", agent_cmd=SHOW, judge_cmd="", env=env))
    settings = Settings.from_environ({"PATH": "/usr/bin:/bin", **environ})
    (agent, _) = members_of(scenario, settings)
    variables = child_environ(settings, output_dir=folder, participant_model=None)
    with pytest.raises(ConfigError):
        async with launched((agent,), scenario_dir=folder, environ=variables, logs=folder / "logs"):
            pass
    return (folder / "logs" / "white_agent.log").read_text().strip()


@pytest.mark.parametrize(
    ("env", "environ", "expected"),
    [
        ('env = { MY_KEY = "${MY_KEY}" }', {"MY_KEY": "k1"}, "key=k1 mode="),
        ('env = { MY_KEY = "${OTHER}" }', {"MY_KEY": "k1", "OTHER": "k2"}, "key=k2 mode="),
        ('env = { MODE = "a-${A}${B}-$A" }', {"A": "1", "B": "${A}"}, "key= mode=a-1${A}-$A"),
        ('env = { MODE = "fast" }', {"MY_KEY": "k1"}, "key=k1 mode=fast"),
    ],
    ids=["the platform's syntax", "another name", "several, each once", "a plain value"],
)
async def test_an_agent_that_is_started_gets_the_values(
    tmp_path: Path, env: str, environ: dict[str, str], expected: str
) -> None:
    printed = await log_of_the_agent(tmp_path, env, environ)
    assert printed == expected


@pytest.mark.parametrize(
    ("env", "environ", "complaint"),
    [
        ('env = { KEY = "${MY_KEY}" }', {}, "needs the environment variable MY_KEY, which is not set"),
        ('env = { KEY = "${MY_KEY}" }', {"MY_KEY": ""}, "needs the environment variable MY_KEY, which is not set"),
        ('env = { KEY = "${MY_KEY}", B = "${GONE}" }', {"MY_KEY": "k"}, '"B" needs the environment variable GONE'),
        ('env = { KEY = "${MY_KEY:-x}" }', {"MY_KEY": "k"}, "in another form than ${NAME}"),
        ('env = { KEY = "a${MY_KEY" }', {"MY_KEY": "k"}, "in another form than ${NAME}"),
        ('env = { KEY = "${}" }', {}, "in another form than ${NAME}"),
    ],
    ids=["unset", "empty", "the second", "a default", "not closed", "no name"],
)
async def test_a_variable_without_a_value_is_named_before_anything_is_started(
    tmp_path: Path, env: str, environ: dict[str, str], complaint: str
) -> None:
    path = write_scenario(tmp_path / "s.toml", env=env)
    with pytest.raises(ConfigError) as refused:
        await run_here(Settings.from_environ(environ), scenario=path, output_dir=tmp_path / "out")
    assert complaint in refused.value.message
    assert f"{path}: \"white_agent\", key 'env'" in refused.value.message
    assert not (tmp_path / "out").exists()


def test_the_judge_is_not_an_exception(tmp_path: Path) -> None:
    command = 'cmd = "true"\nenv = { GOOGLE_API_KEY = "${GONE}" }'
    path = write_scenario(tmp_path / "s.toml", judge_cmd=command)
    with pytest.raises(ConfigError, match=r"\"green_agent\", key 'env'.*GONE"):
        make_plan(RunOptions(scenario=path), Settings())


def test_a_key_that_only_the_judge_has_is_enough_for_its_model(tmp_path: Path) -> None:
    command = 'cmd = "true"\nenv = { OPENAI_API_KEY = "${JUDGE_KEY}" }'
    path = write_scenario(tmp_path / "s.toml", judge_cmd=command, config='judge_model = "openai:o4-mini"')
    settings = Settings.from_environ({"JUDGE_KEY": "k"})
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        check_judge_model(load_scenario(path).config, settings)
    plan = make_plan(RunOptions(scenario=path), settings)
    assert plan.members[-1].env == {"OPENAI_API_KEY": "k"}


@pytest.mark.parametrize("changes", [{}, {"agent_cmd": "", "judge_cmd": ""}], ids=["started here", "already running"])
def test_no_value_is_shown_or_recorded(tmp_path: Path, changes: dict[str, str]) -> None:
    path = write_scenario(tmp_path / "s.toml", env='env = { KEY = "${MY_KEY}" }', **changes)
    plan = make_plan(RunOptions(scenario=path), Settings.from_environ({"MY_KEY": "s3cret"}))
    text = f"{plan!r} {plan.request}"
    assert "s3cret" not in text


def test_an_expired_log_in_is_noted_when_a_run_starts(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    cookie = '{ name = "id", value = "v", domain = "shop.test", expires = 1 }'
    path.write_text(f"{path.read_text()}\nstorage_state = {{ cookies = [{cookie}] }}\n")
    notes = make_plan(RunOptions(scenario=path), Settings()).notes
    assert any("1 of 1 cookie expired: 'id'" in note for note in notes)


def test_for_an_agent_that_is_already_running_nothing_is_resolved(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml", agent_cmd="", env='env = { KEY = "${GONE}" }')
    (agent, _) = members_of(load_scenario(path), Settings())
    assert agent.env == {}
