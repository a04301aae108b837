"""`wabe view`: the report of a stored run, at the live page's addresses."""

import asyncio
import webbrowser
from typing import Annotated

import typer

from judge.commands import OutputDir
from judge.server.view import report_address, serve_run
from judge.store.layout import output_folder, resolve_run
from shared.a2a.connections import raise_descriptor_limit
from shared.a2a.serving import listen


def view(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help="A run id or a run's folder.")] = "latest",
    host: Annotated[str, typer.Option(help="Address to listen on; only this machine is answered.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free one.")] = 9009,
    output_dir: OutputDir = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Serve a stored run's report and task pages at the addresses of the live page, until Ctrl-C."""
    store = resolve_run(run, output_folder(output_dir))
    raise_descriptor_limit()

    def told(address: str) -> None:
        typer.echo(f"Run {store.run_id}: {address}\nReport: {report_address(address, store)}\nCtrl-C stops.")
        if open_:
            webbrowser.open(report_address(address, store))

    asyncio.run(serve_run(store, listen(host, port), told))
