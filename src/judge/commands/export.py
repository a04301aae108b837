"""`wabe export`: writes a run in another benchmark's layout or as a table, and validates submission folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from judge.commands import RUN_HELP, OutputDir, TasksFile
from judge.evaluators.webarena import EvaluatorError, packaged_tasks
from judge.results.export import (
    ONLINE_MIND2WEB,
    WEBARENA,
    WEBEVAL,
    export_tasks,
    read_reference_lengths,
    validate_folder,
    write_tasks,
)
from judge.results.folders import resolve_store
from judge.results.rows import AttemptRow
from judge.results.run_record import excluded_by_scenario, tasks_of
from judge.results.tables import Unreadable, csv_of, jsonl_of, left_out_rows, markdown, parquet_of, table_of
from judge.runner.boundary import EXIT_LOST
from judge.store.layout import RunStore, TaskStore, output_folder
from shared.errors import ConfigError
from shared.files import write_atomic, write_errors
from shared.settings import Settings
from shared.text import counted, one_line

CSV, JSONL, PARQUET, MARKDOWN = "csv", "jsonl", "parquet", "markdown"
# The default file name for each format.
_TABLES: Mapping[str, str] = {
    CSV: "attempts.csv",
    JSONL: "attempts.jsonl",
    PARQUET: "attempts.parquet",
    MARKDOWN: "summary.md",
}
_STDOUT = Path("-")


def export(
    run: Annotated[str | None, typer.Argument(help=RUN_HELP, metavar="RUN")] = None,
    format_: Annotated[
        Literal["online-mind2web-v2", "webeval", "webarena-verified", "csv", "jsonl", "parquet", "markdown"],
        typer.Option("--format", help="The layout of another benchmark, or a table."),
    ] = ONLINE_MIND2WEB,
    output: Annotated[
        Path | None,
        typer.Option(help="Where to write; default: export/ in the run's folder. `-` prints csv, jsonl and markdown."),
    ] = None,
    validate: Annotated[
        Path | None, typer.Option(help="Check this submission folder instead of writing one.", metavar="DIR")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="Dataset file (JSON) with the human reference lengths.", metavar="FILE")
    ] = None,
    epoch: Annotated[
        int, typer.Option(min=1, help="The epoch to write: these formats have one attempt per task.", metavar="N")
    ] = 1,
    tasks: TasksFile = None,
    output_dir: OutputDir = None,
) -> None:
    """Write a run in another benchmark's layout, or as a table. With --validate, check a submission folder instead."""
    if (run is None) == (validate is None):
        raise ConfigError("give either a RUN to export or --validate DIR", remedy="such as: wabe export latest")
    if format_ in _TABLES and (validate or dataset or epoch > 1):
        raise ConfigError(
            "--validate, --dataset and --epoch are for folders of other benchmarks",
            remedy="leave them out; a table has all epochs",
        )
    if output == _STDOUT and format_ not in (CSV, JSONL, MARKDOWN):
        raise ConfigError(f"--format {format_} is not for printing", remedy="give --output a file or folder")
    lengths = read_reference_lengths(dataset) if dataset is not None else {}
    settings = Settings.from_environ()
    if validate is not None and format_ == WEBARENA:
        _check_package(validate, settings)
        return
    if validate is not None:
        _report_problems(validate, lengths)
        return
    store = resolve_store(run or "latest", output_folder(output_dir, settings), tasks)
    if format_ in _TABLES:
        _export_table(store, format_, output or store.derived / "export" / _TABLES[format_])
        return
    chosen = _of_epoch(store, epoch)
    target = output or store.derived / "export" / (format_ if epoch == 1 else f"{format_}-epoch-{epoch}")
    _export_folder(chosen, format_, target, lengths, settings)


def _export_folder(
    chosen: list[TaskStore], format_: str, target: Path, lengths: Mapping[str, int], settings: Settings
) -> None:
    """Write the run in another benchmark's layout."""
    results = list(export_tasks(chosen, target, lengths, format_=format_))
    left_out = [result for result in results if result.reason is not None]
    for result in left_out:
        typer.echo(f"left out {result.task_id}: {one_line(result.reason or '')}")
    written = len(results) - len(left_out)
    typer.echo(f"{target}: {written} of {counted(len(results), 'task')} written")
    # Validated immediately, so that the user does not learn of mistakes from the benchmark's server.
    if written and format_ == WEBARENA:
        try:
            _check_package(target, settings)
        except ConfigError as error:
            typer.echo(f"note: not checked by the benchmark's own command: {error}", err=True)
    elif written and format_ == WEBEVAL:
        write_tasks(chosen, target / "tasks.json")
    elif written:
        _report_problems(target, lengths)
    if left_out or not results:
        raise typer.Exit(EXIT_LOST)


def _export_table(store: RunStore, format_: str, target: Path) -> None:
    """Write the attempts to one file, or print them. Unreadable ones are reported, and the exit code is 1."""
    rows: list[AttemptRow] = []
    left_out: list[Unreadable] = []
    for each in table_of(store):
        if isinstance(each, Unreadable):
            left_out.append(each)
        else:
            # Only the row is kept, because all steps of a run would take too much memory.
            rows.append(each.row)
    listed = [*rows, *left_out_rows(store.run_id, store.read_run() or {})]
    data = parquet_of(listed) if format_ == PARQUET else _text_of(store, format_, rows, listed).encode()
    if target == _STDOUT:
        typer.echo(data, nl=False)
    else:
        with write_errors(f"--output {target}", "choose a file you can write"):
            write_atomic(target, data)
        typer.echo(f"{target}: {counted(len(rows), 'attempt')} written")
    for each in left_out:
        typer.echo(f"left out {one_line(each.task_id)}: {one_line(each.reason)}", err=True)
    if left_out or not rows:
        raise typer.Exit(EXIT_LOST)


def _text_of(store: RunStore, format_: str, rows: list[AttemptRow], listed: list[AttemptRow]) -> str:
    if format_ == CSV:
        return csv_of(listed)
    if format_ == JSONL:
        return jsonl_of(listed)
    record = store.read_run() or {}
    asked = {(task.name, task.epoch) for task in tasks_of(store, record)}
    missing = asked - {(row.task_id, row.epoch) for row in rows}
    return markdown(rows, missing, left_out=excluded_by_scenario(record))


def _of_epoch(store: RunStore, epoch: int) -> list[TaskStore]:
    """The tasks of one epoch; a note says if there are others."""
    found = list(store.tasks())
    chosen = [task for task in found if task.epoch == epoch]
    if epoch > 1 and not chosen:
        raise ConfigError(f"run {store.run_id} has no epoch {epoch}", remedy="give a smaller --epoch")
    if len(chosen) < len(found):
        typer.echo(f"note: this is epoch {epoch} only; --epoch N writes another one", err=True)
    return chosen


def _check_package(folder: Path, settings: Settings) -> None:
    """Have the folder checked by the benchmark's own submission command."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder", remedy="give the folder of a submission")
    try:
        accepted = packaged_tasks(settings, folder)
    except EvaluatorError as error:
        typer.echo(f"{folder}: {error}", err=True)
        raise typer.Exit(EXIT_LOST) from None
    found = sorted(path.name for path in folder.iterdir() if path.is_dir())
    refused = [name for name in found if not name.isdecimal() or int(name) not in accepted]
    for name in refused:
        typer.echo(f"{one_line(name)}: refused by webarena-verified create-submission-pkg")
    typer.echo(f"{folder}: {len(found) - len(refused)} of {counted(len(found), 'submission')} valid")
    if refused:
        raise typer.Exit(EXIT_LOST)


def _report_problems(folder: Path, lengths: Mapping[str, int]) -> None:
    found = validate_folder(folder, lengths)
    for name, problems in found.items():
        for problem in problems:
            typer.echo(f"{one_line(name)}: {one_line(str(problem))}")
    bad = sum(any(not problem.note for problem in problems) for problems in found.values())
    typer.echo(f"{folder}: {len(found) - bad} of {counted(len(found), 'submission')} valid")
    if bad:
        raise typer.Exit(EXIT_LOST)
