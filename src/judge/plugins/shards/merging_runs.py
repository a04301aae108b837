"""Merges the shards of a run into one normal run in the same folder."""

import contextlib
import functools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from judge.plugins.shards.merging_submissions import merged_provenance
from judge.records.ids import problem_of
from judge.results.identity import identity_in, resumed
from judge.results.part import parts_of, with_totals
from judge.results.rejudged import take_over
from judge.results.run_record import (
    epochs_of,
    excluded_by_scenario,
    judge_id_of,
    made_with,
    sha256_of,
    spending_before,
    task_digests,
    task_set_checksum,
    totals_of,
)
from judge.results.submission import Submission, TaskSummary, build_submission, total_cost
from judge.store.layout import RunStore, TaskStore
from judge.store.run_files import join_files
from judge.trajectory.files import read_attempt, read_result
from shared.engines import Engine
from shared.errors import ConfigError, TrajectoryError
from shared.files import copy_file, read_errors, read_json
from shared.llm.limits import Spending
from shared.models import TokenUsage
from shared.text import counted, excerpt

# The parts of a request that differ between the shards of a run.
_OWN = ("tasks", "shard")
_RESTART = "start this shard again: it resumes"


class _Shard(NamedTuple):
    """A finished shard: its folder, its `run.json`, and the provenance of its submission."""

    store: RunStore
    record: dict[str, Any]
    provenance: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.store.folder.name

    @property
    def request(self) -> dict[str, Any]:
        return dict(self.record["request"])

    @property
    def tasks(self) -> list[TaskStore]:
        return _tasks(self.store, self.request)


def merge_shards(run: RunStore) -> Submission:
    """Write the complete run beside its shards and return its submission.

    Task folders are hard links to the shards' files if the file system supports them, else copies. Verdicts since an
    earlier merge are kept with the trajectory that they judged. Raises `ConfigError` unless the shards belong to one
    request, are finished, and contain each of its tasks once.
    """
    if not run.shards():
        raise ConfigError(f"run {run.run_id} has no shards", remedy="give a run that was started with --shards")
    with run.held("judge"):
        # Read everything before writing anything.
        shards = _finished(run.shards())
        request = _whole_request(run, shards)
        summaries = [summary for shard in shards for summary in _summaries(shard)]
        known = {task.folder for task in _tasks(run, request)}
        if strays := {task.folder for task in run.task_folders()} - known:
            raise ConfigError(f"{min(strays)}: no task of the shards", remedy="move it elsewhere")
        was_merged = run.has_begun
        for task in chain.from_iterable(shard.tasks for shard in shards):
            _copy_task(task.folder, run.task(task.name, task.epoch).folder)
        run.create()
        whole = _whole_record(run, shards, request, summaries)
        submission = _submission(run, whole, shards, summaries)
        with read_errors(run.folder, _RESTART):
            join_files(run.folder, [shard.store.folder for shard in shards])
        for part in parts_of(run):
            part.join([shard.store for shard in shards])
        run.write_submission(with_totals(submission, run))
        run.write_run(whole)
        # Later verdicts take precedence over the shards' results.
        if was_merged and take_over(run):
            return dict(read_json(run.folder / "results.json"))
    return submission


def _finished(stores: Sequence[RunStore]) -> list[_Shard]:
    """The shards. Raises `ConfigError` naming all unfinished ones."""
    records = [_record(store) for store in stores]
    unfinished = [
        f"{store.folder.name} ({'running' if store.is_being_judged else record.get('state')})"
        for store, record in zip(stores, records, strict=True)
        if store.is_being_judged or record.get("state") != "completed"
    ]
    if unfinished:
        raise ConfigError(
            f"{len(unfinished)} of {counted(len(stores), 'shard')} unfinished: {', '.join(unfinished)}",
            remedy="wait for those that run, and start the others again: they resume",
        )
    return [_Shard(store, record, _provenance(store)) for store, record in zip(stores, records, strict=True)]


def _record(shard: RunStore) -> dict[str, Any]:
    record = shard.read_run()
    request = record.get("request") if record else None
    if record is None or not isinstance(request, dict) or not isinstance(request.get("shard"), dict):
        raise ConfigError(f"{shard.folder / 'run.json'}: missing, damaged, or of no shard", remedy=_RESTART)
    if sha256_of(request) != record.get("request_sha256"):
        raise ConfigError(f"{shard.folder / 'run.json'}: request does not match request_sha256", remedy=_RESTART)
    if f"{request['shard']['index']:03d}-of-{request['shard']['of']:03d}" != shard.folder.name:
        raise ConfigError(f"{shard.folder}: holds another shard, {request['shard']}", remedy="rename it back")
    return record


def _whole_request(run: RunStore, shards: Sequence[_Shard]) -> dict[str, Any]:
    """The request of the complete run. Raises `ConfigError` if the shards do not all belong to one."""
    first = shards[0].request
    shared = {key: value for key, value in first.items() if key not in _OWN}
    whole = first["shard"]
    tasks: dict[str, str] = {}
    owners: dict[str, str] = {}
    ids: dict[str, str] = {}
    for shard in shards:
        request, name = shard.request, shard.name
        differing = [key for key, value in shared.items() if request.get(key) != value]
        differing += ["number of shards"] if request["shard"]["of"] != whole["of"] else []
        differing += ["tasks"] if request["shard"]["tasks_sha256"] != whole["tasks_sha256"] else []
        if differing:
            raise ConfigError(
                f"shard {name} belongs to another request: other {', '.join(differing)}",
                remedy="play all shards with one scenario and the same options",
            )
        for task_id, digest in request["tasks"].items():
            if problem := problem_of(task_id, ids):
                where = shard.store.folder / "run.json"
                raise ConfigError(f"{where}: task_id {excerpt(task_id)} {problem}", remedy="rename the task")
            if task_id in tasks:
                raise ConfigError(f"task {task_id} is in two shards: {owners[task_id]} and {name}", remedy="remove one")
            tasks[task_id], owners[task_id] = digest, name
    if sha256_of(tasks) != whole["tasks_sha256"]:
        present = {shard.request["shard"]["index"] for shard in shards}
        missing = ", ".join(f"{index:03d}" for index in range(whole["of"]) if index not in present)
        raise ConfigError(
            f"run {run.run_id} has {len(shards)} of {whole['of']} shards, missing: {missing or 'tasks of some shards'}",
            remedy="start what is missing; only a shard without tasks leaves no folder",
        )
    return {**shared, "tasks": tasks}


def _tasks(run: RunStore, request: Mapping[str, Any]) -> list[TaskStore]:
    """The task folders of the request of a run or shard, epoch by epoch."""
    return [run.task(name, epoch) for epoch in range(1, epochs_of(request) + 1) for name in request["tasks"]]


def _summaries(shard: _Shard) -> Iterator[TaskSummary]:
    tasks = shard.request["tasks"]
    for task in shard.tasks:
        try:
            attempt = read_attempt(task.folder)
        except TrajectoryError as error:
            raise ConfigError(f"shard {shard.name}: {error.message}", remedy=_RESTART) from None
        if task_digests([attempt.task]) != {task.name: tasks[task.name]} or attempt.epoch != task.epoch:
            raise ConfigError(f"{task.folder}: records another task than the request", remedy=_RESTART)
        yield TaskSummary.of(attempt, judge_id_of(shard.record, task.name, task.epoch))


def _provenance(shard: RunStore) -> Mapping[str, Any]:
    try:
        return dict(read_json(shard.folder / "results.json")["results"][0]["detail"]["provenance"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        raise ConfigError(f"{shard.folder / 'results.json'}: missing or damaged", remedy=_RESTART) from None


def _copy_task(source: Path, target: Path) -> None:
    """Put a task's folder into the complete run, replacing the one of an earlier merge."""
    if target.exists() and _trajectory_of(target) != _trajectory_of(source):
        shutil.rmtree(target)
    shutil.copytree(source, target, copy_function=_link, dirs_exist_ok=True)


def _is_later_verdict(path: Path, source: Path) -> bool:
    # `wabe score` writes verdicts into the merged run, not into its shards.
    return path.parent.name == "verdicts" and path.exists() and path.stat().st_mtime_ns >= source.stat().st_mtime_ns


def _trajectory_of(folder: Path) -> object:
    with contextlib.suppress(TrajectoryError):
        return read_result(folder).get("trajectory_sha256")
    return None


def _link(source: str, target: str) -> None:
    if _is_later_verdict(Path(target), Path(source)):
        return
    # `os.link` does not replace an existing file.
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        # A different file system, or one without links.
        copy_file(Path(source), Path(target))


def _submission(
    run: RunStore, record: Mapping[str, Any], shards: Sequence[_Shard], summaries: Sequence[TaskSummary]
) -> Submission:
    role = next(iter(record["participants"]))
    return build_submission(
        role=role,
        participant_ids={role: record["config"]["participant_ids"].get(role, "")},
        results=summaries,
        excluded=excluded_by_scenario(record),
        provenance={
            **merged_provenance([shard.provenance for shard in shards]),
            "run_id": run.run_id,
            "identity": identity_in(record),
            "config_checksum": record["config_checksum"],
            **made_with(summaries),
            "shard": {"index": 0, "of": 1},
        },
    )


def _whole_record(
    run: RunStore, shards: Sequence[_Shard], request: Mapping[str, Any], summaries: Sequence[TaskSummary]
) -> dict[str, Any]:
    """The complete run's `run.json`."""
    records = [shard.record for shard in shards]
    spent = [spending_before(shard.store) for shard in shards]
    usage = sum((each.usage for each in spent), TokenUsage())
    price_date = max(filter(None, (each.price_date for each in spent)), default=None)
    return {
        **records[0],
        "run_id": run.run_id,
        "identity": functools.reduce(resumed, (record.get("identity") or {} for record in records)),
        "started_at": min(record["started_at"] for record in records),
        "resumed_at": None,
        "ended_at": max(record["ended_at"] for record in records),
        "request": dict(request),
        "request_sha256": sha256_of(request),
        "config": {**records[0]["config"], "run_id": run.run_id},
        "task_ids": list(request["tasks"]),
        "task_set_checksum": task_set_checksum([summary.task for summary in summaries]),
        "judge_ids": {task_id: judge for record in records for task_id, judge in record["judge_ids"].items()},
        "judge_usage": Spending(usage, total_cost(each.cost_usd for each in spent), price_date=price_date).recorded(),
        **totals_of(summaries),
    }


ENGINE = Engine(merge_shards=merge_shards)
