"""Writes a run as one log of Inspect (`.eval`), which `inspect log dump` and `inspect view` open.

Source: its log format, version 2 (`inspect_ai.log`). The file is a zip: `header.json` says what was evaluated and the
results, `summaries.json` has a line for each sample, and `samples/<id>_epoch_<n>.json` the messages of an attempt: the
task and the first page are the user's, each reply is the assistant's with its tool call, and what came of it, with the
next page, is the tool's. A verdict is a score of 1 or 0. An attempt without one has none, and an aborted one an error.
"""

import base64
import json
import math
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from judge.records.steps import Step
from judge.trajectory.formats import ExportedTask, Format, FormatWriter, Source, json_text, turns
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.fields import as_mapping, without_none
from shared.files import read_errors, read_file, read_json, write_errors
from shared.images import media_type
from shared.text import without_surrogates

_SAMPLE = "sample.json"
_MAX_BYTES = 256_000_000
_SCORER = "verdict"
_AGENT = "participant"
# Of a sample, what its summary repeats.
_SUMMARISED = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "started_at", "completed_at")


def write(source: Source) -> ExportedTask:
    """An attempt as a sample. Raises `TrajectoryError`."""
    sample = json.loads(json.dumps(_sample(source), default=str), parse_constant=str)
    return ExportedTask({_SAMPLE: without_surrogates(json_text(sample))})


def _sample(source: Source) -> dict[str, Any]:
    trajectory, verdict = source.trajectory, source.counted
    task, attempt, usage = trajectory.task, trajectory.attempt, trajectory.attempt.claimed_usage
    answer = {"role": "assistant", "content": trajectory.final_answer or ""}
    score = verdict and {
        "value": float(verdict.outcome == "success"),
        "answer": trajectory.final_answer,
        "explanation": verdict.reason,
        "metadata": {"method": verdict.judge.method, "model": verdict.judge.model} if verdict.judge else {},
    }
    tokens = {"input_tokens": usage.input, "output_tokens": usage.output} if usage else {}
    return {
        "id": source.name,
        "epoch": attempt.epoch,
        "input": task.task,
        "target": "",
        "messages": [*_messages(trajectory), answer],
        "output": {"model": _AGENT, "choices": [{"message": answer, "stop_reason": "stop"}]},
        "scores": {_SCORER: score} if score else {},
        "metadata": {
            **dict(task.metadata),
            **without_none(level=task.level, reference_length=source.reference_length or task.reference_length),
            "website": task.website,
            "stop_reason": attempt.stop_reason,
            "trajectory_sha256": trajectory.sha256,
            **without_none(cause=attempt.cause),
        },
        "model_usage": {_AGENT: {**tokens, "total_tokens": sum(tokens.values())}} if tokens else {},
        "started_at": _moment(attempt.started_at),
        "completed_at": _moment(attempt.ended_at),
        **without_none(total_time=attempt.duration_s, error=_error(attempt.cause) if attempt.is_aborted else None),
    }


def _error(cause: str | None) -> dict[str, str]:
    message = cause or "aborted"
    return {"message": message, "traceback": message, "traceback_ansi": message}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _messages(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    first = next(iter(trajectory.attempt.observations), None)
    yield {"role": "user", "content": _content(trajectory, trajectory.task.task, first)}
    for step, _, _, text, after in turns(trajectory.attempt):
        action, outcome, call = step.action, step.outcome, f"call-{step.index}"
        if action is None or not action.tool:
            yield {"role": "assistant", "content": step.reply or ""}
            yield {"role": "user", "content": _content(trajectory, text, after)}
            continue
        call_made = {"id": call, "function": action.tool, "arguments": action.params, "type": "function"}
        yield {"role": "assistant", "content": action.thought or "", "tool_calls": [call_made]}
        is_failed = outcome is not None and not outcome.ok
        yield {
            "role": "tool",
            "content": _content(trajectory, text, after),
            "tool_call_id": call,
            "function": action.tool,
            **({"error": {"type": "unknown", "message": text}} if is_failed else {}),
        }


def _content(trajectory: Trajectory, text: str, page: Step | None) -> list[dict[str, str]]:
    parts = [{"type": "text", "text": text}]
    if page is not None and page.screenshot:
        path = trajectory.folder / page.screenshot
        with read_errors(path, kind=TrajectoryError):
            data = read_file(path)
        if kind := media_type(data):
            parts.append({"type": "image", "image": f"data:{kind};base64,{base64.b64encode(data).decode()}"})
    return parts


def finish(output: Path, folders: Sequence[Path], run: Mapping[str, Any]) -> None:
    """Put all samples into one log, in place of their folders."""
    name = str(as_mapping(run.get("scenario")).get("name") or "tasks")
    run_id = str(run.get("run_id") or name)
    # One after another: each holds all screenshots of its attempt.
    summaries = []
    path = output / f"{run_id}.eval"
    with (
        write_errors(path, "choose another --output or free some space"),
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log,
    ):
        for folder in folders:
            sample = read_json(folder / _SAMPLE, max_bytes=_MAX_BYTES)
            summaries.append(
                {key: sample[key] for key in _SUMMARISED}
                | {"completed": "error" not in sample, "message_count": len(sample["messages"])}
                | without_none(error=as_mapping(sample.get("error")).get("message"))
            )
            log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json_text(sample))
            shutil.rmtree(folder)
        header = _header(name, run_id, run, summaries)
        log.writestr("_journal/start.json", json_text({key: header[key] for key in ("version", "eval", "plan")}))
        log.writestr("summaries.json", json_text(summaries))
        log.writestr("header.json", json_text(header))


def _header(name: str, run_id: str, run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    role, agent = next(iter(as_mapping(run.get("participants")).items()), (_AGENT, {}))
    values = [sample["scores"][_SCORER]["value"] for sample in samples if sample["scores"]]
    began, ended = (
        pick(sample[key] for sample in samples) for pick, key in ((min, "started_at"), (max, "completed_at"))
    )
    metrics = {}
    if values:
        mean = sum(values) / len(values)
        error = math.sqrt(mean * (1 - mean) / (len(values) - 1)) if len(values) > 1 else 0.0
        metrics = {key: {"name": key, "value": value} for key, value in (("accuracy", mean), ("stderr", error))}
    spec = {
        "eval_id": run_id,
        "run_id": run_id,
        "created": began,
        "task": name,
        "task_id": name,
        "dataset": {"name": name, "samples": len(samples), "sample_ids": [sample["id"] for sample in samples]},
        "model": str(as_mapping(agent).get("model") or role),
        "config": {"epochs": 1},
        "packages": {"wabe": metadata.version("wabe")},
        "metadata": {"participant": as_mapping(agent)},
    }
    return {
        "version": 2,
        "status": "success",
        "eval": spec,
        "plan": {"name": "wabe", "steps": [{"solver": "wabe", "params": {}}], "config": {}},
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum(sample["completed"] for sample in samples),
            "scores": [
                {
                    "name": _SCORER,
                    "scorer": _SCORER,
                    "scored_samples": len(values),
                    "unscored_samples": len(samples) - len(values),
                    "metrics": metrics,
                }
            ],
        },
        "stats": {"started_at": began, "completed_at": ended, "model_usage": {}},
    }


FORMAT = Format(writer=FormatWriter(write=write, finish=finish))
