"""A page is looked at when nothing is pending in it any more: not before its last change, whatever that waits for."""

from collections.abc import Callable

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.pending import ANSWERS, Chain, chains, said_after
from helpers.browser.sessions import browser_settings
from helpers.cases import each

SUITE: tuple[Chain, ...] = (
    ("late timer",),
    ("request", "animation"),
    ("messages", "database", "short timer"),
    ("worker", "fetch", "timer"),
    ("crypto", "script", "interval"),
    ("written frame", "view", "task"),
    ("late timer", "scrolling"),
)
# After as many, a browser starts again.
_TOGETHER = 25


@pytest.mark.e2e
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", each(["suite", "all"], suite=["suite"]))
async def test_the_look_after_an_act_shows_the_last_change_that_it_causes(
    size: str, record_property: Callable[[str, object], None]
) -> None:
    drawn = SUITE if size == "suite" else chains(500, seed=63)
    said = {}
    async with browser_pool(browser_settings(), is_guarded=False) as pool:
        with hostile_site(dict(ANSWERS)) as site:
            for start in range(0, len(drawn), _TOGETHER):
                async with pool.browser(None) as browser:
                    await browser.open(site.url, "page-time")
                    for chain in drawn[start : start + _TOGETHER]:
                        said[chain] = await said_after(browser, site, chain)
    record_property("outcome", f"{len(said)} pages")
    assert {chain: each for chain, each in said.items() if each != "over"} == {}
