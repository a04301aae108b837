"""`wabe steps`: step-level scoring on recorded pages."""

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from judge.commands import AsJson, Command, OneRun, OutputDir, plain_app
from judge.commands.run import scenario_file
from judge.plugins.steps.asking import ObservationForm, ScoredStep, ShownStep, ask_all
from judge.plugins.steps.metrics import STEP_METRICS, StepScore, averages, by_group
from judge.plugins.steps.mind2web import is_mind2web, read_rows
from judge.plugins.steps.reference import STEPS_FILE, make_references, read_references
from judge.plugins.steps.report import StepsReport
from judge.runner.boundary import EXIT_DONE, EXIT_LOST, run_interruptible
from judge.scenario.credentials import clear_text_note, headers_at
from judge.scenario.toml import load_scenario
from judge.store.layout import new_run_id, output_folder, resolve_run
from shared.a2a.client import ParticipantClient
from shared.errors import ConfigError
from shared.settings import Settings
from shared.text import counted, one_line

steps = plain_app(
    help="Step-level scoring. Asks for the next action on recorded pages, with the true history.", no_args_is_help=True
)


@steps.command()
def make(
    run: OneRun = "latest",
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write; default: steps/ in the run's folder.")
    ] = None,
    output_dir: OutputDir = None,
) -> None:
    """Make recorded steps from a run's successful attempts. Writes `steps.jsonl`, with images, of the first epoch."""
    store = resolve_run(run, output_folder(output_dir))
    folder = output or store.folder / "steps"
    total = 0
    for task_id, count, why in make_references((task for task in store.tasks() if task.epoch == 1), folder):
        total += count
        if why:
            typer.echo(f"left out {task_id}: {one_line(why)}")
    if not total:
        raise ConfigError(f"run {store.run_id}: no usable step for a reference", remedy="give a run with a success")
    typer.echo(f"{folder / STEPS_FILE}: {counted(total, 'step')}")


@steps.command()
def score(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="steps.jsonl, or Multimodal-Mind2Web rows (Parquet or JSON lines).")
    ],
    participant: Annotated[str, typer.Option(metavar="URL", help="The participant's A2A address.")],
    scenario: Annotated[
        str | None,
        typer.Option(metavar="SCENARIO.toml", help="A scenario with this participant: its headers are sent."),
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write the report.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N steps.")] = None,
    observation: Annotated[
        ObservationForm, typer.Option(help="The whole snapshot, or only the elements with a reference, one a line.")
    ] = "snapshot",
    previous: Annotated[int | None, typer.Option(min=0, help="Only the last N actions; without it, all.")] = None,
    max_parallel: Annotated[int, typer.Option(min=1, max=64, help="How many steps run at once.")] = 4,
    reply_timeout: Annotated[float, typer.Option(min=1, help="Seconds for one reply.")] = 120.0,
    as_json: AsJson = False,
    output_dir: OutputDir = None,
) -> None:
    """Score a participant's next actions. Asks for one on every recorded page."""
    pages = islice(read_rows(file) if is_mind2web(file) else read_references(file), limit)
    settings = Settings.from_environ()
    runs = output_folder(output_dir, settings)
    headers = {}
    if scenario is not None:
        loaded = load_scenario(scenario_file(scenario, settings.bundled_scenarios))
        headers = headers_at(loaded, participant, settings.environ)
        if note := clear_text_note(participant, headers):
            typer.echo(note, err=True)
    scores: list[StepScore] = []
    failed: list[str] = []
    added: dict[str, list[float]] = {}
    report = StepsReport(output or runs / "steps" / new_run_id())

    def done(answered: ScoredStep, image: bytes | None) -> None:
        scores.append(answered.score)
        for name in STEP_METRICS.names():
            value = float(STEP_METRICS.load(name)(answered.reference, answered.choice))
            added.setdefault(name, []).append(value)
        report.add(answered, image)
        if answered.choice.failed:
            failed.append(answered.choice.complaint)

    shown = ShownStep(form=observation, previous=previous)

    async def ask() -> int:
        async with ParticipantClient(participant, reply_timeout_s=reply_timeout, headers=headers) as client:
            await ask_all(pages, client, max_parallel=max_parallel, done=done, shown=shown)
        return EXIT_LOST if failed else EXIT_DONE

    code = run_interruptible(ask())
    if not scores:
        raise ConfigError(f"{file}: no steps in it", remedy="give recorded steps, see wabe steps make")
    summary = {**averages(scores), **{name: fmean(values) for name, values in added.items()}, "by": by_group(scores)}
    page = report.write(summary, participant=participant, source=file.name)
    if as_json:
        typer.echo(json.dumps({**summary, "failed": len(failed), "report": str(page)}))
    else:
        for line in _lines(summary, added):
            typer.echo(line)
        if failed:
            typer.echo(
                f"{counted(len(failed), 'step')} without a reply scored 0, the first: {one_line(failed[0])}", err=True
            )
        typer.echo(f"Report: {page}")
    raise typer.Exit(code)


def _lines(summary: dict[str, Any], added: Iterable[str]) -> list[str]:
    def percent(value: float | None) -> str:
        return "none" if value is None else f"{100 * value:.1f} %"

    averaged = [
        f"{name.replace('_', ' ')}: {percent(summary[name]['micro'])} micro, {percent(summary[name]['macro'])} macro"
        for name, value in summary.items()
        if isinstance(value, dict) and name != "by"
    ]
    rest = [
        f"{name.replace('_', ' ')}: {percent(summary[name])}"
        for name in ("task_success", "operation", "operation_and_value", *added)
    ]
    return [f"{counted(summary['steps'], 'step')} of {counted(summary['tasks'], 'task')}", *averaged, *rest]


COMMAND = Command(
    steps,
    ("wabe steps make latest --output steps", "wabe steps score steps/steps.jsonl --participant http://127.0.0.1:9019"),
)
