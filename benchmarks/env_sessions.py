"""Throughput, CPU and memory of `wabe env serve` with several sessions at once.

    python benchmarks/env_sessions.py [--sessions 1 2 4 8 16] [--processes 1 2] [--thinking 0] [--seconds 40]

Every session plays the same walk through the demo shop (static, so it needs no reset), episode after episode, and its
client thinks for some seconds before each action. After a warm-up of one episode for each session, steps and resets
are counted for some seconds. CPU is used by the server's processes and all browsers below them; memory is what is not
shared (USS), at the end. Cores that other programs used meanwhile are subtracted.

Then the model of docs/scaling.md (mean value analysis) predicts the steps per second of every other row from the
CPU and the waiting of the first row of those that think as long, and what 512 such sessions need. Exits with 1 if a
prediction is off by more than 25 %, as it is for overloaded machines.
"""

import argparse
import asyncio
import itertools
import math
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from capacity import JUDGE_CPU, USED_CPU, held_s
from env_serving import TASK, WireClient, action, dialled, served, snapshot_of
from helpers.scenario.copies import scenario_on_free_ports

MB = 1_000_000
CORES = len(os.sched_getaffinity(0))
BOUND = 0.25
LARGE = 512


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


async def play(place: str, counts: Counts, warm: asyncio.Event, until: asyncio.Event, thinking_s: float) -> None:
    """One session, episode after episode."""
    async with dialled(place) as socket:
        client = WireClient(socket)
        while not until.is_set():
            try:
                text, is_done, step = await client.reset(), False, 0
                while not is_done and not until.is_set():
                    # Sessions that begin together would stay together.
                    await asyncio.sleep(random.uniform(0.5, 1.5) * thinking_s)
                    answer = await client.step(action(step, snapshot_of(text)))
                    text, is_done, step = answer["observation"]["text"], answer["done"], step + 1
                    counts.steps += 1
                counts.episodes += is_done
            except RuntimeError as error:
                print(f"error: {error}", file=sys.stderr)
                counts.errors += 1
            warm.set()


class Measured(NamedTuple):
    """A row of the table. CPU is for each step, with its share of the reset; `cores` were left by other programs."""

    sessions: int
    processes: int
    thinking_s: float
    steps_s: float
    python_s: float
    browser_s: float
    python_mb: float
    browser_mb: float
    cores: float
    errors: int

    @property
    def cpu_s(self) -> float:
        return self.python_s + self.browser_s

    def line(self) -> str:
        step = self.sessions / self.steps_s - self.thinking_s
        return (
            f"| {self.sessions} | {self.processes} | {self.thinking_s:g} | {self.steps_s:.2f} | {step:.2f} |"
            f" {self.python_s:.3f} | {self.browser_s:.3f} | {self.python_mb:.0f} | {self.browser_mb:.0f} |"
            f" {self.cores:.2f} | {self.errors} |"
        )


async def measured(scenario: Path, sessions: int, processes: int, thinking_s: float, seconds: float) -> Measured:
    """A row of the table."""
    options = ("--task", TASK, "--sessions", str(sessions), "--processes", str(processes))
    async with served(scenario, *options) as (place, server):
        counts, until = Counts(), asyncio.Event()
        warm = [asyncio.Event() for _ in range(sessions)]
        playing = [asyncio.create_task(play(place, counts, each, until, thinking_s)) for each in warm]
        await asyncio.gather(*(each.wait() for each in warm))
        before, busy, began = usage(server), all_cpu_s(), time.perf_counter()
        own = os.times()
        counts.steps = counts.episodes = 0
        await asyncio.sleep(seconds)
        after, took = usage(server), time.perf_counter() - began
        mine = (
            sum(os.times()[:2]) - sum(own[:2]) + after.python_s + after.browser_s - before.python_s - before.browser_s
        )
        others = max(0.0, all_cpu_s() - busy - mine) / took
        steps, errors = max(1, counts.steps), counts.errors
        until.set()
        await asyncio.gather(*playing, return_exceptions=True)
    return Measured(
        sessions,
        processes,
        thinking_s,
        steps / took,
        (after.python_s - before.python_s) / steps,
        (after.browser_s - before.browser_s) / steps,
        after.python_mb,
        after.browser_mb / sessions,
        CORES - others,
        errors,
    )


def all_cpu_s() -> float:
    """The CPU seconds that all programs of this machine have used."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))


def predictions(rows: list[Measured]) -> bool:
    """Print what the model says of the other rows, and of many sessions. Returns whether it is near enough."""
    print("\n| sessions | processes | thinking, s | steps/s predicted | measured | difference |")
    print("|---|---|---|---|---|---|")
    is_near = True
    groups = {each.thinking_s: [row for row in rows if row.thinking_s == each.thinking_s] for each in rows}
    for first, *others in groups.values():
        waiting = waiting_s(first)
        for row in others:
            predicted = row.sessions / held_s(first.cpu_s, waiting, row.sessions, row.cores)
            off = predicted / row.steps_s - 1
            is_near &= abs(off) <= BOUND
            name = f"{row.sessions} | {row.processes} | {row.thinking_s:g}"
            print(f"| {name} | {predicted:.2f} | {row.steps_s:.2f} | {100 * off:+.0f} % |")
    print(f"\n{LARGE} sessions:\n\n| thinking, s | steps/s | cores | judge's processes | GB |\n|---|---|---|---|---|")
    for thinking_s, (first, *others) in groups.items():
        steps_s = LARGE / (first.cpu_s + waiting_s(first))
        cores = steps_s * first.cpu_s / USED_CPU
        processes = math.ceil(max(steps_s * first.python_s / JUDGE_CPU, LARGE / 64))
        # A browser alone has all its spare processes for itself.
        memory = processes * first.python_mb + LARGE * min(row.browser_mb for row in (first, *others))
        print(f"| {thinking_s:g} | {steps_s:.0f} | {cores:.0f} | {processes} | {memory / 1000:.0f} |")
    return is_near


def waiting_s(row: Measured) -> float:
    """How long a step of one session alone takes besides its CPU: thinking, and waiting for the page."""
    return max(0.0, 1 / row.steps_s - row.cpu_s / min(1.0, row.cores)) if row.sessions == 1 else row.thinking_s


async def table(options: argparse.Namespace) -> list[Measured]:
    print(
        "| sessions | processes | thinking, s | steps/s | s per step | CPU s per step: Python | browsers | Python MB |",
        end="",
    )
    print(" browser MB per session | cores | errors |\n|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    rows: list[Measured] = []
    with tempfile.TemporaryDirectory() as name:
        scenario = scenario_on_free_ports("demo", Path(name))
        for thinking_s, sessions, processes in itertools.product(options.thinking, options.sessions, options.processes):
            if processes <= sessions:
                rows.append(await measured(scenario, sessions, processes, thinking_s, options.seconds))
                print(rows[-1].line(), flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--thinking", type=float, nargs="+", default=[0.0])
    parser.add_argument("--seconds", type=float, default=40.0)
    return 0 if predictions(asyncio.run(table(parser.parse_args()))) else 1


if __name__ == "__main__":
    sys.exit(main())
