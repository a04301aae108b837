"""`wabe score`: judges stored trajectories again, with any method and model."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from judge.commands import Command, OutputDir
from judge.config import CONFIG, RunConfig
from judge.judges.base import Judge
from judge.judges.factory import open_judge
from judge.judges.methods import METHODS, check_judge_model, evaluator, evaluators, model_methods, named_judge
from judge.judges.stored import find_trajectories, score_all
from judge.plugins.rejudging.adoption import adopt
from judge.plugins.rejudging.costs import Costs, Estimated, both
from judge.plugins.rejudging.edits import Edits, is_scenario, require_fitting
from judge.plugins.rejudging.expected import Asking
from judge.plugins.rejudging.options import JUDGE_OPTIONS, with_judge_options
from judge.plugins.rejudging.output import InOrder, JudgeTally, in_order_of, show, spent
from judge.plugins.rejudging.reliability import JudgeReport, Reliability, compare_judges
from judge.records.verdicts import OFFLINE
from judge.results.folders import FolderStore, give_tasks, keep_counted_judge
from judge.results.given_verdicts import judge_names
from judge.results.rejudged import take_over
from judge.results.reliability import self_agreement
from judge.results.trivial_judges import floors_in
from judge.runner.boundary import EXIT_DONE, EXIT_LOST, Interrupted, run_interruptible
from judge.store.layout import RunStore, output_folder, resolve_run, run_of
from shared.errors import ConfigError
from shared.fields import as_mapping, did_you_mean, printable
from shared.settings import Settings
from shared.text import one_line
from shared.validation import validated

DEFAULT_PARALLEL = 8


class _PlannedJudge(NamedTuple):
    """One judge of the plan, and the number of its repeat."""

    name: str
    config: RunConfig
    repeat: int = 1


@with_judge_options
def score(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(help="A run, a trajectory's folder, or a folder of them.", metavar="RUN_OR_DIR")
    ],
    addresses: Annotated[
        Path | None,
        typer.Option("--config", help="What the method needs, such as its sites' addresses.", metavar="FILE"),
    ] = None,
    max_parallel: Annotated[int, typer.Option(min=1, max=256, help="Trajectories judged at once.")] = DEFAULT_PARALLEL,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N trajectories.")] = None,
    repeat: Annotated[
        int,
        typer.Option(min=1, max=100, help="Judge everything N times, to see how often the judge agrees with itself."),
    ] = 1,
    judges: Annotated[
        str | None, typer.Option(help="Compare judges: METHOD, MODEL or METHOD@MODEL, with commas.", metavar="A,B,C")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also judge what this judge model has already judged.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost, and stop: nothing is judged.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="A scenario: judge with its checks and key points as they are now. Or the dataset file with the"
            " descriptions of a foreign folder's tasks.",
            metavar="SCENARIO.toml|FILE",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="With --tasks SCENARIO.toml: judge on every save, print what changed.")
    ] = False,
    output_dir: OutputDir = None,
    **given: Any,
) -> None:
    """Judge stored trajectories again. Each judge's verdicts are kept side by side under verdicts/."""
    settings = Settings.from_environ()
    runs = output_folder(output_dir, settings)
    folder, run = _folder(target, runs)
    (run or FolderStore(folder, runs)).require_key()
    is_foreign = not dry_run and _is_foreign(context, folder, run)
    method = given["judge_method"]
    without_model = evaluator(method)
    is_compared = judges is not None or repeat > 1
    _require_fitting(method, has_addresses=addresses is not None, is_compared=is_compared)
    require_fitting(
        tasks,
        watch=watch,
        is_dry=dry_run,
        others={"--judges": judges, "--repeat": repeat > 1, f"--method {method}": without_model},
    )
    open_evaluator = without_model.open(settings, addresses) if without_model else None
    named = _named_judges(judges)
    options_set, origins = _options_set(given, run, settings, is_compared=judges is not None)
    # Before the judge is configured: a folder without trajectories needs no key.
    folders = _trajectories(folder, run)
    with _named_as_given(origins):
        configs = {
            name: _config(run, {**options_set, **changes}, names_judge=is_compared) for name, changes in named.items()
        }
        plan = [_PlannedJudge(method or "", configs[""])] if without_model else _plan(configs, repeat, settings)
    if tasks is not None and is_scenario(tasks):
        raise typer.Exit(
            _with_edits(
                tasks,
                folders[:limit],
                plan[0].config,
                settings,
                runs / "cache",
                watch=watch,
                options={"max_parallel": max_parallel, "is_run": run is not None, "is_quiet": as_json, "again": again},
                is_dry=dry_run,
            )
        )
    if tasks is not None:
        give_tasks(folders, tasks)
    if is_foreign:
        # The verdicts that count in a folder of another tool stay with the judge asked first.
        keep_counted_judge(folder, runs)
    costs, tallies = Costs(folders[:limit], plan[0].config, is_quiet=as_json, is_dry=dry_run), list[JudgeTally]()

    async def open_(planned: _PlannedJudge) -> JudgeTally:
        judge: Judge
        if open_evaluator is not None:
            judge = await open_evaluator()
        else:
            cache = runs / "cache"
            judge = open_judge(
                planned.config, settings, cache_dir=cache, spending=costs.spending, repeat=planned.repeat
            )
        tallies.append(JudgeTally(judge, is_run=run is not None, is_quiet=as_json))
        return tallies[-1]

    try:
        code = run_interruptible(_judge_all(plan, costs, open_, max_parallel=max_parallel, again=again))
    except Estimated:
        return
    except Interrupted:
        raise Interrupted(f"interrupted; {spent(costs.spending)}", remedy="run it again to continue") from None
    if is_foreign:
        keep_counted_judge(folder, runs, tallies[0].judge.id)
    if run is not None and not _update(run, plan[0].config, tallies[0]):
        code = EXIT_LOST
    _tell(run, plan, tallies, costs, as_json=as_json)
    raise typer.Exit(code)


def _options_set(
    given: Mapping[str, Any], run: RunStore | None, settings: Settings, *, is_compared: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """The judge's settings, and what errors call each of them. Defaults come from the run, if there is one."""
    model = given["judge_model"] or (None if run else settings.judge_model)
    options_set = {name: value for name, value in {**given, "judge_model": model}.items() if value is not None}
    if evaluator(given["judge_method"]):
        options_set.pop("judge_method")
    origins = {key: option.flag for key, option in JUDGE_OPTIONS.items() if run is None or key in options_set}
    if given["judge_model"] is None and model:
        origins["judge_model"] = "WABE_JUDGE_MODEL"
    if is_compared:
        origins |= {"judge_method": "--judges", "judge_model": "--judges"}
    return options_set, origins


def _tell(
    run: RunStore | None, plan: Sequence[_PlannedJudge], tallies: Sequence[JudgeTally], costs: Costs, *, as_json: bool
) -> None:
    """Print the totals of the judge, or the comparison of several, and the costs."""
    costs.unpaid = sum(tally.unpaid for tally in tallies)
    floors = floors_in(map(Path, dict.fromkeys(folder for tally in tallies for folder in tally.outcomes)))
    own = {tally.judge.id: tally.name for tally in tallies if tally.judge.id in floors}
    of_run = costs.summary() | ({} if run is None else {"run_id": run.run_id})
    of_run |= {"floors": {judge_id: floors[judge_id].model_dump() for judge_id in own}} if own else {}
    if len(plan) == 1:
        typer.echo(json.dumps(of_run | tallies[0].summary()) if as_json else tallies[0].line())
    elif as_json:
        typer.echo(json.dumps(of_run | _reliability(plan, tallies).model_dump(mode="json")))
    else:
        names = judge_names({tally.judge.id: tally.name for tally in tallies})
        shown_as = {planned.name: str(names[tally.judge.id]) for planned, tally in zip(plan, tallies, strict=True)}
        show(_reliability(plan, tallies), shown_as)
    said = filter(None, (floors[judge_id].words(name) for judge_id, name in own.items()))
    for line in () if as_json else (*map(one_line, said), *costs.lines()):
        typer.echo(line)


def _with_edits(
    tasks: Path,
    folders: Sequence[Path],
    config: RunConfig,
    settings: Settings,
    cache: Path,
    *,
    watch: bool,
    is_dry: bool,
    options: Mapping[str, Any],
) -> int:
    """Judge with the tasks of a scenario. Returns the exit code."""
    if watch and config.judge_model != OFFLINE:
        problem = "--watch judges with checks only: a judge model would be paid for at every save"
        raise ConfigError(problem, remedy="add --model offline")
    costs = Costs(folders, config, is_quiet=options["is_quiet"], is_dry=is_dry)
    edits = Edits(
        tasks,
        folders,
        open_=lambda: open_judge(config, settings, cache_dir=cache, spending=costs.spending),
        costs=costs,
        **options,
    )
    if not watch:
        try:
            return run_interruptible(edits.judge_once())
        except Estimated:
            return EXIT_DONE
        except Interrupted:
            raise Interrupted(f"interrupted; {spent(costs.spending)}", remedy="run it again to continue") from None
    try:
        return run_interruptible(edits.watch())
    except Interrupted:
        # The usual end.
        return EXIT_DONE


def _require_fitting(method: str | None, *, has_addresses: bool, is_compared: bool) -> None:
    """Raises `ConfigError` for an unknown method, and for options that do not go with it."""
    if method not in (None, *METHODS.names()):
        known = (*model_methods(), *evaluators())
        raise ConfigError(f"--method: {printable(method)} is not a known value", remedy=did_you_mean(method, known))
    without_model = evaluator(method)
    if has_addresses and not (without_model and without_model.takes_config):
        takers = " or ".join(f"--method {name}" for name, each in evaluators().items() if each.takes_config)
        raise ConfigError(
            f"--config is for {takers or 'methods that are not installed'} only", remedy="remove it, or add the method"
        )
    if is_compared and without_model:
        raise ConfigError("--judges and --repeat are for judge models", remedy=f"leave out --method {method}")


@contextmanager
def _named_as_given(origins: Mapping[str, str]) -> Iterator[None]:
    """Make errors about the configuration name the user's option: `--model` instead of `config.judge_model`."""
    try:
        yield
    except ConfigError as error:
        # The judges name the key in full, `validated` beside its location.
        table, _, key = ".".join(filter(None, (error.location, error.key))).partition(".")
        is_setting = table == "config" and key.isidentifier()
        message = f"{origins.get(key, f'config.{key}')}: {error.problem}" if is_setting else error.message
        remedy = re.sub(rf"\b({'|'.join(JUDGE_OPTIONS)})\b", lambda match: JUDGE_OPTIONS[match[0]].flag, error.remedy)
        raise ConfigError(message, remedy=remedy) from None


def _update(run: RunStore, config: RunConfig, tally: JudgeTally) -> bool:
    """Update the run's results with the verdicts of its own judge; other judges' are only stored."""
    try:
        adopt(run, config, tally.judge)
        tally.updated = take_over(run)
    except ConfigError as error:
        # The verdicts are written and paid for, so their summary is still printed.
        typer.echo(f"error: {error}", err=True)
        return False
    return True


def _reliability(plan: Sequence[_PlannedJudge], tallies: Sequence[JudgeTally]) -> Reliability:
    by_name: dict[str, list[JudgeTally]] = {}
    for planned, tally in zip(plan, tallies, strict=True):
        by_name.setdefault(planned.name, []).append(tally)
    return Reliability(
        judges={
            name: JudgeReport(
                repeats=tuple(each.summary() for each in repeats),
                self_agreement=self_agreement([each.outcomes for each in repeats]),
            )
            for name, repeats in by_name.items()
        },
        pairs=compare_judges({name: repeats[0].outcomes for name, repeats in by_name.items()}),
    )


def _plan(configs: Mapping[str, RunConfig], repeat: int, settings: Settings) -> list[_PlannedJudge]:
    """Every repeat of every judge. Raises `ConfigError` for an unusable one before any costs arise."""
    plan: list[_PlannedJudge] = []
    for name, config in configs.items():
        check_judge_model(config, settings)
        # Checks are deterministic.
        often = 1 if config.judge_model == OFFLINE else repeat
        plan += [_PlannedJudge(name or config.judge_method, config, number) for number in range(1, often + 1)]
    if repeat > 1 and len(plan) == len(configs):
        raise ConfigError("--repeat needs a judge model: checks give the same result each time", remedy="give --model")
    return plan


def _named_judges(judges: str | None) -> dict[str, dict[str, str]]:
    """The settings of each judge in `--judges`, by name; without it, one judge configured by the other options."""
    if judges is None:
        return {"": {}}
    names_by_judge = {name: named_judge(name) for part in judges.split(",") if (name := part.strip())}
    if not names_by_judge:
        raise ConfigError("--judges names no judge", remedy=f"give models or methods: {', '.join(METHODS.names())}")
    return names_by_judge


async def _judge_all(
    plan: Sequence[_PlannedJudge],
    costs: Costs,
    open_: Callable[[_PlannedJudge], Awaitable[JudgeTally]],
    *,
    max_parallel: int,
    again: bool,
) -> int:
    """Judge the trajectories with each judge of the plan in turn. Returns the exit code."""
    times = Counter(planned.name for planned in plan)
    async with AsyncExitStack() as opened:
        judges: list[tuple[_PlannedJudge, JudgeTally]] = []
        for planned in plan:
            judges.append((planned, await open_(planned)))
            opened.push_async_callback(judges[-1][1].judge.aclose)
        await costs.expect([Asking(tally.judge, again) for _, tally in judges])
        with costs.progress(len(plan) * len(costs.folders)) as done:
            for planned, tally in judges:
                if len(plan) > 1 and not tally.is_quiet:
                    of = f", {planned.repeat} of {times[planned.name]}" if times[planned.name] > 1 else ""
                    typer.echo(f"{tally.name}{of}:")
                await score_all(
                    costs.folders,
                    tally.judge,
                    max_parallel=max_parallel,
                    off_site=planned.config.off_site,
                    again=again,
                    done=both(InOrder(costs.folders, tally.take), done),
                )
    return EXIT_DONE if all(tally.is_complete for _, tally in judges) else EXIT_LOST


def _folder(target: str, runs: Path) -> tuple[Path, RunStore | None]:
    """The folder with the trajectories, and the run if the folder is a complete run's."""
    path = Path(target)
    # A folder without a run.json contains trajectories of any origin.
    if (path / "result.json").is_file() or (path.is_dir() and not (path / "run.json").is_file()):
        return path, None
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{target} is not a folder", remedy="give a run, or a folder with trajectories in it")
    run = resolve_run(target, runs)
    return run.folder, run


def _trajectories(folder: Path, run: RunStore | None) -> list[Path]:
    """The folders with trajectories, for a run in its scenario's order."""
    ids = (run.read_run() or {}).get("task_ids") if run else None
    return in_order_of(list(map(str, ids)) if isinstance(ids, list) else (), find_trajectories(folder))


def _is_foreign(context: typer.Context, folder: Path, run: RunStore | None) -> bool:
    """Whether the folder belongs to no run. A run is locked until the command ends: nothing else writes to it."""
    run_folder = run or _run_around(folder)
    if run_folder is not None:
        context.with_resource(run_folder.held("judge"))
    return run_folder is None


def _run_around(folder: Path) -> RunStore | None:
    """The run that contains a folder of trajectories."""
    for parent in folder.resolve().parents:
        if (parent / "run.json").is_file() and (run := run_of(parent)) is not None:
            return run
    return None


def _config(run: RunStore | None, changes: dict[str, Any], *, names_judge: bool) -> RunConfig:
    """The run's configuration, so that its judge is the default, with the changes from the command line.

    `names_judge`: the user asked for a judge explicitly.
    """
    before = as_mapping((run.read_run() or {}).get("config") if run else None)
    is_named = names_judge or bool({"judge_method", "judge_model"} & changes.keys())
    if is_named and changes.get("judge_model", before.get("judge_model")) != OFFLINE:
        # A user who names a method or model wants its verdict, even on tasks with checks.
        changes = {**changes, "judge_checked_tasks": True, "truth": "judge"}
    # A run of another version may have settings that no longer exist.
    known = {name: value for name, value in before.items() if name in RunConfig.model_fields}
    return validated(CONFIG, known | changes, "config")


COMMAND = Command(
    score,
    (
        "wabe score latest --model openai:o4-mini",
        "wabe score trajectories/ --method webjudge --limit 20 --json",
        "wabe score latest --tasks my.toml --watch",
    ),
)
