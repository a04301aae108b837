"""The totals of a run's rows. Pure.

Every row is counted, including aborted, unscored and unfinished ones.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from statistics import fmean, median
from typing import NamedTuple

from judge.records.metadata import shown
from judge.report.data import Phases, TaskRow
from judge.results.columns import Column
from judge.results.figures import Figures
from judge.results.given_verdicts import JudgeName, JudgeVerdicts, cost_of, judge_names, judged_by, once
from judge.results.metering import MeteredUsage
from judge.results.rates import CountedAttempt, Rate, RowOutcome, rates_of
from judge.results.significance import ClusteredMean, clustered_interval
from judge.results.statistics import tallies_of
from shared.models import TokenUsage

_STATED = ("input_tokens", "output_tokens", "cost_usd")


class UsageClaims(NamedTuple):
    """Tokens, and US dollars (`None` if an attempt does not say), that are stated for so many attempts."""

    attempts: int
    input: int
    output: int
    cost_usd: float | None


@dataclass(frozen=True)
class Totals(Figures):
    """A run in numbers. Tasks under attack count in times, tokens and costs as well.

    Times are seconds, `None` if no attempt has any; so is `cost_usd` if one cost is unknown."""

    by_site: dict[str, Rate]
    cost_usd: float | None
    known_cost_usd: float
    tokens: TokenUsage
    phases: Phases
    task_time_s: float | None
    median_task_s: float | None
    steps: int
    completed: int
    retried: int
    scores: dict[str, int]
    flags: dict[str, int]
    by_judge: dict[JudgeName, Rate]
    # The cost of all verdicts, by judge and in total (`None` if a price is unknown), and the names of the judges by id.
    judged: tuple[JudgeVerdicts, ...]
    judging_cost_usd: float | None
    judge_names: dict[str, JudgeName]
    # The rate of attempts that the participant ended itself: neither aborted nor over a budget.
    of_completed: Rate
    # How many clusters of tasks there are, if intervals are clustered; otherwise the interval clustered by website.
    clusters: int | None = None
    clustered: ClusteredMean | None = None
    # All metered calls of the participant's, also between attempts; `None` if none was metered.
    metered: MeteredUsage | None = None
    # Successes without any action on a page, and successes whose answer was on no page that was observed.
    without_action: int = 0
    unseen_answers: int = 0
    # What participants say of their models themselves, and other programs: shown apart, and compared with nothing.
    claimed: UsageClaims | None = None
    recorded: UsageClaims | None = None

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
    def judges(self) -> str:
        """Whether judges disagree on one of the attempts: `disagree`, `agree`, or nothing with fewer than two."""
        judges = {row.judges for row in self.attempts}
        return next((each for each in ("disagree", "agree") if each in judges), "")

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
        known = [row.duration_s for row in self.attempts if row.has_result and row.duration_s is not None]
        return fmean(known) if known else None

    def shown(self, column: Column) -> tuple[float | None, str]:
        """A column on the page: the mean of numbers, to sort by, and its text; of anything else every other value."""
        if column.is_number:
            mean = self.mean(column.name)
            return mean, f"{round(mean, 1):g}" if mean else ""
        if column.type is dict:
            return None, ", ".join(
                f"{key}: {shown(value)}" for key, value in (getattr(self.first, column.name) or {}).items()
            )
        cells = (row.cells()[column.name] for row in self.attempts)
        return None, ", ".join(dict.fromkeys(str(cell) for cell in cells if cell not in (None, "")))

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
    rows_by_task: defaultdict[str, list[TaskRow]] = defaultdict(list)
    for row in rows:
        rows_by_task[row.task_id].append(row)
    return [TaskGroup(tuple(sorted(each, key=lambda row: row.epoch))) for each in rows_by_task.values()]


def totals_of(rows: Sequence[TaskRow], metered: MeteredUsage | None = None, cluster: str | None = None) -> Totals:
    """All totals of a run; `metered` are the participant's model calls, `cluster` the key of its clusters."""
    costs = [row.cost_usd for row in rows if row.has_result]
    known = [cost for cost in costs if cost is not None]
    durations = [row.duration_s for row in rows if row.has_result and row.duration_s is not None]
    clean = [row for row in rows if row.is_clean]
    attempts = [row.counted.clustered_by(cluster) for row in clean]
    completed = [attempt for attempt in attempts if attempt.ended_itself]
    given_verdicts = [each for row in rows for each in row.given_verdicts]
    names = judge_names({each.judge_id: each.name for each in given_verdicts})
    names |= {once(judge_id): name for judge_id, name in names.items()}
    return Totals(
        **vars(Figures.of((row.counted for row in rows), cluster)),
        by_site=rates_of((row.site, attempt) for row, attempt in zip(clean, attempts, strict=True)),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        known_cost_usd=sum(known),
        tokens=sum((row.tokens for row in rows), TokenUsage()),
        phases=Phases(*(sum(getattr(row.phases, phase.name) for row in rows) for phase in fields(Phases))),
        task_time_s=sum(durations) if durations or not any(row.has_result for row in rows) else None,
        median_task_s=median(durations) if durations else None,
        steps=sum(row.steps for row in rows),
        completed=len(completed),
        retried=sum(row.attempt > 1 for row in rows),
        scores=_scores(rows),
        flags=dict(Counter(flag for row in rows for flag in row.flags)),
        by_judge=rates_of(
            (names[each.judge_id], CountedAttempt(row.task_id, each.outcome))
            for row in clean
            for each in row.given_verdicts
            if each.is_stored
        ),
        judged=judged_by(given_verdicts),
        judging_cost_usd=cost_of(given_verdicts),
        judge_names=names,
        of_completed=Rate.of(completed),
        clusters=len({each.cluster or f" {each.task}" for each in attempts}) if cluster else None,
        clustered=None if cluster else clustered_interval(_rates_by_site(clean)),
        metered=metered,
        without_action=sum(row.outcome == "success" and row.page_actions == 0 and bool(row.steps) for row in clean),
        unseen_answers=sum(row.outcome == "success" and row.answer_seen is False for row in clean),
        claimed=_stated(rows, "claimed"),
        recorded=_stated([row for row in rows if row.usage_source == "recorded"], "participant"),
    )


def _stated(rows: Sequence[TaskRow], prefix: str) -> UsageClaims | None:
    """The sums of the columns that begin with this word."""
    saying = [row for row in rows if any(getattr(row, f"{prefix}_{name}") is not None for name in _STATED)]
    inputs, outputs, costs = ([getattr(row, f"{prefix}_{name}") for row in saying] for name in _STATED)
    known = [cost for cost in costs if cost is not None]
    return (
        UsageClaims(
            attempts=len(saying),
            input=sum(count or 0 for count in inputs),
            output=sum(count or 0 for count in outputs),
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


def _scores(rows: Sequence[TaskRow]) -> dict[str, int]:
    """How often each score was given; `none` counts replies without one."""
    # Checks give only 5 (passed here first) and 1, which says nothing about relevance.
    judged = [row for row in rows if row.decided_by != "checks"]
    counter = Counter(str(score) if score is not None else "none" for row in judged for score in row.scores)
    names = ["1", "2", "3", "4", "5"] + (["none"] if counter["none"] else [])
    return {name: counter[name] for name in names} if counter else {}
