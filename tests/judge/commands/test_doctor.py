"""What is missing to run here."""

import re
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.a2a.guarded import guarded_agent
from helpers.ports import free_port
from helpers.scenario.texts import TASK
from judge.commands.app import command_app
from judge.commands.doctor import (
    check_browser,
    check_disk,
    check_member,
    check_model,
    check_port,
    check_scenario,
    examine,
)
from judge.commands.findings import FINDINGS
from judge.runner.launch import Member
from judge.store import layout
from shared.seams import without_code
from shared.settings import Settings


def test_a_browser_that_is_there_is_named_with_its_sandbox(tmp_path: Path) -> None:
    browser = tmp_path / "chromium"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    finding = check_browser(Settings(browser_path=str(browser)))
    assert finding.state == "ok"
    assert str(browser) in finding.text
    assert "sandbox" in finding.text


def test_a_missing_browser_is_reported_with_how_to_get_one(tmp_path: Path) -> None:
    finding = check_browser(Settings(home=str(tmp_path), path=str(tmp_path)))
    assert finding.state == "missing"
    assert "install" in finding.text


def test_a_missing_key_is_a_note_since_the_demo_needs_none() -> None:
    finding = check_model(Settings())
    assert finding.state == "note"
    assert "GOOGLE_API_KEY" in finding.text


def test_a_key_that_is_set_is_not_shown() -> None:
    finding = check_model(Settings.from_environ({"GOOGLE_API_KEY": "AIza-very-secret"}))
    assert finding.state == "ok"
    assert "secret" not in finding.text


def scenario_with(folder: Path, more: str = "", *, participant: str = "python x.py") -> Path:
    agents = (
        f'[green_agent]\nendpoint = "http://127.0.0.1:{free_port()}"\ncmd = "wabe serve"\n'
        f'[[participants]]\nrole = "p"\nendpoint = "http://127.0.0.1:{free_port()}"\ncmd = "{participant}"\n'
    )
    path = folder / "s.toml"
    path.write_text(f"{agents}{TASK}{more}\n")
    return path


def test_a_scenario_is_examined_with_its_log_ins(tmp_path: Path) -> None:
    cookie = '{ name = "id", value = "very-secret", domain = "example.org", expires = 1 }'
    path = scenario_with(tmp_path, f"storage_state = {{ cookies = [{cookie}] }}")
    result = check_scenario(path, Settings(judge_model="offline"))
    *others, first, second = [(finding.state, finding.subject) for finding in result]
    assert others == [("ok", "scenario"), ("note", "log-in"), ("ok", "p"), ("ok", "green_agent")]
    assert [f"{state} {subject.split()[0]}" for state, subject in (first, second)] == ["ok port", "ok port"]
    assert "1 of 1 cookie expired: 'id'" in result[1].text


@pytest.mark.parametrize(
    ("cmd", "expected"),
    [
        ("no-such-program --port 9019", '"no-such-program" is not installed'),
        ("wabe participant gemini", "GOOGLE_API_KEY is not set"),
    ],
)
def test_an_agent_that_cannot_be_started_is_missing(tmp_path: Path, cmd: str, expected: str) -> None:
    result = check_scenario(scenario_with(tmp_path, participant=cmd), Settings(judge_model="offline"))
    (missing,) = [finding for finding in result if finding.state == "missing"]
    assert missing.subject == "p"
    assert expected in missing.text


def test_an_agent_that_runs_elsewhere_is_asked_for_its_card() -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    (finding,) = check_member(Member(name="p", endpoint=nobody, cmd=None, is_agent=True), Settings(), Path())
    assert (finding.state, finding.subject) == ("missing", "p")


@pytest.mark.slow
def test_an_agent_that_wants_credentials_gets_those_of_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_request(*arguments: str) -> str:
        return CliRunner().invoke(command_app("doctor"), list(arguments)).stdout

    monkeypatch.setenv("AGENT_TOKEN", "s3cr3t-t0ken")
    with guarded_agent(tmp_path, "s3cr3t-t0ken") as agent:
        completed = [
            make_request("--agent", agent.url),
            make_request(str(agent.scenario), "--agent", agent.url),
            make_request(str(agent.scenario)),
        ]
    assert "MISSING" in completed[0]
    assert "HTTP 401" in completed[0]
    assert "ok  agent" in completed[1]
    assert "ok  p" in completed[2]
    assert "s3cr3t" not in "".join(completed)


def test_a_scenario_that_cannot_be_run_is_reported_with_its_mistake(tmp_path: Path) -> None:
    path = scenario_with(tmp_path, 'storage_state = "none.json"')
    (finding,) = check_scenario(path, Settings())
    assert finding.state == "missing"
    assert "none.json: No such file" in finding.text


@pytest.mark.slow
def test_a_bundled_set_is_examined_by_its_name() -> None:
    # Whether the command ends with 1 depends on this machine's browser; what it says of the scenario does not.
    completed = CliRunner().invoke(command_app("doctor"), ["demo"]).stdout
    assert "demo/scenario.toml: " in completed


def test_a_taken_port_is_noted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert check_port(server.getsockname()[1]).state == "note"


@pytest.mark.slow
def test_a_scenario_needs_its_own_ports_and_no_others(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        path = scenario_with(tmp_path, '\n[config]\njudge_model = "offline"')
        path.write_text(re.sub(r":\d+", f":{port}", path.read_text(), count=1))
        completed = CliRunner().invoke(command_app("doctor"), [str(path)])
    lines = [line for line in completed.stdout.splitlines() if " port " in line]
    # Without the judge's port the run does not start; the other one is free.
    assert [line.split()[:3] for line in lines if str(port) in line] == [["MISSING", "port", str(port)]]
    assert len(lines) == 2
    assert completed.exit_code == 1


def test_too_little_disk_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_disk(tmp_path / "not" / "there" / "yet").state == "ok"
    monkeypatch.setattr(layout, "_MIN_FREE_BYTES", 10**18)
    assert check_disk(tmp_path).state == "missing"


def test_everything_is_examined_in_the_order_of_fixing(tmp_path: Path) -> None:
    subjects = [finding.subject for finding in examine(Settings(), tmp_path)]
    # A plug-in whose folder was deleted is still declared.
    gone = ["plug-in"] * len({entry.title for entry in without_code()})
    assert subjects == [
        "python",
        "browser",
        "headed",
        "judge model",
        "port 9009",
        "port 9019",
        "disk",
        *FINDINGS.names(),
        *gone,
    ]


@pytest.mark.e2e
def test_scripts_that_the_browser_draws_as_boxes_are_named_with_their_packages() -> None:
    done = CliRunner().invoke(command_app("doctor"), ["--fonts"], catch_exceptions=False)
    assert "not measured" not in done.output
    is_complete = "the browser draws Chinese, Japanese, Korean, Thai" in done.output
    assert ("drawn as boxes in" in done.output and "apt-get install fonts-noto-core" in done.output) is not is_complete
    assert done.exit_code == (0 if is_complete else 1)


@pytest.mark.slow
def test_a_program_over_mcp_is_examined_as_its_participant_would_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("judge.plugins.mcp_agents")
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho 9.9 of a test\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    runner = CliRunner()
    lacking = runner.invoke(command_app("doctor"), ["--agent", "mcp:claude"])
    assert lacking.exit_code == 1
    assert "9.9 of a test; the preset was tried with" in lacking.stdout
    assert "MISSING  keys          none is set: export ANTHROPIC_API_KEY" in lacking.stdout
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert runner.invoke(command_app("doctor"), ["--agent", "mcp:claude"]).exit_code == 0
    unknown = runner.invoke(command_app("doctor"), ["--agent", "mcp:claud"])
    assert unknown.exit_code == 1
    assert "did you mean" in unknown.stdout
