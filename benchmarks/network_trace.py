"""The cost of recording the network: attempts with and without it, alternately in one run.

    python benchmarks/network_trace.py [--pairs 10]

The walk and the participant are those of `step_overhead.py`, in page time. Each step is compared with the same step of
the other attempt of the pair. The end is the time from asking for the requests until `network.har` is on disk. Which of
the two goes first alternates. Bounds: 1.05 for a step, 0.15 s at the end.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import browser_pool
from judge.config import RunConfig
from judge.trajectory.network import NETWORK_FILE, read_har
from shared.a2a.client import ParticipantClient
from shared.settings import Settings
from step_overhead import PARTICIPANT, judged, shop_and_participant

MAX_STEP_RATIO = 1.05
MAX_END_S = 0.15


async def measure(pairs: int) -> dict[str, Any]:
    """Play the pairs, after one to warm up, and collect the figures."""
    configs = {on: RunConfig.model_validate({"settle": "page-time", "record_network": on}) for on in (True, False)}
    settings = {on: BrowserSettings.from_config(config, Settings.from_environ()) for on, config in configs.items()}
    steps: dict[bool, list[list[float]]] = {True: [], False: []}
    ends_s: list[float] = []
    entries: list[int] = []
    with tempfile.TemporaryDirectory() as name:
        line = ParticipantClient(f"http://127.0.0.1:{PARTICIPANT}")
        async with line, browser_pool(settings[True]) as traced, browser_pool(settings[False]) as plain:
            for pair in range(pairs + 1):
                for on in (True, False) if pair % 2 else (False, True):
                    folder = Path(name) / f"{pair}-{on}"
                    _, seconds, notes = await judged(traced if on else plain, configs[on], line, folder)
                    if pair == 0:
                        continue
                    steps[on].append(seconds)
                    if on:
                        assert notes.asked_at is not None
                        ends_s.append(notes.closed - notes.asked_at)
                        entries.append(len(read_har(folder / NETWORK_FILE).entries))
    ratios = [
        mine / theirs
        for with_trace, without in zip(steps[True], steps[False], strict=True)
        for mine, theirs in zip(with_trace, without, strict=True)
    ]
    return {
        "steps": len(ratios),
        "step_ratio_median": round(statistics.median(ratios), 3),
        "step_ratio_quartiles": [round(value, 3) for value in statistics.quantiles(ratios, n=4)],
        "traced_step_s_median": round(statistics.median(itertools.chain(*steps[True])), 4),
        "plain_step_s_median": round(statistics.median(itertools.chain(*steps[False])), 4),
        "end_s_median": round(statistics.median(ends_s), 4),
        "end_s_max": round(max(ends_s), 4),
        "requests_of_an_attempt": statistics.median(entries),
    }


def main() -> None:
    """Measure, and say whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    with shop_and_participant():
        figures = asyncio.run(measure(options.pairs))
    print(json.dumps(figures, indent=2))
    within = figures["step_ratio_median"] <= MAX_STEP_RATIO and figures["end_s_max"] <= MAX_END_S
    print("within bounds" if within else "OUT OF BOUNDS")
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
