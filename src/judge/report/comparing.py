"""Compares runs over the same tasks: every two of them, which ones are better, and every task in each run. Pure.

With more than two runs there are several pairs, so their p-values are corrected for their number (Holm 1979).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from statistics import fmean

from judge.config import RunConfig
from judge.records.metadata import Value
from judge.records.tasks import key_of
from judge.records.verdicts import NO_MODEL, UNKNOWN_MODEL, method_of
from judge.report.data import TaskRow
from judge.report.effort import Effort, efforts_of
from judge.report.totals import TaskGroup, grouped
from judge.results.comparison import Comparison, compare
from judge.results.corrected import Estimate
from judge.results.given_verdicts import judge_names
from judge.results.part import RunPart
from judge.results.rates import Rate
from judge.results.run_record import NO_RESULT
from judge.results.significance import LEVEL, holm
from judge.results.statistics import tallies_of
from shared.fields import as_mapping

_MAX_DIFFERENCES = 20


@dataclass(frozen=True)
class RunPair:
    """Two of several runs by letter, compared. `p` is the p-value corrected for the number of pairs.

    `efforts` belong to both runs, if they were played in different modes.
    """

    first: str
    later: str
    comparison: Comparison
    p: float
    # The later rate minus the first one as parts of both runs estimate them, by the part's title.
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    efforts: tuple[Effort, ...] = ()

    @property
    def better(self) -> str | None:
        """The run shown to be better: in fewer than 5 % of cases would chance alone split the tasks so."""
        comparison = self.comparison
        if self.p >= LEVEL or len(comparison.gained) == len(comparison.lost):
            return None
        return self.later if len(comparison.gained) > len(comparison.lost) else self.first

    @property
    def is_mean_opposed(self) -> bool:
        """Whether the better run is so at most tasks that differ, but not on average."""
        difference = self.comparison.difference
        return self.better is not None and difference is not None and (difference > 0) != (self.better == self.later)


@dataclass(frozen=True)
class Conclusion:
    """Which runs are better than which, by letter: those that are better than most first.

    `open` are the pairs with a task scored in both of which neither run is shown to be better.
    """

    better: Mapping[str, tuple[str, ...]]
    open: tuple[RunPair, ...]


def pairs_of(runs: Mapping[str, Sequence[TaskRow]], cluster: str | None = None) -> tuple[RunPair, ...]:
    """Every two of the runs compared; `runs` are their rows by letter, `cluster` the key of their clusters.

    A pair without a common task is not tested.
    """
    compared = [(one, other, compare(runs[one], runs[other], cluster)) for one, other in combinations(runs, 2)]
    corrected = iter(holm([comparison.p for _, _, comparison in compared if comparison.paired]))
    return tuple(
        RunPair(
            one,
            other,
            comparison,
            next(corrected) if comparison.paired else comparison.p,
            efforts=efforts_of((one, runs[one]), (other, runs[other]), comparison.scored_tasks),
        )
        for one, other, comparison in compared
    )


def with_estimates(pairs: Sequence[RunPair], runs: Mapping[str, Sequence[RunPart]]) -> tuple[RunPair, ...]:
    """The pairs with the estimated differences over the tasks that both runs scored; `runs` are parts by letter."""
    return tuple(replace(pair, estimates=dict(_estimates(pair, runs))) for pair in pairs)


def _estimates(pair: RunPair, runs: Mapping[str, Sequence[RunPart]]) -> Iterator[tuple[str, Estimate]]:
    later, first = (
        {part.title: part.estimate(pair.comparison.scored_tasks) for part in runs[letter]}
        for letter in (pair.later, pair.first)
    )
    for title, estimate in later.items():
        earlier = first.get(title)
        if estimate is not None and earlier is not None:
            yield title, estimate.minus(earlier)


def conclusion_of(pairs: Sequence[RunPair]) -> Conclusion:
    """What the pairs show together."""
    beaten: defaultdict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        if pair.better is not None:
            beaten[pair.better].append(pair.first if pair.better == pair.later else pair.later)
    return Conclusion(
        better={name: tuple(beaten[name]) for name in sorted(beaten, key=lambda name: (-len(beaten[name]), name))},
        open=tuple(pair for pair in pairs if pair.better is None and pair.comparison.paired),
    )


def better_at(pairs: Sequence[RunPair]) -> dict[str, tuple[str, ...]]:
    """By task id, which runs did better than which at it: `B-A` says that B did better than A."""
    names_by_task: defaultdict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        for task_id in pair.comparison.gained:
            names_by_task[task_id].append(f"{pair.later}-{pair.first}")
        for task_id in pair.comparison.lost:
            names_by_task[task_id].append(f"{pair.first}-{pair.later}")
    return {task_id: tuple(each) for task_id, each in names_by_task.items()}


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
    def attack(self) -> str | None:
        """The name of the attack, if it is a task under attack."""
        return next((row.attack for group in self.groups if group for row in group.attempts if row.attack), None)

    @property
    def metadata(self) -> Mapping[str, Value] | None:
        """The task's metadata."""
        return next((row.metadata for group in self.groups if group for row in group.attempts if row.metadata), None)

    @property
    def judges(self) -> str:
        """Whether judges disagree on one of its attempts: `disagree`, `agree`, or nothing with fewer than two."""
        judges = {group.judges for group in self.groups if group}
        return next((each for each in ("disagree", "agree") if each in judges), "")

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
        task_groups = tuple(groups.get(task_id) for groups in by_task)
        known = [row for group in task_groups if group for row in group.attempts]
        # An unfinished task has no result that contains its text.
        best = next((row for row in known if row.has_result), known[0])
        matrix.append(MatrixRow(task_id, best.task, best.difficulty, task_groups))
    return sorted(matrix, key=lambda each: each.order)


def side_by_side(runs: Sequence[Mapping[str, Mapping[str, Rate]]]) -> dict[str, dict[str, tuple[Rate | None, ...]]]:
    """The rates of each value of metadata by key, one for each run; `None` for runs without such a task."""
    keys = sorted({key for run in runs for key in run})
    return {
        key: {
            value: tuple(run.get(key, {}).get(value) for run in runs)
            for value in sorted({value for run in runs for value in run.get(key, ())})
        }
        for key in keys
    }


def differing_settings(records: Sequence[Mapping[str, object]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The settings that must be equal for a fair comparison but differ: name and each run's value."""
    configs = [as_mapping(record.get("config")) for record in records]
    names = dict.fromkeys(name for config in configs for name in config if name not in NO_RESULT)
    values = {"judge": judges_of(records)}
    values |= {
        name: tuple(str(config.get(name, _unset(name))) for config in configs)
        for name in names
        if name != "judge_model"
    }
    different = [(name.replace("_", " "), each) for name, each in values.items() if len(set(each)) > 1]
    return tuple(different[:_MAX_DIFFERENCES])


def _unset(name: str) -> object:
    """What a setting is that a run does not record: the default, if that is not recorded."""
    field = RunConfig.model_fields.get(name)
    is_default = field is not None and field.exclude_if is not None and field.exclude_if(field.default)
    return field.default if field is not None and is_default else "not set"


def judges_of(records: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Each run's judge; judges with other prompts or settings have other digests."""
    ids = [str(record.get("judge_id") or "") for record in records]
    texts = []
    for judge_id, record in zip(ids, records, strict=True):
        model = str(record.get("judge_model") or UNKNOWN_MODEL)
        texts.append(" · ".join(filter(None, (method_of(judge_id), "" if model in NO_MODEL else model))) or "checks")
    judges = list(zip(ids, texts, strict=True))
    alike = [{other: plain for other, plain in judges if plain == text} for text in texts]
    return tuple(str(judge_names(each)[judge_id]) for judge_id, each in zip(ids, alike, strict=True))


def task_counts(matrix: Sequence[MatrixRow], runs: int) -> tuple[int, ...]:
    """How many of the tasks each run has."""
    return tuple(sum(each.groups[run] is not None for each in matrix) for run in range(runs))
