"""A real browser for tests of our own pages, with a record of what goes wrong in it and what it asks for."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, async_playwright

from judge.browser.chromium import find_browser
from shared.settings import Settings

AXE_VERSION = "4.14.1"


@dataclass
class WatchedPage:
    """A page with what its console said, the errors it threw, and the addresses it asked for."""

    page: Page
    troubles: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    """The browser that an assessment would use. Starting one takes a second: share it where loops allow."""
    found = find_browser(None, Settings.from_environ())
    arguments = [] if found.sandbox else ["--no-sandbox"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(found.path), args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def watched_page(browser: Browser, **options: Any) -> AsyncIterator[WatchedPage]:
    """A page in a context of its own; `options` go to the context."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    try:
        watched = WatchedPage(await context.new_page())
        watched.page.set_default_timeout(10_000)
        watched.page.on("console", lambda message: watched.troubles.append(message.text))
        watched.page.on("pageerror", lambda error: watched.troubles.append(str(error)))
        watched.page.on("dialog", lambda dialog: watched.troubles.append(f"dialog: {dialog.message}"))
        watched.page.on("request", lambda request: watched.requests.append(request.url))
        yield watched
    finally:
        await context.close()


@asynccontextmanager
async def open_page(**options: Any) -> AsyncIterator[WatchedPage]:
    """A watched page in a browser of its own."""
    async with open_browser() as browser, watched_page(browser, **options) as watched:
        yield watched


def axe_source(cache: Path) -> str:
    """The accessibility checker's source, installed from its npm package once; skips where npm cannot give it."""
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed, so axe-core cannot be had")
        cache.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(cache), "--no-audit", "--no-fund", f"axe-core@{AXE_VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            pytest.skip(f"npm could not install axe-core: {done.stderr.strip()[-200:]}")
    return script.read_text()


async def serious_violations(page: Page, axe: str) -> list[str]:
    """What axe-core calls serious or critical on the page as it stands. The page's policy must be bypassed."""
    await page.evaluate(axe)
    result = await page.evaluate("axe.run()")
    return [
        f"{found['id']}: {found['nodes'][0]['target']}"
        for found in result["violations"]
        if found["impact"] in ("serious", "critical")
    ]
