"""The text of a reply that arrives in pieces."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from a2a import types
from a2a.helpers import get_text_parts
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore, TaskManager
from a2a.types import (
    Artifact,
    Message,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.a2a.replies import AgentResponse, EventFold, OpenTask, message_text, new_texts, reply_text
from shared.errors import ParticipantError
from shared.models import Action
from shared.protocol import parse_reply, render_reply

CONTEXT, TASK = "c", "t"
# No label, tag or brace, so that no text has an action.
PIECES = st.lists(st.text("ah \n\"'é\u200d💥", max_size=4), max_size=6)
TYPED = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
ACTIONS = st.builds(
    Action,
    tool=st.sampled_from(["browser_type", "finish", "browser_wait_for"]),
    params=st.dictionaries(st.sampled_from(["text", "target", "answer"]), TYPED),
    thought=st.text("ha \n", max_size=12).map(str.strip),
)


def message_with(text: str) -> Message:
    return Message(message_id="m", role=types.Role.ROLE_AGENT, parts=[Part(text=text)])


def artifact(texts: Sequence[str], artifact_id: str = "a", **more: Any) -> Artifact:
    return Artifact(artifact_id=artifact_id, parts=[Part(text=text) for text in texts], **more)


def task_with(*artifacts: Artifact) -> Task:
    return Task(id=TASK, context_id=CONTEXT, artifacts=artifacts)


# --- joining ----------------------------------------------------------------------------------------------------------


@given(artifacts=st.lists(PIECES, max_size=4), message=PIECES)
@example(artifacts=[["ha", "ha"]], message=[])
@example(artifacts=[["ha", "", "ha"], ["ha", "ha"]], message=["ha", "ha"])
def test_parts_of_artifacts_are_joined_as_sent_and_those_of_messages_are_lines(
    artifacts: list[list[str]], message: list[str]
) -> None:
    if not any(artifacts) and not message:
        with pytest.raises(ParticipantError, match="no text part"):
            reply_text(artifacts, message)
        return
    whole = ["".join(parts) for parts in artifacts if "".join(parts)]
    last = "\n".join(message)
    lines = ["\n".join(parts) for parts in artifacts if parts]
    repeats = last in (*whole, *lines, "\n".join(whole), "\n".join(lines))
    assert reply_text(artifacts, message) == "\n".join([*whole, *([last] if last and not repeats else [])])


@pytest.mark.slow
@settings(max_examples=200)
@given(action=ACTIONS, data=st.data(), status=st.sampled_from(["", "whole", "pieces"]))
def test_an_action_in_any_pieces_is_that_action(action: Action, data: st.DataObject, status: str) -> None:
    text = render_reply(action)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=40)))
    pieces = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]
    message = {"": [], "whole": [text], "pieces": pieces}[status]
    assert parse_reply(reply_text([pieces], message)).action == action
    assert reply_text([pieces], []) == text


@given(action=ACTIONS, bare=st.booleans())
def test_the_three_lines_of_an_action_as_parts_are_that_action(action: Action, bare: bool) -> None:
    params = render_reply(Action(tool=action.tool, params=action.params)).partition('"params": ')[2][: -len("}</json>")]
    parts = [f"ACTION: {action.tool}", f"PARAMS: {params}"]
    parts = parts if bare else [f"THOUGHT: {action.thought}", *parts]
    result = parse_reply(reply_text([parts], [])).action
    assert result is not None
    assert (result.tool, result.params) == (action.tool, action.params)


def test_lines_are_not_put_into_a_text_that_has_an_action() -> None:
    parts = ['THOUGHT: no\nACTION: finish\nPARAMS: {"answer": "a', 'b"}', "\nTHOUGHT: too late"]
    assert reply_text([parts], []) == "".join(parts)


def test_lines_without_an_action_are_not_a_reply_either() -> None:
    assert reply_text([["I will ", "click."]], []) == "I will click."


def test_the_parts_of_a_message_are_never_one_line() -> None:
    message = Message(message_id="m", parts=[Part(text="ha"), Part(text="ha")])
    assert message_text(message) == "ha\nha"


@pytest.mark.parametrize("repeated", ["one", "two", "one\ntwo"])
def test_a_status_that_repeats_an_artifact_or_all_of_them_counts_once(repeated: str) -> None:
    assert reply_text([["on", "e"], ["two"]], [repeated]) == "one\ntwo"


def test_a_status_that_repeats_a_part_only_is_kept() -> None:
    assert reply_text([["on", "e"]], ["on"]) == "one\non"


# --- streams ----------------------------------------------------------------------------------------------------------

STATES = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED)
IDS = st.sampled_from(["a", "b", "c"])
CHUNKS = st.builds(
    lambda artifact_id, texts, append, key: TaskArtifactUpdateEvent(
        task_id=TASK, context_id=CONTEXT, artifact=artifact(texts, artifact_id, metadata={key: 1}), append=append
    ),
    IDS,
    PIECES,
    st.booleans(),
    st.sampled_from("xy"),
)
STATUSES = st.builds(
    lambda state, text: TaskStatusUpdateEvent(
        task_id=TASK,
        context_id=CONTEXT,
        status=TaskStatus(state=state, message=None if text is None else message_with(text)),
    ),
    st.sampled_from(STATES),
    st.none() | st.text("ha", max_size=3),
)
TASKS = st.builds(
    lambda found: Task(
        id=TASK,
        context_id=CONTEXT,
        status=TaskStatus(state=TaskState.TASK_STATE_WORKING),
        artifacts=[artifact(texts, artifact_id) for artifact_id, texts in found.items()],
    ),
    st.dictionaries(IDS, PIECES),
)
Event = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


def in_response(event: Event) -> StreamResponse:
    match event:
        case Task():
            return StreamResponse(task=event)
        case TaskStatusUpdateEvent():
            return StreamResponse(status_update=event)
    return StreamResponse(artifact_update=event)


async def as_the_sdk_does(events: Sequence[Event]) -> Task:
    """The task that the SDK's server keeps for clients that do not stream."""
    manager = TaskManager(InMemoryTaskStore(), ServerCallContext(), TASK, CONTEXT, None)
    for event in events:
        await manager.process(event)
    result = await manager.get_task()
    assert result is not None
    return result


@pytest.mark.slow
@settings(max_examples=200)
@given(events=st.lists(CHUNKS | STATUSES | TASKS, min_size=1, max_size=12))
def test_a_stream_is_put_together_as_the_sdks_server_does(events: list[Event]) -> None:
    begun: set[str] = set()
    fold = EventFold()
    for event in events:
        fold.add(in_response(event))
        if isinstance(event, Task):
            begun = {each.artifact_id for each in event.artifacts}
        elif isinstance(event, TaskArtifactUpdateEvent):
            # The SDK's server refuses a chunk of nothing; it begins the artifact here.
            event.append &= event.artifact.artifact_id in begun
            begun.add(event.artifact.artifact_id)
    expected = asyncio.run(as_the_sdk_does(events))
    result = fold.answer.task
    assert [(each.artifact_id, get_text_parts(each.parts), each.metadata) for each in result.artifacts] == [
        (each.artifact_id, get_text_parts(each.parts), each.metadata) for each in expected.artifacts
    ]
    assert result.status.message == expected.status.message
    assert result.status.state == expected.status.state
    assert list(result.history) == list(expected.history)


@pytest.mark.parametrize("state", ["completed", "input_required", "failed", "auth_required"])
def test_a_stream_is_done_with_its_first_message_or_final_state(state: str) -> None:
    fold = EventFold()
    done = [fold.is_done]
    for each in (TaskState.TASK_STATE_WORKING, TaskState.Value(f"TASK_STATE_{state.upper()}")):
        fold.add(in_response(TaskStatusUpdateEvent(task_id=TASK, status=TaskStatus(state=each))))
        done.append(fold.is_done)
    assert done == [False, False, True]
    fold = EventFold()
    fold.add(StreamResponse(message=message_with("ha")))
    assert fold.is_done


def test_an_event_of_another_task_is_refused() -> None:
    fold = EventFold()
    fold.add(in_response(Task(id=TASK)))
    with pytest.raises(ParticipantError, match="another task"):
        fold.add(in_response(TaskArtifactUpdateEvent(task_id="other", artifact=artifact(["ha"]))))


def test_an_event_of_another_context_is_refused() -> None:
    fold = EventFold()
    fold.add(in_response(Task(id=TASK, context_id=CONTEXT)))
    with pytest.raises(ParticipantError, match="another context"):
        fold.add(in_response(TaskStatusUpdateEvent(task_id=TASK, context_id="other")))


def test_a_stream_without_events_is_not_a_reply() -> None:
    with pytest.raises(ParticipantError, match="closed its stream before an answer"):
        _ = EventFold().answer


# --- tasks that are continued -----------------------------------------------------------------------------------------


@given(before=st.lists(PIECES, max_size=3), after=st.lists(PIECES, max_size=3), more=PIECES.filter(bool))
def test_what_a_continued_task_held_before_is_not_repeated(
    before: list[list[str]], after: list[list[str]], more: list[str]
) -> None:
    old = [artifact(texts, f"old {n}") for n, texts in enumerate(before)]
    known = OpenTask.of(task_with(*old))
    new = [artifact(texts, f"new {n}") for n, texts in enumerate(after)]
    answer = AgentResponse(None, task_with(*old, *new))
    assert new_texts(answer, known) == after
    # The last artifact grows.
    if before:
        grown = [*old[:-1], artifact([*before[-1], *more], f"old {len(old) - 1}")]
        assert new_texts(AgentResponse(None, task_with(*grown, *new)), known) == [more, *after]


def test_an_artifact_that_is_made_again_under_its_id_is_new() -> None:
    known = OpenTask.of(task_with(artifact(["one"])))
    assert new_texts(AgentResponse(None, task_with(artifact(["two"]))), known) == [["two"]]
    assert new_texts(AgentResponse(None, task_with(artifact(["one"], metadata={"turn": 2}))), known) == [["one"]]


def test_an_artifact_that_is_streamed_again_is_new_even_if_it_is_equal() -> None:
    known = OpenTask.of(task_with(artifact(["one"])))
    fold = EventFold()
    fold.add(StreamResponse(task=task_with(artifact(["one"]))))
    fold.add(in_response(TaskArtifactUpdateEvent(task_id=TASK, artifact=artifact(["one"]))))
    assert new_texts(fold.answer, known) == [["one"]]


def test_a_chunk_that_continues_an_artifact_of_an_earlier_turn_is_all_that_is_new() -> None:
    known = OpenTask.of(task_with(artifact(["one"])))
    fold = EventFold()
    fold.add(StreamResponse(task=task_with(artifact(["one"]))))
    fold.add(in_response(TaskArtifactUpdateEvent(task_id=TASK, artifact=artifact(["two"]), append=True)))
    assert new_texts(fold.answer, known) == [["two"]]
