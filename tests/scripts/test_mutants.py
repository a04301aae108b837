"""The table of `benchmarks/mutants.py`, without running it."""

from typing import Any

import pytest

from helpers.paths import ROOT, load_file
from helpers.plugins import is_complete

MUTANTS = load_file(ROOT / "benchmarks" / "mutants.py")


@pytest.mark.parametrize("mutant", MUTANTS.MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_mutant_has_one_place_and_tests_that_exist(mutant: Any) -> None:
    try:
        assert MUTANTS.place_of(mutant, ROOT)
        assert MUTANTS.tests_of([mutant], ROOT)
    except MUTANTS.CannotApplyError:
        if is_complete():
            raise
        pytest.skip("of a plug-in that was taken away")
