"""Measures the CPU, memory, disk and network of an assessment, and computes how many slots a machine carries.

    python benchmarks/scale.py [--quick] [--write docs/scaling.md]

Measures assessments of the demo shop in real browsers at 1, 2, 4 and 8 slots (tasks at once), with participants that
think for 0, 2 and 8 s before each reply. `capacity.py` fits a model to the runs of 1 to 4 slots and predicts runs of
8. Exit code 1 if the prediction is off by `BOUND` or more. `--write` replaces the figures between the two markers of a
document. The full measurement takes about ten minutes on an otherwise idle machine, `--quick` two.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from capacity import Model, Run, best_load, error, fit
from helpers.a2a.raw_agent import RawRequest, message, raw_agent
from helpers.ports import free_port
from helpers.runner.commands import descendants
from judge.browser.chromium import BrowserSettings
from judge.config import RunConfig
from load import pss_mb
from shared.models import Action
from shared.protocol import render_reply
from shared.settings import Settings
from throughput import WALK, action, cpu_s, player, wait_until_listening

BOUND = 0.15
SLOTS = (1, 2, 4, 8)
# Seconds that a participant thinks, and how many tasks each slot plays then.
THINKING = {0.0: 4, 2.0: 2, 8.0: 1}
STEPS = 6
MACHINES = ((2, 4), (4, 8), (8, 16), (16, 32), (32, 64))
PLANNED_STEPS, PLANNED_THINKING = 15, (0.0, 2.0, 8.0, 20.0)
PLANNED_TASKS = (300, 10_000)
SAMPLE_S = 2.0
CORES = len(os.sched_getaffinity(0))
FINISH = Action(tool="finish", params={"answer": "done"})
BEGIN, END = "<!-- figures of benchmarks/scale.py -->", "<!-- end of figures -->"


@asynccontextmanager
async def relay(port: int) -> AsyncIterator[tuple[str, Counter[str]]]:
    """The address of a relay to a port of this machine, and how many bytes have passed through it."""
    passed = Counter[str]()

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                passed["bytes"] += len(data)
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ahead, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, back), copy(ahead, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", passed


def next_action(step: int, page: str, website: str) -> Action:
    """The walk through the shop, again and again from its beginning."""
    place = step % (len(WALK) + 1)
    if place == len(WALK):
        return Action(tool="browser_navigate", params={"url": website})
    return action(place, page)


async def other_side(think_s: float, steps: int, shop: int, judge: int) -> None:
    """The other process: a participant that thinks, the relay to the shop, and the sampling of the judge's memory.

    Prints the addresses of participant and website, and its counts so far for each line that it reads. It starts
    thinking with the first such line, so that warming up is short.
    """
    turns, memory_mb = Counter[str](), [pss_mb(judge)]
    is_measured = asyncio.Event()
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    async def watch() -> None:
        while True:
            pids = [judge, *(pid for pid in descendants(judge) if pid not in (os.getpid(), shop))]
            memory_mb.append(sum(await asyncio.gather(*(asyncio.to_thread(pss_mb, pid) for pid in pids))))
            await asyncio.sleep(SAMPLE_S)

    async with relay(shop) as (shop_url, of_site), asyncio.TaskGroup() as group:
        website = f"{shop_url}/search"

        async def answer(request: RawRequest) -> bytes:
            turn = turns[request.context_id]
            turns[request.context_id] += 1
            await asyncio.sleep(think_s if is_measured.is_set() else 0)
            reply = next_action(turn, request.text, website) if turn + 1 < steps else FINISH
            return message(request, render_reply(reply))

        async with raw_agent(answer) as agent, relay(agent.port) as (url, of_participant):
            # The card names the relay, or messages would go around it.
            agent.port = int(url.rpartition(":")[2])
            print(json.dumps({"participant": f"{url}/", "website": website}), flush=True)
            watching = group.create_task(watch())
            while await lines.readline():
                counted = {
                    "site": of_site["bytes"],
                    "participant": of_participant["bytes"],
                    "memory": median(memory_mb),
                }
                print(json.dumps(counted), flush=True)
                # There is always one sample: a run may end before the next one.
                del memory_mb[:-1]
                is_measured.set()
            watching.cancel()


class OtherProcess:
    """The other process as it is seen from here."""

    def __init__(self, think_s: float, steps: int, shop: int) -> None:
        words = [str(think_s), str(steps), str(shop), str(os.getpid())]
        command = [sys.executable, __file__, "--other-side", *words]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._running.pid
        self.urls: dict[str, str] = self._read()

    def counted(self) -> dict[str, float]:
        """Bytes so far, and the median of the megabytes since it was asked last."""
        assert self._running.stdin
        self._running.stdin.write("\n")
        self._running.stdin.flush()
        return self._read()

    def close(self) -> None:
        with self._running:
            self._running.terminate()

    def _read(self) -> Any:
        assert self._running.stdout
        return json.loads(self._running.stdout.readline())


@dataclass(frozen=True)
class Shop:
    """The demo shop as a process."""

    port: int
    pid: int


@contextmanager
def demo_shop() -> Iterator[Shop]:
    port = free_port()
    running = subprocess.Popen([sys.executable, str(ROOT / "scenarios/demo/site.py"), "--port", str(port)])
    try:
        wait_until_listening(port)
        yield Shop(port, running.pid)
    finally:
        running.terminate()
        running.wait()


def times(shop: Shop, other: int) -> dict[str, float]:
    """CPU seconds so far: of judge and browsers, of the judge's own process, of the others, of the whole machine."""
    own, machine = psutil.Process().cpu_times(), psutil.cpu_times()
    outside = [psutil.Process(pid).cpu_times() for pid in (shop.pid, other)]
    return {
        "family": cpu_s(without={shop.pid, other}),
        "own": own.user + own.system,
        "others": sum(each.user + each.system for each in outside),
        "machine": sum(machine) - machine.idle - machine.iowait,
        "wall": time.monotonic(),
    }


async def measured(settings: BrowserSettings, shop: Shop, slots: int, think_s: float, tasks: int, steps: int) -> Run:
    """One run, after each slot has played one task."""
    with tempfile.TemporaryDirectory() as name, closing(OtherProcess(think_s, steps, shop.port)) as other:
        folder, urls = Path(name), other.urls
        async with player(settings, urls["website"], slots, urls["participant"], folder) as play:
            await play("warm", slots)
            before = other.counted() | times(shop, other.pid)
            await play("run", tasks)
            after = other.counted() | times(shop, other.pid)
        disk = sum(path.stat().st_blocks * 512 for path in (folder / "runs/run").rglob("*"))
    spent = {key: after[key] - before[key] for key in after}
    foreign = max(0.0, spent["machine"] - spent["family"] - spent["others"]) / spent["wall"]
    return Run(
        max(0.1, CORES - foreign),
        slots,
        think_s,
        steps,
        held_s=spent["wall"] * slots / tasks,
        cpu_s=spent["family"] / tasks,
        judge_cpu_s=spent["own"] / tasks,
        others_cpu_s=spent["others"] / tasks,
        memory_mb=after["memory"],
        disk_kb=disk / tasks / 1e3,
        participant_kb=spent["participant"] / tasks / 1e3,
        site_kb=spent["site"] / tasks / 1e3,
    )


async def measure(settings: BrowserSettings, *, is_quick: bool) -> tuple[list[Run], Run]:
    """The runs, and one with tasks of a single step."""
    with demo_shop() as shop:
        print("slots  think  tasks   s/task  CPU s/task  of judge  memory MB  kB: disk  participant  site  other load")

        async def one(slots: int, think_s: float, tasks: int, steps: int) -> Run:
            run = await measured(settings, shop, slots, think_s, tasks, steps)
            print(
                f"{slots:5}  {think_s:5.0f}  {tasks:5}  {run.held_s:7.2f}  {run.cpu_s:10.2f}  {run.judge_cpu_s:8.2f}"
                f"  {run.memory_mb:9.0f}  {run.disk_kb:8.0f}  {run.participant_kb:11.0f}  {run.site_kb:4.0f}"
                f"  {CORES - run.cores:10.2f}",
                flush=True,
            )
            return run

        short = await one(1, 0.0, 2 if is_quick else 8, 1)
        thinking = {0.0: 1, 2.0: 1} if is_quick else THINKING
        runs = [await one(slots, think_s, each * slots, STEPS) for think_s, each in thinking.items() for slots in SLOTS]
    return runs, short


def model_figures(model: Model, runs: Sequence[Run], short: Run) -> tuple[str, float]:
    """The measurements, the model and its prediction as Markdown, and the largest error of the prediction."""
    predicted = [run for run in runs if run.slots == SLOTS[-1]]
    errors = {run: error(model, run) for run in predicted}
    worst = max(abs(each) for differences in errors.values() for each in differences.values())
    parts = [
        f"Measured on {CORES} cores, {time.strftime('%Y-%m-%d')}. Other programs used up to"
        f" {CORES - min(run.cores for run in runs):.2f} of them during a run, which the model subtracts.",
        _table(
            "slots | thinking, s | steps | time in the slot, s | CPU, s | judge's own process, s | memory, MB"
            " | disk, kB | participant, kB | site, kB",
            *(_row(run) for run in (short, *runs)),
        ),
        "Everything except memory is per task. The model fitted to the runs with 1 to 4 slots:",
        _table(
            "quantity | per task | per step",
            *(
                f"{name} | {differences.task:.3g} | {differences.step:.3g}"
                for name, differences in (
                    ("CPU of judge and browsers, s", model.cpu),
                    ("waiting beyond thinking, s", model.wait),
                    ("disk, kB", model.disk_kb),
                    ("to and from the participant, kB", model.participant_kb),
                    ("from the site, kB", model.site_kb),
                )
            ),
        ),
        f"An open page takes {model.think_cpu:.3f} s of CPU for each second of thinking; {model.judge_share:.0%} of all"
        f" CPU is the judge's own process. A judge takes {model.memory_mb:.0f} MB, and {model.slot_mb:.0f} MB for each"
        " slot.",
        f"Its prediction for {SLOTS[-1]} slots, with the difference from what was measured (at most {worst:.1%}):",
        _table("thinking, s | time | CPU | memory | disk", *(_prediction(run, model) for run in predicted)),
    ]
    return "\n\n".join(parts), worst


def plan_figures(model: Model) -> str:
    """The slots per machine and the duration of runs, as Markdown."""
    parts = [
        f"Slots per machine for tasks of {PLANNED_STEPS} steps, by how long the participant thinks before each reply"
        " (in brackets: the number of judge processes, where one is not enough):",
        _table(
            "machine | " + " | ".join(f"{each:g} s" for each in PLANNED_THINKING),
            *(
                f"{cores} cores, {memory} GB | "
                + " | ".join(_load(model, cores, memory, each) for each in PLANNED_THINKING)
                for cores, memory in MACHINES
            ),
        ),
        f"Machine hours for {' and '.join(f'{each:,}' for each in PLANNED_TASKS)} tasks of {PLANNED_STEPS} steps:",
        _table(
            "machine | " + " | ".join(f"{each:g} s" for each in PLANNED_THINKING),
            *(
                f"{cores} cores, {memory} GB | "
                + " | ".join(_hours(model, cores, memory, each) for each in PLANNED_THINKING)
                for cores, memory in MACHINES
            ),
        ),
        "Disk space and network traffic: "
        + "; ".join(
            f"{tasks:,} tasks {_gb(tasks * model.disk_kb.of(PLANNED_STEPS))} on disk,"
            f" {_gb(tasks * model.participant_kb.of(PLANNED_STEPS))} to and from the participant"
            for tasks in PLANNED_TASKS
        )
        + ".",
    ]
    return "\n\n".join(parts)


def _table(head: str, *rows: str) -> str:
    lines = [head, " | ".join("---" for _ in head.split(" | ")), *rows]
    return "\n".join(f"| {line} |" for line in lines)


def _row(run: Run) -> str:
    return (
        f"{run.slots} | {run.think_s:g} | {run.steps} | {run.held_s:.1f} | {run.cpu_s:.2f} | {run.judge_cpu_s:.2f}"
        f" | {run.memory_mb:.0f} | {run.disk_kb:.0f} | {run.participant_kb:.0f} | {run.site_kb:.0f}"
    )


def _prediction(run: Run, model: Model) -> str:
    load = model.predict(run.slots, run.think_s, run.steps, run.cores, are_others_here=True)
    off = error(model, run)
    return (
        f"{run.think_s:g} | {load.held_s:.1f} s ({off['time']:+.1%}) | {load.cpu_s:.2f} s ({off['CPU']:+.1%})"
        f" | {load.memory_mb:.0f} MB ({off['memory']:+.1%}) | {model.disk_kb.of(run.steps):.0f} kB ({off['disk']:+.1%})"
    )


def _load(model: Model, cores: int, memory_gb: int, think_s: float) -> str:
    load = best_load(model, cores, memory_gb, think_s, PLANNED_STEPS)
    return f"{load.slots} ({load.judges})" if load.judges > 1 else str(load.slots)


def _hours(model: Model, cores: int, memory_gb: int, think_s: float) -> str:
    load = best_load(model, cores, memory_gb, think_s, PLANNED_STEPS)
    return ", ".join(f"{load.machine_hours(tasks):.2g}" for tasks in PLANNED_TASKS)


def _gb(kilobytes: float) -> str:
    return f"{kilobytes / 1e6:.1f} GB"


def write_between(path: Path, text: str) -> None:
    """Put `text` between the two markers of a file."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"{path} has no {BEGIN}"
    assert end, f"{path} has no {END}"
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def main() -> int:
    """Measure, fit, compare, and print what a machine carries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer tasks: the figures are rough")
    parser.add_argument("--write", type=Path, help="the document whose figures are replaced")
    parser.add_argument("--other-side", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.other_side:
        think_s, steps, shop, judge = options.other_side
        asyncio.run(other_side(float(think_s), int(steps), int(shop), int(judge)))
        return 0
    settings = BrowserSettings.from_config(RunConfig(), Settings.from_environ())
    runs, short = asyncio.run(measure(settings, is_quick=options.quick))
    fitted = [run for run in runs if run.slots < SLOTS[-1]]
    model = fit(fitted, short)
    measured_text, worst = model_figures(model, runs, short)
    plan_text = plan_figures(model)
    print(f"{plan_text}\n\n{measured_text}")
    if options.write:
        write_between(options.write, f"{plan_text}\n\n{measured_text}")
    return 0 if worst < BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
