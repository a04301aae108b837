"""Expressions that the judge reads in a real page, and pages that try to fool it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.hostile_site import Page as HostilePage
from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.probes import NO_ANSWER, read_values
from judge.records.steps import ProbeValue

PLAIN = "<p id=total>pending</p><input value=typed><ul><li>a<li>b</ul>"
LYING = f"""{PLAIN}<script>
var reward = 1, later = Promise.resolve(1), proxy = new Proxy({{}}, {{get: () => () => 1}});
var thenable = {{then(done) {{ done(1) }}}}, wrapped = new Number(1), self_made = {{toJSON: () => 1, valueOf: () => 1}};
var long = "x".repeat(1000000), nothing = null, big = 10n, none = NaN, zero = -0, nested = [1];
document.querySelector = () => ({{textContent: "paid"}});
Document.prototype.querySelector = document.querySelector;
Object.prototype.toJSON = String.prototype.toJSON = Number.prototype.toJSON = () => "paid";
JSON.stringify = () => '"paid"'; Number = String = Boolean = Symbol = () => "paid"; Promise = function() {{}};
let reads = 0;
Object.defineProperty(window, "counted", {{get: () => ++reads > 1 ? 1 : null}});
Object.defineProperty(window, "throwing", {{get() {{ throw {{toString: () => "paid"}} }}}});
Object.defineProperty(window, "endless", {{get() {{ for (;;); }}}});
Error.prepareStackTrace = () => "paid";
</script>"""
ASKING = "<button onclick='said.textContent = `said ${confirm(1)}`'>Ask</button><p id=said></p>"
PAGES: dict[str, HostilePage] = {
    "/asking": ASKING,
    "/": PLAIN,
    "/lying": LYING,
    "/framed": "<iframe src='/lying'></iframe><p id=total>outer</p>",
}
READ_TOTAL = "document.querySelector('#total').textContent"
ASK = "document.querySelector('button').click()"
WRONG_TYPE = "neither a text, a number nor a boolean, but "


PLAINLY: dict[str, str | float | bool | None] = {
    READ_TOTAL: "pending",
    "document.querySelector('input').value": "typed",
    "[...document.querySelectorAll('li')].map(item => item.textContent.trim()).join()": "a,b",
    "document.querySelectorAll('li').length > 1": True,
    "localStorage.getItem('never set')": None,
    "document.querySelector('#gone')?.textContent": None,
    "1 / 4 // a comment": 0.25,
}
UNDER_LIES = {
    "reward": ProbeValue(value=1),
    "window.reward": ProbeValue(value=1),
    "typeof reward === 'undefined' ? null : reward": ProbeValue(value=1),
    "zero": ProbeValue(value=0),
    "nothing": ProbeValue(),
    "window.missing": ProbeValue(),
    "missing": ProbeValue(error="ReferenceError: missing is not defined"),
    READ_TOTAL: ProbeValue(value="pending"),
    "String(1)": ProbeValue(value="1"),
    "JSON.stringify(1)": ProbeValue(value="1"),
    "counted": ProbeValue(error="EvalError: Possible side-effect in debug-evaluate"),
    "window.reward = 2": ProbeValue(error="EvalError: Possible side-effect in debug-evaluate"),
    "throwing": ProbeValue(error="Object"),
    "later": ProbeValue(error=WRONG_TYPE + "object"),
    "proxy": ProbeValue(error=WRONG_TYPE + "object"),
    "thenable": ProbeValue(error=WRONG_TYPE + "object"),
    "wrapped": ProbeValue(error=WRONG_TYPE + "object"),
    "self_made": ProbeValue(error=WRONG_TYPE + "object"),
    "nested": ProbeValue(error=WRONG_TYPE + "object"),
    "proxy.anything": ProbeValue(error=WRONG_TYPE + "function"),
    "none": ProbeValue(error=WRONG_TYPE + "NaN"),
    "big": ProbeValue(error=WRONG_TYPE + "10n"),
    "long": ProbeValue(error="a text of more than 500 characters"),
    "(": ProbeValue(error="SyntaxError: Unexpected token ')'"),
    # Costs its own value only.
    "endless": ProbeValue(error="it did not end"),
    "reward + 1": ProbeValue(value=2),
}


async def read(browser: PlaywrightBrowser, url: str, *expressions: str) -> dict[str, ProbeValue]:
    await browser.open(url, "page-time")
    return dict(zip(expressions, await browser.probe(await browser.observe(), expressions), strict=True))


@pytest.mark.e2e
async def test_expressions_are_read_and_no_page_fools_them(subtests: pytest.Subtests) -> None:
    with hostile_site(PAGES) as site:
        async with a_browser() as browser:
            with subtests.test("in a plain page"):
                values = await read(browser, site.url, *PLAINLY)
                assert values == {expression: ProbeValue(value=value) for expression, value in PLAINLY.items()}
            with subtests.test("in a page that redefines everything"):
                assert await read(browser, f"{site.url}lying", *UNDER_LIES) == UNDER_LIES
            with subtests.test("in the document at the top only"):
                values = await read(browser, f"{site.url}framed", READ_TOTAL, "reward")
                assert [value.value for value in values.values()] == ["outer", None]
            with subtests.test("not in a page that came from elsewhere meanwhile"):
                page = (await browser.observe()).model_copy(update={"url": "http://shop.test/"})
                assert await browser.probe(page, [READ_TOTAL]) == (ProbeValue(error="the page was left"),)
            with subtests.test("a dialog that opens meanwhile keeps its script"):
                values = await read(browser, f"{site.url}asking", ASK)
                assert values == {ASK: ProbeValue(error=NO_ANSWER)}
                await browser.act("browser_handle_dialog", {"accept": True})
                assert "said true" in (await browser.observe()).snapshot


@given(st.text() | st.lists(st.dictionaries(st.text(), st.integers() | st.text() | st.none())).map(json.dumps))
def test_any_answer_of_the_server_gives_as_many_values_as_were_asked_for(answer: str) -> None:
    assert len(read_values(answer, 3)) == 3


@given(st.text(max_size=500))
def test_a_text_is_recorded_whole_or_not_at_all(text: str) -> None:
    (value,) = read_values(json.dumps([{"value": text}]), 1)
    assert value == ProbeValue(value=text) or (value.value is None and "600 bytes" in str(value.error))
    assert value.value is None or len(json.dumps(text, ensure_ascii=False).encode()) <= 600


def test_under_a_dialog_that_opened_meanwhile_there_is_no_value() -> None:
    assert read_values("### Modal state\n- alert", 2) == (ProbeValue(error=NO_ANSWER),) * 2
