"""`wabe tasks check` where three tasks become stale: `python benchmarks/stale_tasks.py [--tasks 17]`."""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from helpers.browser.hostile_site import hostile_site
from helpers.scenario.stale import STALE, fill, spoil, write_scenario


def main() -> int:
    """Print both checks; 0 if exactly the three stale tasks are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=17)
    count = parser.parse_args().tasks
    with hostile_site() as site, TemporaryDirectory() as folder:
        fill(site, count)
        first = _checked(write_scenario(Path(folder), site.url, count, "2030-06-01"))
        spoil(site)
        second = _checked(write_scenario(Path(folder), site.url, count, "2031-01-01"))
    stale = [line.split()[1].rstrip(":") for line in second[:count] if not line.startswith("fresh")]
    is_right = all(line.startswith("fresh") for line in first[:count]) and sorted(stale) == sorted(STALE)
    print(f"named: {', '.join(stale)}: {'exactly the stale ones' if is_right else 'WRONG'}")
    return 0 if is_right else 1


def _checked(path: Path) -> list[str]:
    begun = time.monotonic()
    command = [str(Path(sys.executable).parent / "wabe"), "tasks", "check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"{done.stdout}{done.stderr}{time.monotonic() - begun:.0f} s, exit code {done.returncode}\n")
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
