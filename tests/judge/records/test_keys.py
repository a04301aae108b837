import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.keys import key_name
from judge.records.tools import tool_of


@pytest.mark.parametrize(
    ("notation", "key"),
    [
        ("Ctrl+K", "ControlOrMeta+k"),
        ("Cmd+A", "ControlOrMeta+a"),
        ("command + shift + p", "ControlOrMeta+Shift+p"),
        ("Ctrl-C", "ControlOrMeta+c"),
        ("⌘+k", "ControlOrMeta+k"),
        ("Ctrl+Enter", "ControlOrMeta+Enter"),
        ("Ctrl+-", "ControlOrMeta+-"),
        ("Control++", "Control++"),
        ("Control+a", "Control+a"),
        ("Control+A", "Control+a"),
        ("option+left", "Alt+ArrowLeft"),
        ("Return", "Enter"),
        ("esc", "Escape"),
        ("Del", "Delete"),
        ("PgDn", "PageDown"),
        ("f5", "F5"),
        ("Shift+A", "Shift+A"),
        ("A", "A"),
        ("a", "a"),
        ("+", "+"),
        ("-", "-"),
        (" ", " "),
        ("é", "é"),
        ("KeyA", "KeyA"),
        ("nothing", "nothing"),
        ("", ""),
    ],
)
def test_keys_mean_what_people_write(notation: str, key: str) -> None:
    assert key_name(notation) == key


@given(st.text(max_size=40))
def test_a_name_of_a_key_is_its_own_name(notation: str) -> None:
    assert key_name(key_name(notation)) == key_name(notation)


@given(st.characters())
def test_a_single_character_is_the_key_that_writes_it(character: str) -> None:
    assert key_name(character) == character


def test_the_action_that_is_executed_and_recorded_has_the_name_of_the_key() -> None:
    params = {"key": "Ctrl+V"}
    assert tool_of("browser_press_key").rule(params, 1) is None
    assert params == {"key": "ControlOrMeta+v"}
