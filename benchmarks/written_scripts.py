"""Scripts written from recorded attempts, played: `python benchmarks/written_scripts.py [RUN]`.

Without RUN, the demo is played first, whose attempts are right and wrong, and end in several ways. Each script is
written and played as `wabe tasks script RUN --task ID` does. 0 if every verdict and every check is as in the attempt.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from judge.store.layout import RunStore, find_run, output_folder
from judge.trajectory.files import load_trajectory

_WABE = Path(sys.executable).parent / "wabe"


def main() -> int:
    """Print a line for each attempt, and how many verdicts are reproduced."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", help="a run's id or folder")
    runs = parser.parse_args().run
    with TemporaryDirectory() as folder:
        if runs is None:
            completed = subprocess.run(
                [_WABE, "run", "demo", "--output-dir", folder], capture_output=True, text=True, check=False
            )
            print(completed.stdout[-200:])
        store = find_run(runs or "latest", output_folder(Path(folder) if runs is None else None))
        tasks = [task.name for task in store.tasks()]
        same = sum(_is_reproduced(store, task) for task in tasks)
    print(f"{same} of {len(tasks)} verdicts are reproduced")
    return 0 if same == len(tasks) else 1


def _is_reproduced(store: RunStore, task: str) -> bool:
    attempt = load_trajectory(store.task(task).folder)
    begun = time.monotonic()
    command = [_WABE, "tasks", "script", str(store.folder), "--task", task]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    steps = len(re.findall(r"^  \{", done.stdout, re.MULTILINE))
    error_lines = done.stderr.strip().splitlines()[:1]
    print(
        f"{task:<24} {attempt.attempt.outcome:<8} {len(attempt.steps):>2} steps, {steps:>2} in the script,"
        f" {time.monotonic() - begun:.0f} s: {' '.join(error_lines)}",
        flush=True,
    )
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
