"""Key points and trajectories in unusual places are found or reported, never lost without a word."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.llm.scripted import JPEG, ScriptedModel, parts_for, webjudge_script
from helpers.results import a_finished_run, a_result
from judge.judges.rescoring import judge_stored
from judge.judges.stored import find_trajectories
from judge.judges.webjudge import WebJudge
from judge.parsing import parse_key_points
from judge.store.layout import TaskStore

POINTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bold heading": ("**Key Points**: 1. A\n2. B", ("A", "B")),
    "bold colon": ("**Key Points:** 1. A\n2. B\n3. C", ("A", "B", "C")),
    "heading without a colon": ("### Key Points 1. A\n2. B", ("A", "B")),
    "heading with a dash": ("Key Points – 1. A\n2. B", ("A", "B")),
    "heading in a sentence": ("Here are the key points: 1. A\n2. B\n\nThat is all.", ("A", "B")),
    "other words": ("The task has two parts: 1. A\n2. B", ("A", "B")),
    "no heading": ("Sure. 1. A\n2. B", ("A", "B")),
    "bold item": ("**Key Points**: **1. A**\n**2. B**", ("A", "B")),
    "bullets": ("Key points: - A\n- B", ("A", "B")),
    "starred bullets": ("**Key points:** * A\n* B", ("A", "B")),
    "bullets on one line": ("Key points: • A • B", ("A", "B")),
    "two on a line": ("Key Points: 1. A 2. B\n3. C 4. D", ("A", "B", "C", "D")),
    "circled": ("**Key Points:** ① A\n② B", ("A", "B")),
    "circled on one line": ("Key Points: ① A ② B", ("A", "B")),
    "double mark": ("1.) A\n2.) B", ("A", "B")),
    "brackets": ("[1] A\n[2] B", ("A", "B")),
    "requirements": ("Requirement 1: A\nRequirement 2: B", ("A", "B")),
    "letters": ("a. A\nb. B", ("A", "B")),
    "a draft before": ("1. restate\n2. plan\n\n**Key Points**: 1. A\n2. B", ("A", "B")),
    "a number in an item": ("1. Pay at most 3. Then leave\n2. B", ("Pay at most 3. Then leave", "B")),
    "an abbreviation": ("e.g. this page", ()),
}
HEADINGS: tuple[str, ...] = (
    "",
    "Key Points:",
    "**Key Points**:",
    "**Key Points:**",
    "### Key Points",
    "Key Points –",
    "## Key points:",
)
HEADINGS += ("Here are the key points of the task:", "Sure!", "__Key Points__:")
MARKS = ("{}.", "{})", "({})", "**{}.**", "{}:", "Step {}:", "Key Point {}:", "[{}]")
ITEMS = ("Filter", "Sort by price", "Buy the cheapest lamp", "The date is 3 May", "Rated 4.5 or more", "Pay")


@pytest.mark.parametrize("shape", POINTS)
def test_every_key_point_of_a_reply_is_found(shape: str) -> None:
    reply, points = POINTS[shape]
    result = parse_key_points(reply)
    assert result == points


@given(
    heading=st.sampled_from(HEADINGS),
    mark=st.sampled_from(MARKS),
    items=st.lists(st.sampled_from(ITEMS), min_size=2, max_size=9),
    gap=st.sampled_from([" ", "\n", "\n\n"]),
    between=st.sampled_from(["\n", "\n\n"]),
    note=st.sampled_from(["", "\n\nThese cover the task.", "\n\nLet me know."]),
)
@settings(deadline=None)
def test_every_numbered_item_is_found_under_any_heading(
    heading: str, mark: str, items: list[str], gap: str, between: str, note: str
) -> None:
    lines = between.join(f"{mark.format(number)} {item}" for number, item in enumerate(items, 1))
    # Without a colon only a numeral tells where the heading ends and the first item begins.
    gap = "\n" if heading == "Sure!" and mark not in ("{}.", "{})", "({})") else gap
    assert list(parse_key_points(f"{heading}{gap if heading else ''}{lines}{note}")) == items


def names_of(folder: Path) -> list[str]:
    return [str(folder_found.relative_to(folder)) for folder_found in find_trajectories(folder)]


def a_trajectory(folder: Path) -> Path:
    (folder / "trajectory").mkdir(parents=True)
    (folder / "trajectory" / "0.jpg").write_bytes(JPEG)
    (folder / "result.json").write_text('{"task": "Do it", "action_history": [], "thoughts": []}')
    return folder


@pytest.mark.parametrize("inner", ["a/b", "a/deep/b", "group/b", "a/again/b"])
def test_a_trajectory_in_a_folder_of_another_is_found(tmp_path: Path, inner: str) -> None:
    a_trajectory(tmp_path / "a")
    a_trajectory(tmp_path / inner)
    names = names_of(tmp_path)
    assert names == sorted(["a", inner])
    assert find_trajectories(tmp_path / "a")[0] == tmp_path / "a"


def test_earlier_attempts_and_screenshots_are_not_trajectories(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, a_result("t1"), a_result("t2"))
    a_trajectory(run.task("t1").folder / "attempts" / "001")
    names = names_of(run.folder)
    assert names == ["results/t1", "results/t2"]


@pytest.mark.parametrize("place", ["empty", "group/empty", "group/with/images"])
async def test_a_folder_without_a_result_is_reported(tmp_path: Path, place: str) -> None:
    a_trajectory(tmp_path / "group" / "good")
    (tmp_path / place).mkdir(parents=True)
    judge = WebJudge(parts_for(ScriptedModel(webjudge_script())))
    scored = [await judge_stored(TaskStore(folder), judge) for folder in find_trajectories(tmp_path)]
    (broken,) = (one for one in scored if one.outcome == "broken")
    assert (tmp_path / place).is_relative_to(broken.folder)
    assert "result.json: no such file" in broken.reason


def test_links_that_lead_back_end_and_lose_nothing(tmp_path: Path) -> None:
    a_trajectory(tmp_path / "b")
    a_trajectory(tmp_path / "b" / "inner")
    for name, target in (("a", "b"), ("c", "."), ("b/up", ".."), ("b/inner/top", "../.."), ("loop", "loop")):
        (tmp_path / name).symlink_to(target)
    names = names_of(tmp_path)
    assert names == ["b", "b/inner"]


def test_folders_nested_without_end_are_reported(tmp_path: Path) -> None:
    a_trajectory(tmp_path / "good")
    tmp_path.joinpath(*["deep"] * 200).mkdir(parents=True)
    names = names_of(tmp_path)
    assert names == ["deep", "good"]
