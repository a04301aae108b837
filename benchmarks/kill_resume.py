"""Kills a run outright, at random moments, and resumes it: what was finished must stay as it is, byte for byte.

`python benchmarks/kill_resume.py [--repeats 20] [--tasks 6] [--epochs 1] [--seed 1]`: the demo's first tasks with a
model judge (a local stand-in that counts what it is asked). In turn the judge, the runner, or all at once get SIGKILL,
with several epochs after the first one. Prints one line a repeat and ends with 1 when anything was lost.
"""

import argparse
import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.llm.servers import Answer, ModelCall, ModelServer, openai_answer  # noqa: E402
from helpers.ports import free_port  # noqa: E402
from helpers.runner.commands import FinishedCommand, RunningCommand, command, descendants  # noqa: E402
from shared.files import read_json  # noqa: E402

MODES = ("judge", "runner", "everything")
PARALLEL = 2
ALWAYS_YES = '1. The page is open.\n\nReasoning: it is so.\nScore: 5\n\nThoughts: done.\nStatus: "success"'


@dataclass
class Asked:
    """What the judge model was asked: the time of each answer by the request's digest."""

    answered: dict[str, list[float]] = field(default_factory=dict)

    def plan(self, received: ModelCall, _: int) -> Answer:
        digest = hashlib.sha256(repr(received.body).encode()).hexdigest()
        self.answered.setdefault(digest, []).append(time.monotonic())
        return openai_answer(ALWAYS_YES)

    def paid_twice(self, killed_at: float) -> int:
        """Requests answered well before the kill that were sent again after it."""
        early = killed_at - 1.0
        return sum(times[0] < early and times[-1] > killed_at for times in self.answered.values())


def scenario(folder: Path, count: int) -> Path:
    """The demo with free ports, its first tasks and a model judge."""
    demo = ROOT / "scenarios" / "demo"
    text = (demo / "scenario.toml").read_text()
    for port in ("9009", "9019", "9180"):
        text = text.replace(port, str(free_port()))
    head, *tasks = text.split("[[tasks]]")
    head = head.replace("{scenario_dir}", str(demo)).replace(
        'judge_model = "offline"',
        f'judge_model = "openai:judge"\nmax_parallel = {PARALLEL}\njudge_checked_tasks = true',
    )
    path = folder / "scenario.toml"
    path.write_text("[[tasks]]".join([head, *tasks[:count]]))
    return path


def in_all_epochs(run: Path, pattern: str) -> list[Path]:
    """The files of that name in the folders of all tasks."""
    return [*run.glob(f"results/*/{pattern}"), *run.glob(f"epochs/*/results/*/{pattern}")]


def settled(run: Path) -> dict[str, bytes]:
    """Every file of every attempt that has its verdict, by path."""
    found: dict[str, bytes] = {}
    for result in in_all_epochs(run, "result.json"):
        if is_settled(result):
            for path in result.parent.rglob("*"):
                if path.is_file():
                    found[str(path.relative_to(run))] = path.read_bytes()
    return found


def is_settled(result: Path) -> bool:
    return read_json(result)["verdict"] in ("success", "failure")


def wait_until(running: RunningCommand, run: Path, finished: int, steps: int) -> None:
    """Until so many tasks are finished and some task in flight has so many steps; or the run is over."""
    until = time.monotonic() + 120
    while running.process.poll() is None and time.monotonic() < until:
        done = {path.parent for path in in_all_epochs(run, "result.json") if is_settled(path)}
        in_flight = [path for path in in_all_epochs(run, "steps.jsonl") if path.parent not in done]
        if len(done) >= finished and any(path.read_bytes().count(b"\n") >= steps for path in in_flight):
            return
        time.sleep(0.005)


def strike(running: RunningCommand, mode: str) -> None:
    """SIGKILL."""
    judge = list(running.descendants("wabe serve"))
    everyone = [pid for pid, line in descendants(running.process.pid).items() if "wabe" in line and "mcp" not in line]
    targets = {"judge": judge, "runner": [running.process.pid], "everything": [running.process.pid, *everyone]}[mode]
    assert targets, "nothing to kill"
    for pid in targets:
        # Some end by themselves when the process that started them is gone.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def once(folder: Path, mode: str, tasks: int, epochs: int, rng: random.Random) -> dict[str, Any]:
    """One kill and one resumption, with what was found."""
    asked = Asked()
    model = ModelServer(asked.plan)
    model.start()
    try:
        return _once(folder, mode, tasks, epochs, rng, model, asked)
    finally:
        model.stop()


def _once(
    folder: Path, mode: str, tasks: int, epochs: int, rng: random.Random, model: ModelServer, asked: Asked
) -> dict[str, Any]:
    path, out, temp = scenario(folder, tasks), folder / "out", folder / "t"
    started = ["agentbeats-run", path, "--output-dir", out, "--epochs", str(epochs)]
    # With several epochs, not in the first one.
    finished = rng.randrange(0 if epochs == 1 else tasks, tasks * epochs - PARALLEL)
    env = {"OPENAI_API_KEY": "sk-no-key", "OPENAI_BASE_URL": f"{model.url}/v1"}
    with command(temp, *started, env=env) as running:
        run = running.wait_for_file(out, "runs/*")
        wait_until(running, run, finished=finished, steps=rng.randrange(1, 4))
        killed_at, before = time.monotonic(), settled(run)
        strike(running, mode)
        first = running.end()
    resumption = [*started, "--resume", *([run.name] if rng.random() < 0.5 else [])]
    with command(temp, *resumption, env=env) as running:
        second = running.end(300)
    return _findings(run, first, second, before, asked.paid_twice(killed_at), mode, tasks * epochs)


def _findings(
    run: Path,
    first: FinishedCommand,
    second: FinishedCommand,
    before: dict[str, bytes],
    paid_twice: int,
    mode: str,
    attempts: int,
) -> dict[str, Any]:
    detail = read_json(run / "results.json")["results"][0]["detail"] if (run / "results.json").exists() else {}
    kept = {name.partition("/result.json")[0] for name in before if name.endswith("/result.json")}
    again = {str(path.parent.parent.relative_to(run)) for path in in_all_epochs(run, "attempts/*")}
    problems = {
        "changed": [name for name, data in before.items() if not same(run / name, data)],
        "run again though finished": sorted(again & kept),
        "more than those in flight run again": sorted(again) if len(again) > PARALLEL else [],
        "paid for twice": [str(paid_twice)] if paid_twice else [],
        "not finished": []
        if detail.get("scored_attempts") == attempts
        else [str(detail.get("scored_attempts")), second.stderr],
        "exit code": [] if second.code == 0 else [str(second.code), second.stdout[-500:], second.stderr[-500:]],
        "no word on how to go on": [] if mode != "judge" or "--resume" in first.stdout else [first.stdout[-500:]],
        "left running": [*first.left_processes.values(), *second.left_processes.values()],
    }
    return {
        "mode": mode,
        "finished before": len(kept),
        "run again": len(again),
        "seconds": round(first.seconds + second.seconds),
        "problems": {name: found for name, found in problems.items() if found},
    }


def same(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=6, help="how many of the demo's tasks, 3 at least")
    parser.add_argument("--epochs", type=int, default=1, help="how often each is run")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    lost = 0
    print("repeat  killed      finished before  run again  seconds  problems")
    for repeat in range(arguments.repeats):
        folder = Path(tempfile.mkdtemp(prefix="kr"))
        found = once(folder, MODES[repeat % len(MODES)], arguments.tasks, arguments.epochs, rng)
        lost += bool(found["problems"])
        said = re.sub(r"\s+", " ", str(found["problems"])) if found["problems"] else "none"
        print(
            f"{repeat + 1:6}  {found['mode']:10}  {found['finished before']:15}  {found['run again']:9}"
            f"  {found['seconds']:7}  {said}",
            flush=True,
        )
        if not found["problems"]:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{arguments.repeats - lost} of {arguments.repeats} resumed with nothing lost")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
