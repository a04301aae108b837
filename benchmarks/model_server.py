"""A stand-in for a judge model: speaks chat completions, answers after a fixed time, counts requests.

Runs in its own process (`python model_server.py LATENCY_S [REQUESTS_PER_MINUTE]`), so that its work does not slow down
the measured program. Prints its port. Requests over the limit, in any 60 s, are refused with 429 and counted.
"""

import asyncio
import collections
import contextlib
import hashlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

WINDOW_S = 60.0


class Counts:
    """The received requests: arrivals by content, the busiest minute."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.window: collections.deque[float] = collections.deque()
        self.busiest_minute = 0
        self.refused = 0
        self.first = self.last = 0.0
        self.arrivals: collections.Counter[str] = collections.Counter()

    def arrive(self, digest: str) -> bool:
        now = time.monotonic()
        self.first = self.first or now
        self.last = now
        self.window.append(now)
        while self.window[0] <= now - WINDOW_S:
            self.window.popleft()
        self.busiest_minute = max(self.busiest_minute, len(self.window))
        self.arrivals[digest] += 1
        if self.limit is not None and len(self.window) > self.limit:
            self.refused += 1
            return False
        return True

    def stats(self) -> dict[str, object]:
        return {
            "requests": self.arrivals.total(),
            "distinct": len(self.arrivals),
            "busiest_minute": self.busiest_minute,
            "refused": self.refused,
            "span_s": self.last - self.first,
        }


def reply_to(text: str) -> str:
    if "List the key points" in text:
        return "1. The item is found\n2. It is put into the cart"
    if "How much does it matter" in text:
        return "The page shows a part of the task.\n\nScore: 4"
    return "Both key points are met.\n\nStatus: success"


def app(latency_s: float, limit: int | None) -> Starlette:
    counts = Counts(limit)

    async def complete(request: Request) -> JSONResponse:
        raw = await request.body()
        digest = hashlib.sha256(raw).hexdigest()
        if not counts.arrive(digest):
            return JSONResponse({"error": {"message": "too fast"}}, 429, {"retry-after": "1"})
        await asyncio.sleep(latency_s)
        text = json.loads(raw)["messages"][1]["content"][0]["text"]
        message = {"role": "assistant", "content": reply_to(text)}
        usage = {"prompt_tokens": 1500, "completion_tokens": 40, "total_tokens": 1540}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        return JSONResponse(
            {"id": "x", "object": "chat.completion", "model": "bench", "choices": choices, "usage": usage}
        )

    async def stats(_: Request) -> JSONResponse:
        return JSONResponse(counts.stats())

    return Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"]), Route("/stats", stats)])


@contextlib.contextmanager
def model_server(latency_s: float, limit: int | None = None) -> Iterator[str]:
    """The server as a process; yields its address."""
    arguments = [sys.executable, __file__, str(latency_s)]
    if limit:
        arguments.append(str(limit))
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        for _ in range(200):
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"{url}/stats")
                break
            time.sleep(0.02)
        yield url
    finally:
        process.kill()
        process.wait()


def read_stats(url: str) -> dict[str, object]:
    stats: dict[str, object] = httpx.get(f"{url}/stats").json()
    return stats


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    served = app(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
    uvicorn.Server(uvicorn.Config(served, log_level="critical", lifespan="off", timeout_keep_alive=60)).run(
        sockets=[listener]
    )
