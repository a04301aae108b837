"""WebArena-Verified's tasks that read a cookie: the judge's trace against one that Playwright recorded itself."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.async_api import Browser, async_playwright

from helpers.browser.hostile_site import Site, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, found_browser
from helpers.cases import each
from helpers.interop.environments import environment
from judge.browser.pool import BrowserPool
from judge.plugins.webarena.package import WebArenaPackage
from judge.records.tasks import Task
from judge.trajectory.network import NETWORK_FILE, write_har
from judge.trajectory.redaction import Redaction
from shared.settings import Settings

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SESSION = "f7d0a8b1c2e3f4a5b6c7d8e9f0a1b2c3"
# The map's own way of remembering how to travel. The other cookies are as long as a session's.
MAP = f"""<title>Map</title><script>
    const asked = new URLSearchParams(location.search);
    document.cookie = "_osm_session={SESSION}; path=/";
    document.cookie = "_osm_location=-71.060511|42.3554334|10|M; path=/";
    if (asked.get("engine")) document.cookie = "_osm_directions_engine=" + asked.get("engine") + "; path=/";
    const route = "/route/v1/driving/" + asked.get("way") + "?overview=false";
    if (asked.get("as") === "page") location.href = route;
    else fetch(route).then(() => document.title = "Shown");
</script>"""
ROUTE = b"<title>Shown</title>"
CAR, BICYCLE, FOOT = "fossgis_osrm_car", "fossgis_osrm_bicycle", "fossgis_osrm_foot"
NAVIGATED = {"task_type": "NAVIGATE", "status": "SUCCESS", "retrieved_data": None}


def drive(relation: int, duration: str) -> dict[str, Any]:
    results = [{"relation_id": relation, "duration": duration}]
    return {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": results}


@dataclass(frozen=True)
class Attempt:
    """How the route is asked for, what is answered, and whether the package accepts it.

    In a task to navigate, the package looks at the last page only, so that the route must be opened as one.
    """

    engine: str
    way: str
    answer: Mapping[str, Any]
    succeeds: bool
    is_page: bool = False
    # Otherwise another one of the same task is judged for the same reason: only the nightly run takes it.
    is_distinct: bool = True


KING = "-68.2177005,44.3494709;-68.767507,44.8030715"
ISLAND = "-68.2177005,44.3494709;-68.8315387,44.0478975"
YOUNG = "-71.060511,42.3554334;-1.4869496,55.0252998"
KIM = "-75.4716115,40.6022552;-74.4041622,40.0757384"
BY_CAR, BY_BICYCLE = drive(2176999, "01:33:00"), drive(2176999, "10:58:00")
ATTEMPTS = {
    267: (
        Attempt(CAR, KING, BY_CAR, True),
        Attempt("", KING, BY_CAR, True),
        Attempt(BICYCLE, KING, BY_CAR, False),
        Attempt(FOOT, KING, BY_CAR, False, is_distinct=False),
        Attempt(CAR, ISLAND, BY_CAR, False),
    ),
    268: (
        Attempt(BICYCLE, ISLAND, BY_BICYCLE, True),
        Attempt(CAR, ISLAND, BY_BICYCLE, False),
        Attempt("", ISLAND, BY_BICYCLE, False),
        Attempt(BICYCLE, KING, BY_BICYCLE, False, is_distinct=False),
    ),
    759: (
        Attempt(CAR, YOUNG, NAVIGATED, True, True),
        Attempt(BICYCLE, YOUNG, NAVIGATED, False, True),
        Attempt(FOOT, YOUNG, NAVIGATED, False, True, is_distinct=False),
        Attempt(CAR, KIM, NAVIGATED, False, True),
    ),
    760: (
        Attempt(CAR, KIM, NAVIGATED, True, True),
        Attempt(BICYCLE, KIM, NAVIGATED, False, True, is_distinct=False),
        Attempt(FOOT, KIM, NAVIGATED, False, True, is_distinct=False),
        Attempt(CAR, YOUNG, NAVIGATED, False, True, is_distinct=False),
    ),
}


def address(site: Site, attempt: Attempt) -> str:
    request = {"engine": attempt.engine, "way": attempt.way, "as": "page" if attempt.is_page else "data"}
    return f"{site.url}directions?{urlencode(request)}"


async def playwrights_trace(browser: Browser, path: Path, url: str) -> dict[str, Any]:
    context = await browser.new_context(record_har_path=path, record_har_content="embed")
    page = await context.new_page()
    await page.goto(url)
    await page.wait_for_function("document.title == 'Shown'")
    await context.close()
    return dict(json.loads(path.read_text()))


async def judges_trace(pool: BrowserPool, folder: Path, url: str, task: Task) -> dict[str, Any]:
    async with pool.browser(None) as browser:
        await browser.log_in(task)
        await browser.open(url)
        # The page settles: its requests are done.
        assert (await browser.observe()).title == "Shown"
        traffic = browser.traffic()
        while traffic is None or traffic.is_pending:
            await asyncio.sleep(0.01)
            traffic = browser.traffic()
    write_har(folder, traffic.entries, Redaction(salt=b"x", keep=task.named_fields).entry, versions={})
    return dict(json.loads((folder / NETWORK_FILE).read_text()))


@asynccontextmanager
async def browsers() -> AsyncIterator[tuple[Browser, BrowserPool]]:
    """Playwright's browser and the judge's, which all attempts share."""
    settings = browser_settings()
    async with async_playwright() as playwright, browser_pool(settings, is_guarded=False) as pool:
        browser = await playwright.chromium.launch(executable_path=str(found_browser().path))
        try:
            yield browser, pool
        finally:
            await browser.close()


@asynccontextmanager
async def package(site: Site) -> AsyncIterator[WebArenaPackage]:
    settings = Settings.from_environ({"WABE_WEBARENA_PYTHON": str(environment("webarena"))})
    names = ("map", "wikipedia", "shopping_admin")
    opened = await WebArenaPackage.open(
        settings.webarena_python, {name: {"urls": [site.url], "active_url_idx": 0} for name in names}
    )
    try:
        yield opened
    finally:
        await opened.aclose()


@pytest.mark.parametrize("which", each(["distinct", "all"], suite=["distinct"]))
async def test_a_cookie_that_a_task_reads_gets_the_packages_own_verdict(which: str, tmp_path: Path) -> None:
    with hostile_site({"/directions": MAP}) as site:
        site.pages |= {f"/route/v1/driving/{way}": ROUTE for way in (KING, ISLAND, YOUNG, KIM)}
        async with package(site) as opened, browsers() as (playwright, pool):
            rows = {row.task_id: row for row in (await opened.tasks(None)).tasks or ()}
            chosen = ((number, one) for number, attempts in ATTEMPTS.items() for one in attempts)
            for number, attempt in chosen:
                if which == "distinct" and not attempt.is_distinct:
                    continue
                row, url = rows[number], address(site, attempt)
                task = Task(task_id="t", website=site.url, task=row.intent, keep_fields=row.fields)
                traces = {
                    "Playwright": await playwrights_trace(playwright, tmp_path / "playwright.har", url),
                    "the judge": await judges_trace(pool, tmp_path, url, task),
                }
                for who, har in traces.items():
                    evaluation = await opened.evaluate(
                        number, instruction=row.intent, answer=json.dumps(attempt.answer), har=har
                    )
                    assert evaluation.result is not None, (who, number, attempt, evaluation)
                    assert (evaluation.result.status == "success") is attempt.succeeds, (
                        who,
                        number,
                        attempt,
                        evaluation.result,
                    )
