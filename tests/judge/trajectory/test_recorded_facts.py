"""What is recorded stays the same to the byte: runs and attempts as the version of 2026-11-27 wrote them."""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.recorded import recorded_run
from judge.commands.app import app
from judge.records.attacks import AttackResult, GoalResult, Inserted
from judge.records.causes import Cause
from judge.records.files import Download, DownloadState, NetworkTrace, TaskFile
from judge.records.findings import AddressFound, Fact, NodeFound, NodesFound, NumbersFound, ValueFound
from judge.records.holds import AllowedWrite, Hold
from judge.records.ledger import Frozen, Grade, LedgerEntry, MissClass, UsedArchive
from judge.records.policies import PolicyResult
from judge.records.steps import BlameFacts, Navigation, Outcome, ProbeValue, Step, StopReason, Timings
from judge.records.tasks import Dated, Task
from judge.records.user import Asked, UserReply
from judge.records.verdicts import ImageScore, JudgeInfo, Verdict, VerdictOutcome
from judge.results.entries import counts_of, read_entries
from judge.results.run_record import judge_id_of
from judge.results.submission import TaskSummary, detail_of
from judge.scenario.attacks import planned
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.fetched import Fetched
from judge.trajectory.files import load_trajectory, read_attempt, read_result, read_steps
from judge.trajectory.record import Attempt, evidence_sha256
from shared.claims import ClaimedSpan, ClaimedTrace, ClaimedUsage
from shared.models import Action, Notice, NoticeCode, Tab, TokenUsage, Vanished
from shared.seams import PluginInfo

# Attempts with every recorded fact, set or not: hypothesis strategies for what `result.json` can hold.
_SCENARIOS = ("demo", "docs", "held", "safety", "frozen", "miniwob", "apps")
TEXTS = st.text(st.sampled_from('aZ9 \n"<é€\u2028\U0001f600'), max_size=8)
_DIGESTS = st.sampled_from(["0" * 64, "ab" * 32])
_SECONDS = st.integers(0, 9_000_000).map(lambda micros: micros / 1_000_000)
_FLAGS = st.booleans()


def _few(each: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(each, max_size=most).map(tuple)


def _maybe(each: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | each


@cache
def bundled_tasks() -> tuple[Task, ...]:
    """The tasks of the bundled scenarios, clean and under attack."""
    scenario: list[Task] = []
    for name in _SCENARIOS:
        scenario += planned(load_scenario(ROOT / "scenarios" / name / "scenario.toml").tasks, "both")
    return tuple(scenario)


def _facts() -> st.SearchStrategy[Fact]:
    return st.one_of(
        st.builds(NumbersFound, written=_few(TEXTS)),
        st.builds(NodesFound, nodes=_few(st.builds(NodeFound, role=TEXTS, name=TEXTS)), role=_maybe(TEXTS)),
        st.builds(AddressFound, url=TEXTS, is_own=_FLAGS, title=_maybe(TEXTS)),
        st.builds(ValueFound, part=TEXTS, name=TEXTS, value=_maybe(TEXTS), difference=TEXTS),
    )


def tasks() -> st.SearchStrategy[Task]:
    """A task of a bundled scenario, some with further keys."""
    holds = {
        "hold": _few(st.builds(Hold, url=st.just("/order"), status=st.sampled_from([200, 404]), ends=_FLAGS)),
        "writes": st.just("hold"),
        "allow_writes": _few(st.builds(AllowedWrite, url=st.just("/cart"))),
        "allow_sockets": _FLAGS,
    }
    more = {
        "level": st.sampled_from([None, "easy", "medium", "hard"]),
        "reference_length": _maybe(st.integers(1, 9)),
        "key_points": _few(TEXTS),
        "allowed_sites": _few(st.just("https://other.example")),
        "start_urls": _few(st.just("https://shop.example/a")),
        "keep_fields": _few(TEXTS),
        "user_replies": _few(st.builds(UserReply, pattern=st.just("ok"), reply=st.just("Yes."))),
        "user_reply": _maybe(TEXTS),
        "files": _few(
            st.builds(TaskFile, name=st.just("cv.pdf"), size=_maybe(st.integers(0, 9)), sha256=_maybe(_DIGESTS))
        ),
        "dated": _maybe(st.builds(Dated, day=st.dates(), template=st.just({"task": "On {today}"}))),
        **holds,
    }
    changes = st.fixed_dictionaries({}, optional=more)
    return st.builds(lambda task, new: task.model_copy(update=new), st.sampled_from(bundled_tasks()), changes)


def _navigations() -> st.SearchStrategy[Navigation]:
    return st.builds(
        Navigation,
        url=TEXTS,
        is_redirect=_FLAGS,
        by=st.sampled_from(["participant", "site"]),
        in_frame=_FLAGS,
        cause=st.sampled_from([None, "goto", "back"]),
    )


def _downloads() -> st.SearchStrategy[Download]:
    return st.builds(
        Download,
        name=TEXTS,
        url=TEXTS,
        type=TEXTS,
        state=st.sampled_from(get_args(DownloadState)),
        size=_maybe(st.integers(0, 9)),
        sha256=_maybe(_DIGESTS),
        file=_maybe(st.just("downloads/001.bin")),
        sender=_maybe(TEXTS),
        step=st.integers(0, 3),
        cause=_maybe(st.builds(Cause, by=st.sampled_from(("site", "editor", "browser")), step=st.integers(0, 3))),
    )


def steps() -> st.SearchStrategy[Step]:
    """A step; its facts are set or not."""
    outcome = st.builds(
        Outcome,
        ok=_FLAGS,
        message=TEXTS,
        line=_maybe(TEXTS),
        refs=_few(TEXTS),
        attempted=_maybe(TEXTS),
        own_line=_maybe(TEXTS),
    )
    parameters = st.dictionaries(TEXTS, st.integers() | TEXTS | st.none() | st.floats(), max_size=2)
    request = st.builds(Asked, question=TEXTS, permission=_maybe(TEXTS), reply=TEXTS, fitted=_maybe(st.just(0)))
    gone = st.builds(
        Vanished, text=TEXTS, snapshot=_maybe(TEXTS), origin=_maybe(TEXTS), at_ms=st.integers(0, 9), stood_s=_SECONDS
    )
    notice = st.builds(
        Notice,
        code=st.sampled_from(get_args(NoticeCode)),
        kind=st.sampled_from([None, "svg", "empty"]),
        seconds=_maybe(_SECONDS),
        count=_maybe(st.integers(0, 3)),
    )
    more = {
        "origin": _maybe(TEXTS),
        "screenshot": st.just("trajectory/step_000.jpg"),
        "screenshot_sha256": _DIGESTS,
        "snapshot": st.just("snapshots/step_000.yaml"),
        "snapshot_sha256": _DIGESTS,
        "dialog": _maybe(TEXTS),
        "reply": TEXTS,
        "claimed_trace": _maybe(st.just(ClaimedTrace(spans=(ClaimedSpan(name="plan", start=1, end=2),)))),
        "action": st.builds(Action, tool=TEXTS, params=parameters, thought=TEXTS),
        "outcome": outcome,
        "feedback": _maybe(TEXTS),
        "flags": _few(st.sampled_from(["off_site", "suspected_injection"])),
        "refused": _few(TEXTS),
        "tabs": _few(st.builds(Tab, index=st.integers(0, 3), title=TEXTS, url=TEXTS, current=_FLAGS)),
        "viewport": st.tuples(st.integers(1, 2_000), st.integers(1, 2_000)),
        "downloads": _few(TEXTS),
        "downloaded": _few(_downloads()),
        "navigations": _few(_navigations()),
        "vanished": _few(TEXTS | gone),
        "waited_for": _few(TEXTS),
        "probes": _few(
            st.builds(ProbeValue, value=_FLAGS | st.integers(0, 9) | TEXTS | st.none(), error=_maybe(TEXTS))
        ),
        "notice": notice,
        "asked": request,
        "inserted": st.builds(Inserted, refs=_few(TEXTS)),
        "timings": st.builds(Timings, observe_s=_SECONDS, reply_s=_SECONDS, act_s=_SECONDS),
    }
    facts = st.fixed_dictionaries({"index": st.integers(0, 3), "url": TEXTS, "title": TEXTS}, optional=more)
    return facts.map(lambda values: Step(**values))


def verdicts() -> st.SearchStrategy[Verdict]:
    """A verdict of any kind of judge, without evidence, as `result.json` has it."""
    judge = st.builds(
        JudgeInfo,
        method=st.sampled_from(["checks", "webjudge", "webarena_verified"]),
        model=TEXTS,
        prompt_set=TEXTS,
        prompt_version=TEXTS,
        prompt_checksum=TEXTS,
        threshold=st.integers(1, 5),
        package_version=TEXTS,
        code_checksum=TEXTS,
        fidelity=st.sampled_from(["strict", "published"]),
        note=_maybe(TEXTS),
        plugins=_few(st.builds(PluginInfo, name=TEXTS, version=TEXTS, code_checksum=TEXTS)),
    )
    return st.builds(
        Verdict,
        outcome=st.sampled_from(get_args(VerdictOutcome)),
        reason=TEXTS,
        reason_code=_maybe(TEXTS),
        judge=_maybe(judge),
        key_points=_few(TEXTS),
        image_judge_record=_few(st.builds(ImageScore, Response=TEXTS, Score=_maybe(st.integers(0, 5)))),
        token_usage=st.builds(TokenUsage, calls=st.integers(0, 3), input=st.integers(0, 999), cached=st.integers(0, 9)),
        cost_usd=_maybe(_SECONDS),
        price_date=_maybe(st.just("2026-11-01")),
    )


def _frozen() -> st.SearchStrategy[Frozen]:
    entry = st.builds(
        LedgerEntry,
        step=st.integers(0, 3),
        method=st.just("GET"),
        url=TEXTS,
        kind=st.just("fetch"),
        grade=st.sampled_from(get_args(Grade)),
        record=_maybe(TEXTS),
        differs=_few(TEXTS),
        miss=st.sampled_from([None, *get_args(MissClass)]),
    )
    return st.builds(
        Frozen,
        archives=_few(st.builds(UsedArchive, name=TEXTS, sha256=_DIGESTS, matcher=TEXTS)),
        sites=_few(TEXTS),
        live=_few(TEXTS),
        clock_ms=_maybe(st.integers(0, 9)),
        ledger=_few(entry),
        left_out=st.integers(0, 2),
        worst_left_out=st.sampled_from(["full", "uncertain", "off_archive"]),
    )


def attempts() -> st.SearchStrategy[Attempt]:
    """An attempt as it is recorded: any task, and each fact set or not."""
    results = {
        "violated": st.sampled_from([None, False, True]),
        "attempt": _maybe(st.integers(1, 3)),
        "step": _maybe(st.integers(0, 3)),
        "found": TEXTS,
        "facts": _few(_facts()),
    }
    policy = st.builds(PolicyResult, name=TEXTS, dimension=TEXTS, presumed=_FLAGS, **results)
    goal = st.builds(GoalResult, reached=results.pop("violated"), **results)
    blame = st.builds(
        BlameFacts,
        fault=st.sampled_from(["browser_lost", "site_unreachable"]),
        party=st.sampled_from(["participant", "site"]),
        address=TEXTS,
        is_named=_FLAGS,
        is_incomplete=_FLAGS,
        has_acted=_maybe(_FLAGS),
        works_again=_maybe(_FLAGS),
    )
    attack = st.builds(
        AttackResult,
        name=TEXTS,
        kind=st.just("insert"),
        of=TEXTS,
        shown=_FLAGS,
        goals=_few(goal),
        is_unseen=_FLAGS,
    )
    fetched = st.builds(
        Fetched, url=TEXTS, bearer=_maybe(TEXTS), status=st.integers(0, 599), body=_maybe(TEXTS), error=_maybe(TEXTS)
    )
    claimed = st.builds(ClaimedUsage, replies=st.integers(0, 3), input=st.integers(0, 99), cost_usd=_maybe(_SECONDS))
    more = {
        "final_look": steps(),
        "final_answer": TEXTS,
        "error": TEXTS,
        "blame": st.sampled_from(["participant", "browser", "site"]),
        "verdict": verdicts(),
        "number": st.integers(1, 3),
        "epoch": st.integers(1, 3),
        "judge_s": _SECONDS,
        "participant_s": _SECONDS.map(lambda seconds: round(seconds, 3)),
        "navigations": _few(_navigations()),
        "versions": st.just({"browser": "1.2"}),
        "settle": st.sampled_from(["adaptive", "real-time"]),
        "shared_state": _FLAGS,
        "network": st.builds(NetworkTrace, file=st.just("network.har"), sha256=_maybe(_DIGESTS), entries=st.just(3)),
        "network_missing": TEXTS,
        "network_off": _FLAGS,
        "self_recorded": _FLAGS,
        "rules_version": st.just("3"),
        "claimed_usage": claimed,
        "progress": st.sampled_from([0.0, 0.5, 1.0]),
        "blame_facts": blame,
        "fetched": _few(fetched),
        "frozen": _frozen(),
        "context_id": TEXTS,
        "policies": _few(policy),
        "attack": attack,
        "earlier_attempts": _few(_DIGESTS),
    }
    facts = st.fixed_dictionaries(
        {
            "task": tasks(),
            "steps": _few(steps()),
            "stop_reason": st.sampled_from(get_args(StopReason)),
            "max_steps": st.integers(1, 30),
            "started_at": st.integers(0, 4_000_000_000_000_000).map(lambda micros: micros / 1_000_000),
            "ended_at": st.just(4_000_000_001.5),
        },
        optional=more,
    )
    return facts.map(lambda values: Attempt(**values))


RECORDED = ROOT / "tests" / "fixtures" / "recorded_facts"
# Later columns, as they are where nothing of them was recorded.
ADDED = {
    **dict.fromkeys(
        ("sealed", "score", "site_tools", "actions", "max_actions", "isolation", "usage_source", "metadata")
    ),
    "site_tool_calls": 0,
}
KINDS = ("demo", "held", "safety", "miniwob", "hosted", "frozen", "shards")
EPOCHS = recorded_run()


def efficiency_of(row: dict[str, Any]) -> float | None:
    """What was not recorded then, and follows from what was; a step had one action."""
    length = row.get("reference_length")
    return round(min(1, length / row["steps"]), 4) if length and row["success"] else None


@cache
def recorded(name: str) -> Any:
    return json.loads(lzma.decompress((RECORDED / f"{name}.json.xz").read_bytes()))


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with the recorded runs: their records, without images and snapshots."""
    folder = tmp_path_factory.mktemp("recorded")
    for name, text in recorded("runs")["files"].items():
        path = folder / "runs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def dumped(attempt: Attempt) -> str:
    return json.dumps(attempt.to_json(), indent=2, ensure_ascii=False, allow_nan=False)


def tasks_of(output: Path, kind: str) -> list[TaskStore]:
    run = RunStore(output, kind)
    return [task for each in (run, *run.shards()) for task in each.tasks()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_written_as_it_was_recorded(output: Path, kind: str) -> None:
    tasks = tasks_of(output, kind)
    assert tasks
    for task in tasks:
        text = (task.folder / "result.json").read_text()
        assert dumped(read_attempt(task.folder)) == text.removesuffix("\n")
        result = read_result(task.folder)
        assert evidence_sha256(result) == result["trajectory_sha256"]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_verdicts_are_written_as_they_were_recorded(output: Path, kind: str, tmp_path: Path) -> None:
    for place, task in enumerate(tasks_of(output, kind)):
        again = TaskStore(tmp_path / str(place))
        again.begin()
        for step in read_steps(task.folder / "steps.jsonl"):
            again.append_step(step)
        for path in task.folder.glob("verdicts/*.json"):
            again.write_verdict(path.stem, Verdict.model_validate_json(path.read_bytes()))
        for path in (*task.folder.glob("steps.jsonl"), *task.folder.glob("verdicts/*.json")):
            assert (again.folder / path.relative_to(task.folder)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_submission_is_made_as_it_was_recorded(output: Path, kind: str) -> None:
    run = RunStore(output, kind)
    record = run.read_run() or {}
    (result,) = json.loads((run.folder / "results.json").read_text())["results"]
    detail = result["detail"]
    done = [TaskSummary.of(read_attempt(t.folder), judge_id_of(record, t.name, t.epoch)) for t in run.tasks()]
    by_key = {(entry["task_id"], entry["epoch"]): entry for entry in (each.entry for each in done)}
    for entry in by_key.values():
        entry.pop("efficiency", None)
    assert [by_key[entry["task_id"], entry["epoch"]] for entry in detail["tasks"]] == detail["tasks"]
    assert [list(by_key[entry["task_id"], entry["epoch"]]) for entry in detail["tasks"]] == list(
        map(list, detail["tasks"])
    )
    known = {key: detail[key] for key in ("judge", "cost_usd", "provenance")}
    again = detail_of(read_entries(detail["tasks"]), **known)
    # The metered usage is added when the run has ended.
    metered = [key for key in detail if key not in again]
    assert all(key.startswith("participant") for key in metered)
    assert json.dumps(again) == json.dumps({key: detail[key] for key in detail if key not in metered})
    assert counts_of(detail["tasks"]).items() >= {"success_rate": detail["success_rate"]}.items()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_as_they_were(output: Path, kind: str) -> None:
    done = CliRunner().invoke(app, ["export", str(output / "runs" / kind), "--format", "jsonl", "--output", "-"])
    assert done.exit_code == 0, done.output
    rows = recorded("runs")["rows"][kind]
    expected = [row | ADDED | {"efficiency": efficiency_of(row)} for row in rows]
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


@pytest.mark.parametrize("layout", ["online-mind2web-v2", "webeval"])
def test_digests_of_foreign_folders_are_as_they_were(tmp_path: Path, layout: str) -> None:
    done = CliRunner().invoke(app, ["export", str(EPOCHS), "--format", layout, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    digests = recorded("runs")["foreign"][layout]
    # webeval's tasks are below `runs/…/traj`.
    home = next(tmp_path.rglob("traj"), tmp_path)
    assert sorted(digests) == sorted(folder.name for folder in home.iterdir() if folder.is_dir())
    for name, digest in digests.items():
        if layout == "webeval":
            (home / name / "task.json").write_text('{"task": "x"}')
        assert load_trajectory(home / name).sha256 == digest


def test_an_attempt_with_any_facts_is_written_as_it_was() -> None:
    for each in recorded("attempts"):
        facts = dict(each["attempt"])
        # One fact with the claimed usage now; none of these attempts had any.
        assert facts.pop("participant_usage") is None
        claimed = facts["claimed_usage"] and ClaimedUsage.model_validate(facts["claimed_usage"])
        assert dumped(Attempt.model_validate({**facts, "claimed_usage": claimed})) == each["result"]


def test_an_attempt_with_any_facts_is_read_and_written_again_unchanged() -> None:
    for each in recorded("attempts"):
        assert dumped(Attempt.from_json(json.loads(each["result"]), source="result.json")) == each["result"]


@settings(max_examples=60)
@given(attempts())
def test_what_is_written_is_read_back_with_every_fact(attempt: Attempt) -> None:
    again = Attempt.from_json(json.loads(json.dumps(attempt.to_json())), source="result.json")
    assert again.to_json() == attempt.to_json()
