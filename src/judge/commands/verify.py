"""`wabe verify`: whether the files of a stored run are consistent."""

from typing import Annotated

import typer

from judge.commands import OutputDir
from judge.files import read_json
from judge.results.run_record import judge_id_of
from judge.results.verify import StoredRun, read_task, verify_run
from judge.runner.boundary import EXIT_LOST
from judge.store import RunStore, output_folder, resolve_run
from shared.errors import ConfigError
from shared.settings import Settings


def verify(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, or `latest`.")] = "latest",
    output_dir: OutputDir = None,
) -> None:
    """Recompute a run's checksums, digests, counts and rates from its files, and report what does not match.

    Digests are recomputed from the screenshots, snapshots and steps, and each verdict is compared with the
    trajectory that it names. They carry no key: they reveal corruption and mixed-up files, but not changes by someone
    who rewrote the whole folder.
    """
    store = resolve_run(run, output_folder(output_dir, Settings.from_environ()))
    findings = verify_run(load_run(store))
    for mismatch in findings.mismatches:
        typer.echo(f"does not match: {mismatch}")
    for note in findings.notes:
        typer.echo(f"note: {note}")
    if findings.mismatches:
        typer.echo(f"Run {store.run_id}: {len(findings.mismatches)} recomputed values do not match.")
        raise typer.Exit(EXIT_LOST)
    typer.echo(f"Run {store.run_id}: {findings.tasks} tasks, checksums, counts and rates match.")


def load_run(store: RunStore) -> StoredRun:
    """Everything of a run that is verified. Raises `ConfigError` when there is no `run.json`."""
    record = store.read_run()
    if record is None:
        raise ConfigError(f"{store.folder / 'run.json'}: missing or not JSON", remedy="name the folder of a run")
    listed = record.get("task_ids")
    # The record may be damaged too, which is what is being examined.
    ids = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    try:
        submission = read_json(store.folder / "results.json")
    except (OSError, ValueError):
        submission = None
    return StoredRun(
        run=record,
        submission=submission if isinstance(submission, dict) else None,
        # A generator: a large task takes a few hundred megabytes while it is verified.
        tasks=(read_task(store.task(name), judge_id_of(record, name)) for name in dict.fromkeys(ids)),
        strays=tuple(task.folder.name for task in store.tasks() if task.folder.name not in ids),
    )
