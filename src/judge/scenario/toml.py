"""Reads scenario files and selects tasks from them. Every mistake is a one-line `ConfigError`."""

import base64
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from pydantic import TypeAdapter

from judge.records.metadata import has, wanted_of
from judge.records.sites import RunSites, origin_of
from judge.records.tasks import Level, Task
from judge.records.user import impossible_grant
from judge.scenario.days import extended, today_of, with_today
from judge.scenario.files import FilesBeside, files_problem, with_site_files
from judge.scenario.holds import network_problem, with_site_holds
from judge.scenario.models import EXAMPLES, Reading, Scenario, ScenarioFile, divided
from judge.scenario.sealed import with_content
from judge.store.sealing import SealKey, is_sealed, key_in, opened, read_sealed
from shared.errors import ConfigError
from shared.fields import did_you_mean, printable
from shared.files import decode, read_errors, read_file
from shared.settings import Settings
from shared.toml_lines import KeyPath, line_of, lines_of
from shared.toml_text import parse_toml
from shared.validation import Mistakes, Problem, mistake, validated

MAX_FILE_BYTES = 16_000_000
# The ending of a sealed scenario file.
SEALED = ".sealed"
_SCENARIO_FILE = TypeAdapter(ScenarioFile)


def load_scenario(
    path: Path, *, today: date | None = None, now: datetime | None = None, key: SealKey | None = None
) -> Scenario:
    """Read and validate a scenario file, see `parse_scenario`. Raises only `ConfigError`.

    `key` opens a sealed one; by default the key in the environment does.
    """
    content = read_scenario_bytes(path)
    if is_sealed(content):
        key = key or key_in(Settings.from_environ().seal_key)
        return open_scenario(_text(content, path), path, key, today=today, now=now)
    return parse_scenario(content, path, today=today, now=now)


def open_scenario(
    text: str, path: Path, key: SealKey | None, *, today: date | None = None, now: datetime | None = None
) -> Scenario:
    """The scenario in the text of a sealed file; `path` names it in errors. Raises only `ConfigError`."""
    file = read_sealed(text, path)
    content = opened(file, key, path)
    try:
        files = {name: base64.b64decode(data) for name, data in content.files.items()}
        scenario = parse_scenario(content.scenario.encode(), path, today=today, now=now, files=files)
    except ConfigError:
        # The message quotes what is sealed.
        raise ConfigError(
            f"{path}: the tasks in it are not valid for this version of WABE",
            remedy="correct the scenario (wabe tasks validate), and seal it again",
        ) from None
    return with_content(scenario, content, file, text)


def bundled_tasks(name: str, folder: Path, key: SealKey | None = None) -> tuple[Task, ...]:
    """The tasks of a bundled set, for a request that names it, with those it excludes; `key` opens a sealed one.

    Raises `ConfigError`.
    """
    known = bundled_names(folder)
    if name not in known:
        raise ConfigError(
            f"config.scenario: unknown task set {printable(name)}", remedy=f"one of: {', '.join(known) or 'none here'}"
        )
    scenario = load_scenario(_bundled(folder)[name], key=key)
    return (*scenario.tasks, *scenario.excluded)


def require_sites(scenario: Scenario, folder: Path) -> None:
    """Raises `ConfigError` if a scenario names a bundled set in `folder` whose sites its own judge would not have.

    A judge started elsewhere may have other sets, and their sites.
    """
    name = scenario.config.scenario
    if scenario.tasks or name is None or scenario.green_agent.cmd is None:
        return
    where = f"{scenario.path}: config.scenario: {printable(name)}"
    known = bundled_names(folder)
    if name not in known:
        raise ConfigError(f"{where} is not a bundled task set", remedy=did_you_mean(name, known))
    path = _bundled(folder)[name]
    # A sealed set's are its judge's to know.
    if path.suffix != SEALED and load_scenario(path).sites:
        remedy = f"wabe run {name} --agent AGENT plays it with your agent"
        raise ConfigError(f"{where} needs sites, which only its own scenario starts", remedy=remedy)


def bundled_names(folder: Path) -> list[str]:
    """The names of the bundled task sets in `folder`."""
    return sorted(_bundled(folder))


def _bundled(folder: Path) -> dict[str, Path]:
    """The files of the bundled task sets by name."""
    return {path.parent.name: path for ending in (SEALED, ".toml") for path in folder.glob(f"*/scenario{ending}")}


def _text(content: bytes, path: Path) -> str:
    with read_errors(path, "give a file that wabe tasks seal has written"):
        return decode(content)


def read_scenario_bytes(path: Path, *, what: str = "a scenario TOML file") -> bytes:
    """The bytes of a regular file. Raises `ConfigError` when it cannot be read, or is too large."""
    with read_errors(path, f"give the path of {what}"):
        return read_file(path, max_bytes=MAX_FILE_BYTES)


def parse_scenario(
    content: bytes,
    path: Path,
    *,
    today: date | None = None,
    now: datetime | None = None,
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Scenario:
    """Validate the bytes of a scenario file; `path` names it in errors. Raises only `ConfigError`.

    Dates in tasks are relative to `today`, or else to the day of the scenario's settings, or else to `now`, by
    default the present moment. `files` are those that tasks upload, as far as they are not beside the file.
    """
    with read_errors(path, "write TOML as UTF-8"):
        text = decode(content)
        tables = parse_toml(text)
    if not tables:
        raise mistake(path, (), "empty", "add [green_agent], [[participants]] and [[tasks]] tables")
    day = today or today_of(tables.get("config"), now)
    file = validated(_SCENARIO_FILE, tables, path, toml=text, examples=EXAMPLES, context=Reading(day))
    sites = file.config.sites
    holds = {site["name"]: site.get("hold") for site in tables.get("sites", ())}
    common = _with_common(file, tables, day)
    together = [with_site_holds(task, file.sites, sites, holds, day) for task in common]
    if any(task.is_about_days for task in together):
        file = file.model_copy(update={"config": with_today(file.config, day)})
    beside = FilesBeside(path.parent, files)
    for place, task in enumerate(together):
        wrong = network_problem(task, place, file.sites, file.config)
        task_read = beside.of(with_site_files(task, file.sites, sites))
        together[place] = task if isinstance(task_read, Problem) else task_read
        if problem_with_files := task_read if isinstance(task_read, Problem) else files_problem(task_read):
            inside, problem, remedy = problem_with_files
            wrong = ("tasks", place, *inside), problem, remedy
        if grant := impossible_grant(task.user_replies, task.policies):
            reply, key, problem, remedy = grant
            wrong = ("tasks", place, "user_replies", reply, key), problem, remedy
        if wrong:
            where, problem, remedy = wrong
            line = line_of(lines_of(text), where)
            raise mistake(path, where, problem, remedy, is_toml=True, line=line, task=task.task_id)
    tasks, excluded = divided(together)
    # Each task has them now.
    parts: dict[str, Any] = {"policies": (), "attacks": (), "variants": (), "metadata": {}}
    parts |= {"tasks": tasks, "excluded": excluded, "task_ids": tuple(task.task_id for task in file.tasks)}
    return Scenario(**{**dict(file), **parts}, path=path, source_checksum=hashlib.sha256(content).hexdigest())


def _with_common(file: ScenarioFile, tables: Mapping[str, Any], today: date) -> Iterable[Task]:
    """The tasks, each also with the policies, attacks, variants and metadata of the whole file, which come first."""
    for task in file.tasks:
        if file.metadata:
            task = task.model_copy(update={"metadata": file.metadata | task.metadata})
        for key in ("policies", "attacks", "variants"):
            task = extended(task, key, getattr(file, key), tables.get(key), today, are_first=True)
        yield task


def line_in_file(scenario: Scenario, path: KeyPath) -> int | None:
    """The line of a key of the scenario's file; `None` if the file is not the one that was read."""
    try:
        content = read_file(scenario.path, max_bytes=MAX_FILE_BYTES)
    except (OSError, ValueError):
        return None
    if hashlib.sha256(content).hexdigest() != scenario.source_checksum:
        return None
    return line_of(lines_of(decode(content)), path)


def problems_of(content: bytes, path: Path, key: SealKey | None = None) -> tuple[Scenario | None, list[str]]:
    """The scenario, if the file is valid, and all mistakes in it, one per line."""
    try:
        if is_sealed(content):
            return open_scenario(_text(content, path), path, key), []
        return parse_scenario(content, path), []
    except Mistakes as error:
        return None, error.lines
    except ConfigError as error:
        return None, [str(error)]


def select(
    tasks: tuple[Task, ...],
    *,
    limit: int | None = None,
    level: str | None = None,
    ids: Collection[str] = (),
    where: Collection[str] = (),
    excluded: Collection[Task] = (),
) -> tuple[Task, ...]:
    """The tasks of that level, among those ids and with those metadata (`KEY=VALUE`), in order, at most `limit`.

    Raises `ConfigError` if none is left. `excluded` are the tasks that the scenario excludes, which cannot be selected.
    """
    if level is not None and level not in get_args(Level):
        raise ConfigError(f"--level {printable(level)} is not a level", remedy=did_you_mean(level, get_args(Level)))
    known = [task.task_id for task in tasks]
    for task_id in ids:
        _require_task("--task", task_id, known, excluded)
    wanted = wanted_of(where, [task.metadata for task in tasks])
    selection = tuple(
        task
        for task in tasks
        if level in (None, task.level) and (not ids or task.task_id in ids) and has(task.metadata, wanted)
    )[:limit]
    if not selection:
        raise ConfigError("no task is left to run", remedy="loosen --level, --task and --where")
    return selection


def _require_task(option: str, task_id: str, known: Sequence[str], excluded: Iterable[Task]) -> None:
    if (task := next((task for task in excluded if task.task_id == task_id), None)) is not None:
        why = f"{option} {printable(task_id)} is excluded by the scenario: {task.excluded}"
        raise ConfigError(why, remedy="remove excluded from the task")
    if task_id not in known:
        names = known if len(known) <= 10 else [*known[:9], "…"]
        raise ConfigError(f"{option} {printable(task_id)} is not in this scenario", remedy=did_you_mean(task_id, names))


def exclusions(options: Iterable[str], tasks: Sequence[Task], excluded: Collection[Task] = ()) -> dict[str, str]:
    """The reasons by task id that `--exclude ID=REASON` gives. Raises `ConfigError` unless a task is left to play.

    `tasks` are the run's; `excluded` are those that the scenario excludes already.
    """
    known, reasons_by_id = [task.task_id for task in tasks], dict[str, str]()
    for option in options:
        task_id, equals, reason = (part.strip() for part in option.partition("="))
        if not equals or not reason:
            raise ConfigError(f"--exclude {printable(option)} gives no reason", remedy="write --exclude ID=REASON")
        _require_task("--exclude", task_id, known, excluded)
        if reasons_by_id.get(task_id, reason) != reason:
            raise ConfigError(f"--exclude {printable(task_id)} is given twice", remedy="keep one reason")
        reasons_by_id[task_id] = reason
    if tasks and len(reasons_by_id) == len(tasks):
        raise ConfigError("--exclude leaves no task to run", remedy="exclude fewer tasks")
    return reasons_by_id


def tasks_about(endpoint: str, tasks: Iterable[Task], run: RunSites) -> int:
    """How many of these tasks are about the site."""

    def is_about(task: Task) -> bool:
        starts = {origin_of(url) for url in task.start_urls}
        return origin_of(endpoint) in starts or run.of(task).holds(endpoint)

    return sum(map(is_about, tasks))


def idle_sites(scenario: Scenario, selection: Collection[Task]) -> frozenset[str]:
    """The names of the sites that only tasks which were not chosen are about; they need not be started.

    A site that no task of the scenario names stays: another site may depend on it.
    """

    def used_by(tasks: Collection[Task]) -> set[str]:
        return {site.name for site in scenario.sites if tasks_about(site.endpoint, tasks, scenario.config.sites)}

    return frozenset(used_by(scenario.tasks) - used_by(selection))


def shard(tasks: tuple[Task, ...], index: int, num: int, *, instances: int | None = None) -> tuple[Task, ...]:
    """Slice `index` (from 0) of `num`: every `num`-th task from `index` on, among the first `instances` if given.

    The slices of a task list are disjoint, cover it, differ in size by at most one, and depend only on the order of
    the list; neighbouring tasks (often of the same website or level) land in different shards. A slice is empty if
    there are more shards than tasks.
    """
    return tasks[:instances][index::num]
