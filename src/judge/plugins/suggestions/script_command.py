"""`wabe tasks script`: writes a reference script from a recorded attempt, and plays it."""

import asyncio
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from judge.commands import Command, OneEpoch, OneRun, OneTask, OutputDir
from judge.config import CONFIG, RunConfig
from judge.plugins.suggestions.checks_command import attempt_folder
from judge.plugins.suggestions.replaying import PlayedScript, play_script
from judge.plugins.suggestions.scripts import WrittenScript, write_script
from judge.records.tasks import Task
from judge.results.run_record import day_of_run
from judge.runner.boundary import EXIT_LOST
from judge.scenario.days import day_of
from judge.scenario.models import Scenario
from judge.scenario.references import scripted_tasks
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore, find_run, output_folder
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.dates import written_dates
from shared.declarations import setting_apart
from shared.errors import ConfigError
from shared.fields import as_mapping, printable
from shared.files import read_text, write_atomic, write_errors
from shared.settings import Settings
from shared.text import counted, plain
from shared.validation import validated


def script(
    run: OneRun,
    task: OneTask,
    epoch: OneEpoch = 1,
    scenario: Annotated[
        Path | None, typer.Option(help="The run's scenario file. [default: as recorded]", metavar="FILE")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The script file to write or add to; printed without it.", metavar="FILE"),
    ] = None,
    output_dir: OutputDir = None,
) -> None:
    """Write a reference script from a recorded attempt, and play it: exit code 1 if it does not end in the same way.

    Elements are named by role and name; what had no effect is left out.
    """
    store = find_run(run, output_folder(output_dir))
    trajectory = load_trajectory(attempt_folder(store, task, epoch).folder)
    declared = _as_played(load_scenario(scenario or _scenario_of(store)), store)
    played_task = _task_of(declared, trajectory)
    if output is not None:
        _require_new(output, played_task)
    dates = _dates_of(played_task, day_of_run(store) or day_of(declared.config))
    candidates = [
        write_script(trajectory, played_task.declared_text, dates=dates, everything=each) for each in (False, True)
    ]
    settings = Settings.from_environ()
    script_found, replay = asyncio.run(first_that_plays(candidates, trajectory, declared, played_task, settings))
    text = (
        f"# From run {store.run_id}, {trajectory.task.task_id} ({trajectory.attempt.outcome}).\n{script_found.toml()}"
    )
    if output is None:
        typer.echo(text, nl=False)
    elif replay.has_same_end:
        with write_errors(output, "choose another --output"):
            before = f"{read_text(output).rstrip()}\n\n" if output.exists() else ""
            write_atomic(output, f"{before}{text}".encode())
        typer.echo(
            f'{output}: {counted(len(script_found.steps), "step")}; name it in the task: reference = "{output.name}"'
        )
    if script_found.needs_points:
        typer.echo('note: some steps act at points: the scenario needs actions = "both" in [config]', err=True)
    if not replay.has_same_end:
        for line in replay.differing:
            typer.echo(line, err=True)
        typer.echo("the script does not end as the attempt did; it was not written to a file", err=True)
        raise typer.Exit(EXIT_LOST)
    decided = f"{counted(len(replay.checks), 'check')} decided as in the attempt" if replay.checks else "the same end"
    without = "" if replay.checks else "; the task has no checks, so nothing else was compared"
    typer.echo(f"played: {decided}{without}", err=True)


async def first_that_plays(
    candidates: Sequence[WrittenScript], trajectory: Trajectory, scenario: Scenario, task: Task, settings: Settings
) -> tuple[WrittenScript, PlayedScript]:
    """The first script that ends as the attempt did, else the last one, and how it was played."""
    different = list({candidate.toml(): candidate for candidate in candidates}.values())
    for candidate in different:
        replay = await play_script(candidate, trajectory, scenario, task, settings)
        if replay.has_same_end:
            break
    return candidate, replay


def _dates_of(task: Task, day: date) -> dict[str, str]:
    """The dates of the task by how they were written out on that day."""
    text = json.dumps(task.dated.template, ensure_ascii=False) if task.dated else ""
    return written_dates(text, day)


def _as_played(scenario: Scenario, store: RunStore) -> Scenario:
    """The scenario with the settings that set runs apart as the run had them, which options may have set."""
    recorded = as_mapping(as_mapping(store.read_run()).get("config"))
    apart = {name: recorded.get(name, default) for name, (default, _) in setting_apart(RunConfig).items()}
    played = validated(CONFIG, apart, f"run {store.run_id}")
    changes = {name: getattr(played, name) for name in apart}
    return scenario.model_copy(update={"config": scenario.config.model_copy(update=changes)})


def _scenario_of(store: RunStore) -> Path:
    recorded = as_mapping(as_mapping(store.read_run()).get("scenario")).get("path")
    path = Path(recorded) if isinstance(recorded, str) and recorded else None
    if path is None or not path.is_file():
        raise ConfigError(
            f"run {store.run_id}: its scenario file is not known here" if path is None else f"{path} does not exist",
            remedy="name the scenario with --scenario FILE",
        )
    return path


def _task_of(scenario: Scenario, trajectory: Trajectory) -> Task:
    """The scenario's task that was played. Raises `ConfigError`."""
    recorded = trajectory.task
    if recorded.clean_task is not None:
        problem = f"{recorded.task_id} was played under an attack or a variant"
        raise ConfigError(problem, remedy=f"use {recorded.clean_task}")
    match = next((task for task in scenario.tasks if task.task_id == recorded.task_id), None)
    if match is None or plain(match.declared_text) != plain(recorded.declared_text):
        problem = f"{scenario.path} has no task {printable(recorded.task_id)} with this text"
        raise ConfigError(problem, remedy="name the run's scenario with --scenario FILE")
    return match


def _require_new(output: Path, task: Task) -> None:
    """Raises `ConfigError` for a file without scripts, or with one for this task."""
    if not output.exists():
        return
    existing = scripted_tasks(output)
    if isinstance(existing, str):
        raise ConfigError(f"--output {output}: {existing}", remedy="choose another file")
    if plain(task.declared_text) in existing:
        raise ConfigError(f"{output} has a script for this task already", remedy="choose another --output")


COMMAND = Command(script)
