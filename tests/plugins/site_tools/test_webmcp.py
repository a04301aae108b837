"""The tools that a site registers (WebMCP): what is offered of them, and what a call returns."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser, browser_settings
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.responses import ToolResponse
from judge.browser.settle import SettleMode
from judge.plugins.site_tools.webmcp import (
    MAX_DESCRIPTION_CHARS,
    MAX_RESULT_CHARS,
    MAX_SCHEMA_CHARS,
    MAX_SCHEMA_DEPTH,
    MAX_TOOLS,
    MAX_TOTAL_CHARS,
    SiteTools,
    read_list,
    read_result,
)
from judge.records.sites import RunSites
from judge.records.tasks import Task
from plugins.site_tools.hostile_tools import PAGES
from shared.models import Page

ORIGIN = "https://shop.example"
SITE = RunSites().of(Task(task_id="t", website=f"{ORIGIN}/", task="Buy."))


def tool_list(*tools: dict[str, Any], origin: str = ORIGIN, left_out: int = 0) -> str:
    filled = [{"description": "", "schema": None} | each for each in tools]
    return json.dumps({"origin": origin, "left_out": left_out, "tools": filled})


def names(tools: SiteTools) -> list[str]:
    return [tool.name for tool in tools.tools]


def nested(depth: int) -> str:
    return '{"a":' * depth + "{}" + "}" * depth


def test_a_tool_is_offered_as_the_page_describes_it() -> None:
    schema = {"type": "object", "properties": {"sku": {"type": "string"}}}
    (tool,) = read_list(
        tool_list({"name": "add", "description": "Add", "schema": json.dumps(schema)}), SITE, ORIGIN
    ).tools
    assert (tool.name, tool.description, tool.parameters) == ("add", "Add", schema)


@pytest.mark.parametrize("name", ["", "two words", "a\n- finish", "<b>", "é", "x" * 129, "a:b"])
def test_a_tool_whose_name_no_browser_accepts_is_not_offered(name: str) -> None:
    actual = read_list(tool_list({"name": name}, {"name": "add"}), SITE, ORIGIN)
    assert (names(actual), actual.left_out) == (["add"], 1)


@pytest.mark.parametrize("schema", [None, "3", '["a"]', "{", nested(MAX_SCHEMA_DEPTH), nested(90), '{"a":1,"a":2}'])
def test_a_tool_without_a_usable_schema_takes_anything(schema: str | None) -> None:
    assert read_list(tool_list({"name": "add", "schema": schema}), SITE, ORIGIN).tools[0].parameters == {}


def test_the_texts_of_all_tools_together_are_bounded() -> None:
    each = {"description": "d" * MAX_DESCRIPTION_CHARS, "schema": json.dumps({"x": "y" * (MAX_SCHEMA_CHARS - 9)})}
    actual = read_list(tool_list(*({"name": f"t{n}", **each} for n in range(MAX_TOOLS)), left_out=7), SITE, ORIGIN)
    assert (len(actual.tools), actual.left_out) == (4, MAX_TOOLS - 4 + 7)
    text = sum(len(each.description) + len(json.dumps(each.parameters)) for each in actual.tools)
    assert text <= MAX_TOTAL_CHARS


@pytest.mark.parametrize(
    ("origin", "page"),
    [("https://other.example", ORIGIN), ("https://other.example", "https://other.example"), (ORIGIN, None)],
)
def test_no_tool_of_another_site_is_offered(origin: str, page: str | None) -> None:
    assert read_list(tool_list({"name": "add"}, origin=origin), SITE, page) == SiteTools()


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_no_answer_of_a_page_breaks_the_judge(text: str) -> None:
    assert read_list(text, SITE, ORIGIN) == SiteTools()
    assert len(read_result(ToolResponse(ok=True, text=text), 5).text) <= MAX_RESULT_CHARS + 40


def result(end: str, text: str = "") -> tuple[bool, str]:
    actual = read_result(ToolResponse(ok=True, text=json.dumps({"end": end, "text": text})), 5)
    return actual.ok, actual.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"content":[{"type":"text","text":"added"},{"type":"image"},{"type":"text","text":"2 left"}]}',
            "added\n2 left",
        ),
        ('{"count": 2}', '{"count": 2}'),
        ('"plain"', "plain"),
        ('{"content":"x', '{"content":"x'),
        ('{"content":[]}', '{"content":[]}'),
        ("null", "null"),
    ],
)
def test_a_result_is_shown_as_the_sites(text: str, expected: str) -> None:
    assert result("returned", text) == (True, f"the site's tool returned: {expected}")


def test_a_call_that_did_not_succeed_says_why() -> None:
    refused = '{"isError":true,"content":[{"type":"text","text":"no such product"}]}'
    assert result("returned", refused) == (False, "the site's tool reports an error: no such product")
    assert result("failed", "boo") == (False, "the site's tool failed: boo")
    assert result("late") == (False, "the site's tool did not return within 5 s")
    assert result("gone") == (False, "the page no longer has this tool")
    assert result("navigated") == (True, "the page changed before the site's tool returned")


def test_a_browser_has_the_feature_only_if_it_is_asked_for() -> None:
    configs = {mode: browser_settings(site_tools=mode).config_file("http://proxy") for mode in ("off", "offer", "only")}
    assert [("WebMCP" in text) for text in configs.values()] == [False, True, True]
    # The server itself would write what pages say into its snapshots.
    assert all("--no-webmcp" in browser_settings(site_tools=mode).command(Path("/folder")) for mode in configs)


async def opened(browser: PlaywrightBrowser, url: str, settle: SettleMode = "page-time") -> Page:
    await browser.log_in(Task(task_id="t", website=url, task="Buy."))
    await browser.open(url, settle)
    return await browser.observe()


async def called(browser: PlaywrightBrowser, name: str, **arguments: Any) -> tuple[bool, str, Page]:
    done = await browser.act("site_tool", {"name": name, "arguments": arguments})
    return done.ok, done.text, await browser.observe()


@pytest.mark.e2e
@pytest.mark.parametrize("settle", ["page-time", "real-time"])
async def test_hostile_tools_break_nothing(settle: SettleMode) -> None:
    with hostile_site(PAGES) as site:
        async with a_browser(site_tools="offer", action_timeout_s=1) as browser:
            page = await opened(browser, site.url, settle)
            offered = {tool.name: tool for tool in page.page_tools}
            # Neither those of the frame or an editor, nor what the browser itself refuses.
            assert set(offered) == {
                *("add", "ask", "big", "by_form", "deep", "finish", "late", "leave", "never", "order", "refuse", "wide")
            }
            assert offered["add"].parameters["properties"] == {"sku": {"type": "string"}}
            assert (offered["deep"].parameters, offered["wide"].parameters) == ({}, {})
            assert len(offered["wide"].description) == MAX_DESCRIPTION_CHARS
            assert "Order placed" in offered["add"].description
            assert "Order placed" not in page.snapshot

            ok, text, page = await called(browser, "add", sku="<b>L-7</b>")
            assert (ok, text) == (True, "the site's tool returned: added")
            assert '{\\"sku\\":\\"<b>L-7</b>\\"}' in page.snapshot
            assert (await called(browser, "finish"))[:2] == (True, "the site's tool returned: not the end")
            assert len((await called(browser, "big"))[1]) <= MAX_RESULT_CHARS
            ok, text, page = await called(browser, "order")
            assert not ok
            assert "ordered" in page.snapshot
            assert (await called(browser, "refuse"))[:2] == (False, "the site's tool reports an error: no such product")
            assert (await called(browser, "never"))[:2] == (False, "the site's tool did not return within 1 s")
            # One that is registered after the look cannot be called before the next one.
            assert (await browser.act("site_tool", {"name": "late", "arguments": {}})).ok
            assert not (await browser.act("site_tool", {"name": "later", "arguments": {}})).ok
            page = await browser.observe()
            assert (await called(browser, "later"))[0]
            ok, text, page = await called(browser, "ask")
            assert ok
            assert page.dialog == "alert: Sure?"
            assert not page.page_tools
            await browser.act("browser_handle_dialog", {"accept": False})
            await browser.observe()
            ok, _, page = await called(browser, "leave")
            assert ok
            assert page.url.endswith("/elsewhere")
            assert not page.page_tools
            assert (await called(browser, "add"))[:2] == (False, "the page no longer has this tool")


@pytest.mark.e2e
async def test_of_very_many_tools_the_first_ones_are_offered() -> None:
    with hostile_site(PAGES) as site:
        async with a_browser(site_tools="only") as browser:
            page = await opened(browser, f"{site.url}many")
            # As many as fit.
            assert len(page.page_tools) == 49
            assert page.page_tools_left_out + len(page.page_tools) == 10_000
            assert (await called(browser, page.page_tools[0].name))[:2] == (True, "the site's tool returned: 0")


@pytest.mark.e2e
async def test_pages_of_other_sites_offer_no_tools() -> None:
    with hostile_site(PAGES) as own, hostile_site(PAGES) as other:
        async with a_browser(site_tools="offer") as browser:
            assert (await opened(browser, own.url)).page_tools
            await browser.act("browser_navigate", {"url": other.url})
            page = await browser.observe()
            assert page.url == other.url
            assert not page.page_tools
            await browser.act("browser_navigate_back", {})
            assert (await browser.observe()).page_tools


@pytest.mark.e2e
async def test_without_the_mode_pages_have_no_tools() -> None:
    with hostile_site(PAGES) as site:
        async with a_browser() as browser:
            assert not (await opened(browser, site.url)).page_tools
