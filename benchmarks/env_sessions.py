"""Throughput, CPU and memory of `wabe env serve` with several sessions at once.

    python benchmarks/env_sessions.py [--sessions 1 2 4 8 16] [--processes 1 2] [--seconds 40]

Every session plays the same walk through the demo shop (static, so it needs no reset), episode after episode, and its
client answers at once. After a warm-up of one episode for each session, steps and resets are counted for some seconds.
CPU is that of the server's processes and all browsers below them; memory is what is not shared (USS), at the end.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from env_serving import TASK, WireClient, action, dialled, served, snapshot_of
from helpers.scenario.copies import scenario_on_free_ports

MB = 1_000_000


class Usage(NamedTuple):
    """CPU seconds so far and unshared megabytes: of Python, and of browsers."""

    python_s: float
    browser_s: float
    python_mb: float
    browser_mb: float


def usage(server: psutil.Process) -> Usage:
    """What the server and everything below it has used."""
    cpu, memory = {True: 0.0, False: 0.0}, {True: 0.0, False: 0.0}
    for process in (server, *server.children(recursive=True)):
        try:
            is_python = "python" in process.name()
            times = process.cpu_times()
            cpu[is_python] += times.user + times.system
            memory[is_python] += process.memory_full_info().uss / MB
        except psutil.Error:
            continue
    return Usage(cpu[True], cpu[False], memory[True], memory[False])


class Counts:
    """What all sessions have done since the counting began."""

    steps = 0
    episodes = 0
    errors = 0


async def play(place: str, counts: Counts, warm: asyncio.Event, until: asyncio.Event) -> None:
    """One session, episode after episode."""
    async with dialled(place) as socket:
        client = WireClient(socket)
        while not until.is_set():
            try:
                text, is_done, step = await client.reset(), False, 0
                while not is_done and not until.is_set():
                    answer = await client.step(action(step, snapshot_of(text)))
                    text, is_done, step = answer["observation"]["text"], answer["done"], step + 1
                    counts.steps += 1
                counts.episodes += is_done
            except RuntimeError as error:
                print(f"error: {error}", file=sys.stderr)
                counts.errors += 1
            warm.set()


async def measured(scenario: Path, sessions: int, processes: int, seconds: float) -> str:
    """A line of the table."""
    options = ("--task", TASK, "--sessions", str(sessions), "--processes", str(processes))
    async with served(scenario, *options) as (place, server):
        counts, until = Counts(), asyncio.Event()
        warm = [asyncio.Event() for _ in range(sessions)]
        playing = [asyncio.create_task(play(place, counts, each, until)) for each in warm]
        await asyncio.gather(*(each.wait() for each in warm))
        before, began = usage(server), time.perf_counter()
        counts.steps = counts.episodes = 0
        await asyncio.sleep(seconds)
        after, took = usage(server), time.perf_counter() - began
        steps, errors = counts.steps, counts.errors
        until.set()
        await asyncio.gather(*playing, return_exceptions=True)
    python, browsers = after.python_s - before.python_s, after.browser_s - before.browser_s
    return (
        f"| {sessions} | {processes} | {steps / took:.2f} | {took * sessions / max(1, steps):.2f} |"
        f" {python / max(1, steps):.3f} | {browsers / max(1, steps):.3f} |"
        f" {after.python_mb:.0f} | {after.browser_mb / sessions:.0f} | {errors} |"
    )


async def table(options: argparse.Namespace) -> None:
    print("| sessions | processes | steps/s | s per step | CPU s per step: Python | browsers | Python MB |", end="")
    print(" browser MB per session | errors |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        scenario = scenario_on_free_ports("demo", Path(name))
        for sessions in options.sessions:
            for processes in options.processes:
                if processes <= sessions:
                    print(await measured(scenario, sessions, processes, options.seconds), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=40.0)
    asyncio.run(table(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
