"""Which browser is used with a window or without, and on which display."""

import os
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from helpers.browser.hostile_site import hostile_site
from judge.browser import installed
from judge.browser.chromium import BrowserSettings
from judge.browser.display import has_display, require_display, virtual_display
from judge.browser.installed import find_browser, wanted_by
from judge.browser.pool import browser_pool
from judge.config import RunConfig
from judge.network.policy import NetworkPolicy
from shared.errors import BrowserFault, ConfigError
from shared.settings import Settings

HEADED = RunConfig(browser="headed")
MODES = {
    "headless shell": RunConfig(headless="shell"),
    "new headless": RunConfig(headless="new"),
    "headed under Xvfb": HEADED,
}


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def settings(tmp_path: Path, **environ: str) -> Settings:
    return Settings.from_environ({"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), **environ})


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A folder with a headless shell and a full browser."""
    for name in ("chromium-headless-shell", "chromium"):
        program(tmp_path / "bin" / name)
    return tmp_path


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (RunConfig(), "chromium-headless-shell"),
        (RunConfig(headless="shell"), "chromium-headless-shell"),
        (RunConfig(headless="new"), "chromium"),
        (HEADED, "chromium"),
    ],
)
def test_the_browser_is_one_of_the_kind_that_is_asked_for(
    both: Path, config: RunConfig, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "_SYSTEM", "Linux")
    assert find_browser(None, settings(both), build=wanted_by(config)).path.name == name


def test_a_headless_shell_cannot_have_a_window(both: Path) -> None:
    with pytest.raises(ConfigError, match="is the headless shell"):
        find_browser("chromium-headless-shell", settings(both), build="full")


def test_without_a_full_browser_the_error_says_what_is_missing(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "chromium-headless-shell")
    with pytest.raises(ConfigError, match="no full browser found"):
        find_browser(None, settings(tmp_path), build="full")


def test_a_window_without_display_needs_xvfb(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a display") as caught:
        require_display(HEADED, settings(tmp_path).environ)
    assert "apt-get install xvfb" in caught.value.remedy
    require_display(RunConfig(), settings(tmp_path).environ)
    require_display(HEADED, settings(tmp_path, DISPLAY=":0").environ)
    program(tmp_path / "bin" / "Xvfb")
    require_display(HEADED, settings(tmp_path).environ)


def test_only_linux_may_be_without_a_display(tmp_path: Path) -> None:
    assert [has_display(settings(tmp_path).environ, system=system) for system in ("linux", "darwin", "win32")] == [
        False,
        True,
        True,
    ]


def test_a_window_is_not_headless() -> None:
    with pytest.raises(ValidationError, match="browser with a window"):
        RunConfig(browser="headed", headless="new")


def test_the_defaults_are_not_recorded() -> None:
    assert not {"browser", "headless"} & RunConfig().recorded().keys()
    assert HEADED.recorded()["browser"] == "headed"


@pytest.mark.parametrize("script", ["exit 1\n", "echo fish >&$2\n"])
async def test_an_xvfb_that_does_not_start_is_a_fault(tmp_path: Path, script: str) -> None:
    broken = program(tmp_path / "Xvfb", f"#!/bin/sh\n{script}")
    with pytest.raises(BrowserFault, match="Xvfb did not start"):
        async with virtual_display(broken, HEADED, {"PATH": os.environ["PATH"]}):
            pass


async def test_an_xvfb_ends_with_the_body(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    program(
        tmp_path / "Xvfb", f"#!/bin/bash\ntrap 'touch {ended}; exit' TERM\necho 42 >&$2\nwhile :; do sleep 0.1; done\n"
    )
    async with virtual_display(tmp_path / "Xvfb", HEADED, {"PATH": os.environ["PATH"]}) as display:
        assert display == ":42"
        assert not ended.exists()
    assert ended.exists()


@pytest.mark.e2e
@pytest.mark.parametrize("mode", MODES)
async def test_a_page_is_the_same_in_every_mode(mode: str) -> None:
    config = MODES[mode]
    here = Settings.from_environ({name: value for name, value in os.environ.items() if name != "DISPLAY"})
    if config.browser == "headed" and shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    try:
        browser_settings = BrowserSettings.from_config(config, here)
    except ConfigError as error:
        pytest.skip(error.message)
    page = "<title>One</title><h1>Hello</h1><script>setTimeout(() => document.title = 'Two', 500)</script>"
    with hostile_site({"/": page}) as site:
        async with (
            browser_pool(browser_settings) as pool,
            pool.browser(NetworkPolicy.for_websites((site.url,))) as browser,
        ):
            await browser.open(site.url, "page-time")
            observation = await browser.observe()
            assert browser.versions["browser_mode"] == mode
    assert 'heading "Hello"' in observation.snapshot
    assert observation.title == "Two"
    assert observation.screenshot is not None
