"""How the rate of an agent on a scenario changed from version to version. Pure.

The runs of a version are pooled by task: a task counts once, however often it was played, and the intervals resample
tasks. Rates of different judges are never in one trend.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judge.plugins.all_runs.listing import ListedRun, pooled
from judge.results.statistics import AttemptCounts, Percent

UNNAMED = "no version"


@dataclass(frozen=True)
class VersionRate:
    """The rate of one version in percent, with its 95 % interval: over `scored` of `tasks` tasks in `runs` runs.

    `first` and `last` are when its first and its last run were last started, in seconds since 1970. `task_sets` tell
    apart the sets of tasks that it played.
    """

    version: str
    first: float
    last: float
    runs: int
    rate: float
    low: float
    high: float
    scored: int
    tasks: int
    task_sets: frozenset[str]


@dataclass(frozen=True)
class Trend:
    """The versions of an agent that a judge scored on a scenario, at least two, in the order of their first runs."""

    agent: str
    scenario: str
    judge: str
    versions: tuple[VersionRate, ...]

    @property
    def is_same_tasks(self) -> bool:
        """Whether all versions played the same tasks."""
        return len({each.task_sets for each in self.versions}) == 1


class Versions:
    """The runs of an agent on a scenario with one judge, by version. Their rates are computed by `trend`."""

    def __init__(self, names: tuple[str, str, str], runs: Sequence[ListedRun]) -> None:
        self.names = names
        by_version: defaultdict[str, list[ListedRun]] = defaultdict(list)
        for run in runs:
            by_version[run.version or UNNAMED].append(run)
        self._by_version = sorted(by_version.items(), key=lambda each: (min(run.worked_on for run in each[1]), each[0]))
        self.last = max(run.worked_on for run in runs)

    def __len__(self) -> int:
        return len(self._by_version)

    def trend(self, newest: int) -> Trend:
        """The trend over the newest versions."""
        rates = tuple(_rate(version, runs) for version, runs in self._by_version[-newest:])
        return Trend(*self.names, rates)


def versions_of(runs: Iterable[ListedRun]) -> list[Versions]:
    """Every agent, scenario and judge with scored tasks of two versions or more, those played last first.

    Episodes are left out: what played them may have learnt from one to the next.
    """
    series: defaultdict[tuple[str, str, str], list[ListedRun]] = defaultdict(list)
    for run in runs:
        if run.episodes is not None:
            continue
        if run.agent and run.scenario and run.judge and any(scored for _, scored, _ in run.tallies.values()):
            series[run.agent, run.scenario, run.judge].append(run)
    version_lists = [
        each for each in (Versions(names, version_runs) for names, version_runs in series.items()) if len(each) > 1
    ]
    return sorted(version_lists, key=lambda each: (-each.last, each.names))


def _rate(version: str, runs: list[ListedRun]) -> VersionRate:
    tallies = pooled(runs)
    percent = _percent(tuple(sorted((each.successes, each.scored, each.attempts) for each in tallies.values())))
    assert percent.rate is not None, "only runs with a scored task are in a trend"
    times = [run.worked_on for run in runs]
    return VersionRate(
        version=version,
        first=min(times),
        last=max(times),
        runs=len(runs),
        rate=percent.rate,
        low=percent.low,
        high=percent.high,
        scored=sum(each.scored > 0 for each in tallies.values()),
        tasks=len(tallies),
        task_sets=frozenset(run.task_set for run in runs),
    )


# Resampling hundreds of tasks takes a tenth of a second, and the runs of most versions are complete.
@lru_cache(maxsize=2_000)
def _percent(tallies: tuple[tuple[int, int, int], ...]) -> Percent:
    return Percent.of([AttemptCounts(*each) for each in tallies])
