"""The largest steps that there can be: every field as large as it is recorded."""

from helpers.results import JPEG
from judge.records.checks import MAX_EXPRESSIONS
from judge.records.steps import MAX_STEPS, Outcome, ProbeValue, Step
from judge.records.tasks import Task
from judge.store.bounds import bounded
from judge.store.layout import TaskStore
from judge.trajectory.record import Attempt
from shared.models import Action, Page

# Longer than any text that a step may hold.
LONG = 20_000
# One byte a character, a JSON escape of six, four bytes of UTF-8, a line break of `steps.jsonl`, no UTF-8 at all.
TEXTS = {"plain": "a", "control": "\x01", "emoji": "\U0001f600", "separator": "\u2028", "surrogate": "\ud800"}


def a_largest_step(text: str) -> Step:
    """A step with every field as large as it can be made."""
    return Step(
        index=MAX_STEPS,
        url=text,
        title=text,
        screenshot="trajectory/step_0000.jpg",
        screenshot_sha256="0" * 64,
        snapshot="snapshots/step_0000.yaml",
        snapshot_sha256="0" * 64,
        dialog=text,
        reply=text,
        action=Action(tool=text, params={"text": text, text: [[text[:100]] * 20] * 9}, thought=text),
        outcome=Outcome(ok=False, message=text, line=text),
        feedback=text,
        flags=(text,) * 100,
        refused=(text,) * 100,
        probes=(ProbeValue(value=text[:100]),) * MAX_EXPRESSIONS,
    )


def write_largest(task: TaskStore, text: str, count: int) -> Attempt:
    """An attempt of `count` steps as large as there can be, on disk."""
    task.begin()
    loud = bounded(a_largest_step(text))
    steps = []
    for index in range(count):
        page = Page(url="", title="", snapshot="- text", screenshot=JPEG + str(index).encode())
        steps.append(task.append_step(loud.model_copy(update={"index": index, **task.write_page(index, page)})))
    result = Attempt(
        task=Task(task_id=task.folder.name, website="https://x.example/", task="Do it."),
        steps=tuple(steps),
        stop_reason="finished",
        max_steps=MAX_STEPS,
        final_answer=text[:10_000],
        started_at=1.0,
        ended_at=2.0,
    )
    task.write_result(result.to_json())
    return result


def sizes(task: TaskStore) -> dict[str, int]:
    paths = [task.folder / "result.json", task.folder / "steps.jsonl", *task.folder.glob("verdicts/*")]
    return {path.name: path.stat().st_size for path in paths}
