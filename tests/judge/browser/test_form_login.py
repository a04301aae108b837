"""Logging in by a site's own form."""

from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest

from helpers.browser.hostile_site import Handler, Page, Site, hostile_site
from judge.browser.form_login import LoginFailed, log_in
from shared.settings import Settings

pytestmark = pytest.mark.e2e

# A search form comes first on every page.
FORM = """<title>Sign in</title><form action=/search><input name=q></form>
<form method=post action=/login><input type=hidden name=token value=1><label>User <input name=user></label>
<input type=password name=password><button>Log in</button></form>"""


def login(handler: Handler) -> None:
    if parse_qs(handler.body.decode()) == {"token": ["1"], "user": ["emma"], "password": ["correct-horse"]}:
        handler.send(b"", 302, Location="/", Set_Cookie="session=s-1; Path=/; HttpOnly")
    else:
        handler.send(FORM.encode())


PAGES: dict[str, Page] = {"/": "<title>Home</title>Welcome", "/login": login, "/empty/login": "<title>Nothing</title>"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with hostile_site(PAGES) as running:
        yield running


async def test_the_storage_state_holds_the_session(site: Site) -> None:
    state = await log_in({"reddit": (site.url.rstrip("/"), "emma", "correct-horse")}, Settings.from_environ())
    assert [(cookie["name"], cookie["value"]) for cookie in state["cookies"]] == [("session", "s-1")]


async def test_refused_credentials_are_named_without_the_password(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.browser.form_login._TIMEOUT_MS", 500)
    with pytest.raises(LoginFailed, match=r"reddit: cannot log in at .*/login") as error:
        await log_in({"reddit": (site.url.rstrip("/"), "emma", "wrong-horse")}, Settings.from_environ())
    assert "wrong-horse" not in str(error.value)


async def test_a_page_without_a_form_is_no_login(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.browser.form_login._TIMEOUT_MS", 500)
    with pytest.raises(LoginFailed, match="cannot log in"):
        await log_in({"reddit": (f"{site.url}empty", "emma", "correct-horse")}, Settings.from_environ())
