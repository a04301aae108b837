"""A browser behind the guard: opened together, closed together, what was refused told with the page."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from judge.browser.guard.proxy import Guard, guarding
from judge.browser.playwright import BrowserSettings, PlaywrightMcp
from judge.browser.session import Browser, Hop, ToolResult
from judge.sites import NetworkPolicy, addresses_of
from shared.models import Page, ToolSpec

# Chromium sends loopback addresses around a proxy unless told not to.
_NO_BYPASS = "<-loopback>"
# What does not go through an HTTP proxy may not go at all: WebRTC's and QUIC's datagrams, and look-ups of names, by
# which a page could tell the world something. The guard looks names up itself.
_NO_WAY_AROUND = (
    # One policy, two names: the first is read by Chromium, the second by its headless shell.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


class GuardedBrowsers:
    """Opens browsers that reach the public web and one task's site: a `judge.browser.session.BrowserFactory`.

    `allowed_sites` may lie on private addresses as the website may, but not what is below them: whoever controls the
    names there could point them anywhere. `closed` are addresses of servers that stay out of reach in any case.
    """

    def __init__(
        self, settings: BrowserSettings, website: str, allowed_sites: Iterable[str] = (), *, closed: Iterable[str] = ()
    ) -> None:
        self._settings = settings
        allowed = (url for entry in allowed_sites for url in addresses_of(entry))
        self._policy = NetworkPolicy.for_websites([website, *allowed], closed=closed)

    def __call__(self) -> AbstractAsyncContextManager[Browser]:
        """A new browser with a guard of its own."""
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Browser]:
        async with guarding(self._policy) as guard:
            args = (*self._settings.chromium_args, *_NO_WAY_AROUND)
            behind = {"proxy_server": guard.url, "proxy_bypass": _NO_BYPASS, "chromium_args": args}
            async with PlaywrightMcp(self._settings.model_copy(update=behind))() as browser:
                yield GuardedBrowser(browser, guard)


class GuardedBrowser:
    """A `judge.browser.session.Browser` whose pages tell what the guard refused since the last one."""

    def __init__(self, browser: Browser, guard: Guard) -> None:
        self._browser = browser
        self._guard = guard

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """See `judge.browser.session.Browser`."""
        return self._browser.tools

    @property
    def versions(self) -> dict[str, str]:
        """See `judge.browser.session.Browser`."""
        return self._browser.versions

    async def open(self, url: str) -> None:
        """See `judge.browser.session.Browser`."""
        await self._browser.open(url)

    async def observe(self) -> Page:
        """See `judge.browser.session.Browser`."""
        page = await self._browser.observe()
        refused = self._guard.take_refusals()
        return page.model_copy(update={"refused": refused}) if refused else page

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """See `judge.browser.session.Browser`."""
        result = await self._browser.act(tool, params)
        # Told with the action that led there: after the last action of an episode no page is looked at any more.
        refused = self._guard.take_refusals()
        return result.model_copy(update={"refused": refused}) if refused else result

    def take_hops(self) -> tuple[Hop, ...]:
        """See `judge.browser.session.Browser`."""
        return self._browser.take_hops()
