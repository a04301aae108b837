"""Logs a browser in to sites through their login forms, to create the storage state for a run.

The same procedure works for most sites: open the login page, fill in the user name and the password (which a second
page may ask for), press Enter, and wait until the page no longer asks for a password. No model or participant is
involved, and nothing is recorded.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from judge.browser.display import has_display, require_display, virtual_display, xvfb
from judge.browser.installed import FoundBrowser, find_browser, wanted_by
from judge.browser.proxying import proxy_options
from judge.config import RunConfig
from judge.network.guard import guarding
from judge.network.interception import Interceptor
from judge.network.policy import NetworkPolicy
from judge.network.upstream_proxy import UpstreamProxy
from shared.errors import WabeError
from shared.settings import Settings

# Playwright's client is imported on first use, because the import takes 0.3 s and few runs log in.
if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Locator, Page, Response

_TIMEOUT_MS = 30_000
# Some pages never stop sending requests, so this wait may end without an answer.
_IDLE_MS = 5_000
_CLIENT_ERRORS = 400
_PASSWORD = "input[type=password]:visible"
_USERNAME = "input:is([type=text], [type=email], [type=tel], :not([type])):visible"
# A page that asks for the user name first may have other fields, such as a search's.
_NAMED_USERNAME = ":is([autocomplete~=username], [type=email], [name*=user i], [name*=login i], [name*=email i])"


class LoginFailed(WabeError):
    """A site did not accept the credentials, or has no form where one was expected."""

    blame = "user"


class _NotLoggedIn(Exception):
    """A site's answer to the credentials, in a few words."""


@dataclass(frozen=True)
class Account:
    """An account at a site, called `name` in messages, whose login form is at `address`.

    Without a `username`, the form asks for a password only.
    """

    name: str
    address: str
    username: str | None
    password: str = field(repr=False)


async def log_in(
    accounts: Sequence[Account],
    settings: Settings,
    *,
    config: RunConfig | None = None,
    interceptor: Interceptor | None = None,
    policy: NetworkPolicy | None = None,
    upstream: UpstreamProxy | None = None,
    clock_ms: int | None = None,
) -> Mapping[str, Any]:
    """The storage state of a browser logged in to all sites.

    The browser is the one of `config`, as in attempts: sites may treat another one differently, and end its session.
    An `interceptor` answers the browser's requests; those that it forwards are subject to `policy`. The pages' clock
    begins at `clock_ms` (since 1970), if given. With a `policy`, its requests are subject to it anyway, and go where it
    leads them; with an `upstream`, they go through that.
    Raises `LoginFailed`, which names the site but no password, and `ConfigError` without a browser or a display.
    """
    from playwright.async_api import async_playwright

    config = config or RunConfig()
    found_browser = find_browser(config.browser_path, settings, build=wanted_by(config))
    require_display(config, settings.environ)
    async with AsyncExitStack() as stack:
        options: dict[str, Any] = {}
        if interceptor:
            options = await intercepted_options(stack, interceptor, policy or NetworkPolicy(), upstream)
        elif upstream or policy:
            # Chromium itself cannot log in to a SOCKS proxy.
            allowed = policy or NetworkPolicy.for_websites([account.address for account in accounts])
            guard = await stack.enter_async_context(guarding(allowed, upstream=upstream))
            options = proxy_options(guard.url)
        is_headed = config.browser == "headed"
        launch = launch_options(found_browser, settings, is_headed=is_headed)
        if is_headed and not has_display(settings.environ) and (program := xvfb(settings.environ)):
            display = virtual_display(program, config, launch["env"])
            launch["env"] |= {"DISPLAY": await stack.enter_async_context(display)}
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(**launch, **options)
        try:
            context = await browser.new_context()
            context.set_default_timeout(_TIMEOUT_MS)
            if clock_ms is not None:
                await context.clock.install(time=datetime.fromtimestamp(clock_ms / 1000, UTC))
            for account in accounts:
                await _log_in(context, account)
            state = await context.storage_state(indexed_db=True)
        finally:
            await browser.close()
    if not (state.get("cookies") or state.get("origins")):
        account_names = ", ".join(account.name for account in accounts)
        raise LoginFailed(
            f"{account_names}: the log-in left neither cookies nor storage behind", remedy="check its address"
        )
    return dict(state)


def launch_options(browser: FoundBrowser, settings: Settings, *, is_headed: bool) -> dict[str, Any]:
    """How Playwright starts this browser: with this process's environment, but without its keys."""
    secrets = {each.get_secret_value() for each in settings.secrets}
    return {
        "executable_path": browser.path,
        "chromium_sandbox": browser.sandbox,
        "headless": not is_headed,
        "env": {name: value for name, value in settings.environ.items() if value not in secrets},
    }


async def intercepted_options(
    stack: AsyncExitStack, interceptor: Interceptor, policy: NetworkPolicy, upstream: UpstreamProxy | None = None
) -> dict[str, Any]:
    """How to launch a browser whose requests the interceptor answers, until the stack is closed."""
    # Imported on first use, because few log-ins need it.
    from judge.network.intercepting import intercepted
    from judge.network.tls import Authority

    authority = Authority()
    guard = await stack.enter_async_context(guarding(None, upstream=upstream))
    guard.allow(policy, intercepted(guard, interceptor, authority))
    return proxy_options(guard.url, authority.spki_hash)


async def _log_in(context: "BrowserContext", account: Account) -> None:
    from playwright.async_api import Error

    page = await context.new_page()
    try:
        await _fill(page, account)
    except (Error, _NotLoggedIn) as error:
        why = f"cannot log in at {account.address}: {str(error).splitlines()[0][:200]}"
        remedy = "check the address, and the credentials by hand"
        raise LoginFailed(f"{account.name}: {why}", remedy=remedy) from None
    await page.close()


async def _fill(page: "Page", account: Account) -> None:
    statuses: list[int] = []

    def answered(response: "Response") -> None:
        if response.request.is_navigation_request() and response.frame == page.main_frame:
            statuses.append(response.status)

    await page.goto(account.address)
    secret = page.locator(_PASSWORD).first
    if account.username is not None:
        await page.locator(_USERNAME).or_(secret).first.wait_for()
        user = await _username(page, secret)
        await user.fill(account.username)
        if not await secret.is_visible():
            # The next page, or the next part of this one, asks for the password.
            await user.press("Enter")
    await secret.fill(account.password)
    page.on("response", answered)
    await secret.press("Enter")
    await _until_gone(page, secret)
    if statuses and statuses[-1] >= _CLIENT_ERRORS:
        raise _NotLoggedIn(f"the site answered {statuses[-1]}")


async def _username(page: "Page", secret: "Locator") -> "Locator":
    """The field for the user name: in the form with the password, if there is one, because a page may have others."""
    form = page.locator("form").filter(has=secret).first
    if await form.count():
        return form.locator(_USERNAME).first
    field_named = page.locator(_USERNAME + _NAMED_USERNAME).first
    return field_named if await field_named.count() else page.locator(_USERNAME).first


async def _until_gone(page: "Page", secret: "Locator") -> None:
    """Wait until the page no longer asks for a password, as it does if the credentials are refused."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(_TIMEOUT_MS / 1000):
            while True:
                why = "it still asks for the password"
                await secret.wait_for(state="hidden")
                # The answer may ask again, with a form that comes with its last part, or with a script.
                why = "the answer to the password does not load"
                await page.wait_for_load_state("domcontentloaded")
                with suppress(Error):
                    await page.wait_for_load_state("networkidle", timeout=_IDLE_MS)
                if not await secret.is_visible():
                    return
    except TimeoutError:
        raise _NotLoggedIn(why) from None
