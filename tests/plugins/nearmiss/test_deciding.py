"""What recorded walks are: by a task's checks, and by what they came to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.plugins.nearmiss.deciding import Deciding, LetThrough, MissDecision
from judge.plugins.nearmiss.recordings import Recorded
from judge.records.sites import NONE_SHARED
from judge.records.tasks import StateAddress, Task
from shared.files import write_json
from shared.toml_text import parse_toml

from .packing import START, played, script, walk_of

ADDED: dict[str, Any] = {"kind": "request", "method": "POST", "url": "/api/things", "post_data": {"name": "Rope"}}
SHOWN = {"kind": "element", "element": "listitem: Rope"}
RIGHT = script("Add Rope")
BACK = {"tool": "browser_navigate", "params": {"url": START}}
WALKS = {
    "also-1": script("Add Lantern", "Add Rope"),
    "twice-1": script("Add Rope", "Add Rope"),
    "stop-1": script(),
    "leave-1": (*RIGHT[:-1], BACK, RIGHT[-1]),
    "also-2": script("Add Lantern", "Add Gloves", "Add Rope"),
}


def decisions(folder: Path, checks: Sequence[dict[str, Any]]) -> dict[str, MissDecision]:
    rights = [played(folder, walk_of(RIGHT, f"right-{number}"), checks) for number in (1, 2)]
    misses = [played(folder, walk_of(steps, name, name.partition("-")[0]), checks) for name, steps in WALKS.items()]
    task = rights[0].trajectory.task
    return {each.walk_id: each for each in Deciding({"pack": task}, NONE_SHARED).decide([*rights, *misses])}


def test_a_check_that_looks_at_what_must_be_there_lets_through_what_is_there_besides(tmp_path: Path) -> None:
    decided = decisions(tmp_path, [ADDED])
    assert {name: each.kind for name, each in decided.items()} == {
        "also-1": "survivor",
        "twice-1": "survivor",
        "stop-1": "killed",
        "leave-1": "same",
        "also-2": "stillborn",
    }
    assert str(LetThrough.among(decided.values())) == "let through 2 of 2: 1 also, 1 twice"
    assert "Lantern" in decided["also-1"].differences


def test_the_proposed_check_decides_the_near_miss_rightly(tmp_path: Path) -> None:
    proposed = parse_toml(f"check = {decisions(tmp_path / 'before', [ADDED])['also-1'].check}")["check"]
    after = decisions(tmp_path / "after", [ADDED, proposed])
    assert after["also-1"].kind == "killed"
    assert after["leave-1"].kind == "same"


@pytest.mark.parametrize(
    ("rights", "check", "why"),
    [
        (1, ADDED, "there are no two right walks"),
        (2, {"kind": "page", "url": "/list?done"}, "its right walk does not pass: page url /list?done"),
    ],
)
def test_without_two_right_walks_that_pass_nothing_is_decided(
    tmp_path: Path, rights: int, check: dict[str, Any], why: str
) -> None:
    walks = [walk_of(RIGHT, f"right-{number}") for number in range(rights)]
    walks.append(walk_of(WALKS["twice-1"], "twice-1", "twice"))
    recorded = [played(tmp_path, each, [check]) for each in walks]
    (decision,) = Deciding({"pack": recorded[0].trajectory.task}, NONE_SHARED).decide(recorded)
    assert (decision.kind, decision.why) == ("undecided", why)
    assert LetThrough.among([decision]) is None


@pytest.mark.parametrize(("is_elsewhere", "kind"), [(True, "undecided"), (False, "survivor")])
def test_a_choice_beside_the_task_that_only_shows_more_is_left_to_people(
    tmp_path: Path, is_elsewhere: bool, kind: str
) -> None:
    lines = ["- main [ref=e1]:", '  - option "Any" [selected] [ref=e2]', '  - option "Lisbon" [ref=e3]']
    chosen = [
        "- main [ref=e1]:",
        '  - option "Any" [ref=e2]',
        '  - option "Lisbon" [selected] [ref=e3]',
        "  - text: Rua",
    ]
    names = {"right-1": lines, "right-2": lines, "plus-one-1": chosen}
    walks = []
    for name, page in names.items():
        folder = tmp_path / name
        steps = [RecordedStep(path="/list", snapshot="\n".join(page), tool="finish")]
        seen = {"kind": "page", "url": "/list"}
        attempt = recorded_attempt(folder, [seen], steps, "Done.", website=START, task="Open it.", task_id="pack")
        write_json(folder / "result.json", attempt.attempt.to_json())
        walk = walk_of(script(), name, name.rpartition("-")[0]).model_copy(update={"is_elsewhere": is_elsewhere})
        walks.append(Recorded(walk, folder))
    (decision,) = Deciding({"pack": walks[0].trajectory.task}, NONE_SHARED).decide(walks)
    assert decision.kind == kind


def test_where_the_owner_declares_the_state_it_decides_and_not_what_was_sent(tmp_path: Path) -> None:
    walks = [walk_of(RIGHT, f"right-{number}") for number in (1, 2)]
    walks += [walk_of(WALKS["also-1"], "also-1", "also"), walk_of(WALKS["leave-1"], "leave-1", "leave")]
    recorded = [played(tmp_path, each, [ADDED], declares_state=True) for each in walks]
    task = recorded[0].trajectory.task.model_copy(update={"state": StateAddress(url="/state")})
    also, left = Deciding({"pack": task}, NONE_SHARED).decide(recorded)
    assert (also.kind, left.kind) == ("survivor", "same")
    # What is different each time is left out, and what was sent is not looked at.
    assert also.differences.startswith("leaves added[]=Lantern; shows")
    assert "sends" not in also.differences


@pytest.mark.parametrize(
    ("text", "checks", "kind"),
    [
        ("How many are packed?", [ADDED], "survivor"),
        ("Pack it.", [ADDED], "same"),
        ("How many are packed?", [ADDED, {"kind": "answer", "type": "number", "expected": 1}], "killed"),
    ],
)
def test_another_answer_counts_where_one_is_asked_for(
    tmp_path: Path, text: str, checks: list[dict[str, Any]], kind: str
) -> None:
    def recorded(answer: str, name: str, operator: str) -> Recorded:
        return played(tmp_path, walk_of(script("Add Rope", answer=answer), name, operator), checks)

    walks = [recorded("1", f"right-{number}", "right") for number in (1, 2)] + [recorded("2", "answer-1", "answer")]
    task: Task = walks[0].trajectory.task.model_copy(update={"task": text})
    (decision,) = Deciding({"pack": task}, NONE_SHARED).decide(walks)
    assert decision.kind == kind
