"""`wabe leaderboard`: leaderboard rows from submission files."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from judge.commands import AsJson, Command, wide_console
from judge.commands.run import scenario_file
from judge.plugins.leaderboard.board import Present, make_board
from judge.plugins.leaderboard.ranking import query_names, read_usable, task_set_of
from judge.plugins.leaderboard.ranking import rows as leaderboard_rows
from judge.results.signatures import signer_of
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.plugins import plugins
from shared.settings import Settings
from shared.text import counted, one_line

_DIGEST = re.compile(r"[0-9a-f]{8}")
_TASK_SET = "Task Set"
_EXCLUDED = "Excluded"
# Shown as columns only if rows differ.
_SETUP = frozenset(
    {
        "Recorded By",
        "Name",
        "Agent",
        "Model",
        "Revision",
        "Scenario",
        "Browser",
        "Settle",
        "Actions",
        "Attempts",
        "Corrected by Labels",
        "Labels",
        "Lower Bound",
        "Upper Bound",
    }
    | {_TASK_SET, _EXCLUDED}
)


def leaderboard(
    files: Annotated[list[Path], typer.Argument(help="Submission files (results.json).", metavar="FILE…")],
    query: Annotated[
        str | None,
        typer.Option(
            help="overall, by_level, by_truth, cost_per_success, safety, or an .sql file.", metavar="NAME|FILE"
        ),
    ] = None,
    as_json: AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a static page with its data as CSV and JSON to this folder.", metavar="DIR"),
    ] = None,
    present: Annotated[
        list[str] | None,
        typer.Option(
            help="On the page: a present task set, by its digest or its scenario. Repeat for several.",
            metavar="DIGEST|SCENARIO.toml",
        ),
    ] = None,
) -> None:
    """Show leaderboard rows from submission files. The SQL is the leaderboard page's."""
    if html is not None:
        if query is not None or as_json:
            raise ConfigError("--html does not go with --query and --json", remedy="its data has CSV and JSON")
        _write_page(files, html, present or ())
        return
    if present:
        raise ConfigError("--present is about the page of --html", remedy="add --html DIR")
    documents, left_out = read_usable(files)
    _tell_left_out(left_out)
    files = [path for path, _ in documents]
    columns, rows = leaderboard_rows(files, query)
    if as_json:
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        typer.echo(json.dumps(objects, indent=2, allow_nan=False, default=str))
        return
    shared = _shared(columns, rows)
    caption = [
        counted(len(rows), "row"),
        *(f"{columns[number]} {_cell(value)}" for number, value in shared.items() if value not in (None, "judge")),
    ]
    table = Table(title=f"Leaderboard: {query or query_names()[0]}", caption=Text(", ".join(caption)))
    for number, column in enumerate(columns):
        if number in shared:
            continue
        values = [row[number] for row in rows if row[number] is not None]
        # Not by `isinstance`, because a bool is an int.
        is_number = bool(values) and all(type(value) in (int, float) for value in values)
        table.add_column(Text(one_line(column)), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for number, value in enumerate(row) if number not in shared))
    wide_console().print(table)
    for path in files:
        if signer := signer_of(path):
            typer.echo(f"{path}: signed with {signer}")
    sets = {row[columns.index(_TASK_SET)] for row in rows} if _TASK_SET in columns else set()
    if len(sets) > 1:
        typer.echo(f"These are {len(sets)} different task sets: compare rows with the same {_TASK_SET} only.")
    exclusions = {row[columns.index(_EXCLUDED)] for row in rows} if _EXCLUDED in columns else set()
    if len(exclusions) > 1:
        typer.echo(f"A row with exclusions is comparable only with rows of the same {_TASK_SET} and {_EXCLUDED}.")


def _write_page(files: list[Path], folder: Path, present: Iterable[str]) -> None:
    page, left_out = make_board(files, folder, [_present(each) for each in present])
    _tell_left_out(left_out)
    typer.echo(page)


def _tell_left_out(left_out: Mapping[Path, str]) -> None:
    for path, why in left_out.items():
        typer.echo(f"left out: {path}: {why}", err=True)


def _present(argument: str) -> Present:
    if _DIGEST.fullmatch(argument):
        return Present(argument)
    settings = Settings.from_environ()
    path = scenario_file(argument, settings.bundled_scenarios)
    scenario = load_scenario(path)
    name = scenario.config.scenario
    tasks = scenario.tasks
    if not tasks and name is not None:
        tasks = load_scenario(scenario_file(name, settings.bundled_scenarios)).tasks
    found = (each.measured(path) for each in plugins().values() if each.measured)
    return Present(task_set_of(tasks), scenario.shown_name, tuple(filter(None, found)))


def _shared(columns: list[str], rows: list[tuple[Any, ...]]) -> dict[int, Any]:
    """The configuration columns with the same value in all rows, which are not shown as columns to save space."""
    values = {number: {row[number] for row in rows} for number, column in enumerate(columns) if column in _SETUP}
    return {number: next(iter(group_values)) for number, group_values in values.items() if len(group_values) == 1}


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else one_line(str(value))


COMMAND = Command(
    leaderboard, ("wabe leaderboard submissions/*.json", "wabe leaderboard results.json --query by_level --json")
)
