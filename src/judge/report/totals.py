"""The totals of a run's rows, and the comparison of two runs. Pure.

Every row is counted, including aborted, unscored and unfinished ones.

Two runs over the same tasks are paired: only the tasks on which they differ show which one is better. McNemar's exact
test (1947; the binomial form) gives the probability of a split at least as uneven if both were equally good. If tasks
were played several times, it is the sign test on the tasks whose rate rose or fell.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from statistics import fmean, median
from typing import Any, NamedTuple, TypeVar

from judge.records.tasks import key_of
from judge.report.data import LEVELS, Phases, TaskRow
from judge.results.attacks import AttackTotals
from judge.results.judgings import JudgeName, JudgeVerdicts, cost_of, judge_names, judged_by, method_of, once
from judge.results.metering import MeteredUsage
from judge.results.policies import PolicyTotals, policies_of_row
from judge.results.progress import mean_progress
from judge.results.rates import CountedAttempt, Rate, RowOutcome
from judge.results.run_record import NO_RESULT
from judge.results.statistics import bootstrap, mcnemar_exact, repeats_of, tallies_of
from judge.results.sureness import ClusteredMean, clustered_interval, detectable_difference
from shared.fields import as_mapping
from shared.models import TokenUsage

SIGNIFICANT = 0.05
GroupName = TypeVar("GroupName", str, JudgeName)
_MAX_DIFFERENCES = 20


class UsageClaims(NamedTuple):
    """Tokens, and US dollars (`None` if an attempt does not say), that participants claim for so many attempts."""

    attempts: int
    input: int
    output: int
    cost_usd: float | None


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
    by_judge: dict[JudgeName, Rate]
    # The cost of all judgings, by judge and in total (`None` if a price is unknown), and the names of the judges by id.
    judged: tuple[JudgeVerdicts, ...]
    judging_cost_usd: float | None
    judge_names: dict[str, JudgeName]
    # The rate of attempts that the participant ended itself: neither aborted nor over a budget.
    of_completed: Rate
    by_truth: dict[str, Rate]
    # `repeats_of`; `None` for a run of one epoch.
    repeats: dict[str, Any] | None
    # `None` for a run without policies.
    policies: PolicyTotals | None
    # `None` for a run without attacks, which no other figure counts except times, tokens and costs.
    attacks: AttackTotals | None
    # The interval clustered by website, if there are several and scipy is installed.
    clustered: ClusteredMean | None = None
    # The mean partial credit in percent, and over how many attempts.
    progress: tuple[float, int] | None = None
    # All metered calls of the participant's, also between attempts; `None` if none was metered.
    metered: MeteredUsage | None = None
    # What participants say of their models themselves: shown apart, and compared with nothing.
    claimed: UsageClaims | None = None

    @property
    def participant_cost_per_task(self) -> float | None:
        """US dollars of metered model calls per task; `None` if that is not known."""
        cost = self.metered.cost_usd if self.metered else None
        return cost / self.all.tasks if cost is not None and self.all.tasks else None

    @property
    def steps_per_attempt(self) -> float | None:
        """The mean over all attempts, those under attack included; `None` without any."""
        return self.steps / self._attempts if self._attempts else None

    @property
    def _attempts(self) -> int:
        return self.all.total + (self.attacks.attempts + self.attacks.left_out if self.attacks else 0)

    @property
    def participant_cost_per_success(self) -> float | None:
        """The same per success; `None` also if nothing succeeded."""
        cost = self.metered.cost_usd if self.metered else None
        return cost / self.all.successes if cost is not None and self.all.successes else None

    @property
    def cost_per_success(self) -> float | None:
        """US dollars of judging per judged success; `None` if a price is unknown or nothing succeeded."""
        return self.cost_usd / self.all.successes if self.cost_usd is not None and self.all.successes else None


@dataclass(frozen=True)
class Comparison:
    """One run against the first. Counts are of tasks scored in both runs, `shared` is of tasks in both.

    `gained`: only the later run succeeded; `lost`: only the first did; with `has_repeats`: its rate rose or fell.
    `both` and `neither`: all attempts of both runs succeeded, or none. `p` is McNemar's exact two-sided p-value.
    `differences` are the later rate minus the first one of each task.
    """

    shared: int
    paired: int
    both: int
    neither: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    only_first: int
    only_later: int
    changed_tasks: tuple[str, ...]
    p: float
    differences: tuple[float, ...]
    has_repeats: bool

    @property
    def is_significant(self) -> bool:
        """Whether chance alone would split the differing tasks like this in fewer than 5 % of cases."""
        return self.p < SIGNIFICANT

    @property
    def difference(self) -> float | None:
        """The later rate minus the first rate over the paired tasks, in percentage points."""
        return 100 * fmean(self.differences) if self.differences else None

    @property
    def detectable(self) -> float | None:
        """The smallest difference in points that a comparison of this size finds in 80 %; `None` if unknown."""
        return detectable_difference(self.differences)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference, from resampling tasks; `None` if all differences are equal."""
        found = bootstrap(self.differences)
        return (100 * found[0], 100 * found[1]) if found else None


@dataclass(frozen=True)
class TaskGroup:
    """The attempts at one task in a run, at least one, in the order of their epochs."""

    attempts: tuple[TaskRow, ...]

    @property
    def first(self) -> TaskRow:
        """The attempt that stands for the task: the first one that was not a success."""
        return next((row for row in self.attempts if row.outcome != "success"), self.attempts[0])

    @property
    def outcome(self) -> str:
        """The outcome of all attempts, or `mixed`."""
        outcomes = {row.outcome for row in self.attempts}
        return outcomes.pop() if len(outcomes) == 1 else "mixed"

    @property
    def outcomes(self) -> tuple[RowOutcome, ...]:
        """The outcomes that occur."""
        return tuple(dict.fromkeys(row.outcome for row in self.attempts))

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the categories that occur."""
        return tuple(dict.fromkeys(name for row in self.attempts for name in row.category_names))

    @property
    def successes(self) -> int:
        """How many attempts succeeded."""
        return sum(row.outcome == "success" for row in self.attempts)

    @property
    def steps(self) -> float:
        """The mean number of steps."""
        return self.mean("steps")

    @property
    def duration_s(self) -> float | None:
        """The mean duration, as far as known."""
        known = [row.duration_s for row in self.attempts if row.has_result]
        return fmean(known) if known else None

    def mean(self, column: str) -> float:
        """The mean of a column of numbers."""
        return fmean(getattr(row, column) or 0 for row in self.attempts)

    @property
    def cost_usd(self) -> float | None:
        """The cost of all attempts; `None` if one is unknown."""
        costs = [row.cost_usd for row in self.attempts]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def grouped(rows: Iterable[TaskRow]) -> list[TaskGroup]:
    """The tasks with their attempts, in the order of their first ones."""
    found: defaultdict[str, list[TaskRow]] = defaultdict(list)
    for row in rows:
        found[row.task_id].append(row)
    return [TaskGroup(tuple(sorted(each, key=lambda row: row.epoch))) for each in found.values()]


@dataclass(frozen=True)
class MatrixRow:
    """A task in each run of a comparison; `None` for runs that do not have it."""

    task_id: str
    task: str
    level: str
    groups: tuple[TaskGroup | None, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether the runs that have the task disagree on its outcomes."""
        known = {tuple(row.outcome for row in group.attempts) for group in self.groups if group}
        # A task may have been played more often in one run than in another.
        return len({frozenset(outcomes) for outcomes in known}) > 1 or len(self._rates) > 1

    @property
    def pages(self) -> tuple[str, ...]:
        """The names of the task's pages, one for each epoch that some run has."""
        epochs = {row.epoch for group in self.groups if group for row in group.attempts}
        return tuple(key_of(self.task_id, epoch) for epoch in sorted(epochs))

    @property
    def successes(self) -> float:
        """The mean success rate over the runs that scored the task."""
        return fmean(self._rates) if self._rates else 0.0

    @property
    def order(self) -> tuple[int, float]:
        """Tasks at which some runs did better come first, then other differences, then tasks that some runs lack."""
        is_missing = None in self.groups
        return (0 if len(self._rates) > 1 else 1 if self.is_mixed else 2 if is_missing else 3), self.successes

    @property
    def _rates(self) -> set[Fraction]:
        tallies = (tallies_of((row.task_id, row.outcome) for row in group.attempts) for group in self.groups if group)
        return {tally.rate for tally in (each[self.task_id] for each in tallies) if tally.rate is not None}


def matrix_of(runs: Sequence[Sequence[TaskRow]]) -> list[MatrixRow]:
    """Every task of any run: those with different outcomes first, then those that fewest runs succeeded at."""
    by_task = [{group.attempts[0].task_id: group for group in grouped(rows)} for rows in runs]
    matrix = []
    for task_id in dict.fromkeys(task_id for groups in by_task for task_id in groups):
        found = tuple(groups.get(task_id) for groups in by_task)
        known = [row for group in found if group for row in group.attempts]
        # An unfinished task has no result that contains its text.
        best = next((row for row in known if row.has_result), known[0])
        matrix.append(MatrixRow(task_id, best.task, best.difficulty, found))
    return sorted(matrix, key=lambda each: each.order)


def totals_of(rows: Sequence[TaskRow], metered: MeteredUsage | None = None) -> Totals:
    """All totals of a run; `metered` are the participant's model calls."""
    costs = [row.cost_usd for row in rows if row.has_result]
    known = [cost for cost in costs if cost is not None]
    durations = [row.duration_s for row in rows if row.has_result]
    clean = [row for row in rows if row.attack is None]
    attempts = [row.counted for row in clean]
    completed = [attempt for attempt in attempts if attempt.ended_itself]
    judgings = [each for row in rows for each in row.judgings]
    names = judge_names({each.judge_id: each.name for each in judgings})
    names |= {once(judge_id): name for judge_id, name in names.items()}
    by_level = _rates((row.difficulty, row.counted) for row in clean)
    return Totals(
        all=Rate.of(attempts),
        by_level={level: by_level[level] for level in LEVELS if level in by_level},
        by_site=_rates((row.site, row.counted) for row in clean),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        known_cost_usd=sum(known),
        tokens=sum((row.tokens for row in rows), TokenUsage()),
        phases=Phases(*(sum(getattr(row.phases, phase.name) for row in rows) for phase in fields(Phases))),
        task_time_s=sum(durations),
        median_task_s=median(durations) if durations else None,
        steps=sum(row.steps for row in rows),
        completed=len(completed),
        retried=sum(row.attempt > 1 for row in rows),
        scores=_scores(rows),
        flags=dict(Counter(flag for row in rows for flag in row.flags)),
        by_truth=_rates((row.decided_by, row.counted) for row in clean if row.decided_by),
        by_judge=_rates(
            (names[each.judge_id], CountedAttempt(row.task_id, each.outcome))
            for row in clean
            for each in row.judgings
            if each.is_stored
        ),
        judged=judged_by(judgings),
        judging_cost_usd=cost_of(judgings),
        judge_names=names,
        of_completed=Rate.of(completed),
        repeats=repeats_of(tallies_of((each.task, each.outcome) for each in attempts)),
        policies=PolicyTotals.of((row.counted, policies_of_row(row)) for row in clean),
        attacks=AttackTotals.of(row.counted for row in rows),
        clustered=clustered_interval(_rates_by_site(clean)),
        progress=mean_progress(row.progress for row in clean),
        metered=metered,
        claimed=_claimed(rows),
    )


def _claimed(rows: Sequence[TaskRow]) -> UsageClaims | None:
    saying = [row for row in rows if row.claimed_input_tokens is not None]
    costs = [row.claimed_cost_usd for row in saying]
    known = [cost for cost in costs if cost is not None]
    return (
        UsageClaims(
            attempts=len(saying),
            input=sum(row.claimed_input_tokens or 0 for row in saying),
            output=sum(row.claimed_output_tokens or 0 for row in saying),
            cost_usd=sum(known) if len(known) == len(costs) else None,
        )
        if saying
        else None
    )


def _rates_by_site(rows: Sequence[TaskRow]) -> list[tuple[str, float]]:
    """The website and the rate of each scored task."""
    sites = {row.task_id: row.site for row in rows}
    tallies = tallies_of((row.task_id, row.outcome) for row in rows)
    return [(sites[name], float(tally.rate)) for name, tally in tallies.items() if tally.rate is not None]


def compare(first: Sequence[TaskRow], later: Sequence[TaskRow]) -> Comparison:
    """Compare two runs task by task. Tasks whose text or website differs are excluded and listed."""
    before, after = (tallies_of((row.task_id, row.outcome) for row in rows) for rows in (first, later))
    texts, other_texts = _texts(first), _texts(later)
    common = [task_id for task_id in before if task_id in after]
    # An unfinished task has no text to compare.
    changed = [name for name in common if texts[name] and other_texts[name] and texts[name] != other_texts[name]]
    rates = [(name, before[name].rate, after[name].rate) for name in common if name not in changed]
    scored = {name: (one, other) for name, one, other in rates if one is not None and other is not None}
    gained = tuple(name for name, (one, other) in scored.items() if other > one)
    lost = tuple(name for name, (one, other) in scored.items() if other < one)
    return Comparison(
        shared=len(common),
        paired=len(scored),
        both=sum(one == other == 1 for one, other in scored.values()),
        neither=sum(one == other == 0 for one, other in scored.values()),
        gained=gained,
        lost=lost,
        only_first=len(before) - len(common),
        only_later=len(after) - len(common),
        changed_tasks=tuple(changed),
        p=mcnemar_exact(len(gained), len(lost)),
        differences=tuple(float(other - one) for one, other in scored.values()),
        has_repeats=any(tally.attempts > 1 for tally in (*before.values(), *after.values())),
    )


def _texts(rows: Sequence[TaskRow]) -> dict[str, set[tuple[str, str]]]:
    """The texts and websites of each task; none for a task without a readable result."""
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        if row.has_result:
            found[row.task_id].add((row.task_template or row.task, row.website))
    return found


def differences(records: Sequence[Mapping[str, object]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The settings that must be equal for a fair comparison but differ: name and each run's value."""
    configs = [as_mapping(record.get("config")) for record in records]
    names = dict.fromkeys(name for config in configs for name in config if name not in NO_RESULT)
    values = {"judge": _judges(records)}
    values |= {
        name: tuple(str(config.get(name, "not set")) for config in configs) for name in names if name != "judge_model"
    }
    different = [(name.replace("_", " "), each) for name, each in values.items() if len(set(each)) > 1]
    return tuple(different[:_MAX_DIFFERENCES])


def _judges(records: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Each run's own judge; judges with other prompts or settings are told apart by their digests."""
    ids = [str(record.get("judge_id") or "") for record in records]
    texts = []
    for judge_id, record in zip(ids, records, strict=True):
        model = str(record.get("judge_model") or "unknown")
        texts.append(" · ".join(filter(None, (method_of(judge_id), "" if model == "offline" else model))) or "checks")
    judges = list(zip(ids, texts, strict=True))
    alike = [{other: plain for other, plain in judges if plain == text} for text in texts]
    return tuple(str(judge_names(each)[judge_id]) for judge_id, each in zip(ids, alike, strict=True))


def task_counts(matrix: Sequence[MatrixRow], runs: int) -> tuple[int, ...]:
    """How many of the tasks each run has."""
    return tuple(sum(each.groups[run] is not None for each in matrix) for run in range(runs))


def _rates(attempts: Iterable[tuple[GroupName, CountedAttempt]]) -> dict[GroupName, Rate]:
    """The rate of each group, by name."""
    groups: defaultdict[GroupName, list[CountedAttempt]] = defaultdict(list)
    for group, attempt in attempts:
        groups[group].append(attempt)
    return {group: Rate.of(groups[group]) for group in sorted(groups)}


def _scores(rows: Sequence[TaskRow]) -> dict[str, int]:
    """How often each score was given; `none` counts replies without one."""
    # Checks give only 5 (passed here first) and 1, which says nothing about relevance.
    judged = [row for row in rows if row.decided_by != "checks"]
    counter = Counter(str(score) if score is not None else "none" for row in judged for score in row.scores)
    names = ["1", "2", "3", "4", "5"] + (["none"] if counter["none"] else [])
    return {name: counter[name] for name in names} if counter else {}
