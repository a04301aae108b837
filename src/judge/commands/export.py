"""`wabe export`: a run as a submission folder of another benchmark, and the check of such folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from judge.store import output_folder, resolve_run
from judge.trajectory.export import FORMATS, Exported, export_tasks, read_reference_lengths, validate_folder
from shared.errors import ConfigError
from shared.settings import Settings
from shared.text import one_line


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(export)


def export(
    run: Annotated[str | None, typer.Argument(help="A run id, a run's folder, or latest.", metavar="RUN")] = None,
    format_: Annotated[str, typer.Option("--format", help=f"One of: {', '.join(FORMATS)}.")] = FORMATS[0],
    output: Annotated[Path | None, typer.Option(help="Where to write; default: export/ in the run's folder.")] = None,
    validate: Annotated[
        Path | None, typer.Option(help="Check this submission folder instead of writing one.", metavar="DIR")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="Dataset file (JSON) with the human reference lengths.", metavar="FILE")
    ] = None,
    output_dir: Annotated[Path | None, typer.Option(help="Where runs are kept.")] = None,
) -> None:
    """Write a run as a submission folder in the schema of Online-Mind2Web, or check such a folder."""
    if format_ not in FORMATS:
        raise ConfigError(f"--format {one_line(format_)[:40]!r} is not known", remedy=f"one of: {', '.join(FORMATS)}")
    if (run is None) == (validate is None):
        raise ConfigError("give either a RUN to export or --validate DIR", remedy="such as: wabe export latest")
    lengths = read_reference_lengths(dataset) if dataset is not None else {}
    if validate is not None:
        _report_problems(validate, lengths)
    else:
        runs = output_folder(output_dir, Settings.from_environ())
        _export_run(run or "latest", runs, output, lengths)


def _export_run(run: str, runs: Path, output: Path | None, lengths: Mapping[str, int]) -> None:
    store = resolve_run(run, runs)
    target = output or store.folder / "export" / FORMATS[0]
    results: list[Exported] = list(export_tasks((task.folder for task in store.tasks()), target, lengths))
    for result in results:
        if result.reason is not None:
            typer.echo(f"left out {result.task_id}: {one_line(result.reason)}")
    written = sum(result.folder is not None for result in results)
    typer.echo(f"{target}: {written} of {len(results)} tasks written")
    if written:
        _report_problems(target, lengths)
    if written < len(results) or not results:
        raise typer.Exit(1)


def _report_problems(folder: Path, lengths: Mapping[str, int]) -> None:
    found = validate_folder(folder, lengths)
    for name, problems in found.items():
        for problem in problems:
            typer.echo(f"{one_line(name)}: {one_line(str(problem))}")
    bad = sum(any(not problem.note for problem in problems) for problems in found.values())
    typer.echo(f"{folder}: {len(found) - bad} of {len(found)} submissions are valid")
    if bad:
        raise typer.Exit(1)
