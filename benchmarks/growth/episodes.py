"""Plays episodes of a served scenario without end, and counts what each of them leaves.

    python benchmarks/growth episodes [--episodes 300] [--sessions 2] [--keep 100] [--kill-every 25]

The scenario is the demo shop, on a port of its own. The policy is idle: it finishes at once. Every so many episodes a
browser is killed in the middle, which must be an error and leave nothing either. Everything runs in this process: the
sessions, the judge and whatever starts the site and browsers. Samples are taken while all sessions rest: memory (RSS of
this process), open files and sockets, processes below it, zombies, temporary files, episodes on disk. Exit code 1 if a
number grows that must not (memory may in the first 100 episodes), if anything is left at the end, if a reward is not 0,
or if `wabe verify` finds a mismatch.
"""

import argparse
import asyncio
import ctypes
import gc
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import psutil

from helpers.ports import free_port
from judge.environment.errors import EpisodeFault
from judge.plugins.verification.verifying import verify_run
from judge.store.episodes import number_of, read_counts
from judge.store.layout import runs_in
from shared.files import size_of
from shared.replies import FINISH
from wabe.training import environments

_LIBC = ctypes.CDLL(None)
FINISHES = {"tool": FINISH, "params": {"answer": ""}}
SAMPLES = 12
# The first samples show what is loaded once.
WARM_UP = 4
# At most this much more per episode is fragmentation: 100 MB in 10,000 episodes.
MAX_SLOPE_BYTES = 10_000


@dataclass(frozen=True)
class Sample:
    """What there is after so many episodes."""

    episodes: int
    rss: int
    files: int
    sockets: int
    processes: int
    zombies: int
    temporary: int
    kept: int
    kept_bytes: int

    @classmethod
    def measure(cls, episodes: int, scratch: Path, output: Path) -> "Sample":
        gc.collect()
        # What is left then is in use, and not kept by the allocator for later.
        _LIBC.malloc_trim(0)
        own = psutil.Process()
        below = own.children(recursive=True)
        runs = runs_in(output)
        counts = read_counts(runs[0]) if runs else None
        return cls(
            episodes,
            own.memory_info().rss,
            own.num_fds(),
            len(own.net_connections()),
            len(below),
            sum(_is_zombie(each) for each in below),
            sum(len(files) for _, _, files in os.walk(scratch)),
            number_of(counts.remaining) if counts else 0,
            size_of(runs[0].folder) if runs else 0,
        )


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _browsers() -> list[psutil.Process]:
    browsers = []
    for each in psutil.Process().children(recursive=True):
        try:
            line = " ".join(each.cmdline())
        except psutil.Error:
            continue
        if "--user-data-dir=" in line and " --type=" not in line:
            browsers.append(each)
    return browsers


async def play(session: Any, numbers: Sequence[int], kill_every: int, rewards: list[float], faults: list[str]) -> None:
    """Play these episodes one after the other."""
    for number in numbers:
        try:
            answer = await session.reset()
            if kill_every and number % kill_every == 0:
                # Of any session: that one's episode ends with an error.
                _browsers()[-1].kill()
            while not answer.done:
                answer = await session.step(FINISHES)
            rewards.append(answer.reward)
        except EpisodeFault as fault:
            faults.append(str(fault))


async def measured(
    arguments: argparse.Namespace, scenario: Path, scratch: Path, output: Path
) -> tuple[list[Sample], list[float], list[str]]:
    """The samples, the rewards, and the errors of all episodes."""
    samples, rewards, faults = [], [], []
    options = {"record": output, "keep": arguments.keep}
    async with environments(scenario, arguments.sessions, **options) as host:
        sessions = [host.session() for _ in range(arguments.sessions)]
        at_once = max(arguments.sessions, arguments.episodes // SAMPLES)
        for first in range(1, arguments.episodes + 1, at_once):
            numbers = range(first, min(first + at_once, arguments.episodes + 1))
            parts = [numbers[each :: arguments.sessions] for each in range(arguments.sessions)]
            plays = (
                play(session, part, arguments.kill_every, rewards, faults)
                for session, part in zip(sessions, parts, strict=True)
            )
            await asyncio.gather(*plays)
            # Browsers get ready for the next episode, and orphans are reaped every 5 s.
            await asyncio.sleep(6)
            samples.append(Sample.measure(numbers[-1], scratch, output))
            print("  ".join(f"{name} {value:>9}" for name, value in vars(samples[-1]).items()), flush=True)
    return samples, rewards, faults


def problems_of(samples: Sequence[Sample], before: Sample, after: Sample, keep: int) -> list[str]:
    """What grew, or was left."""
    settled = samples[min(WARM_UP, len(samples) - 1) :]
    messages = []
    for name in ("files", "sockets", "processes", "temporary"):
        first, last = getattr(settled[0], name), getattr(settled[-1], name)
        # A browser more or less is being made ready at any time; what leaks grows with every episode.
        if last > first + 30:
            messages.append(
                f"{name}: {first} after {settled[0].episodes} episodes, {last} after {settled[-1].episodes}"
            )
    messages += [f"{sample.zombies} zombies after {sample.episodes} episodes" for sample in samples if sample.zombies]
    messages += [f"{sample.kept} episodes kept" for sample in samples if sample.kept > keep]
    left = {name: getattr(after, name) for name in ("processes", "zombies", "temporary")}
    messages += [f"{name} left: {count}" for name, count in left.items() if count]
    if after.sockets > before.sockets:
        messages.append(f"sockets left: {after.sockets - before.sockets}")
    if (slope := slope_of(settled)) is not None and slope > MAX_SLOPE_BYTES:
        messages.append(f"memory grows by {slope:.0f} bytes per episode")
    return messages


def slope_of(samples: Sequence[Sample]) -> float | None:
    """How many bytes of memory an episode adds."""
    if len(samples) < 3:
        return None
    fit = statistics.linear_regression([each.episodes for each in samples], [each.rss for each in samples])
    return fit.slope


def demo_in(folder: Path) -> Path:
    """A copy of the demo whose shop nobody else uses."""
    shutil.copytree(ROOT / "scenarios" / "demo", folder)
    scenario = folder / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("9180", str(free_port())))
    return scenario


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--keep", type=int, default=100)
    parser.add_argument("--kill-every", type=int, default=25, help="0: never")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wabe-endless-") as folder:
        scratch, output = Path(folder, "scratch"), Path(folder, "output")
        scratch.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        # With the port that is kept free for it.
        scenario = demo_in(Path(folder, "demo"))
        before, began = Sample.measure(0, scratch, output), time.monotonic()
        samples, rewards, faults = asyncio.run(measured(arguments, scenario, scratch, output))
        seconds = time.monotonic() - began
        after = Sample.measure(arguments.episodes, scratch, output)
        run = runs_in(output)[0]
        counts, findings = read_counts(run), verify_run(run)
        tempfile.tempdir = None
    problems = problems_of(samples, before, after, arguments.keep)
    problems += [f"a reward of {reward}" for reward in rewards if reward != 0]
    problems += list(findings.mismatches)
    if counts is None or (counts.last, number_of(counts.ended)) != (arguments.episodes, arguments.episodes):
        problems.append(f"not {arguments.episodes} episodes are counted: {counts}")
    slope = slope_of(samples[min(WARM_UP, len(samples) - 1) :])
    print(f"{arguments.episodes} episodes in {seconds:.0f} s: {len(rewards)} rewards of 0, {len(faults)} errors")
    growth = "not known how much" if slope is None else f"{slope:.0f} bytes"
    print(f"memory: {samples[-1].rss / 1e6:.0f} MB; {growth} more per episode")
    print(f"left: {after.processes} processes, {after.sockets - before.sockets} sockets, {after.temporary} files")
    print(f"errors: {sorted({fault[:100] for fault in faults})}")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
