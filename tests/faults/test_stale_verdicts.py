"""Verdicts that judged something else: damaged, swapped or edited files of a run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.episode.one_page_shop import assess_in_shop
from helpers.json_files import edit
from helpers.plugins import verify_run
from helpers.results import JUDGE, a_finished_run, a_result, a_verdict
from judge.judges.base import Judge
from judge.judges.code import code_checksum
from judge.judges.rescoring import judge_stored
from judge.records.events import Event, TaskRetried
from judge.records.verdicts import Verdict
from judge.results.submission import TaskSummary
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.record import Trajectory
from shared.models import Action
from shared.protocol import render_reply

STEPS = 3


class Player:
    """A participant that clicks before it finishes, or does nothing but finish."""

    def __init__(self, *, clicks: bool) -> None:
        self._clicks = clicks
        self.turns: dict[str, int] = {}

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        number = self.turns[context_id] = self.turns.get(context_id, 0) + 1
        done = number == STEPS or not self._clicks
        return render_reply(Action(tool="finish") if done else Action(tool="browser_click", params={"target": "e1"}))


class ClickJudge(Judge):
    """Success means that something was clicked; like a judge model's, its verdicts are not recomputed."""

    def __init__(self, code: str = JUDGE.code_checksum, *, is_down: bool = False) -> None:
        self.id, self.info = "click-1", JUDGE.model_copy(update={"code_checksum": code})
        self.calls, self.is_down = 0, is_down

    async def judge(self, trajectory: Trajectory) -> Verdict:
        self.calls += 1
        if self.is_down:
            return Verdict(outcome="unscored", reason="judge model: down", judge=self.info)
        clicked = any("CLICK" in line for line in trajectory.action_history)
        return Verdict(outcome="success" if clicked else "failure", reason=f"clicked: {clicked}", judge=self.info)


def edit_steps(folder: Path, change: Callable[[Any], Any]) -> None:
    """The same edit in `result.json` and in `steps.jsonl`."""
    edit(folder / "result.json", lambda value: change(value["steps"][0]))
    lines = (folder / "steps.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    change(first)
    (folder / "steps.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def as_another_version(folder: Path) -> None:
    def change(value: Any) -> None:
        value["schema_version"] = "wabe-1"
        del value["trajectory_sha256"]

    edit(folder / "result.json", change)


def another_task(folder: Path, name: str) -> Path:
    return folder.parent / name


DAMAGES: dict[str, Callable[[Path], object]] = {
    "result json cut off": lambda t: (t / "result.json").write_bytes((t / "result.json").read_bytes()[:900]),
    "two screenshots swapped": lambda t: swap(t / "trajectory/step_000.jpg", t / "trajectory/step_001.jpg"),
    "a snapshot edited": lambda t: (t / "snapshots/step_001.yaml").write_text('- button "Buy" [ref=e1]'),
    "a screenshot gone": lambda t: (t / "trajectory/step_001.jpg").unlink(),
    "an action edited": lambda t: edit_steps(t, lambda step: step["outcome"].update(line="<Buy button> -> CLICK")),
    "the answer edited": lambda t: edit(t / "result.json", lambda value: value.update(agent_final_answer="42")),
    "the end edited": lambda t: edit(t / "result.json", lambda value: value.update(stop_reason="max_steps")),
    "result json of another task": lambda t: swap(t / "result.json", another_task(t, "t1") / "result.json"),
    "everything of another task": lambda t: swap(t, another_task(t, "t1")),
    "passed off as another version": as_another_version,
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_success_is_played_again_on_resume(tmp_path: Path, damage: str) -> None:
    first = await assess_in_shop(tmp_path, Player(clicks=True), 2, max_steps=STEPS, judge=ClickJudge())
    folder = RunStore(tmp_path, "r").task("t0").folder
    DAMAGES[damage](folder)
    events: list[Event] = []
    player = Player(clicks=False)
    done = await assess_in_shop(tmp_path, player, 1, max_steps=STEPS, judge=ClickJudge(), events=events)
    assert [first[0].outcome, done[0].outcome] == ["success", "failure"]
    assert any(isinstance(event, TaskRetried) and "damaged" in event.cause for event in events)
    assert [path.name for path in folder.glob("verdicts/*")] == [f"{ClickJudge().id}.json"]
    assert (folder / "attempts/001/verdicts").is_dir()


async def test_a_whole_success_is_kept_on_resume(tmp_path: Path) -> None:
    await assess_in_shop(tmp_path, Player(clicks=True), 1, max_steps=STEPS, judge=ClickJudge())
    player, judge = Player(clicks=False), ClickJudge()
    done = await assess_in_shop(tmp_path, player, 1, max_steps=STEPS, judge=judge)
    assert (done[0].outcome, len(player.turns), judge.calls) == ("success", 0, 0)


async def test_what_other_code_judged_is_judged_again_on_resume_and_its_verdict_is_kept(tmp_path: Path) -> None:
    await assess_in_shop(tmp_path, Player(clicks=True), 1, max_steps=STEPS, judge=ClickJudge("old"))
    store = RunStore(tmp_path, "r")
    folder = store.task("t0").folder
    before = (folder / "verdicts/click-1.json").read_bytes()
    player, judge = Player(clicks=False), ClickJudge("new")
    done = await assess_in_shop(tmp_path, player, 1, max_steps=STEPS, judge=judge)
    (file,) = (folder / "verdicts/earlier").iterdir()
    assert (done[0].outcome, len(player.turns), judge.calls) == ("success", 0, 1)
    assert file.read_bytes() == before
    for path in ("verdicts/click-1.json", "result.json"):
        assert json.loads((folder / path).read_text())["judge"]["code_checksum"] == "new"
    # And only once.
    again = ClickJudge("new")
    await assess_in_shop(tmp_path, player, 1, max_steps=STEPS, judge=again)
    assert again.calls == 0


async def test_a_judge_of_other_code_that_is_down_leaves_no_verdict_of_the_code_before(tmp_path: Path) -> None:
    await assess_in_shop(tmp_path, Player(clicks=True), 1, max_steps=STEPS, judge=ClickJudge("old"))
    player = Player(clicks=False)
    down = await assess_in_shop(tmp_path, player, 1, max_steps=STEPS, judge=ClickJudge("new", is_down=True))
    up = await assess_in_shop(tmp_path, player, 1, max_steps=STEPS, judge=ClickJudge("new"))
    assert [down[0].outcome, up[0].outcome, len(player.turns)] == ["unscored", "success", 0]


async def test_a_verdict_that_was_deleted_is_given_again_without_playing(tmp_path: Path) -> None:
    await assess_in_shop(tmp_path, Player(clicks=True), 1, max_steps=STEPS, judge=ClickJudge())
    shutil.rmtree(RunStore(tmp_path, "r").task("t0").folder / "verdicts")
    player, judge = Player(clicks=False), ClickJudge()
    done = await assess_in_shop(tmp_path, player, 1, max_steps=STEPS, judge=judge)
    assert (done[0].outcome, len(player.turns), judge.calls) == ("success", 0, 1)


async def a_failure_with_a_copied_success(folder: Path) -> TaskStore:
    """A failed task beside whose trajectory lies the verdict on another one."""
    judge = ClickJudge()
    await assess_in_shop(folder / "other", Player(clicks=True), 1, max_steps=STEPS, judge=judge)
    await assess_in_shop(folder, Player(clicks=False), 1, max_steps=STEPS, judge=judge)
    name = f"verdicts/{judge.id}.json"
    task = RunStore(folder, "r").task("t0")
    shutil.copyfile(RunStore(folder / "other", "r").task("t0").folder / name, task.folder / name)
    return task


async def test_a_verdict_copied_from_another_trajectory_is_ignored_on_resume(tmp_path: Path) -> None:
    await a_failure_with_a_copied_success(tmp_path)
    done: tuple[TaskSummary, ...] = await assess_in_shop(
        tmp_path, Player(clicks=True), 1, max_steps=STEPS, judge=ClickJudge()
    )
    assert done[0].outcome == "failure"


async def test_a_verdict_copied_from_another_trajectory_is_ignored_by_score(tmp_path: Path) -> None:
    task = await a_failure_with_a_copied_success(tmp_path)
    scored = await judge_stored(task, ClickJudge())
    assert (scored.outcome, scored.kept) == ("failure", False)


def without_digest(value: dict[str, Any]) -> None:
    value["trajectory_sha256"] = None


async def test_a_verdict_that_names_no_trajectory_is_ignored(tmp_path: Path) -> None:
    task = await a_failure_with_a_copied_success(tmp_path)
    edit(next(task.folder.glob("verdicts/*.json")), without_digest)
    scored = await judge_stored(task, ClickJudge())
    assert (scored.outcome, scored.kept) == ("failure", False)


@pytest.fixture
def finished(tmp_path: Path) -> RunStore:
    """A finished run of two successes, the first with an earlier attempt."""
    code = code_checksum()
    verdict = a_verdict(judge=JUDGE.model_copy(update={"code_checksum": code, "prompt_checksum": code}))
    store = a_finished_run(tmp_path, a_result("t0", verdict=verdict), a_result("t1", verdict=verdict, final_answer="1"))
    shutil.copytree(store.task("t1").folder, store.task("t0").folder / "attempts" / "001")
    return store


VERDICT = "verdicts/webjudge-1.json"


def delete_verdict(task: Path) -> None:
    (task / VERDICT).unlink()
    edit(task / "result.json", lambda value: value.update(verdict_of_judge=None, reason=None, judge=None))


TAMPERINGS: dict[str, Callable[[Path], Any]] = {
    **{name: damage for name, damage in DAMAGES.items() if name != "everything of another task"},
    "a verdict copied from another task": lambda t: shutil.copyfile(another_task(t, "t1") / VERDICT, t / VERDICT),
    "a verdict deleted": lambda t: (t / VERDICT).unlink(),
    "a verdict deleted on both sides": delete_verdict,
    "a verdict of another judge put there": lambda t: shutil.copyfile(
        another_task(t, "t1") / VERDICT, t / "verdicts/rubric-2.json"
    ),
    "result json of an earlier attempt": lambda t: swap(t / "result.json", t / "attempts/001/result.json"),
    "a screenshot more": lambda t: (t / "trajectory/step_009.jpg").write_bytes(b"x"),
    "a screenshot of an earlier attempt edited": lambda t: (t / "attempts/001/trajectory/step_000.jpg").write_bytes(
        b"x"
    ),
    "a thought edited": lambda t: edit(t / "result.json", lambda value: value["thoughts"].append("x")),
    "a task folder more": lambda t: shutil.copytree(t, another_task(t, "t9")),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_verify_finds(finished: RunStore, tampering: str) -> None:
    assert verify_run(finished).mismatches == ()
    TAMPERINGS[tampering](finished.task("t0").folder)
    mismatches = verify_run(finished).mismatches
    assert mismatches
