"""Where a site is reset: an address, or a path on the site."""

from pathlib import Path

import pytest

from helpers.scenario.texts import AGENTS, TASK
from judge.scenario.toml import load_scenario


@pytest.mark.parametrize(
    "declared", ["/reset?hard=1", "http://127.0.0.1:9180/reset?hard=1"], ids=["a path", "an address"]
)
def test_a_path_is_resolved_on_the_site_so_that_a_request_has_an_address(tmp_path: Path, declared: str) -> None:
    path = tmp_path / "s.toml"
    site = f'[[sites]]\nname = "shop"\nendpoint = "http://127.0.0.1:9180/shop"\nreset_url = "{declared}"\n'
    path.write_text(f"{AGENTS}{site}{TASK}")
    (entry,) = load_scenario(path).sites
    assert entry.reset == entry.reset_url == "http://127.0.0.1:9180/reset?hard=1"
