"""`wabe checks suggest`: proposes checks from a recorded attempt."""

from typing import Annotated

import typer

from judge.commands import Command, OneEpoch, OneRun, OneTask, OutputDir, plain_app
from judge.judges.edited import paired
from judge.plugins.suggestions.suggesting import suggest as suggest_checks
from judge.plugins.suggestions.suggesting import suggestions_toml
from judge.records.sites import RunSites
from judge.runner.boundary import EXIT_LOST
from judge.store.layout import RunStore, TaskStore, find_run, output_folder
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError
from shared.fields import as_mapping, did_you_mean, printable
from shared.text import counted

_NOTHING = "nothing at the end differs from the start"
_NO_DIFFERENCE = "nothing that the wrong attempt lacks was found"

checks = plain_app(help="Propose checks for a task.", no_args_is_help=True)


@checks.callback()
def group() -> None:
    """Propose checks for a task."""


@checks.command()
def suggest(
    run: OneRun,
    task: OneTask,
    epoch: OneEpoch = 1,
    any_: Annotated[bool, typer.Option("--any", help="Accept an attempt that did not succeed.")] = False,
    against: Annotated[
        str | None, typer.Option(help="A run with a wrong attempt: propose only what fails on that.", metavar="RUN")
    ] = None,
    also: Annotated[
        str | None,
        typer.Option(
            help="Another run with a right attempt: leave out what differs, and propose only, allow and exact.",
            metavar="RUN",
        ),
    ] = None,
    output_dir: OutputDir = None,
) -> None:
    """Print checks that a recorded attempt passes and a participant that does nothing fails, as TOML to edit."""
    runs = output_folder(output_dir)
    store = find_run(run, runs)
    folder = attempt_folder(store, task, epoch)
    trajectory = load_trajectory(folder.folder)
    outcome = _outcome(trajectory)
    if outcome not in ("success", "unscored") and not any_:
        raise ConfigError(
            f"{folder.key} did not succeed in run {store.run_id} ({outcome})",
            remedy="name a successful attempt; or add --any, if its end is what the task asks for",
        )
    wrong = None if against is None else _wrong(find_run(against, runs), trajectory, may_succeed=any_)
    config = as_mapping((store.read_run() or {}).get("config"))
    other = None if also is None else _other(find_run(also, runs), trajectory, may_fail=any_)
    suggestions = suggest_checks(trajectory, RunSites(tuple(config.get("allowed_sites") or ())), wrong, other)
    proposed = [each for each in suggestions.checks if not each.is_optional]
    passes = "which this attempt passes" if wrong is None else "which this attempt passes and the wrong one fails"
    number = counted(len(proposed), "check")
    typer.echo(f"# From run {store.run_id}, {folder.key} ({outcome}): {number}, all of {passes}.")
    if outcome == "unscored":
        typer.echo("# Nothing has judged this attempt yet: see for yourself that its end is what the task asks for.")
    typer.echo("# Keep those that state what the task asks for: all that stay must pass.")
    typer.echo(suggestions_toml(suggestions), nl=False)
    if not proposed:
        typer.echo(f"{_NOTHING if wrong is None else _NO_DIFFERENCE}: no check to propose", err=True)
        raise typer.Exit(EXIT_LOST)


def attempt_folder(store: RunStore, task: str, epoch: int) -> TaskStore:
    """The folder of an attempt. Raises `ConfigError`."""
    names = list(dict.fromkeys(each.name for each in store.tasks()))
    if task not in names:
        raise ConfigError(
            f"--task {printable(task)} is not in run {store.run_id}", remedy=did_you_mean(task, names[:20])
        )
    folder = store.task(task, epoch)
    if not folder.folder.is_dir():
        raise ConfigError(f"run {store.run_id} has no epoch {epoch} of {task}", remedy="give a smaller --epoch")
    return folder


def _wrong(store: RunStore, right: Trajectory, *, may_succeed: bool) -> Trajectory:
    """The wrong attempt at the same task, of the first epoch. Raises `ConfigError` if it is not a wrong attempt."""
    wrong = _of_same_task(store, right, "--against")
    if _outcome(wrong) == "success" and not may_succeed:
        problem = f"--against: {wrong.task.task_id} succeeded in run {store.run_id}"
        raise ConfigError(problem, remedy="name a wrong attempt; or add --any, if it is wrong nevertheless")
    return wrong


def _other(store: RunStore, right: Trajectory, *, may_fail: bool) -> Trajectory:
    """Another right attempt at the same task, of the first epoch. Raises `ConfigError` if it is not one."""
    other = _of_same_task(store, right, "--also")
    if _outcome(other) not in ("success", "unscored") and not may_fail:
        problem = f"--also: {other.task.task_id} did not succeed in run {store.run_id}"
        raise ConfigError(problem, remedy="name a right attempt; or add --any, if it is right nevertheless")
    return other


def _of_same_task(store: RunStore, right: Trajectory, option: str) -> Trajectory:
    folder = attempt_folder(store, right.task.task_id, 1)
    other = load_trajectory(folder.folder)
    if paired({folder.folder: other.task}, [right.task]).refused:
        problem = f"{option}: run {store.run_id} played another website or text of {right.task.task_id}"
        raise ConfigError(problem, remedy="name a run of the same task")
    if other.folder.resolve() == right.folder.resolve():
        what = "wrong" if option == "--against" else "another right one"
        raise ConfigError(f"{option} names the same attempt", remedy=f"name a run whose attempt is {what}")
    return other


def _outcome(trajectory: Trajectory) -> str:
    return trajectory.attempt.outcome


COMMAND = Command(
    checks,
    (
        "wabe checks suggest latest --task t1",
        "wabe checks suggest latest --task t1 --against 20260102-120000-5e6f7a8b",
        "wabe checks suggest latest --task t1 --epoch 2 --any",
    ),
)
