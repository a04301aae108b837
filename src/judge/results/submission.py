"""Builds the leaderboard submission from attempts, and reads submission files of all versions.

Limits of a submission: at most `_MAX_ENTRIES` thoughts, actions and screenshots per task, each thought at most
`_MAX_THOUGHT_CHARS` and each action at most `_MAX_ACTION_CHARS` characters. 300 tasks of 15 steps take less than 4 MB,
regardless of what a participant writes; the full record is in `result.json`. If all entries together are larger than
`MAX_ENTRIES_BYTES`, those above an equal share are cut: for a run of 10,000 tasks, little more than outcomes and causes
remains.
"""

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StrictBool, TypeAdapter, model_validator

from judge.records.tasks import Task
from judge.records.verdicts import CHECKS, JudgeInfo, TaskOutcome
from judge.results.attacks import ATTACKS, attack_entry
from judge.results.columns import RowSource
from judge.results.entries import TaskEntry, read_entries
from judge.results.figures import Figures, cluster_in
from judge.results.policies import policy_entries
from judge.results.rates import COVERAGES
from judge.results.rows import ENTRY_COLUMNS, EXCLUDED, emptied, entry_of
from judge.store.bounds import MAX_ENTRIES_BYTES, clip_text, first_of, written_bytes
from judge.trajectory.record import SELF_RECORDED, Attempt
from shared.errors import ConfigError
from shared.fields import Invalid, as_mapping, as_mappings, printable, without_none
from shared.files import read_errors, read_json, sha256_json
from shared.text import clip, counted
from shared.validation import validated

_MAX_ENTRIES = 100
_MAX_THOUGHT_CHARS = 400
_MAX_ACTION_CHARS = 300
# The contract's keys, in its order; the others follow.
_FIRST_KEYS = (
    "task_id",
    "task_id_with_timestamp",
    "website",
    "task_description",
    "level",
    "success",
    "steps_taken",
    "max_steps",
    "thoughts",
    "action_history",
    "screenshots",
    "error",
    "verdict",
    "stop_reason",
)
_LISTS = ("thoughts", "action_history", "screenshots")
# Those that say nothing of what a task is about.
_PUBLIC_KEYS = {each.entry for each in ENTRY_COLUMNS if each.public} | {
    "task_id_with_timestamp",
    "settle",
    "task_sha256",
}
_TEXTS = ("task_description", "error", "reason")

_MAX_FILE_BYTES = 256_000_000
_REMEDY = "give a submission's JSON file"
_MAX_KEYS = 6
# If more of the attempts on frozen sites than this percentage are unconfirmed successes, the archive has too few ways.
_MAX_UNCONFIRMED_PERCENT = 5

Submission = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """The data of a finished task that a run keeps in memory: its submission entry, and input for the run's totals.

    The steps stay on disk, because each takes 4.5 kB as a record. The entry is compressed, to less than 2 kB for 15
    steps instead of 8 kB, so that a run may have thousands of tasks.
    """

    task: Task
    outcome: TaskOutcome
    packed_entry: bytes
    cost_usd: float | None
    judge: JudgeInfo | None
    versions: Mapping[str, str]

    @classmethod
    def of(cls, attempt: Attempt, judge_id: str | None = None) -> Self:
        """The summary of the attempt that counts; `judge_id` is the task's judge, for attempts without a verdict."""
        entry = _entry(attempt, judge_id)
        return cls(
            task=attempt.task,
            outcome=attempt.outcome,
            packed_entry=zlib.compress(json.dumps(entry).encode()),
            cost_usd=attempt.cost_usd,
            judge=attempt.verdict.judge if attempt.verdict else None,
            versions=attempt.versions,
        )

    @property
    def entry(self) -> dict[str, Any]:
        """The task's entry in the submission."""
        return dict(json.loads(zlib.decompress(self.packed_entry)))

    def without(self, keys: Collection[str]) -> Self:
        """The summary without these keys of the entry."""
        entry = {key: value for key, value in self.entry.items() if key not in keys}
        return replace(self, packed_entry=zlib.compress(json.dumps(entry).encode()))


def build_submission(
    *,
    role: str,
    participant_ids: Mapping[str, str],
    results: Sequence[TaskSummary],
    provenance: Mapping[str, Any],
    excluded: Iterable[Mapping[str, Any]] = (),
) -> Submission:
    """The contract's `results.json` for one participant. A role without an id gets `""`.

    `excluded` are the tasks that the scenario leaves out, which are not among the results.
    """
    judge = judge_of(results)
    detail = detail_of(
        read_entries(result.entry for result in results),
        judge=judge.model_dump(mode="json") if judge else {},
        cost_usd=total_cost(result.cost_usd for result in results),
        provenance=provenance,
        excluded=excluded,
    )
    return {"participants": {role: "", **participant_ids}, "results": [{"winner": role, "detail": detail}]}


def judge_of(results: Iterable[TaskSummary]) -> JudgeInfo | None:
    """The judge named in the verdicts; if several methods decided tasks, a judge model rather than ground truth."""
    judges = (each.judge for each in results if each.judge)
    return min(judges, key=lambda judge: (judge.method == CHECKS, judge.is_ground_truth), default=None)


def result_text(submission: Submission) -> str:
    """The `{"winner", "detail"}` object as JSON text for the A2A artifact."""
    return json.dumps(submission["results"][0], allow_nan=False)


def _entry(attempt: Attempt, judge_id: str | None) -> dict[str, Any]:
    """One entry of a submission's `tasks`: the columns of its row, and the keys that only entries have.

    Screenshot paths are relative to the run's folder.
    """
    task = attempt.task
    started = datetime.fromtimestamp(attempt.started_at, UTC)
    above = "" if attempt.epoch == 1 else f"epochs/{attempt.epoch}/"
    screenshots = [f"{above}results/{task.task_id}/{step.screenshot}" for step in attempt.steps if step.screenshot]
    entry = {
        **entry_of(RowSource(attempt, task.task_id, attempt.epoch, attempt.verdict, judge_id=judge_id)),
        "task_id_with_timestamp": f"{task.task_id}_{started:%Y%m%d_%H%M%S_%f}",
        "thoughts": [clip(thought, _MAX_THOUGHT_CHARS) for thought in attempt.thoughts[:_MAX_ENTRIES]],
        "action_history": [clip(line, _MAX_ACTION_CHARS) for line in attempt.action_history[:_MAX_ENTRIES]],
        "screenshots": screenshots[:_MAX_ENTRIES],
        "settle": attempt.settle,
        **without_none(policies=policy_entries(attempt) or None, attack=attack_entry(attempt) or None),
        "task_sha256": task_digest(task),
    }
    if task.sealed:
        entry |= {key: emptied(entry[key]) for key in _LISTS}
    return {key: entry[key] for key in (*_FIRST_KEYS, *entry)}


def task_digest(task: Task) -> str:
    """The SHA-256 of a task as its scenario declares it."""
    # Without defaults, so that keys added to tasks in later versions do not change existing digests.
    return sha256_json(task.declared(exclude_defaults=True))


def public_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry as it would be if its task were sealed: every key, but no value that says what the task is about."""
    return {key: value if key in _PUBLIC_KEYS else emptied(value) for key, value in entry.items()}


def rate_text(counts: Mapping[str, Any]) -> str:
    """The success rate with numerator and denominator, or a note that no task was scored, in one line."""
    return share_text(counts, "success rate ")


def share_text(counts: Mapping[str, Any], name: str = "") -> str:
    """The same, with another name for the rate."""
    if not counts["scored_tasks"]:
        return "no task was scored"
    scored = counted(counts["scored_tasks"], "scored task")
    if _has_repeats(counts):
        scored = f"{counted(counts['scored_attempts'], 'scored attempt')} at {counted(counts['total_tasks'], 'task')}"
    return f"{name}{counts['success_rate']} %, {counts['judged_successes']} of {scored}{bounds_text(counts)}"


def bounds_text(counts: Mapping[str, Any]) -> str:
    """Between which bounds the rate of all tasks would be on live sites, to stand after a rate; empty without any."""
    covered = as_mapping(counts.get("coverage"))
    lower, upper = covered.get("lower_bound"), covered.get("upper_bound")
    return "" if lower is None or upper is None or lower == upper else f", on live sites between {lower} and {upper} %"


def _has_repeats(counts: Mapping[str, Any]) -> bool:
    # Older files do not count attempts.
    return bool(counts.get("attempts", 0) > counts.get("total_tasks", 0))


def lost_attempts(counts: Mapping[str, Any]) -> int:
    """The number of aborted or unscored attempts, without successes that a frozen site does not confirm."""
    unconfirmed = as_mapping(counts.get("coverage")).get("unconfirmed") or 0
    if _has_repeats(counts):
        return int(counts["attempts"] - counts["scored_attempts"] - unconfirmed)
    return int(counts["total_tasks"] - counts["scored_tasks"] - unconfirmed)


def incomplete_note(detail: Mapping[str, Any]) -> str:
    """Why the counts are incomplete, in one line; empty if they are complete."""
    # Of a run that played tasks under attack only, there is nothing to be complete.
    if detail["is_complete"] or (detail.get(ATTACKS) and not detail["total_tasks"]):
        return ""
    total = counted(detail["total_tasks"], "task")
    if _has_repeats(detail):
        total = counted(detail["attempts"], "attempt")
    by_run = sum(each.get("by") == "run" for each in as_mappings(detail.get(EXCLUDED)))
    note = f" ({counted(by_run, 'task')} excluded)" if by_run else ""
    return f"incomplete: {lost_attempts(detail)} of {total} aborted or unscored{note}"


def coverage_note(detail: Mapping[str, Any]) -> str:
    """The coverage of attempts on frozen sites in one line; empty without any."""
    covered = detail.get("coverage")
    if not isinstance(covered, dict):
        return ""
    numbers = {name: covered.get(name, 0) for name in COVERAGES}
    note = f"frozen sites: {counted(numbers['full'], 'attempt')} on recorded answers alone"
    note += f", {numbers['uncertain']} also on uncertain ones, {numbers['off_archive']} off the archive"
    unconfirmed, total = covered.get("unconfirmed") or 0, sum(numbers.values())
    if unconfirmed:
        note += f"; {counted(unconfirmed, 'success', 'successes')} not confirmed"
    if 100 * unconfirmed > _MAX_UNCONFIRMED_PERCENT * total:
        note += ": record more ways (wabe sites record SCENARIO --participant ROLE -o MORE.wacz, then wabe sites merge)"
    return note


def detail_of(
    entries: Sequence[TaskEntry],
    *,
    judge: Mapping[str, Any],
    cost_usd: float | None,
    provenance: Mapping[str, Any],
    excluded: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The `detail` of a result, with all counts computed from the task entries.

    `excluded` are the tasks that the scenario leaves out.
    """
    left_out = [*excluded, *_excluded_by_run(entries)]
    cluster = cluster_in(provenance)
    figures = Figures.of((each.counted for each in entries), cluster)
    counts = figures.all.published()
    interval = counts.pop("confidence_interval_95")
    of_attempts = {name: counts.pop(name) for name in ("attempts", "scored_attempts")}
    return {
        **counts,
        "by_level": {level: rate.published() for level, rate in figures.by_level.items()},
        "confidence_interval_95": interval,
        "judge": dict(judge),
        "cost_usd": cost_usd,
        "provenance": dict(provenance),
        **without_none(sealed=_sealed(entries)),
        **without_none(self_recorded=any(SELF_RECORDED in each.flags for each in entries) or None),
        "tasks": [_within(each.value, MAX_ENTRIES_BYTES // len(entries)) for each in entries],
        # A rate over several kinds of verdicts is always shown together with the rate of each kind.
        "by_truth": {truth: rate.published() for truth, rate in figures.by_truth.items()},
        **of_attempts,
        **without_none(repeats=figures.repeats),
        **(figures.policies.published() if figures.policies else {}),
        **(figures.attacks.published() if figures.attacks else {}),
        **without_none(
            progress=round(figures.progress[0] / 100, 4) if figures.progress else None, excluded=left_out or None
        ),
        **figures.mean_score,
        **without_none(
            by_metadata=[
                {"key": key, "value": value, **rate.published()}
                for key, rates in figures.by_metadata.items()
                for value, rate in rates.items()
            ]
            or None,
            cluster=cluster,
            efficiency=None if figures.efficiency is None else round(figures.efficiency, 4),
        ),
    }


def _sealed(entries: Iterable[TaskEntry]) -> str | None:
    """The digest of the sealed set, of several the digests with commas; `None` if no task is sealed."""
    digests = dict.fromkeys(each.sealed for each in entries if each.sealed)
    return ", ".join(digests) or None


def _excluded_by_run(entries: Iterable[TaskEntry]) -> list[dict[str, Any]]:
    """The tasks that were excluded before the first attempt, each once."""
    reasons = {entry.task_id: entry.excluded for entry in entries if entry.excluded is not None}
    return [{"task_id": task_id, "reason": reason, "by": "run"} for task_id, reason in reasons.items()]


def _within(entry: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The entry in about `limit` written bytes: if larger, its texts and lists are cut at the end."""
    if written_bytes(entry) <= limit:
        return dict(entry)
    cut = {**entry, **{key: [] for key in _LISTS if key in entry}, **{key: "" for key in _TEXTS if entry.get(key)}}
    # Each text gets up to a quarter of the room, and each list a third of what the texts left.
    for number, keys in ((4, _TEXTS), (3, _LISTS)):
        share = max(0, limit - written_bytes(cut)) // number
        for key in keys:
            value = entry.get(key)
            cut |= {key: clip_text(value, share)} if value and isinstance(value, str) else {}
            cut |= {key: list(first_of(value, share, note=False))} if value and isinstance(value, list) else {}
    return cut


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum in USD, `None` when one is unknown."""
    known = list(costs)
    return None if None in known else round(sum(filter(None, known), 0.0), 6)


# Integer or float, but not boolean: one wrong type would turn an entire leaderboard column into text.
_Number = Annotated[float, Field(strict=True)] | None


class _Detail(BaseModel):
    success_rate: _Number = None
    successful_tasks: _Number = None
    completed_tasks: _Number = None
    total_tasks: _Number = None
    judged_successes: _Number = None
    scored_tasks: _Number = None
    unscored_tasks: _Number = None
    aborted_tasks: _Number = None
    attempts: _Number = None
    scored_attempts: _Number = None
    success_rate_of_all: _Number = None
    is_complete: StrictBool | None = None
    tasks: list[dict[str, Any] | None] | None = None


class _ResultEntry(BaseModel):
    detail: _Detail | None = None


class _SubmissionFile(BaseModel):
    participants: dict[str, str | None] | None = None
    results: list[_ResultEntry | None] | None = None

    @model_validator(mode="after")
    def _is_a_submission(self) -> Self:
        if not self.model_fields_set:
            raise Invalid("neither participants nor results", _REMEDY)
        return self


_SUBMISSION = TypeAdapter(_SubmissionFile)


def read_submissions(path: Path) -> list[dict[str, Any]]:
    """The submissions of a JSON file, unchanged: one object, or a list of them. Raises `ConfigError`."""
    with read_errors(path, _REMEDY):
        value = read_json(path, max_bytes=_MAX_FILE_BYTES)
    submissions = value if isinstance(value, list) else [value]
    if not submissions:
        raise ConfigError(f"{path}: an empty list, no submission", remedy=_REMEDY)
    for number, submission in enumerate(submissions):
        validated(_SUBMISSION, submission, path, under=(number,) if isinstance(value, list) else ())
        _require_own(submission, path)
    return submissions


def _require_own(submission: Mapping[str, Any], path: Path) -> None:
    """Raise a `ConfigError` for a submission whose results have none of this benchmark's counts and tasks."""
    results = [as_mapping(result) for result in submission.get("results") or ()]
    details = [as_mapping(result.get("detail")) for result in results]
    keys = dict.fromkeys(key for each in (*results, *details) for key in each if key not in ("winner", "detail"))
    # Some older submissions lack nearly everything.
    if not keys or any(key in each for each in details for key in _Detail.model_fields):
        return
    keys_text = ", ".join(printable(key) for key in list(keys)[:_MAX_KEYS])
    raise ConfigError(
        f"{path}: a submission of another benchmark: its results have {keys_text}, "
        "but neither detail.success_rate nor detail.tasks",
        remedy="leave this file out",
    )
