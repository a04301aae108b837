"""Which scripts the browser draws as boxes, and which of them a text needs."""

import unicodedata

import pytest

from helpers.browser.sessions import a_browser
from judge.browser.fonts import SCRIPTS, read_undrawn, scripts_in, titles_of, undrawn_scripts


@pytest.mark.parametrize("name", SCRIPTS)
def test_two_different_characters_stand_for_each_script(name: str) -> None:
    first, second = list(SCRIPTS[name].samples)
    assert first != second
    assert scripts_in(f"abc {first}") == scripts_in(f"{second} abc") == (name,)
    assert unicodedata.normalize("NFC", first) == first


@pytest.mark.parametrize("text", ["", "Straße № 1 – “5 €”", "\u0430\u03b1", "\u0964"])
def test_other_texts_need_none_of_them(text: str) -> None:
    assert scripts_in(text) == ()


@pytest.mark.parametrize("text", ["", "x", "{}", "[1, null]", '["klingon"]'])
def test_what_was_not_measured_is_not_missing(text: str) -> None:
    assert read_undrawn(text) == frozenset()


def test_flags_and_titles_name_them() -> None:
    assert undrawn_scripts(["off_site", "undrawn_thai"]) == ("thai",)
    assert titles_of({"emoji", "thai"}) == "Thai, emoji"


@pytest.mark.e2e
async def test_the_browser_measures_its_fonts_once_beside_the_pages_of_an_attempt() -> None:
    async with a_browser() as browser:
        undrawn = await browser.undrawn()
        assert undrawn <= set(SCRIPTS)
        browser._server.undrawn = frozenset({"measured before"})
        assert await browser.undrawn() == {"measured before"}
        assert (await browser.observe()).url == "about:blank"
