"""Writes the tasks of a scenario as Harbor task folders (schema 1.4).

In a task's folder, only `environment/judge` says what the task is checked for: the scenario, which the judge's service
mounts. The agent's container is made of an image alone, and the verifier's of `tests`, which hands the verdict over.
A bundled scenario is not copied, because the judge's image has it.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import jinja2

from judge.records.checks import NO_CHECKS
from judge.records.tasks import Task
from judge.records.verdicts import OFFLINE
from judge.scenario.frozen import on_archives
from judge.scenario.logins import with_logins
from judge.scenario.models import VARIABLE, Scenario
from judge.scenario.sources import toml_value
from judge.scenario.toml import load_scenario, read_scenario_bytes, select
from judge.store.sealing import is_sealed
from judge.trajectory.formats import Format, TasksWriter
from shared.errors import ConfigError
from shared.fields import without_none
from shared.files import copy_file, decode, write_errors
from shared.llm.opening import provider
from shared.settings import Settings
from shared.text import counted
from shared.toml_text import parse_toml

PORT = 8000
# In the judge's image, where its user may write.
OUTPUT = "/app/.output"
JUDGE = "environment/judge"
_MOUNTED = "/scenario"
_VERDICT_S = 300.0
_AGENT_IMAGE = "ubuntu:24.04"
# A folder with more is not a scenario's, and each task gets a copy of it.
_MAX_FILES = 5_000
_MAX_BYTES = 1_000_000_000
_NOT_COPIED = frozenset({"__pycache__", "node_modules"})
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def write_tasks(scenario_file: Path, ids: Sequence[str], folder: Path, settings: Settings) -> dict[str, str | None]:
    """Write a folder for each task; see `TasksWriter`. Raises `ConfigError` for a sealed task set."""
    if is_sealed(read_scenario_bytes(scenario_file)):
        raise ConfigError(
            f"{scenario_file} is a sealed task set, and this would write its tasks and checks in clear",
            remedy="export the scenario that was sealed, if nobody else will see it",
        )
    scenario = on_archives(load_scenario(scenario_file))
    if not scenario.tasks:
        raise ConfigError(f"{scenario_file} lists no tasks", remedy="export the scenario that lists them")
    tasks = select(scenario.tasks, ids=ids, excluded=scenario.excluded)
    is_bundled = _is_bundled(scenario_file, settings)
    files = [] if is_bundled else list(_files_of(scenario, folder))
    reasons = {task.task_id: _reason_to_leave_out(task, scenario) for task in tasks}
    included = [task for task in tasks if reasons[task.task_id] is None]
    with write_errors(folder, "choose another folder"):
        for task in included:
            _write_task(task, scenario, folder / task.task_id, files, is_bundled=is_bundled)
            if files and task is included[0]:
                _require_complete(folder / task.task_id / JUDGE / scenario_file.name, included)
    return reasons


def _require_complete(copy: Path, tasks: Sequence[Task]) -> None:
    """Raises `ConfigError` if the scenario names files not in its folder, such as a storage state."""
    with_logins(load_scenario(copy), tasks, None)


def _reason_to_leave_out(task: Task, scenario: Scenario) -> str | None:
    if not task.checks and scenario.config.judge_model == OFFLINE:
        return NO_CHECKS
    return None


def _is_bundled(scenario_file: Path, settings: Settings) -> bool:
    return scenario_file.resolve() in {path.resolve() for path in settings.bundled_scenarios.values()}


def _write_task(task: Task, scenario: Scenario, folder: Path, files: Sequence[Path], *, is_bundled: bool) -> None:
    if folder.exists():
        if not (folder / "task.toml").is_file():
            raise ConfigError(f"{folder} exists already", remedy="choose another folder with --output")
        shutil.rmtree(folder)
    name, source = scenario.path.name, scenario.path.resolve().parent
    for path in files:
        copy = folder / JUDGE / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy_file(path, copy)
        # The judge runs as another user.
        copy.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    for target, template, values in (
        ("task.toml", "task.toml.j2", _task_values(task, scenario)),
        ("instruction.md", "instruction.md.j2", _instruction_values(task, scenario)),
        (
            "environment/docker-compose.yaml",
            "docker-compose.yaml.j2",
            _compose_values(task, scenario, source.name if is_bundled else f"{_MOUNTED}/{name}"),
        ),
        ("tests/test.sh", "test.sh", {}),
        ("tests/Dockerfile", "Dockerfile", {}),
    ):
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_rendered(template, values), "utf-8", newline="\n")
    (folder / "tests" / "test.sh").chmod(0o755)


def _task_values(task: Task, scenario: Scenario) -> dict[str, Any]:
    place = scenario.path.resolve()
    # The first part is never empty and begins with a letter or digit, which Harbor requires of a name.
    of = _NOT_IN_A_NAME.sub("-", (place.parent.name if place.stem == "scenario" else place.stem).lower()).strip("-")
    return {
        "name": f"wabe/{of or 'scenario'}-{task.task_id}",
        "metadata": without_none(
            scenario=f"{place.parent.name}/{place.name}",
            scenario_sha256=scenario.source_checksum,
            task_id=task.task_id,
            website=task.website,
            level=task.level,
            wabe_version=metadata.version("wabe"),
        ),
        "agent_timeout_s": scenario.config.task_timeout_s,
        "agent_image": _AGENT_IMAGE,
        "verdict_timeout_s": _VERDICT_S,
        "verdict_dir": f"{OUTPUT}/verdict",
        "runs_dir": f"{OUTPUT}/runs",
        "port": PORT,
    }


def _instruction_values(task: Task, scenario: Scenario) -> dict[str, Any]:
    # What a task with dates says on the day on which it is played, only the judge knows.
    text = None if task.dated else task.task
    return {"task": text, "website": task.website, "max_steps": scenario.config.max_steps}


def _compose_values(task: Task, scenario: Scenario, argument: str) -> dict[str, Any]:
    # As one word, because an id may begin with a dash.
    command = ["wabe", "harbor", "serve", f"--task={task.task_id}", "--host=0.0.0.0", f"--port={PORT}"]
    # Points of the screenshot can only be named by an agent that sees it.
    command += ["--images"] if scenario.config.actions != "refs" else []
    command += [f"--sha256={scenario.source_checksum}", "--", argument]
    return {
        # Without a local part, which no image's tag may have.
        "image": f"ghcr.io/hjerpe/wabe:{metadata.version('wabe').partition('+')[0]}",
        "command": command,
        "variables": _variables(scenario),
        "has_files": argument.startswith(_MOUNTED),
        "port": PORT,
    }


def _variables(scenario: Scenario) -> list[str]:
    """The names of the variables that the judge's service needs, which Harbor's environment has."""
    tables = parse_toml(decode(read_scenario_bytes(scenario.path)))
    used = json.dumps({key: tables.get(key) for key in ("sites", "tasks", "config")}, default=str)
    names = set(VARIABLE.findall(used))
    config = scenario.config
    if "judge_model" not in config.model_fields_set:
        names.add("WABE_JUDGE_MODEL")
    if config.judge_model != OFFLINE:
        names.update(provider(config.judge_model).key_variables)
    return sorted(names)


def _files_of(scenario: Scenario, target: Path) -> Iterator[Path]:
    """The files of the scenario's folder, without hidden ones. Raises `ConfigError` if that is not all it needs."""
    folder = scenario.path.resolve().parent
    for site in scenario.sites:
        if re.search(r"(^|[/\s=])\.\.(/|$)", site.cmd or ""):
            raise ConfigError(
                f"{scenario.path}: site {site.name}: its cmd uses files outside of the scenario's folder",
                remedy="move them into it: a task's folder contains a copy of it",
            )
    for frozen in scenario.config.archives.values():
        if not Path(frozen.path).resolve().is_relative_to(folder):
            raise ConfigError(
                f"{scenario.path}: {frozen.path} is outside of the scenario's folder",
                remedy="move it there: a task's folder contains a copy of it",
            )
    size = 0
    for number, path in enumerate(_walked(folder, target.resolve())):
        size += path.stat().st_size
        if number >= _MAX_FILES or size > _MAX_BYTES:
            raise ConfigError(
                f"{folder} has more than {counted(_MAX_FILES, 'file')} or {_MAX_BYTES // 1_000_000} MB",
                remedy="give the scenario a folder of its own: a task's folder contains a copy of it",
            )
        yield path


def _walked(folder: Path, target: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _NOT_COPIED or path == target:
            continue
        if path.is_symlink():
            raise ConfigError(f"{path}: a symbolic link", remedy="put the file itself there")
        if path.is_dir():
            yield from _walked(path, target)
        elif path.is_file():
            yield path


def _rendered(template: str, values: Mapping[str, Any]) -> str:
    # Not escaped as HTML: each place in a template says what it is.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    environment.filters |= {"toml": toml_value, "yaml": compose_value}
    source = (resources.files("judge.plugins.harbor") / "templates" / template).read_text("utf-8")
    return environment.from_string(source).render(values)


def compose_value(text: str) -> str:
    """A string in a compose file: YAML, in which a dollar sign begins a variable unless it is doubled."""
    escaped = json.dumps(text.replace("$", "$$"), ensure_ascii=False)
    return _NOT_ASCII.sub(lambda match: f"\\U{ord(match[0]):08x}", escaped)


FORMAT = Format(tasks=TasksWriter(write=write_tasks))
