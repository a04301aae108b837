"""Compares a run with an earlier one, for `wabe run --baseline`: which tasks that the earlier one solved are lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from judge.results.comparison import compare
from judge.results.entries import TaskEntry, read_entries
from judge.results.statistics import tallies_of
from judge.results.submission import read_submissions
from judge.runner.followers import Follower, FollowUp
from judge.runner.options import RunOptions
from judge.store.layout import find_run
from shared.errors import ConfigError
from shared.models import Record
from shared.text import counted, one_line

_MAX_NAMED = 20
_NO_RESULTS = "finish that run first, or name another one"


@dataclass(frozen=True)
class Baseline:
    """An earlier run's task entries. `name` identifies it: the run's id, or the path of a submission."""

    name: str
    entries: Sequence[TaskEntry]


class BaselineComparison(Record):
    """A run against its baseline. `lost` are tasks with a lower rate, `undecided` those without a verdict now.

    `paired`, `gained`, `lost` and `p` are those of a comparison in the report: only tasks scored in both runs.
    `excluded` are those among the baseline's that this run excluded on purpose.
    """

    baseline: str
    paired: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    undecided: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    changed: tuple[str, ...]
    missing: int
    p: float

    def is_worse(self, max_p: float | None) -> bool:
        """Whether the run fails: a task is no longer solved; with `max_p`, only if the p-value is at most that. Without
        a task to compare, nothing is shown, so that fails as well.
        """
        if not self.paired:
            return True
        if max_p is None:
            return bool(self.lost or self.undecided)
        return len(self.lost) > len(self.gained) and self.p <= max_p

    def lines(self) -> list[str]:
        """The lines for the user; the first one has the numbers."""
        text_lines = [
            f"Baseline {self.baseline}: {counted(self.paired, 'task')} scored in both runs, {len(self.gained)} gained,"
            f" {len(self.lost)} lost, p = {self.p:.3g} (McNemar's exact test)"
        ]
        for what, names in (
            ("lost", self.lost),
            ("solved there, without a verdict here", self.undecided),
            ("excluded here, so not compared", self.excluded),
            ("not compared, because text or website differ", self.changed),
        ):
            if names:
                more = f", … {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
                text_lines.append(f"  {what}: {one_line(', '.join(names[:_MAX_NAMED]))}{more}")
        if self.missing:
            text_lines.append(f"  not in this run: {counted(self.missing, 'task')} of the baseline")
        return text_lines


@dataclass
class Against(Follower):
    """Compares the run with its baseline."""

    baseline: Baseline

    @classmethod
    def of(cls, options: RunOptions) -> Self | None:
        """If there is one. Raises `ConfigError` for one without results."""
        named, limit = options.value("baseline"), options.value("baseline_p")
        if limit is not None and (named is None or not 0 < limit <= 1):
            remedy = "give a number above 0, at most 1, together with --baseline RUN"
            raise ConfigError(f"--baseline-p {limit:g} is not usable", remedy=remedy)
        if named is None:
            return None
        # Before the run exists, because `latest` means the one before it.
        baseline = read_baseline(named, options.output_dir)
        return cls(options.model_copy(update={"baseline": baseline.name}), baseline)

    def planned(self, run_id: str) -> None:
        """Raises `ConfigError` for a run that is its own baseline."""
        if run_id == self.baseline.name:
            raise ConfigError(f"--baseline {self.baseline.name} is the run itself", remedy="name an earlier run")

    def concluded(self, submission: dict[str, Any], scenario: Path, report: Path | None) -> FollowUp:
        """The comparison."""
        comparison = compared(self.baseline, submission)
        is_worse = comparison.is_worse(self.options.value("baseline_p"))
        return FollowUp(comparison.lines(), is_worse, {"baseline": comparison.model_dump(mode="json")})


def read_baseline(argument: str, output_dir: Path) -> Baseline:
    """A run by id, folder or `latest`, or a submission file. Raises `ConfigError` if it has no results."""
    path = Path(argument)
    if path.is_file():
        return Baseline(argument, _entries(path))
    store = find_run(argument, output_dir)
    path = store.folder / "results.json"
    if not path.is_file():
        raise ConfigError(f"--baseline {argument}: run {store.run_id} has no results.json", remedy=_NO_RESULTS)
    is_here = store.output_dir.resolve() == output_dir.resolve()
    return Baseline(store.run_id if is_here else str(store.folder), _entries(path))


def compared(baseline: Baseline, submission: Mapping[str, Any]) -> BaselineComparison:
    """The run with this submission against its baseline."""
    entries = _of(submission)
    later = {entry.task_id: entry for entry in entries}
    before = [_with_text(entry, later.get(entry.task_id)) for entry in baseline.entries]
    comparison = compare(before, entries)
    excluded = {entry.task_id for entry in entries if entry.excluded is not None}
    was, now = (tallies_of((entry.task_id, entry.outcome) for entry in each) for each in (before, entries))
    return BaselineComparison(
        baseline=baseline.name,
        paired=comparison.paired,
        gained=comparison.gained,
        lost=comparison.lost,
        undecided=tuple(
            name
            for name in was
            if was[name].successes
            and name in now
            and not now[name].scored
            and name not in (*comparison.changed_tasks, *excluded)
        ),
        excluded=tuple(name for name in was if name in excluded),
        changed=comparison.changed_tasks,
        missing=comparison.only_first,
        p=comparison.p,
    )


def _entries(path: Path) -> list[TaskEntry]:
    return _of(read_submissions(path)[0])


def _of(submission: Mapping[str, Any]) -> list[TaskEntry]:
    values = (entry for result in submission["results"][:1] for entry in result["detail"]["tasks"])
    return [entry for entry in read_entries(values) if entry.is_clean]


def _with_text(entry: TaskEntry, later: TaskEntry | None) -> TaskEntry:
    """Older submissions have no texts, so ids are compared."""
    if entry.task_template or entry.task or later is None:
        return entry
    return replace(entry, task=later.task_template or later.task, website=later.website)
