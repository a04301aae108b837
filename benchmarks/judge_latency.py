"""The time from the last action to the verdict, in units of the model's answering time L.

Measured: the streaming judge (every screenshot sent as it comes, the participant thinking for L between steps), and
`wabe score` on one finished trajectory with 15 screenshots, as a function and as the whole command. Targets: 1.1 L and
3.2 L. The command also has a start-up (and an end) that does not depend on L, most of it the import of the model SDK:
it may take 3 times as long as `import openai` alone, and it prints from which L on the command stays within 3.2 L.
Exit code 1 when a target is missed.

    python benchmarks/judge_latency.py [L in seconds, default 8] [rounds, default 3]
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from judge.config import RunConfig
from judge.judges.factory import open_judge
from judge.judges.rescoring import judge_stored
from judge.store import load_trajectory
from judge.store.layout import TaskStore
from model_server import model_server
from shared.settings import Settings
from trajectories import make_trajectory

SCREENSHOTS = 15
IMAGE_BYTES = 150_000
STREAMING_TARGET = 1.1
SCORE_TARGET = 3.2
START_TARGET = 3.0
# Key points, then all screenshots at once, then the outcome.
ROUNDS_OF_CALLS = 3


def config(url: str) -> RunConfig:
    return RunConfig(judge_model="openai:bench", judge_base_url=f"{url}/v1")


async def streaming(folder: Path, url: str, latency_s: float) -> float:
    """Seconds from the last action to the verdict, with prefetching."""
    judge = open_judge(config(url), Settings(), cache_dir=None)
    trajectory = load_trajectory(folder)
    judge.prefetch(trajectory.task)
    for path in trajectory.screenshots:
        judge.prefetch(trajectory.task, path)
        await asyncio.sleep(latency_s)
    begun = time.monotonic()
    verdict = await judge.judge(trajectory)
    took = time.monotonic() - begun
    await judge.aclose()
    assert verdict.outcome == "success", verdict.reason
    return took


async def scoring(folder: Path, url: str) -> float:
    """Seconds to score a finished trajectory with a cold cache."""
    judge = open_judge(config(url), Settings(), cache_dir=None)
    begun = time.monotonic()
    scored = await judge_stored(TaskStore(folder), judge, again=True)
    took = time.monotonic() - begun
    await judge.aclose()
    assert scored.outcome == "success", scored.reason
    return took


def command(folder: Path, url: str, output: Path) -> float:
    """Seconds of the whole command, Python's start included, with a cold cache."""
    wabe = str(Path(sys.executable).parent / "wabe")
    arguments = [wabe, "score", str(folder), "--model", "openai:bench", "--base-url", f"{url}/v1", "--again"]
    begun = time.monotonic()
    subprocess.run([*arguments, "--output-dir", str(output)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def import_s(rounds: int = 5) -> float:
    """Seconds that Python takes to start and to import the model SDK: a lower bound for any command."""
    took = []
    for _ in range(rounds):
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", "import openai"], check=True)
        took.append(time.monotonic() - begun)
    return statistics.median(took)


def main() -> int:
    latency_s = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as scratch, model_server(latency_s) as url:
        # Thinking for L a step, as a participant on such a model does, makes a round of 15 steps long: one is enough.
        folders = [
            make_trajectory(Path(scratch), f"t{number}", screenshots=SCREENSHOTS, image_bytes=IMAGE_BYTES)
            for number in range(rounds)
        ]
        live = [asyncio.run(streaming(folders[0], url, latency_s)) / latency_s]
        after = [asyncio.run(scoring(folder, url)) / latency_s for folder in folders]
        whole = [
            command(folder, url, Path(scratch) / f"out-{number}") / latency_s for number, folder in enumerate(folders)
        ]
    print(f"L = {latency_s:g} s, {SCREENSHOTS} screenshots of {IMAGE_BYTES // 1000} kB, median of {rounds}")
    print(f"streaming judge, last action to verdict: {statistics.median(live):.2f} L (target {STREAMING_TARGET} L)")
    print(f"wabe score, one trajectory:              {statistics.median(after):.2f} L (target {SCORE_TARGET} L)")
    print(f"wabe score, whole command:               {statistics.median(whole):.2f} L")
    fixed_s = (statistics.median(whole) - ROUNDS_OF_CALLS) * latency_s
    sdk_s = import_s()
    print(
        f"of it not the model's: {fixed_s:.2f} s, {fixed_s / sdk_s:.1f} times `import openai` (target {START_TARGET})"
    )
    enough_s = fixed_s / (SCORE_TARGET - ROUNDS_OF_CALLS)
    print(f"the whole command takes {SCORE_TARGET} L or less from L = {enough_s:.1f} s on")
    return int(
        statistics.median(live) > STREAMING_TARGET
        or statistics.median(after) > SCORE_TARGET
        or fixed_s / sdk_s > START_TARGET
    )


if __name__ == "__main__":
    sys.exit(main())
