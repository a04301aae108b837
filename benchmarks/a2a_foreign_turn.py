"""The overhead of A2A per turn: the judge's client and foreign agents, with a screenshot of 67 kB in every turn.

    python benchmarks/a2a_foreign_turn.py [--turns 200]

The agents only echo, each in its own process, on the library that its name says. A turn's time runs from the call of
the judge's client to the reply's text. The overhead is that minus the time of a plain HTTP request with as many bytes
to a server that does nothing, measured alternately. A conversation has 50 turns, as a long episode has: agents that
keep their history, such as google-adk's, carry all its screenshots. A report, not a test: no bound is checked.
"""

import argparse
import asyncio
import base64
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.a2a.agents import JPEG
from helpers.interop.programs import foreign_agent
from shared.a2a.client import ParticipantClient

SUBJECTS = (
    ("v03", "message", "a2a-sdk 0.3.26, message"),
    ("v03", "status", "a2a-sdk 0.3.26, task"),
    ("v03", "input", "a2a-sdk 0.3.26, input-required"),
    ("v1", "message", "a2a-sdk 1.x, message"),
    ("v1", "status", "a2a-sdk 1.x, task"),
    ("v1", "rest-message", "a2a-sdk 1.x, HTTP+JSON"),
    ("adk", "its own", "google-adk"),
)
CONVERSATION = 50
TEXT = "What now?\n" * 400


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


async def measure(kind: str, shape: str, turns: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each turn, and of the plain request made beside it. The first five of each are left out."""
    body = json.dumps({"text": TEXT, "raw": base64.b64encode(JPEG).decode()}).encode()
    agent_ms, bare_ms = [], []
    async with AsyncExitStack() as stack:
        url = stack.enter_context(foreign_agent(kind, shape))
        bare = stack.enter_context(foreign_agent("bare"))
        client = await stack.enter_async_context(ParticipantClient(url))
        http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
        for turn in range(turns + 5):
            context = f"episode-{turn // CONVERSATION}"
            agent_ms.append(await timed(lambda context=context: client.send(TEXT, image=JPEG, context_id=context)))
            bare_ms.append(await timed(lambda: http.post(bare, content=body)))
    return agent_ms[5:], bare_ms[5:]


async def main(turns: int) -> None:
    print(f"{'participant':32}{'median ms':>10}{'p95 ms':>8}{'plain HTTP ms':>15}{'added ms':>10}")
    for kind, shape, name in SUBJECTS:
        agent, bare = await measure(kind, shape, turns)
        median, plain = statistics.median(agent), statistics.median(bare)
        p95 = statistics.quantiles(agent, n=20)[-1]
        print(f"{name:32}{median:10.1f}{p95:8.1f}{plain:15.1f}{median - plain:10.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    asyncio.run(main(parser.parse_args().turns))
