"""Pages that write something as they load: what an archive says without a flag is what the site may say."""

from collections import Counter

from plugins.frozen.loading_sites import make_case, wrong


def test_an_archive_of_pages_that_write_as_they_load_says_nothing_wrong_without_a_flag() -> None:
    """`benchmarks/frozen_oracle.py` tries more of them."""
    grades: Counter[str] = Counter()
    assert {seed: said for seed in range(400) if (said := wrong(make_case(seed), grades))} == {}
    assert grades["exact"] + grades["state"] > grades["miss"]
