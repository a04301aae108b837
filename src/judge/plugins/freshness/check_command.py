"""`wabe tasks check`: which tasks on live websites are stale."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from judge.commands import Command
from judge.plugins.freshness.playing import check_tasks
from judge.plugins.freshness.readings import (
    STATES,
    checks_path,
    exclusions_toml,
    freshness_of,
    read_checks,
    write_checks,
)
from judge.runner.boundary import EXIT_LOST
from judge.scenario.days import day_of
from judge.scenario.references import opened_references
from judge.scenario.toml import load_scenario
from shared.files import write_atomic, write_errors
from shared.settings import Settings
from shared.text import one_line


def check(
    file: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO.toml")],
    state: Annotated[
        Path | None, typer.Option(help="Where the last check is kept. [default: beside the scenario]", metavar="FILE")
    ] = None,
    propose: Annotated[
        Path | None, typer.Option(help="Write the proposed exclusions to this file as well.", metavar="FILE")
    ] = None,
) -> None:
    """Play every task's reference script, and report tasks that have changed, are blocked or gone.

    Proposes exclusions, and excludes nothing itself. Exit code 1 if a task is stale.
    """
    settings = Settings.from_environ()
    scenario = load_scenario(file)
    path = state or checks_path(file)
    last = read_checks(path)
    today = day_of(scenario.config)
    with opened_references(scenario) as (opened, _):
        outcomes = asyncio.run(check_tasks(opened, settings, today))
    rows = [freshness_of(each, last.get(each.task_id)) for each in outcomes]
    write_checks(path, last, outcomes)
    for each in rows:
        typer.echo(one_line(f"{each.state:<9} {each.task_id}{': ' if each.why else ''}{'; '.join(each.why)}", 1000))
    counts = Counter(each.state for each in rows)
    typer.echo(", ".join(f"{counts[name]} {name}" for name in STATES if counts[name]) or "no task was checked")
    proposed = exclusions_toml(rows)
    if proposed:
        typer.echo(f"\nProposed until someone has looked at them:\n\n{proposed}")
    if propose is not None:
        with write_errors(propose, "choose another --propose"):
            write_atomic(propose, proposed.encode())
    if any(each.state not in ("fresh", "unchecked") for each in rows):
        raise typer.Exit(EXIT_LOST)


COMMAND = Command(check)
