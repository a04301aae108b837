"""What two runs took for the tasks that both scored, where one of them uses the sites' tools. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean

from judge.report.data import TaskRow

_SCORED = ("success", "failure")


@dataclass(frozen=True)
class Effort:
    """Means per attempt of a run at the tasks that both runs scored; `success` in percent.

    `tokens` of the participant's model and `cost_usd` are `None` unless they are known of every attempt. `is_claimed`:
    they are what the participant says, because no meter measured them.
    """

    letter: str
    site_tools: str
    success: float
    steps: float
    calls: float
    seconds: float | None
    tokens: float | None
    cost_usd: float | None
    is_claimed: bool


def effort_of(letter: str, rows: Sequence[TaskRow], tasks: Collection[str]) -> Effort | None:
    """The effort of a run at these tasks; `None` if it played none of them."""
    scored_rows = [row for row in rows if row.task_id in tasks and row.attack is None and row.verdict in _SCORED]
    if not scored_rows:
        return None
    is_claimed = any(row.participant_calls is None and row.usage_source != "recorded" for row in scored_rows)
    used = [_claimed(row) if is_claimed else _metered(row) for row in scored_rows]
    return Effort(
        letter=letter,
        site_tools=" and ".join(sorted({row.site_tools or "off" for row in scored_rows})),
        success=100 * fmean(row.verdict == "success" for row in scored_rows),
        steps=fmean(row.steps for row in scored_rows),
        calls=fmean(row.site_tool_calls for row in scored_rows),
        seconds=_mean([row.duration_s for row in scored_rows]),
        tokens=_mean([tokens for tokens, _ in used]),
        cost_usd=_mean([cost for _, cost in used]),
        is_claimed=is_claimed,
    )


def efforts_of(
    first: tuple[str, Sequence[TaskRow]], later: tuple[str, Sequence[TaskRow]], tasks: Collection[str]
) -> tuple[Effort, ...]:
    """The efforts of two runs at the tasks that both scored; none if they used the sites' tools in the same way."""
    efforts = [effort_of(letter, rows, tasks) for letter, rows in (first, later)]
    known_efforts = tuple(each for each in efforts if each is not None)
    return known_efforts if len({each.site_tools for each in known_efforts}) == 2 else ()


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
