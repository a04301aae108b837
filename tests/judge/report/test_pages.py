"""Foreign text on a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.pages import visible, web_link


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x00", "\x1b", "\ufeff", "\u2066", "\x85"])
def test_a_character_that_hides_or_reorders_text_is_made_visible(hidden: str) -> None:
    assert visible(f"a{hidden}b") == f"a\\u{ord(hidden):04x}b"


def test_line_feeds_and_tabs_stay() -> None:
    assert visible("a\r\n\tb") == "a\n\tb"


def test_a_cut_says_how_much_is_missing() -> None:
    assert visible("abcdef", 2) == "ab… (4 more characters)"


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_written_as_utf_8(text: str) -> None:
    visible(text).encode()


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "file:///etc/passwd", "//host/x", "", "http://",
     "http://a b/", "\x01javascript:alert(1)", "http://[::1", "vbscript:x", "about:blank"],
)  # fmt: skip
def test_only_web_addresses_become_links(url: str) -> None:
    assert web_link(url) is None


@given(st.text(max_size=60))
def test_whatever_becomes_a_link_begins_with_http(text: str) -> None:
    link = web_link(text)
    assert link is None or link.lower().startswith(("http://", "https://"))
