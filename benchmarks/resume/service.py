"""Stops a judge service at random moments during three assessments: all must complete, and nothing is played twice.

`python benchmarks/resume service [--kills 10] [--tasks 6] [--longest-s 30] [--seed 1]
[--port 9950]`: three copies of the demo's
first tasks, each with its own site and participant, for one `wabe serve` to which all clients are strangers. The judge
gets SIGKILL or, about every third time, SIGTERM, and is started again. One client leaves after its first update, so the
judge continues that run by itself; one follows; one sent a secret, so its run waits until the client sends it again.
Prints one line per stop. Exit code 1 if anything was lost or played twice.
"""

import argparse
import asyncio
import contextlib
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import httpx
from run import in_all_epochs, same, settled

from helpers.runner.commands import BIN
from helpers.runner.held_replay import HeldReplay, started_apart
from helpers.scenario.copies import on_free_ports
from judge.records.events import RUN_ID_KEY
from judge.runner.follow import RunOutcome, request_assessment
from judge.scenario.draft import RequestDraft
from judge.scenario.toml import load_scenario
from shared.a2a.client import AssessmentClient
from shared.files import read_json

CLIENTS = ("gone", "follows", "has a secret")
PATIENCE_S = 300.0
_DEMO = ROOT / "scenarios" / "demo"


@dataclass
class Judge:
    """`wabe serve` on a fixed port and folder, as often as it is started."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def start(self) -> None:
        self.process = self._spawned()
        async with httpx.AsyncClient(trust_env=False) as client:
            while True:
                assert self.process.poll() is None, (self.folder / "judge.log").read_text()[-2000:]
                with contextlib.suppress(httpx.HTTPError):
                    if (await client.get(f"{self.url}health")).is_success:
                        return
                await asyncio.sleep(0.1)

    def _spawned(self) -> subprocess.Popen[bytes]:
        words = [BIN / "wabe", "serve", "--port", str(self.port), "--output-dir", self.folder, "--log-format", "json"]
        temp = self.folder / "t"
        temp.mkdir(parents=True, exist_ok=True)
        environ = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(temp), "HOME": str(temp)}
        with (self.folder / "judge.log").open("ab") as log:
            return subprocess.Popen([*map(str, words)], env=environ, stdout=log, stderr=log)

    async def stop(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        await asyncio.to_thread(self.process.wait, 90)


@dataclass
class Assessed:
    """One of the assessments: who asks for it, and what it came to."""

    client: str
    request: str
    participant: HeldReplay
    run_id: str = ""
    outcome: RunOutcome | None = None
    problems: list[str] = field(default_factory=list)

    def folder(self, out: Path) -> Path:
        return out / "runs" / self.run_id


def request_of(path: Path, *, secret: str) -> str:
    """The request of a scenario, without what only a judge's own user may set."""
    scenario = load_scenario(path)
    changes = {"site_resets": scenario.resets, "secrets": (secret,) if secret else ()}
    return RequestDraft.of(scenario, config=scenario.config.model_copy(update=changes)).text()


def scenario_text(count: int) -> str:
    head, *tasks = on_free_ports((_DEMO / "scenario.toml").read_text()).split("[[tasks]]")
    return "[[tasks]]".join([head.replace("{scenario_dir}", str(_DEMO)), *tasks[:count]])


async def begin_and_leave(judge: Judge, assessed: Assessed) -> None:
    """Send the request, and hang up after the first update that names the run."""
    async with AssessmentClient(judge.url) as client, aclosing(client.run(assessed.request)) as events:
        async for _ in events:
            if RUN_ID_KEY in client.metadata:
                assessed.run_id = client.metadata[RUN_ID_KEY]
                return


async def follow(judge: Judge, assessed: Assessed) -> None:
    assessed.outcome = await request_assessment(judge.url, assessed.request, lambda _: None, patience_s=PATIENCE_S)
    assessed.run_id = assessed.outcome.run_id or ""


@asynccontextmanager
async def assessments(folder: Path, tasks: int) -> AsyncIterator[list[Assessed]]:
    """The three requests, with their sites and participants while the body runs."""
    started = []
    with ExitStack() as stack:
        for place, client in enumerate(CLIENTS):
            path = folder / f"scenario-{place}.toml"
            apart = started_apart(folder / f"apart-{place}", scenario_text(tasks))
            text, participant = await asyncio.to_thread(stack.enter_context, apart)
            path.write_text(text)
            secret = "not-a-real-password" if client == "has a secret" else ""
            started.append(Assessed(client, request_of(path, secret=secret), participant))
        yield started


async def restarted(
    folder: Path, port: int, kills: int, tasks: int, longest_s: float, rng: random.Random
) -> list[Assessed]:
    """The three assessments at their end, with what is wrong about them."""
    out = folder / "out"
    judge = Judge(out, port)
    async with assessments(folder, tasks) as assessed:
        gone, *others = assessed
        for each in assessed:
            each.participant.let_end(1)
        await judge.start()
        await begin_and_leave(judge, gone)
        following = [asyncio.create_task(follow(judge, each)) for each in others]
        print("stop  by       finished before  interrupted  seconds", flush=True)
        for left in reversed(range(kills)):
            began = time.monotonic()
            await some_steps(out, rng, longest_s)
            by = signal.SIGTERM if rng.random() < 0.3 else signal.SIGKILL
            await judge.stop(by)
            before = {name: data for run in out.glob("runs/*") for name, data in of_run(run)}
            interrupted = sum((task / "steps.jsonl").exists() for run in out.glob("runs/*") for task in open_tasks(run))
            for each in assessed:
                # So few at a time that no assessment is over before the last stop.
                each.participant.let_end(rng.random() < 0.7 * tasks / kills if left else math.inf)
            await judge.start()
            seconds = time.monotonic() - began
            finished = len({name.rpartition("/")[0] for name in before if name.endswith("/result.json")})
            print(f"{kills - left:4}  {by.name:7}  {finished:15}  {interrupted:11}  {seconds:7.1f}", flush=True)
            gone.problems += [f"changed: {name}" for name, data in before.items() if not same(out / name, data)]
        await asyncio.gather(*following)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                # Written last.
                if (gone.folder(out) / "results.json").exists():
                    break
                await asyncio.sleep(0.5)
        for each in assessed:
            each.problems += problems_of(each, out, tasks)
        for run in out.glob("runs/*"):
            # An attempt that has its verdict is never moved away to make place for another.
            again = [str(path.relative_to(out)) for path in run.glob("results/*/attempts/*/verdicts")]
            gone.problems += [f"played twice: {name}" for name in again]
        await judge.stop(signal.SIGTERM)
    return assessed


async def some_steps(out: Path, rng: random.Random, longest_s: float) -> None:
    """Wait for a random number of steps, which depends on the machine less than a time does, and then a moment."""
    until = time.monotonic() + longest_s
    target = recorded(out) + rng.randrange(12)
    while True:
        await asyncio.sleep(0.05)
        if recorded(out) >= target or time.monotonic() > until:
            break
    await asyncio.sleep(rng.uniform(0.0, 0.5))


def recorded(out: Path) -> int:
    """How many steps there are in all runs, also in interrupted attempts. Folders may vanish meanwhile."""
    steps = 0
    for folder, _, files in os.walk(out / "runs"):
        if "steps.jsonl" in files and "results" in Path(folder).parts:
            with contextlib.suppress(FileNotFoundError):
                steps += Path(folder, "steps.jsonl").read_bytes().count(b"\n")
    return steps


def of_run(run: Path) -> list[tuple[str, bytes]]:
    return [(f"runs/{run.name}/{name}", data) for name, data in settled(run).items()]


def open_tasks(run: Path) -> list[Path]:
    done = {path.parent for path in in_all_epochs(run, "result.json")}
    return [path for path in run.glob("results/*") if path not in done]


def problems_of(assessed: Assessed, out: Path, tasks: int) -> list[str]:
    messages = []
    if assessed.outcome is not None and assessed.outcome.state != "completed":
        messages.append(f"{assessed.outcome.state}: {assessed.outcome.message}")
    results = assessed.folder(out) / "results.json"
    detail = read_json(results)["results"][0]["detail"] if results.exists() else {}
    if detail.get("scored_tasks") != tasks or detail.get("judged_successes") != tasks:
        messages.append(f"{detail.get('judged_successes')} successes of {detail.get('scored_tasks')} scored tasks")
    return messages


def summary(results: Sequence[Assessed], out: Path) -> int:
    print("client        run                        attempts per task  problems")
    for each in results:
        attempts = [read_json(path)["attempt"] for path in sorted(each.folder(out).glob("results/*/result.json"))]
        print(f"{each.client:12}  {each.run_id:25}  {' '.join(map(str, attempts)):17}  {each.problems or 'none'}")
    return sum(bool(each.problems) for each in results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10, help="how often the judge is stopped")
    parser.add_argument("--tasks", type=int, default=6, help="how many of the demo's tasks each assessment has")
    parser.add_argument("--longest-s", type=float, default=30.0, help="the longest time between two stops, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=9950, help="the judge's port")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="jr"))
    rng = random.Random(arguments.seed)
    results = asyncio.run(restarted(folder, arguments.port, arguments.kills, arguments.tasks, arguments.longest_s, rng))
    lost = summary(results, folder / "out")
    print(f"{len(results) - lost} of {len(results)} assessments complete, the judge stopped {arguments.kills} times")
    if not lost:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
