"""Kills a run at random moments and resumes it: finished attempts must stay unchanged, byte for byte.

`python benchmarks/resume.py [--repeats 20] [--kills 1] [--tasks 6] [--epochs 1] [--seed 1]`: the demo's first
tasks with a model judge (a local stand-in that counts what it is asked). In turn the judge, the runner, or both at once
get SIGKILL, or the runner gets Ctrl-C, with several epochs after the first one. A run that is killed several times is
resumed after each kill. Prints one line per kill. Exit code 1 if anything was lost.
"""

import argparse
import contextlib
import hashlib
import itertools
import math
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.llm.servers import Answer, ModelCall, ModelServer, openai_answer
from helpers.runner.commands import FinishedCommand, RunningCommand, command, descendants
from helpers.runner.held_replay import HeldReplay, started_apart
from helpers.scenario.copies import on_free_ports
from shared.files import read_json

MODES = ("judge", "everything", "ctrl-c", "runner")
PARALLEL = 2
ALWAYS_YES = '1. The page is open.\n\nReasoning: it is so.\nScore: 5\n\nThoughts: done.\nStatus: "success"'


@dataclass
class ModelRequests:
    """The requests to the judge model: the time of each answer by the request's digest."""

    answered: dict[str, list[float]] = field(default_factory=dict)

    def plan(self, received: ModelCall, _: int) -> Answer:
        digest = hashlib.sha256(repr(received.body).encode()).hexdigest()
        self.answered.setdefault(digest, []).append(time.monotonic())
        return openai_answer(ALWAYS_YES)

    def paid_twice(self, kills: Sequence[float]) -> int:
        """Requests that were sent again after a kill, though no kill was near when they were answered."""
        return sum(
            any(first < at < again for at in kills) and not any(abs(at - first) < 1.0 for at in kills)
            for times in self.answered.values()
            for first, again in itertools.pairwise(times)
        )


def scenario(count: int) -> str:
    """The demo with free ports, its first tasks and a model judge."""
    demo = ROOT / "scenarios" / "demo"
    head, *tasks = on_free_ports((demo / "scenario.toml").read_text()).split("[[tasks]]")
    head = head.replace("{scenario_dir}", str(demo)).replace(
        'judge_model = "offline"',
        f'judge_model = "openai:judge"\nmax_parallel = {PARALLEL}\njudge_checked_tasks = true',
    )
    return "[[tasks]]".join([head, *tasks[:count]])


def in_all_epochs(run: Path, pattern: str) -> list[Path]:
    """The files of that name in the folders of all tasks."""
    return [*run.glob(f"results/*/{pattern}"), *run.glob(f"epochs/*/results/*/{pattern}")]


def settled(run: Path) -> dict[str, bytes]:
    """Every file of every attempt that has its verdict, by path."""
    settled_files: dict[str, bytes] = {}
    for result in in_all_epochs(run, "result.json"):
        if is_settled(result):
            for path in result.parent.rglob("*"):
                if path.is_file():
                    settled_files[str(path.relative_to(run))] = path.read_bytes()
    return settled_files


def is_settled(result: Path) -> bool:
    return read_json(result)["verdict"] in ("success", "failure")


def wait_until(
    running: RunningCommand, participant: HeldReplay, run: Path, finished: int, steps: int, since: float
) -> None:
    """Wait for this many finished tasks, and this many new steps of a task in flight, if one can have more."""
    while True:
        assert running.process.poll() is None, f"ended early: {running.process.communicate()}"
        done = {path.parent for path in in_all_epochs(run, "result.json") if is_settled(path)}
        in_flight = [path for path in in_all_epochs(run, "steps.jsonl") if path.parent not in done]
        has_steps = any(steps_since(since, path) >= steps for path in in_flight)
        if len(done) >= finished and (has_steps or participant.waiting == PARALLEL):
            return
        time.sleep(0.03)


def steps_since(since: float, path: Path) -> int:
    """How many steps an attempt has; 0 if a kill interrupted it, because it is moved away when it is run again."""
    try:
        return path.read_bytes().count(b"\n") if path.stat().st_mtime > since else 0
    except FileNotFoundError:
        return 0


def strike(running: RunningCommand, mode: str) -> None:
    """SIGKILL, or Ctrl-C."""
    if mode == "ctrl-c":
        running.interrupt()
        return
    judge = list(running.descendants("wabe serve"))
    everyone = [pid for pid, line in descendants(running.process.pid).items() if "wabe" in line and "mcp" not in line]
    targets = {"judge": judge, "runner": [running.process.pid], "everything": [running.process.pid, *everyone]}[mode]
    assert targets, "nothing to kill"
    for pid in targets:
        # Some end by themselves when the process that started them is gone.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Kill:
    """The state when a run was killed: the files of finished attempts, and the folders of interrupted ones."""

    mode: str
    at: float
    before: dict[str, bytes]
    interrupted: set[Path]
    command: FinishedCommand

    @property
    def resume_command(self) -> list[str] | None:
        """The command that resumes the run, if the runner lived to print it."""
        matches = re.findall(
            r"resume with: (.+?)\)?$", self.command.stdout + self.command.stderr, re.IGNORECASE | re.MULTILINE
        )
        return matches[-1].split() if matches else None


def killed_run(folder: Path, modes: Sequence[str], tasks: int, epochs: int, rng: random.Random) -> list[dict[str, Any]]:
    """One run, killed and resumed once for each mode, with what was found."""
    requests = ModelRequests()
    path = folder / "scenario.toml"
    with ModelServer(requests.plan) as model, started_apart(folder / "apart", scenario(tasks)) as (text, participant):
        path.write_text(text)
        return _killed_run(path, participant, modes, tasks, epochs, rng, model, requests)


def _killed_run(
    path: Path,
    participant: HeldReplay,
    modes: Sequence[str],
    tasks: int,
    epochs: int,
    rng: random.Random,
    model: ModelServer,
    requests: ModelRequests,
) -> list[dict[str, Any]]:
    out, temp = path.with_name("out"), path.with_name("t")
    words = started = ["agentbeats-run", path, "--output-dir", out, "--epochs", str(epochs)]
    # With several epochs, not in the first one.
    possible = range(0 if epochs == 1 else tasks, tasks * epochs - PARALLEL + 1)
    env = {"OPENAI_API_KEY": "sk-no-key", "OPENAI_BASE_URL": f"{model.url}/v1"}
    kills = []
    when = sorted(rng.choices(possible, k=len(modes)))
    for mode, already, finished in zip(modes, [0, *when], when, strict=False):
        since = time.time()
        # Limited, so that the run is not over when it is killed.
        participant.let_end(finished - already)
        with command(temp, *words, env=env) as running:
            run = running.wait_for_file(out, "runs/*")
            wait_until(running, participant, run, finished, steps=rng.randrange(1, 4), since=since)
            killed_at, before, interrupted = time.monotonic(), settled(run), set(in_all_epochs(run, "attempts/*"))
            strike(running, mode)
            kills.append(Kill(mode, killed_at, before, interrupted, running.end()))
        named = [run.name] if rng.random() < 0.5 else []
        words = kills[-1].resume_command or [*started, "--resume", *named]
    participant.let_end(math.inf)
    with command(temp, *words, env=env) as running:
        last = running.end(300)
    interrupted_later = [*(kill.interrupted for kill in kills[1:]), set(in_all_epochs(run, "attempts/*"))]
    findings = [
        _findings(run, kill, later - kill.interrupted) for kill, later in zip(kills, interrupted_later, strict=True)
    ]
    findings[-1]["seconds"] += round(last.seconds)
    paid_twice = requests.paid_twice([kill.at for kill in kills])
    findings[-1]["problems"] |= _problems_of_the_end(run, last, tasks * epochs, paid_twice)
    return findings


def _findings(run: Path, kill: Kill, interrupted: set[Path]) -> dict[str, Any]:
    finished = {name.partition("/result.json")[0] for name in kill.before if name.endswith("/result.json")}
    again = {str(path.parent.parent.relative_to(run)) for path in interrupted}
    problems = {
        "changed": [name for name, data in kill.before.items() if not same(run / name, data)],
        "run again though finished": sorted(again & finished),
        "more than those in flight run again": sorted(again) if len(interrupted) > PARALLEL else [],
        "no word on how to go on": []
        if kill.resume_command or kill.mode not in ("judge", "ctrl-c")
        else [kill.command.stdout[-500:], kill.command.stderr[-500:]],
        "exit code of Ctrl-C": [str(kill.command.code)] if kill.mode == "ctrl-c" and kill.command.code != 130 else [],
        "left running": list(kill.command.left_processes.values()),
    }
    return {
        "mode": kill.mode,
        "finished before": len(finished),
        "run again": len(again),
        "seconds": round(kill.command.seconds),
        "problems": {name: values for name, values in problems.items() if values},
    }


def _problems_of_the_end(run: Path, last: FinishedCommand, attempts: int, paid_twice: int) -> dict[str, list[str]]:
    detail = read_json(run / "results.json")["results"][0]["detail"] if (run / "results.json").exists() else {}
    scored = detail.get("scored_attempts")
    problems = {
        "not finished": [] if scored == attempts else [str(scored), last.stderr],
        "paid for twice": [str(paid_twice)] if paid_twice else [],
        "exit code": [] if last.code == 0 else [str(last.code), last.stdout[-500:], last.stderr[-500:]],
        "left running at the end": list(last.left_processes.values()),
    }
    return {name: values for name, values in problems.items() if values}


def same(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="how many runs")
    parser.add_argument("--kills", type=int, default=1, help="how often each run is killed")
    parser.add_argument("--tasks", type=int, default=6, help="how many of the demo's tasks, 3 at least in one epoch")
    parser.add_argument("--epochs", type=int, default=1, help="how often each is run")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    in_turn = itertools.cycle(MODES)
    lost = 0
    print("run  killed      finished before  run again  seconds  problems")
    for repeat in range(arguments.repeats):
        folder = Path(tempfile.mkdtemp(prefix="kr"))
        modes = list(itertools.islice(in_turn, arguments.kills))
        kills = killed_run(folder, modes, arguments.tasks, arguments.epochs, rng)
        for row in kills:
            problems_text = re.sub(r"\s+", " ", str(row["problems"])) if row["problems"] else "none"
            print(
                f"{repeat + 1:3}  {row['mode']:10}  {row['finished before']:15}  {row['run again']:9}"
                f"  {row['seconds']:7}  {problems_text}",
                flush=True,
            )
        has_problems = any(row["problems"] for row in kills)
        lost += has_problems
        if not has_problems:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{arguments.repeats - lost} of {arguments.repeats} resumed with nothing lost")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
