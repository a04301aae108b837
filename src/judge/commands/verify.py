"""`wabe verify`: whether a stored run still adds up."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from judge.results.verify import Findings, verify_run
from judge.runner.boundary import EXIT_LOST
from judge.store import RunStore, output_folder, resolve_run
from shared.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def verify(
        run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, or `latest`.")] = "latest",
        output_dir: Annotated[Path | None, typer.Option(help="Where runs are kept.")] = None,
    ) -> None:
        """Recompute a run's checksums, digests, counts and rates from its files, and report what does not match.

        Digests are recomputed from the screenshots, snapshots and steps, and each verdict is compared with the
        trajectory that it names. They carry no key: they find corruption and files that were mixed up, and cannot find
        what an owner of the folder changed who rewrote all of it.
        """
        store = resolve_run(run, output_folder(output_dir, Settings.from_environ()))
        findings = verify_run(store)
        _tell(store, findings)
        if findings.mismatches:
            raise typer.Exit(EXIT_LOST)


def _tell(store: RunStore, findings: Findings) -> None:
    console = Console()

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    for mismatch in findings.mismatches:
        say(f"does not match: {mismatch}")
    for note in findings.notes:
        say(f"note: {note}")
    if findings.mismatches:
        say(f"Run {store.run_id}: {len(findings.mismatches)} of what was made again do not match.")
    else:
        say(f"Run {store.run_id}: {findings.tasks} tasks, checksums, counts and rates match.")
