import asyncio
import base64
import contextlib
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse

from helpers.a2a.agents import (
    CONTEXT,
    JPEG,
    Answer,
    ForeignAgent,
    card_03,
    card_10,
    message_03,
    message_10,
    our_agent,
    reply_of,
    sent_message,
    served,
    talking_to,
    task_03,
    task_10,
    tcp_server,
)
from helpers.ports import free_port
from shared.a2a.client import AgentSummary, ParticipantClient, fetch_card
from shared.a2a.tasks import AgentMessage
from shared.claims import ClaimedSpan, ClaimedTrace, ClaimedUsage
from shared.errors import ParticipantError, ParticipantTimeout, ParticipantUnreachable

# --- replies of every shape -------------------------------------------------------------------------------------------


async def test_our_own_agent_is_understood() -> None:
    async def handler(turn: AgentMessage) -> str:
        [image] = turn.files
        return f"{turn.text} {turn.context_id} {image.media_type} {image.data == JPEG}"

    async with served(our_agent(handler)) as url, ParticipantClient(url) as client:
        reply = await client.send("What now?", image=JPEG, context_id=CONTEXT)
    assert reply == "What now? episode-1 image/jpeg True"


@pytest.mark.parametrize(
    "result",
    [
        lambda body: message_10(body, "an answer"),
        lambda body: {"task": task_10(CONTEXT, "COMPLETED", text="an answer")},
        lambda body: {"task": task_10(CONTEXT, "INPUT_REQUIRED", text="an answer")},
        lambda body: {
            "task": task_10(CONTEXT, "COMPLETED", artifacts=[{"artifactId": "a", "parts": [{"text": "an answer"}]}])
        },
        lambda body: {
            "task": task_10(
                CONTEXT,
                "COMPLETED",
                text="an answer",
                artifacts=[{"artifactId": "a", "parts": [{"text": "an answer"}]}],
            )
        },
        lambda body: message_10(body, "", parts=[{"text": "an answer"}, {"data": {"more": 1}}]),
        lambda body: message_10(body, "an answer", somethingNew={"from": "1.1"}),
    ],
    ids=["message", "status", "input required", "artifact", "said twice", "with data", "unknown field"],
)
async def test_a_reply_is_found_in_every_shape_of_protocol_1_0(result: Answer) -> None:
    assert await reply_of(result) == "an answer"


@pytest.mark.parametrize(
    "result",
    [
        lambda body: message_03(CONTEXT, "an answer"),
        lambda body: task_03(CONTEXT, "completed", text="an answer"),
        lambda body: task_03(CONTEXT, "input-required", text="an answer"),
        lambda body: task_03(
            CONTEXT, "completed", artifacts=[{"artifactId": "a", "parts": [{"kind": "text", "text": "an answer"}]}]
        ),
        lambda body: task_03(CONTEXT, "completed", history=[message_03(CONTEXT, "an answer")]),
        lambda body: {name: value for name, value in message_03(CONTEXT, "an answer").items() if name != "kind"},
    ],
    ids=["message", "status", "input required", "artifact", "history", "message without kind"],
)
async def test_a_reply_is_found_in_every_shape_of_protocol_0_3(result: Answer) -> None:
    assert await reply_of(result, card_03()) == "an answer"


async def test_what_replies_say_of_the_agents_model_is_added_up_by_conversation() -> None:
    usage = iter(
        [
            {"usage": {"input_tokens": 800, "output_tokens": 60, "cost_usd": 0.002}},
            {"usage": {"input_tokens": -1}},
            {"usage": "lots"},
            {"usage": {"input_tokens": 200, "output_tokens": 40, "cost_usd": 0.001, "more": [1]}},
        ]
    )

    def answer(body: dict[str, Any]) -> Any:
        return message_10(body, "an answer", metadata=next(usage))

    async with talking_to(ForeignAgent(answer)) as client:
        for _ in range(4):
            await client.send("What now?", image=None, context_id=CONTEXT)
        assert client.claimed(CONTEXT) == ClaimedUsage(replies=2, input=1000, output=100, cost_usd=0.003)
        assert client.claimed("another") is None


async def test_what_a_reply_says_of_the_agents_work_is_that_of_the_last_reply() -> None:
    text = iter([{"spans": [{"name": "plan", "start": 1, "end": 2}]}, {}])

    async with talking_to(ForeignAgent(lambda body: message_10(body, "an answer", metadata=next(text)))) as client:
        await client.send("What now?", image=None, context_id=CONTEXT)
        assert client.trace(CONTEXT) == ClaimedTrace(spans=(ClaimedSpan(name="plan", start=1, end=2),))
        await client.send("What now?", image=None, context_id=CONTEXT)
        assert client.trace(CONTEXT) is None


async def test_a_task_says_it_in_the_message_of_its_status() -> None:
    task = task_10(CONTEXT, "COMPLETED", text="an answer")
    task["status"]["message"]["metadata"] = {"usage": {"output_tokens": 5}}
    async with talking_to(ForeignAgent(lambda _: {"task": task})) as client:
        await client.send("What now?", image=None, context_id=CONTEXT)
        assert client.claimed(CONTEXT) == ClaimedUsage(replies=1, output=5)


async def test_a_reply_that_is_only_in_the_history_is_fetched() -> None:
    def answer(body: dict[str, Any]) -> Any:
        task = task_10(CONTEXT, "COMPLETED")
        if body["method"] == "SendMessage":
            return {"task": task}
        message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "an answer"}]}
        return {**task, "history": [message][: body["params"]["historyLength"]]}

    assert await reply_of(answer) == "an answer"


async def test_the_users_message_in_the_history_is_not_a_reply() -> None:
    def answer(body: dict[str, Any]) -> Any:
        return task_03(CONTEXT, "completed", history=[message_03(CONTEXT, "What now?", role="user")])

    with pytest.raises(ParticipantError, match="no text part"):
        await reply_of(answer, card_03())


async def test_an_artifact_and_a_status_that_differ_are_both_kept() -> None:
    artifacts = [{"artifactId": "a", "parts": [{"text": "one"}]}]
    reply = await reply_of(lambda body: {"task": task_10(CONTEXT, "COMPLETED", text="two", artifacts=artifacts)})
    assert reply == "one\ntwo"


async def test_a_task_that_waits_for_input_is_continued_and_its_old_artifacts_are_not_repeated() -> None:
    def answer(body: dict[str, Any]) -> Any:
        artifacts = [{"artifactId": str(n), "parts": [{"text": f"answer {n}"}]} for n in range(len(agent.requests))]
        return {"task": task_10(CONTEXT, "INPUT_REQUIRED", artifacts=artifacts)}

    agent = ForeignAgent(answer)
    async with talking_to(agent) as client:
        replies = [await client.send("What now?", context_id=CONTEXT) for _ in range(3)]
    assert replies == ["answer 0", "answer 1", "answer 2"]
    assert [sent_message(body).get("taskId") for body in agent.requests] == [None, "t1", "t1"]


async def test_a_task_that_is_done_is_not_continued() -> None:
    agent = ForeignAgent(lambda body: {"task": task_10(CONTEXT, "COMPLETED", text="an answer")})
    async with talking_to(agent) as client:
        for _ in range(2):
            await client.send("What now?", context_id=CONTEXT)
    assert [sent_message(body).get("taskId") for body in agent.requests] == [None, None]


async def test_a_task_in_progress_is_polled_until_it_is_done() -> None:
    states = iter(["SUBMITTED", "WORKING", "WORKING", "COMPLETED"])

    def answer(body: dict[str, Any]) -> Any:
        task = task_10(CONTEXT, next(states), text="an answer")
        return {"task": task} if body["method"] == "SendMessage" else task

    assert await reply_of(answer) == "an answer"


async def test_an_empty_text_is_a_reply() -> None:
    assert await reply_of(lambda body: message_10(body, "")) == ""


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_1_0_request_has_text_a_raw_image_the_context_and_asks_for_no_history() -> None:
    agent = ForeignAgent(lambda body: message_10(body, "an answer"))
    async with talking_to(agent) as client:
        await client.send("What now?", image=JPEG, context_id=CONTEXT)
    [body] = agent.requests
    assert body["method"] == "SendMessage"
    assert body["params"]["configuration"] == {"historyLength": 0}
    assert sent_message(body)["contextId"] == CONTEXT
    assert sent_message(body)["parts"] == [
        {"text": "What now?"},
        {"raw": base64.b64encode(JPEG).decode(), "mediaType": "image/jpeg"},
    ]


async def test_a_0_3_request_has_a_file_part_and_asks_for_one_message_of_history() -> None:
    agent = ForeignAgent(lambda body: message_03(CONTEXT, "an answer"), card_03())
    async with talking_to(agent) as client:
        await client.send("What now?", image=JPEG, context_id=CONTEXT)
    [body] = agent.requests
    assert body["method"] == "message/send"
    assert body["params"]["configuration"]["historyLength"] == 1
    assert sent_message(body)["parts"] == [
        {"kind": "text", "text": "What now?"},
        {"kind": "file", "file": {"bytes": base64.b64encode(JPEG).decode(), "mimeType": "image/jpeg"}},
    ]


async def test_lone_surrogates_are_replaced_before_sending() -> None:
    agent = ForeignAgent(lambda body: message_10(body, "an answer"))
    async with talking_to(agent) as client:
        await client.send("half a \ud800 pair", context_id=CONTEXT)
    assert sent_message(agent.requests[0])["parts"] == [{"text": "half a \ufffd pair"}]


async def test_fifty_turns_use_one_connection() -> None:
    ports: set[int] = set()

    def answer(body: dict[str, Any]) -> Any:
        return message_10(body, "an answer")

    agent = ForeignAgent(answer)

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            ports.add(scope["client"][1])
        await agent.app(scope, receive, send)

    async with served(counting) as url, ParticipantClient(url) as client:
        for _ in range(50):
            await client.send("What now?", image=JPEG, context_id=CONTEXT)
    assert len(agent.requests) == 50
    assert len(ports) == 1


async def test_proxy_variables_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert await reply_of(lambda body: message_10(body, "an answer")) == "an answer"


# --- the card ---------------------------------------------------------------------------------------------------------


async def test_the_dialled_host_is_called_regardless_of_the_host_in_the_card() -> None:
    agent = ForeignAgent(lambda body: message_10(body, "an answer"), card_10("http://10.255.255.1:7/rpc"), path="/rpc")
    async with talking_to(agent) as client:
        assert await client.send("What now?", context_id=CONTEXT) == "an answer"


async def test_an_agent_behind_a_gateway_path_is_called_at_that_path() -> None:
    agent = ForeignAgent(
        lambda body: message_10(body, "an answer"),
        card_10("http://localhost:9019/"),
        path="/agents/one",
        card_path="/agents/one/.well-known/agent-card.json",
    )
    async with served(agent.app) as url, ParticipantClient(f"{url}/agents/one") as client:
        assert await client.send("What now?", context_id=CONTEXT) == "an answer"


async def test_a_card_at_the_old_address_is_found() -> None:
    agent = ForeignAgent(lambda body: {}, card_03(), card_path="/.well-known/agent.json")
    async with served(agent.app) as url:
        assert await fetch_card(url, 2.0) == AgentSummary(name="old agent", url=f"{url}/", protocol="0.3", version="1")


async def test_protocol_1_0_is_chosen_where_both_are_offered() -> None:
    async with served(our_agent(lambda turn: asyncio.sleep(0, "hello"))) as url:
        assert (await fetch_card(url, 2.0)).protocol == "1.0"


async def test_an_agent_that_speaks_only_http_and_json_is_called() -> None:
    inner = our_agent(lambda turn: asyncio.sleep(0, f"hello {turn.context_id}"))
    card = ForeignAgent(lambda body: {}, card_10(binding="HTTP+JSON"))

    async def only_rest(scope: Any, receive: Any, send: Any) -> None:
        app = card.app if scope.get("path") == "/.well-known/agent-card.json" else inner
        await app(scope, receive, send)

    async with served(only_rest) as url, ParticipantClient(url) as client:
        assert await client.send("What now?", context_id=CONTEXT) == "hello episode-1"


@pytest.mark.parametrize(
    ("card", "complaint"),
    [
        (PlainTextResponse("{"), "not A2A"),
        (JSONResponse(["a", "list"]), "not A2A.*must be a JSON object"),
        (JSONResponse(card_10(binding="GRPC")), "neither JSON-RPC nor HTTP"),
        (Response(b"\xff\xfe{}", media_type="application/json"), "not A2A"),
        (Response("[" * 100_000, media_type="application/json"), "not A2A"),
        (JSONResponse({**card_10(), "description": "x" * 2_000_000}), "more than 1000000 bytes"),
        (Response("<html>", media_type="text/html"), "text/html"),
    ],
    ids=["half", "list", "only gRPC", "no text", "deep", "huge", "page"],
)
async def test_a_card_that_cannot_be_used_blames_the_agent(card: Response, complaint: str) -> None:
    async with served(ForeignAgent(lambda body: {}, card).app) as url:
        with pytest.raises(ParticipantError, match=complaint):
            await fetch_card(url, 2.0)


async def test_reading_a_card_times_out() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with tcp_server(silent) as url:
        with pytest.raises(ParticipantUnreachable, match=r"no agent card from \S+ within 0\.2 s"):
            await fetch_card(url, 0.2)


@pytest.mark.parametrize("url", ["http://[", "ftp://127.0.0.1/", "", "127.0.0.1:9"])
async def test_a_malformed_address_blames_the_agent(url: str) -> None:
    with pytest.raises(ParticipantError):
        await fetch_card(url, 1.0)


async def test_an_agent_on_a_closed_port_is_unreachable() -> None:
    with pytest.raises(ParticipantUnreachable, match="connection"):
        async with ParticipantClient(f"http://127.0.0.1:{free_port()}"):
            pass


# --- agents that misbehave --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["FAILED", "REJECTED", "CANCELED", "AUTH_REQUIRED", "UNSPECIFIED"])
async def test_a_task_that_ends_without_a_reply_is_an_error_with_its_state_and_message(state: str) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return {"task": task_10(CONTEXT, state, text="no key\nfor the model " + "x" * 5000)}

    with pytest.raises(ParticipantError) as caught:
        await reply_of(answer)
    assert state.lower().replace("_", "-") in caught.value.message
    assert "no key\\nfor the model" in caught.value.message
    assert len(caught.value.message) < 700


@pytest.mark.parametrize(
    "answer",
    [
        lambda body: message_10(body, "an answer", contextId="episode-2"),
        lambda body: {"task": task_10("episode-2", "COMPLETED", text="an answer")},
    ],
    ids=["message", "task"],
)
async def test_a_reply_from_another_context_is_refused(answer: Answer) -> None:
    with pytest.raises(ParticipantError, match="another context"):
        await reply_of(answer)


@pytest.mark.parametrize("parts", [[], [{"data": {"tool": "finish"}}], [{"raw": "AAAA"}], [{"url": "http://x/"}]])
async def test_a_reply_without_a_text_part_is_an_error(parts: list[Any]) -> None:
    with pytest.raises(ParticipantError, match="no text part"):
        await reply_of(lambda body: message_10(body, "", parts=parts))


@pytest.mark.parametrize(
    ("response", "complaint"),
    [
        (Response("{", media_type="application/json"), "not A2A"),
        (Response(b"\x00\xff", media_type="application/json"), "not A2A"),
        (Response("[" * 100_000, media_type="application/json"), "not A2A"),
        (JSONResponse([]), "answered with an error"),
        (JSONResponse({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "boom"}}), "boom"),
        (JSONResponse({"jsonrpc": "2.0", "id": 1, "result": None}), "not A2A"),
        (JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {"task": {"status": "done"}}}), "unspecified"),
        (Response("<html>sorry</html>", media_type="text/html"), "text/html"),
        (PlainTextResponse("no", status_code=413), "HTTP 413: it refuses messages of this size"),
        (RedirectResponse("http://127.0.0.1:1/elsewhere"), "redirects"),
        (Response(gzip.compress(b"0" * 10_000_000), headers={"Content-Encoding": "gzip"}), "content encoding"),
    ],
    ids=[
        "half", "no text", "deep", "list", "error", "null", "wrong task", "page", "413", "redirect", "gzip bomb",
    ],
)  # fmt: skip
@pytest.mark.parametrize("card", [card_10(), card_03()], ids=["1.0", "0.3"])
async def test_an_answer_without_a_reply_is_the_participants_error(
    response: Response, complaint: str, card: Any
) -> None:
    with pytest.raises(ParticipantError) as caught:
        await reply_of(lambda body: response, card)
    if card == card_10():
        assert complaint in caught.value.message


async def test_a_redirect_is_not_followed() -> None:
    reached = ForeignAgent(lambda body: message_10(body, "an answer"))
    async with served(reached.app) as elsewhere:
        with pytest.raises(ParticipantError, match="redirects"):
            await reply_of(lambda body: RedirectResponse(f"{elsewhere}/", status_code=307))
    assert reached.requests == []


async def test_a_reply_of_a_hundred_megabytes_is_cut_off_soon_after_the_limit() -> None:
    size = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal size
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
        if (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET"):
            writer.write(head + json.dumps(card_10()).encode())
            return
        writer.write(head)
        for _ in range(1600):
            writer.write(b" " * 65_536)
            await writer.drain()
            size += 65_536

    async with tcp_server(flood) as url, ParticipantClient(url) as client:
        with pytest.raises(ParticipantError, match="more than 5000000 bytes"):
            await client.send("What now?", context_id=CONTEXT)
    assert size < 20_000_000


async def test_a_reply_with_too_large_a_content_length_is_not_read() -> None:
    async def boast(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
        card = json.dumps(card_10())
        is_card = request.startswith(b"GET")
        writer.write(f"{head}{len(card) if is_card else 10**15}\r\nConnection: close\r\n\r\n".encode())
        writer.write(card.encode() if is_card else b"")
        await writer.drain()
        await reader.read()

    async with tcp_server(boast) as url, ParticipantClient(url) as client:
        with pytest.raises(ParticipantError, match="more than 5000000 bytes"):
            await client.send("What now?", context_id=CONTEXT)


async def test_a_reply_just_under_the_limit_is_accepted() -> None:
    assert len(await reply_of(lambda body: message_10(body, "x" * 999_000))) == 999_000


async def test_no_reply_in_time_is_a_timeout() -> None:
    over = asyncio.Event()

    async def answer(_: dict[str, Any]) -> Any:
        await over.wait()

    async with talking_to(ForeignAgent(answer), reply_timeout_s=0.2) as client:
        with pytest.raises(ParticipantTimeout, match=r"within 0\.2 s"):
            await client.send("What now?", context_id=CONTEXT)
        over.set()


async def test_a_reply_that_trickles_is_a_timeout() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    with pytest.raises(ParticipantTimeout):
        await reply_of(lambda body: StreamingResponse(trickle(), media_type="application/json"), reply_timeout_s=0.2)


async def test_a_task_that_is_never_done_is_a_timeout() -> None:
    def answer(body: dict[str, Any]) -> Any:
        task = task_10(CONTEXT, "WORKING")
        return {"task": task} if body["method"] == "SendMessage" else task

    with pytest.raises(ParticipantTimeout):
        await reply_of(answer, reply_timeout_s=0.3)


async def test_another_task_than_the_requested_one_is_an_error() -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body["method"] == "SendMessage":
            return {"task": task_10(CONTEXT, "WORKING")}
        return {**task_10(CONTEXT, "COMPLETED", text="an answer"), "id": "t2"}

    with pytest.raises(ParticipantError, match="another task"):
        await reply_of(answer)


async def test_a_connection_cut_in_the_middle_of_a_reply_is_unreachable() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        card = json.dumps(card_10())
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
        writer.write(f"{head}{len(card)}\r\n\r\n{card if request.startswith(b'GET') else card[:40]}".encode())
        await writer.drain()

    async with tcp_server(cut) as url, ParticipantClient(url) as client:
        with pytest.raises(ParticipantUnreachable, match="connection"):
            await client.send("What now?", context_id=CONTEXT)


async def test_after_an_error_the_next_turn_works() -> None:
    answers = iter([PlainTextResponse("down", status_code=500), None])

    def answer(body: dict[str, Any]) -> Any:
        return next(answers) or message_10(body, "an answer")

    async with talking_to(ForeignAgent(answer)) as client:
        with pytest.raises(ParticipantError, match="HTTP 500"):
            await client.send("What now?", context_id=CONTEXT)
        assert await client.send("What now?", context_id=CONTEXT) == "an answer"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from("kind message task status state parts text artifacts history contextId id".split())
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@pytest.mark.slow
@pytest.mark.parametrize("card", [card_10(), card_03()], ids=["1.0", "0.3"])
def test_any_json_answer_is_a_reply_or_the_participants_error(card: Any) -> None:
    results: list[Any] = []
    agent = ForeignAgent(lambda body: results[-1], card)
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        client = runner.run(stack.enter_async_context(talking_to(agent, reply_timeout_s=0.5)))

        @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
        @given(result=JSON_VALUES)
        def check(result: Any) -> None:
            results.append(result)
            with contextlib.suppress(ParticipantError):
                assert isinstance(runner.run(client.send("What now?", context_id=CONTEXT)), str)

        check()
        runner.run(stack.aclose())
    assert len(results) > 100


# --- the end of an attempt --------------------------------------------------------------------------------------------


async def test_an_agent_that_does_not_declare_it_is_sent_nothing_at_the_end() -> None:
    agent = ForeignAgent(lambda body: message_10(body, "an answer"))
    async with talking_to(agent) as client:
        await client.send("What now?", context_id=CONTEXT)
        await client.end(CONTEXT)
    assert len(agent.requests) == 1
