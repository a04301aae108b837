"""The address of a hosted browser, and the connection to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.browser.chromium import BrowserSettings
from judge.browser.hosted import STATE_FILE, HostedBrowser, read_connection
from judge.config import RunConfig
from shared.errors import ConfigError
from shared.settings import Settings

URL = "wss://browsers.example:8443/session/{task_id}?token=hunter22"


def hosted(url: str = URL) -> HostedBrowser:
    result = HostedBrowser.of(RunConfig(cdp_url=url))
    assert result is not None
    return result


def test_of_the_address_only_its_scheme_host_and_port_are_recorded_or_shown() -> None:
    config = RunConfig(cdp_url="wss://key-1234:hunter22@browsers.example:8443/?token=hunter22")
    assert config.recorded()["cdp_url"] == "wss://browsers.example:8443"
    settings = BrowserSettings.from_config(config, Settings.from_environ())
    for text in (repr(config), str(config.recorded()), repr(HostedBrowser.of(config)), repr(settings)):
        assert "hunter22" not in text
        assert "key-1234" not in text


def test_that_there_is_no_guard_is_recorded() -> None:
    assert RunConfig(cdp_url=URL).recorded()["guarded"] is False
    assert "guarded" not in RunConfig().recorded()


def test_the_address_is_in_the_servers_own_file_and_not_in_its_command(tmp_path: Path) -> None:
    config = RunConfig(cdp_url="wss://browsers.example/?token=hunter22")
    settings = BrowserSettings.from_config(config, Settings.from_environ({}))
    assert "hunter22" not in " ".join(settings.command(tmp_path))
    assert json.loads(settings.config_file())["browser"]["cdpEndpoint"] == "wss://browsers.example/?token=hunter22"


def test_no_browser_of_this_machine_is_needed() -> None:
    settings = BrowserSettings.from_config(RunConfig(cdp_url=URL), Settings.from_environ({"PATH": ""}))
    assert (settings.found, settings.mode, settings.confinement["guarded"]) == (None, "hosted", "false")


def test_each_task_has_its_own_address_if_that_has_a_place_for_its_id() -> None:
    assert hosted().is_per_task
    assert hosted().for_task("find/desk 1").url == "wss://browsers.example:8443/session/find%2Fdesk%201?token=hunter22"
    assert not hosted("ws://browsers.example/").is_per_task


@given(st.text(min_size=1, max_size=40))
def test_no_id_of_a_task_leads_to_another_place_than_the_one_in_the_address(task_id: str) -> None:
    before, _, after = URL.partition("{task_id}")
    url = hosted().for_task(task_id.encode("utf-8", "replace").decode()).url
    inner = url.removeprefix(before).removesuffix(after)
    assert not set(inner) & set("/?#&@: ")


def test_a_variable_that_was_not_resolved_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config\.cdp_url: a variable"):
        HostedBrowser.of(RunConfig(cdp_url="${BROWSER_URL}"))


@pytest.mark.parametrize(
    "wrong",
    [
        "ftp://hunter22@h/",
        "hunter22",
        "wss:///hunter22",
        "wss://h:99999/hunter22",
        "wss://h/{id}/hunter22",
        "wss://h/ hunter22",
        "ws://{task_id}.h/hunter22",
    ],
)
def test_what_is_not_the_address_of_a_browser_is_refused_without_showing_it(wrong: str) -> None:
    with pytest.raises(ValueError, match="address of a browser") as raised:
        RunConfig(cdp_url=wrong)
    assert "hunter22" not in str(raised.value).split("input_value")[0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("browser", "headed"),
        ("headless", "new"),
        ("browser_path", "/usr/bin/chromium"),
        ("upstream_proxy", "http://proxy.example:8080"),
        ("archives", {"*": {"path": "shop.wacz"}}),
        ("attacks", "both"),
        ("settle", "page-time"),
    ],
)
def test_a_setting_that_a_hosted_browser_cannot_have_is_refused_by_its_name(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match="cdp_url") as raised:
        RunConfig.model_validate({"cdp_url": URL, key: value})
    assert "hunter22" not in str(raised.value).split("input_value")[0]


def test_private_addresses_without_a_hosted_browser_are_not_a_setting() -> None:
    with pytest.raises(ValueError, match="there is no cdp_url"):
        RunConfig(cdp_private=True)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"state": "odd"}', '{"state": "lost", "version": 1}', "\x00"])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    assert read_connection(tmp_path) is None
    (tmp_path / STATE_FILE).write_text(content)
    assert read_connection(tmp_path) is None
