"""`run.json`: a run's configuration, end and versions, and whether the run may be resumed."""

import contextlib
import functools
import hashlib
import json
import platform
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from judge.config import MAX_EPOCHS, RunConfig
from judge.records.ids import USABLE
from judge.records.tasks import TASK_ID, Exclusion, Task, key_of
from judge.records.verdicts import TaskOutcome
from judge.results.entries import TaskEntry, decided
from judge.results.identity import identity_of_launch, resumed
from judge.results.submission import TaskSummary, judge_of
from judge.scenario.models import Launch, Shard
from judge.store.layout import RUN_SCHEMA, WITHDRAWN, RunStore, TaskStore, recorded_runs
from judge.trajectory.files import read_attempt
from judge.trajectory.record import Attempt
from shared.dates import day_in
from shared.declarations import names_of, setting_apart
from shared.errors import ConfigError, TrajectoryError
from shared.fields import as_mapping, as_mappings
from shared.files import write_errors
from shared.llm.limits import Spending
from shared.llm.opening import provider
from shared.llm.providers import provider_names
from shared.models import TokenUsage
from shared.text import excerpt, one_line

_PACKAGES = ("wabe", "a2a-sdk", "mcp", "playwright", "pydantic")
# Settings that do not affect a result, and those that may differ when a run is resumed.
NO_RESULT = names_of(RunConfig, lambda setting: not setting.in_checksum)
# In the `run.json` of a served scenario, whose attempts are episodes (`judge.store.episodes`).
EPISODES = "episodes"
_NOT_COMPARED = names_of(RunConfig, lambda setting: not setting.compared)
_MAX_DIFFERENCES = 20


def compared_parts(
    participants: Mapping[str, str],
    config: RunConfig,
    tasks: Sequence[Task],
    *,
    launch: Launch | None = None,
    judge_id: str | None = None,
) -> dict[str, Any]:
    """The parts of a request that can affect a result; a run can be resumed if they are equal.

    `tasks` are this shard's. The parts are recorded, so none of them may contain a secret.
    """
    launched = launch.model_dump(mode="json", include={"participants", "sites"}) if launch else {}
    processes = launched.get("participants", {})
    # Use the declared endpoint: a port chosen at start-up differs each time.
    declared = {role: process.pop("endpoint") for role, process in processes.items()}
    for process in launched.get("sites", {}).values():
        del process["endpoint"]
    parts = {
        "participants": {
            role: {
                "url": declared.get(role) or url,
                "agentbeats_id": config.participant_ids.get(role, ""),
                **processes.get(role, {}),
            }
            for role, url in participants.items()
        },
        "sites": launched.get("sites", {}),
        # Dumps exclude login data, so a session may be renewed between two starts.
        "tasks": task_digests(tasks),
        "config": {key: value for key, value in config.recorded().items() if key not in _NOT_COMPARED},
        "judge": judge_id,
    }
    return parts | ({"shard": launch.shard.model_dump()} if launch and launch.shard else {})


def task_digests(tasks: Sequence[Task]) -> dict[str, str]:
    """SHA-256 of each task, by its id."""
    return {task.task_id: sha256_of(_without_unset(task)) for task in tasks}


def require_same_request(store: RunStore, requested: Mapping[str, Any], *, unknown: Collection[str] = ()) -> None:
    """Refuse to resume a run with a different request. Raises `ConfigError` with one line per difference.

    `unknown` are parts that the caller does not know (`config.judge_model`); the judge compares them.
    """
    if differing := differences(store, requested, unknown=unknown):
        raise ConfigError(
            f"run {store.run_id} was started with another request, so it cannot be resumed with this one:\n  "
            + "\n  ".join(differing)
            + "\n",
            remedy="undo these changes, or start a new run without --resume",
        )


def differences(store: RunStore, requested: Mapping[str, Any], *, unknown: Collection[str] = ()) -> list[str]:
    """A line for each part in which the run's request differs, except those that are `unknown`; at most 21 lines.

    Raises `ConfigError` if the run's request cannot be read.
    """
    record = store.read_run()
    if record is None:
        raise ConfigError(
            f"run {store.run_id} has no readable run.json, so it cannot be resumed", remedy="start a new run"
        )
    stored = record.get("request")
    if not isinstance(stored, dict) or sha256_of(stored) != record.get("request_sha256"):
        raise ConfigError(
            f"{store.folder / 'run.json'}: request does not match request_sha256, so it cannot be resumed",
            remedy="start a new run",
        )
    before, now = dict(_leaves(stored)), dict(_leaves(requested))
    differing = [
        _difference(path, before.get(path), now.get(path))
        for path in dict.fromkeys([*before, *now])
        if before.get(path) != now.get(path) and not {path[0], ".".join(path)} & set(unknown)
    ]
    more = len(differing) - _MAX_DIFFERENCES
    return differing if more <= 0 else [*differing[:_MAX_DIFFERENCES], f"and {more} more"]


def _leaves(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _leaves(item, (*path, str(key)))
        else:
            yield (*path, str(key)), item


def _difference(path: tuple[str, ...], before: object, now: object) -> str:
    if path[0] == "tasks" or path[-1].endswith("_sha256"):
        what = f"{path[0]}: {path[1]}" if path[0] == "tasks" else ".".join(path).removesuffix("_sha256")
        return f"{what} {'added' if before is None else 'removed' if now is None else 'changed'}"
    return f"{'.'.join(path)}: {_in_words(before)} → {_in_words(now)}"


def _in_words(value: object) -> str:
    if value in (None, ""):
        return "not set"
    return one_line(value, 100) if isinstance(value, str) else json.dumps(value)


def sha256_of(value: object) -> str:
    """SHA-256 of a JSON value with sorted keys. Not canonical JSON, because existing runs contain these checksums."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def begin_run(
    store: RunStore,
    *,
    config: RunConfig,
    tasks: Sequence[Task],
    role: str,
    url: str,
    judge_id: str,
    judge_ids: Mapping[str, str] | None = None,
    launch: Launch | None = None,
    excluded: Sequence[Exclusion] = (),
    has_episodes: bool = False,
) -> None:
    """Write `run.json` before the first task; a resumed run keeps the time of its first start.

    `judge_ids` names the judges of tasks that the run's judge does not decide, such as checks beside a judge model.
    `excluded` are the tasks that the scenario leaves out. `has_episodes`: the attempts are a served scenario's.
    Raises `ConfigError` if it cannot be written, or if the folder contains a run with another request.
    """
    parts = compared_parts({role: url}, config, tasks, launch=launch, judge_id=judge_id)
    settings = config.recorded()
    # Tasks without a `run.json` are refused as well, because their request is unknown.
    if (store.folder / "run.json").exists() or next(store.task_folders(), None) is not None:
        # With the same settings, another judge is one of other code, which judges what was judged before again. Prompts
        # of the user's own are settings.
        require_same_request(store, parts, unknown=() if config.prompts else ("judge",))
    before = store.read_run() or {}
    earlier = _earlier_judges(before, judge_id)
    now = time.time()
    record = {
        "schema_version": RUN_SCHEMA,
        "run_id": store.run_id,
        "state": "running",
        "started_at": before.get("started_at", now),
        "resumed_at": now if before else None,
        "ended_at": None,
        "scenario": {"name": launch.scenario_name, "path": launch.scenario_path, "sha256": launch.scenario_sha256}
        if launch
        else None,
        "participants": {role: url},
        "identity": resumed(
            before.get("identity") or {},
            identity_of_launch(launch, role, config.participant_ids.get(role, ""), config.name),
        ),
        "request": parts,
        "request_sha256": sha256_of(parts),
        "config": settings,
        "config_checksum": settings_checksum(settings),
        "task_ids": [task.task_id for task in tasks],
        **({"excluded": [each.model_dump(mode="json") for each in excluded]} if excluded else {}),
        "task_set_checksum": task_set_checksum(tasks),
        "judge_model": config.judge_model,
        "judge_id": judge_id,
        "judge_ids": dict(judge_ids or {}),
        # Judges with other code, from before the run was resumed; their verdicts no longer count.
        **({"earlier_judges": earlier} if earlier else {}),
        "judge_usage": before.get("judge_usage"),
        "packages": package_versions(),
        **({EPISODES: True} if has_episodes else {}),
        **({"sealed": sealed} if (sealed := next((task.sealed for task in tasks if task.sealed), None)) else {}),
    }
    with write_errors(f"cannot write {store.folder}", "free some space or choose another folder"):
        store.write_run(record)
    # Last, because the link to the newest run must not point at one that never started.
    if not has_episodes:
        store.create()


def _earlier_judges(before: Mapping[str, Any], judge_id: str) -> list[str]:
    """The ids of the run's judges before this one, each once, from its `run.json` so far."""
    judges = before.get("earlier_judges")
    ids = [*(judges if isinstance(judges, list) else ()), before.get("judge_id")]
    return list(dict.fromkeys(each for each in ids if isinstance(each, str) and each != judge_id))


def newest_unfinished(output_dir: Path, launch: Launch) -> RunStore | None:
    """The most recently started or resumed unfinished run of this scenario file, or `None`.

    A scenario is recognised by its path (it may have been edited) or by its bytes (it may have been moved); a run with
    the same bytes is preferred. Runs that were merged from shards are not included: only their shards can be resumed.
    """
    unfinished: dict[tuple[bool, float, str], RunStore] = {}
    for store, record in recorded_runs(output_dir):
        if record.get("schema_version") != RUN_SCHEMA or store.shards() or record.get(EPISODES):
            continue
        known = as_mapping(record.get("scenario"))
        is_same = known.get("sha256") == launch.scenario_sha256
        if (is_same or known.get("path") == launch.scenario_path) and not _is_finished(record):
            worked_on = float(record.get("resumed_at") or record.get("started_at") or 0)
            unfinished[is_same, worked_on, store.run_id] = store
    return unfinished[max(unfinished)] if unfinished else None


def is_finished(store: RunStore) -> bool:
    """Whether the run has nothing left to play or to judge."""
    # A newer version's record is not read.
    with contextlib.suppress(ConfigError):
        return _is_finished(store.read_run() or {})
    return False


def _is_finished(record: Mapping[str, Any]) -> bool:
    outcomes = record.get("outcomes") or {}
    # Excluded tasks are counted as aborted, but there is nothing to play.
    aborted = (outcomes.get("aborted") or 0) - len(excluded_by_run(record)) * epochs_of(record)
    unscored = (outcomes.get("unscored") or 0) - (record.get("unconfirmed") or 0)
    return record.get("state") == "completed" and aborted <= 0 and unscored <= 0


def day_of_run(store: RunStore) -> date | None:
    """The day that dates in the run's tasks are relative to, which all its shards share; `None` if not known yet."""
    whole = RunStore(store.output_dir, store.run_id.partition("/shards/")[0])
    for each in (store, whole, *whole.shards()):
        settings = as_mapping((each.read_run() or {}).get("config"))
        if (day := day_in(settings.get("today"))) is not None:
            return day
    return None


def excluded_by_scenario(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tasks that the scenario of a `run.json` leaves out, as a submission lists them."""
    return [dict(each) for each in as_mappings(record.get("excluded"))]


def excluded_by_run(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reasons by task id for exclusions before the first attempt (`--exclude`) in a `run.json`."""
    task_ids = record.get("task_ids")
    ids = task_ids if isinstance(task_ids, list) else ()
    reasons = as_mapping(as_mapping(record.get("config")).get("exclude"))
    return {task_id: reason for task_id, reason in reasons.items() if task_id in ids}


def require_same_exclusions(store: RunStore, exclude: Mapping[str, str]) -> None:
    """Raises `ConfigError` if a run that has begun excludes other tasks than `exclude`, or for other reasons."""
    record = store.read_run() or {}
    before = as_mapping(as_mapping(record.get("config")).get("exclude"))
    remedy = "repeat the --exclude options of its first start, or start a new run"
    for task_id, reason in exclude.items():
        if task_id not in before:
            has_attempts = any(store.task(task_id, epoch).attempts() for epoch in range(1, epochs_of(record) + 1))
            why = "it was played" if has_attempts else "exclusions are fixed before the first attempt"
            raise ConfigError(f"--exclude {task_id}: run {store.run_id} began without it, and {why}", remedy=remedy)
        if before[task_id] != reason:
            problem = (
                f"--exclude {task_id}: run {store.run_id} has another reason, {excerpt(str(before[task_id]), 100)}"
            )
            raise ConfigError(problem, remedy=remedy)
    if missing := [task_id for task_id in before if task_id not in exclude]:
        raise ConfigError(f"run {store.run_id} excludes {missing[0]}, which --resume would play", remedy=remedy)


def judge_id_of(record: Mapping[str, Any], task_id: str, epoch: int = 1) -> str:
    """The id of the judge whose verdict on that task counts; `record` is the run's `run.json`.

    The same judge decides a task in every epoch, unless a later verdict replaced one epoch's.
    """
    own = as_mapping(record.get("judge_ids"))
    return str(own.get(key_of(task_id, epoch)) or own.get(task_id) or record.get("judge_id"))


def end_run(store: RunStore, state: str, results: Sequence[TaskSummary] = (), spending: Spending | None = None) -> None:
    """Write how the run ended: `completed`, `cancelled` or `failed`."""
    record: dict[str, Any] = store.read_run() or {"run_id": store.run_id}
    record |= {
        "state": state,
        # Never before the start, even if the machine's clock was set back.
        "ended_at": max(time.time(), record.get("resumed_at") or record.get("started_at") or 0.0),
        **totals_of(results),
    }
    if spending is not None:
        record["judge_usage"] = spending.recorded()
    store.write_run(record)


def withdraw_unplayed(store: RunStore, cause: str) -> None:
    """Withdraw zero scores that are due to an unusable participant, so that resuming plays those tasks again.

    These are the tasks that, since the run was last started, ended in a participant error before any action.
    Raises `ConfigError` if the judge is still running, or if the folder cannot be written.
    """
    record = store.read_run() or {}
    since = record.get("resumed_at") or record.get("started_at") or 0.0
    _withdraw(store, cause, lambda attempt: not attempt.action_history and attempt.started_at >= since)


def withdraw_since(store: RunStore, since: float, cause: str) -> None:
    """Withdraw zero scores of attempts that ended in a participant error after `since`: a fault may be the cause.

    Raises `ConfigError` as `withdraw_unplayed` does.
    """
    _withdraw(store, cause, lambda attempt: attempt.ended_at >= since)


def _withdraw(store: RunStore, cause: str, is_meant: Callable[[Attempt], bool]) -> None:
    with store.held("judge"), write_errors(f"cannot write {store.folder}"):
        record = store.read_run() or {}
        for task in store.task_folders():
            with contextlib.suppress(TrajectoryError):
                attempt = read_attempt(task.folder)
                if attempt.stop_reason == "participant_error" and is_meant(attempt):
                    # Without a result the task is unsettled; the attempt's record stays.
                    (task.folder / "result.json").rename(task.folder / WITHDRAWN)
                    shutil.rmtree(task.folder / "verdicts", ignore_errors=True)
        (store.folder / "results.json").unlink(missing_ok=True)
        store.write_run({**record, "state": "stopped", "error": cause, "outcomes": None})


def spending_before(store: RunStore) -> Spending:
    """The judge model's usage before the run was interrupted, because a budget covers the entire run."""
    stored: Any = (store.read_run() or {}).get("judge_usage")
    try:
        usage, cost_usd = TokenUsage.model_validate(stored["token_usage"]), stored["cost_usd"]
    except (TypeError, KeyError, ValidationError):
        return Spending()
    cost_usd = float(cost_usd) if isinstance(cost_usd, int | float) else None
    date = stored.get("price_date")
    return Spending(usage, cost_usd, price_date=date if isinstance(date, str) else None)


def totals_of(results: Sequence[TaskSummary]) -> dict[str, Any]:
    """The totals in `run.json`: attempts by outcome and by what decided them, versions, the judge."""
    outcomes, judge = [result.outcome for result in results], judge_of(results)
    unconfirmed = sum(TaskEntry.read(result.entry).is_unconfirmed for result in results)
    return {
        "outcomes": {name: outcomes.count(name) for name in get_args(TaskOutcome)},
        **({"unconfirmed": unconfirmed} if unconfirmed else {}),
        "decided_by": decided(TaskEntry.read(result.entry) for result in results),
        "environment": _environment_of(results),
        "judge": judge.model_dump(mode="json") if judge else None,
    }


def made_with(results: Sequence[TaskSummary]) -> dict[str, Any]:
    """The part of a submission's provenance about the attempts: versions, and checksums of tasks and judge."""
    judge = judge_of(results)
    return {
        "environment": _environment_of(results),
        "task_set_checksum": task_set_checksum([result.task for result in results]),
        "judge_code_checksum": judge.code_checksum if judge else None,
        "prompt_checksum": judge.prompt_checksum if judge else None,
    }


def _environment_of(results: Sequence[TaskSummary]) -> dict[str, str]:
    """The browser and server versions that the attempts report."""
    return next((dict(result.versions) for result in results if result.versions), {})


def task_set_checksum(tasks: Sequence[Task]) -> str:
    """SHA-256 of the set of tasks, independent of order and repetition."""
    declared = {sha256_of(task): task for task in map(_without_unset, tasks)}.values()
    return sha256_of(sorted(declared, key=lambda task: str(task["task_id"])))


def tasks_of(store: RunStore, record: Mapping[str, Any]) -> list[TaskStore]:
    """The folders of the tasks that a `run.json` lists, epoch by epoch, whether they exist or not.

    Of a served scenario, the episodes that were kept.
    Raises `ConfigError` for an id that is not usable as a folder name.
    """
    store.require_key()
    names = task_names(store, record)
    if record.get(EPISODES):
        return [task for task in store.tasks() if task.name in names]
    return [store.task(name, epoch) for epoch in range(1, epochs_of(record) + 1) for name in names]


def task_names(store: RunStore, record: Mapping[str, Any]) -> list[str]:
    """The ids that a `run.json` lists, each once. Raises `ConfigError` for one that is not usable as a folder name."""
    task_ids = record.get("task_ids")
    names = (
        list(dict.fromkeys(name for name in task_ids if isinstance(name, str))) if isinstance(task_ids, list) else []
    )
    for name in names:
        if not TASK_ID.fullmatch(name):
            where = store.folder / "run.json"
            raise ConfigError(f"{where}: task_id {excerpt(name)} is not usable as a folder name", remedy=USABLE)
    return names


def epochs_of(record: Mapping[str, Any]) -> int:
    """How often a run plays every task, according to its `run.json`."""
    epochs = as_mapping(record.get("config")).get("epochs", 1)
    return epochs if type(epochs) is int and 1 <= epochs <= MAX_EPOCHS else 1


def _without_unset(task: Task) -> dict[str, Any]:
    """The task without its unset keys, which no checksum covers."""
    later = {"checks", "allowed_sites", "start_urls", "keep_fields", "policies", "user_replies"}
    later |= {"attack", "played_variant"}
    # What a run may play it under does not change the clean task; what is played makes a separate task.
    return task.declared(exclude={"attacks", "variants", *(key for key in later if not getattr(task, key))})


def settings_checksum(config: Mapping[str, Any]) -> str:
    """SHA-256 of those settings in a `run.json`, of any version, that can affect a result."""
    return sha256_of({key: value for key, value in config.items() if key not in NO_RESULT})


def package_versions() -> dict[str, str]:
    """The installed versions of the packages that a result depends on."""
    sdks = [provider(name).package for name in provider_names()]
    return {"python": platform.python_version(), **{name: _version(name) for name in (*_PACKAGES, *sdks)}}


# Cached, because reading a package's metadata takes milliseconds, and each run and summary needs it.
@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def provenance(
    *, config: RunConfig, results: Sequence[TaskSummary], run_id: str, shard: Shard | None = None
) -> dict[str, Any]:
    """The `provenance` block of a submission: enough to see whether two results are comparable.

    `shard` is the part of the run, if it differs from the one in `config`.
    """
    part = shard or Shard(index=config.shard_index, of=config.num_shards)
    return {
        "run_id": run_id,
        "packages": package_versions(),
        "settle": config.settle,
        "actions": config.actions,
        **{
            name: value
            for name, (default, _) in setting_apart(RunConfig).items()
            if (value := getattr(config, name)) != default
        },
        **({"cluster": config.cluster} if config.cluster else {}),
        "config_checksum": settings_checksum(config.recorded()),
        **made_with(results),
        # The digest identifies the whole set of tasks in every shard of it.
        "shard": {key: value for key, value in part.model_dump().items() if value != ""},
    }
