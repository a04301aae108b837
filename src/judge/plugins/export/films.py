"""`wabe export --format webm|gif`: attempts as films."""

from collections.abc import Sequence
from pathlib import Path

import typer

from judge.results.film import FILM_FORMATS, FilmFormat, film_path, make_film
from judge.runner.boundary import EXIT_LOST
from judge.store.layout import RunStore, TaskStore
from shared.errors import ConfigError, TrajectoryError
from shared.fields import did_you_mean, printable
from shared.files import write_atomic, write_errors
from shared.text import counted, one_line

__all__ = ["FILM_FORMATS", "write_films"]


def write_films(
    store: RunStore, tasks: Sequence[TaskStore], form: FilmFormat, ids: Sequence[str], output: Path | None
) -> None:
    """Write the films of these tasks, or of all; unreadable attempts are reported, and the exit code is 1."""
    names = [task.name for task in tasks]
    for task_id in ids:
        if task_id not in names:
            problem = f"--task {printable(task_id)} was not played in run {store.run_id}"
            raise ConfigError(problem, remedy=did_you_mean(task_id, names))
    selection = [task for task in tasks if not ids or task.name in ids]
    if output is not None and len(selection) != 1:
        raise ConfigError(f"--output is for one film, and these are {len(selection)}", remedy="add --task ID")
    left_out = 0
    for task in selection:
        path = output or film_path(store, task.key, form)
        try:
            film = make_film(task.folder, form)
        except TrajectoryError as error:
            left_out += 1
            typer.echo(f"left out {one_line(task.key)}: {one_line(str(error))}", err=True)
            continue
        with write_errors(path, "choose another --output"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, film)
        typer.echo(f"{path}: {len(film) / 1e6:.1f} MB")
    if output is None and left_out < len(selection):
        typer.echo(f"{counted(len(selection) - left_out, 'film')}; wabe report {store.run_id} links to them")
    if left_out or not selection:
        raise typer.Exit(EXIT_LOST)
