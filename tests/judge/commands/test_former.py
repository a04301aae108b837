"""W3, W4, W21: what users of the first version type, and what is answered."""

from pathlib import Path

import pytest

from judge.commands.former import unread_variables
from judge.commands.run import scenario_file
from shared.errors import ConfigError
from shared.participants import module_of


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("default", "wabe run live"),
        ("scenarios/web_browser/scenario.toml", "wabe run live"),
        ("full", "wabe tasks import FILE"),
        ("scenarios/web_browser/scenario_full.toml", "wabe tasks import FILE"),
        ("reliability", "wabe run demo"),
        ("scenarios/web_browser/scenario_reliability.toml", "wabe run demo"),
    ],
)
def test_w3_a_former_scenario_is_answered_with_what_replaces_it(name: str, replacement: str) -> None:
    with pytest.raises(ConfigError, match=replacement):
        scenario_file(name, {"demo": Path("demo.toml")})


def test_w3_a_bundled_set_or_a_file_of_a_former_name_is_used(tmp_path: Path) -> None:
    (tmp_path / "scenario_full.toml").write_text("")
    assert scenario_file(str(tmp_path / "scenario_full.toml"), {}).name == "scenario_full.toml"
    assert scenario_file("full", {"full": tmp_path}) == tmp_path
    assert scenario_file("mine/scenario_full.toml", {}) == Path("mine/scenario_full.toml")


@pytest.mark.parametrize(
    ("name", "now"), [("adk_default", "gemini"), ("adk-default", "gemini"), ("reliability", "replay")]
)
def test_w21_a_former_participant_is_answered_with_what_replaces_it(name: str, now: str) -> None:
    with pytest.raises(ConfigError, match=f"use '{now}'"):
        module_of(name)


def test_w4_a_file_of_variables_that_is_not_read_is_named_once_with_the_command(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# keys\nGOOGLE_API_KEY=abc\nexport OPENAI_API_KEY='x'\nEMPTY=\nSET=1\n")
    line = unread_variables({"SET": "2"}, tmp_path)
    assert line == ".env is not read here (GOOGLE_API_KEY, OPENAI_API_KEY): run  set -a; . ./.env; set +a"
    known = {"SET": "2", "GOOGLE_API_KEY": "a", "OPENAI_API_KEY": "b"}
    assert unread_variables(known, tmp_path) is None
    assert unread_variables({}, tmp_path / "other") is None
