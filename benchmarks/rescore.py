"""`wabe score` on 300 trajectories of 10 screenshots against a model with 200 ms latency and 3000 requests a minute.

First a whole pass: throughput against the bound that the limit sets, peak memory, the busiest 60 s as the model saw
them. Then a pass that is killed half-way and started again: no reply that had arrived is asked for again.
Exit code 1 when a target is missed.

    python benchmarks/rescore.py [trajectories, default 300]
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from model_server import model_server, read_stats
from trajectories import make_trajectory

SCREENSHOTS = 10
LATENCY_S = 0.2
PER_MINUTE = 3000
CALLS_PER_TRAJECTORY = SCREENSHOTS + 2
MIN_SHARE = 0.95
MAX_PEAK_MB = 400.0
MAX_CALLS = 64


def start(folder: Path, output: Path, url: str) -> subprocess.Popen[str]:
    wabe = str(Path(sys.executable).parent / "wabe")
    options = ["--model", "openai:bench", "--base-url", f"{url}/v1", "--requests-per-minute", str(PER_MINUTE), "--json"]
    arguments = [wabe, "score", str(folder), *options, "--max-parallel", "24", "--max-calls", str(MAX_CALLS)]
    return subprocess.Popen(
        [*arguments, "--output-dir", str(output)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def peak_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
    return int(line.split()[1]) / 1000


def finish(process: subprocess.Popen[str]) -> tuple[dict[str, Any], float]:
    """The command's summary and its peak memory."""
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, peak_mb(process.pid))
        time.sleep(0.1)
    assert process.stdout is not None
    summary: dict[str, Any] = json.loads(process.stdout.read())
    return summary, peak


def whole_pass(folder: Path, scratch: Path, count: int) -> bool:
    with model_server(LATENCY_S, PER_MINUTE) as url:
        begun = time.monotonic()
        summary, peak = finish(start(folder, scratch / "whole", url))
        wall_s = time.monotonic() - begun
        stats = read_stats(url)
    calls = count * CALLS_PER_TRAJECTORY
    bound_s = calls / PER_MINUTE * 60
    share = bound_s / wall_s
    print(f"{count} trajectories, {stats['requests']} requests (expected {calls}), wall {wall_s:.1f} s")
    used_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(f"throughput {share:.1%} of the bound of {bound_s:.1f} s (target {MIN_SHARE:.0%}), Python's start included")
    print(f"from the first to the last request {stats['span_s']:.1f} s; processor time of all processes {used_s:.1f} s")
    print(f"peak memory {peak:.0f} MB (target {MAX_PEAK_MB:.0f} MB)")
    print(f"busiest 60 s: {stats['busiest_minute']} requests (limit {PER_MINUTE}), refused {stats['refused']}")
    print(f"success {summary['success']}, unscored {summary['unscored']}, broken {summary['broken']}")
    is_within_limits = share >= MIN_SHARE and peak < MAX_PEAK_MB and stats["refused"] == 0
    return is_within_limits and summary["success"] == count and stats["requests"] == calls


def killed_pass(folder: Path, scratch: Path, count: int) -> bool:
    calls = count * CALLS_PER_TRAJECTORY
    output = scratch / "killed"
    with model_server(LATENCY_S, PER_MINUTE) as url:
        process = start(folder, output, url)
        while int(str(read_stats(url)["requests"])) < calls // 2:
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = sum(1 for _ in (output / "cache").rglob("*.json"))
        # The server may still be reading what was sent before the kill.
        time.sleep(2 * LATENCY_S)
        before = int(str(read_stats(url)["requests"]))
        summary, _ = finish(start(folder, output, url))
        stats = read_stats(url)
    after = int(str(stats["requests"])) - before
    paid_twice = after - (calls - kept)
    print(
        f"killed after {before} requests with {kept} replies kept: {before - kept} were under way (at most {MAX_CALLS})"
    )
    print(f"asked after the restart {after}, needed {calls - kept}: {paid_twice} kept replies asked again (target 0)")
    print(f"success {summary['success']}, of these kept from before the kill {summary['kept']}")
    done = paid_twice == 0 and before - kept <= MAX_CALLS
    return done and summary["success"] == count and stats["distinct"] == calls


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folder = scratch / "trajectories"
        for number in range(count):
            make_trajectory(folder, f"t{number:03d}", screenshots=SCREENSHOTS)
        print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        done = whole_pass(folder, scratch, count)
        for verdicts in folder.glob("*/verdicts"):
            shutil.rmtree(verdicts)
        done = killed_pass(folder, scratch, count) and done
    return int(not done)


if __name__ == "__main__":
    sys.exit(main())
