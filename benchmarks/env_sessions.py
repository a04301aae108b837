"""Throughput, CPU and memory of `wabe env serve` with several sessions at once.

    python benchmarks/env_sessions.py [--sessions 1 2 4 8 16] [--processes 1 2] [--seconds 40]

Every session plays the same walk through the demo shop (static, so it needs no reset), episode after episode, and its
client answers at once. After a warm-up of one episode for each session, steps and resets are counted for some seconds.
CPU is that of the server's processes and all browsers below them; memory is what is not shared (USS), at the end.
Cores that other programs used meanwhile are subtracted.

Then the model of docs/scale-model.md (mean value analysis) predicts the steps per second of every other row from the
CPU and the waiting of the first row, and what 512 sessions need whose policies think for some seconds before each
action. Exits with 1 if a prediction is off by more than 25 %.
"""

import argparse
import asyncio
import math
import os
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
LARGE, THINKING = 512, (0.0, 2.0, 8.0, 20.0)


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


class Measured(NamedTuple):
    """A row of the table. CPU is for each step, with its share of the reset; `cores` were left by other programs."""

    sessions: int
    processes: int
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
        step = self.sessions / self.steps_s
        return (
            f"| {self.sessions} | {self.processes} | {self.steps_s:.2f} | {step:.2f} | {self.python_s:.3f} |"
            f" {self.browser_s:.3f} | {self.python_mb:.0f} | {self.browser_mb:.0f} | {self.cores:.2f} | {self.errors} |"
        )


async def measured(scenario: Path, sessions: int, processes: int, seconds: float) -> Measured:
    """A row of the table."""
    options = ("--task", TASK, "--sessions", str(sessions), "--processes", str(processes))
    async with served(scenario, *options) as (place, server):
        counts, until = Counts(), asyncio.Event()
        warm = [asyncio.Event() for _ in range(sessions)]
        playing = [asyncio.create_task(play(place, counts, each, until)) for each in warm]
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
    first = rows[0]
    # Of one session alone: what is not CPU, or waiting for the CPU that others use, is waiting for the page.
    busy_s = first.cpu_s / min(1.0, first.cores)
    waiting = max(0.0, 1 / first.steps_s - busy_s) if first.sessions == 1 else 0.0
    print("\n| sessions | processes | steps/s predicted | measured | difference |\n|---|---|---|---|---|")
    is_near = True
    for row in rows[1:]:
        predicted = row.sessions / held_s(first.cpu_s, waiting, row.sessions, row.cores)
        off = predicted / row.steps_s - 1
        is_near &= abs(off) <= BOUND
        print(f"| {row.sessions} | {row.processes} | {predicted:.2f} | {row.steps_s:.2f} | {100 * off:+.0f} % |")
    print(f"\n{LARGE} sessions:\n\n| thinking, s | steps/s | cores | judge's processes | GB |\n|---|---|---|---|---|")
    for think_s in THINKING:
        alone = first.cpu_s + waiting + think_s
        steps_s = LARGE / alone
        cores = steps_s * first.cpu_s / USED_CPU
        processes = math.ceil(max(steps_s * first.python_s / JUDGE_CPU, LARGE / 64))
        memory = processes * first.python_mb + LARGE * first.browser_mb
        print(f"| {think_s:g} | {steps_s:.0f} | {cores:.0f} | {processes} | {memory / 1000:.0f} |")
    return is_near


async def table(options: argparse.Namespace) -> list[Measured]:
    print("| sessions | processes | steps/s | s per step | CPU s per step: Python | browsers | Python MB |", end="")
    print(" browser MB per session | cores | errors |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    rows: list[Measured] = []
    with tempfile.TemporaryDirectory() as name:
        scenario = scenario_on_free_ports("demo", Path(name))
        for sessions in options.sessions:
            for processes in options.processes:
                if processes <= sessions:
                    rows.append(await measured(scenario, sessions, processes, options.seconds))
                    print(rows[-1].line(), flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=40.0)
    return 0 if predictions(asyncio.run(table(parser.parse_args()))) else 1


if __name__ == "__main__":
    sys.exit(main())
