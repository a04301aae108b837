"""What is recorded stays the same to the byte: runs and attempts as the version of 2026-11-27 wrote them."""

import builtins
import json
import lzma
import types
import typing
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import pytest
from annotated_types import Ge
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.plugins import is_complete, skip_without_command
from helpers.recorded import recorded_run
from judge.commands.app import app
from judge.config import RunConfig
from judge.records.files import TaskFile
from judge.records.holds import AllowedWrite, Hold
from judge.records.tasks import Dated, Task
from judge.records.user import UserReply
from judge.records.verdicts import Verdict
from judge.results.entries import counts_of, read_entries
from judge.results.rows import COLUMNS
from judge.results.run_record import judge_id_of
from judge.results.submission import TaskSummary, detail_of
from judge.scenario.pairs import planned
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import load_trajectory, read_attempt, read_result, read_steps
from judge.trajectory.record import Attempt, evidence_sha256
from shared.claims import ClaimedUsage
from shared.models import Record

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
        scenario += planned(load_scenario(ROOT / "scenarios" / name / "scenario.toml").tasks, RunConfig(attacks="both"))
    return tuple(scenario)


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


# Of fields whose values are more than their types say.
_OF_FIELD = {
    "task": st.deferred(tasks),
    "started_at": st.integers(0, 4_000_000_000_000_000).map(lambda micros: micros / 1_000_000),
    # A span does not end before it starts.
    "end": st.just(2.0),
    # In `verdicts/`, not in `result.json`.
    "evidence": st.just({}),
}
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    float: st.integers(0, 1_000).map(lambda milli: milli / 1_000),
    bool: _FLAGS,
    NoneType: st.none(),
    Any: st.integers() | TEXTS | st.none() | st.floats(),
}


def values(kind: Any, least: int = 0) -> st.SearchStrategy[Any]:
    """Any value of the type of a recorded field; `least` is its smallest number."""
    inside = get_args(kind)
    match get_origin(kind):
        case typing.Annotated:
            return values(inside[0])
        case typing.Literal:
            return st.sampled_from(inside)
        case typing.Union | types.UnionType:
            return st.one_of(*(values(each, least) for each in inside))
        case builtins.tuple:
            return _few(values(inside[0])) if inside[-1] is ... else st.tuples(*map(values, inside))
        case builtins.dict:
            return st.dictionaries(TEXTS, values(inside[1]), max_size=2)
    if kind is int:
        return st.integers(least, 3)
    return _PLAIN[kind] if kind in _PLAIN else records(kind)


@cache
def records(kind: type[Record]) -> st.SearchStrategy[Any]:
    """A record with any of its facts, set or not."""
    fields = dict[str, st.SearchStrategy[Any]]()
    for name, field in kind.model_fields.items():
        bounds: list[Any] = [each.ge for each in field.metadata if isinstance(each, Ge)]
        fields[name] = _OF_FIELD[name] if name in _OF_FIELD else values(field.annotation, max([0, *bounds]))
    required = {name: each for name, each in fields.items() if kind.model_fields[name].is_required()}
    optional = {name: each for name, each in fields.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda facts: kind(**facts))


RECORDED = ROOT / "tests" / "fixtures" / "recorded_facts"
# Later columns, as they are where nothing of them was recorded.
ADDED = {
    **dict.fromkeys(
        (
            *("sealed", "score", "site_tools", "actions", "max_actions", "isolation", "usage_source", "metadata"),
            *("variant_name", "variant_family"),
        )
    ),
    "site_tool_calls": 0,
}
KINDS = ("demo", "held", "safety", "miniwob", "hosted", "frozen", "shards")
EPOCHS = recorded_run()


def as_named_now(row: dict[str, Any]) -> dict[str, Any]:
    """A row or an entry with the clean task of a pair where it is now: by another name, and beside the attack."""
    row = {"clean_task" if key == "attack_of" else key: value for key, value in row.items()}
    if not isinstance(attack := row.get("attack"), dict):
        return row
    of = attack.pop("of")
    return dict(
        each for item in row.items() for each in ([("clean_task", of), item] if item[0] == "progress" else [item])
    )


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
    detail["tasks"] = [as_named_now(entry) for entry in detail["tasks"]]
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
    skip_without_command("export")
    done = CliRunner().invoke(app, ["export", str(output / "runs" / kind), "--format", "jsonl", "--output", "-"])
    assert done.exit_code == 0, done.output
    rows = recorded("runs")["rows"][kind]
    added = {each.name: ADDED[each.name] for each in COLUMNS if each.name in ADDED}
    expected = [as_named_now(row) | added | {"efficiency": efficiency_of(row)} for row in rows]
    if not is_complete():
        # Columns of a plug-in that was taken away.
        expected = [{name: row[name] for name in row if name in {each.name for each in COLUMNS}} for row in expected]
    made = [json.loads(line) for line in done.stdout.splitlines()]
    # Digests of what was recorded then; a column of a plug-in.
    assert all(len(row.pop("action_digests").split()) == row["steps"] for row in made if "action_digests" in row)
    assert made == expected


@pytest.mark.parametrize("layout", ["online-mind2web-v2", "webeval"])
def test_digests_of_foreign_folders_are_as_they_were(tmp_path: Path, layout: str) -> None:
    words = ["export", str(EPOCHS), "--format", layout, "--output", str(tmp_path)]
    skip_without_command(*words)
    done = CliRunner().invoke(app, words)
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


@pytest.mark.slow
@settings(max_examples=60)
@given(st.deferred(lambda: records(Attempt)))
def test_what_is_written_is_read_back_with_every_fact(attempt: Attempt) -> None:
    again = Attempt.from_json(json.loads(json.dumps(attempt.to_json())), source="result.json")
    assert again.to_json() == attempt.to_json()
