"""`wabe checks suggest`: proposes checks from a recorded attempt."""

from typing import Annotated

import typer

from judge.commands import OutputDir, plain_app
from judge.results.suggestions import suggest as suggest_checks
from judge.results.suggestions import suggestions_toml
from judge.runner.boundary import EXIT_LOST
from judge.store.layout import find_run, output_folder
from judge.trajectory.files import load_trajectory
from shared.errors import ConfigError
from shared.fields import as_mapping, did_you_mean, shown
from shared.text import counted

checks = plain_app(help="Propose checks for a task.", no_args_is_help=True)


@checks.callback()
def group() -> None:
    """Propose checks for a task."""


@checks.command()
def suggest(
    run: Annotated[str, typer.Argument(help="A run's id, its folder, or `latest`.", metavar="RUN")],
    task: Annotated[str, typer.Option("--task", help="The task.", metavar="ID")],
    epoch: Annotated[int, typer.Option(min=1, help="The epoch, if the task was played several times.")] = 1,
    any_: Annotated[bool, typer.Option("--any", help="Also from an attempt that did not succeed.")] = False,
    output_dir: OutputDir = None,
) -> None:
    """Print checks that a recorded attempt passes and a participant that does nothing fails, as TOML to edit."""
    store = find_run(run, output_folder(output_dir))
    names = list(dict.fromkeys(each.name for each in store.tasks()))
    if task not in names:
        raise ConfigError(f"--task {shown(task)} is not in run {store.run_id}", remedy=did_you_mean(task, names[:20]))
    folder = store.task(task, epoch)
    if not folder.folder.is_dir():
        raise ConfigError(f"run {store.run_id} has no epoch {epoch} of {task}", remedy="give a smaller --epoch")
    trajectory = load_trajectory(folder.folder)
    outcome = trajectory.attempt.outcome if trajectory.attempt else "unscored"
    if outcome != "success" and not any_:
        raise ConfigError(
            f"{folder.key} did not succeed in run {store.run_id} ({outcome})",
            remedy="name a successful attempt; or add --any, if its end is what the task asks for",
        )
    config = as_mapping((store.read_run() or {}).get("config"))
    found = suggest_checks(trajectory, tuple(config.get("allowed_sites") or ()))
    proposed = [each for each in found.checks if not each.is_optional]
    number = counted(len(proposed), "check")
    typer.echo(f"# From run {store.run_id}, {folder.key} ({outcome}): {number}, all of which this attempt passes.")
    typer.echo("# Keep those that state what the task asks for: all that stay must pass.")
    typer.echo(suggestions_toml(found), nl=False)
    if not proposed:
        typer.echo("nothing at the end differs from the start: no check to propose", err=True)
        raise typer.Exit(EXIT_LOST)
