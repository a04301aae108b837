"""Who played a run, in its record and in a line."""

from pathlib import Path
from typing import Any

import pytest

from helpers.results import a_finished_run, a_result
from judge.results.identity import identity_in, identity_of_launch, player, record_card, resumed
from judge.scenario.models import Launch, LaunchedProcess

LAUNCH = Launch(
    scenario_name="demo/scenario.toml",
    scenario_path="/x/demo/scenario.toml",
    scenario_sha256="c0ffee",
    revision="abc123",
    participants={"white_agent": LaunchedProcess(model="gemini-3")},
)


def test_a_launch_names_the_run_the_model_and_the_revision() -> None:
    assert identity_of_launch(LAUNCH, "white_agent", "id-1", "night run") == {
        "name": "night run",
        "card_name": None,
        "card_version": None,
        "model": "gemini-3",
        "agentbeats_id": "id-1",
        "revision": "abc123",
    }


def test_the_card_is_added_to_the_record_and_nothing_else_changes(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result())
    before = store.read_run() or {}
    record_card(store, "my agent", "1.2", "network")
    after = store.read_run() or {}
    card = {"card_name": "my agent", "card_version": "1.2", "isolation": "network"}
    assert after["identity"] == before["identity"] | card
    assert {**after, "identity": None} == {**before, "identity": None}


def test_a_run_that_is_resumed_with_another_version_of_the_agent_has_both(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result())
    for version in ("0.1", "0.2", "0.1"):
        record_card(store, "my agent", version)
    assert player(identity_in(store.read_run() or {}), "p") == "my agent 0.1, 0.2"


def test_what_an_agent_calls_itself_is_one_bounded_line(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result())
    record_card(store, "agent\x1b[31m\n" * 1000, "1")
    name = identity_in(store.read_run() or {})["card_name"]
    assert len(name) <= 200
    assert name.isprintable()


def test_a_resumed_run_keeps_its_card_and_names_every_revision() -> None:
    first = {"card_name": "my agent", "model": "a", "revision": "abc"}
    again = resumed(first, {"card_name": None, "model": "a", "revision": "def"})
    assert again == {"card_name": "my agent", "model": "a", "revision": "abc, def"}
    assert resumed(again, {"card_name": None, "model": "a", "revision": "abc"})["revision"] == "abc, def"
    assert resumed({}, {"revision": None}) == {"revision": None}


@pytest.mark.parametrize(
    "record", [{}, {"identity": None}, {"identity": []}, {"identity": {"name": 3}, "scenario": "x"}]
)
def test_a_record_without_a_usable_identity_is_an_unknown_player(record: dict[str, Any]) -> None:
    assert player(identity_in(record), "white_agent") == "white_agent"


def test_a_player_is_named_as_exactly_as_it_is_known() -> None:
    known = {"name": "night run", "card_name": "my agent", "card_version": "1.2", "model": "gemini-3"}
    assert player(known, "white_agent") == "night run: my agent 1.2 (gemini-3)"
    assert player({"model": "gemini-3"}, "white_agent") == "white_agent (gemini-3)"
