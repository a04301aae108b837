"""Logs a browser in to WebArena's sites through their login forms, to create the storage state for a run.

The same procedure works for all of them: open the login page, fill in its two fields, press Enter, and wait until the
form is gone. No model or participant is involved, and nothing is recorded.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from playwright.async_api import Error, Page, async_playwright

from judge.browser.chromium import find_browser
from shared.errors import WabeError
from shared.settings import Settings

# The path of each kind of site's login form. For other sites, the form is at the site's own address.
_FORMS: Mapping[str, str] = MappingProxyType(
    {"shopping": "/customer/account/login/", "reddit": "/login", "gitlab": "/users/sign_in"}
)
_TIMEOUT_MS = 30_000
_PASSWORD = "input[type=password]:visible"
_USERNAME = "input:is([type=text], [type=email], :not([type])):visible"


class LoginFailed(WabeError):
    """A site did not accept the credentials, or has no form where one was expected."""

    blame = "user"


async def log_in(accounts: Mapping[str, tuple[str, str, str]], settings: Settings) -> Mapping[str, Any]:
    """The storage state of a browser that is logged in to all sites; `accounts`: address, user and password by site.

    Raises `LoginFailed`, which names the site but no password.
    """
    found = find_browser(None, settings)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found.path, chromium_sandbox=found.sandbox)
        try:
            context = await browser.new_context()
            context.set_default_timeout(_TIMEOUT_MS)
            for site, (url, username, password) in accounts.items():
                page = await context.new_page()
                address = url + _FORMS.get(site, "")
                try:
                    await _fill(page, address, username, password)
                except Error as error:
                    raise LoginFailed(
                        f"{site}: cannot log in at {address}: {error.message.splitlines()[0][:200]}",
                        remedy="check the address, and the credentials by hand",
                    ) from None
                await page.close()
            return dict(await context.storage_state())
        finally:
            await browser.close()


async def _fill(page: Page, address: str, username: str, password: str) -> None:
    await page.goto(address)
    secret = page.locator(_PASSWORD).first
    form = page.locator("form").filter(has=secret).first
    await form.locator(_USERNAME).first.fill(username)
    await secret.fill(password)
    await secret.press("Enter")
    # The form stays if the credentials are refused.
    await page.wait_for_url(lambda reached: reached.rstrip("/") != address.rstrip("/"))
    await page.wait_for_load_state()
    await page.locator(_PASSWORD).first.wait_for(state="hidden")
