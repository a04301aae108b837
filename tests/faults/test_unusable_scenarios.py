"""A scenario that cannot work is refused before anything starts, by validate, agentbeats-run and the judge alike."""

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from helpers.plugins import skip_without_command
from helpers.scenario.texts import GOOD
from judge.commands.app import app, command_app
from judge.config import RunConfig
from judge.episode.preflight import check_config
from judge.runner.boundary import run_command
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.scenario.toml import load_scenario
from judge.store.layout import output_folder
from shared.errors import ConfigError
from shared.settings import Settings

# A command that waits for a FIFO would wait for ever.
pytestmark = pytest.mark.timeout(120)
Validate = Callable[[Path], tuple[int, str]]
WITH_KEYS = {"GOOGLE_API_KEY": "k", "OPENAI_API_KEY": "k", "KEY": "k"}


@pytest.fixture
def validate(capsys: pytest.CaptureFixture[str]) -> Validate:
    def validated(path: Path) -> tuple[int, str]:
        with pytest.raises(SystemExit) as exit_info:
            run_command(app, ["tasks", "validate", str(path)], name="wabe")
        output = capsys.readouterr()
        return int(str(exit_info.value.code)), (output.out + output.err).strip()

    return validated


def scenario(folder: Path, *settings: str) -> Path:
    path = folder / "s.toml"
    checked = GOOD.replace("\ntask = ", '\nchecks = [{ kind = "page", url = "/done" }]\ntask = ')
    path.write_text(checked.replace("max_steps = 7", "\n".join(settings)))
    return path


UNUSABLE: dict[str, tuple[tuple[str, ...], str]] = {
    "judge model without a name": (('judge_model = "gemini:"',), "unknown judge model 'gemini:'"),
    "offline with a name": (('judge_model = "offline:x"',), "unknown judge model 'offline:x'"),
    "script as judge model": (('judge_model = "javascript:1"',), "unknown judge model 'javascript:1'"),
    "blank model name": (('judge_model = "openai: "',), "unknown judge model 'openai: '"),
    "script as base url": (('judge_base_url = "javascript:1"',), "'javascript:1' does not begin with http"),
    "file as base url": (('judge_base_url = "file:///etc/passwd"',), "does not begin with http"),
    "base url without a host": (('judge_base_url = "http://"',), "has no host"),
    "program that is not a browser": (('browser_path = "/bin/true"',), "does not look like Chromium"),
    "file that is not a program": (('browser_path = "/etc/passwd"',), "is not a program"),
    "interpreter as browser": ((f'browser_path = "{sys.executable}"',), "does not look like Chromium"),
    "file as prompts": (('prompts = "/etc/passwd"',), "no folder /etc/passwd"),
    "folder without prompts": (('prompts = "/etc"',), "has no prompts.toml"),
    "empty path": (('prompts = ""',), "key 'prompts': empty"),
    "more actions than a recording holds": (
        ("max_steps = 100", "max_actions = 11"),
        "100 replies with 11 actions each are more than 1000 actions",
    ),
    "a week of pauses": (("max_steps = 1000", "step_delay = 600"), "1000 steps with a step_delay of 600 s"),
    "a timeout of years": (("task_timeout_s = 1e9",), "key 'task_timeout_s': 1000000000.0 is more than 86400"),
    "method without a model": (('judge_model = "offline"', 'judge_method = "rubric"'), "needs a judge model"),
    "budget without a price": (('judge_model = "openai:local"', "max_judge_cost_usd = 1"), "price of openai:local"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_setting_that_cannot_work_is_refused_everywhere(tmp_path: Path, validate: Validate, name: str) -> None:
    settings, expected = UNUSABLE[name]
    path = scenario(tmp_path, *settings)
    code, text = validate(path)
    assert code == 2
    assert len(text.splitlines()) == 1
    assert text.startswith(f"{path}: ")
    assert expected in text
    with pytest.raises(ConfigError) as refused:
        make_plan(RunOptions(scenario=path), Settings.from_environ(WITH_KEYS))
    assert expected in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("website", ["javascript:1", "http://.../", "http://a..b/", "http://a%b/", "http://-^-/"])
def test_a_website_that_no_browser_can_open_is_refused(tmp_path: Path, validate: Validate, website: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(GOOD.replace("https://www.example.org/", website))
    code, text = validate(path)
    assert code == 2
    assert "key 'website'" in text


def test_settings_that_work_are_accepted(tmp_path: Path, validate: Validate) -> None:
    browser = tmp_path / "my-chromium"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    path = scenario(
        tmp_path, f'browser_path = "{browser}"', "max_steps = 100", "step_delay = 600", 'judge_model = "openai:a/b:c"'
    )
    code, _ = validate(path)
    assert code == 0


def test_a_password_in_an_address_is_not_shown(tmp_path: Path, validate: Validate) -> None:
    code, text = validate(scenario(tmp_path, 'judge_base_url = "https://me:hunter2@host/v1"'))
    assert code == 2
    assert "hunter2" not in text


@given(
    st.text(max_size=20)
    | st.builds("{}:{}".format, st.sampled_from(["gemini", "openai", "offline"]), st.text(max_size=9))
)
@hypothesis_settings(deadline=None)
def test_a_judge_model_is_accepted_only_with_a_provider_and_a_name(name: str) -> None:
    config = RunConfig().model_copy(update={"judge_model": name})
    provider, _, model = name.partition(":")
    if name == "offline" or (provider in ("gemini", "openai") and model.strip() and model.isprintable()):
        check_config(config, Settings(), with_key=False)
    else:
        with pytest.raises(ConfigError, match="unknown judge model"):
            check_config(config, Settings(), with_key=False)


@pytest.mark.parametrize("mark", ["none", "UTF-8"])
def test_a_byte_order_mark_is_not_part_of_a_scenario(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(GOOD, encoding="utf-8-sig" if mark == "UTF-8" else "utf-8")
    loaded = load_scenario(path)
    assert len(loaded.tasks) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_a_scenario_in_another_encoding_says_so(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(GOOD.replace("red", "röd").encode(encoding))
    with pytest.raises(ConfigError) as refused:
        load_scenario(path)
    assert "UTF-8" in str(refused.value)


@pytest.mark.parametrize("kind", ["FIFO", "socket", "/dev/zero", "/dev/null"])
def test_a_scenario_that_is_not_a_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = Path(kind) if kind.startswith("/") else tmp_path / "s.toml"
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    with pytest.raises(ConfigError):
        load_scenario(path)


@pytest.mark.parametrize(
    ("option", "variable", "expected"),
    [(None, None, ".output"), (None, "there", "there"), ("here", "there", "here"), ("here", None, "here")],
)
def test_runs_are_where_the_option_or_else_the_environment_says(
    option: str | None, variable: str | None, expected: str
) -> None:
    result = output_folder(Path(option) if option else None, Settings(output_dir=variable))
    assert result == Path(expected)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "verify", "score", "export", "doctor", "agreement", "agentbeats-run"])
def test_every_command_that_reads_runs_looks_where_the_environment_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    skip_without_command(command)
    place = tmp_path / "elsewhere"
    monkeypatch.setenv("WABE_OUTPUT_DIR", str(place))
    for name, value in WITH_KEYS.items():
        monkeypatch.setenv(name, value)
    words = {
        "agreement": ["agreement", "--verdicts", "run-1", "--labels", str(scenario(tmp_path))],
        "agentbeats-run": [str(scenario(tmp_path)), "--resume", "run-1"],
        "doctor": ["doctor"],
    }.get(command, [command, "run-1"])
    (tmp_path / "s.csv").write_text("task_id,human\nt,1\n")
    words = [word.replace("s.toml", "s.csv") if command == "agreement" else word for word in words]
    with pytest.raises(SystemExit):
        run_command(command_app("run") if command == "agentbeats-run" else app, words, name="wabe")
    output = capsys.readouterr()
    messages = [line for line in (output.out + output.err).splitlines() if "elsewhere" in line]
    assert messages
