"""`wabe leaderboard`: leaderboard rows from submission files."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.commands import AsJson
from judge.results.leaderboard import query_names
from judge.results.leaderboard import rows as leaderboard_rows
from shared.text import one_line

_RECORDED_BY = "Recorded By"
_PIPED_WIDTH = 140


def leaderboard(
    files: Annotated[list[Path], typer.Argument(help="Submission files (results.json).", metavar="FILE…")],
    query: Annotated[
        str | None,
        typer.Option(help="overall, by_level, by_truth, cost_per_success, or an .sql file.", metavar="NAME|FILE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show leaderboard rows from submission files, by the SQL that a leaderboard page runs."""
    columns, rows = leaderboard_rows(files, query)
    if as_json:
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        typer.echo(json.dumps(objects, indent=2, allow_nan=False, default=str))
        return
    table = Table(title=f"Leaderboard: {query or query_names()[0]}", caption=f"{len(rows)} rows")
    # Room for a column that tells nothing new is better used by the others.
    usual = [
        column == _RECORDED_BY and {row[number] for row in rows} <= {"judge"} for number, column in enumerate(columns)
    ]
    for number, column in enumerate(columns):
        if usual[number]:
            continue
        values = [row[number] for row in rows if row[number] is not None]
        # Not by `isinstance`, because a bool is an int.
        is_number = bool(values) and all(type(value) in (int, float) for value in values)
        table.add_column(Text(one_line(column)), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value, is_usual in zip(row, usual, strict=True) if not is_usual))
    console = Console()
    # Rich assumes 80 columns for a pipe, which would cut names.
    (console if console.is_terminal else Console(width=_PIPED_WIDTH)).print(table)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else one_line(str(value))
