"""Numbers with their nouns."""

from shared.text import counted


def test_one_thing_is_not_a_plural() -> None:
    assert [counted(number, "task") for number in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]


def test_an_unusual_plural_is_given() -> None:
    assert [counted(number, "reply", "replies") for number in (1, 2)] == ["1 reply", "2 replies"]
