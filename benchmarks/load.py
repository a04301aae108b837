"""Plays eight tasks at once for a given time, and checks that nothing grows or slows down.

`python benchmarks/load.py [--minutes 30] [--parallel 8]`: the judge as a process of its own, real browsers, a
website and a participant on loopback, judged by a check. Prints a row every half minute (memory of the judge and of
everything it started, processes, file handles, steps, time per step), compares the second quarter with the last one,
cancels the run, and reports leftovers. Exit code 1 if something grew or was left.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.ports import free_ports
from helpers.runner.commands import BIN, adopt_descendants, descendants, listening
from shared.a2a.client import AssessmentClient

SAMPLE_S = 5.0
ROW_S = 30.0
STEPS = 15
# The limits for flat: the last quarter against the second one (the first one warms up).
GROWTH = {"judge MB": 1.10, "all MB": 1.15, "processes": 1.10, "handles": 1.10, "s per step": 1.15}
# A run keeps half a kB per step of a finished task. Step records would take 4.5 kB, which a ratio would show only after
# a long time. The records of running episodes come and go, which is the noise.
STEP_KB = 2.0
NOISE_MB = 2.0
PLAYER = """
from participants.base import Action, serve
KINDS = ('link', 'button', 'textbox')
async def decide(seen):
    if seen.step >= {steps}:
        return Action(tool='finish', params={{'answer': 'seen'}})
    lines = [line for line in seen.page.snapshot.splitlines() if '[ref=' in line]
    kind = KINDS[seen.step % 3]
    found = [line for line in lines if line.strip().startswith('- ' + kind)]
    if seen.page.dialog:
        return Action(tool='browser_handle_dialog', params={{'accept': False}})
    if seen.step % 4 == 3 or not found:
        return Action(tool='browser_scroll', params={{'direction': 'down' if seen.step % 8 else 'up'}})
    ref = found[(seen.step * 7) % len(found)].partition('[ref=')[2].partition(']')[0]
    if kind == 'textbox':
        return Action(tool='browser_type', params={{'target': ref, 'text': 'lamp', 'submit': True}})
    return Action(tool='browser_click', params={{'target': ref}})
serve(decide, name='load', port={port})
"""


@dataclass
class Sample:
    """One sample: seconds since the start, and the measurements."""

    at: float
    values: dict[str, float]


@dataclass
class Watch:
    """Looks at the judge's process and at what the run wrote since the last look."""

    pid: int
    run: Path
    offsets: dict[Path, int] = field(default_factory=dict)
    done: int = 0
    samples: list[Sample] = field(default_factory=list)

    def look(self, at: float) -> Sample:
        family = [self.pid, *descendants(self.pid)]
        spent = self._new_steps()
        values = {
            "judge MB": rss_mb(self.pid),
            "all MB": sum(pss_mb(pid) for pid in family),
            "processes": len(family),
            "handles": len(list(Path(f"/proc/{self.pid}/fd").iterdir())),
            "steps": len(spent),
        }
        if spent:
            values["s per step"] = statistics.fmean(spent)
        self.samples.append(Sample(at, values))
        return self.samples[-1]

    def _new_steps(self) -> list[float]:
        """Seconds that the judge and its browser took for each step since the last look."""
        spent: list[float] = []
        for path in self.run.glob("results/*/steps.jsonl"):
            with path.open("rb") as stream:
                stream.seek(self.offsets.get(path, 0))
                data = stream.read()
            whole = data[: data.rfind(b"\n") + 1]
            self.offsets[path] = self.offsets.get(path, 0) + len(whole)
            for line in whole.splitlines():
                timings = json.loads(line)["timings"]
                spent.append(timings["observe_s"] + timings["act_s"])
        return spent


def rss_mb(pid: int) -> float:
    return proc_kb(Path(f"/proc/{pid}/status"), "VmRSS:") / 1024


def pss_mb(pid: int) -> float:
    """Memory with shared pages divided by their sharers, so that processes can be added up."""
    return proc_kb(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") / 1024


def proc_kb(path: Path, name: str) -> int:
    try:
        return next(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(name))
    except (OSError, StopIteration):
        return 0


@contextmanager
def process(log: Path, *command: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its words in a file, ended with the body."""
    known = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), **environ}
    with log.open("wb") as stream:
        running = subprocess.Popen(command, env=known, stdout=stream, stderr=stream, start_new_session=True)
    try:
        yield running
    finally:
        running.terminate()
        running.wait(60)


def until_listening(*ports: int) -> None:
    until = time.monotonic() + 60
    while not all(listening(port) for port in ports):
        assert time.monotonic() < until, "something did not start"
        time.sleep(0.05)


def request(participant: int, site: int, parallel: int) -> str:
    task = {"website": f"http://127.0.0.1:{site}/", "task": "Open the cart.", "level": "easy"}
    task["checks"] = [{"kind": "page", "url": "/cart"}]
    tasks = [{**task, "task_id": f"t{number:04d}"} for number in range(1000)]
    config = {"judge_model": "offline", "max_parallel": parallel, "max_steps": STEPS + 1, "run_id": "load"}
    participants = {"white_agent": f"http://127.0.0.1:{participant}/"}
    return json.dumps({"participants": participants, "config": {**config, "tasks": tasks}})


async def drive(url: str, text: str, watch: Watch, seconds: float) -> None:
    """Ask for the assessment, look again and again, cancel it when the time is up."""
    async with AssessmentClient(url) as client:

        async def follow() -> None:
            async with aclosing(client.run(text)) as events:
                async for _ in events:
                    pass

        following = asyncio.create_task(follow())
        began = time.monotonic()
        print("minute  judge MB  all MB  processes  handles  steps/s  s per step")
        row: list[Sample] = []
        while (now := time.monotonic() - began) < seconds and not following.done():
            await asyncio.sleep(SAMPLE_S)
            row.append(watch.look(now))
            if len(row) * SAMPLE_S >= ROW_S:
                print_row(row)
                row = []
        await client.cancel()
        await following


def print_row(row: list[Sample]) -> None:
    mean = {name: mean_of(row, name) for name in (*GROWTH, "steps")}
    rate = mean["steps"] / SAMPLE_S
    print(
        f"{row[-1].at / 60:6.1f}  {mean['judge MB']:8.1f}  {mean['all MB']:6.0f}  {mean['processes']:9.1f}"
        f"  {mean['handles']:7.1f}  {rate:7.2f}  {mean['s per step']:10.3f}",
        flush=True,
    )


def mean_of(samples: list[Sample], name: str) -> float:
    values = [sample.values[name] for sample in samples if name in sample.values]
    return statistics.fmean(values) if values else 0.0


def growth(samples: list[Sample]) -> list[str]:
    """Measurements that grew more than allowed, the last quarter against the second one. Prints a line for each."""
    quarter = len(samples) // 4
    second, last = samples[quarter : 2 * quarter], samples[3 * quarter :]
    grown = []
    for name, allowed in GROWTH.items():
        before, after = mean_of(second, name), mean_of(last, name)
        ratio = after / before if before else 0.0
        print(
            f"{name:10}  second quarter {before:8.2f}  last quarter {after:8.2f}  ratio {ratio:.3f}, at most {allowed}"
        )
        if not 0 < ratio <= allowed:
            grown.append(f"{name}: {ratio:.3f}")
    steps = sum(sample.values["steps"] for sample in samples[quarter + quarter // 2 : 3 * quarter + quarter // 2])
    more, most = mean_of(last, "judge MB") - mean_of(second, "judge MB"), NOISE_MB + STEP_KB * steps / 1024
    print(f"judge's memory: {more:+.1f} MB in {steps:.0f} steps, at most {most:.1f}")
    return grown if more <= most else [*grown, f"judge's memory: {more:+.1f} MB in {steps:.0f} steps"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--parallel", type=int, default=8)
    arguments = parser.parse_args()
    adopt_descendants()
    site, participant, judge = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="ld") as name:
        folder = Path(name)
        temp = folder / "t"
        temp.mkdir()
        demo = str(ROOT / "scenarios" / "demo" / "site.py")
        player = PLAYER.format(steps=STEPS, port=participant)
        serve = (str(BIN / "wabe"), "serve", "--port", str(judge), "--output-dir", str(folder / "out"))
        with (
            process(folder / "site.log", sys.executable, demo, "--port", str(site)),
            process(folder / "player.log", sys.executable, "-c", player),
            process(folder / "judge.log", *serve, TMPDIR=str(temp), HOME=name, WABE_TRUST_CONFIG="1") as server,
        ):
            until_listening(site, participant, judge)
            idle = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
            watch = Watch(server.pid, folder / "out" / "runs" / "load")
            text = request(participant, site, arguments.parallel)
            asyncio.run(drive(f"http://127.0.0.1:{judge}/", text, watch, arguments.minutes * 60))
            problems = growth(watch.samples)
            problems += tasks_of(folder / "out" / "runs" / "load")
            time.sleep(2)
            left = descendants(server.pid)
            handles = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
            print(f"cancelled: {len(left)} processes, {handles} handles ({idle} before), {left_in(temp)} files left")
            problems += [f"left running: {line}" for line in left.values()]
            problems += ["files left behind"] if left_in(temp) else []
            problems += [f"handles: {idle} before, {handles} after"] if handles > idle + 8 else []
    print("flat" if not problems else f"not flat: {'; '.join(problems)}")
    return 1 if problems else 0


def tasks_of(run: Path) -> list[str]:
    outcomes: dict[str, int] = {}
    for path in run.glob("results/*/result.json"):
        verdict = json.loads(path.read_text())["verdict"]
        outcomes[verdict] = outcomes.get(verdict, 0) + 1
    print(f"tasks done: {outcomes}")
    return [f"{outcomes['aborted']} aborted tasks"] if outcomes.get("aborted") else []


def left_in(temp: Path) -> int:
    return sum(1 for _ in temp.iterdir())


if __name__ == "__main__":
    sys.exit(main())
