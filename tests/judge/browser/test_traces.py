"""Playwright's own trace of each attempt."""

import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import browser_settings
from judge.browser.pool import browser_pool
from judge.browser.traces import traced
from judge.records.tasks import Task
from shared.errors import ParticipantError


@pytest.mark.e2e
async def test_each_attempt_leaves_a_trace_of_its_own_even_if_it_fails(tmp_path: Path) -> None:
    with hostile_site({"/": "<title>Shop</title><button>Buy</button>"}) as site:
        task = Task(task_id="shop", website=site.url, task="Buy it.")
        async with browser_pool(browser_settings(), is_guarded=False) as pool:
            browsers = traced(pool.browser, tmp_path / "traces")
            async with browsers(None) as browser:
                await browser.log_in(task)
                await browser.open(site.url, "page-time")
                page = await browser.observe()
                await browser.act("browser_click", {"target": page.snapshot.partition("[ref=")[2].partition("]")[0]})
            with suppress(ParticipantError):
                async with browsers(None) as browser:
                    await browser.log_in(task)
                    await browser.open(site.url, "page-time")
                    raise ParticipantError("no reply")
    assert sorted(path.name for path in (tmp_path / "traces").iterdir()) == ["shop-1.zip", "shop-2.zip"]
    with zipfile.ZipFile(tmp_path / "traces" / "shop-1.zip") as trace:
        events = trace.read("trace.trace").decode()
        assert '"method":"click"' in events
        assert any(name.startswith("resources/") for name in trace.namelist())
