"""What the rows of a run add up to, and how two runs compare. Pure.

Every row is counted: aborted, unscored and unfinished ones too.

Two runs over the same tasks are paired: only the tasks on which they differ tell which one is better. McNemar's exact
test (1947; the binomial form) gives the probability of a split at least as lopsided if both were equally good.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import median

from judge.report.data import LEVELS, OUTCOMES, Phases, RowOutcome, TaskRow
from judge.results.statistics import exact
from judge.results.submission import is_complete
from shared.models import TokenUsage

SIGNIFICANT = 0.05
_COMPARED_SETTINGS = ("judge_model", "judge_id", "task_set_checksum", "config_checksum")


@dataclass(frozen=True)
class Rate:
    """A success rate. `rate`, `low` and `high` are in percent (Sterne's exact 95 % interval).

    `rate` is `None` if nothing was scored. `rate_of_all` has every task in its denominator.
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
        """Successes among all tasks, in percent: an unscored task counts like a failure."""
        return 100 * self.successes / self.total if self.total else 0.0

    @property
    def is_complete(self) -> bool:
        """Whether few enough tasks are aborted, unscored or unfinished: a submission's `is_complete`."""
        return is_complete(self.scored, self.total)


@dataclass(frozen=True)
class Totals:
    """A run in numbers. Times are seconds; `cost_usd` is `None` if the cost of one task is unknown."""

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
    # Of the attempts that the participant ended itself: neither aborted nor over a budget.
    of_completed: Rate | None = None
    by_truth: dict[str, Rate] = field(default_factory=dict)

    @property
    def cost_per_success(self) -> float | None:
        """US dollars of judging per judged success; `None` if a price is unknown or nothing succeeded."""
        return self.cost_usd / self.all.successes if self.cost_usd is not None and self.all.successes else None


@dataclass(frozen=True)
class Flip:
    """A task with different outcomes in two runs."""

    task_id: str
    task: str
    level: str
    before: RowOutcome
    after: RowOutcome


@dataclass(frozen=True)
class Comparison:
    """One run against the first. Counts are of tasks scored in both runs.

    `gained`: only the later run succeeded; `lost`: only the first did. `p` is McNemar's exact two-sided p-value.
    `moved` are tasks with different outcomes that at least one run did not score: no evidence, but not hidden.
    """

    shared: int
    paired: int
    both: int
    neither: int
    gained: tuple[Flip, ...]
    lost: tuple[Flip, ...]
    moved: tuple[Flip, ...]
    only_first: int
    only_later: int
    changed_tasks: tuple[str, ...]
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether chance alone would split the differing tasks like this in fewer than 5 of 100 cases."""
        return self.p < SIGNIFICANT

    @property
    def difference(self) -> float | None:
        """The later rate minus the first rate over the paired tasks, in percentage points."""
        return 100 * (len(self.gained) - len(self.lost)) / self.paired if self.paired else None


@dataclass(frozen=True)
class MatrixRow:
    """A task in each run of a comparison; `None` where a run does not have it."""

    task_id: str
    task: str
    level: str
    rows: tuple[TaskRow | None, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether the runs that have the task do not agree on its outcome."""
        return len({row.outcome for row in self.rows if row}) > 1


def matrix_of(runs: Sequence[Sequence[TaskRow]]) -> list[MatrixRow]:
    """Every task of any run: those with different outcomes first, then those that fewest runs succeeded at."""
    by_id = [{row.task_id: row for row in rows} for rows in runs]
    matrix = []
    for task_id in dict.fromkeys(task_id for rows in by_id for task_id in rows):
        found = tuple(rows.get(task_id) for rows in by_id)
        known = [row for row in found if row]
        # An unfinished task has no result that would hold its text.
        best = next((row for row in known if row.outcome != "unfinished"), known[0])
        matrix.append(MatrixRow(task_id, best.task, best.level, found))
    return sorted(matrix, key=lambda each: (not each.is_mixed, _successes(each)))


def _successes(each: MatrixRow) -> int:
    return sum(row is not None and row.outcome == "success" for row in each.rows)


def rate_of(outcomes: Iterable[RowOutcome]) -> Rate:
    """The counts of outcomes and the success rate among the scored ones."""
    counter = Counter(outcomes)
    counts = {name: counter[name] for name in OUTCOMES}
    successes, scored = counts["success"], counts["success"] + counts["failure"]
    low, high = exact(successes, scored)
    rate = 100 * successes / scored if scored else None
    return Rate(counts, counter.total(), scored, successes, rate, low=100 * low, high=100 * high)


def totals_of(rows: Sequence[TaskRow], judged: Iterable[Mapping[str, str]] = ()) -> Totals:
    """All totals of a run. `judged` is each task's outcomes by judge id, for runs with several judges' verdicts."""
    costs = [row.cost_usd for row in rows if row.outcome != "unfinished"]
    known = [cost for cost in costs if cost is not None]
    durations = [row.duration_s for row in rows if row.duration_s is not None]
    by_level = _rates((row.level, row.outcome) for row in rows)
    by_judge = _rates((judge_id, outcome) for verdicts in judged for judge_id, outcome in verdicts.items())
    return Totals(
        all=rate_of(row.outcome for row in rows),
        by_level={level: by_level[level] for level in LEVELS if level in by_level},
        by_site=dict(sorted(_rates((row.site, row.outcome) for row in rows).items())),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        known_cost_usd=sum(known),
        tokens=sum((row.tokens for row in rows), TokenUsage()),
        phases=Phases(*(sum(getattr(row.phases, phase.name) for row in rows) for phase in fields(Phases))),
        task_time_s=sum(durations),
        median_task_s=median(durations) if durations else None,
        steps=sum(row.steps for row in rows),
        completed=sum(row.stop_reason == "finished" for row in rows),
        retried=sum(row.attempt > 1 for row in rows),
        scores=_scores(rows),
        flags=dict(Counter(flag for row in rows for flag in row.flags)),
        by_truth=_rates((row.decided_by, row.outcome) for row in rows if row.decided_by),
        by_judge=dict(sorted(by_judge.items())),
        of_completed=rate_of(row.outcome for row in rows if row.stop_reason == "finished"),
    )


def mcnemar_exact(gained: int, lost: int) -> float:
    """The two-sided p-value of McNemar's exact test: both tails of a fair coin thrown `gained + lost` times.

    Raises `ValueError` for negative counts. Without a differing task it is 1.
    """
    if gained < 0 or lost < 0:
        raise ValueError("counts cannot be negative")
    thrown, fewer = gained + lost, min(gained, lost)
    # Integers until the last division: no rounding, however many tasks there are.
    tail: int = sum(math.comb(thrown, heads) for heads in range(fewer + 1))
    return min(1.0, float(2 * tail / (1 << thrown)))


def compare(first: Sequence[TaskRow], later: Sequence[TaskRow]) -> Comparison:
    """Compare two runs task by task. Tasks whose text or website differs between them are left out and named."""
    before = {row.task_id: row for row in first}
    after = {row.task_id: row for row in later}
    common = [task_id for task_id in before if task_id in after]
    changed = dict.fromkeys(one for one in common if not _is_same_task(before[one], after[one]))
    flips = [
        Flip(task_id, before[task_id].task, before[task_id].level, before[task_id].outcome, after[task_id].outcome)
        for task_id in common
        if task_id not in changed
    ]
    both, neither = _flips(flips, "success", "success"), _flips(flips, "failure", "failure")
    gained, lost = _flips(flips, "failure", "success"), _flips(flips, "success", "failure")
    return Comparison(
        shared=len(common),
        paired=len(both) + len(neither) + len(gained) + len(lost),
        both=len(both),
        neither=len(neither),
        gained=gained,
        lost=lost,
        moved=tuple(
            flip for flip in flips if flip.before != flip.after and {flip.before, flip.after} != {"success", "failure"}
        ),
        only_first=len(before) - len(common),
        only_later=len(after) - len(common),
        changed_tasks=tuple(changed),
        p=mcnemar_exact(len(gained), len(lost)),
    )


def differences(records: Sequence[Mapping[str, object]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The settings that must be equal for a fair comparison but differ: name and each run's value."""
    values = {name: tuple(str(record.get(name) or "unknown") for record in records) for name in _COMPARED_SETTINGS}
    return tuple((name.replace("_", " "), each) for name, each in values.items() if len(set(each)) > 1)


def _rates(pairs: Iterable[tuple[str, str]]) -> dict[str, Rate]:
    groups: dict[str, list[RowOutcome]] = defaultdict(list)
    for group, outcome in pairs:
        # The file of an unreadable verdict has no outcome of its own.
        groups[group].append(next((name for name in OUTCOMES if name == outcome), "unfinished"))
    return {group: rate_of(outcomes) for group, outcomes in groups.items()}


def _scores(rows: Sequence[TaskRow]) -> dict[str, int]:
    """How often each score was given; `none` counts replies without one."""
    counter = Counter(str(score) if score is not None else "none" for row in rows for score in row.scores)
    names = ["1", "2", "3", "4", "5"] + (["none"] if counter["none"] else [])
    return {name: counter[name] for name in names} if counter else {}


def _flips(flips: Sequence[Flip], before: RowOutcome, after: RowOutcome) -> tuple[Flip, ...]:
    return tuple(flip for flip in flips if (flip.before, flip.after) == (before, after))


def _is_same_task(one: TaskRow, other: TaskRow) -> bool:
    # An unfinished task has no result that would hold its text.
    return "unfinished" in (one.outcome, other.outcome) or (one.task, one.website) == (other.task, other.website)
