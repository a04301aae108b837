"""`wabe run` and `agentbeats-run`: an assessment from a scenario file or a bundled task set."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from judge.commands import OutputDir
from judge.runner.boundary import run_interruptible
from judge.runner.run import RunOptions
from judge.runner.run import run as run_scenario
from judge.store import output_folder
from shared.errors import ConfigError
from shared.settings import Settings


def run(
    context: typer.Context,
    scenario: Annotated[
        str, typer.Argument(help="A scenario file, or a bundled task set such as demo.", metavar="SCENARIO.toml")
    ],
    show_logs: Annotated[bool, typer.Option("--show-logs", help="Show the agents' logs while they run.")] = False,
    serve_only: Annotated[bool, typer.Option("--serve-only", help="Start everything, send nothing.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the report in the browser at the end.")] = False,
    output: Annotated[Path | None, typer.Option(help="Also write the leaderboard submission here.")] = None,
    output_dir: OutputDir = None,
    resume: Annotated[
        str | None, typer.Option(metavar="[RUN_ID]", help="Resume a run; without an id, the newest unfinished one.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Run the first N tasks only.")] = None,
    level: Annotated[str | None, typer.Option(help="Run tasks of this level: easy, medium or hard.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Run this task only; may be given again.")] = None,
    max_parallel: Annotated[int | None, typer.Option(min=1, max=64, help="How many tasks run at once.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="gemini:NAME, openai:NAME, or offline: checks only.")] = None,
    participant_model: Annotated[str | None, typer.Option(help="Model for the participant.")] = None,
    shards: Annotated[
        str | None,
        typer.Option(
            metavar="auto|N",
            help="Run one shard of N; which one, an engine's variables say (Kubernetes, Slurm, WABE_SHARD).",
        ),
    ] = None,
) -> None:
    """Run an assessment: start the agents of a scenario, drive them, judge, write results, stop everything."""
    if level is not None and level not in ("easy", "medium", "hard"):
        raise ConfigError(f"--level {level[:40]!r} is not a level", remedy="easy, medium or hard")
    settings = Settings.from_environ()
    options = RunOptions(
        scenario=_scenario_file(scenario, settings),
        command=(*context.command_path.split(), scenario),
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
        shards=shards,
    )
    raise typer.Exit(run_interruptible(run_scenario(options, settings, Console())))


def _scenario_file(argument: str, settings: Settings) -> Path:
    """A file goes before a bundled task set of the same name."""
    path = Path(argument)
    bundled = settings.bundled_scenarios
    if path.is_file():
        return path
    if argument in bundled:
        return bundled[argument]
    # It looks like a path, so the message should be about that file.
    if path.suffix or len(path.parts) > 1 or path.exists():
        return path
    raise ConfigError(
        f"{argument!r} is neither a scenario file nor a bundled task set",
        remedy=f"give the path of a scenario TOML file, or one of: {', '.join(bundled) or 'none is installed'}",
    )
