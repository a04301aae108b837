"""`wabe report`: the HTML report of a run, or of several side by side."""

from pathlib import Path
from typing import Annotated

import typer

from judge.commands import OutputDir, TasksFile
from judge.report.build import make_report, open_page
from judge.report.public import make_public_report
from judge.results.folders import FolderStore, resolve_store
from judge.store.layout import output_folder
from shared.errors import ConfigError
from shared.settings import Settings


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN [RUN_B …]", help="Run ids, `latest`, or folders.")],
    output: Annotated[Path | None, typer.Option(metavar="PATH", help="Where to write the report.")] = None,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="One HTML file with all pages and scaled images.")
    ] = False,
    public: Annotated[bool, typer.Option("--public", help="Only ids, verdicts and counts.")] = False,
    tasks: TasksFile = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="In a folder of another tool, count this judge's verdicts from now on: its id, method or model.",
            metavar="NAME",
        ),
    ] = None,
    output_dir: OutputDir = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Write the HTML report of a run, or of several side by side. It is one self-contained folder, or a single file.

    --public writes a page for everybody: which tasks of a run succeeded, without what they say or what happened.
    """
    settings = Settings.from_environ()
    folder = output_folder(output_dir)
    stores = [resolve_store(run, folder, tasks) for run in runs]
    if len({store.folder.resolve() for store in stores}) < len(stores):
        raise ConfigError("a run is named twice", remedy="name different runs")
    for store in stores if judge is not None else ():
        if not isinstance(store, FolderStore):
            raise ConfigError("--judge is for folders of other tools: a run's own judge counts", remedy="leave it out")
        store.choose_judge(judge or "")
    if public:
        if len(stores) > 1 or single_file:
            raise ConfigError("--public is for the folder of one run", remedy="give one RUN, without --single-file")
        page = make_public_report(stores[0], output)
    else:
        page = make_report(stores, output, single_file=single_file, contents=not settings.is_ci, parallel=True)
    typer.echo(f"Report: {page}")
    if open_:
        open_page(page)
