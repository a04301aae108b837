"""What the browser does not draw is in no snapshot."""

from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.pages import open_page
from helpers.browser.sessions import a_browser
from judge.browser import playwright

pytestmark = pytest.mark.e2e

SOURCE = Path(playwright.__file__).with_name("undrawn.js").read_text()
DISPLAYS = (
    "block inline inline-block contents flex inline-flex grid inline-grid list-item flow-root table inline-table "
    "table-row table-row-group table-header-group table-footer-group table-cell table-caption ruby ruby-text"
).split()
HIDDEN = "style='content-visibility: hidden'"
UNDRAWN = (
    "<p hidden=until-found>{}</p>",
    f"<p {HIDDEN}>{{}}</p>",
    f"<h3 {HIDDEN}>{{}}</h3>",
    "<a href=#1 style='display: block; content-visibility: hidden'>{}</a>",
    f"<div role=status {HIDDEN}>{{}}</div>",
    f"<div {HIDDEN}><p>{{}}</p></div>",
    f"<div><template shadowrootmode=open><p {HIDDEN}><slot></slot></p></template>{{}}</div>",
    f"<div {HIDDEN}><template shadowrootmode=open>{{}}</template></div>",
    f"<style>.said::before {{{{ content: '{{}}' }}}}</style><p class=said {HIDDEN}></p>",
    "<video>{}</video>",
)
# Screen readers read these.
DRAWN = (
    "<p>{}</p>",
    "<p style='opacity: 0'>{}</p>",
    "<p style='position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden'>{}</p>",
    "<p style='font-size: 0'>{}</p>",
    f"<span {HIDDEN}>{{}}</span>",
    "<p style='content-visibility: auto'>{}</p>",
)
TELLS = """source => {
  const all = [...document.querySelectorAll("[data-case]")];
  const drawn = all.map(each => each.querySelector("b").checkVisibility());
  eval(source)();
  return all.map((each, at) => [each.dataset.case, drawn[at], each.firstChild !== null]);
}"""


async def test_the_content_of_an_element_is_hidden_where_the_browser_does_not_draw_it() -> None:
    html = "".join(
        f"<div><{tag} data-case='{tag} {display}' style='display: {display}; content-visibility: hidden; {more}'>"
        f"own<b>x</b></{tag}></div>"
        for display in DISPLAYS
        for tag, more in (("div", ""), ("span", "position: absolute"))
    )
    async with open_page() as watched:
        await watched.page.set_content(f"{html}<table><tr><td data-case=td {HIDDEN}>own<b>x</b></table>")
        results = await watched.page.evaluate(TELLS, f"({SOURCE})")
    assert [result for result in results if result[1] != result[2]] == []
    assert {result[1] for result in results} == {True, False}


async def test_only_what_is_drawn_or_read_aloud_is_in_the_snapshot() -> None:
    cases = (*UNDRAWN, *DRAWN)
    html = "".join(case.format(f"order {at} placed") for at, case in enumerate(cases))
    with hostile_site({"/": f"<!doctype html><title>Orders</title>{html}"}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            page = await browser.observe()
    shown = [case for at, case in enumerate(cases) if f"order {at} placed" in page.snapshot]
    assert shown == list(DRAWN)
