"""Opens sessions of `wabe env serve` and drops them, and counts what is left of them.

    python benchmarks/growth drops [--sessions 500] [--at-once 4]

Each client disappears without a word (its connection is reset) at one of four places in turn: after it connected, in
the middle of its `reset`, after its first observation, and in the middle of a step. Before that there is a warm-up: 20
such sessions, and then as many at once as there can be, because a browser that is given back is kept for the next
session. Then processes, zombies, threads, open files and sockets of the server's Python processes, files in its
temporary folder and memory (unshared) are compared: after the warm-up, and after all. Exits with 1 if anything but
memory is more at the end, or if memory grew by more than 100 kB a session.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("src", "tests", "benchmarks")]

from env_serving import TASK, WireClient, action, dialled, served, snapshot_of
from helpers.scenario.copies import scenario_on_free_ports

WARM_UP = 20
MAX_KB = 100.0


async def drop(place: str, number: int) -> None:
    """One session, which ends without a word."""
    while True:
        socket = await dialled(place)
        client = WireClient(socket)
        try:
            if number % 4 == 0:
                # Its place is taken as soon as it is connected: an answer shows that there was one.
                await client.ask("state")
            elif number % 4 == 1:
                await client.ask("state")
                await socket.send(json.dumps({"type": "reset", "data": {"task_id": TASK}}))
                await asyncio.sleep(0.2)
            else:
                text = await client.reset()
                if number % 4 == 3:
                    await socket.send(json.dumps({"type": "step", "data": action(0, snapshot_of(text))}))
                    await asyncio.sleep(0.05)
        except RuntimeError as error:
            if "capacity" not in str(error):
                raise
            await socket.close()
            await asyncio.sleep(0.2)
            continue
        socket.transport.abort()
        return


async def all_at_once(place: str, count: int) -> None:
    """As many sessions as there can be, each with a browser."""
    async with AsyncExitStack() as stack:
        clients = [WireClient(await stack.enter_async_context(dialled(place))) for _ in range(count)]
        await asyncio.gather(*(client.reset() for client in clients))


def remains(server: psutil.Process, temp: Path) -> dict[str, float]:
    """What there is now."""
    found = [server, *server.children(recursive=True)]
    pythons = [process for process in found if "python" in process.name()]
    dead = [process for process in found if process.status() == psutil.STATUS_ZOMBIE]
    ours = {process.pid for process in pythons}
    return {
        "processes": len(found) - len(dead),
        # Those of a browser's own processes go with it.
        "zombies": sum(process.ppid() in ours for process in dead),
        "threads": sum(process.num_threads() for process in pythons),
        "descriptors": sum(process.num_fds() for process in pythons),
        "files": sum(len(files) for _, _, files in os.walk(temp)),
        "MB": sum(process.memory_full_info().uss for process in pythons) / 1_000_000,
    }


async def settled(server: psutil.Process, temp: Path) -> dict[str, float]:
    """What there is once all browsers of dropped sessions have been given back or have ended."""
    last: dict[str, float] = {}
    for _ in range(20):
        await asyncio.sleep(3)
        now = remains(server, temp)
        if last and all(now[name] == last[name] for name in now if name != "MB"):
            return now
        last = now
    return last


async def measured(sessions: int, at_once: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        scenario, temp = scenario_on_free_ports("demo", Path(name)), Path(name, "temp")
        temp.mkdir()
        options = ("--task", TASK, "--sessions", str(at_once))
        async with served(scenario, *options, TMPDIR=str(temp)) as (place, server):
            numbers = iter(range(sessions))

            async def play(until: int) -> None:
                for number in numbers:
                    await drop(place, number)
                    if number >= until:
                        return

            await asyncio.gather(*(play(WARM_UP) for _ in range(at_once)))
            await asyncio.sleep(3)
            await all_at_once(place, at_once)
            before, began = await settled(server, temp), time.perf_counter()
            await asyncio.gather(*(play(sessions) for _ in range(at_once)))
            took = time.perf_counter() - began
            after = await settled(server, temp)
            async with dialled(place) as socket:
                await WireClient(socket).reset()
    print(f"{sessions} sessions opened and dropped, {at_once} at once, in {took:.0f} s; a further one works")
    for name, value in before.items():
        print(f"{name:12} {value:8.0f} after {WARM_UP}, {after[name]:8.0f} at the end")
    grown = 1_000 * (after["MB"] - before["MB"]) / (sessions - WARM_UP)
    print(f"memory: {grown:.0f} kB a session")
    more = [name for name in before if name != "MB" and after[name] > before[name]]
    return 1 if more or grown > MAX_KB else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=4)
    options = parser.parse_args()
    return asyncio.run(measured(options.sessions, options.at_once))


if __name__ == "__main__":
    sys.exit(main())
