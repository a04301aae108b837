"""A matrix that ends before it is done: by SIGKILL."""

import subprocess
import sys

import pytest

from helpers.paths import ROOT


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.nightly
def test_a_matrix_that_is_killed_twice_is_resumed_and_equals_an_undisturbed_one() -> None:
    # By hand: three agents, two task sets.
    script = [sys.executable, str(ROOT / "benchmarks" / "resume"), "matrix", "--limit", "1", "--epochs", "2"]
    smaller = ["--sets", "demo", "--agents", "./mine", "replay"]
    done = subprocess.run([*script, *smaller], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 attempts, killed twice: equal to undisturbed" in done.stdout
