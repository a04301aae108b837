"""The judge as it is started by users, called by clients on the old SDK and the new: whole assessments."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from helpers.interop.programs import (
    CLIENTS,
    EventRecords,
    ForeignClients,
    JudgeProcess,
    assessment,
    calling,
    foreign_agent,
    judge_process,
    website,
)

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("environments")]
ONE_OF_EACH = ("v03 JSON-RPC", "v1 HTTP+JSON")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JudgeProcess]:
    with judge_process(tmp_path_factory.mktemp("judge")) as judge:
        yield judge


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with website() as url:
        yield url


@pytest.fixture(scope="module")
def request_text(environments: None, site: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The request for an assessment of a participant on the old SDK that answers at once."""
    gate = tmp_path_factory.mktemp("gate") / "open"
    gate.touch()
    with foreign_agent("v03", gate=gate) as url:
        yield assessment(url, site)


@pytest.fixture(scope="module", params=CLIENTS)
def streamed(
    request: pytest.FixtureRequest, clients: ForeignClients, judge: JudgeProcess, request_text: str
) -> tuple[str, list[EventRecords]]:
    """A client and what it saw of a whole assessment: its card, then every event."""
    return request.param, clients.call(request.param, judge.url, "stream", text=request_text)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def results_of(event: EventRecords) -> dict[str, Any]:
    """The JSON text of the only artifact."""
    [texts] = event["artifacts"]
    [result] = [json.loads(text) for text in texts if is_json(text)]
    return dict(result)


# --- one assessment, from the card to the result ----------------------------------------------------------------------


def test_the_card_is_read_and_names_the_judge(streamed: tuple[str, list[EventRecords]], judge: JudgeProcess) -> None:
    client, [card, *_] = streamed
    assert card["card"] == "WABE judge"
    assert card["url"] == f"{judge.url}/"
    assert card["protocol"] == ("0.3" if client.startswith("v03") else "1.0")


def test_it_is_one_task_that_works_and_then_is_completed(streamed: tuple[str, list[EventRecords]]) -> None:
    _, [_, *events] = streamed
    assert len({event["task"] for event in events}) == 1
    assert {event["state"] for event in events[:-1]} == {"working"}
    assert events[-1]["state"] == "completed"


def test_progress_is_told_in_prose(streamed: tuple[str, list[EventRecords]]) -> None:
    _, [_, *events] = streamed
    said = [text for event in events for text in event["said"]]
    assert len(said) > 2
    assert not any(is_json(line) for text in said for line in (text, *text.splitlines()))


def test_one_artifact_holds_prose_and_the_result_as_json(streamed: tuple[str, list[EventRecords]]) -> None:
    _, [_, *events] = streamed
    [texts] = events[-1]["artifacts"]
    assert [is_json(text) for text in texts] == [False, True]
    assert set(results_of(events[-1])) == {"winner", "detail"}


def test_the_result_is_that_of_the_assessment_with_whole_numbers(streamed: tuple[str, list[EventRecords]]) -> None:
    _, [_, *events] = streamed
    result = results_of(events[-1])
    detail = result["detail"]
    assert result["winner"] == "white_agent"
    assert [task["verdict"] for task in detail["tasks"]] == ["success"]
    counts = {name: detail[name] for name in ("total_tasks", "scored_tasks", "judged_successes", "aborted_tasks")}
    assert repr(counts) == "{'total_tasks': 1, 'scored_tasks': 1, 'judged_successes': 1, 'aborted_tasks': 0}"


@pytest.mark.parametrize("other", ONE_OF_EACH)
def test_a_task_that_is_done_can_be_fetched_by_any_client(
    clients: ForeignClients, other: str, streamed: tuple[str, list[EventRecords]], judge: JudgeProcess
) -> None:
    _, [_, *events] = streamed
    _, task = clients.call(other, judge.url, "get", task=events[-1]["task"])
    assert (task["state"], task["artifacts"]) == ("completed", events[-1]["artifacts"])


# --- other ways to ask ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ONE_OF_EACH)
def test_a_client_that_does_not_stream_gets_the_finished_task(
    clients: ForeignClients, client: str, judge: JudgeProcess, request_text: str
) -> None:
    _, task = clients.call(client, judge.url, "send", text=request_text)
    assert task["state"] == "completed"
    assert results_of(task)["detail"]["judged_successes"] == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_that_makes_no_sense_is_rejected_with_a_word(
    clients: ForeignClients, client: str, judge: JudgeProcess
) -> None:
    _, *events = clients.call(client, judge.url, "stream", text="hello")
    assert events[-1]["state"] == "rejected"
    assert events[-1]["said"] != []
    assert events[-1]["artifacts"] == []


@pytest.mark.parametrize("client", ONE_OF_EACH)
def test_a_client_that_polls_is_answered_at_once_and_gets_the_result_later(
    clients: ForeignClients, client: str, judge: JudgeProcess, site: str, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    with foreign_agent("v03", gate=gate) as participant:
        _, task = clients.call(client, judge.url, "poll", text=assessment(participant, site))
        _, later = clients.call(client, judge.url, "get", task=task["task"])
        gate.touch()
        done = when_done(clients, client, judge.url, task["task"])
    assert (later["state"], later["artifacts"]) == ("working", [])
    assert results_of(done)["detail"]["judged_successes"] == 1


# --- clients that go away ---------------------------------------------------------------------------------------------


def when_done(clients: ForeignClients, client: str, url: str, task_id: str) -> EventRecords:
    """The task when it is no longer being worked on, asked for again and again as a polling client does."""
    while True:
        _, task = clients.call(client, url, "get", task=task_id)
        if task["state"] not in ("submitted", "working"):
            return task


def begin_and_leave(client: str, url: str, text: str) -> str:
    """Start an assessment and be killed at its first word; the task's id."""
    with calling(client, url, "stream", text=text) as called:
        return next(str(event["task"]) for event in called if event.get("said"))


@pytest.mark.parametrize("client", ONE_OF_EACH)
def test_a_client_that_is_gone_loses_nothing_and_fetches_the_result_later(
    clients: ForeignClients, client: str, judge: JudgeProcess, site: str, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    with foreign_agent("v03", gate=gate) as participant:
        task_id = begin_and_leave(client, judge.url, assessment(participant, site))
        gate.touch()
        task = when_done(clients, client, judge.url, task_id)
    assert task["state"] == "completed"
    assert results_of(task)["detail"]["judged_successes"] == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_was_cut_off_can_follow_the_run_again(
    client: str, judge: JudgeProcess, site: str, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    with foreign_agent("v03", gate=gate) as participant:
        task_id = begin_and_leave(client, judge.url, assessment(participant, site))
        with calling(client, judge.url, "resubscribe", task=task_id) as called:
            seen = iter(called)
            next(seen)  # the card
            first = next(seen)
            gate.touch()
            *_, last = seen
    assert (first["task"], first["state"]) == (task_id, "working")
    assert last["state"] == "completed"
    assert results_of(last)["detail"]["judged_successes"] == 1


# --- a judge that is restarted ----------------------------------------------------------------------------------------


class Restarted(NamedTuple):
    """What clients see of a judge's tasks after it was ended by a signal and started again."""

    finished: EventRecords
    """A finished task before the restart, and to each client after it."""
    fetched: list[EventRecords]
    cut_short: list[EventRecords]
    """A task that was under way, to each client that fetches it and to each that follows it."""
    followed: list[EventRecords]


@pytest.fixture(scope="module", params=[signal.SIGTERM, signal.SIGKILL])
def restarted(
    request: pytest.FixtureRequest,
    clients: ForeignClients,
    request_text: str,
    site: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Restarted:
    folder = tmp_path_factory.mktemp("restarted")
    with foreign_agent("v03", gate=folder / "never") as participant, judge_process(folder / "out") as judge:
        _, finished = clients.call("v03 JSON-RPC", judge.url, "send", text=request_text)
        task_id = begin_and_leave("v03 JSON-RPC", judge.url, assessment(participant, site))
        judge.end(request.param)
        judge.start()
        return Restarted(
            finished,
            [clients.call(client, judge.url, "get", task=finished["task"])[1] for client in ONE_OF_EACH],
            [clients.call(client, judge.url, "get", task=task_id)[1] for client in ONE_OF_EACH],
            [clients.call(client, judge.url, "resubscribe", task=task_id)[-1] for client in CLIENTS],
        )


def test_finished_tasks_survive_a_restart_of_the_judge(restarted: Restarted) -> None:
    before = restarted.finished
    assert results_of(before)["detail"]["judged_successes"] == 1
    seen = [(task["state"], task["artifacts"]) for task in restarted.fetched]
    assert seen == [("completed", before["artifacts"])] * 2


def test_a_task_that_a_restart_cut_short_is_failed_and_nobody_waits_for_it(restarted: Restarted) -> None:
    assert [task["state"] for task in restarted.cut_short] == ["failed"] * 2
    assert all(text for task in restarted.cut_short for text in task["said"])
    assert all("error" in event or event["state"] == "failed" for event in restarted.followed)
