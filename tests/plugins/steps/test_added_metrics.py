"""A package's own metric of steps, as the page of the plug-in shows it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT

PAGE = ROOT / "src" / "judge" / "plugins" / "steps" / "README.md"
PROGRAM = """
from judge.plugins.steps.metrics import STEP_METRICS, Choice
from judge.plugins.steps.reference import Operation, Reference
typed = Operation(op="TYPE", value="tent")
step = Reference(task_id="t", task="t", index=0, snapshot="", accepted=(), operation=typed)
print({name: STEP_METRICS.load(name)(step, Choice(operation=typed)) for name in STEP_METRICS.names()})
"""


@pytest.mark.slow
def test_b7_the_metric_of_a_package_is_found(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "metrics_of_mine.py").write_text(example, encoding="utf-8")
    metadata = tmp_path / "metrics_of_mine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: metrics-of-mine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[wabe.step_metrics]\nright_length = metrics_of_mine:right_length\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, check=False)
    assert done.stdout == "{'right_length': 1.0}\n", done.stderr
