"""Corrected rates in submissions of strangers."""

from typing import Any

import pytest

from judge.plugins.leaderboard.label_claims import interval_by_labels


def published(rate: Any, *strata: tuple[str, Any, Any, Any], settled: int = 0) -> dict[str, Any]:
    keys = ("verdict", "attempts", "labels", "successes")
    labels = {"strata": [dict(zip(keys, each, strict=True)) for each in strata], "settled": settled}
    return {"corrected_success_rate": rate, "labels": labels}


@pytest.mark.parametrize(
    ("detail", "follows"),
    [
        (published(50.0, ("success", 10, 10, 10), ("failure", 10, 10, 0)), True),
        (published(50.0, ("success", 10, 10, 10), ("failure", 6, 6, 0), ("failure", 4, 4, 0)), True),
        (published(50.0, ("success", 10, 10, 10), ("failure", 6, 6, 0), settled=4), True),
        (published(95.0, ("success", 10, 10, 10), ("failure", 10, 10, 0)), False),
        # Of other attempts than the file has.
        (published(100.0, ("success", 20, 20, 20)), False),
        (published(50.0, ("success", 10, 2, 2), ("failure", 10, 2, 0)), False),
        (published(50.0, ("success", 10, 11, 11), ("failure", 10, 10, -1)), False),
        (published(50.0, ("success", 10, 10, 1e300), ("failure", 10, 10, 0)), False),
        (published("50", ("success", 10, 10, 10), ("failure", 10, 10, 0)), False),
        ({"corrected_success_rate": 50.0}, False),
        ({"corrected_success_rate": 50.0, "labels": {"strata": "all", "settled": 0}}, False),
    ],
)
def test_a_strangers_corrected_rate_follows_from_the_labels_in_its_file_or_not(
    detail: dict[str, Any], follows: bool
) -> None:
    assert (interval_by_labels(detail, ["success"] * 10 + ["failure"] * 10) is not None) is follows
