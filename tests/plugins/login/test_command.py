"""`wabe tasks login` for any site."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from helpers.browser.hostile_site import Site
from helpers.browser.login_site import PASSWORD, USER, login_site
from judge.commands.app import app
from shared.errors import ConfigError


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with login_site() as running:
        yield running


def login(*arguments: str, typed: str | None = None, environ: dict[str, str] | None = None) -> Result:
    words = ["tasks", "login", *arguments]
    return CliRunner().invoke(app, words, input=typed, env=environ, catch_exceptions=False)


@pytest.mark.e2e
@pytest.mark.parametrize("source", ["variable", "standard input"])
def test_the_state_is_saved_for_this_user_only(site: Site, tmp_path: Path, source: str) -> None:
    path = tmp_path / "state.json"
    words = [f"{site.url}login", "--user", USER, "-o", str(path)]
    if source == "variable":
        done = login(*words, "--password-env", "SHOP_PASSWORD", environ={"SHOP_PASSWORD": PASSWORD})
    else:
        done = login(*words, typed=f"{PASSWORD}\n")
    assert done.output == f"{path}: logged in; 1 cookie(s), storage of 0 origin(s)\n"
    assert [cookie["name"] for cookie in json.loads(path.read_text())["cookies"]] == ["session"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "give the login form's URL, or --config"),
        (["http://x.example/", "--config", "sites.json"], "give the login form's URL, or --config"),
        (["http://x.example/"], "--output is missing"),
        (["x.example", "-o", "s.json"], "'x.example' is not an address"),
        (["http://x.example/", "-o", "s.json", "--password-env", "NOT_SET"], "'NOT_SET' is not set"),
        (["http://x.example/", "-o", "s.json"], "no password"),
        (["--config", "sites.json", "-o", "states", "--user", "ada"], "--user, --password-env and --allowed-site are"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_opened(words: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        login(*words, typed="")


def test_another_site_to_keep_is_checked_first() -> None:
    with pytest.raises(ConfigError, match="--allowed-site 'a/b' is not a site"):
        login("http://x.example/", "-o", "s.json", "--allowed-site", "a/b", typed="secret\n")
