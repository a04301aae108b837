"""`wabe tasks`: sample, validate, check and import tasks."""

import asyncio
import inspect
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import typer

from judge.commands import Where, add_plugin_commands, plain_app
from judge.commands.options import with_parameters
from judge.config import RunConfig
from judge.episode.preflight import check_config
from judge.network.archives import open_archives
from judge.records.checks import NO_CHECKS
from judge.records.tasks import Task
from judge.records.tools import tools
from judge.runner.boundary import EXIT_USAGE
from judge.runner.try_checks import try_checks
from judge.scenario.checks import contradictions_of, hints_of, repeated, unlearnt, unrecorded, warnings_of
from judge.scenario.frozen import on_archives
from judge.scenario.importers import IMPORTERS, ImportedTasks, ImportRequest, importer_warnings
from judge.scenario.logins import expired_logins, with_logins
from judge.scenario.models import Scenario
from judge.scenario.references import opened_references, reference_problems
from judge.scenario.sources import host_of, hub_tasks, reached, read_dataset, scenario_toml, statistics, tasks_toml
from judge.scenario.sources import sample as draw
from judge.scenario.toml import SEALED, load_scenario, problems_of, read_scenario_bytes, require_sites, select
from judge.store.sealing import key_in
from shared.errors import ConfigError
from shared.fields import did_you_mean
from shared.files import decode, write_atomic, write_errors
from shared.plugins import Trial, plugins
from shared.settings import Settings
from shared.text import counted, one_line
from shared.toml_lines import line_of, lines_of

# Sources that do not read them refuse them.
_OF_IMPORTERS: Mapping[str, str] = MappingProxyType(
    {"names": "--tasks", "seeds": "--seeds", "success": "--success", "config": "--config", "subset": "--subset"}
)
_MAX_LISTED = 20

tasks = plain_app(help="Sample, validate and import tasks.", no_args_is_help=True)

add_plugin_commands(tasks, "tasks")


@tasks.command()
def sample(
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A scenario or a dataset's JSON; without it, the dataset hub.", metavar="FILE"),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Tasks of each level.")] = 3,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same tasks.")] = None,
    where: Where = None,
) -> None:
    """Sample random tasks of each level and print them as TOML."""
    # Printed with the tasks, so that any sample can be repeated.
    used = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    sampled = draw(select(_tasks_from(source), where=where or ()), count=count, seed=used)
    typer.echo(f"# {counted(len(sampled), 'task')}, up to {count} of each level; seed {used}\n")
    typer.echo(tasks_toml(sampled), nl=False)


def _trials() -> dict[str, Trial]:
    """What plug-ins can try, by option."""
    return {name: trial for plugin in plugins().values() for name, trial in plugin.tries.items()}


def _with_trials(command: Callable[..., None]) -> Callable[..., None]:
    options = {name: typer.Option(f"--{name}", help=trial.help) for name, trial in _trials().items()}
    kind = inspect.Parameter.KEYWORD_ONLY
    return with_parameters(
        command,
        [
            inspect.Parameter(name, kind, annotation=Annotated[bool, option], default=False)
            for name, option in options.items()
        ],
    )


@tasks.command()
@_with_trials
def validate(
    files: Annotated[list[Path], typer.Argument(help="Scenario files.", metavar="FILE…")],
    check: Annotated[bool, typer.Option("--check", help="Check that every website can be reached.")] = False,
    try_: Annotated[bool, typer.Option("--try", help="Report checks that pass when nothing is done.")] = False,
    task: Annotated[
        list[str] | None, typer.Option(help="Play scripts of this task only; repeatable.", metavar="ID")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Keep beside the scenario what playing scripts shows.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show statistics.")] = False,
    **tries: bool,
) -> None:
    """Validate scenario files. Reports mistakes, repeated tasks, unreachable hosts, checks that prove nothing.

    Exit code 2 if something is wrong.
    """
    bad = 0
    for path in files:
        scenario, problems, warnings = _examine(path)
        if check and scenario is not None:
            reachable, failures = _reach(scenario)
            problems += [f"{path}: {failure}" for failure in failures]
            for line in reachable:
                typer.echo(f"{path}: {line}")
        passing: list[str] = []
        if try_ and scenario is not None and not problems:
            problems, passing = asyncio.run(try_checks(scenario, Settings.from_environ()))
            problems = [f"{path}: {one_line(problem, 500)}" for problem in problems]
        for trial in (trial for name, trial in _trials().items() if tries[name]):
            if scenario is not None and not problems:
                selected = _with_tasks(scenario, task or ())
                problems, notes = trial.run(selected, Settings.from_environ(), write=write)
                problems, passing = [f"{path}: {problem}" for problem in problems], [*passing, *notes]
        # All files are checked, so that one call reports every mistake.
        bad += bool(problems)
        for problem in problems:
            typer.echo(problem, err=True)
        if scenario is None:
            continue
        _tell(path, scenario, (*warnings, *passing))
        if not problems:
            attempt_note = ", and no task passes when nothing is done" if try_ else ""
            left_out = f", {len(scenario.excluded)} excluded" if scenario.excluded else ""
            task_words = (
                counted(len(scenario.tasks), "task") if scenario.tasks else f"the tasks of {scenario.config.scenario}"
            )
            typer.echo(f"{path}: valid, {task_words}{left_out}{attempt_note}")
        for line in statistics(scenario.tasks) if verbose else ():
            typer.echo(f"{'    ' if line.startswith(' ') else '  '}{one_line(line)}")
    if bad:
        raise typer.Exit(EXIT_USAGE)


def _tell(path: Path, scenario: Scenario, warnings: Sequence[str]) -> None:
    for warning in warnings:
        typer.echo(f"{path}: note: {one_line(warning, 500)}")
    for task in scenario.tasks:
        for hint in hints_of(task):
            typer.echo(f"{path}: hint: task {task.task_id}, {one_line(hint, 500)}")


@tasks.command("import")
def import_tasks(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"The dataset's JSON, or {' or '.join(IMPORTERS.names())}; without it, Online-Mind2Web's hub.",
            metavar="SOURCE",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The scenario to write; printed when not given.", metavar="FILE"),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--tasks", help="Some of the source's tasks: names or numbers, as in click-test,click-link or 7,44."
        ),
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="For tasks with seeds: a seed, or a range such as 0:5.")] = None,
    success: Annotated[
        Literal["exact", "positive"] | None,
        typer.Option(help="For tasks with rewards: exact (1 is a success) or positive (any above 0). [default: exact]"),
    ] = None,
    addresses: Annotated[
        Path | None, typer.Option("--config", help="For tasks on your own sites: their addresses.", metavar="FILE")
    ] = None,
    subset: Annotated[str | None, typer.Option(help="A subset that the source has, such as hard.")] = None,
    level: Annotated[str | None, typer.Option(help="easy, medium or hard only.")] = None,
    where: Where = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many tasks.")] = None,
    participant: Annotated[str, typer.Option(help="The bundled participant to write into the scenario.")] = "gemini",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Create a scenario from a benchmark."""
    first, *more = source or [""]
    path = Path(more.pop(0)) if more and first in IMPORTERS.names() and _reads_a_file(first) else None
    # Names may also be separate arguments, as in `--tasks click-test click-link`.
    all_names = [*(names or ()), *more]
    settings = Settings.from_environ()
    request = ImportRequest(
        settings, all_names, seeds, success, addresses, subset, level, None if where else limit, output, path
    )
    _require_taken(first, request)
    imported = ImportedTasks((), {"max_steps": 15})
    if first in IMPORTERS.names():
        imported = IMPORTERS.load(first).run(request)
        for note in imported.notes:
            typer.echo(f"note: {note}", err=True)
    else:
        all_tasks = _tasks_from(Path(first) if first else None)
        imported = imported._replace(tasks=select(all_tasks, level=level, limit=None if where else limit))
    selected = select(tuple(imported.tasks), where=where, limit=limit) if where else imported.tasks
    text = scenario_toml(selected, participant=participant, settings=imported.settings, sites=imported.sites)
    if output is None:
        typer.echo(text, nl=False)
        return
    if output.exists() and not force:
        raise ConfigError(f"{output} exists already", remedy="choose another --output, or add --force")
    with write_errors(output, "choose another --output"):
        write_atomic(output, text.encode())
    typer.echo(f"{output}: {counted(len(selected), 'task')}")


def _reads_a_file(source: str) -> bool:
    return "path" in IMPORTERS.load(source).takes


def _require_taken(source: str, request: ImportRequest) -> None:
    """Raises `ConfigError` for an option that the source does not take."""
    importers = {name: IMPORTERS.load(name) for name in IMPORTERS.names()}
    for field, option in _OF_IMPORTERS.items():
        takers = [name for name, importer in importers.items() if field in importer.takes]
        if getattr(request, field) and source not in takers:
            takers_text = " and ".join(takers) or "sources that are not installed"
            example = f"wabe tasks import {takers[0]} {option} …" if takers else "leave it out"
            raise ConfigError(f"{option} is for {takers_text}", remedy=example)


def _tasks_from(path: Path | None) -> tuple[Task, ...]:
    if path is None:
        return hub_tasks()
    if path.suffix.lower() in (".toml", SEALED):
        return load_scenario(path).tasks
    what = " or ".join(("the dataset's JSON file", *IMPORTERS.names()))
    return read_dataset(read_scenario_bytes(path, what=what), str(path))


def _with_tasks(scenario: Scenario, ids: Sequence[str]) -> Scenario:
    """The scenario with these tasks only, all without any. Raises `ConfigError` for an unknown one."""
    known = [each.task_id for each in scenario.tasks]
    if unknown := next((each for each in ids if each not in known), None):
        raise ConfigError(f"--task {unknown}: unknown task", remedy=did_you_mean(unknown, known))
    return scenario.model_copy(
        update={"tasks": tuple(each for each in scenario.tasks if each.task_id in (ids or known))}
    )


def _warnings(scenario: Scenario) -> list[str]:
    messages = [*repeated(scenario.tasks), *importer_warnings([task.task_id for task in scenario.tasks])]
    for task in scenario.tasks:
        messages += [f"task {task.task_id}, {why}" for why in warnings_of(task, scenario.config.sites)]
    messages += [each for tool in tools().values() for each in tool.warnings(scenario.tasks, scenario.path.parent)]
    unchecked = sum(not task.checks for task in scenario.tasks)
    if unchecked and scenario.config.judge_model == "offline":
        messages.append(f"{unchecked} of {counted(len(scenario.tasks), 'task')} will be unscored: {NO_CHECKS}")
    return messages


def _reach(scenario: Scenario) -> tuple[list[str], list[str]]:
    """Lines on the hosts that were reached and not asked, and on those that cannot be reached."""
    # Sites with a cmd run only during an assessment.
    local = {host_of(site.endpoint): site.name for site in scenario.sites if site.cmd}
    hosts = asyncio.run(reached(task.website for task in scenario.tasks if host_of(task.website) not in local))
    answered = [host for host, reason in hosts.items() if reason is None]
    lines = [f"reached {len(answered)} of {counted(len(hosts), 'website')}{_enumeration(answered)}"] if hosts else []
    if unasked := [f"{name} at {host}" for host, name in local.items()]:
        lines.append(
            f"not checked, because only a run starts {'it' if len(unasked) == 1 else 'them'}{_enumeration(unasked)}"
        )
    failures = [f"{host} cannot be reached: {one_line(why)}" for host, why in hosts.items() if why is not None]
    return lines, failures


def _enumeration(names: list[str]) -> str:
    first_names = names[:_MAX_LISTED]
    if len(names) > _MAX_LISTED:
        first_names.append(f"… {len(names) - _MAX_LISTED} more")
    return f": {', '.join(map(one_line, first_names))}" if first_names else ""


def _examine(path: Path) -> tuple[Scenario | None, list[str], list[str]]:
    """The scenario, if it can be parsed, its mistakes, and warnings about probable mistakes."""
    try:
        content = read_scenario_bytes(path)
    except ConfigError as error:
        return None, [str(error)], []
    key = key_in(Settings.from_environ().seal_key)
    scenario, problems = problems_of(content, path, key)
    if scenario is None:
        return None, problems, []
    warnings = _warnings(scenario)
    try:
        # Without resolving password variables: a scenario is often written on another machine than it is run on.
        warnings += expired_logins(with_logins(scenario, scenario.tasks, environ=None), time.time())
    except ConfigError as error:
        problems.append(str(error))
    all_tasks, places = (*scenario.tasks, *scenario.excluded), scenario.places
    by_task = [[*contradictions_of(task), *unrecorded(task, scenario.config)] for task in scenario.tasks]
    by_task += [[] for _ in scenario.excluded]
    with opened_references(scenario) as (_, folder):
        for problems_found, missing in zip(by_task, reference_problems(all_tasks, folder), strict=True):
            problems_found += [missing] if missing else []
    try:
        archive_warnings, once = _on_archives(scenario)
        warnings += archive_warnings
    except ConfigError as error:
        problems.append(f"{path}: {error}")
        once = []
    for task, problems_found in zip(all_tasks, by_task, strict=True):
        if task.task_id in once:
            problems_found += unlearnt(task)
    lines = lines_of(decode(content)) if any(by_task) and scenario.sealed is None else {}
    for task, problems_found in zip(all_tasks, by_task, strict=True):
        where = f"{path}: line {line_of(lines, ('tasks', places[task.task_id]))}, task {task.task_id}"
        problems += [f"{where}: {one_line(why, 500)}" for why in problems_found]
    config = scenario.config
    if scenario.green_agent.cmd is None:
        # A judge that runs elsewhere may have files that do not exist here.
        paths = {name: getattr(config, name) for name in ("browser_path", "prompts", "prices")}
        config = config.model_copy(
            update={name: None for name, value in paths.items() if value and not Path(value).exists()}
        )
    # Without the model's key, for the same reason: a scenario is often written on another machine.
    settings = Settings.from_environ()
    try:
        require_sites(scenario, settings.scenarios_folder)
    except ConfigError as error:
        problems.append(str(error))
    try:
        check_config(config, settings, with_key=False)
    except ConfigError as error:
        problems.append(f"{path}: {error}")
    return scenario, problems, warnings


def _on_archives(scenario: Scenario) -> tuple[list[str], list[str]]:
    """Warnings of tasks that cannot be played on the archives of their frozen sites, and those held once.

    Raises `ConfigError`.
    """
    archives = open_archives(on_archives(scenario).config)
    if archives is None:
        return [], []
    archives.check(scenario.tasks)
    excluded = archives.excluding(RunConfig(), scenario.tasks).exclude
    warnings = [f"task {task_id} will not be played: {why}" for task_id, why in excluded.items()]
    return warnings, archives.played_once(scenario.tasks)
