"""`wabe leaderboard` and `wabe merge`: what is done with submission files."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.results.leaderboard import query_names
from judge.results.leaderboard import rows as leaderboard_rows
from judge.results.merge import merge as merge_submissions
from judge.results.submission import incomplete_note, read_submissions
from shared.errors import ConfigError
from shared.files import write_json
from shared.text import one_line

Files = Annotated[list[Path], typer.Argument(help="Submission files (results.json).", metavar="FILE…")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command()(leaderboard)
    app.command()(merge)


def leaderboard(
    files: Files,
    query: Annotated[
        str | None, typer.Option(help="overall, by_level, cost_per_success, or an .sql file.", metavar="NAME|FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Show leaderboard rows from submission files, by the SQL that a leaderboard page runs."""
    columns, rows = leaderboard_rows(files, query)
    if as_json:
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        typer.echo(json.dumps(objects, indent=2, allow_nan=False, default=str))
        return
    table = Table(title=f"Leaderboard: {query or query_names()[0]}", caption=f"{len(rows)} rows")
    for number, column in enumerate(columns):
        values = [row[number] for row in rows if row[number] is not None]
        is_number = bool(values) and all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in values
        )
        table.add_column(Text(one_line(column)), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    Console().print(table)


def merge(
    files: Files,
    output: Annotated[
        Path | None, typer.Option(help="Where to write the submission; printed when not given.", metavar="FILE")
    ] = None,
) -> None:
    """Merge shards of one assessment into one submission; all counts are made again from the tasks."""
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


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else one_line(str(value))
