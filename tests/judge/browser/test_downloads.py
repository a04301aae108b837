"""Who started a download, from what the browser noted, and what real pages' downloads are noted as."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.download_pages import attached
from helpers.browser.hostile_site import Handler, Page, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, ref_of
from judge.browser.downloads import MAX_BYTES, DownloadLog
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.session import TakenDownload
from judge.network.policy import NetworkPolicy
from judge.records.causes import Cause
from judge.records.sites import Site
from judge.records.tasks import Task

SHOP = "http://shop.test"
BEGAN = {"guid": "1", "name": "a.csv", "url": f"{SHOP}/a.csv"}
NAVIGATED = {
    "fixed": {"site": "same-origin", "referer": SHOP},
    "chain": [f"{SHOP}/a.csv"],
    "type": "text/csv; charset=x",
}


LINKED: dict[str, Any] = {"sender": None, "documents": [SHOP], "fixed": {}, "chain": []}
OWN = Site(frozenset(), ("shop.test", "pay.test"))


def log_of(folder: Path, *lines: dict[str, Any]) -> DownloadLog:
    with (folder / "downloads.jsonl").open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    log = DownloadLog(folder)
    log.begin(folder)
    return log


def end_of_download(**changes: Any) -> dict[str, Any]:
    known = {"guid": "1", "state": "complete", "size": 3, "sha256": "0" * 64, "file": "1"}
    return known | {"sender": {"navigation": True}, **NAVIGATED} | changes


@pytest.mark.parametrize(
    ("facts", "sender"),
    [
        ({}, SHOP),
        ({"sender": {"judge": True}, "fixed": {"site": "none"}}, "browser"),
        # Another page sent the browser there.
        ({"fixed": {"site": "cross-site", "referer": "http://evil.test"}}, "http://evil.test"),
        ({"fixed": {}}, None),
        # A link with `download`, or a script that clicks one.
        (LINKED, SHOP),
        (LINKED | {"documents": ["null"]}, None),
        (LINKED | {"fixed": {"origin": "http://evil.test"}}, None),
        (LINKED | {"chain": [f"{SHOP}/a.csv"]}, SHOP),
        # Another document was in the frame a moment ago.
        (LINKED | {"documents": [SHOP, "http://evil.test"]}, None),
        (LINKED | {"documents": [SHOP, "http://pay.test"]}, SHOP),
    ],
)
def test_the_sender_is_that_of_a_request_or_the_document(tmp_path: Path, facts: dict[str, Any], sender: str) -> None:
    (one,) = log_of(tmp_path, {"step": 2}, BEGAN, end_of_download(**facts)).take(OWN, with_open=False)
    assert (one.sender, one.step, one.path) == (sender, 2, tmp_path / "1")
    assert one.type == "text/csv"


def test_its_cause_is_the_act_that_began_it_and_saving_is_noted(tmp_path: Path) -> None:
    act = {"act": {"id": 3, "by": "editor", "at": 1}}
    lines = {"step": 1}, act, {"step": 2}, BEGAN, {"step": 3}, end_of_download(cause={"id": 3, "by": "editor"})
    (late,) = log_of(tmp_path, *lines).take(OWN, with_open=False)
    other = (
        {**BEGAN, "guid": "2"},
        {"step": 4},
        {"saves": True},
        {**BEGAN, "guid": "3"},
        end_of_download(guid="2"),
        end_of_download(guid="3"),
    )
    log = log_of(tmp_path, *other)
    _, clean, saved = log.take(OWN, with_open=False)
    assert (late.cause, late.step, late.sender) == (Cause(by="editor", step=1), 2, SHOP)
    assert (clean.cause, clean.step, clean.sender) == (Cause(by="unknown", after="editor"), 3, SHOP)
    assert (saved.step, saved.sender) == (4, "browser")


def test_a_download_that_has_not_ended_is_unfinished_once(tmp_path: Path) -> None:
    log = log_of(tmp_path, BEGAN, {"left_out": True})
    assert [each.state for each in log.take(OWN, with_open=False)] == ["left_out"]
    assert [(each.state, each.name) for each in log.take(OWN, with_open=True)] == [("unfinished", "a.csv")]
    log_of(tmp_path, end_of_download())
    assert log.take(OWN, with_open=True) == ()


def large(handler: Handler) -> None:
    attached("large.bin", b"x" * (MAX_BYTES + 1), "application/octet-stream")(handler)


FOREIGN = """<title>Foreign</title><script>
  addEventListener('load', () => {{
    const link = document.createElement('a');
    Object.assign(link, {{ href: 'data:text/plain,L-7', download: 'forged.csv' }});
    link.click();
    location.href = '{shop}';
  }});</script>"""
PAGES: dict[str, Page] = {
    "/": "<title>Shop</title><a href='/orders.csv'>Export</a> <a href='/large'>Large</a> <a href='/page'>Page</a>",
    "/orders.csv": attached("orders.csv", b"L-7", "text/csv"),
    "/large": large,
    "/page": "<title>Page</title>L-7",
}


async def taken_after(browser: PlaywrightBrowser, number: int, tool: str, params: dict[str, Any]) -> TakenDownload:
    browser.begin_step(number)
    await browser.act(tool, params)
    await browser.observe()
    (one,) = browser.take_downloads(with_open=True)
    return one


@pytest.mark.e2e
@pytest.mark.parametrize("settle", ["page-time", "real-time"])
async def test_what_the_participant_or_another_page_starts_is_not_the_sites(settle: Any) -> None:
    with hostile_site(PAGES) as shop, hostile_site() as other:
        other.pages["/"] = FOREIGN.format(shop=shop.url)
        async with (
            browser_pool(browser_settings()) as pool,
            pool.browser(NetworkPolicy.for_websites([shop.url, other.url])) as browser,
        ):
            await browser.log_in(Task(task_id="t", website=shop.url, task="x"))
            await browser.open(shop.url, settle)
            page = await browser.observe()
            link: dict[str, Any] = {"target": ref_of(page.snapshot, 'link "Export"')}
            own = await taken_after(browser, 1, "browser_click", link)
            opened = await taken_after(browser, 2, "browser_navigate", {"url": f"{shop.url}orders.csv"})
            page_link = {"target": ref_of(page.snapshot, 'link "Page"'), "modifiers": ["Alt"]}
            saved = await taken_after(browser, 3, "browser_click", page_link)
            cut = await taken_after(browser, 4, "browser_click", {"target": ref_of(page.snapshot, 'link "Large"')})
            forged = await taken_after(browser, 5, "browser_navigate", {"url": other.url})
    home = shop.url.rstrip("/")
    assert (own.sender, own.name, own.type, own.size) == (home, "orders.csv", "text/csv", 3)
    assert (opened.name, opened.sender) == ("orders.csv", "browser")
    assert (saved.name, saved.sender) == ("page.html", "browser")
    assert (cut.state, cut.path, cut.sender) == ("cut", None, home)
    # It begins when the shop's page may already be there.
    assert (forged.name, forged.sender in (None, other.url.rstrip("/"))) == ("forged.csv", True)
