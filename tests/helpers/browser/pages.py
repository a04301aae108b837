"""A real browser for tests of our own pages, with a record of what goes wrong in it and what it asks for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from playwright.async_api import Browser, Page, async_playwright, expect

from judge.browser.installed import find_browser
from shared.settings import Settings

# Long, for a busy machine: no test here waits for it to be over.
_TIMEOUT_MS = 60_000
expect.set_options(timeout=_TIMEOUT_MS)


@dataclass
class WatchedPage:
    """A page with what its console said, the errors it threw, and the addresses it asked for."""

    page: Page
    troubles: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    """The browser that an assessment would use. Starting one takes a second: share it where loops allow."""
    found_browser = find_browser(None, Settings.from_environ())
    arguments = [] if found_browser.sandbox else ["--no-sandbox"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(found_browser.path), args=arguments)
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
        watched.page.set_default_timeout(_TIMEOUT_MS)
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


# Axe leaves undecided: symbols such as ✓, texts in charts, and what a shadow lies over. Their colours are plain: that
# of the text and that of the nearest background.
_FAINT = """nodes => nodes.map(({ target }) => target.at(-1)).filter(selector => {
    const read = text => {
        const colour = new axe.commons.color.Color();
        colour.parseString(text);
        return colour;
    };
    const element = document.querySelector(selector);
    let behind = element;
    while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
    if (!behind) return true;
    const style = getComputedStyle(element);
    const colour = read(element instanceof SVGElement ? style.fill : style.color);
    return axe.commons.color.getContrast(read(getComputedStyle(behind).backgroundColor), colour) < 4.5;
})"""


async def violations(page: Page) -> list[str]:
    """What any rule of axe-core finds on the page as it stands, in light and dark; its policy must be bypassed.

    Contrasts that it leaves undecided are measured. In dark only the rules about colours are tried again.
    """
    await page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = []
    # Also those that are off by default, but for the contrast of 7.
    rules = await page.evaluate("axe.getRules().map(({ ruleId }) => ruleId)")
    rules.remove("color-contrast-enhanced")
    schemes: dict[Literal["light", "dark"], list[str]] = {
        "light": rules,
        "dark": ["color-contrast", "link-in-text-block"],
    }
    for scheme, names in schemes.items():
        await page.emulate_media(color_scheme=scheme)
        options = {"resultTypes": ["violations", "incomplete"], "runOnly": {"type": "rule", "values": names}}
        result = await page.evaluate("options => axe.run(options)", options)
        found += [
            f"{scheme}: {results['id']}: {[node['target'] for node in results['nodes']]}"
            for results in result["violations"]
        ]
        undecided = [results["nodes"] for results in result["incomplete"] if results["id"] == "color-contrast"]
        for faint in await page.evaluate(_FAINT, [node for nodes in undecided for node in nodes]):
            found.append(f"{scheme}: the contrast of {faint} is too small or unknown")
    return found
