"""`wabe label`: a local page on which people label attempts."""

import asyncio
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from starlette.applications import Starlette

from judge.commands import RUN_HELP, Command, OpenPage, OutputDir, OwnHost, OwnPort, TasksFile
from judge.plugins.labels.label_files import DEFAULT_LABELLER
from judge.plugins.labels.label_plan import MAX_SEED
from judge.plugins.labels.labelling import Labelling, begin, end, import_labels
from judge.plugins.labels.page import label_routes
from judge.results.folders import resolve_store
from judge.store.layout import RunStore, output_folder
from shared.a2a.connections import raise_descriptor_limit
from shared.a2a.serving import address_of, listen, serve_app
from shared.errors import ConfigError
from shared.text import counted


def label(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help=RUN_HELP)],
    labels: Annotated[
        int | None,
        typer.Option(help="How many attempts to draw in all, by verdict. Default: go on, or all.", min=1, metavar="N"),
    ] = None,
    as_: Annotated[str, typer.Option("--as", help="Who labels: names the file.", metavar="NAME")] = DEFAULT_LABELLER,
    seed: Annotated[
        int | None, typer.Option(help="The seed of the draw. Default: a random one.", min=0, max=MAX_SEED)
    ] = None,
    unblind: Annotated[bool, typer.Option("--unblind", help="Also show verdicts, runs and agents.")] = False,
    conflicts: Annotated[
        bool, typer.Option("--conflicts", help="Only attempts on which labels differ, to adjudicate them.")
    ] = False,
    import_: Annotated[
        Path | None,
        typer.Option("--import", help="Take the labels of a CSV or JSON file instead, as not blind.", metavar="FILE"),
    ] = None,
    label_column: Annotated[str, typer.Option(help="The labels' column there, if its name is not human.")] = "human",
    tasks: TasksFile = None,
    host: OwnHost = "127.0.0.1",
    port: OwnPort = 9011,
    output_dir: OutputDir = None,
    open_: OpenPage = False,
) -> None:
    """Serve a page on which a person labels attempts by keyboard, until Ctrl-C. Labels stand beside each run.

    Blind: neither verdicts nor agents are shown, and the attempts of several runs are mixed. What is labelled is a
    random sample of each verdict; from 20 labels on, reports and results have a corrected success rate.
    """
    folder = output_folder(output_dir)
    stores = [resolve_store(run, folder, tasks) for run in runs]
    if import_ is not None:
        if len(stores) > 1 or conflicts or labels is not None:
            raise ConfigError("--import takes one run and no other labels", remedy="wabe label RUN --import FILE")
        count, notes = import_labels(stores[0], as_, import_, label_column)
        for note in notes:
            typer.echo(f"note: {note}", err=True)
        typer.echo(f"{counted(count, 'label')} of {as_} imported.")
        _end(stores)
        return
    if conflicts and labels is not None:
        raise ConfigError("--conflicts shows what was labelled already", remedy="leave --labels out")
    raise_descriptor_limit()
    session = begin(stores, as_, labels=labels, seed=seed, is_blind=not unblind, conflicts=conflicts)
    for note in session.notes:
        typer.echo(f"note: {note}", err=True)
    # Labels of a killed session.
    _end(stores, quietly=True)
    try:
        asyncio.run(_serve(session, host, port, open_=open_))
    finally:
        _end(stores)


async def _serve(session: Labelling, host: str, port: int, *, open_: bool) -> None:
    sock = listen(host, port)
    address = address_of(*sock.getsockname()[:2])
    done = f"{session.labelled} of {counted(len(session.places), 'attempt')} labelled by {session.labeller}"
    typer.echo(f"{done}: {address}\nCtrl-C stops.")
    if open_:
        webbrowser.open(address)
    await serve_app(Starlette(routes=label_routes(session, host=host)), sock)


def _end(stores: list[RunStore], *, quietly: bool = False) -> None:
    for line in end(stores):
        if not quietly:
            typer.echo(line)


COMMAND = Command(
    label,
    (
        "wabe label latest --labels 40 --as anna --open",
        "wabe label 20260101-120000-1a2b3c4d 20260102-120000-5e6f7a8b --labels 80",
        "wabe label latest --conflicts --as carla",
    ),
)
