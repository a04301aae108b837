"""The entries of a submission's `tasks`, from any version and any judge: each is read once, into a row."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, get_args

from judge.records.ledger import Coverage
from judge.records.metadata import metadata_in
from judge.records.tasks import Level, key_of
from judge.records.verdicts import TaskOutcome
from judge.results.attacks import attack_in
from judge.results.columns import Column
from judge.results.figures import kinds_of
from judge.results.policies import policies_in
from judge.results.rates import CountedAttempt, Rate
from judge.results.rows import ENTRY_COLUMNS, EXCLUDED, AttemptRow
from judge.trajectory.record import ATTACK, POLICIES
from shared.fields import as_mapping

_ENDED_ITSELF = re.compile(r"-> (FINISH|BROWSER_CLOSE)\b")
_MAX_NUMBER = 10**15


@dataclass(frozen=True, kw_only=True)
class TaskEntry(AttemptRow):
    """An attempt as a submission lists it; a value that cannot be used is as if it were absent.

    `value` is the entry as it stands in the file. `repeated` is the task whose repeats the entry is one of: in files
    without epochs, every entry is another task. `excluded` is why the run excluded the task before its first attempt:
    it counts as aborted, but nothing can be retried.
    """

    value: Mapping[str, Any]
    repeated: str

    @classmethod
    def read(cls, value: Any, place: int = 0) -> Self:
        """The entry at this place among its submission's. Raises `TypeError` for anything but a table."""
        if not isinstance(value, Mapping):
            raise TypeError(f"an entry of a submission is a table, not {type(value).__name__}")
        columns = {each.name: _usable(value.get(each.entry), each) for each in ENTRY_COLUMNS}
        task_id, epoch, outcome = str(value.get("task_id")), value.get("epoch", 1), _outcome(value)
        columns |= {
            "task_id": task_id,
            "epoch": epoch if type(epoch) is int else 1,
            "verdict": outcome,
            "level": _one_of(Level, value.get("level")),
            "coverage": _one_of(Coverage, value.get("coverage")),
            "stop_reason": columns["stop_reason"] or ("finished" if _is_finished(value) else ""),
            EXCLUDED: columns[EXCLUDED] if outcome == "aborted" else None,
            "metadata": metadata_in(value.get("metadata") or {}) or None,
        }
        columns |= {name: None for name in ("progress", "score", "efficiency") if not 0 <= (columns[name] or 0) <= 1}
        columns |= policies_in(value.get(POLICIES)) | attack_in(as_mapping(value.get(ATTACK)))
        repeated = task_id if "epoch" in value else f"entry {place}"
        return cls.without_attempt(**columns, value=value, repeated=repeated)

    @property
    def key(self) -> str:
        """The name of the task in its epoch. Raises `KeyError` for an entry that names no task."""
        return key_of(str(self.value["task_id"]), self.epoch)

    @property
    def outcome(self) -> TaskOutcome:
        """The verdict."""
        return _outcome(self.value)

    @property
    def why(self) -> str:
        """The verdict's reason, the error or the stop reason."""
        return self.reason or self.error or self.stop_reason

    @property
    def counted(self) -> CountedAttempt:
        """What it contributes to the figures of a run."""
        return super().counted._replace(task=self.repeated)


def read_entries(values: Iterable[Mapping[str, Any]]) -> list[TaskEntry]:
    """The entries of one submission."""
    return [TaskEntry.read(value, place) for place, value in enumerate(values)]


def rate_of(entries: Iterable[TaskEntry]) -> Rate:
    """The rate of the entries of clean tasks, computed from the entries alone."""
    return Rate.of(each.counted for each in entries if each.is_clean)


def counts_of(values: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The published counts and rates of entries as they stand in a submission."""
    return rate_of(read_entries(values)).published()


def decided(entries: Iterable[TaskEntry]) -> dict[str, int]:
    """The number of entries decided by each kind of judge; of excluded tasks nothing decided."""
    counts = Counter(entry.decided_by for entry in entries if entry.excluded is None)
    return {truth: counts[truth] for truth in kinds_of(counts)}


def _usable(value: Any, column: Column) -> Any:
    """The value of a column, if it is of its type; otherwise what an entry without it has."""
    if column.is_number and isinstance(value, int | float) and -_MAX_NUMBER <= value <= _MAX_NUMBER:
        return column.type(value)
    if column.type is tuple and isinstance(value, list | tuple):
        return tuple(map(str, value))
    is_fitting = isinstance(value, column.type) and not column.is_number
    return value if is_fitting else column.empty if column.missing is None else column.missing


def _outcome(value: Mapping[str, Any]) -> TaskOutcome:
    """Older files have only `success`, or `passed`."""
    outcome: TaskOutcome | None = _one_of(TaskOutcome, value.get("verdict"))
    return outcome or ("success" if value.get("success", value.get("passed")) is True else "failure")


def _is_finished(value: Mapping[str, Any]) -> bool:
    """Older files have `finished` instead of a stop reason, or only the action."""
    if isinstance(value.get("stop_reason"), str):
        return bool(value["stop_reason"] == "finished")
    if isinstance(value.get("finished"), bool):
        return bool(value["finished"])
    history = value.get("action_history")
    return bool(isinstance(history, list) and history and _ENDED_ITSELF.search(str(history[-1])))


def _one_of(choices: Any, value: object) -> Any:
    """The value if it is one of a `Literal`'s."""
    return value if isinstance(value, str) and value in get_args(choices) else None
