from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from participants.replay_player import MAX_WAITS, Player
from participants.replay_script import Script, ScriptBook, ScriptStep, Wanted, load_book, parse_scripts
from shared.errors import ConfigError
from shared.models import Action

PAGE = """\
- generic [active] [ref=e1]:
  - link "Lamps" [ref=e2] [cursor=pointer]:
    - /url: /lamps
  - link "Desk Lamps" [ref=e3] [cursor=pointer]:
    - /url: /desk
  - link [ref=e4] [cursor=pointer]:
    - /url: /code
    - code [ref=e5]: print()
  - link "Lamps" [ref=e6] [cursor=pointer]:
    - /url: /more
  - button "Sold out"
"""
CLICK = ScriptStep(tool="browser_click", role="link", name="Lamps")
DONE = ScriptStep(tool="finish", params={"answer": "done"})


def play(*steps: ScriptStep) -> Player:
    return Player(Script(task="t", steps=steps))


def action(reply: Action | str) -> Action:
    assert isinstance(reply, Action)
    return reply


@pytest.mark.parametrize(
    ("step", "ref"),
    [
        ({"name": "Lamps"}, "e2"),
        ({"name": " Lamps "}, "e2"),
        ({"name": "Lamps", "nth": 1}, "e6"),
        ({"name": "Lamps", "nth": -1}, "e6"),
        ({"name": "desk"}, "e3"),
        ({"name": "print()"}, "e4"),
        ({}, "e2"),
    ],
)
def test_an_element_is_found_by_exact_name_then_by_a_part_of_it(step: dict[str, object], ref: str) -> None:
    found = play(ScriptStep.model_validate({"tool": "browser_click", "role": "link"} | step)).reply(PAGE, None)
    assert action(found).params["target"] == ref


def test_an_element_without_a_reference_is_never_named() -> None:
    sold_out = ScriptStep(tool="browser_click", role="button", name="Sold out")
    assert action(play(sold_out).reply(PAGE, None)).tool == "browser_wait_for"


def test_a_missing_element_is_waited_for_and_then_given_up() -> None:
    player = play(ScriptStep(tool="browser_click", role="button", name="Buy"), DONE)
    waits = [action(player.reply(PAGE, None)) for _ in range(MAX_WAITS)]
    assert {wait.tool for wait in waits} == {"browser_wait_for"}
    last = action(player.reply(PAGE, None))
    assert last.tool == "finish"
    assert 'button "Buy"' in last.params["answer"]


def test_an_element_that_arrives_late_is_used_when_it_is_there() -> None:
    player = play(CLICK, DONE)
    assert action(player.reply("", None)).tool == "browser_wait_for"
    assert action(player.reply(PAGE, None)).params["target"] == "e2"
    assert action(player.reply(PAGE, None)).tool == "finish"


def test_a_step_is_held_back_until_what_it_follows_is_there() -> None:
    player = play(ScriptStep(tool="finish", after=Wanted(role="status", name="sorted")))
    assert action(player.reply(PAGE, None)).tool == "browser_wait_for"
    assert action(player.reply(PAGE + "- status [ref=e9]: 3 desks, sorted by price\n", None)).tool == "finish"


def test_a_failed_action_is_tried_once_more() -> None:
    player = play(CLICK, DONE)
    player.reply(PAGE, None)
    assert action(player.reply(PAGE, "the element moved")).params["target"] == "e2"
    assert action(player.reply(PAGE, None)).params == {"answer": "done"}


def test_an_action_that_fails_twice_ends_the_episode_with_the_cause() -> None:
    player = play(CLICK, DONE)
    player.reply(PAGE, None)
    player.reply(PAGE, "the element moved")
    last = action(player.reply(PAGE, "the element moved again"))
    assert last.tool == "finish"
    assert "moved again" in last.params["answer"]


def test_a_retry_that_has_to_wait_is_still_a_retry() -> None:
    player = play(CLICK, DONE)
    player.reply(PAGE, None)
    assert action(player.reply("", "the page changed")).tool == "browser_wait_for"
    assert action(player.reply(PAGE, None)).params["target"] == "e2"


def test_a_complaint_about_an_unreadable_reply_leads_to_the_next_step() -> None:
    player = play(ScriptStep(say="mumble"), DONE)
    assert player.reply(PAGE, None) == "mumble"
    assert action(player.reply(PAGE, "unreadable")).tool == "finish"


def test_a_repeated_step_never_ends() -> None:
    player = play(ScriptStep(tool="browser_scroll", params={"direction": "down"}, repeat=True), DONE)
    assert {action(player.reply(PAGE, None)).tool for _ in range(30)} == {"browser_scroll"}


def test_a_script_without_a_finish_finishes_by_itself() -> None:
    player = play(CLICK)
    player.reply(PAGE, None)
    assert action(player.reply(PAGE, None)).tool == "finish"


def test_a_task_is_matched_after_folding_white_space() -> None:
    book = ScriptBook([Script(task="Open  the\n shop", steps=(DONE,))])
    assert book.find(" Open the shop ", "http://x/") is not None
    assert book.find("Open the shop now", None) is None


def test_a_script_for_the_website_goes_before_one_for_any() -> None:
    anywhere, here = Script(task="t", steps=(DONE,)), Script(task="t", website="http://a/", steps=(CLICK,))
    book = ScriptBook([anywhere, here])
    assert book.find("t", "http://a") is here
    assert book.find("t", "http://b/") is anywhere


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("scripts = 1", "scripts"),
        ("", "scripts"),
        ("[[scripts]]\ntask = 't'", "scripts.0.steps"),
        ("[[scripts]]\ntask = ''\nsteps = [{ say = 'x' }]", "scripts.0.task"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ thought = 'x' }]", "scripts.0.steps.0"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', say = 'y' }]", "scripts.0.steps.0"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ say = 'y', role = 'link' }]", "scripts.0.steps.0"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', name = 'y' }]", "scripts.0.steps.0"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', typo = 'y' }]", "scripts.0.steps.0.typo"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', nth = 'y' }]", "scripts.0.steps.0.nth"),
        ("[[scripts", "line 1, column 10: not TOML"),
    ],
)
def test_a_malformed_script_is_refused_by_file_and_key(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scripts(text, "some/replay.toml")
    assert caught.value.message.startswith("some/replay.toml: ")
    assert key in caught.value.message
    assert caught.value.remedy


@given(st.text(max_size=200))
def test_text_that_is_no_script_is_refused_by_its_file(text: str) -> None:
    # No text this short holds a whole script by chance.
    with pytest.raises(ConfigError) as caught:
        parse_scripts(text, "f")
    assert caught.value.message.startswith("f: ")


def test_a_task_with_two_scripts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[[scripts]]\ntask = 't'\nsteps = [{ say = 'x' }]\n", encoding="utf-8")
    again = tmp_path / "b.toml"
    again.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"b\.toml: scripts\.0\.task: .*a\.toml"):
        load_book([path, again])


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        load_book([tmp_path / "none.toml"])
