"""The folders of WebArena-Verified: `<task number>/agent_response.json` and `network.har`, of any program.

After an evaluation there is `<id>_eval_result.json` beside them, and `eval_summary.json` in the folder of all tasks
(*Evaluation results* in its documentation).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judge.plugins.webarena.judge import METHOD, failed_because, read_trace
from judge.plugins.webarena.package import EvaluatorError, PackageResult, evaluator_trace, packaged_tasks
from judge.plugins.webarena.tasks import task_number, unknown_text
from judge.records.verdicts import Verdict
from judge.trajectory.foreign import foreign_task, from_steps, read_document
from judge.trajectory.foreign_verdicts import foreign_verdict
from judge.trajectory.formats import ExportedTask, FolderCheck, Format, FormatReader, FormatWriter, Source, json_text
from judge.trajectory.network import NETWORK_FILE
from judge.trajectory.paths import inside
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.files import MAX_FILE_BYTES, read_errors, read_file, read_json, write_atomic
from shared.settings import Settings
from shared.strict_json import parse_json
from shared.text import clip, counted

_ANSWER = "agent_response.json"
_RESULT = "eval_result.json"
_SUMMARY = "eval_summary.json"
_NUMBER = re.compile(r"(?:task_|webarena-)?(\d{1,6})")
_MAX_REASON_CHARS = 4_000


def answer_files(folder: Path) -> list[Path]:
    """The file that identifies a task's folder: the answer, or beside a task's number the requests."""
    names = (_ANSWER, NETWORK_FILE) if _NUMBER.fullmatch(folder.name) else (_ANSWER,)
    return next(([path] for name in names if (path := folder / name).is_file()), [])


def load(folder: Path) -> Trajectory:
    """Read a task's folder. Raises `TrajectoryError`; without requests, only verdicts that need them are unscored."""
    if not (match := _NUMBER.fullmatch(folder.resolve().name)):
        raise TrajectoryError("the folder's name is not the number of a task", location=str(folder))
    answer = inside(folder, _ANSWER, source=folder / _ANSWER, max_bytes=MAX_FILE_BYTES)
    with read_errors(answer, kind=TrajectoryError):
        text = read_file(answer).decode("utf-8", "replace")
    number = int(match[1])
    is_traced = (folder / NETWORK_FILE).exists()
    known = {"task_id": f"webarena-{number}", "task": unknown_text(number)}
    return from_steps(
        folder,
        foreign_task(folder, known, source=answer).model_copy(update={"task_id": known["task_id"]}),
        (),
        network=inside(folder, NETWORK_FILE, max_bytes=MAX_FILE_BYTES) if is_traced else None,
        network_missing=None if is_traced else f"{folder / NETWORK_FILE}: no such file",
        stop_reason="finished",
        final_answer=text,
    )


def verdicts(folder: Path) -> dict[str, Verdict]:
    """The package's result beside the attempt, by id; unscored if it cannot be read."""
    return {f"{METHOD}-{path.stem}": _recorded(folder, path) for path in sorted(folder.glob(f"*{_RESULT}"))[:10]}


def _recorded(folder: Path, path: Path) -> Verdict:
    try:
        result = read_document(folder, path.name, PackageResult)
    except TrajectoryError as error:
        return foreign_verdict("webarena-verified", None, error)
    is_success = result.status == "success"
    return foreign_verdict(
        f"webarena-verified {result.webarena_verified_version}",
        None if result.status == "error" else is_success,
        "all evaluators passed" if is_success else clip(failed_because(result), _MAX_REASON_CHARS),
        evidence={METHOD: result.model_dump(mode="json")},
    )


def write(source: Source) -> ExportedTask:
    """The task's files. The answer is unchanged: the benchmark decides whether it is readable."""
    trajectory = source.trajectory
    number = task_number(source.name) or task_number(trajectory.attempt.task.task_id)
    if number is None:
        raise TrajectoryError("not a task that was imported from WebArena-Verified")
    if trajectory.is_aborted:
        raise TrajectoryError(f"aborted: {trajectory.error or trajectory.stop_reason}")
    har, dropped = read_trace(trajectory)
    if dropped:
        raise TrajectoryError(f"the network trace is incomplete: {counted(dropped, 'request')} went unrecorded")
    answer = (trajectory.final_answer or "").encode("utf-8", "replace").decode()
    texts = {_ANSWER: answer, NETWORK_FILE: json_text(evaluator_trace(har))}
    verdict = next((each for each in source.verdicts().values() if _is_of_package(each)), None)
    if verdict is not None:
        texts[f"{number}_{_RESULT}"] = json_text(_result(number, verdict))
    return ExportedTask(texts, name=str(number))


def _is_of_package(verdict: Verdict) -> bool:
    return METHOD in verdict.evidence or (verdict.judge is not None and verdict.judge.method == METHOD)


def _result(number: int, verdict: Verdict) -> dict[str, Any]:
    """The package's result. Where its success does not count here, or it has none, the reason is the error message."""
    recorded = verdict.evidence.get(METHOD)
    result = PackageResult.model_validate(recorded) if recorded else None
    status = {"success": "success", "unscored": "error"}.get(verdict.outcome, "failure")
    if result is not None and verdict.outcome == "failure" and result.status != "success":
        status = result.status
    is_agreed = result is not None and result.status == status
    version = verdict.judge.prompt_version if verdict.judge else "unknown"
    known = result.model_dump(mode="json") if result else {}
    return {
        "task_id": number,
        "intent_template_id": known.get("intent_template_id"),
        "sites": known.get("sites", []),
        "task_revision": known.get("task_revision"),
        "status": status,
        "score": float(status == "success"),
        "evaluators_results": [_evaluator(each) for each in known.get("evaluators_results", ())],
        "error_msg": known.get("error_msg") if is_agreed else verdict.reason,
        "webarena_verified_version": known.get("webarena_verified_version", version),
        "webarena_verified_evaluator_checksum": known.get("webarena_verified_evaluator_checksum"),
        "webarena_verified_data_checksum": known.get("webarena_verified_data_checksum"),
    }


def _evaluator(result: Mapping[str, Any]) -> dict[str, Any]:
    """An evaluator's result, with values in place of their JSON texts."""
    score = float(result["status"] == "success") if result["score"] is None else result["score"]
    values = {key: _value(result[key]) for key in ("actual", "actual_normalized", "expected")}
    return {**result, "score": score, **values}


def _value(text: str) -> Any:
    try:
        return parse_json(text) if text else None
    except ValueError:
        return text


def finish(output: Path, folders: Sequence[Path], _run: Mapping[str, Any]) -> None:
    """Write the summary of all tasks that have a result, if any has."""
    paths = [path for folder in folders for path in sorted(folder.glob(f"*{_RESULT}"))]
    results: list[dict[str, Any]] = [read_json(path) for path in paths]
    if not results:
        return
    results.sort(key=lambda result: result["task_id"])
    counts = Counter(result["status"] for result in results)
    per_site: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        site = "-".join(sorted(result["sites"])) or "other"
        per_site.setdefault(site, []).append({key: result[key] for key in ("task_id", "status", "score")})
    versions = ("version", "evaluator_checksum", "data_checksum")
    summary = {
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        **{key: results[0][key] for key in (f"webarena_verified_{name}" for name in versions)},
        "total": len(results),
        "success_count": counts["success"],
        "failed_count": counts["failure"] + counts["partial_match"],
        "error_count": counts["error"],
        "per_site_summary": per_site,
        "task_results": results,
    }
    write_atomic(output / _SUMMARY, json_text(summary).encode("utf-8", "backslashreplace"))


def check(folder: Path, _lengths: Mapping[str, int], settings: Settings) -> FolderCheck:
    """Have the folder checked by the benchmark's submission command."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder", remedy="give the folder of a submission")
    try:
        accepted = packaged_tasks(settings.webarena_python, folder)
    except EvaluatorError as error:
        return FolderCheck((), 0, 0, fault=str(error))
    folder_names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    refused_names = [name for name in folder_names if not name.isdecimal() or int(name) not in accepted]
    problems = [f"{name}: refused by webarena-verified create-submission-pkg" for name in refused_names]
    return FolderCheck(problems, len(folder_names) - len(refused_names), len(folder_names))


WRITER = FormatWriter(write=write, check=check, finish=finish)
FORMAT = Format(reader=FormatReader(files=answer_files, load=load, verdicts=verdicts), writer=WRITER)
