"""Reading trajectories: our own and the Online-Mind2Web layouts."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import A_TRACE, a_result, a_step, digested, write_attempt
from judge import store
from judge.records.files import Download
from judge.records.ledger import Frozen, LedgerEntry, UsedArchive
from judge.records.steps import Step
from judge.store.layout import TaskStore
from judge.trajectory.fetched import Fetched
from judge.trajectory.files import load_trajectory, read_steps
from shared.errors import TrajectoryError


def write(folder: Path, result: Any, images: tuple[str, ...] = ()) -> Path:
    (folder / "trajectory").mkdir(parents=True, exist_ok=True)
    text = result if isinstance(result, str) else json.dumps(result)
    (folder / "result.json").write_text(text)
    for name in images:
        (folder / "trajectory" / name).write_bytes(b"img")
    return folder


def own(**changes: Any) -> dict[str, Any]:
    """A result of ours, without the digests of its files."""
    step = a_step(0, thought="click it", snapshot=None)
    result = a_result("t1", steps=(step,)).to_json()
    return {key: value for key, value in (result | changes).items() if value is not ...}


V2_STEPS = [
    {"step": 0, "screenshot": "0.png", "action": "<a> -> CLICK", "thought": "hm", "url": "u"},
    {"step": 1, "screenshot": "1.png", "action": "TASK_COMPLETE -> ANSWER: 42", "thought": None, "url": "u"},
]
V2 = {
    "schema_version": "online-mind2web-v2",
    "task": "do it",
    "task_id": "t2",
    "agent_final_answer": "42",
    "reference_length": 3,
    "action_history": V2_STEPS,
}


def test_the_contracts_name_is_the_same_function() -> None:
    assert store.load_trajectory is load_trajectory


def test_our_own_folder_reads_back_with_facts_from_its_steps(tmp_path: Path) -> None:
    write(tmp_path, own(), ("step_000.jpg",))
    trajectory = load_trajectory(write(tmp_path, digested(tmp_path, own())))
    assert trajectory.action_history == ("<Go button> -> CLICK",)
    assert trajectory.screenshots == (tmp_path / "trajectory" / "step_000.jpg",)
    assert trajectory.stop_reason == "finished"


def test_v1_images_are_sorted_by_number_and_not_by_name(tmp_path: Path) -> None:
    result = {"task": "do it", "action_history": ["a"], "thoughts": ["t"], "final_result_response": "done"}
    names = ("10_shot.png", "9_shot.png", "100_shot.png", "note.txt", "cover.png")
    trajectory = load_trajectory(write(tmp_path / "abc", result, names))
    assert [path.name for path in trajectory.screenshots] == ["9_shot.png", "10_shot.png", "100_shot.png"]
    assert trajectory.task.task_id == "abc"
    assert trajectory.final_answer == "done"


def test_v1_actions_given_as_objects_are_read_without_their_thoughts(tmp_path: Path) -> None:
    actions = [{"action": "<a> -> CLICK", "thought": "SECRET"}, {"thought": "SECRET"}, "<b> -> CLICK", None]
    trajectory = load_trajectory(write(tmp_path / "abc", {"task": "do it", "action_history": actions}, ("0.png",)))
    assert trajectory.action_history == ("<a> -> CLICK", "<b> -> CLICK")


def test_v2_without_a_schema_version_is_recognised_by_its_steps(tmp_path: Path) -> None:
    result = {key: value for key, value in V2.items() if key != "schema_version"}
    trajectory = load_trajectory(write(tmp_path, result, ("0.png", "1.png")))
    assert trajectory.action_history == ("<a> -> CLICK",)
    assert trajectory.final_answer == "42"


def test_v2_leaves_out_the_last_action_which_is_the_agents_claim(tmp_path: Path) -> None:
    trajectory = load_trajectory(write(tmp_path, V2, ("0.png", "1.png")))
    assert trajectory.action_history == ("<a> -> CLICK",)
    assert len(trajectory.screenshots) == 2
    assert trajectory.final_answer == "42"


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        ("{", r"result\.json: line 1, column 2: not JSON"),
        ("[1]", "expected a JSON object, found list"),
        ({"action_history": []}, "'task' is missing"),
        ({"task": "x", "action_history": "a"}, "action_history: Input should be a valid tuple"),
        (own(steps=...), "key 'steps' is missing"),
        (own(steps=None), "steps: Input should be a valid tuple"),
        (own(steps=[{"index": "no"}]), r"steps\.0\.index: "),
        (own(stop_reason="because"), "stop_reason: Input should be 'finished'"),
        (own(task_id="../x"), r"task\.task_id: "),
        (V2 | {"action_history": [{"action": "a"}]}, r"action_history\.0\.screenshot: Field required"),
        (V2 | {"action_history": [V2_STEPS[0] | {"screenshot": "../../etc/x.png"}]}, "outside its folder"),
        (V2 | {"action_history": [V2_STEPS[0] | {"screenshot": "gone.png"}]}, "gone.png: no such file"),
        (
            V2 | {"action_history": V2_STEPS[:1], "agent_final_answer": 42},
            "agent_final_answer: Input should be a valid string",
        ),
    ],
)
def test_a_broken_folder_is_one_error_that_names_file_and_fault(tmp_path: Path, result: Any, complaint: str) -> None:
    with pytest.raises(TrajectoryError, match=complaint):
        load_trajectory(write(tmp_path, result, ("step_000.jpg", "0.png")))


def test_an_error_has_its_file_and_its_problem_as_data(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError) as caught:
        load_trajectory(write(tmp_path, own(steps=...)))
    assert (caught.value.location, caught.value.problem) == (str(tmp_path / "result.json"), "key 'steps' is missing")


def test_a_folder_without_a_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="no such file"):
        load_trajectory(tmp_path / "nothing")


@pytest.mark.slow
@given(text=st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps)))
def test_no_result_file_raises_anything_but_the_typed_error(tmp_path_factory: Any, text: str) -> None:
    folder = tmp_path_factory.mktemp("t")
    (folder / "trajectory").mkdir()
    (folder / "result.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(TrajectoryError):
        load_trajectory(folder)


def test_a_torn_last_line_of_the_steps_is_left_out(tmp_path: Path) -> None:
    line = Step(index=0, url="u", title="t").model_dump_json()
    path = tmp_path / "steps.jsonl"
    path.write_text(f"{line}\n{line[:30]}")
    assert len(read_steps(path)) == 1


def test_a_damaged_line_in_the_middle_of_the_steps_is_an_error(tmp_path: Path) -> None:
    line = Step(index=0, url="u", title="t").model_dump_json()
    path = tmp_path / "steps.jsonl"
    path.write_text(f"{line[:30]}\n{line}\n")
    with pytest.raises(TrajectoryError, match="line 1"):
        read_steps(path)


def test_the_network_trace_is_a_part_of_the_trajectory(tmp_path: Path) -> None:
    write_attempt(TaskStore(tmp_path), a_result("t1", network=A_TRACE))
    trajectory = load_trajectory(tmp_path)
    assert trajectory.network == tmp_path / "network.har"
    write_attempt(TaskStore(tmp_path), a_result("t1"))
    assert load_trajectory(tmp_path).sha256 != trajectory.sha256


def test_a_changed_network_trace_is_named(tmp_path: Path) -> None:
    write_attempt(TaskStore(tmp_path), a_result("t1", network=A_TRACE))
    (tmp_path / "network.har").write_text('{"log": {"entries": []}}')
    with pytest.raises(TrajectoryError, match=r"network\.har: not the file that was recorded"):
        load_trajectory(tmp_path)


def test_a_withheld_network_trace_is_named_and_changes_no_digest(tmp_path: Path) -> None:
    write_attempt(TaskStore(tmp_path), a_result("t1", network=A_TRACE))
    whole = load_trajectory(tmp_path)
    (tmp_path / "network.har").unlink()
    trajectory = load_trajectory(tmp_path)
    assert (trajectory.network, trajectory.network_missing) == (None, "network.har: no such file")
    assert trajectory.sha256 == whole.sha256


def test_a_network_trace_outside_the_folder_is_refused(tmp_path: Path) -> None:
    write_attempt(TaskStore(tmp_path), a_result("t1", network=A_TRACE))
    result = json.loads((tmp_path / "result.json").read_text())
    result["network"]["file"] = "../network.har"
    (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(TrajectoryError, match="points outside its folder"):
        load_trajectory(tmp_path)


@pytest.mark.parametrize("linked", ["trajectory", "trajectory/step_000.jpg"])
@pytest.mark.parametrize(("is_inside", "problem"), [(True, None), (False, "points outside its folder")])
def test_a_link_is_followed_only_inside_the_folder(
    tmp_path: Path, linked: str, is_inside: bool, problem: str | None
) -> None:
    folder = tmp_path / "t1"
    write_attempt(TaskStore(folder), a_result("t1"))
    target = (folder if is_inside else tmp_path) / "elsewhere"
    (folder / linked).rename(target)
    (folder / linked).symlink_to(target)
    with pytest.raises(TrajectoryError, match=problem) if problem else nullcontext():
        load_trajectory(folder)


def test_what_the_judge_fetched_is_part_of_the_digest(tmp_path: Path) -> None:
    answer = Fetched(url="/api/cart", status=200, type="application/json", body='{"total": 1}')
    write_attempt(TaskStore(tmp_path), a_result("t1", fetched=(answer,)))
    attempt = load_trajectory(tmp_path).attempt
    assert attempt is not None
    assert attempt.fetched == (answer,)
    path = tmp_path / "result.json"
    path.write_text(path.read_text().replace('\\"total\\": 1', '\\"total\\": 2'))
    with pytest.raises(TrajectoryError, match="trajectory_sha256 is not the digest"):
        load_trajectory(tmp_path)


def test_a_result_without_fetched_answers_does_not_mention_them() -> None:
    assert "fetched" not in a_result("t1").to_json()


def test_what_an_attempt_on_frozen_sites_rests_on_is_part_of_the_digest(tmp_path: Path) -> None:
    url = "https://shop.example/"
    entry = LedgerEntry(step=1, method="GET", url=url, kind="document", grade="miss", miss="decisive")
    used = UsedArchive(name="shop.wacz", sha256="0" * 64, matcher="1")
    frozen = Frozen(archives=(used,), sites=("https://shop.example",), clock_ms=1, ledger=(entry,))
    write_attempt(TaskStore(tmp_path), a_result("t1", frozen=frozen))
    attempt = load_trajectory(tmp_path).attempt
    assert attempt is not None
    assert attempt.frozen == frozen
    path = tmp_path / "result.json"
    result = json.loads(path.read_text())
    assert result["coverage"] == "off_archive"
    other = {**used.model_dump(), "sha256": "1" * 64}
    changes: list[dict[str, Any]] = [{"clock_ms": 2}, {"ledger": []}, {"archives": [other]}]
    for change in changes:
        path.write_text(json.dumps({**result, "frozen": {**result["frozen"], **change}}))
        with pytest.raises(TrajectoryError, match="trajectory_sha256"):
            load_trajectory(tmp_path)


def test_a_result_of_live_sites_does_not_mention_archives() -> None:
    assert {"frozen", "coverage"} & a_result("t1").to_json().keys() == set()


def test_an_attempt_with_a_download_that_was_cut_is_read(tmp_path: Path) -> None:
    cut = Download(name="big.bin", state="cut")
    attempt = write_attempt(TaskStore(tmp_path / "t1"), a_result("t1", steps=(a_step(0, downloaded=(cut,)),)))

    assert load_trajectory(tmp_path / "t1").attempt.steps[0].downloaded == (cut,)
    assert attempt.steps[0].downloaded == (cut,)
