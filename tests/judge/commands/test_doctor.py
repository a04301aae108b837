"""What is missing to run here."""

import socket
import sys
from pathlib import Path

import pytest

from helpers.miniwob_package import fake_package
from judge.commands import doctor
from judge.commands.doctor import (
    check_browser,
    check_disk,
    check_miniwob,
    check_model,
    check_port,
    check_webarena,
    examine,
    examine_scenario,
)
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


def test_a_taken_port_is_noted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert check_port(server.getsockname()[1]).state == "note"


def test_too_little_disk_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_disk(tmp_path / "not" / "there" / "yet").state == "ok"
    monkeypatch.setattr(doctor, "_MIN_FREE_BYTES", 10**18)
    assert check_disk(tmp_path).state == "missing"


def test_the_package_of_miniwob_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    finding = check_miniwob()
    assert finding.state == "note"
    assert "pip install 'wabe[miniwob]'" in finding.text
    monkeypatch.setattr(sys, "path", [str(fake_package(tmp_path))])
    assert check_miniwob().state == "ok"


def test_everything_is_examined_in_the_order_of_fixing(tmp_path: Path) -> None:
    subjects = [finding.subject for finding in examine(Settings(), tmp_path)]
    assert subjects == ["browser", "judge model", "port 9009", "port 9019", "disk", "miniwob", "webarena"]


def test_a_missing_environment_of_webarena_is_a_note_with_the_command_that_makes_it() -> None:
    finding = check_webarena(Settings())
    assert finding.state == "note"
    assert "WABE_WEBARENA_PYTHON is not set" in finding.text
    assert "pip install --require-hashes -r requirements-webarena.lock" in finding.text


SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{port}"
cmd = "wabe serve --port {port}"
[[participants]]
role = "solver"
endpoint = "http://127.0.0.1:3"
cmd = "wabe participant openai --port 3"
[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:9"
cmd = "no-such-program 9"
[config]
judge_model = "{judge}"
[[tasks]]
task_id = "t"
website = "http://127.0.0.1:9/"
task = "Do it."
"""


def findings_of(folder: Path, settings: Settings, **values: object) -> dict[str, list[tuple[str, str]]]:
    path = folder / "s.toml"
    path.write_text(SCENARIO.format(**values).replace(f'{values["port"]}"\n[[sites', '1"\n[[sites'))
    found: dict[str, list[tuple[str, str]]] = {}
    for state, subject, text in examine_scenario(path, settings, folder):
        found.setdefault(subject, []).append((state, text))
    return found


def test_a_scenario_is_examined_for_its_own_programs_ports_and_keys(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = findings_of(tmp_path, Settings(), port=port, judge="openai:o4-mini")
    [(judge, needs_key)], [(shop, program)] = found["judge model"], found["shop"]
    assert (judge, shop) == ("missing", "missing")
    assert "OPENAI_API_KEY" in needs_key
    assert "no-such-program" in program
    assert ("missing", f"green_agent: port {port} on 127.0.0.1 is already taken") in [
        (state, text.partition(" (")[0]) for state, text in found["green_agent"]
    ]
    assert any(state == "missing" and "OPENAI_API_KEY" in text for state, text in found["solver"])


def test_a_scenario_that_can_be_run_has_no_finding(tmp_path: Path) -> None:
    settings = Settings.from_environ({"OPENAI_API_KEY": "sk-secret", "PATH": "/bin"})
    found = findings_of(tmp_path, settings, port=2, judge="offline")
    assert [found[name][0][0] for name in ("judge model", "solver", "green_agent")] == ["ok", "ok", "ok"]
    assert "secret" not in str(found)


def test_agents_that_a_platform_places_are_missing_here(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[green_agent]\n[[participants]]\nrole = "solver"\n[config]\nscenario = "demo"\n')
    found = {subject: (state, text) for state, subject, text in examine_scenario(path, Settings(), tmp_path)}
    assert found["solver"][0] == found["green_agent"][0] == "missing"
    assert "add endpoint" in found["solver"][1]
