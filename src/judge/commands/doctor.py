"""`wabe doctor`."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from judge.runner.doctor import check_agent, check_browser, examine
from judge.store import output_folder
from shared.settings import Settings

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "missing": ("MISSING", "bold red")}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def doctor(
        browser: Annotated[bool, typer.Option("--browser", help="Check the browser only.")] = False,
        quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing, only exit with 0 or 1.")] = False,
        agent: Annotated[
            str | None, typer.Option(help="Check only the agent card at this address.", metavar="URL")
        ] = None,
        wait: Annotated[float, typer.Option(help="With --agent: keep asking for this many seconds.", min=0)] = 0.0,
        output_dir: Annotated[Path | None, typer.Option(help="Where results would go.")] = None,
    ) -> None:
        """Say what is missing to run (browser, keys, ports, disk) and how to get it."""
        settings = Settings.from_environ()
        if agent is not None:
            findings = [asyncio.run(check_agent(agent, wait))]
        else:
            folder = output_folder(output_dir, settings)
            findings = [check_browser(settings)] if browser else examine(settings, folder)
        if not quiet:
            console = Console()
            for finding in findings:
                mark, style = _MARKS[finding.state]
                line = Text.assemble((f"{mark:>8}  ", style), (f"{finding.subject:<12}  ", "bold"), finding.text)
                console.print(line, soft_wrap=True)
        if any(finding.state == "missing" for finding in findings):
            raise typer.Exit(1)
