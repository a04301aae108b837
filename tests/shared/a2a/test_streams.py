"""Replies in pieces, and agents that only stream."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from a2a import types
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from helpers.a2a.agents import (
    CONTEXT,
    JPEG,
    Answer,
    ForeignAgent,
    card_03,
    card_10,
    message_03,
    message_10,
    reply_of,
    served,
    talking_to,
    task_03,
    task_10,
)
from helpers.a2a.envelopes import encode, in_envelope, mutated
from helpers.a2a.streaming import PROTOCOLS, in_characters, streaming_agent
from helpers.ports import free_port
from shared.a2a.client import ParticipantClient
from shared.a2a.tasks import AgentMessage
from shared.errors import ParticipantError, ParticipantTimeout, ParticipantUnreachable

# --- replies in pieces ------------------------------------------------------------------------------------------------

REPLY = '<json>{"thought": "haha", "tool": "browser_type", "params": {"target": "e3", "text": "haha 11:11"}}</json>'


async def reply_of_app(app: Any, *, turns: int = 1, **options: Any) -> list[str]:
    async with served(app) as url, ParticipantClient(url, **options) as client:
        return [await client.send("What now?", image=JPEG, context_id=CONTEXT) for _ in range(turns)]


@pytest.mark.parametrize("only_streams", [False, True], ids=["aggregated", "streamed"])
@pytest.mark.parametrize(("binding", "protocol"), PROTOCOLS)
async def test_a_reply_in_chunks_of_one_character_is_the_reply(binding: str, protocol: str, only_streams: bool) -> None:
    app = streaming_agent(
        in_characters(REPLY), only_streams=only_streams, binding=binding, protocol=protocol, message=REPLY
    )
    assert await reply_of_app(app) == [REPLY]


@pytest.mark.slow
@pytest.mark.parametrize("only_streams", [False, True], ids=["aggregated", "streamed"])
@pytest.mark.parametrize("card", [card_10(), card_03()], ids=["1.0", "0.3"])
async def test_four_kilobytes_in_chunks_of_one_character_are_read(card: dict[str, Any], only_streams: bool) -> None:
    is_old = card == card_03()
    parts = [{"kind": "text", "text": each} if is_old else {"text": each} for each in "ab" * 2000]
    ids = {"taskId": "t1", "contextId": CONTEXT, "metadata": {"model": "m" * 20}}
    size = 0

    def answer(body: dict[str, Any]) -> Any:
        nonlocal size
        if not only_streams:
            artifacts = [{"artifactId": "a", "parts": parts}]
            if is_old:
                return task_03(CONTEXT, "completed", artifacts=artifacts)
            return {"task": task_10(CONTEXT, "COMPLETED", artifacts=artifacts)}
        if not is_streaming(body):
            return refusal(body, UNSUPPORTED)
        updates = [{"artifact": {"artifactId": "a" * 36, "parts": [part]}, "append": True, **ids} for part in parts]
        if is_old:
            done = {"kind": "status-update", "status": {"state": "completed"}, "final": True, **ids}
            stream = event_stream(body, *({"kind": "artifact-update", **each} for each in updates), done)
        else:
            stream = event_stream(body, *({"artifactUpdate": each} for each in updates), status_10("COMPLETED"))
        size = len(stream.body)
        return stream

    assert await reply_of(answer, card, max_reply_bytes=4000) == "ab" * 2000
    assert only_streams is (size > 1_000_000)


@pytest.mark.parametrize("only_streams", [False, True], ids=["aggregated", "streamed"])
async def test_the_limit_of_a_reply_is_that_of_its_text(only_streams: bool) -> None:
    async def answer(_: AgentMessage) -> Any:
        return [["é" * 300]] * 2

    app = streaming_agent(answer, only_streams=only_streams)
    with pytest.raises(ParticipantError, match="reply has more than 1199 bytes"):
        await reply_of_app(app, max_reply_bytes=1199)
    assert await reply_of_app(app, max_reply_bytes=1200) == ["é" * 600]


@pytest.mark.parametrize("only_streams", [False, True], ids=["aggregated", "streamed"])
async def test_a_task_that_waits_for_input_goes_on_in_its_stream(only_streams: bool) -> None:
    answers = iter([[["o"], ["ne"]], [["tw", "o"]], [["tw", "o"]]])

    async def answer(_: AgentMessage) -> Any:
        return next(answers)

    end = types.TaskState.TASK_STATE_INPUT_REQUIRED
    app = streaming_agent(answer, only_streams=only_streams, end=end)
    assert await reply_of_app(app, turns=2) == ["one", "two"]
    if only_streams:
        # Equal artifacts cannot be told apart unless they are seen to arrive.
        answers = iter([[["one"]], [["one"]], [["one"]]])
        assert await reply_of_app(app, turns=3) == ["one"] * 3


# --- agents that only stream ------------------------------------------------------------------------------------------


def event_stream(body: dict[str, Any], *results: Any) -> Response:
    text = "".join(
        f"data: {json.dumps({'jsonrpc': '2.0', 'id': body['id'], 'result': result})}\n\n" for result in results
    )
    return Response(text, media_type="text/event-stream")


def refusal(body: dict[str, Any], code: int, status: int = 200) -> Response:
    error = {"code": code, "message": "no"}
    return JSONResponse({"jsonrpc": "2.0", "id": body["id"], "error": error}, status_code=status)


METHOD_NOT_FOUND, UNSUPPORTED = -32601, -32004


def is_streaming(body: dict[str, Any]) -> bool:
    return body["method"] in ("SendStreamingMessage", "message/stream")


@pytest.mark.parametrize(
    "first_answer",
    [
        lambda body: refusal(body, METHOD_NOT_FOUND),
        lambda body: refusal(body, UNSUPPORTED),
        lambda body: refusal(body, METHOD_NOT_FOUND, 400),
        lambda body: refusal(body, UNSUPPORTED, 404),
        lambda body: PlainTextResponse("no", status_code=405),
        lambda body: PlainTextResponse("no", status_code=501),
    ],
    ids=["no method", "unsupported", "no method, 400", "unsupported, 404", "405", "501"],
)
@pytest.mark.parametrize("card", [card_10(), card_03()], ids=["1.0", "0.3"])
@pytest.mark.parametrize("says_so", [True, False], ids=["card says so", "card says nothing"])
async def test_an_agent_that_refuses_to_send_is_asked_to_stream_once_and_for_all(
    first_answer: Answer, card: dict[str, Any], says_so: bool
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if not is_streaming(body):
            return first_answer(body)
        return event_stream(
            body, message_03(CONTEXT, "an answer") if card == card_03() else message_10(body, "an answer")
        )

    agent = ForeignAgent(answer, {**card, "capabilities": {"streaming": True} if says_so else {}})
    async with talking_to(agent) as client:
        assert [await client.send("What now?", context_id=CONTEXT) for _ in range(3)] == ["an answer"] * 3
    assert [is_streaming(body) for body in agent.requests] == [False, True, True, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        lambda body: message_10(body, "an answer"),
        lambda body: {"task": task_10(CONTEXT, "FAILED", text="no")},
        lambda body: refusal(body, -32603),
        lambda body: refusal(body, -32602, 400),
        lambda body: PlainTextResponse("down", status_code=502),
        lambda body: PlainTextResponse("no", status_code=404),
        lambda body: Response("{", media_type="application/json"),
        lambda body: asyncio.sleep(1.5),
    ],
    ids=["reply", "failed", "internal error", "invalid", "502", "404", "not JSON", "no reply"],
)
async def test_after_a_message_that_may_have_been_received_no_message_is_streamed(first: Answer) -> None:
    agent = ForeignAgent(lambda body: first(body) if len(agent.requests) == 1 else refusal(body, METHOD_NOT_FOUND))
    async with talking_to(agent, reply_timeout_s=1) as client:
        with contextlib.suppress(ParticipantError):
            await client.send("What now?", context_id=CONTEXT)
        with pytest.raises(ParticipantError, match="answered with an error"):
            await client.send("What now?", context_id=CONTEXT)
    assert [body["method"] for body in agent.requests] == ["SendMessage", "SendMessage"]


async def test_a_message_that_found_no_connection_decides_nothing() -> None:
    agent = ForeignAgent(
        lambda body: (
            event_stream(body, message_10(body, "an answer")) if is_streaming(body) else refusal(body, UNSUPPORTED)
        )
    )
    port = free_port()
    async with contextlib.AsyncExitStack() as stack:
        async with served(agent.app, port) as url:
            client = await stack.enter_async_context(ParticipantClient(url))
        with pytest.raises(ParticipantUnreachable):
            await client.send("What now?", context_id=CONTEXT)
        async with served(agent.app, port):
            assert await client.send("What now?", context_id=CONTEXT) == "an answer"


async def test_an_agent_that_neither_sends_nor_streams_is_an_error() -> None:
    with pytest.raises(ParticipantError, match="answered with an error"):
        await reply_of(lambda body: refusal(body, METHOD_NOT_FOUND))


def update_10(text: str, **more: Any) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "t1", "contextId": CONTEXT, "artifact": artifact, **more}}


def status_10(state: str) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": "t1", "contextId": CONTEXT, "status": {"state": f"TASK_STATE_{state}"}}}


async def streamed(*results: Any, then: Answer | None = None, **options: Any) -> str:
    """The reply of an agent that only streams, and sends these events."""

    def answer(body: dict[str, Any]) -> Any:
        if is_streaming(body):
            return event_stream(body, *results)
        return then(body) if then and body["method"] != "SendMessage" else refusal(body, UNSUPPORTED)

    return await reply_of(answer, **options)


async def test_a_stream_without_its_task_and_without_a_first_chunk_is_read() -> None:
    chunks = [update_10(text, append=True) for text in ("h", "a", "h", "a")]
    assert await streamed(status_10("WORKING"), *chunks, status_10("COMPLETED"), update_10("!")) == "haha"


async def test_a_stream_that_ends_before_its_task_is_done_is_followed_by_asking() -> None:
    done = task_10(CONTEXT, "COMPLETED", artifacts=[{"artifactId": "a", "parts": [{"text": "ha"}, {"text": "ha"}]}])
    assert await streamed(status_10("WORKING"), update_10("ha"), then=lambda body: done) == "haha"


@pytest.mark.parametrize(
    ("results", "complaint"),
    [
        ([], "closed its stream before an answer"),
        ([status_10("WORKING"), update_10("x")], "closed its stream before an answer"),
        ([status_10("FAILED")], "the agent's task is failed"),
        ([status_10("COMPLETED")], "no text part"),
        ([status_10("WORKING"), {"task": task_10("other", "COMPLETED", text="an answer")}], "another context"),
        ([{"message": {"messageId": "m", "role": "ROLE_AGENT", "contextId": "other"}}], "another context"),
        ([{**update_10("x"), "more": 1}, {"task": {**task_10(CONTEXT, "COMPLETED"), "id": "t2"}}], "another task"),
        ([update_10("x" * 2001), status_10("COMPLETED")], "reply has more than 2000 bytes"),
        ([{"message": 7}], "not A2A"),
    ],
    ids=["nothing", "no end", "failed", "no text", "context", "message's context", "task", "too long", "wrong"],
)
async def test_a_stream_without_a_reply_is_the_participants_error(results: list[Any], complaint: str) -> None:
    with pytest.raises(ParticipantError, match=complaint):
        await streamed(*results, max_reply_bytes=2000)


async def test_a_stream_that_never_ends_is_a_timeout() -> None:
    async def trickle(body: dict[str, Any]) -> AsyncIterator[str]:
        while True:
            yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': body['id'], 'result': update_10('x', append=True)})}\n\n"
            await asyncio.sleep(0.01)

    def answer(body: dict[str, Any]) -> Any:
        if not is_streaming(body):
            return refusal(body, UNSUPPORTED)
        return StreamingResponse(trickle(body), media_type="text/event-stream")

    with pytest.raises(ParticipantTimeout):
        await reply_of(answer, reply_timeout_s=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("card", [card_10(), card_03()], ids=["1.0", "0.3"])
async def test_any_events_are_a_reply_or_the_participants_error(card: dict[str, Any]) -> None:
    ids = {"taskId": "t1", "contextId": CONTEXT}
    if card == card_03():
        artifact: dict[str, Any] = {"artifactId": "a", "parts": [{"kind": "text", "text": "x", "metadata": {"n": 1}}]}
        valid: list[dict[str, Any]] = [
            task_03(CONTEXT, "working", artifacts=[artifact], history=[message_03(CONTEXT, "x")]),
            {"kind": "artifact-update", "artifact": artifact, "append": True, "lastChunk": False, **ids},
            {
                "kind": "status-update",
                "status": {"state": "completed", "message": message_03(CONTEXT, "x")},
                "final": True,
            }
            | ids,
        ]
    else:
        valid = [
            {"task": task_10(CONTEXT, "WORKING", artifacts=[{"artifactId": "a", "parts": [{"text": "x"}]}])},
            update_10("x", append=True, metadata={"n": 1}),
            status_10("COMPLETED"),
        ]
    dice = random.Random(f"events {card['version']}")
    outcomes = {"reply": 0, "error": 0}

    def answer(body: dict[str, Any]) -> Any:
        if not is_streaming(body):
            return refusal(body, METHOD_NOT_FOUND)
        events = [encode({"jsonrpc": "2.0", "id": "1", "result": event}) for event in valid]
        events[dice.randrange(len(events))] = mutated(in_envelope(dice.choice(valid)), dice)
        return Response(b"".join(b"data: " + event + b"\n\n" for event in events), media_type="text/event-stream")

    async with talking_to(ForeignAgent(answer, card), reply_timeout_s=0.5) as client:
        for _ in range(100):
            try:
                assert isinstance(await client.send("What now?", context_id=CONTEXT), str)
                outcomes["reply"] += 1
            except ParticipantError:
                outcomes["error"] += 1
    assert min(outcomes.values()) > 10, outcomes
