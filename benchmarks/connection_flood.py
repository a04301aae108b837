"""Plays four tasks in a judge with few descriptors under 400 idle connections, and checks that no task is lost and the
log stays small.

`python benchmarks/connection_flood.py [--connections 400] [--descriptors 256] [--only half-sent-posts]`: for each kind
of flood, a judge in its own process, real browsers, a website and a participant, all on 127.0.0.1. A flooding
connection that the judge closes is opened again after some seconds, until the tasks are done. Meanwhile a new client
asks for the agent card every half second, in up to three tries. Prints a row for each kind. Exit code 1 if a task or a
client was lost, or the log grew to 1 MB.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.ports import free_ports
from helpers.runner.commands import BIN, listening
from judge.runner.follow import RunOutcome, request_assessment

TASKS = 4
STEPS = 12
MAX_S = 240.0
MAX_LOG_BYTES = 1_000_000
RECONNECT_S = 5.0
CLIENT_EVERY_S = 0.5
CLIENT_TIMEOUT_S = 10.0
HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"
CARD = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
# What a connection sends at first, and then every second.
FLOODS = {
    "half-sent posts": (HEAD + b"\r\n{", b""),
    "half-sent heads": (HEAD, b""),
    "silent": (b"", b""),
    "slow bodies": (HEAD + b"\r\n{", b" "),
    "slow heads": (HEAD, b"X-Slow: 1\r\n"),
    "idle keep-alive": (CARD, b""),
    "answers never read": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20, b""),
}
PLAYER = """
from participants.base import Action, serve
async def decide(seen):
    if seen.step >= {steps}:
        return Action(tool='finish', params={{'answer': 'seen'}})
    return Action(tool='browser_navigate', params={{'url': seen.website}})
serve(decide, name='flood', port={port})
"""


@dataclass
class FloodCounts:
    """The observations during one flood."""

    opened: int = 0
    served: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    most_descriptors: int = 0
    lost: list[str] = field(default_factory=list)


@contextmanager
def process(log: Path, *command: str, descriptors: int | None = None, **environ: str) -> Iterator[int]:
    """A process that writes to `log`; ended with the body. Gives its id."""

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    known = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), **environ}
    with log.open("wb") as stream:
        running = subprocess.Popen(
            command, env=known, stdout=stream, stderr=stream, start_new_session=True, preexec_fn=limit
        )
    try:
        yield running.pid
    finally:
        running.terminate()
        running.wait(60)


@contextmanager
def flood(port: int, kind: str, connections: int) -> Iterator[Any]:
    """A process of its own that floods `port` while the body runs. Gives the count of connections opened so far."""
    opened = multiprocessing.Value("i", 0)
    flooding = multiprocessing.Process(target=run_flood, args=(port, kind, connections, opened), daemon=True)
    flooding.start()
    try:
        yield opened
    finally:
        flooding.terminate()
        flooding.join()


def run_flood(port: int, kind: str, connections: int, opened: Any) -> None:
    async def run() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_S):
                await asyncio.gather(*(hold(port, *FLOODS[kind], opened) for _ in range(connections)))

    asyncio.run(run())


async def hold(port: int, first: bytes, then: bytes, opened: Any) -> None:
    """One connection of the flood, opened again when the judge closes it."""
    while True:
        with contextlib.suppress(OSError):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
            opened.value += 1
            try:
                writer.write(first)
                while not reader.at_eof() and not writer.is_closing():
                    await asyncio.sleep(1)
                    writer.write(then)
            finally:
                writer.close()
        await asyncio.sleep(RECONNECT_S)


async def visit(port: int, counts: FloodCounts) -> None:
    """New clients, one after another, each of which asks for the card in up to three tries."""
    while True:
        began = time.monotonic()
        for last in (False, False, True):
            try:
                async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_TIMEOUT_S) as client:
                    answer = await client.get(f"http://127.0.0.1:{port}/.well-known/agent-card.json")
                    answer.raise_for_status()
                counts.served += 1
                break
            except httpx.HTTPError as error:
                counts.refused += 1
                counts.lost += [repr(error)] if last else []
        counts.slowest_s = max(counts.slowest_s, time.monotonic() - began)
        await asyncio.sleep(CLIENT_EVERY_S)


async def count_descriptors(pid: int, counts: FloodCounts) -> None:
    while True:
        counts.most_descriptors = max(counts.most_descriptors, len(list(Path(f"/proc/{pid}/fd").iterdir())))
        await asyncio.sleep(0.05)


def request(participant: int, site: int) -> str:
    task = {"website": f"http://127.0.0.1:{site}/", "task": "Look around.", "level": "easy"}
    tasks = [{**task, "task_id": f"t{number}"} for number in range(TASKS)]
    config = {"judge_model": "offline", "max_parallel": TASKS, "max_steps": STEPS + 1, "max_task_retries": 0}
    participants = {"white_agent": f"http://127.0.0.1:{participant}/"}
    return json.dumps({"participants": participants, "config": {**config, "tasks": tasks}})


async def assess(port: int, pid: int, text: str) -> tuple[RunOutcome, FloodCounts]:
    """The assessment `text` to its end, and what was observed meanwhile."""
    active = FloodCounts()
    watching = [asyncio.create_task(count_descriptors(pid, active)), asyncio.create_task(visit(port, active))]
    try:
        async with asyncio.timeout(MAX_S):
            outcome = await request_assessment(f"http://127.0.0.1:{port}/", text, lambda _: None)
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    return outcome, active


def measure(kind: str, connections: int, descriptors: int) -> list[str]:
    """One row; returns what went wrong."""
    site, participant, judge = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="fl") as name:
        folder = Path(name)
        (folder / "t").mkdir()
        log = folder / "judge.log"
        player = PLAYER.format(steps=STEPS, port=participant)
        serve = (str(BIN / "wabe"), "serve", "--port", str(judge), "--output-dir", str(folder / "out"))
        demo = str(ROOT / "scenarios" / "demo" / "site.py")
        with (
            process(folder / "site.log", sys.executable, demo, "--port", str(site)),
            process(folder / "player.log", sys.executable, "-c", player),
            process(log, *serve, descriptors=descriptors, TMPDIR=str(folder / "t"), HOME=name) as pid,
        ):
            until_listening(site, participant, judge)
            began = time.monotonic()
            with flood(judge, kind, connections) as opened:
                outcome, seen = asyncio.run(assess(judge, pid, request(participant, site)))
                seen.opened = opened.value
            took = time.monotonic() - began
        return report(kind, outcome, seen, log.stat().st_size, took)


def report(kind: str, outcome: RunOutcome, counts: FloodCounts, log_bytes: int, took: float) -> list[str]:
    tasks = outcome.results[0]["detail"]["tasks"] if outcome.results else []
    lost = TASKS - sum(task["stop_reason"] == "finished" for task in tasks)
    print(
        f"{kind:20}  {lost:10}  {log_bytes / 1000:6.1f}  {counts.most_descriptors:11}  {counts.opened:6}"
        f"  {counts.served:7}  {counts.refused:7}  {counts.slowest_s:9.2f}  {took:5.1f}",
        flush=True,
    )
    problems = [f"{lost} tasks lost"] if lost else []
    problems += [f"{log_bytes} bytes of log"] if log_bytes >= MAX_LOG_BYTES else []
    problems += [f"{len(counts.lost)} clients lost, such as {counts.lost[0]}"] if counts.lost else []
    problems += ["no client was served"] if not counts.served else []
    return [f"{kind}: {problem}" for problem in problems]


def until_listening(*ports: int) -> None:
    until = time.monotonic() + 60
    while not all(listening(port) for port in ports):
        assert time.monotonic() < until, "something did not start"
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=400)
    parser.add_argument("--descriptors", type=int, default=256)
    parser.add_argument("--only", choices=[kind.replace(" ", "-") for kind in FLOODS])
    arguments = parser.parse_args()
    print(f"{arguments.connections} connections, {arguments.descriptors} descriptors, {TASKS} tasks at once")
    print("kind                  tasks lost  log kB  descriptors  opened  clients  retries  slowest s  took s")
    problems: list[str] = []
    for kind in FLOODS:
        if arguments.only in (None, kind.replace(" ", "-")):
            problems += measure(kind, arguments.connections, arguments.descriptors)
    print("held" if not problems else "did not hold: " + "; ".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
