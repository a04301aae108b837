"""One run of a matrix, in a separate process: its options come as JSON on standard input."""

import sys

import typer
from rich.console import Console

from judge.results.entries import read_entries
from judge.results.run_record import is_finished
from judge.runner.boundary import EXIT_INTERRUPTED, Interrupted, run_command, run_interruptible
from judge.runner.follow import RunOutcome
from judge.runner.options import RunOptions
from judge.runner.other_code import rejudging_note
from judge.runner.plan import Plan, make_plan
from judge.runner.run import conclude
from judge.runner.terminal import Progress
from shared.engines import player_of
from shared.files import read_json
from shared.settings import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def cell() -> None:
    """Play the run, continue it, or show the results of one that has finished."""
    options = RunOptions.model_validate_json(sys.stdin.buffer.read())
    try:
        raise typer.Exit(run_interruptible(_play(options), says=False))
    except Interrupted:
        # The command that continues is the matrix's, which prints it.
        raise typer.Exit(EXIT_INTERRUPTED) from None


async def _play(options: RunOptions) -> int:
    settings = Settings.from_environ()
    console = Console(quiet=options.display in ("json", "none"))
    plan = make_plan(options, settings)
    if (outcome := _finished(plan)) is None:
        return await player_of(options.engine)(options, settings, console)
    progress = Progress(console, options.display)
    progress.shown.update(entry.key for result in outcome.results for entry in read_entries(result["detail"]["tasks"]))
    return conclude(outcome, plan, console, progress)


def _finished(plan: Plan) -> RunOutcome | None:
    """The results of a run that has nothing left to play or to judge."""
    store, config = plan.store, plan.config
    if store is None or config is None or not is_finished(store) or rejudging_note(store, config.prompts):
        return None
    try:
        results = tuple(read_json(store.folder / "results.json")["results"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return RunOutcome(results=results, state="completed", message="", run_id=store.run_id)


if __name__ == "__main__":
    run_command(app, [], name="wabe run")
