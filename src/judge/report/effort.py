"""What two runs took for the tasks that both scored, where they were played in different modes. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from judge.report.data import TaskRow
from judge.results.columns import Column
from judge.results.rows import COLUMNS

_SCORED = ("success", "failure")


@dataclass(frozen=True)
class Effort:
    """Means per attempt of a run at the tasks that both runs scored; `success` in percent.

    `modes` are the values of columns with a mode (`judge.results.columns.Column`), by name, and `counts` the means of
    their counts. `tokens` of the participant's model and `cost_usd` are `None` unless they are known of every attempt.
    `is_claimed`: they are what the participant says, because no meter measured them.
    """

    letter: str
    modes: Mapping[str, str]
    success: float
    steps: float
    counts: Mapping[str, float | None]
    seconds: float | None
    tokens: float | None
    cost_usd: float | None
    is_claimed: bool


def effort_of(letter: str, rows: Sequence[TaskRow], tasks: Collection[str]) -> Effort | None:
    """The effort of a run at these tasks; `None` if it played none of them."""
    scored_rows = [row for row in rows if row.task_id in tasks and row.is_clean and row.verdict in _SCORED]
    if not scored_rows:
        return None
    is_claimed = any(row.participant_calls is None and row.usage_source != "recorded" for row in scored_rows)
    used = [_claimed(row) if is_claimed else _metered(row) for row in scored_rows]
    return Effort(
        letter=letter,
        modes={each.name: _mode(each, scored_rows) for each in COLUMNS if each.mode},
        success=100 * fmean(row.verdict == "success" for row in scored_rows),
        steps=fmean(row.steps for row in scored_rows),
        counts={each.name: _mean([getattr(row, each.name) for row in scored_rows]) for each in COLUMNS if each.of_mode},
        seconds=_mean([row.duration_s for row in scored_rows]),
        tokens=_mean([tokens for tokens, _ in used]),
        cost_usd=_mean([cost for _, cost in used]),
        is_claimed=is_claimed,
    )


def efforts_of(
    first: tuple[str, Sequence[TaskRow]], later: tuple[str, Sequence[TaskRow]], tasks: Collection[str]
) -> tuple[Effort, ...]:
    """The efforts of two runs at the tasks that both scored; none if they were played in the same modes."""
    efforts = [effort_of(letter, rows, tasks) for letter, rows in (first, later)]
    known_efforts = tuple(each for each in efforts if each is not None)
    return known_efforts if differing([known_efforts]) else ()


def differing(efforts: Iterable[Sequence[Effort]]) -> tuple[Column, ...]:
    """The columns of modes that differ between two runs, each with its counts."""
    names = {
        name for pair in efforts if pair for name in pair[0].modes if len({each.modes[name] for each in pair}) == 2
    }
    return tuple(each for each in COLUMNS if each.name in names or each.of_mode in names)


def _mode(column: Column, rows: Sequence[TaskRow]) -> str:
    return " and ".join(sorted({str(getattr(row, column.name) or column.mode) for row in rows}))


def _metered(row: TaskRow) -> tuple[float | None, float | None]:
    return _sum(row.participant_input_tokens, row.participant_output_tokens), row.participant_cost_usd


def _claimed(row: TaskRow) -> tuple[float | None, float | None]:
    return _sum(row.claimed_input_tokens, row.claimed_output_tokens), row.claimed_cost_usd


def _sum(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None
