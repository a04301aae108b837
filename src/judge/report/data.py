"""Reads a run into views, one task at a time: memory holds one task's page and every task's row, never the run.

A report must open for any run, so damage is a fact to show and not an error: a task whose result cannot be read is
listed as unfinished, with the cause.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.events import one_line
from judge.files import read_file, read_json
from judge.report.evidence import verdict_view
from judge.report.images import read_size
from judge.report.safe_text import host_of
from judge.report.views import ElementView, Phases, RunView, ScoreView, StepView, TaskRow, TaskView, VerdictView
from judge.store import RunStore, TaskStore
from judge.trajectory.files import read_steps
from judge.trajectory.result import TaskResult
from shared.errors import TrajectoryError
from shared.models import Step, Task, Verdict
from shared.snapshot import REF, parse_snapshot

_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_IMAGE = re.compile(r"trajectory/([A-Za-z0-9_-]{1,64}\.(?:jpg|jpeg|png|webp))")
_MAX_SNAPSHOT_BYTES = 16_000_000


def read_run(store: RunStore) -> RunView:
    """The run's own facts. Missing files leave gaps, never errors."""
    record = store.read_run() or {}
    listed = record.get("task_ids")
    known = [name for name in listed if _is_id(name)] if isinstance(listed, list) else []
    found = [task.folder.name for task in store.tasks() if _is_id(task.folder.name)]
    participants = record.get("participants")
    role = next(iter(participants), "") if isinstance(participants, dict) else ""
    return RunView(store.run_id, record, str(role), tuple(dict.fromkeys([*known, *found])))


def read_tasks(store: RunStore, run: RunView) -> Iterator[TaskView]:
    """Every task of the run, in the scenario's order where `run.json` knows it."""
    for task_id in run.task_ids:
        yield read_task(store.task(task_id))


def read_task(store: TaskStore) -> TaskView:
    """One task as far as it stands on disk."""
    try:
        result = _result(store)
    except TrajectoryError as error:
        return _unfinished(store, str(error))
    if result is None:
        return _unfinished(store, "no result yet: the episode is running, was interrupted, or never began")
    verdicts = _verdicts(store, result)
    counted = next((verdict for verdict in verdicts if verdict.counts), None)
    scores = counted.scores if counted else ()
    return TaskView(
        row=_row(result, scores),
        steps=_steps(store, result.steps, scores),
        verdicts=verdicts,
        answer=result.final_answer,
        error=result.cause,
        versions=tuple(result.versions.items()),
        earlier_attempts=_earlier_attempts(store),
        judged={verdict.judge_id: verdict.outcome for verdict in verdicts if verdict.is_stored},
    )


def _result(store: TaskStore) -> TaskResult | None:
    path = store.folder / "result.json"
    if not path.is_file():
        return None
    value = store.read_result()
    if value is None:
        raise TrajectoryError(f"{path.name} is damaged: not a JSON object")
    return TaskResult.from_json(value, source=path.name)


def _unfinished(store: TaskStore, why: str) -> TaskView:
    name = store.folder.name
    steps: tuple[Step, ...] = ()
    with contextlib.suppress(TrajectoryError):
        steps = read_steps(store.folder / "steps.jsonl")
    row = TaskRow(name, name, "", "unknown", "unknown", "unfinished", why, steps=len(steps))
    return TaskView(row=row, steps=_steps(store, steps, ()), error=why, earlier_attempts=_earlier_attempts(store))


def _row(result: TaskResult, scores: tuple[ScoreView, ...]) -> TaskRow:
    task: Task = result.task
    timings = [step.timings for step in result.steps]
    observe, reply, act = (
        sum(getattr(timing, name) for timing in timings) for name in ("observe_s", "reply_s", "act_s")
    )
    duration = max(0.0, result.ended_at - result.started_at)
    why = (result.verdict.reason if result.verdict and not result.is_aborted else None) or result.cause
    return TaskRow(
        task_id=task.task_id,
        task=task.task,
        website=task.website,
        site=host_of(task.website),
        level=task.level or "unknown",
        outcome=result.outcome,
        why=one_line(why or result.stop_reason, 240),
        stop_reason=result.stop_reason,
        steps=result.steps_taken,
        max_steps=result.max_steps,
        reference_length=task.reference_length,
        duration_s=duration,
        phases=Phases(observe, reply, act, result.judge_s or 0.0, max(0.0, duration - observe - reply - act)),
        cost_usd=result.cost_usd,
        tokens=result.token_usage,
        scores=tuple(score.score for score in scores),
        flags=tuple(result.flags),
        attempt=result.attempt,
    )


def _verdicts(store: TaskStore, result: TaskResult) -> tuple[VerdictView, ...]:
    """The stored verdicts, the one that counts first. Without its file it comes from `result.json`, less evidence."""
    views = []
    for path in sorted((store.folder / "verdicts").glob("*.json")):
        try:
            verdict = Verdict.model_validate(read_json(path))
        except (OSError, ValueError) as error:
            views.append(VerdictView(path.stem, "unreadable", f"{path.name} cannot be read: {one_line(str(error))}"))
            continue
        mine = result.verdict
        same = mine is not None and (mine.outcome, mine.reason, mine.judge) == (
            verdict.outcome,
            verdict.reason,
            verdict.judge,
        )
        views.append(verdict_view(path.stem, verdict, counts=same and not any(view.counts for view in views)))
    if result.verdict is not None and not any(view.counts for view in views):
        judge = result.verdict.judge
        name = judge.method if judge else "no judge asked"
        views.append(replace(verdict_view(name, result.verdict, counts=True), is_stored=False))
    return tuple(sorted(views, key=lambda view: not view.counts))


def _steps(store: TaskStore, steps: tuple[Step, ...], scores: tuple[ScoreView, ...]) -> tuple[StepView, ...]:
    shown = [step.index for step in steps if step.screenshot]
    # Only a record with one entry per screenshot says which is which.
    by_index = dict(zip(shown, scores, strict=True)) if len(shown) == len(scores) else {}
    return tuple(_step(store, step, by_index.get(step.index)) for step in steps)


def _step(store: TaskStore, step: Step, score: ScoreView | None) -> StepView:
    image = _IMAGE.fullmatch(step.screenshot) if step.screenshot else None
    action, outcome = step.action, step.outcome
    state = "none" if outcome is None else "ok" if outcome.ok else "failed"
    return StepView(
        number=step.index + 1,
        url=step.url,
        title=step.title,
        image=image[1] if image else None,
        size=read_size(store.folder / "trajectory" / image[1]) if image else None,
        line=outcome.line if outcome else None,
        tool=action.tool if action else "",
        params=json.dumps(action.params, ensure_ascii=False, indent=1) if action and action.params else "",
        thought=action.thought if action else "",
        reply=step.reply,
        state=state,  # type: ignore[arg-type]
        message=outcome.message if outcome else "",
        feedback=step.feedback or "",
        dialog=step.dialog or "",
        flags=step.flags,
        observe_s=step.timings.observe_s,
        reply_s=step.timings.reply_s,
        act_s=step.timings.act_s,
        element=_element(store.folder, step),
        score=score.score if score else None,
        score_reason=score.reason if score else "",
        refused=step.refused,
    )


def _element(folder: Path, step: Step) -> ElementView | None:
    """The element that the action named, looked up in the step's own snapshot.

    Only lines that hold the reference are parsed: whole snapshots of a large run would take minutes.
    """
    ref = _ref_of(step.action.params) if step.action else None
    if ref is None or not step.snapshot or ".." in step.snapshot or not step.snapshot.startswith("snapshots/"):
        return None
    path = folder / step.snapshot
    try:
        if path.is_symlink():
            return None
        text = read_file(path, max_bytes=_MAX_SNAPSHOT_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    for line in _lines_with(text, f"[ref={ref}]"):
        node = parse_snapshot(line.strip()).by_ref(ref)
        if node is not None:
            label = f'{node.role} "{node.name}"' if node.name else node.role
            return ElementView(label[:200], node.box)
    return None


def _ref_of(params: dict[str, Any]) -> str | None:
    for key in ("target", "ref"):
        value = params.get(key)
        if isinstance(value, str) and REF.fullmatch(value):
            return value
    return None


def _lines_with(text: str, mark: str) -> Iterator[str]:
    position = text.find(mark)
    while position >= 0:
        start, end = text.rfind("\n", 0, position) + 1, text.find("\n", position)
        yield text[start : end if end >= 0 else len(text)]
        position = text.find(mark, position + len(mark)) if end < 0 else text.find(mark, end)


def _earlier_attempts(store: TaskStore) -> int:
    attempts = store.folder / "attempts"
    return sum(1 for _ in attempts.iterdir()) if attempts.is_dir() else 0


def _is_id(name: object) -> bool:
    return isinstance(name, str) and _TASK_ID.fullmatch(name) is not None
