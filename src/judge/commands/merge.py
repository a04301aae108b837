"""`wabe merge`: the shards of an assessment as one submission."""

import json
from pathlib import Path
from typing import Annotated

import typer

from judge.results.merge import merge as merge_submissions
from judge.results.submission import incomplete_note, read_submissions
from shared.errors import ConfigError
from shared.files import write_json


def merge(
    files: Annotated[list[Path], typer.Argument(help="Submission files (results.json).", metavar="FILE…")],
    output: Annotated[
        Path | None, typer.Option(help="Where to write the submission; printed when not given.", metavar="FILE")
    ] = None,
) -> None:
    """Merge shards of one assessment into one submission; all counts are recomputed from the tasks."""
    found = [(submission, str(path)) for path in files for submission in read_submissions(path)]
    merged = merge_submissions([submission for submission, _ in found], [name for _, name in found])
    if output is None:
        typer.echo(json.dumps(merged, indent=2, allow_nan=False))
        return
    try:
        write_json(output, merged)
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror or error}", remedy="choose another --output") from None
    detail = merged["results"][0]["detail"]
    note = incomplete_note(detail)
    typer.echo(
        f"{output}: {detail['total_tasks']} tasks of {len(files)} files, {detail['scored_tasks']} scored, "
        f"success rate {detail['success_rate']} %, of all tasks {detail['success_rate_of_all']} %{note and f', {note}'}"
    )
