"""The overhead of A2A in one turn of a conversation: a message with a 67 kB JPEG and its reply, against a bare HTTP
POST.

    python benchmarks/a2a_turn.py [--turns 50] [--limit-ms 15]

Judge's client and participant's server run in two processes, as they do in an assessment. The bare POST carries the
same bytes to the same process and gets the same bytes back. Both are measured alternately in one conversation. Exit
code 1 when the median added time is over the limit.
"""

import argparse
import asyncio
import base64
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shared.a2a.client import ParticipantClient, fetch_card
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, listen, run_server
from shared.a2a.tasks import AgentMessage
from shared.errors import WabeError

JPEG_BYTES = 67_000
SNAPSHOT_CHARS = 20_000
WARM_UP = 5
REPLY = '<json>{"thought": "Next.", "tool": "browser_click", "params": {"target": "e12"}}</json>'


def serve(port: int) -> None:
    """The participant's process: a WABE participant, and beside it a plain HTTP route."""

    async def answer(_: AgentMessage) -> str:
        return REPLY

    async def bare(request: Request) -> Response:
        await request.body()
        return Response(REPLY, media_type="application/json")

    app = build_app(
        answer,
        name="benchmark",
        description="Answers at once.",
        version="1",
        card_url=address_of("127.0.0.1", port),
        skills=[Skill(id="answer", name="Answer", description="Answers.", tags=("benchmark",))],
        extra_routes=[Route("/bare", bare, methods=["POST"])],
    )
    run_server(app, "127.0.0.1", port, before_shutdown=app.state.stop)


async def measure(url: str, turns: int) -> tuple[list[float], list[float]]:
    """Seconds of each A2A turn and of each bare POST."""
    image = random.Random(0).randbytes(JPEG_BYTES)
    text = "Snapshot:\n" + "x" * SNAPSHOT_CHARS
    body = json.dumps({"text": text, "image": base64.b64encode(image).decode()}).encode()
    over_a2a, bare = [], []
    async with ParticipantClient(url) as client, httpx.AsyncClient(trust_env=False) as http:
        for turn in range(WARM_UP + turns):
            began = time.perf_counter()
            await client.send(text, image=image, context_id="benchmark")
            between = time.perf_counter()
            (await http.post(f"{url}bare", content=body)).raise_for_status()
            ended = time.perf_counter()
            if turn >= WARM_UP:
                over_a2a.append(between - began)
                bare.append(ended - between)
    return over_a2a, bare


async def wait_until_up(url: str) -> None:
    """Return when the participant's card can be read."""
    async with asyncio.timeout(30):
        while True:
            try:
                await fetch_card(url, 1.0)
                return
            except WabeError:
                await asyncio.sleep(0.05)


async def run(turns: int, limit_ms: float, port: int) -> int:
    """Measure, print, compare."""
    url = address_of("127.0.0.1", port)
    await wait_until_up(url)
    over_a2a, bare = await measure(url, turns)
    added = statistics.median(a - b for a, b in zip(over_a2a, bare, strict=True)) * 1000
    ours, plain = statistics.median(over_a2a) * 1000, statistics.median(bare) * 1000
    slow = statistics.quantiles(over_a2a, n=20)[-1] * 1000
    print(f"{turns} turns with a {JPEG_BYTES // 1000} kB JPEG and {SNAPSHOT_CHARS} characters of text")
    print(f"A2A turn    {ours:6.2f} ms median, {slow:6.2f} ms at 95 %")
    print(f"bare POST   {plain:6.2f} ms median")
    print(f"added       {added:6.2f} ms median; ratio {ours / plain:.1f}; limit {limit_ms:g} ms")
    return 0 if added <= limit_ms else 1


def main() -> int:
    """Parse the command line, run both processes."""
    parser = argparse.ArgumentParser(description="Latency that A2A adds to a turn.")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--limit-ms", type=float, default=15.0)
    parser.add_argument("--serve", type=int, metavar="PORT", help="be the participant (used by the benchmark itself)")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return 0
    with listen("127.0.0.1", 0) as sock:
        port = int(sock.getsockname()[1])
    command = [sys.executable, str(Path(__file__).resolve()), "--serve", str(port)]
    with subprocess.Popen(command, env=dict(os.environ)) as server:
        try:
            return asyncio.run(run(options.turns, options.limit_ms, port))
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
