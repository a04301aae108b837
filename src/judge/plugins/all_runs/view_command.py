"""`wabe view`: all local runs on one page, or the report of one of them at the live page's addresses."""

import asyncio
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from judge.commands import Command, OpenPage, OutputDir, OwnHost, OwnPort
from judge.plugins.all_runs.page import serve_runs
from judge.server.view import report_address, serve_run
from judge.store.layout import output_folder, resolve_run
from shared.a2a.connections import raise_descriptor_limit
from shared.a2a.serving import listen
from shared.errors import ConfigError
from shared.text import counted


def view(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="A run id, a run's folder or `latest`. Without it, all runs.")
    ] = "",
    submissions: Annotated[
        list[Path] | None,
        typer.Option(help="Also list the submission files in this folder; repeatable.", metavar="DIR"),
    ] = None,
    host: OwnHost = "127.0.0.1",
    port: OwnPort = 9009,
    output_dir: OutputDir = None,
    open_: OpenPage = False,
) -> None:
    """Serve all local runs on one page, or a stored run at the addresses of the live page, until Ctrl-C."""
    folder = output_folder(output_dir)
    raise_descriptor_limit()
    if not run:
        for each in submissions or ():
            if not each.is_dir():
                raise ConfigError(f"--submissions {each}: not a folder", remedy="name a folder with results.json files")

        def listed(address: str, count: int) -> None:
            typer.echo(f"{counted(count, 'run')} in {folder}: {address}\nCtrl-C stops.")
            if open_:
                webbrowser.open(address)

        asyncio.run(serve_runs(folder, listen(host, port), listed, folders=submissions or (), admitted_host=host))
        return
    if submissions:
        raise ConfigError("--submissions is for the page of all runs", remedy="leave RUN out")
    store = resolve_run(run, folder)
    # At once, and not when somebody opens the page.
    store.require_key()

    def on_ready(address: str) -> None:
        typer.echo(f"Run {store.run_id}: {address}\nReport: {report_address(address, store)}\nCtrl-C stops.")
        if open_:
            webbrowser.open(report_address(address, store))

    asyncio.run(serve_run(store, listen(host, port), on_ready))


COMMAND = Command(
    view,
    ("wabe view", "wabe view --submissions leaderboard --open", "wabe view 20260101-120000-1a2b3c4d --port 0 --open"),
)
