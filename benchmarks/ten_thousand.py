"""Plays 10,000 tasks end to end without browsers, and checks memory, results and time.

    python benchmarks/ten_thousand.py [--tasks 10000] [--steps 15] [--parallel 8] [--folder FOLDER]

`wabe run` plays a scenario of so many tasks: the real judge over A2A, with its live page, task store and recording, and
a participant as a process of its own. Only the browsers are scripted. Afterwards `wabe verify` and `wabe leaderboard`
read the run, and the report is opened in a browser. Exit code 1 if a task or a figure is wrong, or the judge's memory
grows by more than `MAX_GROWTH_KB` per task.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from playwright.sync_api import sync_playwright

import judge.server.service
from helpers.episode.still_page import StillPage
from helpers.ports import free_ports
from helpers.runner.commands import BIN
from judge.browser.installed import find_browser
from judge.browser.session import Hop, ToolResult
from judge.browser.settle import SettleMode
from judge.commands.serve import serve as serve_judge
from participants.base import Action, Observation, serve
from shared.models import Page
from shared.settings import Settings

# The judge keeps a finished task itself and its compressed entry of the submission.
MAX_GROWTH_KB = 4.0
SITE = "http://shop.example/"
ITEMS = 60
LEVELS = ("easy", "medium", "hard")


class Shelf(StillPage):
    """A page with a list of items; each click leads to the next page of the list."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = {"browser": "scripted", "mcp_server": "none"}
        self._page = 0
        self._hops: list[Hop] = []

    async def open(self, url: str, settle: SettleMode = "real-time") -> None:
        self._go(0)

    async def observe(self) -> Page:
        lines = [f'- link "Item {self._page}-{n}" [ref=e{n}] [box=0,{40 * n},300,40]' for n in range(ITEMS)]
        picture = b"\xff\xd8\xff\xe0" + os.urandom(2_000)
        return Page(url=f"{SITE}{self._page}", title="Shelf", snapshot="\n".join(lines), screenshot=picture)

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        self._go(self._page + 1)
        return ToolResult(ok=True, text="done")

    def take_hops(self) -> tuple[Hop, ...]:
        hops, self._hops = tuple(self._hops), []
        return hops

    def _go(self, page: int) -> None:
        self._page = page
        self._hops.append(Hop(url=f"{SITE}{page}"))


class Shelves:
    """Stands in for the pool of browsers."""

    @asynccontextmanager
    async def browser(self, _policy: object) -> AsyncIterator[Shelf]:
        yield Shelf()


@asynccontextmanager
async def shelves(*_: object, **__: object) -> AsyncIterator[Shelves]:
    """Stands in for `browser_pool`."""
    yield Shelves()


def run_judge(port: int) -> None:
    """`wabe serve` with scripted browsers."""
    judge.server.service.browser_pool = shelves  # type: ignore[assignment]
    serve_judge(port=port)


def run_participant(port: int) -> None:
    """Goes from page to page. In each fourth task it stops one page too early."""
    pattern = re.compile(r"page (\d+), task (\d+)")

    async def decide(observation: Observation) -> Action:
        match = pattern.search(observation.instruction or "")
        assert match
        last = int(match[1]) - (int(match[2]) % 4 == 3)
        if observation.step >= last:
            return Action(tool="finish", params={"answer": "It is open."}, thought="This is the page.")
        thought = (
            f"I am on page {observation.step} of the shelf and go on to the next one, as the task wants page {last}."
        )
        return Action(tool="browser_click", params={"target": f"e{observation.step}"}, thought=thought)

    serve(decide, name="walker", port=port)


def scenario(folder: Path, tasks: int, steps: int, parallel: int) -> Path:
    """The scenario file. A step is an observation, so the last page is one less."""
    judge_port, participant_port = free_ports(2)
    parts = [
        f'[green_agent]\nendpoint = "http://127.0.0.1:{judge_port}"\ncmd = "{_command("judge", judge_port)}"\n',
        f'[[participants]]\nrole = "white_agent"\nendpoint = "http://127.0.0.1:{participant_port}"\n'
        f'cmd = "{_command("participant", participant_port)}"\n',
        f'[config]\njudge_model = "offline"\nsettle = "real-time"\nmax_steps = {steps}\nmax_parallel = {parallel}\n',
    ]
    parts += [
        f'[[tasks]]\ntask_id = "shelf-{n:05d}"\nwebsite = "{SITE}"\ntask = "Open page {steps - 1}, task {n}."\n'
        f'level = "{LEVELS[n % 3]}"\nchecks = [{{ kind = "page", url = "/{steps - 1}" }}]\n'
        for n in range(tasks)
    ]
    path = folder / "scenario.toml"
    path.write_text("\n".join(parts))
    return path


def _command(role: str, port: int) -> str:
    return f"{sys.executable} {Path(__file__).resolve()} --{role} {port}"


@dataclass
class Watch:
    """Samples the run's processes while it plays: megabytes by name, and the judge's by number of tasks."""

    runner: psutil.Process
    every: int
    peaks: dict[str, float] = field(default_factory=dict)
    judge: list[tuple[int, float]] = field(default_factory=list)
    judge_cpu_s: float = 0.0

    def look(self, done: int) -> None:
        for each in (self.runner, *self.runner.children(recursive=True)):
            try:
                words, memory, cpu = each.cmdline(), each.memory_info().rss / 1e6, each.cpu_times()
            except psutil.Error:
                continue
            name = next((word[2:] for word in words if word in ("--judge", "--participant")), "runner")
            self.peaks[name] = max(self.peaks.get(name, 0.0), memory)
            if name == "judge":
                self.judge_cpu_s = cpu.user + cpu.system
                if done >= self.every * (len(self.judge) + 1):
                    self.judge.append((done, memory))

    @property
    def growth_kb(self) -> float:
        """Of the judge, in kilobytes a task, without the first look, until which it warms up, and the last.

        At the last one it has begun to write the results, which takes several times their size.
        """
        done, memory = zip(*self.judge[1:-1], strict=True)
        return 1000 * statistics.linear_regression(done, memory).slope


def play(path: Path, output: Path, tasks: int) -> Watch:
    """`wabe run` on the scenario: a line for each tenth of the tasks."""
    command = [str(BIN / "wabe"), "run", str(path), "--output-dir", str(output), "--display", "json"]
    done, began = 0, time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        watch = Watch(psutil.Process(running.pid), every=max(1, tasks // 10))
        last_look = 0.0
        for line in running.stdout:
            event = json.loads(line)["event"] if line.startswith("{") else ""
            known = len(watch.judge)
            done += event == "task_done"
            if time.perf_counter() - last_look > 1 or (event == "task_done" and done % watch.every == 0):
                last_look = time.perf_counter()
                watch.look(done)
            if event == "run_done":
                print(f"{'the last task is done after':<44}{last_look - began:8.1f} s", flush=True)
            if len(watch.judge) > known:
                count, memory = watch.judge[-1]
                print(f"{count:6} tasks  {time.perf_counter() - began:7.1f} s  judge {memory:6.1f} MB", flush=True)
        while running.poll() is None:
            watch.look(done)
            time.sleep(0.5)
    assert running.returncode == 0, f"wabe run ended with {running.returncode}"
    print(f"{'the run with its results and report':<44}{time.perf_counter() - began:8.1f} s", flush=True)
    return watch


def command(name: str, *words: str) -> str:
    """The output of a `wabe` command, with its time and peak memory."""
    began = time.perf_counter()
    with subprocess.Popen([str(BIN / "wabe"), *words], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        text = running.stdout.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    print(f"{name:<44}{time.perf_counter() - began:8.1f} s, peak {usage.ru_maxrss / 1e3:.0f} MB", flush=True)
    assert running.returncode == 0, text[-2000:]
    return text


def open_report(index: Path) -> None:
    """The front page in a real browser: until it is painted, and until it is complete."""
    program = find_browser(None, Settings.from_environ())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(program.path), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        began = time.perf_counter()
        page.goto(index.as_uri(), timeout=300_000)
        complete_s = time.perf_counter() - began
        elements = page.evaluate("document.getElementsByTagName('*').length")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
        browser.close()
    size = index.stat().st_size / 1e6
    print(
        f"report's front page: {size:.1f} MB, {elements} elements, first paint {paint / 1000:.1f} s,"
        f" complete {complete_s:.1f} s"
    )


def check(run: Path, tasks: int, steps: int) -> None:
    """Every task is there once, with its right outcome and its steps."""
    path = run / "results.json"
    detail = json.loads(path.read_text())["results"][0]["detail"]
    outcomes = [entry["verdict"] for entry in detail["tasks"]]
    assert outcomes == ["failure" if n % 4 == 3 else "success" for n in range(tasks)]
    assert [entry["steps_taken"] for entry in detail["tasks"]] == [steps - (n % 4 == 3) for n in range(tasks)]
    assert (detail["total_tasks"], detail["judged_successes"]) == (tasks, outcomes.count("success"))
    files = [each_file.stat().st_size for each_file in run.glob("results/*/**/*") if each_file.is_file()]
    print(
        f"results.json {path.stat().st_size / 1e6:.1f} MB; {len(files)} files of tasks, {sum(files) / 1e9:.2f} GB"
        f" ({sum(files) / tasks / 1e3:.0f} kB a task)"
    )


def main() -> int:
    """Play, check, and return whether memory is flat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--folder", type=Path, help="an empty folder where everything stays")
    parser.add_argument("--judge", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--participant", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        run_judge(options.judge)
        return 0
    if options.participant:
        run_participant(options.participant)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        output = folder / "out"
        print(f"{options.tasks} tasks of {options.steps} steps, {options.parallel} at once")
        path = scenario(folder, options.tasks, options.steps, options.parallel)
        command("wabe tasks validate", "tasks", "validate", str(path))
        watch = play(path, output, options.tasks)
        run = next((output / "runs").iterdir())
        check(run, options.tasks, options.steps)
        steps = options.tasks * options.steps
        print(
            f"judge: {1000 * watch.judge_cpu_s / steps:.1f} ms of CPU a step; memory {watch.growth_kb:+.2f} kB a task"
        )
        print(", ".join(f"peak of the {name} {peak:.0f} MB" for name, peak in watch.peaks.items()))
        verified = command("wabe verify", "verify", str(run))
        print(f"  {verified.strip().splitlines()[-1]}")
        [row] = json.loads(command("wabe leaderboard", "leaderboard", str(run / "results.json"), "--json"))
        assert row["# Tasks"] == options.tasks, row
        print(f"  {row['Success Rate']} % of {row['# Tasks']} tasks")
        command("wabe report, once more", "report", str(run))
        open_report(run / "report" / "index.html")
    is_flat = watch.growth_kb <= MAX_GROWTH_KB
    print("flat" if is_flat else f"NOT FLAT: at most {MAX_GROWTH_KB} kB a task")
    return 0 if is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
