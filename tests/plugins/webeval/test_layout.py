"""webeval's folders: read in every form in which they come, and written so that both of its loading modes take them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.plugins import export_tasks
from helpers.results import JPEG, JUDGE, a_result, a_step, a_verdict, write_attempt, write_verdict_on
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.plugins.webeval.layout import WRITER
from judge.records.steps import Outcome
from judge.records.tasks import Task
from judge.records.verdicts import Verdict
from judge.results.categories import failure_categories
from judge.results.folders import FolderStore, give_tasks
from judge.store.layout import TaskStore
from judge.trajectory.files import foreign_verdicts, load_trajectory
from judge.trajectory.record import Trajectory
from plugins.webeval.folders import ACTIONS, THOUGHTS, structured, write_score, write_webeval
from shared.claims import ClaimedUsage
from shared.errors import ConfigError, TrajectoryError
from shared.models import Action


@pytest.mark.parametrize("dialect", ["structured", "spoken"])
def test_both_dialects_of_the_log_give_the_same_actions_and_thoughts(tmp_path: Path, dialect: str) -> None:
    trajectory = load_trajectory(write_webeval(tmp_path / "Shop--0", dialect=dialect))
    # As the tool's own loader hands them to its evaluators.
    assert [json.loads(action) for action in trajectory.action_history] == list(ACTIONS)
    assert trajectory.thoughts == THOUGHTS
    assert [step.outcome.line for step in trajectory.steps if step.outcome] == [
        "<navigation> -> GOTO: https://shop.test/",
        "<page> -> CLICK (40, 50)",
        "<page> -> TYPE (40, 50): tent ‹b›",
        "<page> -> FINISH",
    ]


def test_events_of_another_source_are_comments_and_no_actions(tmp_path: Path) -> None:
    log = [
        structured(1, {"url": "https://shop.test/"}, "WebSurfer") | {"action": "visit_url"},
        structured(2, {}, "WebSurfer-SummarizedAction"),
    ]
    trajectory = load_trajectory(write_webeval(tmp_path / "t", log=log))
    assert trajectory.action_history == ('{"url": "https://shop.test/", "action": "visit_url"}',)


@pytest.mark.parametrize(("first", "steps"), [(0, 5), (1, 4)])
def test_screenshots_come_in_the_order_of_the_answer_files_list(tmp_path: Path, first: int, steps: int) -> None:
    folder = write_webeval(tmp_path / "t", first=first)
    (folder / "screenshot_scaled.png").write_bytes(JPEG)
    trajectory = load_trajectory(folder)
    names = [f"screenshot{number}.png" for number in range(first, 5)]
    assert [path.name for path in trajectory.screenshots] == names
    assert [step.screenshot for step in trajectory.steps] == names
    assert len(trajectory.steps) == steps


@pytest.mark.parametrize(
    ("answer", "stop_reason", "final_answer", "is_aborted"),
    [
        ({}, "finished", THOUGHTS[-1], False),
        ({"final_answer": ""}, "finished", None, False),
        ({"final_answer": "<no_answer>"}, "max_steps", None, False),
        ({"final_answer": "<no_answer>", "is_aborted": True}, "environment_fault", None, True),
    ],
)
def test_the_answer_file_tells_how_the_attempt_ended(
    tmp_path: Path, answer: dict[str, Any], stop_reason: str, final_answer: str | None, is_aborted: bool
) -> None:
    trajectory = load_trajectory(write_webeval(tmp_path / "t", answer=answer))
    assert (trajectory.stop_reason, trajectory.final_answer) == (stop_reason, final_answer)
    assert trajectory.is_aborted is is_aborted


def test_f11_tokens_times_and_the_cause_are_read(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t", answer={"final_answer": "<no_answer>", "is_aborted": True})
    log = "2025-11-10 21:00:00,000 [ERROR] webeval.core.t - Browser crashed\nTraceback: …\n2025 [INFO] a - End\n"
    (folder / "core.log").write_text(log)
    attempt = load_trajectory(folder).attempt
    assert attempt is not None
    assert attempt.claimed_usage == ClaimedUsage(basis="recorded", input=105, output=21)
    assert (attempt.started_at, attempt.ended_at) == (1_700_000_000.0, 1_700_000_090.5)
    assert attempt.error == "Browser crashed"


def test_a_foreign_trajectory_is_marked_self_recorded(tmp_path: Path) -> None:
    attempt = load_trajectory(write_webeval(tmp_path / "t")).attempt
    assert attempt is not None
    assert attempt.flags == ["self_recorded"]


def test_without_the_tasks_text_the_remedy_is_named(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t", task_file=False)
    with pytest.raises(TrajectoryError, match="--tasks FILE supplies"):
        load_trajectory(folder)


def test_the_text_that_the_rubric_verifier_left_is_used(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t", task_file=False)
    (folder / "task_data.json").write_text(json.dumps({"task_summary": "Find a tent"}))
    assert load_trajectory(folder).task.task == "Find a tent"


@pytest.mark.parametrize(
    "text",
    [
        '{"web_name": "Shop", "id": "Shop--0", "ques": "Find a tent", "web": "https://shop.test/"}\n'
        '{"id": "x", "ques": "y"}',
        '[{"task_id": "Shop--0", "confirmed_task": "Find a tent", "website": "https://shop.test/", "level": "easy"}]',
    ],
)
def test_a_file_of_tasks_supplies_the_texts(tmp_path: Path, text: str) -> None:
    folder = write_webeval(tmp_path / "Shop--0", task_file=False)
    (tmp_path / "tasks.json").write_text(text)
    give_tasks([folder], tmp_path / "tasks.json")
    task = load_trajectory(folder).task
    assert (task.task_id, task.task, task.website) == ("Shop--0", "Find a tent", "https://shop.test/")


def test_a_file_of_other_tasks_is_a_clear_error(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "Shop--0", task_file=False)
    (tmp_path / "tasks.json").write_text('[{"id": "Shop--1", "ques": "y"}]')
    with pytest.raises(ConfigError, match="has 1 task, but none of 1 trajectory without a text"):
        give_tasks([folder], tmp_path / "tasks.json")


def test_scores_of_its_evaluators_are_verdicts_of_their_own(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t")
    write_score(folder, "WebJudge_Online_Mind2Web_eval-3", 1.0)
    write_score(folder, "gpt_eval", 0)
    write_score(folder, "mmrubric_0.8-5-3", 0.75, {"is_success": 0})
    (folder / "scores" / "broken.json").write_text("{")
    result = foreign_verdicts(folder)
    assert {name: verdict.outcome for name, verdict in result.items()} == {
        "webeval-WebJudge_Online_Mind2Web_eval-3": "success",
        "webeval-gpt_eval": "failure",
        "webeval-mmrubric_0_8-5-3": "unscored",
        "webeval-broken": "unscored",
    }
    assert result["webeval-gpt_eval"].reason == "Status: success"
    assert result["webeval-mmrubric_0_8-5-3"].reason.startswith("score 0.75, neither 0 nor 1")


@pytest.mark.parametrize("name", ["../secret.png", "/etc/hostname", "link.png", "folder/x.png", "\0.png", "x" * 5000])
def test_a_list_cannot_name_a_file_outside_the_folder(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for secret in (tmp_path / "secret.png", outside / "x.png"):
        secret.write_bytes(JPEG)
    folder = write_webeval(tmp_path / "t", answer={"screenshots": [name]})
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "folder").symlink_to(outside)
    with pytest.raises(TrajectoryError):
        load_trajectory(folder)


@pytest.mark.parametrize("name", ["web_surfer.log", "times.json", "task.json", "t_final_answer.json", "task_data.json"])
def test_no_file_of_a_folder_may_be_a_link_out_of_it(tmp_path: Path, name: str) -> None:
    folder = write_webeval(tmp_path / "t")
    (tmp_path / "outside").write_text('{"task": "x"}')
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "outside")
    with pytest.raises(TrajectoryError, match="points outside its folder"):
        load_trajectory(folder)


def test_a_score_that_is_a_link_out_of_the_folder_is_not_a_verdict(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t")
    (tmp_path / "outside").write_text('{"score": 1, "gpt_response_text": "secret"}')
    (folder / "scores").mkdir()
    (folder / "scores" / "x.json").symlink_to(tmp_path / "outside")
    (verdict,) = foreign_verdicts(folder).values()
    assert verdict.outcome == "unscored"
    assert "secret" not in verdict.reason


def test_an_absolute_path_of_another_machine_is_found_in_the_folder(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t", answer={"screenshots": ["/data/eval/t/screenshot1.png"]})
    assert load_trajectory(folder).screenshots == (folder / "screenshot1.png",)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"screenshots": ["gone.png"]}, r"gone\.png: no such file"),
        ({"screenshots": "all"}, "screenshots: Input should be a valid tuple"),
        ({"screenshots": ["a"] * 1001}, "at most 1000 items"),
        ({"is_aborted": "maybe"}, "is_aborted: "),
    ],
)
def test_a_broken_answer_file_is_named_with_its_fault(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TrajectoryError, match=complaint):
        load_trajectory(write_webeval(tmp_path / "t", answer=change))


def test_two_answer_files_or_none_are_refused(tmp_path: Path) -> None:
    without = write_webeval(tmp_path / "without")
    (answer,) = without.glob("*_answer.json")
    answer.unlink()
    with pytest.raises(TrajectoryError, match="0 answer files"):
        load_trajectory(without)
    folder = write_webeval(tmp_path / "t")
    (folder / "other_final_answer.json").write_text("{}")
    with pytest.raises(TrajectoryError, match="2 answer files"):
        load_trajectory(folder)


def test_a_screenshot_that_is_too_large_is_refused(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t")
    with (folder / "screenshot2.png").open("wb") as stream:
        stream.truncate(20_000_001)
    with pytest.raises(TrajectoryError, match=r"screenshot2\.png: larger than"):
        load_trajectory(folder)


ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
JSON = st.one_of(ATOMS, st.lists(ATOMS, max_size=3))
KEYS = st.sampled_from(
    ["action", "arguments", "message", "url", "tool", "source", "screenshot", "thoughts", "coordinate"]
)
OBJECT = st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=4), max_size=5)
MESSAGE = st.text(st.sampled_from("Thought #1:\nAcion{}'\"with arguments"), max_size=30)


@given(
    log=st.lists(
        OBJECT | MESSAGE.map(lambda text: {"message": f"Thought #1: a\nAction #1: with arguments{text}"}), max_size=4
    ),
    answer=st.dictionaries(st.sampled_from(["final_answer", "screenshots", "is_aborted", "token_usage"]), JSON),
)
def test_no_content_of_a_folder_raises_anything_but_the_typed_error(
    tmp_path_factory: pytest.TempPathFactory, log: list[Any], answer: dict[str, Any]
) -> None:
    folder = write_webeval(tmp_path_factory.mktemp("t"), log=log, answer=answer)
    try:
        trajectory = load_trajectory(folder)
    except TrajectoryError:
        return
    assert len(trajectory.action_history) <= len(log)


def a_run_of_ours(folder: Path, **changes: Any) -> TaskStore:
    """An attempt with a failed action, an unreadable reply and a parameter named like one of the layout's keys."""
    tabs = Action(tool="browser_tabs", params={"action": "new", "thoughts": 1}, thought="Another tab. \u2028")
    steps = (
        a_step(0, thought="I click."),
        a_step(1, action=tabs, outcome=Outcome(ok=True, line="<navigation> -> TAB: new")),
        a_step(2, line=None, outcome=Outcome(ok=False, message="no such element")),
        a_step(3, action=None, outcome=None, feedback="not JSON"),
        a_step(
            4, action=Action(tool="finish", params={"answer": "80"}), outcome=Outcome(ok=True, line="<page> -> FINISH")
        ),
    )
    store = TaskStore(folder)
    values = {"steps": steps, "final_look": a_step(5, action=None, outcome=None), "final_answer": "80"}
    write_attempt(store, a_result(folder.name, **{**values, **changes}))
    return store


def test_nothing_that_the_layout_can_hold_is_lost_on_the_way_there_and_back(tmp_path: Path) -> None:
    store = a_run_of_ours(tmp_path / "run" / "t1")
    write_verdict_on(store, "webjudge-1", a_verdict("failure", reason="No tent."))
    list(export_tasks([store], tmp_path / "out", writer=WRITER))
    pytest.importorskip("judge.plugins.export.folders").write_tasks([store], tmp_path / "out" / "tasks.json")
    folder = tmp_path / "out" / "t1"
    give_tasks([folder], tmp_path / "out" / "tasks.json")
    ours, theirs = load_trajectory(store.folder), load_trajectory(folder)
    assert theirs.task == ours.task
    assert theirs.action_history == ours.action_history
    assert theirs.thoughts == ours.thoughts
    assert (theirs.final_answer, theirs.stop_reason) == (ours.final_answer, ours.stop_reason)
    assert ours.attempt is not None
    assert theirs.attempt is not None
    assert (theirs.attempt.started_at, theirs.attempt.ended_at) == (ours.attempt.started_at, ours.attempt.ended_at)
    images = [(ours.folder / str(page.screenshot)).read_bytes() for page in ours.observations]
    assert [path.read_bytes() for path in theirs.screenshots] == images
    remaining = [
        (step.url, step.action, bool(step.outcome and step.outcome.ok), step.outcome and step.outcome.line)
        for step in theirs.steps
    ]
    assert remaining[:5] == [
        (step.url, step.action, bool(step.outcome and step.outcome.ok), step.outcome and step.outcome.line)
        for step in ours.steps
    ]
    assert [step.screenshot for step in theirs.steps] == [f"screenshot{place}.jpg" for place in range(6)]
    verdict = foreign_verdicts(folder)["webeval-webjudge-1"]
    assert (verdict.outcome, verdict.reason) == ("failure", "No tent.")


@pytest.mark.parametrize("stop_reason", ["max_steps", "environment_fault"])
def test_how_an_attempt_ended_is_kept_as_far_as_the_layout_tells_it(tmp_path: Path, stop_reason: Any) -> None:
    store = a_run_of_ours(
        tmp_path / "t1", stop_reason=stop_reason, final_answer=None, error="it broke", blame="browser"
    )
    list(export_tasks([store], tmp_path / "out", writer=WRITER))
    folder = tmp_path / "out" / "t1"
    (folder / "task.json").write_text('{"task": "x"}')
    theirs = load_trajectory(folder)
    assert (theirs.stop_reason, theirs.error) == (stop_reason, "browser: it broke")


def test_both_loading_modes_find_the_executed_actions_only(tmp_path: Path) -> None:
    list(export_tasks([a_run_of_ours(tmp_path / "t1")], tmp_path / "out", writer=WRITER))
    lines = (tmp_path / "out" / "t1" / "web_surfer.log").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    # What webeval's loader does: one mode takes events with an action, the other also wants this source.
    first = [event["arguments"] for event in events if event.get("action") is not None]
    second = [event for event in events if event.get("source") == "WebSurfer" and event.get("action") is not None]
    assert [arguments["thoughts"] for arguments in first] == ["I click.", "Another tab. \u2028", ""]
    assert [event["action"] for event in second] == ["browser_click", "browser_tabs", "terminate"]
    assert [event["arguments"]["action"] for event in second] == ["browser_click", "browser_tabs", "terminate"]


def test_the_answer_file_has_no_key_that_the_loader_does_not_know(tmp_path: Path) -> None:
    list(export_tasks([a_run_of_ours(tmp_path / "t1")], tmp_path / "out", writer=WRITER))
    answer = json.loads((tmp_path / "out" / "t1" / "t1_final_answer.json").read_text())
    known = {
        "final_answer",
        "env_state_json",
        "env_state_raw",
        "screenshots",
        "is_aborted",
        "is_rel_paths",
        "token_usage",
    }
    assert answer.keys() == known


def test_a_foreign_folder_becomes_an_online_mind2web_submission(tmp_path: Path) -> None:
    source = write_webeval(tmp_path / "t")
    (exported,) = export_tasks([TaskStore(source)], tmp_path / "out", {"t": 3})
    assert exported.reason is None
    result = json.loads((tmp_path / "out" / "t" / "result.json").read_text())
    assert [step["action"] for step in result["action_history"]][1] == "CLICK page -> click the page | SUCCESS"
    assert result["task"] == Task(task_id="t", website="", task="Find the cheapest tent").task


def what_the_analysis_reads(folder: Path) -> tuple[float | None, int]:
    """The score and number of actions that webeval's `post_eval_analysis.py` finds in a folder."""
    names = ("0.8-5-3.json", "gpt_eval.json", "WebJudge_Online_Mind2Web_eval-3.json")
    scores = [folder / "scores" / name for name in names if (folder / "scores" / name).exists()]
    score = json.loads(scores[0].read_text())["score"] if scores else None
    lines = (folder / "core.log").read_text().splitlines()
    stamp = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2},\d{3}"
    return score, sum("WebSurferEvent(source='WebSurfer'" in line and bool(re.match(stamp, line)) for line in lines)


@pytest.mark.parametrize(("method", "name"), [("webjudge", "WebJudge_Online_Mind2Web_eval-3"), ("checks", "gpt_eval")])
def test_webevals_analysis_finds_the_verdict_that_counts_and_the_actions(
    tmp_path: Path, method: str, name: str
) -> None:
    counted = a_verdict("failure", reason="No tent.", judge=JUDGE.model_copy(update={"method": method}))
    store = a_run_of_ours(tmp_path / "t1", verdict=counted)
    write_verdict_on(store, f"{method}-1", counted)
    write_verdict_on(store, "rubric-2", a_verdict("success", reason="A tent."))
    list(export_tasks([store], tmp_path / "out", writer=WRITER))
    folder = tmp_path / "out" / "t1"
    assert what_the_analysis_reads(folder) == (0.0, 3)
    assert sorted(path.stem for path in (folder / "scores").iterdir()) == sorted([name, "rubric-2"])


@pytest.mark.parametrize(
    ("stop_reason", "score"), [("participant_error", 0.0), ("environment_fault", None), ("finished", None)]
)
def test_an_attempt_without_a_verdict_has_a_score_only_if_it_counts(
    tmp_path: Path, stop_reason: Any, score: float | None
) -> None:
    store = a_run_of_ours(tmp_path / "t1", stop_reason=stop_reason, verdict=None, error="it broke [ERROR] a - b")
    list(export_tasks([store], tmp_path / "out", writer=WRITER))
    assert what_the_analysis_reads(tmp_path / "out" / "t1")[0] == score


def test_no_text_of_a_page_or_participant_gets_into_the_core_log(tmp_path: Path) -> None:
    step = a_step(
        0, line="<[ERROR] x - y link> -> CLICK", action=Action(tool="browser_click", thought="[ERROR] a - b", params={})
    )
    store = TaskStore(tmp_path / "t1")
    write_attempt(store, a_result("t1", steps=(step,)))
    list(export_tasks([store], tmp_path / "out", writer=WRITER))
    assert "[ERROR]" not in (tmp_path / "out" / "t1" / "core.log").read_text()


def test_a_folder_in_this_layout_keeps_its_names_and_files_when_written_again(tmp_path: Path) -> None:
    source = write_webeval(tmp_path / "in" / "Shop--0.b", first=1)
    write_score(source, "mmrubric_0.8-5-3", 0.5)
    write_score(source, "gpt_eval", 1)
    (source / "core.log").write_text("2025-11-10 21:00:00,000 [ERROR] webeval - Web surfing error\n")
    (source / "task_data.json").write_text('{"task_summary": "Find it"}')
    store = FolderStore(tmp_path / "in", tmp_path / "output")
    (exported,) = export_tasks(store.tasks(), tmp_path / "out", writer=WRITER)
    folder = tmp_path / "out" / "Shop--0.b"
    assert exported.folder == folder
    names = {path.relative_to(source) for path in source.rglob("*") if path.is_file()} - {Path("task.json")}
    assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == names
    changed = {str(name) for name in names if (source / name).read_bytes() != (folder / name).read_bytes()}
    assert changed <= {"web_surfer.log", "Shop--0.b_final_answer.json"}
    before, after = (json.loads((at / "Shop--0.b_final_answer.json").read_text()) for at in (source, folder))
    assert after == before
    events = map(json.loads, (folder / "web_surfer.log").read_text().splitlines())
    assert [event["action"] for event in events] == ["visit_url", "left_click", "type", "terminate"]


def test_our_verdict_on_a_folder_in_this_layout_is_written_beside_its_own_scores(tmp_path: Path) -> None:
    source = write_webeval(tmp_path / "in" / "t1")
    write_score(source, "mmrubric", 1)
    write_verdict_on(
        TaskStore(source), "webjudge-1", a_verdict("failure", judge=JUDGE.model_copy(update={"method": "webjudge"}))
    )
    store = FolderStore(tmp_path / "in", tmp_path / "output")
    list(export_tasks(store.tasks(), tmp_path / "out", writer=WRITER))
    scores = {path.stem for path in (tmp_path / "out" / "t1" / "scores").iterdir()}
    assert scores == {"mmrubric", "WebJudge_Online_Mind2Web_eval-3"}
    assert what_the_analysis_reads(tmp_path / "out" / "t1") == (0.0, 4)


def the_check(trajectory: Trajectory, **keys: Any) -> dict[str, Any]:
    """What became of a check on the recorded state."""
    check = {"kind": "text", "on": "state", **keys}
    task = Task.model_validate({**trajectory.task.model_dump(by_alias=True), "checks": [check]})
    (found,) = ChecksJudge(RunConfig()).recompute(trajectory.as_task(task)).evidence["checks"]
    return dict(found)


@pytest.mark.parametrize(
    ("keys", "passed"),
    [
        ({"contains": '"total": 12'}, True),
        ({"contains": "desk"}, False),
        ({"pattern": r'"total": (\d+)', "max": 12}, True),
        ({"response": {"cart.total": 12}}, True),
        ({"response": {"cart.total": 13}}, False),
        ({"response": {"cart.total": 13}, "not": True}, True),
    ],
)
def test_f10_a_recorded_state_is_text_or_json_that_checks_compare(
    tmp_path: Path, keys: dict[str, Any], passed: bool
) -> None:
    state = {"env_state_json": json.dumps({"cart": {"total": 12}})}
    found = the_check(load_trajectory(write_webeval(tmp_path / "t", answer=state)), **keys)
    assert found["passed"] is passed
    assert found["found"].startswith("recorded by another program: ")


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("state", ["<no_answer>", "not JSON", None])
def test_f10_without_a_state_of_another_program_no_check_of_it_passes(
    tmp_path: Path, state: str | None, inverted: bool
) -> None:
    """`None`: a recording of ours."""
    folder = a_run_of_ours(tmp_path / "t").folder
    if state is not None:
        folder = write_webeval(tmp_path / "f", answer={"env_state_raw": state})
    assert the_check(load_trajectory(folder), response={"cart": 1}, **{"not": inverted})["passed"] is not True


def test_f10_f25_a_state_and_what_failed_are_written_and_read_again(tmp_path: Path) -> None:
    state = {"env_state_json": '{"a": 1}', "final_answer": "<no_answer>"}
    folder = write_webeval(tmp_path / "t", answer=state)
    (folder / "task_data.json").write_text(json.dumps({"task_summary": "Find", "did_web_surfing_fail": True}))
    list(export_tasks([TaskStore(folder)], tmp_path / "out", writer=WRITER))
    for each in map(load_trajectory, (folder, tmp_path / "out" / "t")):
        assert each.texts is not None
        assert (each.texts.state, each.is_aborted) == ('{"a": 1}', True)


def test_f25_our_categories_are_written_as_its_flags(tmp_path: Path) -> None:
    refused = Outcome(ok=False, message="refused")
    steps = tuple(a_step(place, outcome=refused, flags=("site_blocked",)) for place in range(2))
    store = a_run_of_ours(tmp_path / "t1", steps=steps, verdict=a_verdict("failure"))
    list(export_tasks([store], tmp_path / "out", writer=WRITER))
    data = json.loads((tmp_path / "out" / "t1" / "task_data.json").read_text())
    flags = {key: value for key, value in data.items() if key != "task_summary"}
    assert flags == {"encountered_captcha": True, "web_surfing_stalled": False, "did_web_surfing_fail": False}


def test_f25_flags_of_the_verifier_become_categories_of_a_failure(tmp_path: Path) -> None:
    folder = write_webeval(tmp_path / "t")
    flags = {"encountered_captcha": True, "web_surfing_stalled": False, "did_web_surfing_fail": "yes"}
    (folder / "task_data.json").write_text(json.dumps({"task_summary": "Find a tent", **flags}))
    attempt = load_trajectory(folder).attempt
    failed = attempt.model_copy(update={"verdict": Verdict(outcome="failure", reason="no")})
    assert [(each.category, each.evidence) for each in failure_categories(failed)] == [
        ("blocked", "encountered_captcha, as its own program recorded it")
    ]
    succeeded = attempt.model_copy(update={"verdict": Verdict(outcome="success", reason="yes")})
    assert failure_categories(succeeded) == ()
    assert "recorded_flags" not in attempt.to_json()
