"""`wabe verify`: checks that the files of a stored run are consistent."""

from pathlib import Path
from typing import Annotated

import typer

from judge.commands import RUN_HELP, Command, OutputDir, TasksFile
from judge.plugins.verification.signing import verify_signature
from judge.plugins.verification.verifying import verify_run
from judge.results.folders import resolve_store
from judge.runner.boundary import EXIT_LOST
from judge.store.layout import output_folder
from shared.text import counted


def verify(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)] = "latest",
    tasks: TasksFile = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also check its signature (wabe sign) with this public key.")
    ] = None,
    output_dir: OutputDir = None,
) -> None:
    """Report what does not match in a run. Recomputes checksums, digests, verdicts, counts and rates from its files.

    Verdicts of checks are recomputed from the recording; judge models' cannot be, and are counted in a note.
    Digests are recomputed from the screenshots, snapshots and steps, and each verdict is compared with the
    trajectory that it names. Digests alone reveal corruption and mixed-up files, but not changes by someone who
    rewrote the complete folder: a signature does, with `--key`.
    """
    store = resolve_store(run, output_folder(output_dir), tasks)
    signature = verify_signature(store, key) if key else None
    findings = verify_run(store)
    mismatches = (*(signature.mismatches if signature else ()), *findings.mismatches)
    for mismatch in mismatches:
        typer.echo(f"does not match: {mismatch}")
    if signature and signature.fingerprint:
        for name in signature.added:
            typer.echo(f"note: {name}: added after the run was signed")
        for name in signature.uncovered:
            typer.echo(f"note: {name}: not covered by the signature; sign the run again to cover it")
        typer.echo(f"note: the statement is signed with {signature.fingerprint}")
    for note in findings.notes:
        typer.echo(f"note: {note}")
    what = "Folder" if findings.is_foreign else "Run"
    if mismatches:
        typer.echo(f"{what} {store.run_id}: {counted(len(mismatches), 'mismatch', 'mismatches')}.")
        raise typer.Exit(EXIT_LOST)
    if findings.is_foreign:
        count_text = counted(findings.tasks, "trajectory", "trajectories")
        typer.echo(
            f"Folder {store.run_id}: {count_text} with readable screenshots, no contradiction in what could be checked."
        )
        return
    typer.echo(f"Run {store.run_id}: {counted(findings.tasks, 'task')}, checksums, counts and rates match.")


COMMAND = Command(verify, ("wabe verify", "wabe verify 20260101-120000-1a2b3c4d --key public.pem"))
