"""Records too large to be read back: whatever is written is bounded where it is recorded."""

from pathlib import Path

import pytest

from helpers.episode.live_judge import ALWAYS_YES
from helpers.llm.scripted import ScriptedModel, parts_for
from helpers.plugins import verify_run
from helpers.results import JPEG, a_finished_run, a_result, write_attempt
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.judges.rescoring import judge_stored
from judge.judges.webjudge import WebJudge
from judge.records.checks import MAX_EXPRESSIONS
from judge.records.steps import MAX_STEPS, Outcome, ProbeValue, Step
from judge.records.tasks import Task
from judge.records.verdicts import Verdict
from judge.report.data import read_task
from judge.store.bounds import MAX_STEP_BYTES, bounded
from judge.store.layout import TaskStore
from judge.trajectory.files import read_steps
from judge.trajectory.record import Attempt, Trajectory
from shared.files import MAX_FILE_BYTES, write_json
from shared.models import Action, Page

# The largest steps that there can be: every field as large as it is recorded.
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


pytestmark = pytest.mark.slow

STEPS = 100


@pytest.mark.parametrize("kind", TEXTS)
def test_no_step_takes_more_than_its_share_of_a_file(tmp_path: Path, kind: str) -> None:
    step = TaskStore(tmp_path).append_step(a_largest_step(TEXTS[kind] * LONG))
    lines = []
    for count in (1, 2):
        write_json(tmp_path / "result.json", a_result(steps=(step,) * count).to_json())
        lines.append((tmp_path / "result.json").stat().st_size)
    assert lines[1] - lines[0] <= MAX_STEP_BYTES
    assert (tmp_path / "steps.jsonl").stat().st_size <= MAX_STEP_BYTES
    assert read_steps(tmp_path / "steps.jsonl") == (step,)


async def test_a_run_of_the_largest_steps_is_read_judged_reported_and_verified(tmp_path: Path) -> None:
    # The judge model is talkative as well.
    judge = WebJudge(parts_for(ScriptedModel(lambda _: f"{ALWAYS_YES}\n{'é' * 3_000}")))
    run = a_finished_run(tmp_path, a_result("t1"), judge_id=judge.id)
    task = run.task("t1")
    result = write_largest(task, TEXTS["emoji"] * LONG, STEPS)
    scored = await judge_stored(task, judge)
    task.write_result(result.model_copy(update={"verdict": scored.verdict}).to_json())
    assert scored.outcome == "success"
    # Files grow with the steps, so this is as good as the largest number of them.
    assert max(sizes(task).values()) < MAX_FILE_BYTES - (MAX_STEPS - STEPS) * MAX_STEP_BYTES
    assert (await judge_stored(task, judge)).kept
    assert len(read_task(task).steps) == STEPS
    # Nothing of the task's own files; the run's totals are those of another attempt.
    assert [line for line in verify_run(run).mismatches if line.startswith("results/t1/")] == []


class Talkative(ChecksJudge):
    """A judge that puts more on record than fits into a file."""

    def __init__(self) -> None:
        super().__init__(RunConfig(judge_model="offline"))

    def recompute(self, trajectory: Trajectory) -> Verdict:
        calls = [{"stage": "image", "reply": "\x01" * 400_000} for _ in range(20)]
        points = tuple("\x01" * 2_000 for _ in range(2_000))
        return Verdict(outcome="success", reason="\x01" * 400_000, key_points=points, evidence={"calls": calls})


async def test_a_verdict_with_evidence_without_end_can_be_read(tmp_path: Path) -> None:
    task, judge = TaskStore(tmp_path / "t1"), Talkative()
    write_attempt(task, a_result())
    await judge_stored(task, judge)
    (size,) = (size for name, size in sizes(task).items() if name.startswith("checks"))
    assert size < MAX_FILE_BYTES
    assert not (await judge_stored(task, judge)).replaced
