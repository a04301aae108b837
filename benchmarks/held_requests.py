"""The wall time per step of attempts that hold requests against that of attempts that do not, in pairs in one run.

    python benchmarks/held_requests.py [--pairs 10]

Both sides are whole episodes that browse the demo shop along the script of `step_overhead.py`, each in a browser that
keeps running; which side begins alternates. One side's task has `writes = "hold"`, so that an interceptor answers for
all its requests. Bound: 1.1 for the median of the ratios of steps.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import browser_pool
from judge.config import RunConfig
from shared.a2a.client import ParticipantClient
from shared.settings import Settings
from step_overhead import PARTICIPANT, judged, shop_and_participant

BOUND = 1.1
SIDES: dict[str, dict[str, Any]] = {"plain": {}, "holding": {"writes": "hold"}}


async def measure(pairs: int) -> dict[str, Any]:
    """Run the pairs and put the figures together."""
    config = RunConfig()
    settings = BrowserSettings.from_config(config, Settings.from_environ())
    ratios: list[float] = []
    walls: dict[str, list[float]] = {side: [] for side in SIDES}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        async with (
            ParticipantClient(f"http://127.0.0.1:{PARTICIPANT}") as line,
            browser_pool(settings) as plain,
            browser_pool(settings) as holding,
        ):
            pools = {"plain": plain, "holding": holding}
            for pair in range(pairs + 1):
                steps: dict[str, list[float]] = {}
                for side in list(SIDES)[:: -1 if pair % 2 else 1]:
                    folder = Path(name) / f"{pair}-{side}"
                    _, steps[side], _ = await judged(pools[side], config, line, folder, **SIDES[side])
                if pair == 0:
                    continue  # both sides warm
                ratios += [mine / other for mine, other in zip(steps["holding"], steps["plain"], strict=True)]
                for side, found in steps.items():
                    walls[side] += found
    return {
        "steps": len(ratios),
        "step_ratio_median": round(statistics.median(ratios), 3),
        "step_ratio_quartiles": [round(value, 3) for value in statistics.quantiles(ratios, n=4)],
        **{f"{side}_step_s_median": round(statistics.median(found), 4) for side, found in walls.items()},
        "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
    }


def main() -> None:
    """Start the shop and the participant, measure, say whether the bound holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    with shop_and_participant():
        figures = asyncio.run(measure(options.pairs))
    print(json.dumps(figures, indent=2))
    within = figures["step_ratio_median"] <= BOUND
    print("within the bound" if within else "OUT OF BOUNDS")
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
