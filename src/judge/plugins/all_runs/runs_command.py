"""`wabe runs`: lists and deletes the runs on this machine."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.commands import AsJson, Command, OutputDir, plain_app
from judge.plugins.all_runs.filters import read_filters
from judge.plugins.all_runs.index import RunIndex
from judge.plugins.all_runs.listing import ListedRun, worked_on
from judge.plugins.all_runs.notes import NotesFolder
from judge.plugins.all_runs.options import with_filters
from judge.plugins.all_runs.removal import removable, remove
from judge.store.layout import RunStore, output_folder, runs_in
from shared.errors import ConfigError
from shared.files import size_of
from shared.text import counted, one_line

_COLUMNS = ("Run", "Scenario", "Participant", "State", "Success rate")
_STYLES = {"finished": "green", "running": "cyan", "interrupted": "yellow"}

runs = plain_app()

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@runs.callback(invoke_without_command=True)
@with_filters
def list_runs(context: typer.Context, output_dir: OutputDir = None, as_json: AsJson = False, **filters: object) -> None:
    """List local runs, newest first, or delete some of them. Shows id, scenario, participant, state, success rate."""
    if context.invoked_subcommand is not None:
        # `wabe runs --output-dir DIR rm ID` must not delete anything elsewhere.
        context.obj = output_dir
        return
    folder = output_folder(output_dir)
    filters_set = read_filters(filters, "wabe runs")
    known = RunIndex(folder).runs()
    matching = filters_set.keep(known)
    if as_json:
        typer.echo(json.dumps([_as_json(run) for run in matching], indent=2))
        return
    if not known:
        typer.echo(f"No runs under {folder / 'runs'}. Start one, such as: wabe run demo", err=True)
        return
    if not matching:
        typer.echo(f"None of {counted(len(known), 'run')} matches.", err=True)
        return
    rows = [[one_line(cell, 60) for cell in _cells(run)] for run in matching]
    console = Console()
    if console.is_terminal:
        table = Table()
        for column in _COLUMNS:
            table.add_column(column, justify="right" if column == _COLUMNS[-1] else "left", overflow="fold")
        for run, row in zip(matching, rows, strict=True):
            table.add_row(
                *(Text(cell, style=_STYLES.get(run.state, "red") if cell == run.state else "") for cell in row)
            )
        console.print(table)
        return
    # Piped: one line per run, for grep and awk.
    lines = [[column.upper() for column in _COLUMNS], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


@runs.command("rm")
def remove_named(
    context: typer.Context,
    run_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of runs, as `wabe runs` lists them.")],
    yes: Yes = False,
    output_dir: OutputDir = None,
) -> None:
    """Delete runs."""
    folder = output_folder(output_dir or context.obj)
    _remove([removable(folder, run_id) for run_id in dict.fromkeys(run_ids)], yes=yes)


@runs.command()
def prune(
    context: typer.Context,
    keep: Annotated[int, typer.Option(min=0, help="How many of the newest runs to keep.")],
    yes: Yes = False,
    output_dir: OutputDir = None,
) -> None:
    """Delete all runs but the newest. Runs in progress stay."""
    folder = output_folder(output_dir or context.obj)
    run_stores = sorted(runs_in(folder), key=worked_on)
    old = []
    for store in run_stores[: max(0, len(run_stores) - keep)]:
        try:
            old.append(removable(folder, store.run_id))
        except ConfigError as error:
            typer.echo(f"{error.message}: it stays")
    _remove(old, yes=yes)


def _remove(stores: list[RunStore], *, yes: bool) -> None:
    if not stores:
        typer.echo("No runs to delete.")
        return
    what = f"{counted(len(stores), 'run')} ({_megabytes(sum(size_of(store.folder) for store in stores))})"
    if not yes:
        for store in stores:
            typer.echo(store.run_id)
        if not sys.stdin.isatty():
            raise ConfigError(f"{what} would be deleted, and there is no terminal to confirm it", remedy="add --yes")
        if not typer.confirm(f"Delete {what}?"):
            typer.echo("Nothing was deleted.")
            return
    freed = 0
    for store in stores:
        freed += remove(store)
        NotesFolder(store.output_dir).remove(store.run_id)
        typer.echo(f"deleted {store.run_id}")
    # Imported here, because a list needs no report.
    from judge.report.build import remove_comparisons

    for name in remove_comparisons(stores[0].output_dir, [store.run_id for store in stores]):
        typer.echo(f"deleted comparison {name}")
    typer.echo(f"Freed {_megabytes(freed)}.")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def _cells(run: ListedRun) -> tuple[str, ...]:
    rate = "-" if run.rate is None else f"{run.rate:.1f} %"
    if run.scored and run.total is not None and run.scored < run.total:
        # Without it, a rate over few tasks looks like one over all.
        rate += f" ({run.scored} of {run.total} scored)"
    rate += f", {run.epochs} epochs" if run.epochs > 1 else ""
    rate += f", {counted(run.episodes, 'episode')}" if run.episodes is not None else ""
    return run.id, run.scenario or "-", run.participant or "-", run.state, rate


def _as_json(run: ListedRun) -> dict[str, Any]:
    columns = ("id", "scenario", "participant", "state")
    more = ("name", "model", "revision", "epochs", "episodes", "agent", "version", "judge", "tags", "note")
    return {
        "run_id": run.id,
        **{name: getattr(run, name) for name in columns},
        "success_rate": run.rate,
        **{name: getattr(run, name) for name in more},
        "last_started_at": run.worked_on,
    }


COMMAND = Command(
    runs,
    (
        "wabe runs",
        "wabe runs --agent shopper --since 2026-11-01",
        "wabe runs --search 'demo -night' --json",
        "wabe runs rm 20260101-120000-1a2b3c4d",
        "wabe runs prune --keep 20 --yes",
    ),
)
