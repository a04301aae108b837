"""How far judges agree with each other."""

import pytest

from judge.plugins.rejudging.reliability import compare_judges


def test_each_pair_of_judges_is_compared_on_what_both_decided() -> None:
    pairs = compare_judges(
        {
            "x": {"a": "success", "b": "failure", "c": "success", "d": "success"},
            "y": {"a": "success", "b": "failure", "c": "failure", "d": "unscored"},
            "z": {},
        }
    )
    assert [(pair.first, pair.second, pair.n) for pair in pairs] == [("x", "y", 3), ("x", "z", 0), ("y", "z", 0)]
    # Observed 2/3; expected by chance 2/3 * 1/3 + 1/3 * 2/3 = 4/9; kappa (6/9 - 4/9) / (5/9) = 0.4.
    assert pairs[0].agreement == pytest.approx(2 / 3)
    assert pairs[0].kappa == pytest.approx(0.4)
    assert pairs[1].kappa is None
