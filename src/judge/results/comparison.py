"""Compares a later run with an earlier one, task by task. Pure.

Two runs are paired: only the tasks on which they differ show which one is better. McNemar's exact test (1947; the
binomial form) gives the probability of a split at least as uneven if both were equally good. If tasks were played
several times, it is the sign test on the tasks whose rate rose or fell.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from judge.results.rows import AttemptRow
from judge.results.significance import clustered_interval, detectable_difference
from judge.results.statistics import bootstrap, mcnemar_exact, tallies_of


@dataclass(frozen=True)
class Comparison:
    """A later run against an earlier one. Counts are of tasks scored in both runs, `shared` is of tasks in both.

    `gained`: only the later run succeeded; `lost`: only the first did; with `has_repeats`: its rate rose or fell.
    `both` and `neither`: all attempts of both runs succeeded, or none. `p` is McNemar's exact two-sided p-value.
    `differences` are the later rate minus the first one of each of the `scored_tasks`, and `clusters` what they are
    clustered by, if they are.
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
    scored_tasks: tuple[str, ...]
    p: float
    differences: tuple[float, ...]
    has_repeats: bool
    clusters: tuple[str, ...] = ()

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
        """The 95 % interval of the difference, from clusters or resampling tasks; `None` if all are equal."""
        if self.clusters:
            of_clusters = clustered_interval(list(zip(self.clusters, self.differences, strict=True)), least=-1)
            return (of_clusters.low, of_clusters.high) if of_clusters and of_clusters.standard_error else None
        interval = bootstrap(self.differences)
        return (100 * interval[0], 100 * interval[1]) if interval else None


def compare(first: Sequence[AttemptRow], later: Sequence[AttemptRow], cluster: str | None = None) -> Comparison:
    """Compare two runs task by task. Tasks whose text or website differs are excluded and listed.

    `cluster` is the key of the metadata by which the interval of the difference is clustered.

    Tasks under attack do not count, as in every other rate.
    """
    first, later = ([row for row in rows if row.is_clean] for rows in (first, later))
    before, after = (tallies_of((row.task_id, row.verdict) for row in rows) for rows in (first, later))
    texts, other_texts = _texts(first), _texts(later)
    common = [task_id for task_id in before if task_id in after]
    # An unfinished task has no text to compare.
    changed = [name for name in common if texts[name] and other_texts[name] and texts[name] != other_texts[name]]
    rates = [(name, before[name].rate, after[name].rate) for name in common if name not in changed]
    scored = {name: (one, other) for name, one, other in rates if one is not None and other is not None}
    cluster_of = {row.task_id: row.counted.clustered_by(cluster).cluster for row in later}
    gained = tuple(name for name, (one, other) in scored.items() if other > one)
    lost_names = tuple(name for name, (one, other) in scored.items() if other < one)
    return Comparison(
        shared=len(common),
        paired=len(scored),
        both=sum(one == other == 1 for one, other in scored.values()),
        neither=sum(one == other == 0 for one, other in scored.values()),
        gained=gained,
        lost=lost_names,
        only_first=len(before) - len(common),
        only_later=len(after) - len(common),
        changed_tasks=tuple(changed),
        scored_tasks=tuple(scored),
        p=mcnemar_exact(len(gained), len(lost_names)),
        differences=tuple(float(other - one) for one, other in scored.values()),
        clusters=tuple(cluster_of[name] or f" {name}" for name in scored) if any(cluster_of.values()) else (),
        has_repeats=any(tally.attempts > 1 for tally in (*before.values(), *after.values())),
    )


def _texts(rows: Sequence[AttemptRow]) -> dict[str, set[tuple[str, str]]]:
    """The texts and websites of each task; none for a task without a readable result."""
    texts_by_task: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        if row.verdict != "unfinished":
            texts_by_task[row.task_id].add((row.task_template or row.task, row.website))
    return texts_by_task
