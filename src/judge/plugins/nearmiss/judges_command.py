"""`wabe judges`: a corpus of attempts whose outcome is known, and how judges do on it."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from judge.commands import AsJson, Command, OutputDir, plain_app, table, wide_console
from judge.config import CONFIG, RunConfig
from judge.judges.factory import open_judge
from judge.judges.methods import check_judge_model, named_judge
from judge.judges.rescoring import Scored, judge_stored
from judge.plugins.nearmiss.bench import BenchedJudge, BenchTally, JudgesBench, benched
from judge.plugins.nearmiss.command import chosen_operators, play, tell_lost
from judge.plugins.nearmiss.corpus import (
    FOLDER,
    OPERATORS_OF_CORPUS,
    KnownAttempt,
    known_attempts,
    read_corpus,
    write_corpus,
)
from judge.plugins.nearmiss.deciding import Deciding
from judge.plugins.nearmiss.playing import Options
from judge.records.verdicts import OFFLINE
from judge.results.trivial_judges import Telemetry
from judge.runner.boundary import EXIT_DONE, EXIT_LOST, Interrupted, run_interruptible
from judge.store.layout import TaskStore, output_folder
from judge.trajectory.files import read_attempt
from judge.trajectory.paths import usable_id
from shared.concurrency import for_each
from shared.errors import ConfigError
from shared.llm.limits import Spending
from shared.settings import Settings
from shared.text import counted, one_line, usd
from shared.validation import validated

judges = plain_app(
    help="How often judges are right, on right walks and near misses of reference scripts.", no_args_is_help=True
)


@judges.command()
def corpus(
    files: Annotated[list[Path], typer.Argument(help="Scenario files.", metavar="SCENARIO.toml…")],
    operator: Annotated[
        list[str] | None,
        typer.Option(help="Only these operators; without it, those that a length does not give away.", metavar="NAME"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many near misses of each task.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Which ones, if there are more; 0: the first ones.")] = 0,
    max_parallel: Annotated[int, typer.Option(min=1, max=64, help="How many walks at once.")] = 2,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"[default: {FOLDER} among the runs]", metavar="DIR")
    ] = None,
) -> None:
    """Build a corpus: play right walks and near misses, and keep whole those whose outcome is known.

    Stopped, it goes on where it was. Other scenarios are added to the corpus. Exit code 1 if a task was skipped or a
    walk was lost.
    """
    names = chosen_operators(operator, OPERATORS_OF_CORPUS)
    folder = output or output_folder(None) / FOLDER
    is_lost = False
    for file in files:
        name = usable_id(file.resolve().parent.name if file.name == "scenario.toml" else file.stem)
        playing, known = play(file, None, folder / name, Options(names, limit, seed, max_parallel), is_whole=True)
        deciding = Deciding({task.task_id: task for task in playing.tasks}, playing.scenario.config.sites)
        own = list(known_attempts(name, known, deciding.decide(known, proposes=False)))
        others = [each for each in _listed(folder) if not each.task_id.startswith(f"{name}/")]
        write_corpus(folder, [*others, *own])
        done = sum(each.human for each in own)
        typer.echo(f"{name}: {counted(len(own), 'attempt')}, {done} that did the task, {len(own) - done} near misses")
        is_lost = tell_lost(playing) or is_lost
    typer.echo(f"{folder}: {counted(len(_listed(folder)), 'attempt')}")
    if is_lost:
        raise typer.Exit(EXIT_LOST)


def _listed(folder: Path) -> tuple[KnownAttempt, ...]:
    return read_corpus(folder) if next(iter(folder.glob("*.json")), None) else ()


@judges.command()
def bench(
    judge: Annotated[list[str], typer.Option(help="METHOD, MODEL or METHOD@MODEL.", metavar="M")],
    folder: Annotated[
        Path | None, typer.Option("--corpus", help=f"[default: {FOLDER} among the runs]", metavar="DIR")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Ask each N times: does it agree with itself?")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N attempts.")] = None,
    max_parallel: Annotated[int, typer.Option(min=1, max=256, help="Attempts judged at once.")] = 8,
    base_url: Annotated[str | None, typer.Option(help="Another endpoint that speaks the model's format.")] = None,
    as_json: AsJson = False,
    output_dir: OutputDir = None,
) -> None:
    """Ask judges about attempts whose outcome is known, and compare them with judges that look at no page.

    Exit code 1 if an attempt could not be decided.
    """
    settings = Settings.from_environ()
    runs = output_folder(output_dir, settings)
    place = folder or runs / FOLDER
    if not (known := read_corpus(place)[:limit]):
        raise ConfigError(f"{place} lists no attempts", remedy="build it again: wabe judges corpus SCENARIO.toml")
    configs = {name: _config(name, base_url, settings) for name in dict.fromkeys(judge)}
    telemetry = _telemetry(place, known)
    spending = Spending()
    tallies = [BenchTally(name) for name in configs]

    async def ask() -> int:
        for tally in tallies:
            for number in range(1, (1 if configs[tally.name].judge_model == OFFLINE else repeat) + 1):
                tally.repeats.append({})
                await _ask(tally, configs[tally.name], number)
        is_whole = all(each.outcome in ("success", "failure") for one in tallies for each in one.repeats[0].values())
        return EXIT_DONE if is_whole else EXIT_LOST

    async def _ask(tally: BenchTally, config: RunConfig, number: int) -> None:
        opened = open_judge(config, settings, cache_dir=runs / "cache", spending=spending, repeat=number)

        async def one(each: KnownAttempt) -> None:
            began = time.monotonic()
            scored: Scored = await judge_stored(TaskStore(place / each.task_id), opened)
            tally.repeats[-1][each.task_id] = scored
            if not scored.kept:
                tally.seconds.append(time.monotonic() - began)

        try:
            await for_each(known, one, at_once=max_parallel)
        finally:
            await opened.aclose()

    try:
        code = run_interruptible(ask())
    except Interrupted:
        raise Interrupted(f"interrupted; {usd(spending.cost_usd)}", remedy="run it again to continue") from None
    found = benched(known, tallies, telemetry)
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json"), allow_nan=False))
    else:
        _show(found)
    raise typer.Exit(code)


def _config(name: str, base_url: str | None, settings: Settings) -> RunConfig:
    own = {"judge_model": settings.judge_model, **named_judge(name), "judge_base_url": base_url}
    is_model = own["judge_model"] not in (None, OFFLINE)
    changes = {"judge_checked_tasks": True, "truth": "judge"} if is_model else {}
    config = validated(CONFIG, {key: value for key, value in (own | changes).items() if value is not None}, "config")
    check_judge_model(config, settings)
    return config


def _telemetry(place: Path, corpus: Sequence[KnownAttempt]) -> dict[str, Telemetry]:
    """What trivial judges know of each attempt; its right twin has the number of steps."""
    attempts = {name: read_attempt(place / name) for each in corpus for name in (each.task_id, each.twin)}
    return {
        each.task_id: Telemetry.of(attempts[each.task_id], len(attempts[each.twin].action_history))._replace(
            task=each.task
        )
        for each in corpus
    }


def _show(found: JudgesBench) -> None:
    console = wide_console()
    numbers = ("right [95 %]", "balanced", "false successes", "false failures", "first fault", "agrees", "cost", "s")
    title = f"{counted(found.attempts, 'attempt')} of {counted(found.tasks, 'task')}"
    grid = table(title, ("judge",), numbers)
    for each in found.judges:
        grid.add_row(Text(one_line(each.name)), *map(Text, _cells(each)))
    console.print(grid)
    operators = sorted({name for each in found.judges for name in each.false_successes_by_operator})
    grid = table("False successes by operator", ("judge",), operators)
    for each in found.judges:
        by = each.false_successes_by_operator
        grid.add_row(Text(one_line(each.name)), *(str(by[name]) if name in by else "-" for name in operators))
    console.print(grid)
    for pair in found.pairs:
        first, second = (
            f"only {name} right: {n}" for name, n in ((pair.first, pair.only_first), (pair.second, pair.only_second))
        )
        console.print(Text(one_line(f"{first}; {second}; p = {pair.p_value:.2g}")), soft_wrap=True)
    for each in found.judges:
        if each.unscored:
            console.print(
                Text(f"{each.name}: {counted(each.unscored, 'attempt')} not decided, and left out"), soft_wrap=True
            )
        if each.floor and (words := each.floor.words(each.name)):
            console.print(Text(one_line(words, 500)), soft_wrap=True)


def _cells(each: BenchedJudge) -> list[str]:
    accuracy, (low, high) = each.rates.accuracy, each.accuracy_interval_95
    agrees = each.agreement_with_itself.agreement if each.agreement_with_itself else None
    return [
        "-" if accuracy is None else f"{100 * accuracy:.1f} % [{100 * low:.1f}, {100 * high:.1f}]",
        "-" if each.balanced_accuracy is None else f"{100 * each.balanced_accuracy:.1f} %",
        str(each.false_successes),
        str(each.false_failures),
        str(each.located or "-"),
        "-" if agrees is None else f"{100 * agrees:.1f} %",
        "-" if each.cost_usd is None else usd(each.cost_usd),
        "-" if each.seconds is None else f"{each.seconds:.1f}",
    ]


COMMAND = Command(
    judges,
    (
        "wabe judges corpus scenarios/demo/scenario.toml scenarios/hire/scenario.toml",
        "wabe judges bench --judge webjudge@openai:o4-mini --judge rubric@openai:o4-mini --repeat 2",
    ),
)
