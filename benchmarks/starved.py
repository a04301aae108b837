"""Whether verdicts depend on how busy the machine is: reference scripts alone, and beside other work.

    python benchmarks/starved.py [--scenarios demo frozen hire] [--load 30] [--output DIR]

Plays the scripts of each scenario, then again while N loops keep the machine busy. Prints each task whose verdict
differs. Exit code 1 if there is one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from apps import busy


def verdicts(scenario: str, folder: Path) -> dict[str, str]:
    """What became of each task."""
    began = time.monotonic()
    command = ["wabe", "run", scenario, "--display", "plain", "--output-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    results = [json.loads(path.read_text("utf-8")) for path in folder.glob("runs/*/results/*/result.json")]
    notes = [line for line in done.stdout.splitlines() if "too busy" in line or "again" in line]
    print("\n".join([f"{scenario}: {len(results)} tasks in {time.monotonic() - began:.0f} s", *notes]), flush=True)
    if not results:
        sys.exit(done.stdout + done.stderr)
    return {each["task_id"]: f"{each['verdict']}: {each['reason']}" for each in results}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scenarios", nargs="*", default=["demo", "frozen", "hire"])
    parser.add_argument("--load", type=int, default=30)
    parser.add_argument("--output", type=Path, help="keep the runs here")
    options = parser.parse_args()
    differing = 0
    with tempfile.TemporaryDirectory(prefix="wabe-starved-") as temporary:
        for scenario in options.scenarios:
            found = []
            for load in (0, options.load):
                with busy(load) if load else nullcontext():
                    found.append(verdicts(scenario, (options.output or Path(temporary)) / f"{scenario}-{load}"))
            quiet, starved = found
            for task in quiet:
                if quiet[task].partition(":")[0] != starved.get(task, "").partition(":")[0]:
                    differing += 1
                    print(f"{scenario}, {task}: {quiet[task]}; beside {options.load} loops {starved.get(task)}")
    print(f"{differing} verdicts differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
