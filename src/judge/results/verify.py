"""Checks a stored run against itself and against the installed code.

Everything that can be made again is made again from the per-task files: digests of screenshots, snapshots and
trajectories, checksums of tasks, configuration, judging code and prompts, every entry of the submission, its counts and
rates. A run of an older version has no digests; that, and other code, is a note about it and no mismatch.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.files import read_json
from judge.judges.checked import OFFLINE
from judge.judges.factory import code_checksum
from judge.judges.prompt_set import load_prompts
from judge.results.provenance import package_versions, settings_checksum, task_set_checksum
from judge.results.run_record import environment_of, judge_of, request_sha256
from judge.results.submission import Submission, TaskResult, TaskSummary, build_submission
from judge.store import TaskStore
from judge.trajectory.files import evidence_problems, read_steps, with_digests
from judge.trajectory.result import finite
from judge.trajectory.schemas import OLDER_RUN_SCHEMAS, RESULT_SCHEMA, RUN_SCHEMA
from shared.errors import ConfigError, WabeError
from shared.models import Record, Step, Verdict
from shared.text import excerpt

_MAX_SHOWN = 80
_LATER_COUNTS = ("completed_tasks", "success_rate_of_all", "is_complete")


class StoredTask(Record):
    """One task's files: `result.json` as read, the records of `steps.jsonl`, the verdict's file, and what is wrong with
    the files themselves.
    """

    task_id: str
    result: TaskResult | None = None
    schema_version: str = RESULT_SCHEMA
    steps: tuple[Step, ...] = ()
    verdict: Verdict | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredRun:
    """One run's files: `run.json`, `results.json`, its tasks in the order of `run.json`, and folders of no such task.

    `tasks` can be gone through once.
    """

    run: dict[str, Any]
    submission: dict[str, Any] | None
    tasks: Iterable[StoredTask]
    strays: tuple[str, ...] = ()

    @property
    def is_older(self) -> bool:
        """Whether an older version recorded it."""
        return self.run.get("schema_version") in OLDER_RUN_SCHEMAS


class Findings(Record):
    """`mismatches` are what does not match; `notes` are differences that need not mean anything (other versions)."""

    tasks: int
    mismatches: tuple[str, ...]
    notes: tuple[str, ...] = ()


def verify_run(stored: StoredRun) -> Findings:
    """Everything about a run that can be made again, made again and compared."""
    mismatches: list[str] = []
    notes: list[str] = []
    results: list[TaskSummary] = []
    tasks = 0
    schema = stored.run.get("schema_version")
    if stored.is_older:
        notes.append(f"older version ({schema}): digests not recorded, not checked")
    else:
        mismatches += _differs("run.json: schema_version", schema, RUN_SCHEMA)
    for task in stored.tasks:
        tasks += 1
        mismatches += _task(task, is_older=stored.is_older)
        if task.result is not None:
            results.append(TaskSummary.of(task.result))
    mismatches += [f"results/{name}: not a task of run.json" for name in stored.strays]
    mismatches += _checksums(stored, results)
    code = list(_code(stored, results))
    (notes if stored.is_older else mismatches).extend(code)
    mismatches += _submission(stored, results)
    return Findings(tasks=tasks, mismatches=tuple(mismatches), notes=(*notes, *_versions(stored)))


def _differs(what: str, stored: object, made: object) -> Iterator[str]:
    if stored != made:
        yield f"{what}: {_shown(stored)} is stored, {_shown(made)} comes out"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _MAX_SHOWN else excerpt(text, _MAX_SHOWN)


def _task(task: StoredTask, *, is_older: bool) -> Iterator[str]:
    """A task's files against each other."""
    where = f"results/{task.task_id}"
    yield from (f"{where}/{problem}" for problem in task.problems)
    if task.result is None:
        return
    if not is_older:
        yield from _differs(f"{where}/result.json: schema_version", task.schema_version, RESULT_SCHEMA)
    yield from _differs(f"{where}: task_id", task.result.task.task_id, task.task_id)
    for number, step in enumerate(task.result.steps):
        if number >= len(task.steps) or task.steps[number] != step:
            yield f"{where}: step {number} of result.json is not the one of steps.jsonl"
            break
    else:
        yield from _differs(f"{where}/steps.jsonl: number of steps", len(task.steps), len(task.result.steps))
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
    if "request" in stored.run:
        asked = request_sha256(stored.run["request"])
        yield from _differs("run.json: request_sha256", stored.run.get("request_sha256"), asked)
    tasks = task_set_checksum([result.task for result in results])
    yield from _differs("run.json: task_set_checksum", stored.run.get("task_set_checksum"), tasks)
    config = stored.run.get("config")
    made = settings_checksum(config if isinstance(config, Mapping) else {})
    yield from _differs("run.json: config_checksum", stored.run.get("config_checksum"), made)
    provenance = _provenance(stored)
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


def _code(stored: StoredRun, results: Sequence[TaskSummary]) -> Iterator[str]:
    """The judging code and prompts that the verdicts name, against those installed here."""
    config = stored.run.get("config")
    settings = config if isinstance(config, Mapping) else {}
    judges = {judge for result in results if (judge := result.judge)}
    code = code_checksum()
    for found in sorted({judge.code_checksum for judge in judges}):
        yield from _differs("judging code", found, code)
    # Without a model there are no prompts: the code stands in their place.
    asked = sorted({judge.prompt_checksum for judge in judges if judge.model != OFFLINE})
    for found in sorted({judge.prompt_checksum for judge in judges if judge.model == OFFLINE}):
        yield from _differs("prompt set", found, code)
    if asked:
        try:
            prompts = load_prompts(settings.get("prompts")).checksum
        except ConfigError as error:
            yield f"prompt set: {error.message}"
        else:
            for found in asked:
                yield from _differs("prompt set", found, prompts)


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
    made = _as_old_as(detail, json.loads(json.dumps(finite(made))))
    for key in made:
        # Older versions counted less.
        if key not in ("tasks", "provenance") and (key in detail or not stored.is_older):
            yield from _differs(f"results.json: {key}", detail.get(key), made[key])
    yield from _entries(detail.get("tasks"), made["tasks"])


def _as_old_as(detail: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """`made` without the counts that came later, if `detail` is from before them: it has none of them."""
    if any(key in detail for key in _LATER_COUNTS):
        return made
    levels = {level: _without_later(counts) for level, counts in made["by_level"].items()}
    return {**_without_later(made), "by_level": levels}


def _without_later(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in counts.items() if key not in _LATER_COUNTS}


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


def read_task(task: TaskStore, judge_id: str) -> StoredTask:
    """A task's files as they are, with what is wrong with them."""
    folder = task.folder
    path = folder / "result.json"
    try:
        recorded = read_json(path)
        result = TaskResult.from_json(recorded, source=path.name)
        steps = read_steps(folder / "steps.jsonl")
    except (WabeError, OSError, ValueError) as error:
        problem = error.message if isinstance(error, WabeError) else f"result.json: {error}"
        return StoredTask(task_id=folder.name, problems=(problem[:200],))
    schema = recorded["schema_version"]
    problems = [*_files(folder, recorded)]
    if schema == RESULT_SCHEMA:
        problems += [*_made_again(recorded, result), *_verdicts(folder, recorded), *_attempts(folder)]
    return StoredTask(
        task_id=folder.name,
        result=result,
        schema_version=schema,
        steps=steps,
        verdict=task.read_verdict(judge_id),
        problems=tuple(problems),
    )


def _files(folder: Path, recorded: dict[str, Any]) -> Iterator[str]:
    """Screenshots and snapshots: missing, changed, or of no step."""
    named = {step[kind] for step in recorded["steps"] for kind in ("screenshot", "snapshot") if step[kind]}
    if outside := [name for name in named if Path(name).is_absolute() or ".." in Path(name).parts]:
        yield f"result.json: {excerpt(outside[0])} points outside its folder"
    elif recorded["schema_version"] == RESULT_SCHEMA:
        yield from evidence_problems(recorded, with_digests(folder, recorded))
    else:
        yield from (f"{name}: missing" for name in sorted(named) if not (folder / name).is_file())
    for kind in ("trajectory", "snapshots"):
        for path in sorted((folder / kind).iterdir()) if (folder / kind).is_dir() else ():
            if f"{kind}/{path.name}" not in named:
                yield f"{kind}/{excerpt(path.name)}: of no step"


def _made_again(recorded: Mapping[str, Any], result: TaskResult) -> Iterator[str]:
    """What `result.json` says more than once."""
    made = result.to_json()
    for key in sorted({*made, *recorded} - {"trajectory_sha256", "times"}):
        yield from _differs(f"result.json: {key}", recorded.get(key), made.get(key))


def _verdicts(folder: Path, recorded: Mapping[str, Any]) -> Iterator[str]:
    """Every verdict, of any judge, names the trajectory beside it."""
    for path in sorted((folder / "verdicts").glob("*.json")):
        try:
            named = Verdict.model_validate(read_json(path)).trajectory_sha256
        except (OSError, ValueError) as error:
            yield f"verdicts/{path.name}: not a verdict: {str(error)[:100]}"
            continue
        if named != recorded.get("trajectory_sha256"):
            yield f"verdicts/{path.name}: judged another trajectory than the one beside it"


def _attempts(folder: Path) -> Iterator[str]:
    """The files of earlier attempts against their steps. One that was interrupted may have a file more."""
    for attempt in sorted((folder / "attempts").glob("*/")):
        try:
            steps = [step.model_dump(mode="json") for step in read_steps(attempt / "steps.jsonl")]
            found = with_digests(attempt, {"steps": steps})["steps"]
        except WabeError as error:
            yield f"attempts/{attempt.name}: {error.message}"
            continue
        if steps != found:
            yield f"attempts/{attempt.name}: a screenshot or snapshot is not the file that was recorded (SHA-256)"
