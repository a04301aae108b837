"""Task results and submissions for tests."""

import tempfile
from pathlib import Path
from typing import Any

from helpers.trajectory.recordings import RecordedRequest
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.records.files import NetworkTrace
from judge.records.steps import Outcome, Step, StopReason
from judge.records.tasks import Task
from judge.records.verdicts import NO_PROMPTS, ImageScore, JudgeInfo, Verdict
from judge.results.identity import identity_in
from judge.results.rows import COLUMNS, AttemptRow
from judge.results.run_record import begin_run, end_run, provenance
from judge.results.submission import Submission, TaskSummary, build_submission
from judge.scenario.models import Launch, Shard
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import load_trajectory, with_digests
from judge.trajectory.network import write_har
from judge.trajectory.record import Attempt, evidence_sha256
from judge.trajectory.redaction import Redaction
from shared.models import Action, Page, TokenUsage

JPEG = b"\xff\xd8\xff\xe0"
JUDGE = JudgeInfo(
    method="webjudge",
    model="offline",
    prompt_set="default",
    prompt_version="1",
    prompt_checksum="c0ffee",
    threshold=3,
    package_version="0.1.0",
    code_checksum="beef",
)


def a_verdict(outcome: Any = "success", **changes: Any) -> Verdict:
    values: dict[str, Any] = {
        "outcome": outcome,
        "reason": "because",
        "judge": JUDGE,
        "key_points": ("one",),
        "image_judge_record": (ImageScore(Response="Score: 4", Score=4),),
        "token_usage": TokenUsage(calls=2, input=100, output=10),
        "cost_usd": 0.25,
    }
    return Verdict(**(values | changes))


def a_step(index: int, *, thought: str = "I look.", line: str | None = "<Go button> -> CLICK", **changes: Any) -> Step:
    values: dict[str, Any] = {
        "index": index,
        "url": "https://example.org/",
        "title": "Example",
        "screenshot": f"trajectory/step_{index:03d}.jpg",
        "snapshot": f"snapshots/step_{index:03d}.yaml",
        "action": Action(tool="browser_click", params={"ref": "e1"}, thought=thought),
        "outcome": Outcome(ok=line is not None, line=line),
    }
    return Step(**(values | changes))


A_TRACE = NetworkTrace(file="network.har", sha256=None, entries=0)


def a_result(task_id: str = "t1", stop_reason: StopReason = "finished", **changes: Any) -> Attempt:
    level = changes.pop("level", "easy")
    values: dict[str, Any] = {
        "task": Task(task_id=task_id, website="https://example.org/", task="Find it.", level=level),
        "steps": (a_step(0), a_step(1, line="<page> -> FINISH")),
        "stop_reason": stop_reason,
        "max_steps": 15,
        "verdict": a_verdict() if stop_reason == "finished" else None,
        "started_at": 1_700_000_000.25,
        "ended_at": 1_700_000_010.5,
    }
    return Attempt(**(values | changes))


def a_submission(
    *results: Attempt, role: str = "white_agent", judge: JudgeInfo | None = JUDGE, **changes: Any
) -> Submission:
    values: dict[str, Any] = {
        "role": role,
        "participant_ids": {role: "id-1"},
        "results": tuple(map(TaskSummary.of, results or (a_result(),))),
        "provenance": {"package_version": "0.1.0"},
    }
    submission = build_submission(**(values | changes))
    submission["results"][0]["detail"]["judge"] = judge.model_dump(mode="json") if judge else {}
    return submission


def write_attempt(task: TaskStore, result: Attempt) -> Attempt:
    """A result on disk with its steps, screenshots, snapshots and trace; returns it with their digests."""
    task.begin()
    steps = []
    for step in result.steps:
        page = Page(
            url="", title="", snapshot=f"- text: step {step.index}", screenshot=JPEG + bytes([step.index % 256])
        )
        steps.append(task.append_step(step.model_copy(update=task.write_page(step.index, page))))
    attempt = result.model_copy(update={"steps": tuple(steps)})
    if look := result.final_look:
        files = task.write_final_page(Page(url="", title="", snapshot="- text: the end", screenshot=JPEG + b"end"))
        attempt = attempt.model_copy(update={"final_look": look.model_copy(update=files)})
    if result.network is not None:
        trace = write_har(task.folder, [RecordedRequest().har_entry(1)], Redaction(salt=b"test").entry, versions={})
        attempt = attempt.model_copy(update={"network": trace})
    task.write_result(attempt.to_json())
    return attempt


def verdict_of_checks(result: Attempt, **config: Any) -> Verdict:
    """The verdict that checks give on this attempt."""
    with tempfile.TemporaryDirectory() as folder:
        write_attempt(TaskStore(Path(folder)), result)
        return ChecksJudge(RunConfig(**config)).recompute(load_trajectory(folder))


def write_verdict_on(task: TaskStore, judge_id: str, verdict: Verdict) -> None:
    """A verdict beside the trajectory that it names."""
    task.write_verdict(judge_id, verdict.model_copy(update={"trajectory_sha256": load_trajectory(task.folder).sha256}))


def a_finished_run(
    folder: Path,
    *results: Attempt,
    judge_id: str = "webjudge-1",
    run_id: str = "run-1",
    shard: Shard | None = None,
    config: RunConfig | None = None,
) -> RunStore:
    """A run or shard on disk as an assessment leaves it under `folder`, with steps, verdicts and a submission."""
    config, store = config or RunConfig(judge_model="offline"), RunStore(folder, run_id)
    launch = Launch(scenario_name="s", scenario_path="/s", scenario_sha256="00", shard=shard) if shard else None
    store.create()
    tasks = list({result.task.task_id: result.task for result in results}.values())
    config = config.model_copy(update={"epochs": max((result.epoch for result in results), default=1)})
    begin_run(store, config=config, tasks=tasks, role="white_agent", url="http://x/", judge_id=judge_id, launch=launch)
    for result in results:
        place = store.task(result.task.task_id, result.epoch)
        write_attempt(place, result)
        if result.verdict:
            write_verdict_on(place, judge_id, result.verdict)
    done = tuple(map(TaskSummary.of, results))
    end_run(store, "completed", done)
    made_with = provenance(config=config, results=done, run_id=run_id)
    made_with["identity"] = identity_in(store.read_run() or {})
    store.write_submission(build_submission(role="white_agent", participant_ids={}, results=done, provenance=made_with))
    return store


def a_row(**changes: Any) -> AttemptRow:
    """A row of a table: texts are `x`, numbers 1, lists empty; of a clean task."""
    known: dict[type, Any] = {int: 1, float: 1.0, bool: True, str: "x"}
    values: dict[str, Any] = {column.name: known.get(column.type, column.empty) for column in COLUMNS}
    return AttemptRow(**(values | {"attack": None, "clean_task": None} | changes))


def digested(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """A `result.json` with the digests of the files in its folder."""
    whole = with_digests(folder, result)
    return whole | {"trajectory_sha256": evidence_sha256(whole)}


def by_checks(outcome: str, *failed: dict[str, Any]) -> Any:
    """A verdict of checks; a failure has those that failed."""
    info = JUDGE.model_copy(update={"method": "checks", "prompt_set": NO_PROMPTS})
    evidence = {"checks": [{**each, "passed": False} for each in failed]}
    return a_verdict(outcome, judge=info, reason="Oak is chosen: failed", evidence=evidence)
