"""`wabe tasks record`: a person plays, and the result is a scenario with the task, a reference script and checks."""

import asyncio
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from judge.commands import Command, OutputDir
from judge.plugins.suggestions.script_command import first_that_plays
from judge.plugins.suggestions.scripts import WrittenScript, write_script
from judge.plugins.suggestions.suggesting import suggest
from judge.records.sites import RunSites, origin_of
from judge.records.tasks import Task
from judge.runner.boundary import EXIT_LOST, run_interruptible
from judge.runner.options import RunOptions
from judge.runner.try_checks import try_checks
from judge.scenario.models import ONE_TASK
from judge.scenario.sources import scenario_toml
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore, new_run_id, output_folder
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.engines import player_of
from shared.errors import ConfigError, WabeError
from shared.fields import printable
from shared.files import read_text, write_atomic, write_errors
from shared.participants import HUMAN
from shared.settings import Settings
from shared.text import counted, one_line

_SCRIPT = "replay.toml"
# For the person, who should not run out of replies. Participants get three times as many as the script has, or this.
_MAX_REPLIES, _MIN_STEPS = 100, 15
_MAX_ID_CHARS = 40


def record(
    url: Annotated[str, typer.Argument(help="The address of the page on which the task begins.", metavar="URL")],
    task: Annotated[
        str | None, typer.Option(help="The instruction, as participants receive it. [default: ask]", metavar="TEXT")
    ] = None,
    task_id: Annotated[
        str | None, typer.Option("--id", help="The task's id. [default: from its text]", metavar="ID")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder to write. [default: the task's id]", metavar="FOLDER"),
    ] = None,
    output_dir: OutputDir = None,
) -> None:
    """Play a task yourself, and get a scenario with it: reference script, and checks that doing nothing fails.

    The checks are what your attempt and the replay of its script both show at the end. Read them before you use them.
    """
    if origin_of(url) is None:
        raise ConfigError(f"{printable(url)} is not an address", remedy="write it like https://www.example.org/")
    text = one_line(task if task is not None else _ask_for_task(), 2_000)
    name = task_id or _id_of(text)
    declared = ONE_TASK.validate_python({"task_id": name, "website": url, "task": text})
    folder = output or Path(name)
    path = folder / "scenario.toml"
    if folder.exists() and not _is_draft(folder, path, _draft(declared)):
        raise ConfigError(f"{folder} exists already", remedy="choose another --output, or remove it")
    settings = Settings.from_environ()
    runs = output_folder(output_dir, settings)
    _write(path, _draft(declared))
    run_id = new_run_id()
    try:
        trajectory = _record_attempt(path, runs, run_id, name, settings)
        scripts = [write_script(trajectory, text, everything=each) for each in (False, True)]
    except WabeError as error:
        # The same command begins again, with the draft in the folder.
        again = shlex.join(["wabe", "tasks", "record", url, "--task", text, "--id", name, "--output", str(folder)])
        shown = f"; what you showed: wabe view {run_id}" if RunStore(runs, run_id).task(name).folder.is_dir() else ""
        raise type(error)(error.message, remedy=f"show it again: {again}{shown}") from None
    script, checks = asyncio.run(_described(trajectory, path, declared, scripts, settings))
    _write(folder / _SCRIPT, script.toml())
    _write(path, _finished(declared, script, checks))
    problems, notes = asyncio.run(try_checks(load_scenario(path), settings))
    for line in (*problems, *notes):
        typer.echo(one_line(line, 500), err=True)
    steps, check_count = counted(len(script.steps), "step"), counted(len(checks), "check")
    typer.echo(f"{path}: 1 task, {check_count}; {folder / _SCRIPT}: {steps}. Read the checks: all of them must pass.")
    typer.echo(f"Try it: wabe run {path}")
    if problems or not checks:
        typer.echo("no check shows what was done: write one" if not checks else "correct the task", err=True)
        raise typer.Exit(EXIT_LOST)


def _ask_for_task() -> str:
    if not sys.stdin.isatty():
        raise ConfigError("no task", remedy='give --task "What to do"')
    return str(typer.prompt("What is the task"))


def _id_of(text: str) -> str:
    """The first words of a text, as an id."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    known = [word for number, word in enumerate(words, 1) if len("_".join(words[:number])) <= _MAX_ID_CHARS]
    return "_".join(known) or "task"


def _write(path: Path, text: str) -> None:
    with write_errors(path, "choose another --output"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())


def _draft(task: Task) -> str:
    config = {"max_steps": _MAX_REPLIES, "judge_model": "offline"}
    return scenario_toml([task], participant=HUMAN, settings=config)


def _is_draft(folder: Path, path: Path, draft: str) -> bool:
    """Whether a folder is empty, or has only the draft of a recording that came to nothing."""
    files = list(folder.iterdir()) if folder.is_dir() else [folder]
    try:
        return not files or (files == [path] and read_text(path) == draft)
    except (OSError, ValueError):
        return False


def _record_attempt(path: Path, output_dir: Path, run_id: str, task_id: str, settings: Settings) -> Trajectory:
    """The person's attempt, recorded as a run. Raises `ConfigError` if they did not finish it."""
    options = RunOptions(
        scenario=path,
        command=("wabe", "run", str(path)),
        own_run_id=run_id,
        is_demonstration=True,
        agent=(HUMAN,),
        output_dir=output_dir,
    )
    # Without a check the run has nothing to score, as expected here.
    run_interruptible(player_of(options.engine)(options, settings, Console()))
    folder = RunStore(output_dir, run_id).task(task_id).folder
    if not folder.is_dir():
        raise ConfigError(f"run {run_id} has no attempt", remedy="see what it printed above")
    trajectory = load_trajectory(folder)
    if trajectory.stop_reason != "finished":
        why = trajectory.attempt.error or trajectory.stop_reason
        raise ConfigError(f"the task was not finished: {one_line(why)}", remedy="play it again, and finish it")
    return trajectory


async def _described(
    trajectory: Trajectory, path: Path, task: Task, scripts: Sequence[WrittenScript], settings: Settings
) -> tuple[WrittenScript, list[dict[str, Any]]]:
    """The script, and the suggested checks that hold in its replay as well: others depend on the moment."""
    suggestions = suggest(trajectory, RunSites(()))
    checks = [each.check for each in suggestions.checks if not each.is_optional]
    checked = ONE_TASK.validate_python({**task.declared(exclude_defaults=True), "checks": checks})
    scenario = load_scenario(path)
    script, replay = await first_that_plays(scripts, trajectory, scenario, checked, settings)
    for line in replay.differing:
        typer.echo(f"note: {line}", err=True)
    return script, [check for check, done in zip(checks, replay.checks, strict=True) if done.passed]


def _finished(task: Task, script: WrittenScript, checks: Sequence[dict[str, Any]]) -> str:
    # The last step of a script ends the attempt.
    length = max(1, len(script.steps) - 1)
    config: dict[str, Any] = {"max_steps": max(_MIN_STEPS, 3 * length), "judge_model": "offline"}
    config |= {"actions": "both"} if script.needs_points else {}
    fields = {**task.declared(exclude_defaults=True), "reference_length": length, "reference": _SCRIPT}
    known = ONE_TASK.validate_python({**fields, **({"checks": checks} if checks else {})})
    return scenario_toml([known], participant=f"replay --script {{scenario_dir}}/{_SCRIPT}", settings=config)


COMMAND = Command(record)
