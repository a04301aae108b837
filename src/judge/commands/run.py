"""`wabe run` and `agentbeats-run`: an assessment from a scenario file or a bundled task set."""

# Only imports that the help needs; the rest takes a second.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judge.commands import OutputDir
from judge.runner.boundary import run_interruptible
from shared.errors import ConfigError
from shared.llm.providers import model_forms

if TYPE_CHECKING:
    from shared.settings import Settings


def _bundled() -> list[str]:
    """The bundled task sets, for shell completion."""
    from shared.settings import Settings

    return list(Settings.from_environ().bundled_scenarios)


def run(
    context: typer.Context,
    scenario: Annotated[
        str,
        typer.Argument(
            help="A scenario file, or a bundled task set such as demo.",
            metavar="SCENARIO.toml",
            autocompletion=lambda incomplete: [name for name in _bundled() if name.startswith(incomplete)],
        ),
    ],
    show_logs: Annotated[bool, typer.Option("--show-logs", help="Show the agents' logs while they run.")] = False,
    serve_only: Annotated[bool, typer.Option("--serve-only", help="Start everything but send no request.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the report in the browser at the end.")] = False,
    output: Annotated[Path | None, typer.Option(help="Also write the leaderboard submission here.")] = None,
    output_dir: OutputDir = None,
    resume: Annotated[
        str | None, typer.Option(metavar="[RUN_ID]", help="Resume a run; without an id, the newest unfinished one.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Run the first N tasks only.")] = None,
    level: Annotated[
        Literal["easy", "medium", "hard"] | None, typer.Option(help="Run tasks of this level only.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Run only this task; repeatable.")] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID=REASON", help="Do not play this task, but count it in the rate of all tasks; repeatable."
        ),
    ] = None,
    max_parallel: Annotated[int | None, typer.Option(min=1, max=64, help="How many tasks run at once.")] = None,
    judge_model: Annotated[str | None, typer.Option(help=f"{model_forms()}, or offline: checks only.")] = None,
    participant_model: Annotated[str | None, typer.Option(help="Model for the participant.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Your name for the run, for reports, lists and leaderboard rows.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, max=100, help="Run every task N times.", metavar="N")] = None,
    display: Annotated[
        Literal["full", "plain", "json", "none"] | None,
        typer.Option(
            help="A live table; a line per task; a JSON line per event; or nothing. [default: full, piped: plain]"
        ),
    ] = None,
    fail_under: Annotated[
        float | None,
        typer.Option(metavar="PERCENT", help="Exit with 1 if the success rate of all tasks is below this."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Exit with 1 if a task that RUN, or a results.json, solved is now lost."),
    ] = None,
    baseline_p: Annotated[
        float | None,
        typer.Option(metavar="P", help="With --baseline: only if the paired test's p-value is at most this."),
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Then play the tasks at random and by doing nothing, for comparison."),
    ] = False,
    linger: Annotated[
        bool, typer.Option("--linger", help="Keep the live page up after the run, with the report, until Ctrl-C.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the results as JUnit XML.")] = None,
    archive: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Play on recorded sites: this archive answers instead of the network."),
    ] = None,
    attacks: Annotated[
        Literal["off", "only", "both"] | None,
        typer.Option(help="Play tasks clean, under the attacks that they declare, or both, as pairs."),
    ] = None,
    meter: Annotated[
        bool, typer.Option("--meter", help="Count the tokens and cost of the participant's model calls, with a proxy.")
    ] = False,
    shards: Annotated[
        str | None,
        typer.Option(
            metavar="auto|N",
            help="Run one shard of N: the one that Kubernetes, Slurm or WABE_SHARD names.",
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="ray: play all of --shards N on Ray, and merge them.")
    ] = "local",
) -> None:
    """Run an assessment. Starts the agents of a scenario, drives them, judges, writes results, stops everything."""
    from rich.console import Console

    console = Console(quiet=display in ("json", "none"))
    # Importing the rest takes a second, several on a busy machine.
    with console.status("Loading"):
        from judge.runner.plan import ENGINES, RunOptions
        from judge.store.layout import output_folder
        from shared.files import require_writable, write_errors
        from shared.settings import Settings
        from shared.text import one_line

    if fail_under is not None and not 0 <= fail_under <= 100:
        raise ConfigError(f"--fail-under {fail_under:g} is not a percentage", remedy="give 0 to 100")
    if baseline_p is not None and (baseline is None or not 0 < baseline_p <= 1):
        remedy = "give a number above 0, at most 1, together with --baseline RUN"
        raise ConfigError(f"--baseline-p {baseline_p:g} is not usable", remedy=remedy)
    for option, path in (("--output", output), ("--junit", junit)):
        if path is not None:
            with write_errors(f"{option} {path}", "choose a file you can write"):
                require_writable(path)
    settings = Settings.from_environ()
    options = RunOptions(
        scenario=scenario_file(scenario, settings),
        command=(*context.command_path.split(), scenario),
        output_dir=output_folder(output_dir, settings),
        output=output,
        show_logs=show_logs,
        serve_only=serve_only,
        open_report=open_,
        resume=resume,
        limit=limit,
        level=level,
        task=tuple(task or ()),
        exclude=tuple(exclude or ()),
        max_parallel=max_parallel,
        judge_model=judge_model,
        participant_model=participant_model,
        name=one_line(name) if name else None,
        epochs=epochs,
        display=display,
        fail_under=fail_under,
        baseline=baseline,
        baseline_p=baseline_p,
        linger=linger,
        junit=junit,
        shards=shards,
        engine=engine,
        archive=archive,
        attacks=attacks,
        meter=meter,
        baselines=baselines,
    )
    raise typer.Exit(run_interruptible(ENGINES.load(engine)(options, settings, console)))


def scenario_file(argument: str, settings: "Settings") -> Path:
    """The scenario file: an existing file takes precedence over a bundled task set of the same name."""
    path = Path(argument)
    bundled = settings.bundled_scenarios
    if path.is_file():
        return path
    if argument in bundled:
        return bundled[argument]
    # It looks like a path, so the error message should be about that file.
    if path.suffix or len(path.parts) > 1 or path.exists():
        return path
    from shared.fields import closest

    raise ConfigError(
        f"{argument!r} is neither a scenario file nor a bundled task set",
        remedy=f"{closest(argument, bundled)}give the path of a scenario TOML file,"
        f" or one of: {', '.join(bundled) or 'none is installed'}",
    )
