"""Local servers that speak the providers' APIs (Anthropic's, Gemini's and OpenAI's), for tests over the wire."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


@dataclass(frozen=True)
class Answer:
    """One HTTP answer; `body` is sent as JSON unless it is bytes."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True)
class ModelCall:
    """One HTTP request as it came in, with its time on the monotonic clock."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float


Plan = Callable[[ModelCall, int], Answer]


def gemini_answer(text: str | None, *, finish: str = "STOP", **more: Any) -> Answer:
    parts = [] if text is None else [{"text": text}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    usage = {
        "promptTokenCount": 100,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 5,
        "cachedContentTokenCount": 40,
    }
    body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served-version", **more}
    return Answer(body)


def gemini_error(status: int, reason: str, message: str, **headers: str) -> Answer:
    return Answer({"error": {"code": status, "message": message, "status": reason}}, status, headers)


def openai_answer(text: str | None, *, finish: str = "stop", refusal: str | None = None) -> Answer:
    message = {"role": "assistant", "content": text, "refusal": refusal}
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 25,
        "total_tokens": 125,
        "prompt_tokens_details": {"cached_tokens": 40},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    choice = {"index": 0, "finish_reason": finish, "message": message}
    return Answer(
        {"id": "c1", "object": "chat.completion", "created": 1, "model": "served", "choices": [choice], "usage": usage}
    )


def gemini_calls(*calls: tuple[str, dict[str, Any]], text: str | None = None, finish: str = "STOP") -> Answer:
    """An answer with function calls; a signature belongs to each."""
    parts: list[dict[str, Any]] = [] if text is None else [{"text": text}]
    parts += [
        {"functionCall": {"name": name, "args": args, "id": f"f{number}"}, "thoughtSignature": "c2ln"}
        for number, (name, args) in enumerate(calls)
    ]
    return Answer({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}]})


def openai_response(*items: dict[str, Any], response_id: str = "r1") -> Answer:
    """An answer of the Responses API."""
    body = {"id": response_id, "object": "response", "status": "completed", "error": None, "output": list(items)}
    return Answer(body)


def computer_call(*actions: dict[str, Any], call_id: str = "c1", checks: tuple[str, ...] = ()) -> dict[str, Any]:
    """An item of such an answer: one action as the older tool gives it, several as the newer one does."""
    known: dict[str, Any] = {"action": actions[0]} if len(actions) == 1 else {"actions": list(actions)}
    safety = [{"id": f"s{number}", "code": "malicious_instructions", "message": m} for number, m in enumerate(checks)]
    call = {"type": "computer_call", "id": f"i-{call_id}", "call_id": call_id, "status": "completed"}
    return {**call, **known, "pending_safety_checks": safety}


def openai_message(text: str) -> dict[str, Any]:
    """An item of such an answer: text."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def openai_error(
    status: int, message: str, *, code: str | None = None, param: str | None = None, **headers: str
) -> Answer:
    return Answer({"error": {"message": message, "type": "e", "param": param, "code": code}}, status, headers)


def anthropic_answer(*blocks: str | dict[str, Any], stop: str | None = None) -> Answer:
    """An answer of the Messages API: texts, tool calls and other blocks."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    calls = any(block["type"] == "tool_use" for block in content)
    usage = {"input_tokens": 50, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10, "output_tokens": 25}
    reason = stop or ("tool_use" if calls else "end_turn")
    return Answer(
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "served",
            "content": content,
            "stop_reason": reason,
            "usage": usage,
        }
    )


def anthropic_call(name: str, call_id: str = "t1", **tool_input: Any) -> dict[str, Any]:
    """A block of such an answer: an action of the computer-use tool."""
    return {"type": "tool_use", "id": call_id, "toolset_name": "computer", "name": name, "input": tool_input}


def anthropic_thought(text: str) -> dict[str, Any]:
    """A block of such an answer: what the model thought, signed."""
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def anthropic_error(status: int, kind: str, message: str, **headers: str) -> Answer:
    return Answer({"type": "error", "error": {"type": kind, "message": message}}, status, headers)


class ModelServer:
    """Answers each request by `plan(request, number)` while a `with` block runs; numbers count from 0."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.received: list[ModelCall] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["POST"])])
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", timeout_keep_alive=60))
        # In a thread of its own, so that neither side's work delays the other's clock.
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

    async def _answer(self, request: Request) -> Response:
        body = json.loads(await request.body() or b"{}")
        received = ModelCall(request.url.path, dict(request.headers), body, time.monotonic())
        number = len(self.received)
        self.received.append(received)
        answer = self.plan(received, number)
        if answer.delay_s:
            await asyncio.sleep(answer.delay_s)
        raw = isinstance(answer.body, bytes)
        content = answer.body if raw else json.dumps(answer.body).encode()
        headers = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in answer.headers.items()}}
        return Response(content, answer.status, headers)


@contextlib.asynccontextmanager
async def serving(*answers: Answer, plan: Plan | None = None) -> AsyncIterator[ModelServer]:
    """A server that gives `answers` in turn, the last one again and again, or follows `plan`."""
    server = ModelServer(plan or (lambda _, number: answers[min(number, len(answers) - 1)])).__enter__()
    try:
        yield server
    finally:
        await asyncio.to_thread(server.stop)
