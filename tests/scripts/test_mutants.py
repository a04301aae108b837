"""The table of `benchmarks/mutants.py`, without running it."""

from typing import Any

import pytest

from helpers.paths import ROOT, load_file

MUTANTS = load_file(ROOT / "benchmarks" / "mutants.py")


@pytest.mark.parametrize("mutant", MUTANTS.MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_mutant_has_one_place_and_tests_that_exist(mutant: Any) -> None:
    assert MUTANTS.place_of(mutant, ROOT)
    assert MUTANTS.tests_of([mutant], ROOT)
