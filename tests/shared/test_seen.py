"""Text as people see it: composed, without invisible characters, in texts, names and addresses."""

import unicodedata
from typing import Literal
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.seen import address_as_seen, as_seen, name_as_seen, values_as_seen

# The characters that Unicode calls format characters, except the joiners and those that are drawn.
INVISIBLE = [
    "\u00ad", "\u034f", "\u061c", "\u180e", "\u200b", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d",
    "\u202e", "\u2060", "\u2061", "\u2062", "\u2063", "\u2064", "\u2066", "\u2067", "\u2068", "\u2069", "\u206a",
    "\u206f", "\ufe0e", "\ufe0f", "\ufeff", "\ufff9", "\ufffa", "\ufffb", "\U0001bca0", "\U0001d173", "\U000e0001",
    "\U000e0041", "\U000e007f", "\U000e0100",
]  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(TEXTS, TEXTS, st.sampled_from(INVISIBLE), st.sampled_from(["NFC", "NFD"]))
def test_an_invisible_character_anywhere_and_either_form_change_nothing(
    before: str, after: str, invisible: str, form: Literal["NFC", "NFD"]
) -> None:
    # Tags behind a black flag are drawn.
    before = before.replace("\U0001f3f4", "")
    text = unicodedata.normalize(form, before) + invisible + unicodedata.normalize(form, after)
    assert as_seen(text) == as_seen(before + after)
    assert as_seen(as_seen(text)) == as_seen(text)


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
def test_joiners_carry_meaning(joiner: str) -> None:
    assert as_seen(f"a{joiner}b") == f"a{joiner}b"


def test_the_tags_of_a_flag_are_seen_and_no_others() -> None:
    scotland = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
    assert as_seen(scotland) == scotland
    assert as_seen("\U0001f3f4\U000e0068\U000e0069\U000e007f") == "\U0001f3f4"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("\ue8b8 Settings", " Settings"),
        ("Settings\U000f0493", "Settings"),
        ("\ue8b8", "\ue8b8"),
        ("\ue8b8 \ue001", "\ue8b8 \ue001"),
        ("Settings", "Settings"),
    ],
)
def test_a_name_has_no_pictures_unless_it_has_nothing_else(name: str, expected: str) -> None:
    assert name_as_seen(name) == expected


@given(TEXTS)
def test_an_address_is_the_same_encoded_or_not(text: str) -> None:
    path = "".join(char for char in text if not char.isascii())
    assert address_as_seen(f"/a{quote(path)}?q={quote(path)}") == address_as_seen(f"/a{path}?q={path}")


def test_what_is_encoded_in_ascii_stays_as_it_is_written() -> None:
    assert address_as_seen("/a%2Fb%20c%3f?d=%26%C3%BC%ff") == "/a%2Fb%20c%3f?d=%26%C3%BC%ff"
    assert address_as_seen("/a%2Fb?d=%26%C3%BC") == "/a%2Fb?d=%26ü"


def test_texts_and_keys_of_any_value_are_as_seen() -> None:
    result = values_as_seen({"u\u0308": [1, None, True, "u\u0308", ("\u200ba", {"b": "\ufeff"})]})
    assert result == {"ü": [1, None, True, "ü", ("a", {"b": ""})]}
