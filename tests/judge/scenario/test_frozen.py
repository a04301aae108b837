"""Scenarios with frozen sites, as they are written and as they are played."""

from pathlib import Path

import pytest

from judge.config import ALL_SITES, FrozenSite
from judge.scenario.frozen import on_archives
from judge.scenario.models import Scenario
from judge.scenario.toml import parse_scenario
from shared.errors import ConfigError

BASE = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"
[[tasks]]
task_id = "t"
website = "https://shop.example/"
task = "Buy."
"""
SITE = '[[sites]]\nname = "{}"\nendpoint = "{}"\n'
FROZEN = SITE.format("shop", "https://shop.example/") + 'archive = "kept/shop.wacz"\n'
LIVE = SITE.format("bank", "http://127.0.0.1:9100") + 'cmd = "bank"\nrestart = true\n'


def read(text: str, path: str = "folder/s.toml") -> Scenario:
    return parse_scenario(text.encode(), Path(path))


def test_a_frozen_site_needs_no_command_and_a_scenario_may_have_live_ones_too() -> None:
    scenario = on_archives(read(BASE + FROZEN + LIVE))
    path = str(Path("folder/kept/shop.wacz").resolve())
    assert scenario.config.archives == {"https://shop.example/": FrozenSite(path=path)}
    assert [(site.name, site.cmd, site.restart) for site in scenario.sites] == [
        ("shop", None, False),
        ("bank", "bank", True),
    ]


def test_a_frozen_site_is_neither_started_nor_awaited_nor_reset() -> None:
    text = BASE + FROZEN.replace("shop.example", "shop.example:8443") + 'cmd = "serve"\nenv = { A = "${UNSET}" }\n'
    text += 'reset_url = "https://shop.example:8443/reset"\nready = { url = "/up" }\n'
    (site,) = on_archives(read(text)).sites
    assert (site.cmd, site.env, site.ready, site.reset, site.restart) == (None, {}, None, None, False)
    # For recording, it still is.
    assert read(text).sites[0].cmd == "serve"


def test_one_archive_may_answer_for_every_site(tmp_path: Path) -> None:
    scenario = on_archives(read(BASE + FROZEN + LIVE), tmp_path / "all.wacz")
    assert scenario.config.archives == {ALL_SITES: FrozenSite(path=str(tmp_path / "all.wacz"))}
    assert [site.cmd for site in scenario.sites] == [None, None]


def test_a_scenario_without_archives_stays_as_it_is() -> None:
    scenario = read(BASE + LIVE)
    assert on_archives(scenario) is scenario


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BASE + LIVE + f'archive_sha256 = "{"0" * 64}"\n', "key 'archive_sha256'"),
        (BASE + FROZEN + 'archive_sha256 = "abc"\n', "key 'archive_sha256'"),
        (BASE + SITE.format("shop", "https://shop.example/") + 'archive = ""\n', "key 'archive'"),
        ('[config]\narchives = { "*" = { path = "x" } }\n' + BASE, 'write archive = "FILE" into [[sites]]'),
    ],
)
def test_contradictions_are_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
