"""The success rate of attempts: the counts and rates of a submission, a table and a report are views of one `Rate`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

from judge.records.attacks import AttackOutcome
from judge.records.ledger import Coverage
from judge.records.metadata import Value, shown
from judge.records.policies import PolicyResult
from judge.records.tasks import Level
from judge.results.statistics import Percent, success_rate_of_all, tallies_of
from shared.fields import without_none

# `unfinished`: a task without a readable result. Not an official outcome, but a report must not hide it.
RowOutcome = Literal["success", "failure", "unscored", "aborted", "unfinished"]
OUTCOMES: tuple[RowOutcome, ...] = ("success", "failure", "unscored", "aborted", "unfinished")
COVERAGES: tuple[Coverage, ...] = ("full", "uncertain", "off_archive")
LEVELS: tuple[str, ...] = (*get_args(Level), "unknown")
# A submission is incomplete if more than this percentage of its attempts has no verdict.
_MAX_LOST_PERCENT = 5
_MAX_GROUPS = 50
GroupT = TypeVar("GroupT", bound=tuple[str, ...] | str)


class CountedAttempt(NamedTuple):
    """An attempt's contribution to the figures of a run. `ended_itself`: the participant ended it.

    `coverage` belongs to an attempt on frozen sites, `attack` what became of the attack on a task under one,
    `clean_task` is the clean task of one under an attack or a variant.
    `is_unconfirmed`: it is unscored, because a frozen site does not confirm its success. `metadata` are its task's,
    `cluster` the value by which intervals are clustered. `efficiency` belongs to a success with a reference length.
    """

    task: str
    outcome: str
    ended_itself: bool = False
    coverage: str | None = None
    attack: AttackOutcome | None = None
    clean_task: str | None = None
    is_unconfirmed: bool = False
    policies: tuple[PolicyResult, ...] = ()
    progress: float | None = None
    score: float | None = None
    level: str = "unknown"
    decided_by: str = ""
    metadata: Mapping[str, Value] = MappingProxyType({})
    cluster: str | None = None
    efficiency: float | None = None

    def clustered_by(self, key: str | None) -> Self:
        """The same in the cluster that this key of its metadata names; without the key, its task is one of its own."""
        value = self.metadata.get(key) if key else None
        return self if value is None else self._replace(cluster=shown(value))

    @property
    def may_succeed(self) -> bool:
        """Whether it succeeded, or may have on the live site."""
        is_failed_off = self.outcome == "failure" and self.coverage in ("uncertain", "off_archive")
        return self.outcome == "success" or self.is_unconfirmed or is_failed_off


@dataclass(frozen=True)
class Covered:
    """The numbers of attempts on frozen sites by coverage, and those whose success is unconfirmed.

    The rate of all attempts, in percent, would be between the bounds if the sites were live: at least the
    successes', at most that with every unconfirmed one, and with every failure that met a missing or uncertain answer.
    """

    counts: Mapping[str, int]
    unconfirmed: int
    lower_bound: float
    upper_bound: float

    @classmethod
    def of(cls, attempts: Sequence[CountedAttempt]) -> Self | None:
        """The coverage of these attempts; `None` if none was on frozen sites."""
        counter = Counter(each.coverage for each in attempts if each.coverage is not None)
        if not counter:
            return None
        lower, upper = (
            float(100 * success_rate_of_all(tallies_of(outcomes).values()))
            for outcomes in (
                ((each.task, each.outcome) for each in attempts),
                ((each.task, "success" if each.may_succeed else each.outcome) for each in attempts),
            )
        )
        unconfirmed = sum(each.is_unconfirmed for each in attempts)
        return cls({name: counter[name] for name in COVERAGES}, unconfirmed, lower, upper)

    def published(self) -> dict[str, Any]:
        """As in a submission."""
        bounds = {"lower_bound": round(self.lower_bound, 1), "upper_bound": round(self.upper_bound, 1)}
        return {**self.counts, "unconfirmed": self.unconfirmed, **bounds}


@dataclass(frozen=True)
class Rate:
    """A success rate. `rate`, `low` and `high` are in percent: the mean over tasks with its 95 % interval.

    `rate` is `None` if nothing was scored; the interval is then [0, 100]. `rate_of_all` has every attempt in its
    denominators, so an aborted or unscored one weighs as much as a failure. `counts` are attempts by outcome: as many
    as tasks, unless tasks were played in several epochs.

    A task counts once, however often it was played: it is scored if any attempt is, else unscored if any attempt is,
    and completed if the participant ended all its attempts.
    """

    counts: Mapping[RowOutcome, int]
    rate: float | None
    low: float
    high: float
    rate_of_all: float
    tasks: int
    scored_tasks: int
    unscored_tasks: int
    completed_tasks: int
    covered: Covered | None = None

    @classmethod
    def of(cls, attempts: Iterable[CountedAttempt]) -> Self:
        """The rate of these attempts."""
        all_attempts = list(attempts)
        by_task = tallies_of((each.task, each.outcome) for each in all_attempts)
        tallies = by_task.values()
        undecided = {task for task, tally in by_task.items() if not tally.scored}
        # An unreadable verdict file has no valid outcome.
        counter = Counter(each.outcome if each.outcome in OUTCOMES else "unfinished" for each in all_attempts)
        cluster_of = {each.task: each.cluster for each in all_attempts}
        # A space keeps them apart from a cluster that has the name of a task.
        percent = Percent.of(tallies, [cluster_of[task] or f" {task}" for task in by_task])
        return cls(
            counts={outcome: counter[outcome] for outcome in OUTCOMES},
            rate=percent.rate,
            low=percent.low,
            high=percent.high,
            rate_of_all=float(100 * success_rate_of_all(tallies)),
            tasks=len(by_task),
            scored_tasks=len(by_task) - len(undecided),
            unscored_tasks=len({each.task for each in all_attempts if each.outcome == "unscored"} & undecided),
            completed_tasks=len(by_task.keys() - {each.task for each in all_attempts if not each.ended_itself}),
            covered=Covered.of(all_attempts),
        )

    @property
    def total(self) -> int:
        """All attempts."""
        return sum(self.counts.values())

    @property
    def successes(self) -> int:
        """The attempts that succeeded."""
        return self.counts["success"]

    @property
    def scored(self) -> int:
        """The attempts that succeeded or failed."""
        return self.successes + self.counts["failure"]

    @property
    def is_complete(self) -> bool:
        """Whether at most `_MAX_LOST_PERCENT` of the attempts have no verdict; never without an attempt.

        A success that a frozen site does not confirm is not lost: it is the distance between two bounds.
        """
        lost = self.total - self.scored - (self.covered.unconfirmed if self.covered else 0)
        return self.total > 0 and 100 * lost <= _MAX_LOST_PERCENT * self.total

    def segments(self, width: float) -> Iterator[tuple[float, float, RowOutcome]]:
        """The counts as a stacked bar: x, width and outcome of each part."""
        x = 0.0
        for outcome, count in self.counts.items():
            if count:
                part = width * count / self.total
                yield x, part, outcome
                x += part

    def published(self) -> dict[str, Any]:
        """The counts and rates as in a submission. Rates are in percent to one decimal, 0.0 if nothing was scored."""
        return {
            "success_rate": round(self.rate or 0.0, 1),
            "successful_tasks": self.completed_tasks,
            "completed_tasks": self.completed_tasks,
            "total_tasks": self.tasks,
            "judged_successes": self.successes,
            "scored_tasks": self.scored_tasks,
            "unscored_tasks": self.unscored_tasks,
            "aborted_tasks": self.tasks - self.scored_tasks - self.unscored_tasks,
            "success_rate_of_all": round(self.rate_of_all, 1),
            "is_complete": self.is_complete,
            "attempts": self.total,
            "scored_attempts": self.scored,
            "confidence_interval_95": [round(self.low, 1), round(self.high, 1)],
            **without_none(coverage=self.covered.published() if self.covered else None),
        }


def rates_by_metadata(attempts: Sequence[CountedAttempt]) -> dict[str, dict[str, Rate]]:
    """The rate of each value, by key; without keys that have more than `_MAX_GROUPS` values, which group nothing."""
    keys = sorted({key for each in attempts for key in each.metadata})
    by_key = {
        key: rates_of((shown(each.metadata[key]), each) for each in attempts if key in each.metadata) for key in keys
    }
    return {key: rates for key, rates in by_key.items() if len(rates) <= _MAX_GROUPS}


def rates_of(attempts: Iterable[tuple[GroupT, CountedAttempt]]) -> dict[GroupT, Rate]:
    """The rate of each group, by name."""
    groups: defaultdict[GroupT, list[CountedAttempt]] = defaultdict(list)
    for group, attempt in attempts:
        groups[group].append(attempt)
    return {group: Rate.of(groups[group]) for group in sorted(groups)}
