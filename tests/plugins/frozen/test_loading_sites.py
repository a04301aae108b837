"""Pages that write something as they load: what an archive says without a flag is what the site may say."""

from collections import Counter

import pytest

from plugins.frozen.loading_sites import flagged, make_case, wrong

# `benchmarks/frozen oracle` tries more of them.
SEEDS = range(200)


@pytest.mark.slow
def test_an_archive_of_pages_that_write_as_they_load_says_nothing_wrong_without_a_flag() -> None:
    grades: Counter[str] = Counter()
    assert {seed: said for seed in SEEDS if (said := wrong(make_case(seed), grades))} == {}
    assert grades["exact"] + grades["state"] > grades["miss"]


@pytest.mark.slow
def test_recorded_walks_are_certain_in_whatever_order_pages_write_and_request_things_as_they_load() -> None:
    assert {seed: said for seed in SEEDS if (said := flagged(make_case(seed)))} == {}
