"""Kills a matrix twice and resumes it: its verdicts must equal an undisturbed one's, with nothing played twice.

`python benchmarks/resume matrix [--limit N] [--epochs 2] [--seed 1]`: a fresh `wabe new-agent`, the replay and the
random participant on copies of `demo` and `miniwob` on free ports. The matrix alone gets SIGKILL, then the matrix with
everything below it. Prints a line per cell. Exit code 1 if anything differs.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.runner.commands import RunningCommand, command, descendants
from helpers.scenario.copies import scenario_on_free_ports
from shared.files import read_json

KILLS = ("the matrix", "everything")


def attempts(out: Path) -> dict[str, tuple[str, str]]:
    """When every attempt that has its verdict began, and the verdict, by path.

    Not the whole file: an attempt whose judge was killed between two of its writes is judged again, but not played.
    """
    paths = [*out.glob("runs/*/results/*/result.json"), *out.glob("runs/*/epochs/*/results/*/result.json")]
    documents = {str(path.relative_to(out)): json.loads(path.read_bytes()) for path in paths}
    return {
        path: (result["times"]["started_at"], result["verdict"])
        for path, result in documents.items()
        if result["verdict"] in ("success", "failure")
    }


def strike(running: RunningCommand, what: str) -> None:
    """SIGKILL to the matrix; for everything, to whatever it has started as well."""
    pids = [running.process.pid, *(descendants(running.process.pid) if what == "everything" else ())]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def killed(words: Sequence[str | Path], folder: Path, total: int, rng: random.Random) -> list[str]:
    """Play the matrix in `folder/killed`, killing it twice. Returns problems."""
    out, problems = folder / "killed", []
    for what, finished in zip(KILLS, sorted(rng.choices(range(1, total), k=len(KILLS))), strict=True):
        # Nobody reads what it prints until it ends.
        more = ["--display", "none", *(["--resume"] if out.exists() else [])]
        with command(folder / "t", *words, "--output-dir", out, *more, cwd=folder) as running:
            while len(attempts(out)) < finished:
                if running.process.poll() is not None:
                    return [f"ended early: {running.end()}"]
                time.sleep(0.05)
            before = attempts(out)
            strike(running, what)
            running.end()
        print(f"killed {what} after {len(before)} of {total} attempts", flush=True)
        problems += [
            f"changed after a kill: {name}" for name, data in before.items() if attempts(out).get(name) != data
        ]
    attempts_before = attempts(out)
    with command(folder / "t", *words, "--output-dir", out, "--resume", cwd=folder) as running:
        last = running.end(3000)
    print(last.stdout[-2500:])
    problems += [f"played again: {name}" for name, data in attempts_before.items() if attempts(out).get(name) != data]
    return problems + ([] if last.code == 0 else [f"exit code {last.code}: {last.stderr[-500:]}"])


def results(out: Path) -> dict[str, dict[str, str]]:
    """The verdict of each attempt, by cell and by task and epoch. Steps may differ: a page may be slower once."""
    (path,) = (out / "matrices").glob("*.json")
    outcomes = {}
    for cell in read_json(path)["cells"]:
        detail = read_json(out / "runs" / cell["run_id"] / "results.json")["results"][0]["detail"]
        outcomes[f"{cell['scenario']} × {cell['agent']}"] = {
            f"{task['task_id']}#{task.get('epoch', 1)}": task["verdict"] for task in detail["tasks"]
        }
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=1000, help="how many tasks of each set")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=["demo", "miniwob"])
    parser.add_argument("--agents", nargs="+", default=["./mine", "replay", "random"])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mr"))
    with command(folder / "t", "wabe", "new-agent", folder / "mine") as new_agent:
        new_agent.end()
    paths = [scenario_on_free_ports(name, folder) for name in options.sets]
    agents = [word for agent in options.agents for word in ("--agent", agent)]
    numbers = ["--epochs", str(options.epochs), "--limit", str(options.limit)]
    words = ["wabe", "run", *paths, *agents, *numbers]
    with command(folder / "t", *words, "--output-dir", folder / "undisturbed", cwd=folder) as running:
        completed = running.end(3000)
    if completed.code != 0:
        print(completed.stdout[-3000:], completed.stderr[-3000:])
        return 1
    total = len(attempts(folder / "undisturbed"))
    problems = killed(words, folder, total, random.Random(options.seed))
    expected, actual = results(folder / "undisturbed"), results(folder / "killed")
    for cell, tasks in expected.items():
        differing = {key: (each, actual[cell].get(key)) for key, each in tasks.items() if actual[cell].get(key) != each}
        problems += [f"{cell}: {key}: {both}" for key, both in differing.items()]
        solved = sum(verdict == "success" for verdict in tasks.values())
        print(f"{cell}: {solved} of {len(tasks)} attempts solved; {len(differing)} differ")
    runs = len(list((folder / "killed" / "runs").iterdir()))
    problems += [] if runs == len(expected) else [f"{runs} runs for {len(expected)} cells"]
    for problem in problems:
        print(problem)
    print(f"{total} attempts, killed twice: {'equal to undisturbed' if not problems else 'not equal'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
