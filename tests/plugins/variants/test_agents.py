"""Four ways of acting on one page: each falls under the variants that it cannot bear, and under no other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from helpers.browser.hostile_site import Site, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from judge.browser.playwright import PlaywrightBrowser
from judge.config import RunConfig
from judge.network.attempt import network_of
from judge.records.tasks import Task
from judge.records.variants import BUNDLED, TaskVariant
from judge.scenario.pairs import pairs_of
from shared.models import Page
from shared.snapshot import parse_snapshot

pytestmark = pytest.mark.e2e
WAYS = ("names", "references", "points", "patience")
# A column in the middle of the page, below a text whose lines depend on the width and the font.
PAGE = f"""<title>Ways</title><style>main {{ width: 60%; margin: auto; text-align: right }}</style><main>
<p>{"Every lamp is made to order and delivered to the door. " * 20}</p>
{"".join(f'<p><button id="{way}">{way}</button></p>' for way in WAYS)}<p role=status></p></main><script>
document.querySelector("main").onclick = async ({{ target }}) => {{
  if (target.tagName !== "BUTTON") return;
  if (target.id === "patience") await fetch("/answer");
  document.querySelector("[role=status]").append(target.id, " ");
}};</script>"""
LATE = TaskVariant.model_validate({"name": "late", "requests": {"delay_s": 30}})
CLEAN = TaskVariant.model_validate({"name": "clean", "settings": {"locale": "en-US"}})
MOVED = {"narrow", "phone", "zoomed", "serif", "newsletter"}
FALLS = {"names": set[str](), "references": {"newsletter"}, "points": MOVED, "patience": {"late"}}
SHOWN_NIGHTLY = {"tokyo", "german", "dark", "dense", "still", "narrow", "consent", "zoomed", "serif", "flaky"}


class Known(NamedTuple):
    """What was recorded of the clean page: the references of its buttons, and where they are."""

    references: dict[str, str]
    points: dict[str, dict[str, int]]


@asynccontextmanager
async def under(site: Site, variant: TaskVariant) -> AsyncIterator[tuple[PlaywrightBrowser, Page]]:
    """A browser under a variant, after the first page."""
    (pair,) = pairs_of(Task(task_id="t", website=site.url, task="Go.", variants=(variant,)))
    config = RunConfig(actions="both", **variant.changes)
    settings = browser_settings(**config.model_dump())
    async with browser_pool(settings) as pool, network_of(pair, config).browser(pool.browser) as one:
        await one.log_in(pair)
        await one.open(site.url, "page-time")
        page = await one.observe()
        one.begin_step(1)
        yield one, page


def referenced(page: Page) -> dict[str, str]:
    return {node.name: node.ref for node in parse_snapshot(page.snapshot).nodes if node.role == "button" and node.ref}


def said(page: Page) -> set[str]:
    return {word for node in parse_snapshot(page.snapshot).nodes if node.role == "status" for word in node.text.split()}


async def recorded(site: Site) -> Known:
    where = "(box => [box.x + box.width / 2, box.y + box.height / 2].map(Math.round).join())"
    async with under(site, CLEAN) as (one, page):
        asked = [f'{where}(document.getElementById("{way}").getBoundingClientRect())' for way in WAYS]
        places = [str(each.value).split(",") for each in await one.probe(page, asked)]
        points = {way: {"x": int(x), "y": int(y)} for way, (x, y) in zip(WAYS, places, strict=True)}
        return Known(referenced(page), points)


async def solved(site: Site, variant: TaskVariant, known: Known) -> set[str]:
    """What each of them did; the one by names, who closes what is in the way, comes last."""

    async def click(way: str, reference: str) -> None:
        await one.act("browser_click", {"element": way, "target": reference})

    async with under(site, variant) as (one, page):
        await one.act("browser_mouse_click_xy", {"element": "points", **known.points["points"]})
        await click("references", known.references["references"])
        if variant.cover:
            await click(variant.cover.button, referenced(await one.observe())[variant.cover.button])
        await click("patience", referenced(await one.observe())["patience"])
        await one.act("browser_wait_for", {"time": 1})
        page = await one.observe()
        await click("names", referenced(page)["names"])
        return said(page) | (said(await one.observe()) - {"patience"})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in SHOWN_NIGHTLY else ())
        for name in ("clean", "late", *BUNDLED)
    ],
)
async def test_each_way_of_acting_falls_under_what_it_cannot_bear(name: str) -> None:
    with hostile_site({"/": PAGE, "/answer": "42"}) as site:
        known = await recorded(site)
        variant = {"clean": CLEAN, "late": LATE, **BUNDLED}[name]
        assert set(WAYS) - await solved(site, variant, known) == {way for way in WAYS if name in FALLS[way]}
