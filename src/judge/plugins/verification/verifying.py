"""Checks a stored run for consistency, and compares it with the installed code.

Everything that can be derived is recomputed from the per-task files: digests of screenshots, snapshots and
trajectories, checksums of tasks, configuration, judging code and prompts, every entry of the submission, its counts and
rates, and every verdict that needs no judge model. What was not recomputed is a note and not a mismatch.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from judge.config import RunConfig
from judge.evaluators.attacks import evaluate_attack
from judge.evaluators.policies import evaluate_policies
from judge.judges.checked import METHOD
from judge.judges.code import code_checksum
from judge.judges.prompt_set import load_prompts
from judge.plugins.verification.episodes import EpisodeFindings
from judge.records.tasks import Task
from judge.records.verdicts import OFFLINE, JudgeInfo, Verdict
from judge.results.entries import TaskEntry, decided, read_entries
from judge.results.folders import FolderStore
from judge.results.identity import identity_in
from judge.results.part import parts_of
from judge.results.processes import in_processes
from judge.results.recomputed import Recomputation, VerdictMismatch, deciding_config, is_of_checks, notes_of
from judge.results.rows import ENTRY_COLUMNS, EXCLUDED
from judge.results.run_record import (
    EPISODES,
    excluded_by_run,
    excluded_by_scenario,
    judge_id_of,
    made_with,
    package_versions,
    settings_checksum,
    sha256_of,
    tasks_of,
)
from judge.results.submission import TaskSummary, build_submission
from judge.store.layout import DOWNLOADS, RunStore, TaskStore, verdicts_in
from judge.trajectory.files import (
    evidence_problems,
    load_trajectory,
    own_trajectory,
    read_result,
    read_steps,
    recorded_pages,
    with_digests,
)
from judge.trajectory.network import NETWORK_FILE
from judge.trajectory.record import ATTACK, POLICIES, Attempt, Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.fields import as_mapping, as_mappings
from shared.files import LfsPointer, read_file, read_json, reason_of
from shared.images import media_type
from shared.models import Record
from shared.plugins import Facts, declared
from shared.seams import installed_plugins
from shared.text import counted, excerpt

_MAX_SHOWN = 80
# From this number on, starting processes saves time.
_MANY_TASKS = 100
# Larger than a Git LFS pointer.
_IMAGE_HEAD_BYTES = 2048

R = TypeVar("R")


class Findings(Record):
    """`mismatches` are contradictions; `notes` are differences that may be harmless, such as other versions.

    `is_foreign`: of a folder other than a run, for which little can be compared.
    """

    tasks: int
    mismatches: tuple[str, ...]
    notes: tuple[str, ...] = ()
    is_foreign: bool = False


def verify_run(store: RunStore) -> Findings:
    """Recompute everything that can be derived, and compare. Raises `ConfigError` without a `run.json`.

    For a folder of trajectories that WABE did not record, only the digests named in verdicts can be compared.
    """
    store.without_key()
    if isinstance(store, FolderStore):
        return _folder(store)
    run = store.read_run()
    if run is None:
        raise ConfigError(f"{store.folder / 'run.json'}: missing or not JSON", remedy="name the folder of a run")
    tasks = tasks_of(store, run)
    mismatches: list[str] = []
    try:
        recomputation = Recomputation(deciding_config(run))
    except ConfigError as error:
        recomputation = Recomputation(RunConfig())
        mismatches.append(f"{error.message}: verdicts are recomputed without it")
    notes: list[str] = []
    episodes = EpisodeFindings.of(store, run, tasks) if run.get(EPISODES) else None
    tasks = tasks if episodes is None else episodes.ended
    summaries = []
    left_out = Counter[str]()
    judge_ids = [judge_id_of(run, task.name, task.epoch) for task in tasks]
    checked = partial(_task, recomputation=recomputation)
    for task, judge_id, (summary, problems, not_made) in zip(
        tasks, judge_ids, _mapped(checked, tasks, judge_ids), strict=True
    ):
        problems += _decider(run, summary.task, judge_id) if summary else ()
        left_out += not_made
        mismatches += [f"{task.folder.relative_to(store.folder)}{problem}" for problem in problems]
        summaries += [summary] if summary else []
    known = {task.folder for task in (*tasks, *(episodes.unfinished if episodes else ()))}
    strays = [task.folder.relative_to(store.folder) for task in store.tasks() if task.folder not in known]
    mismatches += [f"{folder}: not a task of run.json" for folder in strays]
    try:
        submission = read_json(store.folder / "results.json")
        result = submission["results"][0]
        detail = as_mapping(result["detail"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        result, detail = {}, {}
    mismatches += _checksums(run, summaries, detail, is_whole=episodes is None)
    judges = {summary.judge for summary in summaries if summary.judge}
    by_checks = {judge for judge in judges if judge.method == METHOD}
    # Verdicts of checks are recomputed by the installed code, regardless of which code gave them.
    notes += _code(run, by_checks)
    mismatches += _code(run, judges - by_checks)
    if detail:
        mismatches += _credit(run, as_mapping(submission.get("participants")), str(result.get("winner")))
        mismatches += [*_detail(detail, summaries, run), *_exclusions(run, summaries)]
        of_totals, odd = _totals(detail, store)
        mismatches += of_totals
        notes += odd
    elif episodes is not None:
        mismatches += [
            *episodes.mismatches,
            *episodes.other_tasks(summaries),
            *_interrupted(store, episodes.unfinished),
        ]
        notes += episodes.notes
    else:
        mismatches.append("results.json: missing or not a submission: the run is not finished")
    return Findings(
        tasks=len({task.name for task in tasks}),
        mismatches=tuple(mismatches),
        notes=(*notes, *notes_of(left_out), *_versions(run)),
    )


def _mapped(check: Callable[..., R], *arguments: Sequence[Any]) -> Iterator[R]:
    """The result of `check` for each task, in several processes for a large run."""
    if len(arguments[0]) < _MANY_TASKS:
        yield from map(check, *arguments)
        return
    yield from in_processes(check, *arguments, at_once=4)


def _folder(store: FolderStore) -> Findings:
    tasks, problems = tuple(store.tasks()), []
    recomputation, left_out = Recomputation(RunConfig()), Counter[str]()
    recorded, compared = 0, 0
    for task in tasks:
        try:
            trajectory = load_trajectory(task.folder)
        except TrajectoryError as error:
            problems.append(f"{task.name}: {error.message}")
            continue
        recorded += trajectory.is_digested
        judged = {trajectory.sha256} if trajectory.is_digested else {trajectory.sha256, None}
        verdicts = verdicts_in(task.folder)
        compared += len(verdicts)
        problems += [f"{task.name}/{problem}" for problem in _unfit(verdicts, judged)]
        load, readable = partial(_as_is, trajectory), _readable(verdicts)
        mismatches = recomputation.differences(readable, trajectory.stop_reason, None, left_out, load)
        problems += [f"{task.name}/{problem}" for problem in _recomputed(mismatches)]
        problems += [f"{task.name}: {problem}" for problem in _unusable_images(trajectory.screenshots)]
    unrecorded = len(tasks) - recorded
    notes = [f"compared with their trajectories: {counted(compared, 'verdict')}"]
    notes += [
        f"digests of {unrecorded} of {counted(len(tasks), 'trajectory', 'trajectories')}: not recorded, not checked"
    ]
    notes += ["counts, rates and checksums: a folder that is not a run of WABE has none, not checked"]
    return Findings(tasks=len(tasks), mismatches=tuple(problems), notes=(*notes, *notes_of(left_out)), is_foreign=True)


def _as_is(trajectory: Trajectory) -> Trajectory:
    return trajectory


def _unusable_images(paths: Sequence[Path]) -> Iterator[str]:
    """Screenshots that are Git LFS pointers, unreadable, or no images: one line for each kind, with the first name."""
    images_by_problem: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        try:
            if media_type(read_file(path, head_bytes=_IMAGE_HEAD_BYTES)) is None:
                images_by_problem["neither JPEG, PNG nor WebP"].append(path.name)
        except LfsPointer:
            images_by_problem["Git LFS pointers instead of images (run git lfs pull)"].append(path.name)
        except (OSError, ValueError) as error:
            images_by_problem[f"unreadable ({reason_of(error)})"].append(path.name)
    for what, names in images_by_problem.items():
        yield f"{what}: {len(names)} of {counted(len(paths), 'screenshot')}, such as {excerpt(names[0])}"


def _differs(what: str, stored: object, recomputed: object) -> Iterator[str]:
    if stored == recomputed:
        return
    if isinstance(stored, Mapping) and isinstance(recomputed, Mapping) and stored.keys() == recomputed.keys():
        for key in stored:
            yield from _differs(f"{what}.{key}", stored[key], recomputed[key])
    elif isinstance(stored, list) and isinstance(recomputed, list) and len(stored) == len(recomputed):
        for number, pair in enumerate(zip(stored, recomputed, strict=True)):
            yield from _differs(f"{what}[{number}]", *pair)
    else:
        yield f"{what}: {_in_words(stored)} is stored, expected {_in_words(recomputed)}"


def _in_words(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _MAX_SHOWN else excerpt(text, _MAX_SHOWN)


def _task(
    task: TaskStore, judge_id: str, *, recomputation: Recomputation
) -> tuple[TaskSummary | None, list[str], Counter[str]]:
    """Compare a task's files.

    Returns its summary, the mismatches as text to follow the task's path, and the verdicts that were not recomputed.
    """
    left_out = Counter[str]()
    try:
        recorded = read_result(task.folder, source="result.json")
        attempt = Attempt.from_json(recorded, source="result.json")
        steps = read_steps(task.folder / "steps.jsonl")
        problems, digested = _files(task.folder, recorded)
        verdicts = verdicts_in(task.folder)
        sha256 = recorded.get("trajectory_sha256")
        problems += [*_derived(recorded, attempt), *_unfit(verdicts, {sha256}), *_attempts(task.folder)]
        load = partial(own_trajectory, task.folder, recorded, attempt, digested)
        stored = _readable(verdicts)
        problems += _recomputed(recomputation.differences(stored, attempt.stop_reason, judge_id, left_out, load))
        problems += _policies(attempt, load) if attempt.task.watched else ()
        of_plugins = (facts.contradictions(attempt) for _, facts in declared(Facts))
        problems += [f"result.json: {problem}" for found in of_plugins for problem in found]
    except TrajectoryError as error:
        return None, [f"/{error.message[:200]}"], left_out
    problems = [f"/{problem}" for problem in problems]
    problems += _differs(": task_id", attempt.task.task_id, task.folder.name)
    problems += _differs(": epoch", attempt.epoch, task.epoch)
    changed = (n for n, step in enumerate(attempt.steps) if n >= len(steps) or steps[n] != step)
    if (number := next(changed, None)) is not None:
        problems.append(f": step {number} of result.json is not the one of steps.jsonl")
    else:
        problems += _differs("/steps.jsonl: number of steps", len(steps), len(attempt.steps))
    stored_verdict, own = attempt.verdict, stored.get(judge_id)
    if stored_verdict is not None and own is None:
        problems.append("/verdicts: none of the run's judge, though result.json holds one")
    if stored_verdict is not None and own is not None:
        for key in ("outcome", "reason", "reason_code", "key_points", "image_judge_record"):
            name = "verdict" if key == "outcome" else key
            values = (verdict.model_dump(mode="json", include={key}).get(key) for verdict in (stored_verdict, own))
            problems += _differs(f": {name} of result.json", *values)
    return TaskSummary.of(attempt, judge_id), problems, left_out


def _files(folder: Path, recorded: dict[str, Any]) -> tuple[list[str], dict[str, Any] | None]:
    """Screenshots, snapshots and network traces missing, changed, or referenced by nothing.

    Returns the problems, and `recorded` with the digests of the files, if they were read.
    """
    problems: list[str] = []
    digested = None
    file_names = {
        page[kind] for page in recorded_pages(recorded) for kind in ("screenshot", "snapshot") if page.get(kind)
    }
    file_names |= {
        each["file"] for page in recorded_pages(recorded) for each in page.get("downloaded", ()) if each.get("file")
    }
    file_names |= {recorded["network"]["file"]} if recorded.get("network") else set()
    if outside := [name for name in file_names if Path(name).is_absolute() or ".." in Path(name).parts]:
        problems.append(f"result.json: {excerpt(outside[0])} points outside its folder")
    else:
        digested = with_digests(folder, recorded)
        problems += evidence_problems(recorded, digested)
    if not recorded.get("network") and (folder / NETWORK_FILE).exists():
        problems.append(f"{NETWORK_FILE}: belongs to no recorded network trace")
    for kind in ("trajectory", "snapshots", "final", DOWNLOADS):
        for path in sorted((folder / kind).iterdir()) if (folder / kind).is_dir() else ():
            if f"{kind}/{path.name}" not in file_names:
                problems.append(f"{kind}/{excerpt(path.name)}: belongs to no step")
    return problems, digested


def _derived(recorded: Mapping[str, Any], attempt: Attempt) -> Iterator[str]:
    """Contradictions between redundant values in `result.json`."""
    recomputed_result = attempt.to_json()
    for key in sorted({*recomputed_result, *recorded} - {"trajectory_sha256", "times"}):
        yield from _differs(f"result.json: {key}", recorded.get(key), recomputed_result.get(key))


def _policies(attempt: Attempt, load: Callable[[], Trajectory]) -> Iterator[str]:
    """Compare what became of the policies and of the attack with what the recordings of all attempts give."""
    try:
        trajectory = load()
        policy_results, attack = evaluate_policies(trajectory), evaluate_attack(trajectory)
    except (TrajectoryError, OSError):
        # Reported where the files are compared.
        return
    stored = [each.model_dump(mode="json") for each in attempt.policies]
    yield from _differs(f"result.json: {POLICIES}", stored, [each.model_dump(mode="json") for each in policy_results])
    both = [each.model_dump(mode="json") if each else None for each in (attempt.attack, attack)]
    yield from _differs(f"result.json: {ATTACK}", *both)


def _readable(verdicts: Mapping[str, Verdict | Exception]) -> dict[str, Verdict]:
    return {name: verdict for name, verdict in verdicts.items() if isinstance(verdict, Verdict)}


def _unfit(verdicts: Mapping[str, Verdict | Exception], expected: Collection[str | None]) -> Iterator[str]:
    """Verdicts that cannot be read, or whose digest is not an expected one."""
    for name, verdict in verdicts.items():
        if isinstance(verdict, Exception):
            yield f"verdicts/{name}.json: not a verdict: {str(verdict)[:100]}"
        elif verdict.trajectory_sha256 not in expected:
            yield f"verdicts/{name}.json: judged another trajectory than the one beside it"


def _recomputed(differences: Iterable[VerdictMismatch]) -> Iterator[str]:
    """Verdicts that differ from the recomputed ones."""
    for mismatch in differences:
        yield from _differs(f"{mismatch.file}: {mismatch.key}", mismatch.stored, mismatch.recomputed)


def _attempts(folder: Path) -> Iterator[str]:
    """Compare the files of earlier attempts with their steps. An interrupted attempt may have one more file."""
    for attempt in sorted((folder / "attempts").glob("*/")):
        yield from (f"attempts/{attempt.name}: {problem}" for problem in _unfinished(attempt))


def _interrupted(store: RunStore, tasks: Sequence[TaskStore]) -> Iterator[str]:
    for task in tasks:
        yield from (f"{task.folder.relative_to(store.folder)}: {problem}" for problem in _unfinished(task.folder))


def _unfinished(folder: Path) -> Iterator[str]:
    """Compare the files of an attempt without a result with its steps."""
    try:
        steps = [step.model_dump(mode="json") for step in read_steps(folder / "steps.jsonl")]
        digested_steps = with_digests(folder, {"steps": steps})["steps"]
    except TrajectoryError as error:
        yield error.message
        return
    if steps != digested_steps:
        yield "a screenshot or snapshot is not the file that was recorded (SHA-256)"


def _checksums(
    run: Mapping[str, Any], summaries: Sequence[TaskSummary], detail: Mapping[str, Any], *, is_whole: bool
) -> Iterator[str]:
    """`is_whole`: there is an attempt at every task, so that these are the run's set of tasks."""
    of_results, settings = made_with(summaries), settings_checksum(as_mapping(run.get("config")))
    checksums: dict[str, Any] = {"config_checksum": settings}
    if is_whole:
        checksums["task_set_checksum"] = of_results["task_set_checksum"]
    if run.get("decided_by"):
        checksums["decided_by"] = decided(TaskEntry.read(summary.entry) for summary in summaries)
    if "request" in run:
        checksums["request_sha256"] = sha256_of(run["request"])
    for key, value in checksums.items():
        yield from _differs(f"run.json: {key}", run.get(key), value)
    provenance = detail.get("provenance")
    if isinstance(provenance, Mapping):
        expected = {**of_results, "config_checksum": settings, "run_id": run.get("run_id")}
        if "identity" in run:
            expected["identity"] = identity_in(run)
        for key, expected_digest in expected.items():
            yield from _differs(f"results.json: provenance.{key}", provenance.get(key), expected_digest)


def _code(run: Mapping[str, Any], judges: Collection[JudgeInfo]) -> Iterator[str]:
    """Compare the judging code and prompts named in the verdicts with the installed ones."""
    code = code_checksum()
    for checksum in sorted({judge.code_checksum for judge in judges}):
        yield from _differs("judging code", checksum, code)
    # For checks, the prompt checksum is the code's.
    for checksum in sorted({judge.prompt_checksum for judge in judges if judge.model == OFFLINE}):
        yield from _differs("prompt set", checksum, code)
    yield from _plugins(judges)
    if of_models := sorted({judge.prompt_checksum for judge in judges if judge.model != OFFLINE}):
        try:
            prompts = load_prompts(as_mapping(run.get("config")).get("prompts")).checksum
        except ConfigError as error:
            yield f"prompt set: {error.message}"
        else:
            for checksum in of_models:
                yield from _differs("prompt set", checksum, prompts)


def _plugins(judges: Collection[JudgeInfo]) -> Iterator[str]:
    """Compare the plug-ins named in the verdicts with the installed ones."""
    installed = installed_plugins()
    for plugin in sorted({plugin for judge in judges for plugin in judge.plugins}, key=str):
        name = f"plug-in {excerpt(plugin.name)}"
        if (here := installed.get(plugin.name)) is None:
            yield f"{name}: version {excerpt(plugin.version)} took part, and it is not installed"
        elif plugin != here:
            yield from _differs(f"{name}: version", plugin.version, here.version)
            yield from _differs(f"{name}: code", plugin.code_checksum, here.code_checksum)


def _decider(run: Mapping[str, Any], task: Task, judge_id: str) -> Iterator[str]:
    """A judge model named as the judge of a task that its checks decide: its verdicts cannot be recomputed."""
    truth = as_mapping(run.get("config")).get("truth", "checks")
    if task.checks and truth == "checks" and not is_of_checks(judge_id):
        yield f": run.json names {excerpt(judge_id)} as its judge, but its checks decide"


def _credit(run: Mapping[str, Any], credited: Mapping[str, Any], winner: str) -> Iterator[str]:
    """Compare the submission's participants and winner with `run.json`."""
    if winner not in as_mapping(run.get("participants")):
        yield f"results.json: winner: {excerpt(winner)} is not a participant of run.json"
    # An id not configured may have been filled in later.
    if expected := as_mapping(as_mapping(run.get("config")).get("participant_ids")).get(winner):
        yield from _differs("results.json: participants", credited.get(winner), expected)


def _totals(detail: Mapping[str, Any], store: RunStore) -> tuple[list[str], list[str]]:
    """Compare what a submission says of the run's other files with these. Returns mismatches and notes."""
    mismatches: list[str] = []
    notes: list[str] = []
    for part in parts_of(store):
        try:
            totals = part.recorded_totals(detail)
            notes += part.notes(detail)
        except ConfigError as error:
            mismatches.append(error.message)
            continue
        for key in part.keys:
            mismatches += _differs(f"results.json: {key}", detail.get(key), totals.get(key))
    return mismatches, notes


def _exclusions(run: Mapping[str, Any], summaries: Sequence[TaskSummary]) -> Iterator[str]:
    """Compare the tasks that were not played with those that `run.json` excludes."""
    reasons = excluded_by_run(run)
    for entry in read_entries(summary.entry for summary in summaries):
        yield from _differs(f"{entry.key}: excluded", entry.excluded, reasons.get(entry.task_id))


def _detail(detail: Mapping[str, Any], summaries: Sequence[TaskSummary], run: Mapping[str, Any]) -> Iterator[str]:
    """Compare the submission's detail with the one derived from the tasks, by key, and task entries by task and key."""
    listed = detail.get("tasks")
    stored = {_key(entry): entry for entry in as_mappings(listed)}
    # Files from before a column was added do not have it, and it did not count towards the size limit.
    added = {column.entry for column in ENTRY_COLUMNS if column.added}
    results = [_as_recorded(summary, stored.get(_key(summary.entry)), added) for summary in summaries]
    submission = build_submission(
        role="", participant_ids={}, results=results, provenance={}, excluded=excluded_by_scenario(run)
    )
    # Round-tripped, as when read from a file: a surrogate pair becomes one character.
    own_detail = json.loads(json.dumps(submission["results"][0]["detail"]))
    entries = own_detail.pop("tasks")
    del own_detail["provenance"]
    for key, value in ({EXCLUDED: None} | own_detail).items():
        yield from _differs(f"results.json: {key}", detail.get(key), value)
    by_id = dict(stored)
    if isinstance(listed, list) and len(by_id) < len(listed):
        yield f"results.json: tasks: {len(listed)} entries with {counted(len(by_id), 'different id')}"
    for entry in entries:
        name = TaskEntry.read(entry).key
        own_entry = by_id.pop(_key(entry), None)
        if own_entry is None:
            yield f"results.json: tasks: {name} is missing"
            continue
        for key in sorted({*own_entry, *entry}):
            yield from _differs(f"results.json: {name}: {key}", own_entry.get(key), entry.get(key))
    yield from (f"results.json: tasks: {excerpt(str(name[0]))} has no files" for name in by_id)


def _as_recorded(summary: TaskSummary, stored: Mapping[str, Any] | None, added: Set[str]) -> TaskSummary:
    lacking = set() if stored is None else (added & summary.entry.keys()) - stored.keys()
    return summary.without(lacking) if lacking else summary


def _key(entry: Mapping[str, Any]) -> tuple[str, str]:
    """The identity of an entry; in a damaged file it may contain anything."""
    return str(entry.get("task_id")), str(entry.get("epoch", 1))


def _versions(run: Mapping[str, Any]) -> Iterator[str]:
    recorded, installed = as_mapping(run.get("packages")), package_versions()
    for name in sorted({*recorded, *installed}) if recorded else ():
        if recorded.get(name) != installed.get(name):
            yield f"{name}: made with {recorded.get(name)}, {installed.get(name)} is installed"
