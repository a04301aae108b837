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
from judge.plugins.nearmiss.command import MissLimit, MissSeed, WalksAtOnce, play, tell_lost
from judge.plugins.nearmiss.corpus import (
    FOLDER,
    LIST,
    OPERATORS_OF_CORPUS,
    KnownAttempt,
    known_attempts,
    read_corpus,
    write_corpus,
)
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
    limit: MissLimit = 10,
    seed: MissSeed = 0,
    max_parallel: WalksAtOnce = 2,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"[default: {FOLDER} among the runs]", metavar="DIR")
    ] = None,
) -> None:
    """Build a corpus: play right walks and near misses, and keep whole those whose outcome is known.

    Stopped, it goes on where it was. Other scenarios are added to the corpus. Exit code 1 if a task was skipped or a
    walk was lost.
    """
    folder = output or output_folder(None) / FOLDER
    options = Options(OPERATORS_OF_CORPUS, limit, seed, max_parallel)
    listed = list(read_corpus(folder)) if (folder / LIST).is_file() else []
    is_lost = False
    for file in files:
        name = usable_id(file.resolve().parent.name if file.name == "scenario.toml" else file.stem)
        playing, known = play(file, None, folder / name, options, is_whole=True)
        own = list(known_attempts(name, known, playing.deciding.decide(known, proposes=False)))
        listed = [*(each for each in listed if not each.task_id.startswith(f"{name}/")), *own]
        write_corpus(folder, listed)
        done = sum(each.human for each in own)
        typer.echo(f"{name}: {counted(len(own), 'attempt')}, {done} that did the task, {len(own) - done} near misses")
        is_lost = tell_lost(playing) or is_lost
    typer.echo(f"{folder}: {counted(len(listed), 'attempt')}")
    if is_lost:
        raise typer.Exit(EXIT_LOST)


@judges.command()
def bench(
    judge: Annotated[list[str], typer.Option(help="METHOD, MODEL or METHOD@MODEL.", metavar="M")],
    folder: Annotated[
        Path | None, typer.Option("--corpus", help=f"[default: {FOLDER} among the runs]", metavar="DIR")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Ask each N times: does it agree with itself?")] = 1,
    max_parallel: Annotated[int, typer.Option(min=1, max=256, help="Attempts judged at once.")] = 8,
    as_json: AsJson = False,
    output_dir: OutputDir = None,
) -> None:
    """Ask judges about attempts whose outcome is known, and compare them with judges that look at no page.

    Exit code 1 if an attempt could not be decided.
    """
    settings = Settings.from_environ()
    runs = output_folder(output_dir, settings)
    place = folder or runs / FOLDER
    if not (known := read_corpus(place)):
        raise ConfigError(f"{place} lists no attempts", remedy="build it again: wabe judges corpus SCENARIO.toml")
    configs = {name: _config(name, settings) for name in dict.fromkeys(judge)}
    telemetry, spending = _telemetry(place, known), Spending()
    tallies = [BenchTally(name) for name in configs]

    async def ask(tally: BenchTally, config: RunConfig, number: int) -> None:
        opened = open_judge(config, settings, cache_dir=runs / "cache", spending=spending, repeat=number)
        scored: dict[str, Scored] = {}
        tally.repeats.append(scored)

        async def one(each: KnownAttempt) -> None:
            began = time.monotonic()
            scored[each.task_id] = await judge_stored(TaskStore(place / each.task_id), opened)
            if not scored[each.task_id].kept:
                tally.seconds.append(time.monotonic() - began)

        try:
            await for_each(known, one, at_once=max_parallel)
        finally:
            await opened.aclose()

    async def ask_all() -> int:
        for tally in tallies:
            config = configs[tally.name]
            for number in range(1, (1 if config.judge_model == OFFLINE else repeat) + 1):
                await ask(tally, config, number)
        is_whole = all(each.outcome in ("success", "failure") for one in tallies for each in one.repeats[0].values())
        return EXIT_DONE if is_whole else EXIT_LOST

    try:
        code = run_interruptible(ask_all())
    except Interrupted:
        raise Interrupted(f"interrupted; {usd(spending.cost_usd)}", remedy="run it again to continue") from None
    found = benched(known, tallies, telemetry)
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json"), allow_nan=False))
    else:
        _show(found)
    raise typer.Exit(code)


def _config(name: str, settings: Settings) -> RunConfig:
    own = {**({"judge_model": settings.judge_model} if settings.judge_model else {}), **named_judge(name)}
    is_model = own.get("judge_model", OFFLINE) != OFFLINE
    config = validated(CONFIG, own | ({"judge_checked_tasks": True, "truth": "judge"} if is_model else {}), "config")
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
    operators = sorted({name for each in found.judges for name in each.by_operator})
    grid = table("False successes by operator", ("judge",), operators)
    for each in found.judges:
        by = each.by_operator
        cells = (f"{by[name].false_positives} of {by[name].n}" if name in by else "-" for name in operators)
        grid.add_row(Text(one_line(each.name)), *cells)
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
    rates, (low, high) = each.rates, each.accuracy_interval_95
    agrees = each.agreement_with_itself.agreement if each.agreement_with_itself else None
    return [
        "-" if rates.accuracy is None else f"{100 * rates.accuracy:.1f} % [{100 * low:.1f}, {100 * high:.1f}]",
        "-" if each.balanced_accuracy is None else f"{100 * each.balanced_accuracy:.1f} %",
        f"{rates.false_positives} of {rates.false_positives + rates.true_negatives}",
        f"{rates.false_negatives} of {rates.true_positives + rates.false_negatives}",
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
