"""24 tasks in 6 shards on a local Ray, one worker killed with SIGKILL in the middle, against the run without shards.

`python benchmarks/ray_shards.py [--shards 6] [--tasks 24]`: the demo's tasks, some of them twice under another id. Each
shard plays two tasks at once, so that two workers share two cores. Compared are ids, verdicts and action lines; what
was settled when the worker was killed must be the same files afterwards. Ends with 1 when something differs.
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

from helpers.runner.commands import command, ray_worker_of, run_command  # noqa: E402
from helpers.scenario.copies import scenario_on_free_ports  # noqa: E402

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
    found = [json.loads(path.read_text()) for path in results.glob("*/result.json")]
    return {one["task_id"]: (one["verdict"], one["action_history"]) for one in found}


def digests(results: Path) -> dict[str, str]:
    """Digests of the trajectories by task."""
    found = [json.loads(path.read_text()) for path in results.glob("*/result.json")]
    return {one["task_id"]: one["trajectory_sha256"] for one in found if one["verdict"]}


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
            settled: list[Path] = []
            while len(settled) < arguments.tasks // 3:
                time.sleep(0.05)
                settled = sorted(
                    folder.glob("ray/runs/*/shards/*/results/*/result.json"), key=lambda path: path.stat().st_mtime
                )
            # The shard of the newest result, which is still being played unless that was its last one.
            shard, worker = None, 0
            for path in reversed(settled):
                try:
                    shard = path.parents[2]
                    worker = ray_worker_of(running.process.pid, int(shard.name[:3]))
                    break
                except AssertionError:
                    continue
            assert shard is not None
            os.kill(worker, signal.SIGKILL)
            before = {path.parents[2].name: digests(path.parents[1]) for path in settled}
            ended = running.end(1_800)
        ray_s = time.monotonic() - begun
        expected, found = outcomes(folder / "whole" / "results"), outcomes(folder / "ray" / "results")
        after = {
            path.parents[1].parent.name: digests(path.parents[1])
            for path in folder.glob("ray/runs/*/shards/*/results/*/result.json")
        }
        attempts = sorted(path for path in folder.glob("ray/runs/*/shards/*/results/*/attempts/*"))
        verified = run_command(temp, "wabe", "verify", "latest", "--output-dir", folder / "ray")
        kept = all(after[name].items() >= known.items() for name, known in before.items())
        print(ended.stdout)
        print(f"without shards: {len(expected)} tasks, exit code {whole.code}, {whole_s:.0f} s")
        print(f"Ray, {arguments.shards} shards: {len(found)} tasks, exit code {ended.code}, {ray_s:.0f} s")
        print(f"killed the worker of shard {shard.name} after {len(settled)} tasks")
        print(f"ids, verdicts and actions equal: {found == expected}")
        print(f"settled tasks kept as they were: {kept}; attempts played again: {len(attempts)}")
        print(
            f"  of {', '.join(path.parents[1].name for path in attempts) or 'none'}; at most {SLOTS} were being played"
        )
        print(f"wabe verify: exit code {verified.code}; left behind: {len(ended.left_processes)} processes")
    is_equal = found == expected and kept and len(attempts) <= int(SLOTS)
    return int(not (is_equal and ended.code == whole.code and verified.code == 0 and not ended.left_processes))


if __name__ == "__main__":
    sys.exit(main())
