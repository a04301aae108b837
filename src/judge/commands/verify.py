"""`wabe verify`: checks that the files of a stored run are consistent."""

from typing import Annotated

import typer

from judge.commands import RUN_HELP, OutputDir, TasksFile
from judge.results.folders import resolve_store
from judge.results.verify import verify_run
from judge.runner.boundary import EXIT_LOST
from judge.store.layout import output_folder
from shared.text import counted


def verify(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)] = "latest",
    tasks: TasksFile = None,
    output_dir: OutputDir = None,
) -> None:
    """Report what does not match in a run. Recomputes checksums, digests, verdicts, counts and rates from its files.

    Verdicts of checks are recomputed from the recording; those of judge models cannot be, and are counted in a note.
    Digests are recomputed from the screenshots, snapshots and steps, and each verdict is compared with the
    trajectory that it names. Digests are not signed: they reveal corruption and mixed-up files, but not changes by
    someone who rewrote the complete folder.
    """
    store = resolve_store(run, output_folder(output_dir), tasks)
    findings = verify_run(store)
    for mismatch in findings.mismatches:
        typer.echo(f"does not match: {mismatch}")
    for note in findings.notes:
        typer.echo(f"note: {note}")
    what = "Folder" if findings.is_foreign else "Run"
    if findings.mismatches:
        typer.echo(f"{what} {store.run_id}: {counted(len(findings.mismatches), 'mismatch', 'mismatches')}.")
        raise typer.Exit(EXIT_LOST)
    if findings.is_foreign:
        read = counted(findings.tasks, "trajectory", "trajectories")
        typer.echo(
            f"Folder {store.run_id}: {read} with readable screenshots, no contradiction in what could be checked."
        )
        return
    typer.echo(f"Run {store.run_id}: {counted(findings.tasks, 'task')}, checksums, counts and rates match.")
