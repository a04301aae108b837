"""What a run sends and compares stays as it was: recorded runs must be resumable, and other judges must accept it."""

import json
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.runner.sent_requests import CASES, request_facts

RECORDED = ROOT / "tests" / "fixtures" / "sent_requests.json"


@pytest.mark.parametrize("case", CASES)
def test_a_run_sends_compares_and_repeats_what_it_did_in_the_version_that_recorded_this(
    case: str, tmp_path: Path
) -> None:
    assert request_facts(case, tmp_path) == json.loads(RECORDED.read_text())[case]
