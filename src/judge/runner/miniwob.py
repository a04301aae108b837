"""Reads the utterances of MiniWoB++ tasks from their pages once begun, for `wabe tasks import miniwob`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import browser_pool
from judge.browser.session import Browser
from judge.config import RunConfig
from judge.runner.launch import child_environ, launched, site_member
from judge.scenario.miniwob import UTTERANCE, MiniwobTask, package_folder, site_entry
from judge.sites import NetworkPolicy
from shared.a2a.serving import listen
from shared.errors import WabeError
from shared.models import Page, Task
from shared.settings import Settings

# So that the next page starts a new episode.
_AFRESH = "localStorage.clear()"
_TRIES = 50
_PAUSE_S = 0.1


async def with_utterances(chosen: Sequence[MiniwobTask], settings: Settings) -> tuple[Task, ...]:
    """The tasks, each with its page's utterance. Opens every page in the judge's own browser.

    Raises `ConfigError` without the package or a browser, `WabeError` for a page that does not begin.
    """
    package_folder()
    browser_settings = BrowserSettings.from_config(RunConfig(), settings)
    with listen("127.0.0.1", 0) as sock:
        # Free at this moment; the site's server binds it again.
        port = sock.getsockname()[1]
    site = site_member(site_entry(port))
    with TemporaryDirectory(prefix="wabe-") as folder:
        environ = child_environ(settings, output_dir=Path(folder), participant_model=None)
        async with (
            launched([site], scenario_dir=Path(folder), environ=environ, logs=Path(folder)),
            browser_pool(browser_settings) as pool,
            pool.browser(NetworkPolicy.for_websites([site.endpoint])) as browser,
        ):
            return tuple([one.task(await utterance(browser, one.address(port))) for one in chosen])


async def utterance(browser: Browser, url: str) -> str:
    """The task as stated by the page. Raises `WabeError` for a page that does not begin."""
    await browser.open(url)
    for _ in range(_TRIES):
        (said,) = await browser.probe(Page(url=url, title="", snapshot=""), [UTTERANCE])
        if isinstance(said.value, str) and said.value.strip():
            await browser.probe(Page(url=url, title="", snapshot=""), [_AFRESH])
            return said.value
        await asyncio.sleep(_PAUSE_S)
    raise WabeError(f"{url} does not begin: {said.error or 'it says nothing'}")
