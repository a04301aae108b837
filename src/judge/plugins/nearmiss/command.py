"""`wabe tasks mutate`: plays near misses of reference scripts, and lists which ones a task's checks let through."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from judge.commands import Command
from judge.plugins.nearmiss.deciding import LISTED, Class, Deciding, LetThrough, MissDecision, checks_digest
from judge.plugins.nearmiss.operators import DEFAULTS, OPERATORS
from judge.plugins.nearmiss.playing import Options, WalkPlaying, current
from judge.plugins.nearmiss.recordings import FOLDER, Recorded, write_report
from judge.plugins.nearmiss.walks import RIGHT, references_of
from judge.records.sites import origin_of
from judge.records.tasks import Task
from judge.runner.boundary import EXIT_LOST
from judge.scenario.days import day_of
from judge.scenario.frozen import opened
from judge.scenario.models import Scenario
from judge.scenario.references import opened_references
from judge.scenario.toml import load_scenario, select
from judge.store.sealing import key_in
from shared.errors import ConfigError
from shared.fields import did_you_mean, printable
from shared.saves import next_save, signature
from shared.settings import Settings
from shared.text import counted, one_line

MissLimit = Annotated[int, typer.Option(min=1, help="At most so many near misses of each task.")]
MissSeed = Annotated[int, typer.Option(min=0, help="Which ones, if there are more; 0: the first ones.")]
WalksAtOnce = Annotated[int, typer.Option(min=1, max=64, help="How many walks at once.")]
_TITLES: dict[Class, str] = {
    "survivor": "Survivors: they came to something else, and pass",
    "over-strict": "Over-strict: they did the task, and fail",
    "way": "Ways not checked: the task prescribes one, and the last page's address alone passes",
    "undecided": "Not decided, and not counted",
}


def mutate(
    file: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO.toml")],
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks.", metavar="ID")] = None,
    operator: Annotated[
        list[str] | None, typer.Option(help=f"Only these operators, of {', '.join(OPERATORS)}.", metavar="NAME")
    ] = None,
    limit: MissLimit = 10,
    seed: MissSeed = 0,
    max_parallel: WalksAtOnce = 2,
    decide: Annotated[
        bool, typer.Option("--decide", help="Play nothing: decide what was recorded with the checks as they are now.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="With --decide: again on every save.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"[default: {FOLDER} beside the scenario]", metavar="DIR")
    ] = None,
) -> None:
    """Play near misses of each task's reference script, and list those that its checks let through.

    Stopped, it goes on where it was. Exit code 1 if a task was skipped or a walk was lost.
    """
    for name in operator or ():
        if name not in OPERATORS:
            raise ConfigError(f"--operator {printable(name)} is not known", remedy=did_you_mean(name, list(OPERATORS)))
    if watch and not decide:
        raise ConfigError("--watch repeats --decide", remedy="add --decide")
    folder = output or file.resolve().parent / FOLDER
    if watch:
        with suppress(KeyboardInterrupt):
            asyncio.run(_watch(file, task or (), operator or (), folder))
        return
    options = Options(tuple(operator or DEFAULTS), limit, seed, max_parallel)
    playing = None if decide else play(file, task, folder, options)[0]
    _decide(file, task or (), operator or (), folder, requires_any=playing is None)
    if playing and tell_lost(playing):
        raise typer.Exit(EXIT_LOST)


def play(
    file: Path, ids: Sequence[str] | None, folder: Path, options: Options, *, is_whole: bool = False
) -> tuple[WalkPlaying, list[Recorded]]:
    """Play near misses of a scenario's tasks. Returns what was recorded by these operators. Raises `ConfigError`."""
    settings = Settings.from_environ()
    with _opened(file) as own:
        declared, archives = opened(own, settings)
        tasks, today = select(declared.tasks, ids=ids or (), excluded=own.excluded), day_of(declared.config)
        playing = WalkPlaying(declared, tasks, folder, settings, archives, today, options, _told, is_whole)
        known = asyncio.run(playing.run())
    return playing, [each for each in known if each.walk.operator in (*options.operators, RIGHT)]


@contextmanager
def _opened(file: Path) -> Iterator[Scenario]:
    """The scenario, with its reference scripts while the body runs; tasks without a state have their site's."""
    scenario = load_scenario(file, key=key_in(Settings.from_environ().seal_key))
    states = {origin_of(site.endpoint): site.state for site in scenario.sites}
    with opened_references(scenario) as (own, _):
        known = [(task, task.state or states.get(origin_of(task.website))) for task in own.tasks]
        tasks = tuple(task.model_copy(update={"state": state}) for task, state in known)
        yield own.model_copy(update={"tasks": tasks})


def tell_lost(playing: WalkPlaying) -> bool:
    """Say which tasks were skipped and which walks were lost, and whether there were any."""
    for task_id, why in playing.skipped.items():
        typer.echo(f"skipped {task_id}: {one_line(why, 300)}")
    for task_id, why in playing.lost.items():
        typer.echo(f"lost a walk of {task_id}: {one_line(why, 300)}", err=True)
    if playing.skipped:
        typer.echo(f"{counted(len(playing.skipped), 'task')} of {len(playing.tasks)} skipped")
    return bool(playing.lost or playing.skipped)


def _told(number: int, total: int, walk: Recorded, decision: MissDecision | None) -> None:
    what = decision.kind if decision else walk.trajectory.stop_reason
    about = f": {walk.walk.about}" if walk.walk.about else ""
    typer.echo(one_line(f"{number}/{total} {walk.walk.task_id} {walk.walk.walk_id} {what}{about}", 200), err=True)


async def _watch(file: Path, ids: Sequence[str], operators: Sequence[str], folder: Path) -> NoReturn:
    saved = None
    while True:
        saved = signature(file) if saved is None else await next_save(file, saved, asyncio.sleep)
        try:
            _decide(file, ids, operators, folder)
        except ConfigError as error:
            # Usually a half-finished edit. The next save is decided again.
            typer.echo(f"not decided: {error}")
        typer.echo(f"Watching {file}; Ctrl-C ends it.")


def _decide(
    file: Path, ids: Sequence[str], operators: Sequence[str], folder: Path, *, requires_any: bool = True
) -> None:
    """Decide everything recorded of the scenario, which the report has; list these tasks and operators, or all."""
    with _opened(file) as scenario:
        select(scenario.tasks, ids=ids, excluded=scenario.excluded)
        references, _ = references_of(scenario.tasks, scenario.path.resolve().parent, day_of(scenario.config))
        known = current(folder, references, scenario.tasks)
    if requires_any and not any(not ids or task_id in ids for task_id, _ in known):
        raise ConfigError(f"{folder} has no near misses of these tasks", remedy="play them first, without --decide")
    tasks = {task.task_id: task for task in scenario.tasks}
    every = list(Deciding(tasks, scenario.config.sites).decide([each for _, each in sorted(known.items())]))
    decisions = [
        each for each in every if (not ids or each.task_id in ids) and (not operators or each.operator in operators)
    ]
    for kind in LISTED:
        own = [each for each in decisions if each.kind == kind]
        if own:
            typer.echo(f"\n{_TITLES[kind]}")
        for each in own:
            typer.echo(f"  {each.task_id} {each.walk_id}: {one_line(each.about)}")
            for line in filter(None, (each.why, each.differences)):
                typer.echo(f"    {one_line(line, 500)}")
            for what, told in (("add" if kind == "survivor" else "instead", each.check), ("film", each.film)):
                if told:
                    typer.echo(f"    {what}: {told}")
    kinds = Counter(each.kind for each in decisions)
    words = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    typer.echo(f"\n{counted(len(decisions), 'near miss', 'near misses')}: {words or 'none'}")
    digest, _ = _checks_of(decisions, tasks)
    if figure := LetThrough.among(decisions):
        typer.echo(f"{figure} (checks {digest[:12]})")
    whole, (digest, names) = LetThrough.among(every), _checks_of(every, tasks)
    report = {
        "scenario": scenario.shown_name,
        "checks_sha256": digest,
        "let_through": whole and whole.model_dump(),
        "counts": Counter(each.kind for each in every),
        "tasks": names,
        "walks": [each.model_dump(mode="json") for each in every],
    }
    write_report(folder, report)


def _checks_of(decisions: Iterable[MissDecision], tasks: Mapping[str, Task]) -> tuple[str, list[str]]:
    """The digest of what a figure is bound to, and the names of its tasks."""
    names = sorted({each.task_id for each in decisions})
    return checks_digest(tasks[each] for each in names), names


COMMAND = Command(
    mutate,
    (
        "wabe tasks mutate scenario.toml --limit 6",
        "wabe tasks mutate scenario.toml --task cancel --operator also",
        "wabe tasks mutate scenario.toml --decide --watch",
    ),
)
