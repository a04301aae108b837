"""`wabe merge`: merges the shards of an assessment into one submission, or into one run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from judge.commands import Command, OutputDir
from judge.plugins.shards.merging_runs import merge_shards
from judge.plugins.shards.merging_submissions import merge as merge_submissions
from judge.results.metering import PARTICIPANT_USAGE
from judge.results.submission import incomplete_note, read_submissions
from judge.runner.uploads import fetch_shards
from judge.store.layout import RUN_ID, RunStore, find_run, output_folder
from shared.files import write_errors, write_json
from shared.settings import Settings
from shared.text import counted


def merge(
    files: Annotated[
        list[str], typer.Argument(help="Submission files (results.json), or one run with shards.", metavar="FILE…|RUN")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            help="Where to write the submission. Default: a run's folder, or standard output for files.", metavar="FILE"
        ),
    ] = None,
    output_dir: OutputDir = None,
) -> None:
    """Merge the shards of one assessment. Submission files become one, with counts recomputed from the tasks; shards of
    a run become a normal run."""
    paths = [Path(name) for name in files]
    target = output
    if len(files) == 1 and not paths[0].is_file() and paths[0].suffix != ".json":
        settings = Settings.from_environ()
        folder = output_folder(output_dir, settings)
        if settings.object_store and RUN_ID.fullmatch(files[0]):
            fetch_shards(settings.object_store, RunStore(folder, files[0]))
        run = find_run(files[0], folder).without_key()
        merged, what = merge_shards(run), counted(len(run.shards()), "shard")
        target = run.folder
    else:
        submissions = [(submission, str(path)) for path in paths for submission in read_submissions(path)]
        merged = merge_submissions([submission for submission, _ in submissions], [name for _, name in submissions])
        what = counted(len(files), "file")
        _tell_unmetered([submission for submission, _ in submissions], merged)
    if output is not None:
        with write_errors(output, "choose another --output"):
            write_json(output, merged)
    if target is None:
        typer.echo(json.dumps(merged, indent=2, allow_nan=False))
        return
    detail = merged["results"][0]["detail"]
    note = incomplete_note(detail)
    typer.echo(
        f"{target}: {counted(detail['total_tasks'], 'task')} of {what}, {detail['scored_tasks']} scored, "
        f"success rate {detail['success_rate']} %, of all tasks {detail['success_rate_of_all']} %{note and f', {note}'}"
    )


def _tell_unmetered(parts: Sequence[Mapping[str, Any]], merged: Mapping[str, Any]) -> None:
    """Say so if the usage that some of the files have is not in the merged one."""
    details = [result["detail"] for part in parts for result in part["results"]]
    metered = sum(PARTICIPANT_USAGE in detail for detail in details)
    if metered and PARTICIPANT_USAGE not in merged["results"][0]["detail"]:
        which = f"only {metered} of {counted(len(details), 'file')} says what the participant's model used"
        typer.echo(f"note: {which}, so the merged file does not", err=True)


COMMAND = Command(merge, ("wabe merge shard-*.json --output results.json",))
