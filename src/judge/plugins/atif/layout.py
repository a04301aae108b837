"""Reads and writes trajectories in ATIF (Agent Trajectory Interchange Format), version 1.8, of Harbor's RFC 0001.

A folder holds `trajectory.json` and the images that it names. In our files, step 1 is the user's: the task's text and
the first page. Each later step is one reply of the agent with its tool call, and what came of it: the action line and
the page after it. What the format has no place for is in `extra`, under `wabe`. Files of other tools may have any
version of it: each tool call is a step here, and the last image before it is its page.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, Field

from judge.records.steps import Outcome, Step, StopReason
from judge.records.verdicts import Verdict
from judge.trajectory.foreign import (
    MAX_FOREIGN_STEPS,
    foreign_task,
    from_steps,
    local_name,
    period_of,
    read_document,
    starts_like,
    tool_line,
)
from judge.trajectory.foreign_verdicts import foreign_verdict, tokens_of
from judge.trajectory.formats import ExportedTask, Format, FormatReader, FormatWriter, Source, json_text, turns
from judge.trajectory.paths import inside, usable_id
from judge.trajectory.record import Trajectory
from shared.fields import as_mapping, as_mappings, without_none
from shared.models import Action
from shared.text import clip, split_line, without_surrogates

_FILE = "trajectory.json"
_VERSION = "ATIF-v1.8"
_SCHEMA_VERSION = re.compile(rb'"schema_version"\s*:\s*"ATIF-v1\.\d+"')
_IMAGES = "images"
_OURS = "wabe"
_MAX_TEXT_CHARS = 20_000
_MEDIA = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp", ".gif": "image/gif"}
_STOP_REASONS: tuple[StopReason, ...] = get_args(StopReason)


def write(source: Source) -> ExportedTask:
    """A task's trajectory. Raises `TrajectoryError` if it records no page, which no step of the format can hold."""
    trajectory = source.trajectory
    attempt = trajectory.attempt
    recorded = [str(page.screenshot) for page in attempt.observations if page.screenshot]
    names = {
        name: f"{_IMAGES}/{place:03d}{PurePosixPath(name).suffix.lower()}"
        for place, name in enumerate(dict.fromkeys(recorded))
        if PurePosixPath(name).suffix.lower() in _MEDIA
    }
    usage = attempt.claimed_usage
    tokens: dict[str, Any] = {}
    if usage:
        tokens = {"total_prompt_tokens": usage.input, "total_completion_tokens": usage.output}
        tokens |= without_none(total_cost_usd=usage.cost_usd)
    steps = list(_step_entries(trajectory, names))
    document = {
        "schema_version": _VERSION,
        "session_id": source.name,
        "agent": {"name": "participant", "version": "unknown"},
        "steps": steps,
        "final_metrics": {**tokens, "total_steps": len(steps)},
        "extra": {_OURS: _facts(source)},
    }
    text = without_surrogates(json_text(_as_json(document)))
    return ExportedTask({_FILE: text}, tuple(names.items()))


def _facts(source: Source) -> dict[str, Any]:
    trajectory, verdict = source.trajectory, source.counted
    task, attempt = trajectory.task, trajectory.attempt
    return without_none(
        task_id=source.name,
        website=task.website,
        level=task.level,
        reference_length=source.reference_length or task.reference_length,
        stop_reason=attempt.stop_reason,
        error=attempt.error,
        final_answer=attempt.final_answer,
        max_steps=attempt.max_steps,
        started_at=datetime.fromtimestamp(attempt.started_at, UTC).isoformat(),
        ended_at=datetime.fromtimestamp(attempt.ended_at, UTC).isoformat(),
        trajectory_sha256=trajectory.sha256,
        verdict=None
        if verdict is None
        else {
            "outcome": verdict.outcome,
            "reason": verdict.reason,
            "method": verdict.judge.method if verdict.judge else "",
        },
    )


def _step_entries(trajectory: Trajectory, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The steps; the page after an action is the next observation's."""
    attempt = trajectory.attempt
    first = next(iter(attempt.observations), None)
    yield {
        "step_id": 1,
        "timestamp": datetime.fromtimestamp(attempt.started_at, UTC).isoformat(),
        "source": "user",
        "message": _parts(trajectory.task.task, first.screenshot if first else None, names),
        **({"extra": {_OURS: {"url": first.url, "title": first.title}}} if first else {}),
    }
    for step_id, (step, began, line, text, after) in enumerate(turns(attempt), 2):
        action, call = step.action, f"call-{step.index}"
        yield {
            "step_id": step_id,
            "timestamp": datetime.fromtimestamp(began, UTC).isoformat(),
            "source": "agent",
            "message": step.reply or "",
            **without_none(reasoning_content=(action.thought or None) if action else None),
            **(
                {"tool_calls": [{"tool_call_id": call, "function_name": action.tool, "arguments": action.params}]}
                if action and action.tool
                else {}
            ),
            "observation": {
                "results": [
                    {
                        **({"source_call_id": call} if action and action.tool else {}),
                        "content": _parts(text, after.screenshot if after else None, names),
                    }
                ]
            },
            "extra": {
                _OURS: without_none(
                    index=step.index,
                    executed=line is not None,
                    action_line=line,
                    after={"url": after.url, "title": after.title} if after else None,
                )
            },
        }


def _parts(text: str, screenshot: str | None, names: Mapping[str, str]) -> str | list[dict[str, Any]]:
    name = names.get(screenshot or "")
    if name is None:
        return text
    source = {"media_type": _MEDIA[PurePosixPath(name).suffix], "path": name}
    return [{"type": "text", "text": text}, {"type": "image", "source": source}]


def _as_json(value: Any) -> Any:
    """Parameters as the participant sent them may hold numbers that JSON does not have."""
    return json.loads(json.dumps(value, default=str), parse_constant=str)


class _Call(BaseModel):
    tool_call_id: str = ""
    function_name: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)


class _Result(BaseModel):
    source_call_id: str | None = None
    content: str | list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class _Observation(BaseModel):
    results: tuple[_Result, ...] = ()


class _Step(BaseModel):
    """The fields read from a step."""

    source: str = "agent"
    timestamp: str | None = None
    message: str | list[dict[str, Any]] = ""
    reasoning_content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    observation: _Observation | None = None
    extra: dict[str, Any] | None = None

    @property
    def ours(self) -> Mapping[str, Any]:
        return as_mapping((self.extra or {}).get(_OURS))


class _Document(BaseModel):
    """The fields read from a trajectory. Copied and embedded trajectories are left out."""

    steps: tuple[_Step, ...] = Field(min_length=1, max_length=MAX_FOREIGN_STEPS)
    final_metrics: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    @property
    def ours(self) -> Mapping[str, Any]:
        return as_mapping((self.extra or {}).get(_OURS))


class _PageView(NamedTuple):
    screenshot: str | None = None
    url: str = ""
    title: str = ""


def files(folder: Path) -> list[Path]:
    """The trajectory, if the folder has one of this format: other tools use the name for other files."""
    path = folder / _FILE
    return [path] if starts_like(path, _SCHEMA_VERSION) else []


def load(folder: Path) -> Trajectory:
    """Read the folder of one trajectory. Raises `TrajectoryError`, which names the file and what is wrong with it."""
    path = folder / _FILE
    document = read_document(folder, _FILE, _Document)
    ours, user_step = document.ours, next((step for step in document.steps if step.source == "user"), None)
    known = {
        "task_id": usable_id(str(ours.get("task_id") or folder.resolve().name)),
        "task": _text(user_step.message) if user_step else None,
        **{key: ours[key] for key in ("website", "level", "reference_length") if key in ours},
    }
    stop_reason, answer = _end(document)
    stamps = (ours.get("started_at"), *(step.timestamp for step in document.steps), ours.get("ended_at"))
    metrics = document.final_metrics or {}
    return from_steps(
        folder,
        foreign_task(folder, known, source=path),
        _steps(folder, path, document),
        period=period_of(stamps),
        stop_reason=stop_reason,
        final_answer=answer,
        error=error if isinstance(error := ours.get("error"), str) else None,
        claimed_usage=tokens_of(
            *(metrics.get(f"total_{name}") for name in ("prompt_tokens", "completion_tokens", "cost_usd"))
        ),
    )


def verdicts(folder: Path) -> dict[str, Verdict]:
    """The verdict that counted when one of our runs was exported, if there was one."""
    verdict_table = as_mapping(read_document(folder, _FILE, _Document).ours.get("verdict"))
    is_success = {"success": True, "failure": False}.get(str(verdict_table.get("outcome")))
    if is_success is None:
        return {}
    method = f"atif {verdict_table.get('method') or 'verdict'}"
    return {"atif-verdict": foreign_verdict(method, is_success, verdict_table.get("reason"))}


def _steps(folder: Path, path: Path, document: _Document) -> Iterator[Step]:
    page, index = _PageView(), 0
    for step in document.steps:
        if step.source != "agent":
            page = _page(folder, path, step.message, page, step.ours)
            for result in step.observation.results if step.observation else ():
                page = _page(folder, path, result.content, page, {})
            continue
        results = step.observation.results if step.observation else ()
        by_call = {result.source_call_id: result for result in results if result.source_call_id}
        alone = results[0] if len(results) == 1 else _Result()
        calls: tuple[_Call | None, ...] = step.tool_calls or (None,)
        # A message without a call is the answer, unless our export says that it was an unreadable reply.
        for place, call in enumerate(calls if step.tool_calls or "index" in step.ours else ()):
            thought = (step.reasoning_content or _text(step.message)) if place == 0 else ""
            result = by_call.get(call.tool_call_id, alone) if call else alone
            yield Step(
                index=index,
                url=page.url,
                title=page.title,
                screenshot=page.screenshot,
                reply=clip(_text(step.message), _MAX_TEXT_CHARS) if place == 0 else "",
                action=Action(tool=call.function_name, params=call.arguments, thought=thought) if call else None,
                outcome=_outcome(call, result, step.ours),
            )
            index += 1
            # The next action has this page only if the result shows it.
            page = page._replace(screenshot=None)
            page = _page(folder, path, result.content, page, as_mapping(step.ours.get("after")))
    if page.screenshot:
        # What the last action led to, which no later action has as its page.
        yield Step(index=index, url=page.url, title=page.title, screenshot=page.screenshot)


def _page(folder: Path, path: Path, content: object, before: _PageView, ours: Mapping[str, Any]) -> _PageView:
    """The page that a message or a result shows; without an image, there is no screenshot of it."""
    url, title = (str(ours.get(key) or "") for key in ("url", "title"))
    images = [
        as_mapping(part.get("source")).get("path")
        for part in as_mappings(content if isinstance(content, list) else ())
        if part.get("type") == "image"
    ]
    names = [name for name in images if isinstance(name, str) and "://" not in name]
    if not names:
        return _PageView(None, url or before.url, title or before.title) if ours or images else before
    relative = local_name(names[-1])
    inside(folder, relative, source=path)
    return _PageView(relative, url, title)


def _outcome(call: _Call | None, result: _Result, ours: Mapping[str, Any]) -> Outcome:
    message = clip(_text(result.content or ""), 3_000)
    is_error = ours.get("executed") is False or bool(as_mapping(result.extra).get("is_error"))
    if call is None or is_error:
        return Outcome(ok=False, message=message)
    line = ours.get("action_line")
    if isinstance(line, str) and split_line(line):
        return Outcome(ok=True, message=message, line=clip(line, 3_000))
    return Outcome(ok=True, message=message, line=tool_line(call.function_name, call.arguments))


def _end(document: _Document) -> tuple[StopReason, str | None]:
    """How it ended, and the final answer: in files of other tools, the last message without a tool call."""
    ours = document.ours
    for reason in _STOP_REASONS:
        if reason != ours.get("stop_reason"):
            continue
        answer = ours.get("final_answer")
        return reason, answer if isinstance(answer, str) else None
    last = document.steps[-1]
    last_text = _text(last.message) if last.source == "agent" and not last.tool_calls else ""
    return "finished", last_text or None


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if part.get("type") == "text" and part.get("text"))


FORMAT = Format(reader=FormatReader(files=files, load=load, verdicts=verdicts), writer=FormatWriter(write=write))
