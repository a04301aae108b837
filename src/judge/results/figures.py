"""What the attempts of a run add up to, for submissions, tables and reports."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

from judge.records.verdicts import CHECKS, JUDGE
from judge.results.attacks import AttackTotals
from judge.results.policies import PolicyTotals
from judge.results.progress import mean_progress, mean_score
from judge.results.rates import LEVELS, CountedAttempt, Rate, rates_by_metadata, rates_of
from judge.results.statistics import repeats_of, tallies_of
from shared.fields import as_mapping


@dataclass(frozen=True)
class Figures:
    """Tasks under attack count in `attacks` only. What was not measured is `None` or empty.

    `repeats` are the statistics of a run of several epochs, `progress` the mean partial credit in percent with the
    number of attempts, `mean_score` that of verdicts on key points, as in a submission. `by_metadata` has the rate of
    each value by key, `efficiency` the mean over successes of the reference's length in relation to the steps.
    """

    all: Rate
    by_level: Mapping[str, Rate]
    by_truth: Mapping[str, Rate]
    repeats: dict[str, Any] | None
    policies: PolicyTotals | None
    attacks: AttackTotals | None
    progress: tuple[float, int] | None
    mean_score: Mapping[str, Any]
    by_metadata: Mapping[str, Mapping[str, Rate]]
    efficiency: float | None

    @classmethod
    def of(cls, attempts: Iterable[CountedAttempt], cluster: str | None = None) -> Self:
        """The figures of these attempts; `cluster` is the key of metadata by which intervals are clustered."""
        all_attempts = [each.clustered_by(cluster) for each in attempts]
        clean = [each for each in all_attempts if each.clean_task is None]
        by_level = rates_of((each.level, each) for each in clean)
        by_truth = rates_of((each.decided_by, each) for each in clean)
        return cls(
            all=Rate.of(clean),
            by_level={level: by_level[level] for level in LEVELS if level in by_level},
            by_truth={truth: by_truth[truth] for truth in kinds_of(by_truth)},
            repeats=repeats_of(tallies_of((each.task, each.outcome) for each in clean)),
            policies=PolicyTotals.of(clean),
            attacks=AttackTotals.of(all_attempts),
            progress=mean_progress(each.progress for each in clean),
            mean_score=mean_score((each.task, each.score) for each in clean),
            by_metadata=rates_by_metadata(clean),
            efficiency=_mean(each.efficiency for each in clean),
        )


def cluster_in(recorded: object) -> str | None:
    """The key of metadata by which intervals are clustered, in a submission's provenance or a run's settings."""
    cluster = as_mapping(recorded).get("cluster")
    return cluster if isinstance(cluster, str) else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def kinds_of(decided_by: Iterable[str]) -> list[str]:
    """The kinds of judges among these, in the order in which they are listed."""
    return sorted(set(filter(None, decided_by)), key=lambda name: (name != CHECKS, name == JUDGE, name))
