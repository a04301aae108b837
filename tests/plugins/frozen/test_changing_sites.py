"""Sites that issue identifiers anew and talk over a socket: what an archive says without a flag is what they say."""

from collections import Counter

from plugins.frozen.changing_sites import make_case, wrong


async def test_an_archive_of_a_changing_site_says_nothing_wrong_without_a_flag() -> None:
    """`benchmarks/frozen oracle` tries more of them."""
    grades: Counter[str] = Counter()
    assert {seed: results for seed in range(60) if (results := await wrong(make_case(seed), grades))} == {}
    assert grades["exact"] + grades["state"] > grades["miss"]
