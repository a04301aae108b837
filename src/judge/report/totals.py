"""What a run's rows add up to. Pure. Every row is in some count: aborted, unscored and unfinished ones too."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from judge.report.views import LEVELS, OUTCOMES, Phases, RowOutcome, TaskRow
from judge.results.statistics import exact
from judge.results.submission import is_complete
from shared.models import TokenUsage


@dataclass(frozen=True)
class Rate:
    """A success rate. `rate`, `low` and `high` are in percent (Sterne's exact 95 % interval).

    `rate` is `None` when nothing was scored. `rate_of_all` has every task in its denominator.
    """

    counts: dict[RowOutcome, int]
    total: int
    scored: int
    successes: int
    rate: float | None
    low: float
    high: float

    @property
    def rate_of_all(self) -> float:
        """Successes among all tasks, in percent: what is not scored counts like a failure."""
        return 100 * self.successes / self.total if self.total else 0.0

    @property
    def is_complete(self) -> bool:
        """Whether hardly any task is aborted, unscored or unfinished, as a submission's `is_complete` has it."""
        return is_complete(self.scored, self.total)


@dataclass(frozen=True)
class Totals:
    """A run in numbers. Times are seconds; `cost_usd` is `None` when one task's cost is unknown."""

    all: Rate
    by_level: dict[str, Rate]
    by_site: dict[str, Rate]
    cost_usd: float | None
    known_cost_usd: float
    tokens: TokenUsage
    phases: Phases
    task_time_s: float
    median_task_s: float | None
    steps: int
    completed: int
    retried: int
    scores: dict[str, int]
    flags: dict[str, int]
    by_judge: dict[str, Rate] = field(default_factory=dict)

    @property
    def cost_per_success(self) -> float | None:
        """US dollars of judging per judged success; `None` when a price is unknown or nothing succeeded."""
        return self.cost_usd / self.all.successes if self.cost_usd is not None and self.all.successes else None


def rate_of(outcomes: Iterable[RowOutcome]) -> Rate:
    """The counts of outcomes and the success rate among the scored ones."""
    counter = Counter(outcomes)
    counts = {name: counter[name] for name in OUTCOMES}
    scored = counts["success"] + counts["failure"]
    low, high = exact(counts["success"], scored)
    return Rate(
        counts=counts,
        total=counter.total(),
        scored=scored,
        successes=counts["success"],
        rate=100 * counts["success"] / scored if scored else None,
        low=100 * low,
        high=100 * high,
    )


def totals_of(rows: Sequence[TaskRow], judged: Iterable[dict[str, str]] = ()) -> Totals:
    """All totals of a run. `judged` is each task's outcomes by judge id, for runs that several judges have judged."""
    costs = [row.cost_usd for row in rows if row.outcome != "unfinished"]
    known = [cost for cost in costs if cost is not None]
    durations = [row.duration_s for row in rows if row.duration_s is not None]
    return Totals(
        all=rate_of(row.outcome for row in rows),
        by_level=_grouped(rows, "level", LEVELS),
        by_site=_grouped(rows, "site", sorted({row.site for row in rows})),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        known_cost_usd=sum(known),
        tokens=sum((row.tokens for row in rows), TokenUsage()),
        phases=_phases(rows),
        task_time_s=sum(durations),
        median_task_s=median(durations) if durations else None,
        steps=sum(row.steps for row in rows),
        completed=sum(row.stop_reason == "finished" for row in rows),
        retried=sum(row.attempt > 1 for row in rows),
        scores=_scores(rows),
        flags=dict(Counter(flag for row in rows for flag in row.flags)),
        by_judge=_by_judge(judged),
    )


def _grouped(rows: Sequence[TaskRow], name: str, order: Iterable[str]) -> dict[str, Rate]:
    groups: dict[str, list[RowOutcome]] = {}
    for row in rows:
        groups.setdefault(getattr(row, name), []).append(row.outcome)
    return {key: rate_of(groups[key]) for key in order if key in groups}


def _phases(rows: Sequence[TaskRow]) -> Phases:
    return Phases(
        observe_s=sum(row.phases.observe_s for row in rows),
        reply_s=sum(row.phases.reply_s for row in rows),
        act_s=sum(row.phases.act_s for row in rows),
        judge_s=sum(row.phases.judge_s for row in rows),
        other_s=sum(row.phases.other_s for row in rows),
    )


def _scores(rows: Sequence[TaskRow]) -> dict[str, int]:
    """How often each score was given; `none` counts replies without one."""
    counter = Counter(str(score) if score is not None else "none" for row in rows for score in row.scores)
    names = ["1", "2", "3", "4", "5"] + (["none"] if counter["none"] else [])
    return {name: counter[name] for name in names} if counter else {}


def _by_judge(judged: Iterable[dict[str, str]]) -> dict[str, Rate]:
    outcomes: dict[str, list[RowOutcome]] = {}
    for verdicts in judged:
        for judge_id, outcome in verdicts.items():
            known: RowOutcome = next((name for name in OUTCOMES if name == outcome), "unfinished")
            outcomes.setdefault(judge_id, []).append(known)
    return {judge_id: rate_of(outcomes[judge_id]) for judge_id in sorted(outcomes)}
