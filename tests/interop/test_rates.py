"""Corrected rates and Krippendorff's alpha are those of two other packages on the same samples."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helpers.interop.environments import IndexUnreachable, environment
from helpers.paths import ROOT
from judge.results.corrected import SampleLabel, Stratum, estimate

# Its libraries take more than 600 MB.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]
PROGRAM = ROOT / "tests" / "interop" / "programs" / "rates.py"
SAMPLES = 60
TABLES = 30


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return environment("rates")
    except IndexUnreachable as error:
        pytest.skip(f"the package index cannot be reached: {error}")


def a_sample(draw: random.Random) -> dict[str, Any]:
    sizes = [draw.randint(5, 60), draw.randint(15, 300)]
    counts = [draw.randint(5, sizes[0]), draw.randint(15, sizes[1])]
    return {"sizes": sizes, "labels": [[draw.randint(0, 1) for _ in range(count)] for count in counts]}


def ratings(draw: random.Random) -> list[list[float | None]]:
    """Labels of three people on thirty attempts, of which any may be missing."""
    truth = [draw.randint(0, 1) for _ in range(30)]
    return [
        [None if draw.random() < 0.2 else each if draw.random() < 0.8 else 1 - each for each in truth] for _ in range(3)
    ]


def test_rates_and_alpha_equal_those_of_other_packages(python: Path) -> None:
    draw = random.Random(45)
    samples, tables = [a_sample(draw) for _ in range(SAMPLES)], [ratings(draw) for _ in range(TABLES)]
    request = json.dumps({"samples": samples, "ratings": tables})
    done = subprocess.run([python, PROGRAM], input=request, capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout)
    ours = []
    for sample in samples:
        labels = [[SampleLabel("", bool(each)) for each in part] for part in sample["labels"]]
        estimated = estimate(
            [Stratum(name, *pair) for name, *pair in zip(("success", "failure"), sample["sizes"], labels, strict=True)]
        )
        assert estimated is not None
        ours.append(estimated.rate)
    assert theirs["ppi-python"] == pytest.approx(ours, abs=1e-12)
    assert theirs["truescore"] == pytest.approx(ours, abs=1e-12)
    units = [
        [[bool(each) for each in unit if each is not None] for unit in zip(*table, strict=True)] for table in tables
    ]
    labellers = pytest.importorskip("judge.plugins.labels.labellers")
    assert theirs["alpha"] == pytest.approx([labellers.krippendorff_alpha(each) for each in units], abs=1e-12)
