"""The entries of a submission's `tasks`, from any version and any judge: read once, into one record each."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, get_args

from judge.records.attacks import AttackOutcome
from judge.records.ledger import Coverage
from judge.records.policies import PolicyResult
from judge.records.tasks import Level, key_of
from judge.records.verdicts import CHECKS, JUDGE, TaskOutcome, is_unconfirmed
from judge.results.attacks import attack_in
from judge.results.policies import policies_in
from judge.results.progress import progress_in
from judge.results.rates import CountedAttempt, Rate
from judge.results.rows import EXCLUDED
from judge.trajectory.record import ATTACK, POLICIES
from shared.fields import as_mapping

_ENDED_ITSELF = re.compile(r"-> (FINISH|BROWSER_CLOSE)\b")
T = TypeVar("T")


@dataclass(frozen=True)
class TaskEntry:
    """An attempt as a submission lists it; a value that cannot be used is as if it were absent.

    `value` is the entry as it stands in the file. `repeated` is the task whose repeats the entry is one of: in files
    without epochs, every entry is another task. `excluded` is why the run excluded the task before its first attempt:
    it counts as aborted, but nothing can be retried. `is_finished`: the participant ended the attempt itself. `why` is
    the verdict's reason, the error or the stop reason. `sealed` is the digest of the sealed set that the task is of.
    `text` has dates as the scenario has them; `""` in older files.
    """

    value: Mapping[str, Any]
    task_id: str
    epoch: int
    repeated: str
    outcome: TaskOutcome
    is_finished: bool
    level: Level | None
    decided_by: str | None
    coverage: Coverage | None
    excluded: str | None
    attack: AttackOutcome | None
    policies: tuple[PolicyResult, ...]
    progress: float | None
    score: float | None
    flags: tuple[str, ...]
    why: str
    reason_code: str | None
    steps_taken: int
    max_steps: int
    duration_s: float
    stop_reason: str | None
    text: str
    website: str
    sealed: str | None

    @classmethod
    def read(cls, value: Any, place: int = 0) -> Self:
        """The entry at this place among its submission's. Raises `TypeError` for anything but a table."""
        if not isinstance(value, Mapping):
            raise TypeError(f"an entry of a submission is a table, not {type(value).__name__}")
        task_id, epoch = str(value.get("task_id")), value.get("epoch", 1)
        outcome, excluded, flags = _outcome(value), value.get(EXCLUDED), value.get("flags")
        return cls(
            value=value,
            task_id=task_id,
            epoch=epoch if type(epoch) is int else 1,
            repeated=task_id if "epoch" in value else f"entry {place}",
            outcome=outcome,
            is_finished=_is_finished(value),
            level=_one_of(Level, value.get("level")),
            decided_by=truth if isinstance(truth := value.get("decided_by"), str) and truth else None,
            coverage=_one_of(Coverage, value.get("coverage")),
            excluded=excluded if isinstance(excluded, str) and outcome == "aborted" else None,
            attack=attack_in(as_mapping(value.get(ATTACK))),
            policies=tuple(policies_in(value.get(POLICIES))),
            progress=progress_in(value.get("progress")),
            score=progress_in(value.get("score")),
            flags=tuple(map(str, flags)) if isinstance(flags, list | tuple) else (),
            why=str(value.get("reason") or value.get("error") or value.get("stop_reason") or ""),
            reason_code=code if isinstance(code := value.get("reason_code"), str) else None,
            steps_taken=int(_number(value.get("steps_taken"))),
            max_steps=int(_number(value.get("max_steps"))),
            duration_s=_number(value.get("duration_s")),
            stop_reason=stop if isinstance(stop := value.get("stop_reason"), str) else None,
            text=str(value.get("task_template") or value.get("task_description") or ""),
            website=str(value.get("website") or ""),
            sealed=digest if isinstance(digest := value.get("sealed"), str) else None,
        )

    @property
    def key(self) -> str:
        """The name of the task in its epoch. Raises `KeyError` for an entry that names no task."""
        return key_of(str(self.value["task_id"]), self.epoch)

    @property
    def is_attacked(self) -> bool:
        """Whether the task was under attack: no rate of clean tasks counts it."""
        return self.attack is not None

    @property
    def counted(self) -> CountedAttempt:
        """What it contributes to rates."""
        return CountedAttempt(
            self.repeated, self.outcome, self.is_finished, self.coverage, self.attack, self.is_unconfirmed
        )

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it is unscored because a frozen site does not confirm its success."""
        return is_unconfirmed(self.outcome, self.reason_code)


def read_entries(values: Iterable[Mapping[str, Any]]) -> list[TaskEntry]:
    """The entries of one submission."""
    return [TaskEntry.read(value, place) for place, value in enumerate(values)]


def rate_of(entries: Iterable[TaskEntry]) -> Rate:
    """The rate of the entries of clean tasks, computed from the entries alone."""
    return Rate.of(each.counted for each in entries if not each.is_attacked)


def counts_of(values: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The published counts and rates of entries as they stand in a submission."""
    return rate_of(read_entries(values)).published()


def decided(entries: Iterable[TaskEntry]) -> dict[str, int]:
    """The number of entries decided by each kind of judge.

    Those of older files are left out, and those of excluded tasks: nothing decided them.
    """
    counts = Counter(entry.decided_by for entry in entries if entry.excluded is None)
    return {truth: counts[truth] for truth in kinds_of(counts)}


def kinds_of(decided_by: Iterable[str | None]) -> list[str]:
    """The kinds of judges among these, in the order in which they are listed."""
    return sorted(set(filter(None, decided_by)), key=lambda name: (name != CHECKS, name == JUDGE, name))


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


def _number(value: object) -> float:
    return value if isinstance(value, int | float) and math.isfinite(value) else 0
