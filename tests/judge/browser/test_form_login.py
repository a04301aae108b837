"""Logging in by a site's own form."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from helpers.browser.hostile_site import Handler, Site, hostile_site
from helpers.browser.login_site import PASSWORD, USER, login_site
from helpers.network.interceptors import Answering, PassingOn, answer
from judge.browser import installed
from judge.browser.chromium import BrowserSettings
from judge.browser.form_login import Account, LoginFailed, launch_options, log_in
from judge.browser.installed import FoundBrowser
from judge.config import RunConfig
from judge.network.interception import WireAnswer, WireRequest
from judge.network.policy import NetworkPolicy
from shared.errors import ConfigError
from shared.settings import Settings

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with login_site() as running:
        yield running


def account(site: Site, path: str, username: str | None = USER, password: str = PASSWORD) -> Account:
    return Account("shop", f"{site.url}{path}", username, password)


@pytest.mark.parametrize(("path", "username"), [("login", USER), ("token", None)])
async def test_the_storage_state_holds_the_session(site: Site, path: str, username: str | None) -> None:
    state = await log_in([account(site, path, username)], Settings.from_environ())
    assert [cookie["name"] for cookie in state["cookies"]] == ["session"]


FORM = (
    "<title>Log in</title><form method=post><input name=user><input name=key type=password><button>Go</button></form>"
)


def logs_in(request: WireRequest) -> WireAnswer:
    if request.method == "POST" and request.url.endswith("/login"):
        return WireAnswer(303, "", (("Location", "/"), ("Set-Cookie", "session=recorded; Secure; HttpOnly")))
    return answer(FORM if request.url.endswith("/login") else "<title>Inside</title>")


async def test_an_archive_may_answer_a_log_in_over_tls() -> None:
    interceptor = Answering(logs_in)
    shop_account = Account("shop", "https://shop.example/login", USER, PASSWORD)
    state = await log_in([shop_account], Settings.from_environ(), interceptor=interceptor)
    assert [(cookie["name"], cookie["value"]) for cookie in state["cookies"]] == [("session", "recorded")]
    assert set(interceptor.upstreams) == {None}
    (requests,) = [each.body for each in interceptor.requests if each.method == "POST"]
    assert parse_qs(requests.decode()) == {"user": [USER], "key": [PASSWORD]}


MODES = {
    "headless shell": RunConfig(headless="shell"),
    "new headless": RunConfig(headless="new"),
    "headed under Xvfb": RunConfig(browser="headed"),
}


@pytest.mark.parametrize("mode", MODES)
async def test_a_log_in_uses_the_browser_of_attempts(mode: str) -> None:
    config = MODES[mode]
    settings = Settings.from_environ({name: value for name, value in os.environ.items() if name != "DISPLAY"})
    try:
        browser_settings = BrowserSettings.from_config(config, settings)
    except ConfigError as error:
        pytest.skip(error.message)
    assert browser_settings.mode == mode
    interceptor = Answering(logs_in)
    shop_account = Account("shop", "https://shop.example/login", USER, PASSWORD)
    state = await log_in([shop_account], settings, config=config, interceptor=interceptor)
    assert [cookie["value"] for cookie in state["cookies"]] == ["recorded"]
    agents = {
        value for headers in interceptor.requests for name, value in headers.headers if name.lower() == "user-agent"
    }
    assert [("Headless" in agent) for agent in agents] == [config.browser == "headless"]


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("config", "names", "problem"),
    [
        (RunConfig(headless="new"), ["chromium-headless-shell"], "no full browser found"),
        (RunConfig(headless="shell"), ["chromium"], "no headless shell found"),
        (RunConfig(browser="headed"), ["chromium-headless-shell"], "no full browser found"),
        (RunConfig(browser="headed"), ["chromium"], "needs a display"),
    ],
)
async def test_a_log_in_says_what_its_browser_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: RunConfig, names: list[str], problem: str
) -> None:
    monkeypatch.setattr(installed, "_SYSTEM", "Linux")
    for name in names:
        program(tmp_path / "bin" / name)
    settings = Settings.from_environ({"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")})
    with pytest.raises(ConfigError, match=problem):
        await log_in([Account("shop", "https://shop.example/", USER, PASSWORD)], settings, config=config)


def test_the_browser_gets_no_keys() -> None:
    settings = Settings.from_environ({"OPENAI_API_KEY": "sk-1", "WABE_AUTH_TOKEN": "secret", "HOME": "/home/x"})
    browser = FoundBrowser(path=Path("/chromium"), source="", sandbox=True, sandbox_reason="")
    assert launch_options(browser, settings, is_headed=False)["env"] == {"HOME": "/home/x"}


async def test_a_log_in_on_an_archive_has_the_clock_of_its_recording() -> None:
    # As an application that shows the last days after the log-in.
    late = "<script>setTimeout(() => { document.cookie = 'week=' + new Date(Date.now() - 6048e5).toISOString() }, 20)"

    def answers(request: WireRequest) -> WireAnswer:
        return answer(f"<p>Hello</p>{late}</script>") if request.method == "POST" else logs_in(request)

    began = datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
    shop_account = Account("shop", "https://shop.example/login", USER, PASSWORD)
    clock_ms = round(began.timestamp() * 1000)
    state = await log_in([shop_account], Settings.from_environ(), interceptor=Answering(answers), clock_ms=clock_ms)
    (week,) = [cookie["value"] for cookie in state["cookies"] if cookie["name"] == "week"]
    assert week.startswith("2021-02-25T05:06")


async def test_a_log_in_may_be_passed_on_and_seen(site: Site) -> None:
    interceptor, policy = PassingOn(), NetworkPolicy.for_websites([site.url])
    settings = Settings.from_environ()
    state = await log_in([account(site, "login")], settings, interceptor=interceptor, policy=policy)
    assert [cookie["name"] for cookie in state["cookies"]] == ["session"]
    assert "POST" in [each.method for each in interceptor.requests]


async def test_a_password_may_be_asked_for_after_the_user_name_and_the_page_may_stay(site: Site) -> None:
    state = await log_in([account(site, "two")], Settings.from_environ())
    (stored,) = state["origins"]
    assert [item["value"] for item in stored["localStorage"]] == ["token-1"]


@pytest.mark.parametrize(
    ("path", "username", "why"),
    [("login", USER, "it still asks for the password"), ("token", None, "the site answered 403")],
)
async def test_refused_credentials_are_named_without_the_password(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str, username: str | None, why: str
) -> None:
    monkeypatch.setattr("judge.browser.form_login._TIMEOUT_MS", 1500)
    with pytest.raises(LoginFailed, match=f"shop: cannot log in at .*/{path}: {why}") as error:
        await log_in([account(site, path, username, "wrong-horse")], Settings.from_environ())
    assert "wrong-horse" not in str(error.value)


@pytest.mark.parametrize(
    ("pause_s", "why"),
    [(0.5, "it still asks for the password"), (60, "the answer to the password does not load")],
    ids=["later", "never"],
)
async def test_an_answer_counts_once_it_is_whole(monkeypatch: pytest.MonkeyPatch, pause_s: float, why: str) -> None:
    def in_two_parts(handler: Handler) -> None:
        parts = ["<title>Sign in</title>" + " " * 2000, FORM]
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", str(sum(map(len, parts))))
        handler.send_header("Set-Cookie", "visitor=1")
        handler.end_headers()
        for part in parts:
            with suppress(OSError):
                handler.wfile.write(part.encode())
            handler.server.released.wait(pause_s if handler.body else 0)

    monkeypatch.setattr("judge.browser.form_login._TIMEOUT_MS", 4000)
    with hostile_site({"/login": in_two_parts}) as site, pytest.raises(LoginFailed, match=why):
        await log_in([account(site, "login")], Settings.from_environ())


async def test_a_page_without_a_form_is_not_a_login(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.browser.form_login._TIMEOUT_MS", 500)
    with pytest.raises(LoginFailed, match="cannot log in"):
        await log_in([account(site, "empty")], Settings.from_environ())


async def test_a_form_that_stores_nothing_is_not_a_login(site: Site) -> None:
    with pytest.raises(LoginFailed, match="left neither cookies nor storage behind"):
        await log_in([account(site, "unkept")], Settings.from_environ())
