"""The options of a run: a setting that is declared once is found wherever an option, a run or a document needs it."""

import difflib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from helpers.paths import ROOT
from helpers.runner.scenario_runs import interrupted_run, write_scenario
from judge.commands.app import command_app
from judge.config import RunConfig
from judge.runner.boundary import run_command
from judge.runner.options import DeclaredOption, RunOptions, declared_options
from judge.runner.plan import make_plan, require_as_planned
from judge.scenario.toml import load_scenario
from shared.declarations import settings_in
from shared.engines import Engine
from shared.errors import ConfigError, WabeError
from shared.plugins import plugins
from shared.settings import Settings

# One field, in the file in which all settings are declared.
POLITENESS = """
    politeness: Annotated[
        int, Setting("seconds between two tasks", option=Option("Wait N seconds between two tasks.", metavar="N"))
    ] = Field(default=0, ge=0, le=9)
"""
# Prints where a run finds it. Runs in the copy.
PROGRAM = """
import json
import sys
from pathlib import Path

from typer.testing import CliRunner

from helpers.paths import load_file
from helpers.runner.scenario_runs import interrupted_run, write_scenario
from judge.commands.app import command_app
from judge.config import RunConfig
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import make_plan
from shared.errors import ConfigError
from shared.settings import Settings

copy, folder = map(Path, sys.argv[1:])
path = write_scenario(folder / "s.toml")
given = {"scenario": path, "output_dir": folder / "out", "politeness": 3}
options, settings = RunOptions(**given), Settings.from_environ({"PATH": "/usr/bin:/bin"})
store = interrupted_run(**given)
changed = options.model_copy(update={"politeness": 4, "resume": store.run_id})
try:
    make_plan(changed, settings)
    refused = ""
except ConfigError as error:
    refused = error.message
shard = settings.from_environ({"PATH": "/usr/bin:/bin", "WABE_SHARD": "0", "WABE_SHARDS": "2", "WABE_RUN_ID": "r"})
in_file = write_scenario(folder / "in_file.toml", config='judge_model = "offline"\\npoliteness = 7')
help_ = CliRunner().invoke(command_app("run"), ["--help"]).output
wrong = CliRunner().invoke(command_app("run"), [str(path), "--politeness", "12"]).output
found = {
    "help": [line.strip() for line in help_.splitlines() if "politeness" in line],
    "bounds": wrong,
    "sent": json.loads(make_plan(options, settings).request)["config"]["politeness"],
    "sent by a shard": make_plan(RunOptions(**given, shards="auto"), shard).config.politeness,
    "from a scenario": make_plan(RunOptions(scenario=in_file), settings).config.politeness,
    "recorded": store.read_run()["request"]["config"]["politeness"],
    "refused": refused,
    "repeated": resume_command(options, store).split()[-4:-2],
    "of each shard": options.of_each_shard(),
    "of a trivial agent": options.of_trivial_agent("idle", folder).chosen["politeness"],
    "schema": RunConfig.model_json_schema()["properties"]["politeness"],
    "documented": [row for row in load_file(copy / "scripts" / "settings.py").rows() if "politeness" in row],
}
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_setting_that_is_declared_in_one_place_is_found_everywhere(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for folder in ("src", "scripts"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    config = copy / "src" / "judge" / "config.py"
    before = config.read_text()
    config.write_text(before.replace("    max_task_retries: ", f"{POLITENESS}    max_task_retries: ", 1))
    added = [line for line in difflib.ndiff(before.splitlines(), config.read_text().splitlines()) if line[0] in "+-"]
    assert len(added) == len(POLITENESS.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(copy), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{copy / 'src'}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document.pop("help") == ["--politeness N                  Wait N seconds between two tasks.  [0<=x<=9]"]
    assert "'--politeness': Input should be less than or equal to 9" in document.pop("bounds")
    assert "config.politeness: 3 → 4" in document.pop("refused")
    assert document == {
        "sent": 3,
        "sent by a shard": 3,
        "from a scenario": 7,
        "recorded": 3,
        "repeated": ["--politeness", "3"],
        "of each shard": ["--politeness", "3"],
        "of a trivial agent": 3,
        "schema": {
            "default": 0,
            "description": "seconds between two tasks",
            "maximum": 9,
            "minimum": 0,
            "title": "Politeness",
            "type": "integer",
        },
        "documented": ["| `politeness` | 0 | `--politeness` | | seconds between two tasks |"],
    }


def test_every_setting_of_a_scenario_is_declared() -> None:
    assert [name for name, _, _ in settings_in(RunConfig)] == list(RunConfig.model_fields)
    assert all(setting.meaning for _, _, setting in settings_in(RunConfig))


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(ValueError, match="no options: max_steps, nothing"):
        RunOptions(scenario=Path("s.toml"), max_steps=3, nothing=1)


def some_value(each: DeclaredOption) -> Any:
    """A value of the option that is not its default."""
    kind = str(each.field.annotation)
    if each.name == "agent":
        # Read at once; two would be two runs.
        return ("replay",)
    if choices := [choice for choice in get_args(each.field.annotation) if isinstance(choice, str)]:
        return choices[-1]
    if "Literal" in kind:
        (literal,) = (part for part in get_args(each.field.annotation) if part is not type(None))
        return get_args(literal)[-1]
    values = {"tuple": ("a", "b"), "bool": True, "int": 2, "float": 0.5, "Path": Path("a.file"), "str": "a text"}
    return next(value for name, value in values.items() if name in kind)


@pytest.mark.parametrize("each", declared_options(), ids=lambda each: each.name)
def test_an_option_reaches_every_shard_unless_it_is_about_the_whole_run(
    each: DeclaredOption, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options_seen: list[RunOptions] = []

    async def playing(options: RunOptions, *_: object) -> int:
        options_seen.append(options)
        return 0

    monkeypatch.setattr("judge.runner.run.ENGINE", Engine(run=playing))
    run_options = RunOptions(**{"scenario": write_scenario(tmp_path / "s.toml"), each.name: some_value(each)})
    with pytest.raises(SystemExit) as left:
        run_command(
            command_app("run"), [str(run_options.scenario), *run_options.of_each_shard()], name="agentbeats-run"
        )
    assert left.value.code == 0, capsys.readouterr().err
    default = None if each.name in RunConfig.model_fields else each.field.default
    if each.name != "output_dir":
        assert options_seen[0].value(each.name) == (some_value(each) if each.setting.of_each else default)


@pytest.mark.parametrize(("words", "is_set"), [(["--trivial-agents"], True), (["--baselines"], True), ([], False)])
def test_the_old_name_of_an_option_still_sets_it(
    words: list[str], is_set: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options_seen: list[RunOptions] = []

    async def playing(options: RunOptions, *_: object) -> int:
        options_seen.append(options)
        return 0

    monkeypatch.setattr("judge.runner.run.ENGINE", Engine(run=playing))
    with pytest.raises(SystemExit):
        run_command(command_app("run"), [str(write_scenario(tmp_path / "s.toml")), *words], name="agentbeats-run")
    assert options_seen[0].trivial_agents is is_set


def test_help_does_not_show_the_old_name_of_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_command(command_app("run"), ["--help"], name="agentbeats-run")
    text = capsys.readouterr().out
    assert "--trivial-agents" in text
    assert "--baselines" not in text


# What a shard does not get: it learns this by other means, the engine does it once for the whole run, or refuses it.
OF_THE_WHOLE_RUN = {
    *("display", "output_dir", "resume", "shards", "engine"),
    *("output", "fail_under", "open_report", "linger"),
    *("show_logs", "serve_only", "trivial_agents"),
}


def test_no_other_option_is_kept_from_shards() -> None:
    of_plugins = {name for each in plugins().values() for record in each.declares for name in record.model_fields}
    assert {each.name for each in declared_options() if not each.setting.of_each} - of_plugins == OF_THE_WHOLE_RUN


def test_a_merged_run_is_compared_with_its_plan(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    values: dict[str, Any] = {"scenario": path, "output_dir": tmp_path / "out", "epochs": 2}
    store = interrupted_run(**values)
    run_options = RunOptions(**values, resume=store.run_id)
    plan = make_plan(run_options, Settings())
    require_as_planned(plan)
    other = make_plan(RunOptions(**{**values, "epochs": 3}), Settings())
    with pytest.raises(WabeError, match=r"did not play what this command asks for:\n  config.epochs: 2 → 3"):
        require_as_planned(replace(other, store=store))


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ('exclude = { rugs = "x" }', 'exclude belongs to one run .*write excluded = "reason" into the task'),
        ('archives = { "*" = { path = "x" } }', r"archives belong to sites .*into \[\[sites\]\]"),
    ],
)
def test_a_setting_that_belongs_elsewhere_is_refused_in_a_scenario(tmp_path: Path, config: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_scenario(write_scenario(tmp_path / "s.toml", config=config))
