"""browser-use's histories with the screenshots that they name."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import JPEG
from judge.judges.stored import find_trajectories
from judge.trajectory.files import foreign_verdicts, load_trajectory
from shared.claims import ClaimedUsage
from shared.errors import TrajectoryError

SEARCH = {"node_name": "INPUT", "attributes": {"role": "searchbox"}, "ax_name": "Search <all>", "bounds": None}


def item(number: int, actions: list[dict[str, Any]], results: list[dict[str, Any]], **state: Any) -> dict[str, Any]:
    """One look at the page and what was chosen from it."""
    known = {
        "url": f"https://shop.test/{number}",
        "title": "Shop",
        "tabs": [],
        "screenshot_path": f"/tmp/browser_use_agent/screenshots/step_{number}.png",
        "interacted_element": [None] * len(actions),
    }
    return {
        "model_output": {"memory": f"memory {number}", "next_goal": f"goal {number}", "action": actions},
        "result": results,
        "state": known | state,
        "metadata": {"step_start_time": 100.0 * number, "step_end_time": 100.0 * number + 9, "step_number": number},
    }


DONE = item(3, [{"done": {"text": "80 euros", "success": True}}], [{"is_done": True, "extracted_content": "80 euros"}])
ITEMS: list[dict[str, Any]] = [
    item(1, [{"navigate": {"url": "https://shop.test/", "new_tab": False}}], [{"extracted_content": "Went there"}]),
    item(
        2,
        [{"input": {"index": 3, "text": "tent"}}, {"click": {"index": 4}}, {"send_keys": {"keys": "Enter"}}],
        [{}, {"error": "Element 4 does not exist"}],
        interacted_element=[SEARCH, None, None],
    ),
    DONE,
]


def write(folder: Path, items: list[Any], *, images: str = "screenshots", task: bool = True) -> Path:
    (folder / images).mkdir(parents=True)
    for number in range(1, len(items) + 1):
        (folder / images / f"step_{number}.png").write_bytes(JPEG + b"%d" % number)
    (folder / "AgentHistory.json").write_text(json.dumps({"history": items}))
    if task:
        (folder / "task.json").write_text('{"task": "Find the cheapest tent"}')
    return folder


@pytest.mark.parametrize("images", ["screenshots", "."])
def test_a_history_is_read_with_its_screenshots(tmp_path: Path, images: str) -> None:
    folder = write(tmp_path / "t1", ITEMS, images=images)
    trajectory = load_trajectory(folder)
    assert trajectory.action_history == (
        "<navigation> -> GOTO: https://shop.test/",
        "<Search ‹all› searchbox> -> TYPE: tent",
        "<page> -> FINISH",
    )
    assert [path.resolve() for path in trajectory.screenshots] == [
        (folder / images / f"step_{number}.png").resolve() for number in (1, 2, 3)
    ]
    assert (trajectory.final_answer, trajectory.stop_reason) == ("80 euros", "finished")
    assert (trajectory.task.task_id, trajectory.task.task) == ("t1", "Find the cheapest tent")
    assert find_trajectories(tmp_path) == (folder,)


def test_each_action_is_a_step_and_one_that_was_not_executed_is_not_a_fact(tmp_path: Path) -> None:
    attempt = load_trajectory(write(tmp_path / "t1", ITEMS)).attempt
    assert attempt is not None
    results = [(step.action and step.action.tool, step.outcome and step.outcome.ok) for step in attempt.steps]
    assert results == [("navigate", True), ("input", True), ("click", False), ("send_keys", None), ("done", True)]
    assert attempt.thoughts == ["memory 1\ngoal 1", "memory 2\ngoal 2", "", "", "memory 3\ngoal 3"]
    assert (attempt.started_at, attempt.ended_at) == (100.0, 309.0)
    assert attempt.flags == ["self_recorded"]


@pytest.mark.parametrize(
    ("items", "stop_reason", "error"),
    [
        (ITEMS[:1], "max_steps", None),
        ([], "max_steps", None),
        ([item(1, [], [{"error": "Rate limit"}])], "participant_error", "Rate limit"),
    ],
)
def test_a_history_without_an_end_says_why(tmp_path: Path, items: list[Any], stop_reason: str, error: Any) -> None:
    trajectory = load_trajectory(write(tmp_path / "t1", items))
    assert (trajectory.stop_reason, trajectory.error, trajectory.final_answer) == (stop_reason, error, None)


def test_the_verdict_of_its_own_judge_stands_beside_ours(tmp_path: Path) -> None:
    judgement = {"verdict": False, "reasoning": "r", "failure_reason": "The wrong tent"}
    done = DONE | {"result": [{"is_done": True, "judgement": judgement}]}
    (verdict,) = foreign_verdicts(write(tmp_path / "t1", [done])).values()
    assert (verdict.outcome, verdict.reason) == ("failure", "The wrong tent")


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ({"scroll": {"down": False, "pages": 1.0}}, "<page> -> SCROLL: up"),
        ({"scroll": {}}, "<page> -> SCROLL: down"),
        ({"wait": {"seconds": 3}}, "<page> -> WAIT: 3 s"),
        ({"go_back": {}}, "<navigation> -> BACK"),
        ({"switch": {"tab_id": "ab12"}}, "<navigation> -> TAB: select ab12"),
        ({"select_dropdown": {"index": 1, "text": "Oak"}}, "<element> -> SELECT: Oak"),
        ({"extract": {"query": "<b>"}}, '<page> -> EXTRACT: {"query": "‹b›"}'),
        ({"my_tool2": None}, '<page> -> MY TOOL: {"value": null}'),
    ],
)
def test_actions_become_action_lines(tmp_path: Path, action: dict[str, Any], line: str) -> None:
    assert load_trajectory(write(tmp_path / "t", [item(1, [action], [{}])])).action_history == (line,)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"screenshot_path": "/etc/passwd"}, "passwd: no such file"),
        ({"screenshot_path": "C:\\shots\\gone.png"}, r"gone\.png: no such file"),
        ({"screenshot_path": "link.png"}, "points outside its folder"),
        ({"screenshot_path": None, "screenshot": "iVBORw0"}, r"history\.0\.state\.screenshot: not a JPEG"),
        ({"screenshot_path": None, "screenshot": "R0lGODlh"}, r"history\.0\.state\.screenshot: not a JPEG"),
        ({"url": 3}, "url: Input should be a valid string"),
    ],
)
def test_a_broken_history_is_named_with_its_fault(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    (tmp_path / "secret.png").write_bytes(JPEG)
    folder = write(tmp_path / "t", [item(1, [{"click": {}}], [{}], **change)])
    (folder / "screenshots" / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(TrajectoryError, match=complaint):
        load_trajectory(folder)


def old(number: int) -> dict[str, Any]:
    """An item of an older version: the image and the thoughts lie elsewhere."""
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n%d" % number).decode()
    result = item(number, [{"go_back": {}}], [{}], screenshot_path=None, screenshot=image)
    result["model_output"] = {"current_state": {"memory": "m", "next_goal": "g"}, "action": [{"go_back": {}}]}
    result["metadata"]["input_tokens"] = 10
    return result


def test_the_images_and_thoughts_of_older_versions_are_unpacked(tmp_path: Path) -> None:
    folder = write(tmp_path / "t", [old(1), old(2)])
    trajectory = load_trajectory(folder)
    assert [path.read_bytes()[-1:] for path in trajectory.screenshots] == [b"1", b"2"]
    assert trajectory.thoughts == ("m\ng", "m\ng")
    assert trajectory.attempt is not None
    assert trajectory.attempt.claimed_usage == ClaimedUsage(basis="recorded", input=20)
    # A file of that name does not count for the image in the history.
    trajectory.screenshots[0].write_bytes(JPEG)
    assert load_trajectory(folder).sha256 == trajectory.sha256


@pytest.mark.parametrize("link", ["screenshots", "screenshots/unpacked_000.png"])
def test_unpacking_never_writes_through_a_link(tmp_path: Path, link: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"kept")
    folder = write(tmp_path / "t", [old(1)], images=".")
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(tmp_path / "outside" / ("" if link == "screenshots" else "secret"))
    if link == "screenshots":
        with pytest.raises(TrajectoryError, match="points outside its folder"):
            load_trajectory(folder)
    else:
        load_trajectory(folder)
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret"]
    assert (tmp_path / "outside" / "secret").read_bytes() == b"kept"


def test_two_histories_in_a_folder_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "t", ITEMS)
    (folder / "history2.json").write_text("{}")
    with pytest.raises(TrajectoryError, match="2 histories"):
        load_trajectory(folder)


ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
VALUES = ATOMS | st.lists(ATOMS, max_size=3) | st.dictionaries(st.sampled_from(["index", "text", "keys"]), ATOMS)
TOOLS = st.sampled_from(["click", "input", "scroll", "wait", "send_keys", "navigate", "<x>", "", "done"])
ELEMENTS = st.dictionaries(st.sampled_from(["ax_name", "node_name", "attributes"]), VALUES)


@given(
    actions=st.lists(st.dictionaries(TOOLS, VALUES, max_size=2), max_size=3),
    results=st.lists(st.dictionaries(st.sampled_from(["error", "is_done", "judgement"]), ATOMS), max_size=3),
    elements=st.none() | st.lists(st.none() | ELEMENTS, max_size=3),
)
def test_no_history_raises_anything_but_the_typed_error(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Any], results: list[Any], elements: Any
) -> None:
    one = item(1, actions, results, interacted_element=elements)
    folder = write(tmp_path_factory.mktemp("t") / "t", [one])
    try:
        trajectory = load_trajectory(folder)
    except TrajectoryError:
        return
    assert len(trajectory.action_history) <= min(max(1, len(actions)), len(results))
    assert all("\n" not in line for line in trajectory.action_history)
