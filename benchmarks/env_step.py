"""A step of a training environment over its wire against the same step of `wabe run` over A2A, in pairs.

    python benchmarks/env_step.py [--pairs 200]

Both play the same walk through the demo shop, each with a judge and a browser of its own, one step at a time in turn:
while one side's step is timed, the other side waits for its participant. A step's time is what whoever plays it waits
from its reply to the next observation. Prints the means, their ratio, and its 95 % interval over the pairs (bootstrap).
Exits with 1 if the ratio is above 1.05.
"""

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from env_serving import TASK, WALK, WireClient, action, dialled, served, snapshot_of
from helpers.participants import serving_participant
from helpers.scenario.copies import scenario_on_free_ports
from participants.base import Observation
from shared.models import Action

BOUND = 1.05
SAMPLES = 10_000


class Paired:
    """The participant of `wabe run`: before it replies, the same step is played over the wire."""

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._text = ""
        self._replied = 0.0
        self.pairs: list[tuple[float, float]] = []
        self._wire_s: float | None = None

    async def __call__(self, observation: Observation) -> Action:
        now = time.perf_counter()
        if observation.step == 0:
            self._text = await self._client.reset()
        elif self._wire_s is not None:
            self.pairs.append((self._wire_s, now - self._replied))
        here = action(observation.step, observation.page.snapshot)
        there = action(observation.step, snapshot_of(self._text))
        is_last = observation.step >= len(WALK)
        began = time.perf_counter()
        self._text = (await self._client.step(there))["observation"]["text"]
        # The last step is an end, which has no observation.
        self._wire_s = None if is_last else time.perf_counter() - began
        self._replied = time.perf_counter()
        return Action(**here)


async def measured(pairs: int) -> list[tuple[float, float]]:
    """The seconds of each pair: over the wire, over A2A."""
    epochs = -(-pairs // len(WALK))
    with tempfile.TemporaryDirectory() as name:
        scenario = scenario_on_free_ports("demo", Path(name))
        async with served(scenario, "--task", TASK) as (place, _), dialled(place) as socket:
            paired = Paired(WireClient(socket))
            async with serving_participant(paired) as url:
                run = written_for_agent(scenario, url)
                command = [sys.executable, "-m", "wabe", "run", str(run), "--task", TASK, "--epochs", str(epochs)]
                command += ["--display", "none", "--output-dir", f"{name}/out"]
                await asyncio.to_thread(subprocess.run, command, check=False, env=None)
            return paired.pairs[:pairs]


def written_for_agent(scenario: Path, url: str) -> Path:
    """A copy of the scenario for an agent that runs already, on a shop of its own."""
    copy = scenario_on_free_ports("demo", scenario.parent / "run")
    lines = copy.read_text().splitlines()
    at = lines.index("[[participants]]")
    end = next(number for number in range(at + 1, len(lines)) if lines[number].startswith("["))
    lines[at:end] = ["[[participants]]", 'role = "white_agent"', f'endpoint = "{url}"', ""]
    copy.write_text("\n".join(lines))
    return copy


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200)
    options = parser.parse_args()
    pairs = asyncio.run(measured(options.pairs))
    if not pairs:
        sys.exit("nothing was played")
    wire, a2a = (statistics.fmean(each) for each in zip(*pairs, strict=True))
    draw = random.Random(47)
    ratios = []
    for _ in range(SAMPLES):
        sample = draw.choices(pairs, k=len(pairs))
        ratios.append(sum(each[0] for each in sample) / sum(each[1] for each in sample))
    ratios.sort()
    low, high = ratios[int(0.025 * SAMPLES)], ratios[int(0.975 * SAMPLES)]
    print(f"{len(pairs)} pairs: {wire:.3f} s a step over the wire, {a2a:.3f} s over A2A")
    middle = [statistics.median(each) for each in zip(*pairs, strict=True)]
    print(f"medians: {middle[0]:.3f} s, {middle[1]:.3f} s")
    print(f"ratio {wire / a2a:.3f}, 95 % interval {low:.3f} to {high:.3f}")
    return 0 if wire / a2a <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
