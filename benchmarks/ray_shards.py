"""24 tasks in 6 shards on a local Ray, one worker killed with SIGKILL in the middle, against the run without shards.

`python benchmarks/ray_shards.py [--shards 6] [--tasks 24]`: the demo's tasks, some of them twice under another id. Each
shard plays two tasks at once, so that two workers share two cores. Compares ids, verdicts and action lines; the files
of tasks that were settled when the worker was killed must not change. Exit code 1 if something differs.
"""

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.runner.commands import command, ray_worker_of, run_command
from helpers.scenario.copies import scenario_on_free_ports

SLOTS = "2"


def write_scenario(folder: Path, count: int) -> Path:
    """The demo with `count` tasks: as many copies as needed, under ids of their own."""
    path = scenario_on_free_ports("demo", folder)
    head, *tasks = re.split(r"(?m)^(?=\[\[tasks\]\])", path.read_text())
    chosen = []
    for number in range(count):
        copy, place = divmod(number, len(tasks))
        suffix = f"_copy{copy}" if copy else ""
        chosen.append(re.sub(r'(?m)^task_id = "(.*)"', rf'task_id = "\g<1>{suffix}"', tasks[place]))
    path.write_text(head + "".join(chosen))
    return path


def outcomes(results: Path) -> dict[str, object]:
    """Verdict and action lines by task."""
    documents = [json.loads(path.read_text()) for path in results.glob("*/result.json")]
    return {one["task_id"]: (one["verdict"], one["action_history"]) for one in documents}


def digests(results: Path) -> dict[str, str]:
    """Digests of the trajectories by task."""
    documents = [json.loads(path.read_text()) for path in results.glob("*/result.json")]
    return {one["task_id"]: one["trajectory_sha256"] for one in documents if one["verdict"]}


def busy_shard(output: Path, settled: int) -> tuple[Path, list[str]]:
    """A shard that has settled a task and plays others, and which, once so many tasks of the run are settled."""
    while True:
        time.sleep(0.02)
        if len(list(output.glob("runs/*/shards/*/results/*/result.json"))) < settled:
            continue
        for shard in output.glob("runs/*/shards/*"):
            tasks = list(shard.glob("results/*"))
            playing = [task.name for task in tasks if not (task / "result.json").exists()]
            # Not only started: a step is on disk.
            if 0 < len(playing) < len(tasks) and all(
                (shard / "results" / name / "steps.jsonl").exists() for name in playing
            ):
                return shard, playing


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--tasks", type=int, default=24)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="wabe-ray-") as scratch:
        folder = Path(scratch)
        scenario, temp = write_scenario(folder, arguments.tasks), folder / "t"
        begun = time.monotonic()
        whole = run_command(temp, "wabe", "run", scenario, "--max-parallel", "4", "--output-dir", folder / "whole")
        whole_s = time.monotonic() - begun
        begun = time.monotonic()
        options = ("--engine", "ray", "--shards", str(arguments.shards), "--max-parallel", SLOTS)
        with command(temp, "wabe", "run", scenario, *options, "--output-dir", folder / "ray") as running:
            shard, playing = busy_shard(folder / "ray", arguments.tasks // 3)
            worker = ray_worker_of(running.process.pid, int(shard.name[:3]))
            before = {path.parent.name: digests(path) for path in folder.glob("ray/runs/*/shards/*/results")}
            os.kill(worker, signal.SIGKILL)
            completed = running.end(1_800)
        ray_s = time.monotonic() - begun
        expected, actual = outcomes(folder / "whole" / "results"), outcomes(folder / "ray" / "results")
        after = {path.parent.name: digests(path) for path in folder.glob("ray/runs/*/shards/*/results")}
        attempts = sorted(path for path in folder.glob("ray/runs/*/shards/*/results/*/attempts/*"))
        verified = run_command(temp, "wabe", "verify", "latest", "--output-dir", folder / "ray")
        is_kept = all(after[name].items() >= known.items() for name, known in before.items())
        print(completed.stdout)
        print(f"without shards: {len(expected)} tasks, exit code {whole.code}, {whole_s:.0f} s")
        print(f"Ray, {arguments.shards} shards: {len(actual)} tasks, exit code {completed.code}, {ray_s:.0f} s")
        known = sum(map(len, before.values()))
        print(f"killed the worker of shard {shard.name} after {known} tasks, while it played {', '.join(playing)}")
        print(f"ids, verdicts and actions equal: {actual == expected}")
        again = [path.parents[1].name for path in attempts]
        print(f"settled tasks kept as they were: {is_kept}; played again: {', '.join(again) or 'none'}")
        print(f"wabe verify: exit code {verified.code}; left behind: {len(completed.left_processes)} processes")
    is_equal = actual == expected and is_kept and 1 <= len(again) <= int(SLOTS) and not {*again} & {*before[shard.name]}
    return int(not (is_equal and completed.code == whole.code and verified.code == 0 and not completed.left_processes))


if __name__ == "__main__":
    sys.exit(main())
