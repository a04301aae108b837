"""`wabe new-agent`: what it writes is sound, and nothing is overwritten."""

import ast
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.paths import ROOT
from judge.commands.app import app
from judge.runner.agents import read_agent, with_agents
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "My Agent"
    answer = CliRunner().invoke(app, ["new-agent", str(path)])
    assert answer.exit_code == 0
    assert answer.output.endswith(f"next: wabe run demo --agent '{path}'\n")
    return path


def test_its_tasks_are_those_of_the_demo(folder: Path) -> None:
    demo = {task.task_id: task for task in load_scenario(ROOT / "scenarios" / "demo" / "scenario.toml").tasks}
    tasks = load_scenario(folder / "scenario.toml").tasks
    assert tasks
    # Reference scripts stay with the demo.
    assert [demo[task.task_id].model_copy(update={"reference": None}) for task in tasks] == list(tasks)


def test_it_is_named_after_its_folder_as_an_image_can_be(folder: Path) -> None:
    assert 'name="my-agent"' in (folder / "agent.py").read_text()
    assert "ghcr.io/YOU/my-agent" in (folder / "README.md").read_text()


def test_its_image_is_based_on_what_ours_are_and_runs_the_agent_without_privileges(folder: Path) -> None:
    lines = dict(re.findall(r"^([A-Z]+) (.*)$", (folder / "Dockerfile").read_text(), re.MULTILINE))
    ours = (ROOT / "Dockerfile.purple").read_text()
    assert f"FROM {lines['FROM']}@sha256:" in ours
    assert int(lines["USER"]) > 1000
    assert lines["COPY"].split() == ["agent.py", "./"]
    assert (lines["ENTRYPOINT"], lines["CMD"]) == ('["python", "agent.py"]', '["--host", "0.0.0.0", "--port", "9009"]')
    assert set(re.findall(r"https?://([^/]+)", (folder / "Dockerfile").read_text())) == {"github.com"}


def test_the_model_call_that_it_shows_is_python_and_that_of_the_documentation(folder: Path) -> None:
    readmes = (folder / "README.md", ROOT / "PURPLE_AGENT_GUIDE.md")
    examples, documented = (
        re.findall(r"```python(?: model)?\n(.*?)```", path.read_text(), re.DOTALL)[0] for path in readmes
    )
    assert examples == documented
    assert "decide" in {node.name for node in ast.walk(ast.parse(examples)) if isinstance(node, ast.AsyncFunctionDef)}


def test_it_has_a_version_of_its_own_and_plays_any_task_set(folder: Path) -> None:
    assert 'VERSION = "0.1"' in (folder / "agent.py").read_text()
    assert "version=VERSION" in (folder / "agent.py").read_text()
    replaced = with_agents(
        load_scenario(ROOT / "scenarios" / "hire" / "scenario.toml"), {"white_agent": read_agent(str(folder))}, "docker"
    )
    assert str(replaced.participants[0].cmd).startswith(f"python '{folder}/agent.py'")


def test_a_plain_name_is_shown_as_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["new-agent", "random"]).output.endswith("next: wabe run demo --agent ./random\n")


def test_it_overwrites_nothing(folder: Path) -> None:
    (folder / "agent.py").write_text("mine")
    answer = CliRunner().invoke(app, ["new-agent", str(folder)])
    assert isinstance(answer.exception, ConfigError)
    assert "exists already" in str(answer.exception)
    assert (folder / "agent.py").read_text() == "mine"
