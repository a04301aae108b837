"""Which instances a site may declare, and that a user's mistake is one line."""

from pathlib import Path

import pytest

from helpers.scenario.texts import AGENTS
from judge.config import CONFIG
from judge.scenario.models import SiteEntry
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.validation import validated

CMD = 'cmd = "serve {port}"\n'
TASK = '[[tasks]]\ntask_id = "a"\nwebsite = "http://127.0.0.1:9180/"\ntask = "x"\n'


def a_site(folder: Path, keys: str, config: str = "") -> SiteEntry:
    site = f'[[sites]]\nname = "shop"\nendpoint = "http://127.0.0.1:9180"\n{keys}\n'
    path = folder / "s.toml"
    path.write_text(f"{AGENTS}{config}{site}{TASK}")
    return load_scenario(path).sites[0]


@pytest.mark.parametrize(
    ("keys", "is_by_instance"),
    [
        (f'{CMD}instances = "per_slot"', True),
        (f"{CMD}instances = 3\nrestart = true", True),
        ('instances = ["http://10.0.0.1", "http://10.0.0.2:9180"]', True),
        ('instances = ["http://127.0.0.1:9180", "http://127.0.0.1:9181"]', True),
        ("instances = 3\nstatic = true", False),
        (f'{CMD}instances = "per_slot"\narchive = "shop.wacz"', False),
        (CMD, False),
    ],
)
def test_a_site_whose_state_attempts_change_may_have_instances(tmp_path: Path, keys: str, is_by_instance: bool) -> None:
    assert a_site(tmp_path, keys).is_played_by_instance is is_by_instance


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('instances = "per-slot"', "'per-slot' is not expected here (write instances = \"per_slot\", a number from"),
        (f"{CMD}instances = 65", "65 is not expected here"),
        (f"{CMD}instances = true", "True is not expected here"),
        ('instances = ["shop"]', "a list of 1 entry is not expected here"),
        ("instances = 2", "needs a cmd (add it, or list the addresses of instances that run already)"),
        ('cmd = "serve 9180"\ninstances = 2', "needs {port} in cmd"),
        (f'{CMD}instances = ["http://127.0.0.1:1"]', "addresses, and a cmd"),
        (
            'instances = ["https://127.0.0.1:1"]',
            "is an instance of 'http://127.0.0.1:9180' (use http or https for both)",
        ),
        ('instances = ["http://127.0.0.1:1/shop"]', "'http://127.0.0.1:1/shop' is not an instance's address"),
        ('instances = ["http://127.0.0.1:1", "http://127.0.0.1:1"]', "'http://127.0.0.1:1' is used twice"),
        (
            'instances = ["http://127.0.0.1:1"]\n[[sites]]\nname = "bank"\nendpoint = "http://127.0.0.1:1"',
            "'http://127.0.0.1:1' is used twice",
        ),
        (f'{CMD}instances = 2\nlogin = {{ url = "/login", password = "x" }}', "a login, and no reset"),
    ],
)
def test_instances_that_cannot_work_are_a_mistake(tmp_path: Path, keys: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        a_site(tmp_path, keys)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("keys", "config", "problem"),
    [
        (
            f"{CMD}instances = 2",
            'cdp_url = "wss://browsers.example"',
            "site 'shop': nothing leads a hosted browser (cdp_url) to the instances of a site",
        ),
        ("", 'site_instances = { "http://a.example" = ["http://10.0.0.1"] }', "instances belong to sites"),
    ],
)
def test_instances_do_not_go_with_every_setting(tmp_path: Path, keys: str, config: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        a_site(tmp_path, keys, f"[config]\n{config}\n")
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cdp_url": "wss://browsers.example"}, "nothing leads a hosted browser"),
        (
            {"site_instances": {"http://a.example": ["http://b.example"], "http://b.example": ["http://c.example"]}},
            "used",
        ),
        (
            {"site_instances": {"http://a.example": ["http://c.example"], "http://b.example": ["http://c.example"]}},
            "used",
        ),
        ({"site_instances": {"http://a.example": []}}, "site_instances"),
    ],
)
def test_a_request_names_each_instance_once(changes: dict[str, object], problem: str) -> None:
    request = {"site_instances": {"http://a.example": ["http://10.0.0.1", "http://10.0.0.2"]}, **changes}
    with pytest.raises(ConfigError, match=problem):
        validated(CONFIG, request, "request")
