"""Fixtures for several packages of tests, and how thorough property tests are.

`--hypothesis-profile=thorough` tries many more examples (nightly).
"""

import asyncio
import atexit
import gc
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from inspect import signature
from pathlib import Path

import certifi
import pytest
import uvicorn.server
from hypothesis import settings

import shared.seams

# No deadline: other test workers keep the machine busy, and no test here measures time. The fast profile tries the same
# examples each time, so that a failure can be run again anywhere; the thorough one looks for new ones.
settings.register_profile("fast", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("fast")


class _ShortPauses:
    """`asyncio` as uvicorn sees it. It looks every 0.1 s whether to stop, which hundreds of servers would wait for."""

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(min(delay, 0.01))


vars(uvicorn.server)["asyncio"] = _ShortPauses()
_read_certificates = ssl.SSLContext.load_verify_locations
_PUBLIC_CERTIFICATES = {certifi.where(), os.environ.get("SSL_CERT_FILE", "")}


def _read_own_certificates(
    context: ssl.SSLContext, cafile: str | None = None, capath: str | None = None, cadata: str | None = None
) -> None:
    if cafile not in _PUBLIC_CERTIFICATES:
        _read_certificates(context, cafile, capath, cadata)


# No test here trusts a certificate that it did not make, and reading the public ones takes 20 ms for each HTTP client.
ssl.SSLContext.load_verify_locations = _read_own_certificates  # type: ignore[assignment, method-assign]
# What other packages add is not under test, if some are installed here.
vars(shared.seams)["_of_others"] = lambda group: []


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--nightly`: all cases of tables of which the suite takes each mechanism once (`helpers.cases`).

    `--settle real-time`: whole attempts in a real browser wait for pages in real time.

    `--hold`: every task holds requests, so that the guard answers for its attempts, and ends their TLS. `--attack`:
    every task is played under an attack, whose content is put into all its pages. `--headed`: browsers have a window.
    `--upstream tinyproxy`, `microsocks`: browsers reach sites through that proxy, with a password.
    """
    parser.addoption("--nightly", action="store_true", help="also the cases that are left to the nightly run")
    parser.addoption("--settle", default="auto", choices=["auto", "page-time", "real-time"])
    parser.addoption("--hold", action="store_true")
    parser.addoption("--attack", action="store_true")
    parser.addoption("--headed", action="store_true")
    parser.addoption("--upstream", choices=["tinyproxy", "microsocks"])


def pytest_configure(config: pytest.Config) -> None:
    """The mode for attempts that do not choose one; and how a worker ends."""
    if hasattr(config, "workerinput"):
        # A worker that has sent its last report is done: taking millions of objects apart would take seconds.
        atexit.register(os._exit, 0)
    if (settle := config.getoption("--settle")) != "auto":
        from helpers.episode.live_judge import FAST

        FAST["settle"] = settle
    if config.getoption("--headed"):
        from helpers.browser.sessions import SELECTED_BROWSER

        SELECTED_BROWSER["browser"] = "headed"
    if program := config.getoption("--upstream"):
        from helpers.browser.sessions import SELECTED_BROWSER
        from helpers.proxies import started_proxy

        SELECTED_BROWSER["upstream_proxy"] = started_proxy(program)
    if config.getoption("--hold"):
        from helpers.episode.live_judge import EVERY_TASK

        EVERY_TASK["hold"] = [{"url": "https://held.example/*"}]
    if config.getoption("--attack"):
        from helpers.scenario.attacked import attack_every_task

        attack_every_task()


# Collecting creates millions of objects that stay: looking through them for garbage takes a quarter of the time, then
# and later.
gc.disable()
# DuckDB reports what is still there at the end as leaked.
atexit.register(gc.unfreeze)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with a real browser come first, then slow ones, so that no worker is left with a long one at the end."""
    if not config.getoption("--nightly"):
        left_out = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)
    if config.getoption("--attack"):
        # Content is put into pages of real browsers only.
        items[:] = [item for item in items if "text_browser" not in getattr(item, "fixturenames", ())]
    for item in items:
        # Whole assessments take half a second each, and there are many.
        if "text_browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("e2e") and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "kept_browsers")
    first, second = ({item.path for item in items if item.get_closest_marker(name)} for name in ("e2e", "slow"))
    items.sort(key=lambda item: (item.path not in first, item.path not in second))


@pytest.fixture(scope="session")
async def kept_browsers() -> AsyncIterator[None]:
    """Judges of tests with a real browser borrow theirs from the process that runs the tests."""
    from helpers.browser.kept import KEPT
    from judge.server import service

    KEPT.loop = asyncio.get_running_loop()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(service, "browser_pool", KEPT.pool)
        yield
    await KEPT.end()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that look at processes, or at the files of browsers, start and end their own."""
    if item.get_closest_marker("e2e") and isinstance(item, pytest.Function):
        from helpers.browser.kept import KEPT

        is_own = item.get_closest_marker("own_browser") or "browser_files" in signature(item.function).parameters
        KEPT.is_lending = not is_own


@pytest.fixture
def browser_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which browsers put their files during the test."""
    from helpers.browser.sessions import browser_temp_dir

    with browser_temp_dir(monkeypatch) as folder:
        yield folder


@pytest.fixture
def text_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts are played in a `TextBrowser`: for tests in which the browser is not the point."""
    from helpers.browser.text_browser import play_in_text_browsers

    play_in_text_browsers(monkeypatch)
