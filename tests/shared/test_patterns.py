import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.fields import Invalid
from shared.patterns import MAX_MATCHES, MAX_PATTERN_CHARS, Pattern, glob


@pytest.mark.parametrize(
    ("source", "column"),
    [("a(b", 2), ("[a", 1), ("a\\q", 2), ("x{2000}", 2), ("ab(?=c)", 3), ("(a)\\1", 4), ("x" * 1001, 1001)],
)
def test_a_pattern_that_cannot_be_used_names_the_place(source: str, column: int) -> None:
    with pytest.raises(Invalid) as caught:
        Pattern(source)
    assert caught.value.column == column


def test_a_pattern_that_would_backtrack_for_ever_ends() -> None:
    assert Pattern("^(a+)+$").search("a" * 100_000 + "!") is None


def test_matches_are_bounded() -> None:
    assert sum(1 for _ in Pattern("a").matches("a" * (MAX_MATCHES + 5))) == MAX_MATCHES


def test_a_star_stands_for_anything_and_nothing_else_is_special() -> None:
    assert glob("/a.b*/(c)").fullmatch("/a.b/x\ny/(c)")
    assert not glob("/a.b").fullmatch("/axb")


@given(st.text(max_size=MAX_PATTERN_CHARS), st.text(max_size=200))
def test_any_pattern_is_refused_or_answers_any_text(source: str, text: str) -> None:
    column, span = 1, None
    try:
        span = Pattern(source).search(text)
    except Invalid as error:
        column = error.column or 0
    assert 1 <= column <= len(source) + 1
    assert span is None or 0 <= span[0] <= span[1] <= len(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_a_text_without_a_star_matches_itself_only(text: str) -> None:
    spelled = text.replace("*", "")
    assert glob(spelled).fullmatch(spelled)
    assert not glob(spelled).fullmatch(f"{spelled}x")
