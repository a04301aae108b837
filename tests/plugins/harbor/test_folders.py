"""A scenario's tasks as Harbor task folders: what is in which file, and what cannot be exported."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from helpers.paths import ROOT
from helpers.scenario.texts import AGENTS
from judge.plugins.harbor.folders import compose_value, write_tasks
from judge.records.checks import NO_CHECKS
from judge.scenario.toml import load_scenario
from judge.store.sealing import SealKey
from shared.errors import ConfigError
from shared.settings import Settings

NOTHING = Settings.from_environ({"WABE_SCENARIOS": "/none"})
CHECK = '{ kind = "page", url = "/secret-goal", description = "The secret goal" }'
TASK = f"""
[[tasks]]
task_id = "t1"
website = "http://127.0.0.1:9180/"
task = "Go there."
checks = [{CHECK}]
"""
SHELLCHECK = str(Path(sys.executable).with_name("shellcheck"))


def a_scenario(folder: Path, text: str = TASK, name: str = "shop.toml") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'{AGENTS}[config]\njudge_model = "offline"\n{text}', "utf-8")
    return path


def exported(tmp_path: Path, text: str = TASK, name: str = "shop.toml") -> Path:
    """The folder of task `t1`."""
    result = write_tasks(a_scenario(tmp_path / "set", text, name), (), tmp_path / "out", NOTHING)
    assert result["t1"] is None
    return tmp_path / "out" / "t1"


def config_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "task.toml").read_text("utf-8"))


def judge_of(folder: Path) -> dict[str, Any]:
    """The judge's service."""
    services = yaml.safe_load((folder / "environment" / "docker-compose.yaml").read_text("utf-8"))["services"]
    assert list(services) == ["wabe"]
    service = services["wabe"]
    assert isinstance(service, dict)
    return service


def test_the_verdict_is_made_by_the_judge_and_carried_to_a_container_of_its_own(tmp_path: Path) -> None:
    config = config_of(exported(tmp_path))
    assert config["schema_version"] == "1.4"
    assert config["verifier"]["environment_mode"] == "separate"
    (hook,) = config["verifier"]["collect"]
    (verdict, recording) = config["artifacts"]
    assert (hook["service"], verdict["service"], recording["service"]) == ("wabe", "wabe", "wabe")
    assert hook["command"].split()[-2:] == ["--output", verdict["source"]]
    assert verdict["source"] in (tmp_path / "out" / "t1" / "tests" / "test.sh").read_text()
    assert config["environment"]["mcp_servers"] == [
        {"name": "wabe", "transport": "streamable-http", "url": "http://wabe:8000/mcp"}
    ]
    assert config["task"]["name"] == "wabe/shop-t1"
    assert config["metadata"]["task_id"] == "t1"


def test_only_the_judges_folder_says_what_a_task_is_checked_for(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for name, content in (("site.py", "secret"), (".env", "secret"), ("__pycache__/x.pyc", "secret")):
        (tmp_path / "set" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "set" / name).write_text(content)
    folder = exported(tmp_path)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {name for name in files if "secret" in (folder / name).read_text()} == {
        "environment/judge/shop.toml",
        "environment/judge/site.py",
    }
    assert files >= {"task.toml", "instruction.md", "environment/docker-compose.yaml", "tests/test.sh"}
    judge = judge_of(folder)
    assert (judge["volumes"], judge["working_dir"]) == (["./judge:/scenario:ro"], "/scenario")
    assert judge["command"][-2:] == ["--", "/scenario/shop.toml"]
    # Otherwise Harbor may share the network namespace of the agent with it.
    assert judge["networks"] == {"default": {}}


def test_a_bundled_scenario_is_that_of_the_image(tmp_path: Path) -> None:
    settings = Settings.from_environ({"WABE_SCENARIOS": str(ROOT / "scenarios")})
    scenario = ROOT / "scenarios" / "demo" / "scenario.toml"
    assert write_tasks(scenario, ["red_rugs"], tmp_path, settings) == {"red_rugs": None}
    assert not (tmp_path / "red_rugs" / "environment" / "judge").exists()
    command = judge_of(tmp_path / "red_rugs")["command"]
    assert command[-1] == "demo"
    assert f"--sha256={load_scenario(scenario).source_checksum}" in command


def test_an_instruction_is_the_tasks_own_text_and_begins_with_ours(tmp_path: Path) -> None:
    # Harbor removes first lines that look like this.
    text = '# canary GUID\nSay "hi" to {{ name }} & <b>Zoë</b>, ${HOME}.'
    folder = exported(tmp_path, TASK.replace('"Go there."', json.dumps(text, ensure_ascii=False)))
    instruction = (folder / "instruction.md").read_text("utf-8")
    assert f"\n{text}\n" in instruction
    assert instruction.startswith("Do the following task")
    assert "You have 15 actions" in instruction


def test_what_a_task_with_dates_says_is_left_to_the_day_on_which_it_is_played(tmp_path: Path) -> None:
    folder = exported(tmp_path, TASK.replace("Go there.", "Go there on {today+3d}."))
    instruction = (folder / "instruction.md").read_text()
    assert "Go there" not in instruction
    assert "Call `current_page` first" in instruction


@pytest.mark.parametrize("name", ["a b$c.toml", "é\u2028'\"#: -.toml", "-x.toml", "\U0001f600\x7f.toml"])
def test_file_names_and_addresses_are_escaped(tmp_path: Path, name: str) -> None:
    website = "http://127.0.0.1:9180/?q=%22'#${X}"
    folder = exported(tmp_path, TASK.replace("http://127.0.0.1:9180/", website), name)
    # Compose reads a doubled dollar sign as one.
    assert judge_of(folder)["command"][-1].replace("$$", "$") == f"/scenario/{name}"
    assert config_of(folder)["metadata"]["website"] == website
    assert config_of(folder)["metadata"]["scenario"] == f"set/{name}"


@given(st.text())
def test_any_text_survives_a_compose_file(text: str) -> None:
    parsed = yaml.safe_load(f"- {compose_value(text)}")[0]
    assert parsed.replace("$$", "$") == text


def test_the_judge_gets_the_variables_that_its_scenario_names(tmp_path: Path) -> None:
    assert "environment" not in judge_of(exported(tmp_path))
    site = '[[sites]]\nname = "shop"\nendpoint = "http://127.0.0.1:9180"\ncmd = "x"\nenv = { KEY = "${SHOP_KEY}" }\n'
    path = a_scenario(tmp_path / "other", site + TASK)
    path.write_text(path.read_text().replace('"offline"', '"gemini:gemini-3-flash"'))
    write_tasks(path, (), tmp_path / "more", NOTHING)
    assert judge_of(tmp_path / "more" / "t1")["environment"] == ["GEMINI_API_KEY", "GOOGLE_API_KEY", "SHOP_KEY"]


@pytest.mark.parametrize(("actions", "sends_images"), [("refs", False), ("both", True), ("coordinates", True)])
def test_an_agent_that_may_point_at_the_screenshot_sees_it(tmp_path: Path, actions: str, *, sends_images: bool) -> None:
    path = a_scenario(tmp_path / "set")
    path.write_text(path.read_text().replace("[config]\n", f'[config]\nactions = "{actions}"\n'))
    write_tasks(path, (), tmp_path / "out", NOTHING)
    assert ("--images" in judge_of(tmp_path / "out" / "t1")["command"]) == sends_images


def test_a_task_that_cannot_be_scored_is_left_out(tmp_path: Path) -> None:
    unchecked = TASK.replace('"t1"', '"t2"').replace(f"checks = [{CHECK}]", "")
    result = write_tasks(a_scenario(tmp_path / "set", TASK + unchecked), (), tmp_path / "out", NOTHING)
    assert result == {"t1": None, "t2": NO_CHECKS}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["t1"]


def test_exporting_again_replaces_a_task_and_nothing_else(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    (folder / "old").write_text("x")
    exported(tmp_path)
    assert not (folder / "old").exists()
    (folder / "task.toml").unlink()
    with pytest.raises(ConfigError, match="exists already"):
        exported(tmp_path)


def test_a_sealed_task_set_is_refused(tmp_path: Path) -> None:
    path = a_scenario(tmp_path / "set")
    sealed = tmp_path / "scenario.sealed"
    seal = pytest.importorskip("judge.plugins.sealing.sealing").seal
    sealed.write_text(seal(load_scenario(path), path.read_text(), SealKey(bytes(range(32))), name="set"))
    with pytest.raises(ConfigError, match="sealed task set"):
        write_tasks(sealed, (), tmp_path / "out", NOTHING)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            '[[sites]]\nname = "s"\nendpoint = "http://127.0.0.1:9180"\ncmd = "python {scenario_dir}/../site.py"\n',
            "cmd",
        ),
        ('[[sites]]\nname = "s"\nendpoint = "http://127.0.0.1:9180"\narchive = "../s.wacz"\n', "outside"),
    ],
)
def test_what_is_outside_of_the_scenarios_folder_cannot_be_copied(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        exported(tmp_path, change + TASK)


def test_files_that_the_scenario_names_must_be_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"cookies": [], "origins": []}')
    with pytest.raises(ConfigError, match=r"state\.json"):
        exported(tmp_path, TASK + 'storage_state = "../state.json"\n')


def test_symbolic_links_and_huge_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "set").mkdir()
    link = tmp_path / "set" / "passwords"
    link.symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match="symbolic link"):
        exported(tmp_path)
    link.unlink()
    (tmp_path / "set" / "large").write_bytes(b"x" * 1000)
    monkeypatch.setattr("judge.plugins.harbor.folders._MAX_BYTES", 1000)
    with pytest.raises(ConfigError, match="more than"):
        exported(tmp_path)


def test_the_compose_file_is_valid_by_its_specification_and_the_script_by_shellcheck(tmp_path: Path) -> None:
    folder = exported(tmp_path, name="a b$c.toml")
    checker = str(Path(sys.executable).with_name("check-jsonschema"))
    compose = folder / "environment" / "docker-compose.yaml"
    for command in (
        [checker, "--builtin-schema", "vendor.compose-spec", str(compose)],
        [SHELLCHECK, str(folder / "tests" / "test.sh")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("is_scored", [True, False])
def test_a_reward_is_handed_over_if_there_is_one(tmp_path: Path, *, is_scored: bool) -> None:
    script = (exported(tmp_path) / "tests" / "test.sh").read_text()
    for old, new in (("/app/.output/verdict", tmp_path / "verdict"), ("/logs/verifier", tmp_path / "logs")):
        assert old in script
        script = script.replace(old, str(new))
    (tmp_path / "verdict").mkdir()
    (tmp_path / "verdict" / "verdict.json").write_text("{}")
    if is_scored:
        (tmp_path / "verdict" / "reward.json").write_text('{"reward": 1.0}')
    subprocess.run(["bash", "-c", script], check=True)
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert names == (["reward.json", "verdict.json"] if is_scored else ["verdict.json"])
