"""`wabe score`: stored trajectories judged again, by any method and model."""

import json
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from judge.config import RunConfig
from judge.events import one_line
from judge.judges.factory import METHODS, OFFLINE, open_judge
from judge.judges.rescoring import Scored, find_trajectories, score_all
from judge.results.rejudged import take_over
from judge.results.statistics import exact
from judge.runner.boundary import EXIT_LOST, Interrupted, run_interruptible
from judge.store import RunStore, output_folder, resolve_run
from shared.errors import ConfigError
from shared.llm.limits import Spending
from shared.models import TokenUsage
from shared.settings import Settings
from shared.validation import problems_of

DEFAULT_PARALLEL = 8


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(score)


def score(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(help="A run, a trajectory's folder, or a folder of them.", metavar="RUN_OR_DIR")
    ],
    method: Annotated[str | None, typer.Option(help=f"One of: {', '.join(METHODS)}.")] = None,
    model: Annotated[str | None, typer.Option(help="gemini:MODEL, openai:MODEL, or offline: checks only.")] = None,
    prompts: Annotated[str | None, typer.Option(help="A folder with a prompt set of your own.")] = None,
    threshold: Annotated[int | None, typer.Option(help="Screenshots with this score or more are decided on.")] = None,
    max_images: Annotated[int | None, typer.Option(help="At most this many screenshots are decided on.")] = None,
    votes: Annotated[int | None, typer.Option(help="How often the rubric method votes.")] = None,
    sees_answer: Annotated[bool | None, typer.Option(help="Show the final answer to the judge, as a claim.")] = None,
    max_parallel: Annotated[int, typer.Option(min=1, max=256, help="Trajectories judged at once.")] = DEFAULT_PARALLEL,
    max_calls: Annotated[int | None, typer.Option(help="Model calls at once.")] = None,
    requests_per_minute: Annotated[int | None, typer.Option(help="Limit of the judge model.")] = None,
    tokens_per_minute: Annotated[int | None, typer.Option(help="Limit of the judge model.")] = None,
    max_cost_usd: Annotated[float | None, typer.Option(help="Stop asking when this much is spent.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Stop asking when this many tokens are used.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another endpoint that speaks the model's format.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N trajectories.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Judge also what this judge has judged already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
    output_dir: Annotated[Path | None, typer.Option(help="Where runs and the reply cache are kept.")] = None,
) -> None:
    """Judge stored trajectories again. Each judge's verdicts lie side by side under verdicts/."""
    settings = Settings.from_environ()
    runs = output_folder(output_dir, settings)
    folder, run = _folder(target, runs)
    if writes_to := run or _run_around(folder):
        # Not while an assessment writes there, and none begins meanwhile.
        context.with_resource(writes_to.held("judge"))
    changes = {
        "judge_method": method,
        "judge_model": model or (None if run else settings.judge_model),
        "prompts": prompts,
        "score_threshold": threshold,
        "max_images": max_images,
        "judge_votes": votes,
        "judge_sees_answer": sees_answer,
        "judge_max_concurrency": max_calls,
        "judge_requests_per_minute": requests_per_minute,
        "judge_tokens_per_minute": tokens_per_minute,
        "max_judge_cost_usd": max_cost_usd,
        "max_judge_tokens": max_tokens,
        "judge_base_url": base_url,
    }
    config = _config(run, {name: value for name, value in changes.items() if value is not None})
    tally = _Tally(quiet=as_json)
    found = find_trajectories(folder)
    judging = _score(found[:limit], config, settings, runs / "cache", max_parallel, again=again, tally=tally)
    code = _finished(judging, run, tally)
    typer.echo(json.dumps(tally.summary()) if as_json else tally.line())
    if code:
        raise typer.Exit(code)


def _finished(judging: Coroutine[Any, Any, int], run: RunStore | None, tally: "_Tally") -> int:
    """Judge, then bring the run's results up to date. Returns the exit code."""
    try:
        code = run_interruptible(judging)
    except Interrupted:
        raise Interrupted(f"interrupted; {tally.spent()}", remedy="the same command goes on") from None
    # Verdicts of the run's own judge update the run's results; those of other judges stay beside them.
    try:
        tally.updated = take_over(run) if run else ()
    except ConfigError as error:
        # The verdicts are written and paid for, so their summary is printed all the same.
        typer.echo(f"error: {error}", err=True)
        code = EXIT_LOST
    return code


async def _score(
    folders: tuple[Path, ...],
    config: RunConfig,
    settings: Settings,
    cache: Path,
    max_parallel: int,
    *,
    again: bool,
    tally: "_Tally",
) -> int:
    judge = open_judge(config, settings, cache_dir=cache, spending=tally.spending)
    tally.judge_id = judge.id
    try:
        await score_all(
            folders, judge, max_parallel=max_parallel, off_site=config.off_site, again=again, done=tally.take
        )
    finally:
        await judge.aclose()
    return EXIT_LOST if tally.counts["broken"] or tally.counts["unscored"] else 0


class _Tally:
    """Counts what was scored, and tells of each trajectory as it comes."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self.judge_id = ""
        self.counts: Counter[str] = Counter()
        self.kept = 0
        self.updated: tuple[str, ...] = ()
        self.broken: list[str] = []
        self.spending = Spending()
        self._usage = TokenUsage()
        self._cost_usd: float | None = 0.0

    def take(self, scored: Scored) -> None:
        self.counts[scored.outcome] += 1
        self.kept += scored.kept
        if scored.verdict is not None and not scored.kept:
            self._usage += scored.verdict.token_usage
            cost = scored.verdict.cost_usd
            asked = scored.verdict.token_usage.calls > 0
            self._cost_usd = (
                None if self._cost_usd is None or (asked and cost is None) else self._cost_usd + (cost or 0)
            )
        line = f"{scored.folder.name}: {scored.outcome}{' (kept)' if scored.kept else ''}: {one_line(scored.reason)}"
        if scored.outcome == "broken":
            self.broken.append(f"{scored.folder}: {scored.reason}")
            typer.echo(line, err=True)
        elif not self._quiet:
            typer.echo(line)

    def summary(self) -> dict[str, Any]:
        successes, decided = self.counts["success"], self.counts["success"] + self.counts["failure"]
        low, high = exact(successes, decided)
        return {
            "judge": self.judge_id,
            "trajectories": self.counts.total(),
            **{name: self.counts[name] for name in ("success", "failure", "unscored", "aborted", "broken")},
            "kept": self.kept,
            "success_rate": round(100 * successes / decided, 1) if decided else None,
            "confidence_interval_95": [round(100 * low, 1), round(100 * high, 1)] if decided else None,
            "token_usage": self._usage.model_dump(),
            "cost_usd": self._cost_usd,
            "broken_folders": self.broken,
            "updated": list(self.updated),
        }

    def spent(self) -> str:
        """What the judge model used, cut-off calls included."""
        usage, cost_usd = self.spending.usage, self.spending.cost_usd
        cost = "cost unknown" if cost_usd is None else f"{cost_usd:.4f} USD"
        cut_off = f", {usage.estimated_calls} of them by estimate" if usage.estimated_calls else ""
        return f"the judge model was asked {usage.calls} times{cut_off}: {usage.input + usage.output} tokens, {cost}"

    def line(self) -> str:
        s = self.summary()
        rate = "no success rate" if s["success_rate"] is None else f"{s['success_rate']} % success"
        interval = "" if s["confidence_interval_95"] is None else " ({} to {} %)".format(*s["confidence_interval_95"])
        counts = ", ".join(f"{s[name]} {name}" for name in ("success", "failure", "unscored", "aborted", "broken"))
        cost = "cost unknown" if s["cost_usd"] is None else f"{s['cost_usd']:.4f} USD"
        tokens = self._usage.input + self._usage.output
        said = f"{s['judge']}: {s['trajectories']} trajectories, {counts}; {rate}{interval}; {tokens} tokens, {cost}"
        count = len(self.updated)
        return f"{said}\nThe run's results.json now has the new verdict of {count} task(s)." if count else said


def _folder(target: str, runs: Path) -> tuple[Path, RunStore | None]:
    """The folder to look in, and the run that it is, when it is one."""
    path = Path(target)
    if (path / "result.json").is_file() or (path.is_dir() and not (path / "run.json").is_file()):
        return path, None
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{target} is no folder", remedy="give a run, or a folder with trajectories in it")
    run = resolve_run(target, runs)
    return run.folder, run


def _run_around(folder: Path) -> RunStore | None:
    """The run that a folder of trajectories is a part of."""
    for parent in folder.resolve().parents:
        if parent.parent.name == "runs" and (parent / "run.json").is_file():
            return RunStore(parent.parent.parent, parent.name)
    return None


def _config(run: RunStore | None, changes: dict[str, Any]) -> RunConfig:
    """The run's own configuration, so that its own judge is the default, with the changes of the command line."""
    stored = (run.read_run() or {}).get("config") if run else None
    before = stored if isinstance(stored, dict) else {}
    if {"judge_method", "judge_model"} & changes.keys() and changes.get("judge_model") != OFFLINE:
        # Who names a method or a model wants its verdict, on tasks with checks too.
        changes = {**changes, "judge_checked_tasks": True, "truth": "judge"}
    known = {name: value for name, value in before.items() if name in RunConfig.model_fields}
    try:
        return RunConfig.model_validate(known | changes)
    except ValidationError as error:
        path, problem, remedy = problems_of(error)[0]
        raise ConfigError(f"wabe score: {'.'.join(map(str, path)) or 'config'}: {problem}", remedy=remedy) from None
