"""A headed browser for a person, whose requests go through an interceptor."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from playwright.async_api import Error, async_playwright

from judge.browser.form_login import intercepted_options, launch_options
from judge.browser.installed import find_browser
from judge.network.interception import Interceptor
from judge.network.policy import NetworkPolicy
from shared.errors import BrowserFault, ConfigError
from shared.settings import Settings


async def browse_by_hand(
    urls: Sequence[str],
    settings: Settings,
    interceptor: Interceptor,
    policy: NetworkPolicy,
    *,
    browser_path: str | None = None,
) -> None:
    """Open a browser with these pages until the person closes it.

    Always with a window, whatever attempts have. Raises `ConfigError` without a display, and without a browser that can
    have a window.
    """
    if sys.platform == "linux" and not any(settings.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        raise ConfigError("no display to record by hand", remedy="record with a script or a participant")
    found_browser = find_browser(browser_path, settings, build="full")
    async with AsyncExitStack() as stack:
        options = await intercepted_options(stack, interceptor, policy)
        playwright = await stack.enter_async_context(async_playwright())
        try:
            browser = await playwright.chromium.launch(
                **launch_options(found_browser, settings, is_headed=True), **options
            )
        except Error as error:
            raise BrowserFault(f"no browser could be opened: {error.message.splitlines()[0][:200]}") from None
        closed = asyncio.Event()
        context = await browser.new_context(no_viewport=True)
        browser.on("disconnected", lambda _: closed.set())
        context.on("close", lambda _: closed.set())
        for url in urls:
            page = await context.new_page()
            page.on("close", lambda _: None if context.pages else closed.set())
            with suppress(Error):
                await page.goto(url)
        try:
            await closed.wait()
        finally:
            with suppress(Error):
                await browser.close()
