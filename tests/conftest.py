"""Fixtures for several packages of tests, and how thorough property tests are.

`--hypothesis-profile=thorough` tries many more examples (nightly).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: other test workers keep the machine busy, and no test here measures time.
settings.register_profile("fast", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("fast")


@pytest.fixture
def browser_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which browsers put their files during the test."""
    from helpers.browser.sessions import browser_temp_dir

    with browser_temp_dir(monkeypatch) as folder:
        yield folder


@pytest.fixture
def text_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts are played in a `TextBrowser`: for tests in which the browser is not the point."""
    from helpers.browser import text_browser as text
    from judge.server import service

    monkeypatch.setattr(service.BrowserSettings, "from_config", lambda *_: None)
    monkeypatch.setattr(service, "open_browser", lambda *_: text.text_browser())
