"""Who sent a request, as recorded in a real browser: documents of every kind, compared with where each was planted."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, found_browser, with_flags
from helpers.cases import each
from helpers.network.senders import Document, Planted, SentRequest, random_page, sent_by
from judge.browser.pool import BrowserPool
from judge.records.tasks import Task
from judge.trajectory.network import BROWSER

pytestmark = pytest.mark.e2e

# Without TLS, the browser sends `Sec-Fetch-Site` to this machine only.
WITH_METADATA = ("127.0.0.1", "localhost")
WITHOUT_METADATA = ("shop.test", "evil.test")
ISOLATED = ("--site-per-process",)
PLAYS = 8
REQUESTS = 6


async def recorded_senders(pool: BrowserPool, page: Document, hosts: tuple[str, str]) -> dict[int, str]:
    """Whose each answered request was by the record: `own`, `foreign`, or nobody's."""
    with hostile_site() as own, hostile_site() as foreign:
        at = {"own": f"http://{hosts[0]}:{own.server_port}/", "foreign": f"http://{hosts[1]}:{foreign.server_port}/"}
        planted = Planted(page, at)
        for site in (own, foreign):
            site.pages |= planted.pages
        entries = await recorded_requests(pool, planted.address, at["own"], len(list(sent_by(page))))
    names = {at["own"].rstrip("/"): "own", BROWSER: "own", at["foreign"].rstrip("/"): "foreign"}
    return {int(each["request"]["url"].rpartition("/")[2]): names.get(each["_sender"], "nobody") for each in entries}


async def recorded_requests(pool: BrowserPool, address: str, website: str, count: int) -> list[dict[str, Any]]:
    """The requests at targets that were answered."""
    async with pool.browser(None) as browser:
        await browser.log_in(Task(task_id="t", website=website, task="x"))
        await browser.open(address)
        results: list[dict[str, Any]] = []
        for _ in range(60):
            traffic = browser.traffic()
            assert traffic is not None
            results = [
                each for each in traffic.entries if each["response"]["status"] and "/target/" in each["request"]["url"]
            ]
            if len(results) >= count and not traffic.is_pending:
                break
            await asyncio.sleep(0.05)
    return results


# Each kind of host and each number of processes once; the nightly run takes all four pairs.
@pytest.mark.parametrize(
    ("hosts", "flags"),
    each(
        [(hosts, flags) for hosts in (WITH_METADATA, WITHOUT_METADATA) for flags in ((), ISOLATED)],
        suite=[(WITH_METADATA, ()), (WITHOUT_METADATA, ISOLATED)],
    ),
    ids=["fetch metadata-one process", "fetch metadata-isolated", "plain-one process", "plain-isolated"],
)
async def test_a_request_is_the_sites_if_and_only_if_a_document_of_the_site_sent_it(
    tmp_path: Path, hosts: tuple[str, str], flags: tuple[str, ...]
) -> None:
    path = with_flags(tmp_path, "--host-resolver-rules='MAP *.test 127.0.0.1'", *flags)
    program = found_browser().model_copy(update={"path": path})
    wrong: list[tuple[SentRequest, str]] = []
    count = 0
    async with browser_pool(browser_settings(program), is_guarded=False) as pool:
        for seed in range(PLAYS):
            page = random_page(random.Random(seed), REQUESTS)
            result = await recorded_senders(pool, page, hosts)
            for request in (each for each in sent_by(page) if each.number in result):
                count += 1
                is_own, is_told = request.owner == "own", request.is_told(with_metadata=hosts == WITH_METADATA)
                if (result[request.number] == "own") != is_own and not (is_own and not is_told):
                    wrong.append((request, result[request.number]))
    assert wrong == []
    # A sandbox stops some of them.
    assert count > PLAYS * REQUESTS * 0.8
