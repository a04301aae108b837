"""The browser that a person uses always has a window."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from helpers.network.interceptors import Answering, answer
from judge.browser import installed
from judge.browser.by_hand import browse_by_hand
from judge.browser.display import virtual_display, xvfb
from judge.browser.installed import find_browser
from judge.config import RunConfig
from judge.network.interception import WireAnswer, WireRequest
from judge.network.policy import NetworkPolicy
from shared.errors import ConfigError
from shared.settings import Settings

URL = "https://shop.example/"


async def test_a_headless_shell_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_SYSTEM", "Linux")
    shell = tmp_path / "bin" / "chromium-headless-shell"
    shell.parent.mkdir()
    shell.write_text("#!/bin/sh\n")
    shell.chmod(0o755)
    settings = Settings.from_environ({"HOME": str(tmp_path), "PATH": str(shell.parent), "DISPLAY": ":0"})
    interceptor = Answering(lambda _: answer(""))
    with pytest.raises(ConfigError, match="no full browser found"):
        await browse_by_hand([URL], settings, interceptor, NetworkPolicy())
    with pytest.raises(ConfigError, match="is the headless shell") as caught:
        await browse_by_hand([URL], settings, interceptor, NetworkPolicy(), browser_path=str(shell))
    assert caught.value.remedy == "name a full browser, or leave it out"


@pytest.mark.e2e
async def test_it_opens_a_window_on_the_display() -> None:
    here = Settings.from_environ()
    try:
        find_browser(None, here, build="full")
    except ConfigError as error:
        pytest.skip(error.message)
    if (drawn := xvfb(here.environ)) is None:
        pytest.skip("Xvfb is not installed")
    requested: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def page(request: WireRequest) -> WireAnswer:
        agent = next(value for name, value in request.headers if name.lower() == "user-agent")
        if not requested.done():
            requested.set_result(agent)
        return answer("<title>Shop</title>")

    async with virtual_display(drawn, RunConfig(), dict(os.environ)) as display:
        settings = Settings.from_environ({**os.environ, "DISPLAY": display})
        policy = NetworkPolicy.for_websites([URL])
        browsing = asyncio.create_task(browse_by_hand([URL], settings, Answering(page), policy))
        try:
            awaited: set[asyncio.Future[Any]] = {browsing, requested}
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            assert requested.done(), browsing
            assert "Headless" not in requested.result()
        finally:
            browsing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await browsing
