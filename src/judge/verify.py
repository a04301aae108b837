"""Checks a stored run against itself and against the installed code. Pure but for reading the prompt set and the code.

Everything that can be made again is made again from the per-task files: checksums of tasks, configuration, judging code
and prompts, every entry of the submission, its counts and rates.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from judge.config import RunConfig
from judge.judges.factory import OFFLINE, code_checksum
from judge.prompt_set import load_prompts
from judge.provenance import config_checksum, package_versions, task_set_checksum
from judge.results import Submission, TaskResult, TaskSummary, build_submission
from judge.run_record import environment_of, judge_of, request_sha256
from judge.task_result import finite
from shared.errors import ConfigError, WabeError
from shared.models import Record, Step, Verdict
from shared.text import excerpt

_MAX_SHOWN = 80


class StoredTask(Record):
    """One task's files: `result.json` as read, the records of `steps.jsonl`, the verdict's file, missing pictures."""

    task_id: str
    result: TaskResult | None
    problem: str | None = None
    steps: tuple[Step, ...] = ()
    verdict: Verdict | None = None
    missing: tuple[str, ...] = ()


class StoredRun(Record):
    """One run's files: `run.json`, `results.json`, and its tasks in the order of `run.json`."""

    run: dict[str, Any]
    submission: dict[str, Any] | None
    tasks: tuple[StoredTask, ...]


class Findings(Record):
    """`mismatches` are what does not match; `notes` are differences that need not mean anything (other versions)."""

    tasks: int
    mismatches: tuple[str, ...]
    notes: tuple[str, ...] = ()


def verify_run(stored: StoredRun) -> Findings:
    """Everything about a run that can be made again, made again and compared."""
    results = tuple(TaskSummary.of(task.result) for task in stored.tasks if task.result is not None)
    mismatches = [*_tasks(stored), *_checksums(stored, results), *_submission(stored, results)]
    return Findings(tasks=len(stored.tasks), mismatches=tuple(mismatches), notes=tuple(_versions(stored)))


def _differs(what: str, stored: object, made: object) -> Iterator[str]:
    if stored != made:
        yield f"{what}: {_shown(stored)} is stored, {_shown(made)} comes out"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _MAX_SHOWN else excerpt(text, _MAX_SHOWN)


def _tasks(stored: StoredRun) -> Iterator[str]:
    """Each task's files against each other."""
    for task in stored.tasks:
        where = f"results/{task.task_id}"
        if task.result is None:
            yield f"{where}/result.json: {task.problem or 'missing'}"
            continue
        yield from _differs(f"{where}: task_id", task.result.task.task_id, task.task_id)
        for number, step in enumerate(task.result.steps):
            if number >= len(task.steps) or task.steps[number] != step:
                yield f"{where}: step {number} of result.json is not the one of steps.jsonl"
                break
        else:
            yield from _differs(f"{where}/steps.jsonl: number of steps", len(task.steps), len(task.result.steps))
        yield from (f"{where}/{name}: missing" for name in task.missing)
        if task.verdict is None and task.result.verdict is not None:
            yield f"{where}/verdicts: none of the run's judge, though result.json holds one"
        if task.verdict is not None and task.result.verdict is not None:
            found, kept = task.verdict, task.result.verdict
            yield from _differs(f"{where}: verdict of result.json", kept.outcome, found.outcome)
            yield from _differs(f"{where}: reason of result.json", kept.reason, found.reason)
            yield from _differs(f"{where}: key_points of result.json", kept.key_points, found.key_points)
            scores = [[(score.Response, score.Score) for score in each.image_judge_record] for each in (kept, found)]
            yield from _differs(f"{where}: image_judge_record of result.json", *scores)


def _checksums(stored: StoredRun, results: Sequence[TaskSummary]) -> Iterator[str]:
    provenance = _provenance(stored)
    if "request" in stored.run:
        made = request_sha256(stored.run["request"])
        yield from _differs("run.json: request_sha256", stored.run.get("request_sha256"), made)
    tasks = task_set_checksum([result.task for result in results])
    yield from _differs("run.json: task_set_checksum", stored.run.get("task_set_checksum"), tasks)
    try:
        config = RunConfig.model_validate(stored.run.get("config"))
    except ValidationError as error:
        yield f"run.json: config: {error.errors(include_url=False)[0]['msg']}"
        return
    made = config_checksum(config)
    yield from _differs("run.json: config_checksum", stored.run.get("config_checksum"), made)
    code = code_checksum()
    judges = {(judge.code_checksum, judge.prompt_checksum) for result in results if (judge := result.judge)}
    for found, _ in judges:
        yield from _differs("judging code", found, code)
    if judges:
        try:
            prompts = code if config.judge_model == OFFLINE else load_prompts(config.prompts).checksum
        except ConfigError as error:
            yield f"prompt set: {error.message}"
        else:
            for _, found in judges:
                yield from _differs("prompt set", found, prompts)
    if provenance is not None:
        yield from _differs("results.json: provenance.task_set_checksum", provenance.get("task_set_checksum"), tasks)
        yield from _differs("results.json: provenance.config_checksum", provenance.get("config_checksum"), made)
        yield from _differs("results.json: provenance.run_id", provenance.get("run_id"), stored.run.get("run_id"))
        environment = provenance.get("environment")
        yield from _differs("results.json: provenance.environment", environment, environment_of(results))
        judge = judge_of(results)
        for key, value in (("judge_code_checksum", "code_checksum"), ("prompt_checksum", "prompt_checksum")):
            expected = getattr(judge, value) if judge else None
            yield from _differs(f"results.json: provenance.{key}", provenance.get(key), expected)


def _provenance(stored: StoredRun) -> Mapping[str, Any] | None:
    detail = _detail(stored.submission)
    value = detail.get("provenance") if detail else None
    return value if isinstance(value, Mapping) else None


def _detail(submission: Submission | None) -> Mapping[str, Any] | None:
    try:
        detail = submission["results"][0]["detail"] if submission else None
    except (KeyError, IndexError, TypeError):
        return None
    return detail if isinstance(detail, Mapping) else None


def _submission(stored: StoredRun, results: Sequence[TaskSummary]) -> Iterator[str]:
    """The submission made again from the tasks, key by key, the tasks' entries by task and key."""
    detail = _detail(stored.submission)
    if detail is None:
        yield "results.json: missing or not a submission: the run is not finished"
        return
    try:
        made = build_submission(
            role=str(stored.submission["results"][0].get("winner")) if stored.submission else "",
            participant_ids={},
            results=results,
            judge=judge_of(results),
            provenance={},
        )["results"][0]["detail"]
    except WabeError as error:
        yield f"results.json: the counts cannot be made: {error.message}"
        return
    yield from _credit(stored)
    made = json.loads(json.dumps(finite(made)))
    for key in made:
        if key not in ("tasks", "provenance"):
            yield from _differs(f"results.json: {key}", detail.get(key), made[key])
    yield from _entries(detail.get("tasks"), made["tasks"])


def _credit(stored: StoredRun) -> Iterator[str]:
    """Who took part and who is credited, as `run.json` has it."""
    submission, config, roles = stored.submission or {}, stored.run.get("config"), stored.run.get("participants")
    winner = str(submission["results"][0].get("winner"))
    if not isinstance(roles, Mapping) or winner not in roles:
        yield f"results.json: winner: {excerpt(winner)} is no participant of run.json"
    named = config.get("participant_ids") if isinstance(config, Mapping) else None
    credited = submission.get("participants")
    said = credited.get(winner) if isinstance(credited, Mapping) else None
    expected = named.get(winner) if isinstance(named, Mapping) else None
    if expected:
        # Without one in the run, somebody may have filled it in since.
        yield from _differs("results.json: participants", said, expected)


def _entries(stored: object, made: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    listed = stored if isinstance(stored, list) else []
    by_id = {entry.get("task_id"): entry for entry in listed if isinstance(entry, Mapping)}
    if len(by_id) < len(listed):
        yield f"results.json: tasks: {len(listed)} entries, {len(by_id)} of different ids"
    for entry in made:
        found = by_id.pop(entry["task_id"], None)
        if found is None:
            yield f"results.json: tasks: {entry['task_id']} is missing"
            continue
        for key in sorted({*entry, *found}):
            yield from _differs(f"results.json: {entry['task_id']}: {key}", found.get(key), entry.get(key))
    yield from (f"results.json: tasks: {excerpt(str(name))} has no files" for name in by_id)


def _versions(stored: StoredRun) -> Iterator[str]:
    recorded = stored.run.get("packages")
    installed = package_versions()
    if isinstance(recorded, Mapping):
        for name in sorted({*recorded, *installed}):
            if recorded.get(name) != installed.get(name):
                yield f"{name}: made with {recorded.get(name)}, {installed.get(name)} is installed"


def read_task(task_id: str, read: Callable[[], TaskResult], **files: Any) -> StoredTask:
    """A task's files, or why its result cannot be read."""
    try:
        result = read()
    except (WabeError, OSError, ValueError) as error:
        return StoredTask(task_id=task_id, result=None, problem=str(error)[:200])
    return StoredTask(task_id=task_id, result=result, **files)
