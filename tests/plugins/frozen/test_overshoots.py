"""Going further than the recording earns nothing that it does not earn on the live site."""

from pathlib import Path

import pytest

from helpers.cases import each
from plugins.frozen import overshoots

pytestmark = pytest.mark.e2e
# A fetch without an answer, an optimistic page, a socket, and a cookie.
ALL = ("more", "seat", "chat", "tips")


@pytest.mark.parametrize(
    ("way", "sample"),
    each(
        [("once", ALL[1:3]), *((way, ALL) for way in ("once", "twice", "reload", "history", "links"))],
        suite=[("once", ALL[1:3])],
    ),
)
async def test_an_overshoot_is_no_success_and_earns_nothing(way: str, sample: tuple[str, ...], tmp_path: Path) -> None:
    places, archive = overshoots.addresses(), tmp_path / "over.wacz"
    await overshoots.recorded_site(places, archive, sample)
    all_ways = overshoots.ways(places.own)
    walks, right = ({name: all_ways[which][name] for name in sample} for which in (way, "right"))
    honest = await overshoots.played(places, tmp_path / "right", right, archive)
    assert {name: overshoots.earned(one) for name, one in honest.items()} == dict.fromkeys(sample, (1.0, 1.0))
    frozen = await overshoots.played(places, tmp_path / "frozen", walks, archive)
    assert {name: overshoots.earned(one) for name, one in frozen.items()} == dict.fromkeys(sample, (0.0, 0.0))
    assert "success" not in {one.attempt.outcome for one in frozen.values()}
