"""What a variant changes in pages: a cover is in the way until it is closed, and never evidence; styles are drawn;
requests are late.
"""

import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from helpers.browser.hostile_site import Site, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import a_browser, browser_settings
from judge.browser.playwright import PlaywrightBrowser
from judge.config import RunConfig
from judge.evaluators.provenance import evidence, written_by
from judge.network.attempt import network_of
from judge.records.tasks import Task
from judge.records.variants import BUNDLED, TaskVariant
from judge.scenario.pairs import pairs_of
from shared.models import Page
from shared.snapshot import parse_snapshot, with_own_names

pytestmark = pytest.mark.e2e
PAGE = "<title>Shop</title><style>h1 { height: 40px }</style><h1>Lamps</h1><a href=/next>Next</a>"


@pytest.fixture
def site() -> Iterator[Site]:
    with hostile_site({"/": PAGE, "/next": PAGE}) as one:
        yield one


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with a_browser() as running:
        yield running


async def opened(browser: PlaywrightBrowser, site: Site, variant: TaskVariant) -> Page:
    (pair,) = pairs_of(Task(task_id="t", website=site.url, task="Go.", variants=(variant,)))
    await browser.log_in(pair)
    await browser.open(site.url, "page-time")
    return await browser.observe()


def button(page: Page, name: str) -> str | None:
    nodes = (node for node in parse_snapshot(page.snapshot).nodes if node.role == "button" and node.name == name)
    return next((node.ref for node in nodes), None)


async def pressed(browser: PlaywrightBrowser, page: Page, name: str) -> Page:
    target = button(page, name)
    assert (await browser.act("browser_click", {"element": name, "target": target})).ok
    return await browser.observe()


@pytest.mark.parametrize("name", [name for name, each in BUNDLED.items() if each.family == "cover"])
async def test_a_cover_is_no_evidence_and_does_not_come_back_once_it_is_closed(
    browser: PlaywrightBrowser, site: Site, name: str
) -> None:
    cover = BUNDLED[name].cover
    assert cover is not None
    page = await opened(browser, site, BUNDLED[name])
    assert cover.text in page.snapshot
    snapshot = with_own_names(parse_snapshot(page.snapshot))
    own = evidence(snapshot, written_by(snapshot, page.origin), lambda _: True)
    assert cover.text not in " ".join(text for _, text in own.visible_texts())
    page = await pressed(browser, page, cover.button)
    assert cover.text not in page.snapshot
    await browser.act("browser_navigate", {"url": f"{site.url.rstrip('/')}/next"})
    assert cover.text not in (await browser.observe()).snapshot


async def test_a_style_is_drawn_on_every_page(browser: PlaywrightBrowser, site: Site) -> None:
    page = await opened(browser, site, BUNDLED["zoomed"])
    for _ in range(2):
        (height,) = await browser.probe(page, ["document.querySelector('h1').getBoundingClientRect().height"])
        assert height.value == 1.5 * 40
        await browser.act("browser_navigate", {"url": f"{site.url.rstrip('/')}/next"})
        page = await browser.observe()


async def test_a_cover_comes_back_on_every_page_if_it_says_so(browser: PlaywrightBrowser, site: Site) -> None:
    cover = {"look": "chat", "text": "Hello!", "button": "Close", "once": False}
    page = await opened(browser, site, TaskVariant.model_validate({"name": "again", "cover": cover}))
    assert "Hello!" not in (await pressed(browser, page, "Close")).snapshot
    await browser.act("browser_navigate", {"url": f"{site.url.rstrip('/')}/next"})
    assert "Hello!" in (await browser.observe()).snapshot


LATE = """<title>Late</title><h1>Late</h1><a href=/next>Next</a><button>Ask</button><p role=status>nothing</p><script>
document.querySelector("button").onclick = async () => {
  const began = Date.now(), timer = setTimeout(() => { document.title = "Given up"; }, 1000);
  await fetch("/answer");
  clearTimeout(timer);
  document.querySelector("p").textContent = `after ${Math.round((Date.now() - began) / 1000)} s`;
};</script>"""


@asynccontextmanager
async def late(site: Site, **variant: Any) -> AsyncIterator[tuple[PlaywrightBrowser, Page]]:
    """A browser under a variant of this name, after the first page."""
    declared = {"task_id": "t", "website": site.url, "task": "Go.", "variants": [{"name": "late", **variant}]}
    (pair,) = pairs_of(Task.model_validate(declared))
    async with browser_pool(browser_settings()) as pool, network_of(pair, RunConfig()).browser(pool.browser) as one:
        await one.log_in(pair)
        await one.open(site.url, "page-time")
        page = await one.observe()
        one.begin_step(1)
        yield one, page


async def test_a_delay_passes_in_the_time_of_the_page_and_not_in_the_judges() -> None:
    variants: dict[str, dict[str, Any]] = {
        "slow": {"requests": {"delay_s": 3}},
        "clean": {"settings": {"locale": "de"}},
    }
    took: dict[str, float] = {}
    with hostile_site({"/": LATE, "/next": PAGE, "/answer": "42"}) as site:
        for name, variant in variants.items():
            async with late(site, **variant) as (one, page):
                began = time.monotonic()
                page = await pressed(one, page, "Ask")
                assert ("after 3 s" if name == "slow" else "after 0 s") in page.snapshot
                assert page.title == ("Given up" if name == "slow" else "Late")
                await one.act("browser_navigate", {"url": f"{site.url}next"})
                assert (await one.observe()).title == "Shop"
                took[name] = time.monotonic() - began
    # Two delays take 6 s.
    assert took["slow"] < took["clean"] + 2


async def test_a_delay_beyond_what_the_judge_waits_for_takes_as_long_on_the_pages_clock() -> None:
    with hostile_site({"/": LATE, "/answer": "42"}) as site:
        async with late(site, requests={"delay_s": 7}) as (one, page):
            page = await pressed(one, page, "Ask")
            for _ in range(6):
                assert "after " not in page.snapshot or re.search("after [78] s", page.snapshot)
                await one.act("browser_wait_for", {"time": 1})
                page = await one.observe()
    assert "after " in page.snapshot
