"""Runs that end before they are done: by SIGKILL, and by Ctrl-C."""

import subprocess
import sys

import pytest

from helpers.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.nightly
def test_a_run_that_is_killed_or_interrupted_is_resumed_with_nothing_lost() -> None:
    # One run, in which the judge is killed, then everything, and then Ctrl-C ends it, after the first epoch; by hand:
    # 20 runs. A runner that is killed alone takes everything with it (tests/e2e/test_leftovers.py).
    script = [sys.executable, str(ROOT / "benchmarks" / "resume.py"), "--repeats", "1", "--kills", "3"]
    done = subprocess.run(
        [*script, "--tasks", "2", "--epochs", "2"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 resumed with nothing lost" in done.stdout
