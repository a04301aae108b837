"""Pages that keep what they get: what rests on certain answers only is as on the live site."""

from collections import Counter

import pytest

from plugins.frozen.resting_pages import make_case, wrong

# `benchmarks/frozen oracle` tries more of them.
SEEDS = range(200)


@pytest.mark.slow
def test_what_rests_on_certain_answers_only_is_as_on_the_live_site() -> None:
    counts: Counter[str] = Counter()
    assert {seed: said for seed in SEEDS if (said := wrong(make_case(seed), counts))} == {}
    assert counts["full, same"] > counts.total() / 2
