"""`wabe export`: writes a run in another benchmark's layout or as a table, and validates submission folders.

Some layouts are of tasks, not of attempts: for these it takes a scenario, or the one of a run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from judge.commands import RUN_HELP, Command, OutputDir, TasksFile
from judge.commands.run import scenario_file
from judge.plugins.export.films import FILM_FORMATS, write_films
from judge.plugins.export.folders import export_tasks, read_reference_lengths, write_tasks
from judge.results.folders import resolve_store
from judge.results.part import parts_of
from judge.results.rows import AttemptRow
from judge.results.run_record import excluded_by_scenario, tasks_of
from judge.results.tables import Unreadable, csv_of, jsonl_of, left_out_rows, markdown, parquet_of, table_of
from judge.runner.boundary import EXIT_LOST
from judge.store.layout import RunStore, TaskStore, output_folder, resolve_run
from judge.trajectory.formats import FolderCheck, FormatWriter, tasks_writers, writers
from shared.errors import ConfigError
from shared.fields import as_mapping, did_you_mean, printable
from shared.files import sha256_file, write_atomic, write_errors
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


def _known_formats() -> tuple[str, ...]:
    return (*writers(), *tasks_writers(), *_TABLES, *FILM_FORMATS)


def export(
    run: Annotated[
        str | None, typer.Argument(help=f"{RUN_HELP} A scenario for layouts of tasks.", metavar="RUN")
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help=f"Another benchmark's layout, a table, a film or tasks: {', '.join(_known_formats())}.",
            metavar="NAME",
        ),
    ] = "online-mind2web-v2",
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
    task: Annotated[
        list[str] | None, typer.Option(help="For films and tasks: only this one; may be repeated.", metavar="ID")
    ] = None,
    tasks: TasksFile = None,
    output_dir: OutputDir = None,
) -> None:
    """Write a run in another benchmark's layout, as a table or as films, or a scenario's tasks for others to play.

    --validate checks a submission folder.
    """
    if (run is None) == (validate is None):
        raise ConfigError("give either a RUN to export or --validate DIR", remedy="such as: wabe export latest")
    of_tasks = tasks_writers()
    if task and format_ not in (*FILM_FORMATS, *of_tasks):
        raise ConfigError(
            f"--task is for films and tasks: {', '.join((*FILM_FORMATS, *of_tasks))}",
            remedy="leave it out, or add --format webm",
        )
    if format_ in (*_TABLES, *of_tasks) and (validate or dataset or epoch > 1):
        raise ConfigError(
            "--validate, --dataset and --epoch are for folders of other benchmarks",
            remedy="leave them out; a table has all epochs" if format_ in _TABLES else "leave them out",
        )
    if output == _STDOUT and format_ not in (CSV, JSONL, MARKDOWN):
        raise ConfigError(f"--format {format_} is not for printing", remedy="give --output a file or folder")
    lengths = read_reference_lengths(dataset) if dataset is not None else {}
    settings = Settings.from_environ()
    if format_ not in (known := _known_formats()):
        raise ConfigError(f"--format: unknown format {printable(format_)}", remedy=did_you_mean(format_, known))
    if validate is not None:
        if format_ in FILM_FORMATS:
            raise ConfigError(f"--format {format_} has no --validate", remedy="leave --validate out")
        check = writers()[format_].check
        if check is None:
            raise ConfigError(f"--format {format_} has no --validate", remedy="leave --validate out")
        _report(validate, check(validate, lengths, settings))
        return
    if format_ in of_tasks:
        _export_tasks(run or "latest", format_, task or (), output, output_folder(output_dir, settings), settings)
        return
    store = resolve_store(run or "latest", output_folder(output_dir, settings), tasks)
    if format_ in _TABLES:
        _export_table(store, format_, output or store.derived / "export" / _TABLES[format_])
        return
    selection = _of_epoch(store, epoch)
    if film := next((each for each in FILM_FORMATS if each == format_), None):
        write_films(store, selection, film, task or (), output)
        return
    target = output or store.derived / "export" / (format_ if epoch == 1 else f"{format_}-epoch-{epoch}")
    writer = writers()[format_]
    _export_folder(selection, writer, target, store.read_run() or {}, lengths, settings)


def _export_folder(
    tasks: list[TaskStore],
    writer: FormatWriter,
    output: Path,
    run: Mapping[str, Any],
    lengths: Mapping[str, int],
    settings: Settings,
) -> None:
    """Write the run in another benchmark's layout."""
    target = output / writer.folder_in(run)
    results = list(export_tasks(tasks, target, lengths, writer=writer))
    left_out = [result for result in results if result.reason is not None]
    for result in left_out:
        typer.echo(f"left out {result.task_id}: {one_line(result.reason or '')}")
    exported_count = len(results) - len(left_out)
    typer.echo(f"{target}: {exported_count} of {counted(len(results), 'task')} written")
    if exported_count and writer.with_tasks:
        write_tasks(tasks, output / "tasks.json")
    if exported_count and writer.finish is not None:
        with write_errors(target, "choose another --output or free some space"):
            writer.finish(target, [result.folder for result in results if result.folder is not None], run)
    # Checked immediately, so that the user does not learn of mistakes from the benchmark's server.
    if exported_count and writer.check is not None:
        try:
            checked = writer.check(target, lengths, settings)
        except ConfigError as error:
            typer.echo(f"note: not checked by the benchmark's own command: {error}", err=True)
        else:
            _report(target, checked)
    if left_out or not results:
        raise typer.Exit(EXIT_LOST)


def _export_tasks(
    argument: str, format_: str, ids: Sequence[str], output: Path | None, output_dir: Path, settings: Settings
) -> None:
    """Write a scenario's tasks, for others to play."""
    scenario, folder = _scenario_of(argument, output_dir, settings)
    exported = tasks_writers()[format_].write(scenario, ids, target := output or folder / format_, settings)
    left_out = {task_id: reason for task_id, reason in exported.items() if reason is not None}
    for task_id, reason in left_out.items():
        typer.echo(f"left out {task_id}: {one_line(reason)}")
    typer.echo(f"{target}: {len(exported) - len(left_out)} of {counted(len(exported), 'task')} written")
    if left_out:
        raise typer.Exit(EXIT_LOST)


def _scenario_of(argument: str, output_dir: Path, settings: Settings) -> tuple[Path, Path]:
    """The scenario file that the argument names, or a run's, and where to write. Raises `ConfigError`."""
    if Path(argument).is_file() or argument in settings.bundled_scenarios or argument.endswith(".toml"):
        path = scenario_file(argument, settings.bundled_scenarios)
        return path, output_dir / "export" / (path.resolve().parent.name if path.stem == "scenario" else path.stem)
    store = resolve_run(argument, output_dir)
    recorded = as_mapping((store.read_run() or {}).get("scenario"))
    path = Path(str(recorded.get("path", "")))
    if not path.is_file() or sha256_file(path) != recorded.get("sha256"):
        raise ConfigError(
            f"run {store.run_id}: its scenario has been changed or removed since: {path}",
            remedy="give the scenario instead of the run",
        )
    return path, store.derived / "export"


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
    all_rows = [*rows, *left_out_rows(store.run_id, store.read_run() or {})]
    data = parquet_of(all_rows) if format_ == PARQUET else _text_of(store, format_, rows, all_rows).encode()
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
    selected = {(task.name, task.epoch) for task in tasks_of(store, record)}
    missing = selected - {(row.task_id, row.epoch) for row in rows}
    remarks = [part.remark() for part in parts_of(store)]
    return markdown(rows, missing, left_out=excluded_by_scenario(record), remarks=remarks)


def _of_epoch(store: RunStore, epoch: int) -> list[TaskStore]:
    """The tasks of one epoch; a note says if there are others."""
    tasks = list(store.tasks())
    selection = [task for task in tasks if task.epoch == epoch]
    if epoch > 1 and not selection:
        raise ConfigError(f"run {store.run_id} has no epoch {epoch}", remedy="give a smaller --epoch")
    if len(selection) < len(tasks):
        typer.echo(f"note: this is epoch {epoch} only; --epoch N writes another one", err=True)
    return selection


def _report(folder: Path, checked: FolderCheck) -> None:
    if checked.fault:
        typer.echo(f"{folder}: {checked.fault}", err=True)
        raise typer.Exit(EXIT_LOST)
    for problem in checked.problems:
        typer.echo(one_line(problem))
    typer.echo(f"{folder}: {checked.valid} of {counted(checked.total, 'submission')} valid")
    if checked.valid < checked.total:
        raise typer.Exit(EXIT_LOST)


COMMAND = Command(
    export,
    (
        "wabe export latest",
        "wabe export latest --format online-mind2web-v2 --output submission",
        "wabe export latest --format csv --output attempts.csv",
    ),
)
