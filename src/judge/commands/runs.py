"""`wabe runs`: lists and deletes the runs on this machine."""

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import AliasChoices, AliasPath, BaseModel, Field, ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.commands import AsJson, OutputDir, plain_app
from judge.results.identity import identity_in, player
from judge.results.removal import removable, remove, size_of
from judge.results.run_record import epochs_of
from judge.store.layout import RunStore, output_folder, runs_in
from shared.errors import ConfigError
from shared.files import read_json
from shared.text import counted, one_line

_COLUMNS = ("Run", "Scenario", "Participant", "State", "Success rate")
_STATES = {"completed": "finished", "cancelled": "interrupted", "stopped": "interrupted", "failed": "failed"}
_STYLES = {"finished": "green", "running": "cyan", "interrupted": "yellow"}


class _ListedRun(NamedTuple):
    """A run as listed; values that could not be read are `None`."""

    id: str
    scenario: str | None = None
    participant: str | None = None
    state: str = "damaged"
    success_rate: float | None = None
    scored_tasks: int | None = None
    total_tasks: int | None = None
    name: str | None = None
    model: str | None = None
    revision: str | None = None
    epochs: int = 1


class _Record(BaseModel):
    """The listed values in `run.json`."""

    state: str
    participants: dict[str, Any]
    scenario: str | None = Field(
        default=None, validation_alias=AliasChoices(AliasPath("scenario", "name"), AliasPath("config", "scenario"))
    )


class _ListedSubmission(BaseModel):
    """The listed values in `results.json`. Older files lack the number of scored tasks."""

    success_rate: float | None = Field(validation_alias=AliasPath("results", 0, "detail", "success_rate"))
    scored_tasks: int | None = Field(default=None, validation_alias=AliasPath("results", 0, "detail", "scored_tasks"))
    total_tasks: int | None = Field(default=None, validation_alias=AliasPath("results", 0, "detail", "total_tasks"))

    @property
    def rate(self) -> float | None:
        """The success rate; `None` if nothing was scored."""
        return None if self.scored_tasks == 0 else self.success_rate


runs = plain_app()

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@runs.callback(invoke_without_command=True)
def list_runs(context: typer.Context, output_dir: OutputDir = None, as_json: AsJson = False) -> None:
    """List local runs, newest first, or delete some of them. Shows id, scenario, participant, state, success rate."""
    if context.invoked_subcommand is not None:
        # `wabe runs --output-dir DIR rm ID` must not delete anything elsewhere.
        context.obj = output_dir
        return
    folder = output_folder(output_dir)
    found = [_listed(store) for store in sorted(runs_in(folder), key=_worked_on, reverse=True)]
    if as_json:
        typer.echo(json.dumps([{"run_id": run.id, **run._asdict()} for run in found], indent=2))
        return
    if not found:
        typer.echo(f"No runs under {folder / 'runs'}. Start one, such as: wabe run demo", err=True)
        return
    rows = [[one_line(cell, 60) for cell in _cells(run)] for run in found]
    console = Console()
    if console.is_terminal:
        table = Table()
        for column in _COLUMNS:
            table.add_column(column, justify="right" if column == _COLUMNS[-1] else "left", overflow="fold")
        for run, row in zip(found, rows, strict=True):
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
    found = sorted(runs_in(folder), key=_worked_on)
    old = []
    for store in found[: max(0, len(found) - keep)]:
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
            raise ConfigError(f"{what} would be deleted, and nobody can be asked here", remedy="add --yes")
        if not typer.confirm(f"Delete {what}?"):
            typer.echo("Nothing was deleted.")
            return
    freed = 0
    for store in stores:
        freed += remove(store)
        typer.echo(f"deleted {store.run_id}")
    typer.echo(f"Freed {_megabytes(freed)}.")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def _worked_on(store: RunStore) -> float:
    """When the run was last started or resumed, in seconds since 1970. Not from the id, which the user may choose."""
    times = []
    for part in (store, *store.shards()):
        # A newer version's record is not read.
        with suppress(ConfigError):
            record = part.read_run() or {}
            times += [time for key in ("started_at", "resumed_at") if isinstance(time := record.get(key), int | float)]
    if times:
        return max(times)
    with suppress(ValueError):
        # Ids that we choose begin with the time.
        return datetime.strptime(store.run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    record_file = store.folder / "run.json"
    return (record_file if record_file.exists() else store.folder).stat().st_mtime


def _cells(run: _ListedRun) -> tuple[str, ...]:
    rate = "-" if run.success_rate is None else f"{run.success_rate:.1f} %"
    if run.scored_tasks and run.total_tasks is not None and run.scored_tasks < run.total_tasks:
        # Without it, a rate over few tasks looks like one over all.
        rate += f" ({run.scored_tasks} of {run.total_tasks} scored)"
    rate += f", {run.epochs} epochs" if run.epochs > 1 else ""
    return run.id, run.scenario or "-", run.participant or "-", run.state, rate


def _listed(store: RunStore) -> _ListedRun:
    if not store.has_begun:
        return _ListedRun(store.run_id, state=f"{counted(len(store.shards()), 'shard')}, not merged")
    try:
        run = store.read_run() or {}
        record = _Record.model_validate(run)
        results = store.folder / "results.json"
        # A run that did not finish has no results yet.
        found = _ListedSubmission.model_validate(read_json(results)) if results.exists() else None
    except ConfigError:
        return _ListedRun(store.run_id, state="newer version")
    except (ValidationError, OSError, ValueError):
        return _ListedRun(store.run_id)
    state = _STATES.get(record.state, "damaged")
    if record.state == "running":
        # A killed judge could not record its end, but it has lost its lock.
        state = "running" if store.is_being_judged else "interrupted"
    known = identity_in(run)
    return _ListedRun(
        store.run_id,
        scenario=record.scenario,
        participant=player(known, ", ".join(record.participants)),
        state=state,
        success_rate=found.rate if found else None,
        scored_tasks=found.scored_tasks if found else None,
        total_tasks=found.total_tasks if found else None,
        epochs=epochs_of(run),
        **{key: known[key] for key in ("name", "model", "revision")},
    )
