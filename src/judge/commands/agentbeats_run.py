"""The command line of `agentbeats-run`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from judge.runner.boundary import run_command, run_interruptible
from judge.runner.run import RunOptions, run
from judge.store import output_folder
from shared.errors import ConfigError
from shared.settings import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def agentbeats_run(
    scenario: Annotated[Path, typer.Argument(help="The scenario file (TOML).", metavar="SCENARIO.toml")],
    show_logs: Annotated[bool, typer.Option("--show-logs", help="Show the agents' logs while they run.")] = False,
    serve_only: Annotated[bool, typer.Option("--serve-only", help="Start everything, send nothing.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the report in the browser at the end.")] = False,
    output: Annotated[Path | None, typer.Option(help="Also write the leaderboard submission here.")] = None,
    output_dir: Annotated[Path | None, typer.Option(help="Where runs are kept.")] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="[RUN_ID]", help="Go on with a run; without an id, the newest.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Run the first N tasks only.")] = None,
    level: Annotated[str | None, typer.Option(help="Run tasks of this level: easy, medium or hard.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Run this task only; may be given again.")] = None,
    max_parallel: Annotated[int | None, typer.Option(min=1, max=64, help="How many tasks run at once.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="gemini:NAME, openai:NAME, or offline: checks only.")] = None,
    participant_model: Annotated[str | None, typer.Option(help="Model for the participant.")] = None,
) -> None:
    """Run an assessment: start the agents of a scenario, drive them, judge, write results, stop everything."""
    if level is not None and level not in ("easy", "medium", "hard"):
        raise ConfigError(f"--level {level[:40]!r} is not a level", remedy="easy, medium or hard")
    settings = Settings.from_environ()
    options = RunOptions(
        scenario=scenario,
        output_dir=output_folder(output_dir, settings),
        output=output,
        show_logs=show_logs,
        serve_only=serve_only,
        open_report=open_,
        resume=resume,
        limit=limit,
        level=level,
        task_ids=tuple(task or ()),
        max_parallel=max_parallel,
        judge_model=judge_model,
        participant_model=participant_model,
    )
    raise typer.Exit(run_interruptible(run(options, settings, Console())))


def expand_resume(arguments: list[str]) -> list[str]:
    """`--resume` may stand without a run id; the option parser wants one, so `latest` is put in."""
    expanded: list[str] = []
    for position, argument in enumerate(arguments):
        expanded.append(argument)
        following = arguments[position + 1] if position + 1 < len(arguments) else "--"
        if argument == "--resume" and (following.startswith("-") or following.endswith(".toml")):
            expanded.append("latest")
    return expanded


def main() -> None:
    """Entry point."""
    run_command(app, expand_resume(sys.argv[1:]), name="agentbeats-run")
