"""Tasks that a run excludes before its first attempt."""

import asyncio
from pathlib import Path

import pytest

from helpers.episode.one_page_shop import assess_in_shop
from judge.records.events import Event, TaskDone
from judge.results.submission import TaskSummary, build_submission
from judge.store.layout import RunStore
from judge.trajectory.files import read_attempt
from shared.models import Action
from shared.protocol import render_reply

DONE = render_reply(Action(tool="finish", params={"answer": "done"}))


class Finisher:
    def __init__(self) -> None:
        self.turns = 0

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        self.turns += 1
        return DONE


def play(folder: Path, participant: Finisher, events: list[Event] | None = None) -> tuple[TaskSummary, ...]:
    checks = [{"kind": "page", "url": "/"}]
    exclude = {"t1": "closed in winter"}
    return asyncio.run(
        assess_in_shop(folder, participant, 3, max_steps=2, events=events, checks=checks, exclude=exclude)
    )


def test_an_excluded_task_is_not_played_and_counts_in_the_rate_of_all(tmp_path: Path) -> None:
    participant, events = Finisher(), list[Event]()
    results = play(tmp_path, participant, events)
    assert participant.turns == 2
    detail = build_submission(role="p", participant_ids={}, results=results, provenance={})["results"][0]["detail"]
    assert (detail["total_tasks"], detail["scored_tasks"], detail["success_rate"]) == (3, 2, 100.0)
    assert (detail["success_rate_of_all"], detail["is_complete"]) == (66.7, False)
    assert detail["excluded"] == [{"task_id": "t1", "reason": "closed in winter", "by": "run"}]
    reported = {event.task_id: event.reason for event in events if isinstance(event, TaskDone)}
    assert reported["t1"] == "excluded: closed in winter"
    attempt = read_attempt(RunStore(tmp_path, "r").task("t1").folder)
    assert (attempt.stop_reason, attempt.excluded, attempt.steps) == ("excluded", "closed in winter", ())


def test_a_resumed_run_keeps_what_it_excluded(tmp_path: Path) -> None:
    play(tmp_path, Finisher())
    before = (RunStore(tmp_path, "r").task("t1").folder / "result.json").read_bytes()
    participant, events = Finisher(), list[Event]()
    results = play(tmp_path, participant, events)
    assert participant.turns == 0
    assert [result.outcome for result in results] == ["success", "aborted", "success"]
    assert [event for event in events if isinstance(event, TaskDone)] == []
    assert (RunStore(tmp_path, "r").task("t1").folder / "result.json").read_bytes() == before


@pytest.mark.parametrize("epochs", [2])
def test_it_is_excluded_from_every_epoch(tmp_path: Path, epochs: int) -> None:
    participant = Finisher()
    results = asyncio.run(
        assess_in_shop(tmp_path, participant, 2, max_steps=2, epochs=epochs, exclude={"t0": "closed"})
    )
    assert participant.turns == epochs
    assert [result.entry.get("excluded") for result in results] == ["closed", None] * epochs
