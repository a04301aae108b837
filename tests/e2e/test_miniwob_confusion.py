"""MiniWoB++ tasks from their import to their verdicts, each played right and subtly wrong (two of many)."""

import json
import subprocess
import sys

import pytest

from helpers.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_a_right_attempt_succeeds_and_one_with_a_slip_fails() -> None:
    # The slips: the second greatest number, which is worth a tenth of the reward, and the neighbour's mail.
    tasks = ["--tasks", "find-greatest", "email-inbox-delete", "--seeds", "0", "--parallel", "2", "--json"]
    script = [sys.executable, str(ROOT / "benchmarks" / "miniwob_confusion.py"), *tasks]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["matrix"] == {"right": {"success": 2}, "wrong": {"failure": 2}}
