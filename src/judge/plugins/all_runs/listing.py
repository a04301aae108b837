"""What lists of runs and submissions show about each of them, read from its files."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AliasPath, BaseModel, Field, ValidationError

from judge.records.metadata import shown
from judge.records.verdicts import JudgeInfo
from judge.results.entries import TaskEntry, read_entries
from judge.results.given_verdicts import plain_name
from judge.results.identity import identity_in, player
from judge.results.run_record import epochs_of
from judge.results.statistics import AttemptCounts, Percent, tallies_of
from judge.results.submission import read_submissions
from judge.store.episodes import read_counts
from judge.store.layout import RunStore
from judge.store.run_files import SUBMISSION
from shared.errors import ConfigError
from shared.fields import as_mapping
from shared.files import read_json, sha256_json
from shared.models import Record
from shared.text import clip, counted, one_line, without_surrogates

_STATES = {"completed": "finished", "cancelled": "interrupted", "stopped": "interrupted", "failed": "failed"}
_DAMAGED = (ValidationError, OSError, ValueError, TypeError, KeyError)
_MAX_CHARS = 200
_KEY_CHARS = 24
_MAX_METADATA = 1_000

Counts = tuple[int, int, int]
PublishedPercent = Annotated[float, Field(ge=0, le=100)]


class ListedRun(Record):
    """A run or a submission as lists show it; values that could not be read are `None`. Texts are one line, unescaped.

    `key` is its name among all listed ones. `version` tells apart the versions of an agent. `state` of a run
    recorded as running is checked by `current`. `worked_on` is when it was last started or resumed, in seconds since
    1970. `rate`, `low` and `high` are as published, in percent. `tallies` are successes, scored and all attempts of
    each clean task; `task_set` tells apart sets of tasks. `metadata` are of all tasks: `category=shop`. `tags`
    and `note` are the user's (`run_notes`).
    """

    key: str
    id: str
    kind: Literal["run", "submission"] = "run"
    scenario: str | None = None
    participant: str | None = None
    agent: str | None = None
    version: str | None = None
    judge: str | None = None
    state: str = "damaged"
    worked_on: float = 0.0
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    scored: int | None = None
    total: int | None = None
    name: str | None = None
    model: str | None = None
    revision: str | None = None
    epochs: int = 1
    # Of a served scenario, those that were deleted included.
    episodes: int | None = None
    tallies: dict[str, Counts] = Field(default_factory=dict)
    task_set: str = ""
    metadata: tuple[str, ...] = ()
    tags: tuple[str, ...] = Field(default=(), exclude=True)
    note: str = Field(default="", exclude=True)

    @property
    def day(self) -> str:
        """The day on which it was last started or resumed, in UTC, such as `2026-11-23`."""
        return self.moment[:10]

    @property
    def moment(self) -> str:
        """That time to the minute; empty if it is not known."""
        with suppress(ValueError, OverflowError, OSError):
            return f"{datetime.fromtimestamp(self.worked_on, UTC):%Y-%m-%d %H:%M}" if self.worked_on else ""
        return ""


class _ListedRecord(BaseModel):
    """The listed values in `run.json`."""

    state: str
    participants: dict[str, Any]
    scenario: str | None = Field(
        default=None, validation_alias=AliasChoices(AliasPath("scenario", "name"), AliasPath("config", "scenario"))
    )


class _ListedDetail(BaseModel):
    """The listed values in a result of `results.json`. Older files lack the number of scored tasks, and more."""

    success_rate: PublishedPercent | None
    scored_tasks: int | None = None
    total_tasks: int | None = None
    confidence_interval_95: tuple[PublishedPercent, PublishedPercent] | None = None
    judge: dict[str, Any] = Field(default_factory=dict)
    tasks: list[dict[str, Any]] = Field(default_factory=list)

    def as_fields(self) -> dict[str, Any]:
        """What is listed of it."""
        entries = [each for each in read_entries(self.tasks) if each.is_clean]
        tallies = tallies_of((each.repeated, each.outcome) for each in entries)
        # Without a scored task, the published rate is 0.
        rate = None if self.scored_tasks == 0 else self.success_rate
        interval = self.confidence_interval_95 or Percent.of(tallies.values())[1:]
        return {
            "rate": rate,
            **(dict(zip(("low", "high"), interval, strict=True)) if rate is not None else {}),
            "scored": self.scored_tasks,
            "total": self.total_tasks,
            "judge": judge_text(self.judge),
            "tallies": _as_counts(tallies),
            "task_set": _task_set(entries),
            "metadata": tuple(
                sorted({f"{key}={shown(value)}" for each in entries for key, value in (each.metadata or {}).items()})
            )[:_MAX_METADATA],
        }


def listed_run(store: RunStore) -> ListedRun:
    """A run of which at least a shard has begun, in whatever condition it is."""
    listed = ListedRun(key=store.run_id, id=store.run_id, worked_on=worked_on(store))
    if not store.has_begun:
        return listed.model_copy(update={"state": f"{counted(len(store.shards()), 'shard')}, not merged"})
    try:
        run = store.read_run() or {}
        record = _ListedRecord.model_validate(run)
        results = store.folder / SUBMISSION.name
        # A run that did not finish has no results yet, and episodes have none.
        detail = _detail_in(read_json(results)).as_fields() if results.exists() else _episodes(store)
    except ConfigError:
        return listed.model_copy(update={"state": "newer version"})
    except _DAMAGED:
        return listed
    known = identity_in(run)
    role = ", ".join(record.participants)
    fields = {
        "judge": judge_text(as_mapping(run.get("judge"))),
        "total": len(run["task_ids"]) if isinstance(run.get("task_ids"), list) else None,
        **detail,
        "scenario": _line(record.scenario),
        "state": "running" if record.state == "running" else _STATES.get(record.state, "damaged"),
        "epochs": epochs_of(run),
        **_played_by(known, role),
    }
    return listed.model_copy(update=fields)


def _episodes(store: RunStore) -> dict[str, Any]:
    """What is listed of the episodes of a served scenario; empty for other runs. Raises one of `_DAMAGED`."""
    counts = read_counts(store)
    if counts is None:
        return {}
    tallies = {
        task: AttemptCounts(
            counts_ended.get("success", 0),
            counts_ended.get("success", 0) + counts_ended.get("failure", 0),
            sum(counts_ended.values()),
        )
        for task, counts_ended in counts.ended.items()
    }
    percent = Percent.of(tallies.values())
    return {
        **({} if percent.rate is None else percent._asdict()),
        "scored": sum(each.scored for each in tallies.values()),
        "total": sum(each.attempts for each in tallies.values()),
        "episodes": counts.last,
        "tallies": _as_counts(tallies),
    }


def _as_counts(tallies: Mapping[str, AttemptCounts]) -> dict[str, Counts]:
    return {_line(task) or "": (each.successes, each.scored, each.attempts) for task, each in tallies.items()}


def current(run: ListedRun, store: RunStore) -> ListedRun:
    """The run with its present state: a killed judge could not record its end, but it has lost its lock."""
    if run.state == "running" and not store.is_being_judged:
        return run.model_copy(update={"state": "interrupted"})
    return run


def listed_submissions(path: Path, name: str) -> tuple[ListedRun, ...]:
    """The submissions in a file, which is data of somebody else; `name` is what the list calls it.

    Empty if it is not a file of submissions: a `run.json` has participants as well, and no results.
    """
    try:
        submissions = [each for each in read_submissions(path) if each.get("results")]
    except ConfigError:
        return ()
    changed = path.stat().st_mtime
    runs = []
    for number, submission in enumerate(submissions):
        digest = hashlib.sha256(os.fsencode(os.path.realpath(path)) + f"#{number}".encode()).hexdigest()
        runs.append(
            _submitted(
                submission,
                ListedRun(
                    key=f"file-{digest[:_KEY_CHARS]}",
                    id=_line(f"{name} #{number + 1}" if len(submissions) > 1 else name) or "file",
                    kind="submission",
                    worked_on=changed,
                ),
            )
        )
    return tuple(runs)


def _submitted(submission: Mapping[str, Any], run: ListedRun) -> ListedRun:
    try:
        detail = _detail_in(submission)
        fields = detail.as_fields()
    except _DAMAGED:
        return run
    result = as_mapping((submission.get("results") or [{}])[0])
    provenance = as_mapping(as_mapping(result.get("detail")).get("provenance"))
    known = identity_in({"identity": provenance.get("identity"), "scenario": None})
    scenario = as_mapping(provenance.get("identity")).get("scenario")
    role = result.get("winner") or ", ".join(as_mapping(submission.get("participants")))
    return run.model_copy(
        update={**fields, "state": "submission", "scenario": _line(scenario), **_played_by(known, str(role))}
    )


def _detail_in(submission: Any) -> _ListedDetail:
    """The detail of a submission's first result. Raises one of `_DAMAGED`."""
    results = as_mapping(submission).get("results")
    return _ListedDetail.model_validate(
        as_mapping(results[0] if isinstance(results, list) and results else {}).get("detail")
    )


def _played_by(participants: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Who played: the agent is its card's name, and its version everything else that tells versions apart."""
    parts = (participants.get(key) for key in ("card_version", "name", "model", "revision"))
    return {
        "participant": _line(player(participants, role)),
        "agent": _line(participants.get("card_name") or role),
        "version": _line(" · ".join(filter(None, parts))),
        **{key: _line(participants.get(key)) for key in ("name", "model", "revision")},
    }


def judge_text(judge: Mapping[str, Any]) -> str | None:
    """The judge in a `run.json` or a submission by method and model; `None` if none is named."""
    try:
        return _line(plain_name(JudgeInfo.model_validate(judge)))
    except ValidationError:
        # Older files name less.
        names = (judge.get(key) for key in ("method", "model"))
        return _line(" · ".join(name for name in names if isinstance(name, str) and name))


def _task_set(entries: list[TaskEntry]) -> str:
    tasks = {each.task_id: each.value.get("task_sha256") for each in entries}
    return sha256_json(sorted([clip(name, _MAX_CHARS), str(digest)] for name, digest in tasks.items()))[:12]


def worked_on(store: RunStore) -> float:
    """When the run was last started or resumed, in seconds since 1970. Not from the id, which the user may choose."""
    times = []
    for part in (store, *store.shards()):
        # A newer version's record is not read.
        with suppress(ConfigError):
            record = part.read_run() or {}
            times += [time for key in ("started_at", "resumed_at") if isinstance(time := record.get(key), int | float)]
    if times:
        return max(times)
    with suppress(ValueError):
        # Ids that we choose begin with the time.
        return datetime.strptime(store.run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    record_file = store.folder / "run.json"
    return (record_file if record_file.exists() else store.folder).stat().st_mtime


def pooled(runs: list[ListedRun]) -> dict[str, AttemptCounts]:
    """The attempts of all these runs at each task."""
    sums: dict[str, Counts] = {}
    for run in runs:
        for task, counts in run.tallies.items():
            before = sums.get(task, (0, 0, 0))
            sums[task] = (before[0] + counts[0], before[1] + counts[1], before[2] + counts[2])
    return {task: AttemptCounts(*counts) for task, counts in sums.items()}


def _line(text: object) -> str | None:
    return one_line(without_surrogates(text), _MAX_CHARS) or None if isinstance(text, str) else None
