"""Records too large to be read back: whatever is written is bounded where it is recorded."""

from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.episode.live_judge import ALWAYS_YES
from helpers.episode.one_page_shop import assess_in_shop
from helpers.llm.scripted import ScriptedModel, parts_for
from helpers.plugins import verify_run
from helpers.results import a_finished_run, a_result, write_attempt
from helpers.trajectory.largest import LONG, TEXTS, a_largest_step, sizes, write_largest
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.judges.rescoring import judge_stored
from judge.judges.webjudge import WebJudge
from judge.records.steps import MAX_STEPS, Step
from judge.records.verdicts import Verdict
from judge.report.data import read_task
from judge.results.submission import TaskSummary, build_submission
from judge.store.bounds import MAX_STEP_BYTES, bounded
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import load_trajectory, read_steps
from judge.trajectory.record import Trajectory
from shared.files import MAX_FILE_BYTES, read_json, write_json
from shared.models import Action
from shared.protocol import render_reply

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]
STEPS = 100


class Talker:
    """Replies with one action that the judge refuses, in as many characters as it may."""

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        return render_reply(Action(tool="browser_click", params={"target": "e9", "note": "x" * LONG}))


async def test_long_replies_with_refused_actions_leave_a_result_that_can_be_read(
    tmp_path: Path, record_property: Record
) -> None:
    steps = 17
    (done,) = await assess_in_shop(tmp_path, Talker(), 1, max_steps=steps)
    task = RunStore(tmp_path, "r").task("t0")
    record_property("outcome", f"{done.outcome} ({done.entry['stop_reason']}), {sizes(task)['result.json']} bytes")
    assert (done.outcome, done.entry["stop_reason"]) == ("failure", "max_steps")
    assert sizes(task)["result.json"] <= steps * MAX_STEP_BYTES
    assert len(load_trajectory(task.folder).steps) == steps


@pytest.mark.parametrize("kind", TEXTS)
def test_no_step_takes_more_than_its_share_of_a_file(tmp_path: Path, kind: str, record_property: Record) -> None:
    step = TaskStore(tmp_path).append_step(a_largest_step(TEXTS[kind] * LONG))
    lines = []
    for count in (1, 2):
        write_json(tmp_path / "result.json", a_result(steps=(step,) * count).to_json())
        lines.append((tmp_path / "result.json").stat().st_size)
    record_property("outcome", f"{lines[1] - lines[0]} of at most {MAX_STEP_BYTES} bytes")
    assert lines[1] - lines[0] <= MAX_STEP_BYTES
    assert (tmp_path / "steps.jsonl").stat().st_size <= MAX_STEP_BYTES
    assert read_steps(tmp_path / "steps.jsonl") == (step,)


async def test_a_run_of_the_largest_steps_is_read_judged_reported_and_verified(
    tmp_path: Path, record_property: Record
) -> None:
    # The judge model is talkative as well.
    judge = WebJudge(parts_for(ScriptedModel(lambda _: f"{ALWAYS_YES}\n{'é' * 3_000}")))
    run = a_finished_run(tmp_path, a_result("t1"), judge_id=judge.id)
    task = run.task("t1")
    result = write_largest(task, TEXTS["emoji"] * LONG, STEPS)
    scored = await judge_stored(task, judge)
    task.write_result(result.model_copy(update={"verdict": scored.verdict}).to_json())
    record_property("outcome", f"{scored.outcome}; bytes: {sizes(task)}")
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


async def test_a_verdict_with_evidence_without_end_can_be_read(tmp_path: Path, record_property: Record) -> None:
    task, judge = TaskStore(tmp_path / "t1"), Talkative()
    write_attempt(task, a_result())
    scored = await judge_stored(task, judge)
    (size,) = (size for name, size in sizes(task).items() if name.startswith("checks"))
    record_property("outcome", f"{scored.outcome}: {size} bytes on file")
    assert size < MAX_FILE_BYTES
    assert not (await judge_stored(task, judge)).replaced


def test_a_submission_of_a_thousand_loud_tasks_can_be_read(tmp_path: Path, record_property: Record) -> None:
    step = bounded(a_largest_step(TEXTS["control"] * LONG))
    loud = a_result(steps=(step,) * 20, error=TEXTS["control"] * 2_000, blame="participant")
    tasks = (TaskSummary.of(loud),) * 1_000
    submission = build_submission(role="p", participant_ids={}, results=tasks, provenance={})
    write_json(tmp_path / "results.json", submission)
    size = (tmp_path / "results.json").stat().st_size
    entry = read_json(tmp_path / "results.json")["results"][0]["detail"]["tasks"][0]
    record_property("outcome", f"{size} bytes, {len(entry['thoughts'])} thoughts a task")
    assert size < MAX_FILE_BYTES
    assert entry["task_id"] == "t1"


def test_addresses_that_a_page_asked_for_without_end_are_counted(tmp_path: Path, record_property: Record) -> None:
    request = tuple(f"http://127.0.0.{number}/" for number in range(100_000))
    step = TaskStore(tmp_path).append_step(Step(index=0, url="", title="", refused=request))
    record_property("outcome", f"{len(step.refused) - 1} kept, then {step.refused[-1]!r}")
    assert step.refused[-1] == f"… {100_000 - len(step.refused) + 1} more"
