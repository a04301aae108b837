"""Task results to the leaderboard submission. Pure; the counts must add up.

Limits of a submission: at most `MAX_ENTRIES` thoughts, actions and screenshots a task, each thought at most
`MAX_THOUGHT_CHARS` and each action at most `MAX_ACTION_CHARS` characters. 300 tasks of 15 steps stay under 4 MB
whatever a participant writes; the full record is in `result.json`. Entries that are too large together for one file to
be read back are cut to equal shares of it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from judge.record_limits import MAX_ENTRIES_BYTES, first_of, fit, written_bytes
from judge.results.statistics import exact
from judge.trajectory.result import TaskOutcome as TaskOutcome
from judge.trajectory.result import TaskResult as TaskResult
from judge.trajectory.result import classify as classify
from judge.trajectory.result import finite
from shared.errors import WabeError
from shared.models import JudgeInfo, Task

# More tasks than this without a verdict, in percent of all, make a submission incomplete.
MAX_LOST_PERCENT = 5
MAX_ENTRIES = 100
MAX_THOUGHT_CHARS = 400
MAX_ACTION_CHARS = 300
_MAX_TEXT_CHARS = 2000
_LISTS = ("thoughts", "action_history", "screenshots")
_TEXTS = ("task_description", "error", "reason")
_OUTCOMES: tuple[TaskOutcome, ...] = ("success", "failure", "unscored", "aborted")
_LEVELS = ("easy", "medium", "hard")
_ENDED_ITSELF = re.compile(r"-> (FINISH|BROWSER_CLOSE)\b")

Submission = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """What a run keeps in memory of a task that is done, under 8 kB for 16 steps: its entry in the submission, and what
    the run as a whole is told by.

    The steps are on disk; as records they take 4.5 kB each, and a long run would grow by all of them.
    """

    task: Task
    entry: Mapping[str, Any]
    cost_usd: float | None
    judge: JudgeInfo | None
    versions: Mapping[str, str]

    @classmethod
    def of(cls, result: TaskResult) -> Self:
        """The summary of a result."""
        return cls(
            task=result.task,
            entry=task_entry(result),
            cost_usd=result.cost_usd,
            judge=result.verdict.judge if result.verdict else None,
            versions=result.versions,
        )

    @property
    def outcome(self) -> TaskOutcome:
        """What the task counts as."""
        return _outcome(self.entry)


def build_submission(
    *,
    role: str,
    participant_ids: Mapping[str, str],
    results: Sequence[TaskSummary],
    judge: JudgeInfo | None,
    provenance: Mapping[str, Any],
) -> Submission:
    """The contract's `results.json` for one participant. A role without an id gets `""`."""
    detail = detail_of(
        [result.entry for result in results],
        judge=judge.model_dump(mode="json") if judge else {},
        cost_usd=total_cost(result.cost_usd for result in results),
        provenance=provenance,
    )
    return {
        "participants": {role: "", **participant_ids},
        "results": [{"winner": role, "detail": detail}],
    }


def result_text(submission: Submission) -> str:
    """The `{"winner", "detail"}` object as JSON text, as the A2A artifact carries it."""
    return json.dumps(submission["results"][0], allow_nan=False)


def task_entry(result: TaskResult) -> dict[str, Any]:
    """One entry of a submission's `tasks`. Screenshot paths are relative to the run's folder."""
    task = result.task
    started = datetime.fromtimestamp(result.started_at, UTC)
    folder = f"results/{task.task_id}"
    return {
        "task_id": task.task_id,
        "task_id_with_timestamp": f"{task.task_id}_{started:%Y%m%d_%H%M%S_%f}",
        "website": task.website,
        "task_description": _cut(task.task, _MAX_TEXT_CHARS),
        "level": task.level,
        "success": result.outcome == "success",
        "steps_taken": result.steps_taken,
        "max_steps": result.max_steps,
        "thoughts": [_cut(thought, MAX_THOUGHT_CHARS) for thought in result.thoughts[:MAX_ENTRIES]],
        "action_history": [_cut(line, MAX_ACTION_CHARS) for line in result.action_history[:MAX_ENTRIES]],
        "screenshots": [f"{folder}/{step.screenshot}" for step in result.steps if step.screenshot][:MAX_ENTRIES],
        "error": None if result.cause is None else _cut(result.cause, _MAX_TEXT_CHARS),
        "verdict": result.outcome,
        "stop_reason": result.stop_reason,
        # Beyond the contract's keys: why, in a line, and what was noticed.
        "reason": _cut(result.verdict.reason, _MAX_TEXT_CHARS) if result.verdict else None,
        "flags": result.flags,
    }


def counts_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The counts and rates of task entries, from nothing but the entries. Raises `WabeError` if they do not add up.

    `success_rate` is in percent to one decimal, 0.0 when nothing was scored; `confidence_interval_95` is Sterne's
    exact interval of it, in percent to one decimal, [0.0, 100.0] when nothing was scored. `success_rate_of_all` has
    every task in its denominator, so an aborted or unscored task weighs as much as a failure.
    """
    listed = list(entries)
    outcomes = Counter(_outcome(entry) for entry in listed)
    successes, scored = outcomes["success"], outcomes["success"] + outcomes["failure"]
    ended = sum(_ended_itself(entry) for entry in listed)
    low, high = exact(successes, scored)
    counts = {
        "success_rate": percent(successes, scored),
        "successful_tasks": ended,
        "completed_tasks": ended,
        "total_tasks": len(listed),
        "judged_successes": successes,
        "scored_tasks": scored,
        "unscored_tasks": outcomes["unscored"],
        "aborted_tasks": outcomes["aborted"],
        "success_rate_of_all": percent(successes, len(listed)),
        "is_complete": is_complete(scored, len(listed)),
        "confidence_interval_95": [round(100 * low, 1), round(100 * high, 1)],
    }
    check_counts(counts)
    return counts


def percent(part: int, whole: int) -> float:
    """`part` of `whole` in percent to one decimal; 0.0 of nothing."""
    return round(100 * part / whole, 1) if whole else 0.0


def is_complete(scored: int, total: int) -> bool:
    """Whether at most `MAX_LOST_PERCENT` of the tasks are aborted or unscored. A run without a task is not complete."""
    return total > 0 and 100 * (total - scored) <= MAX_LOST_PERCENT * total


def incomplete_note(detail: Mapping[str, Any]) -> str:
    """What makes the counts incomplete, in a line; empty when they are complete."""
    if detail["is_complete"]:
        return ""
    total = detail["total_tasks"]
    return f"incomplete: {total - detail['scored_tasks']} of {total} tasks aborted or unscored"


def check_counts(detail: Mapping[str, Any]) -> None:
    """Raise `WabeError` when total ≠ scored + unscored + aborted, or a part is larger than its whole."""
    total, scored = detail["total_tasks"], detail["scored_tasks"]
    if total != scored + detail["unscored_tasks"] + detail["aborted_tasks"]:
        raise WabeError(
            f"{total} tasks are not {scored} scored + {detail['unscored_tasks']} unscored"
            f" + {detail['aborted_tasks']} aborted"
        )
    if not 0 <= detail["judged_successes"] <= scored or not 0 <= detail["successful_tasks"] <= total:
        raise WabeError("more successes are counted than tasks")
    if detail["completed_tasks"] != detail["successful_tasks"]:
        raise WabeError("completed_tasks and successful_tasks are one count under two names, and differ")


def detail_of(
    entries: Sequence[Mapping[str, Any]],
    *,
    judge: Mapping[str, Any],
    cost_usd: float | None,
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """The `detail` of a result, all its counts made from the task entries."""
    counts = counts_of(entries)
    interval = counts.pop("confidence_interval_95")
    present = {_level(entry) for entry in entries}
    by_level = {
        level: counts_of(entry for entry in entries if _level(entry) == level)
        for level in (*_LEVELS, "unknown")
        if level in present
    }
    return {
        **counts,
        "by_level": by_level,
        "confidence_interval_95": interval,
        "judge": dict(judge),
        "cost_usd": cost_usd,
        "provenance": finite(provenance),
        "tasks": [_within(entry, MAX_ENTRIES_BYTES // len(entries)) for entry in entries],
    }


def _within(entry: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The entry in at most `limit` bytes as written: of a larger one the lists are cut at their end, and the texts."""
    if written_bytes(entry) <= limit:
        return dict(entry)
    lists = {key: list(first_of(entry[key], limit // 6, note=False)) for key in _LISTS if key in entry}
    return {**entry, **{key: fit(entry.get(key), limit // 8) for key in _TEXTS}, **lists}


def _outcome(entry: Mapping[str, Any]) -> TaskOutcome:
    """An entry's outcome; older files have none, and say only `success`, or `passed`."""
    for outcome in _OUTCOMES:
        if entry.get("verdict") == outcome:
            return outcome
    return "success" if entry.get("success", entry.get("passed")) is True else "failure"


def _ended_itself(entry: Mapping[str, Any]) -> bool:
    """Whether the participant ended the episode by `finish` or `browser_close`.

    Older files say so by `finished`, or show it as an action.
    """
    if isinstance(entry.get("stop_reason"), str):
        return bool(entry["stop_reason"] == "finished")
    if isinstance(entry.get("finished"), bool):
        return bool(entry["finished"])
    history = entry.get("action_history")
    return bool(isinstance(history, list) and history and _ENDED_ITSELF.search(str(history[-1])))


def _level(entry: Mapping[str, Any]) -> str:
    level = entry.get("level")
    return level if level in _LEVELS else "unknown"


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum in USD, `None` when one is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return round(total, 6)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
