"""How far a judge agrees with itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.results.reliability import Flip, self_agreement

OUTCOMES = st.sampled_from(["success", "failure", "unscored", "aborted", "broken"])
BY_TASK = st.dictionaries(st.sampled_from("abcdef"), OUTCOMES)


def test_flips_variance_and_self_agreement_are_as_calculated_by_hand() -> None:
    measured = self_agreement(
        [
            {"a": "success", "b": "failure", "c": "success"},
            {"a": "success", "b": "success", "c": "unscored"},
            {"a": "success", "b": "failure", "c": "broken"},
        ]
    )
    # "a": 3 of 3 pairs of verdicts agree; "b": 1 of 3; "c" has one decided verdict and is not compared.
    assert (measured.repeats, measured.n) == (3, 2)
    assert measured.agreement == pytest.approx((1 + 1 / 3) / 2)
    # The sample variance of 0, 1, 0 is 1/3.
    assert measured.variance == pytest.approx((0 + 1 / 3) / 2)
    assert measured.flips == (Flip(trajectory="b", successes=1, failures=2),)


def test_with_nothing_to_compare_there_is_no_agreement() -> None:
    measured = self_agreement([{"a": "success"}, {"a": "unscored"}])
    assert (measured.n, measured.agreement, measured.variance) == (0, None, None)


@given(st.lists(BY_TASK, min_size=1, max_size=6))
def test_self_agreement_is_a_share_and_1_without_flips(repeats: list[dict[str, str]]) -> None:
    measured = self_agreement(repeats)
    if measured.agreement is not None:
        assert -1e-9 <= measured.agreement <= 1
        assert (measured.agreement == 1) == (not measured.flips)
