"""Tools that are not on offer, parameters that are not in the schema, files, code: refused and on record."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import Page, hostile_site
from helpers.browser.server_tools import SERVER_TOOLS
from helpers.browser.sessions import a_browser, ref_of
from helpers.episode.live_judge import tool_call
from helpers.episode.scripted import ScriptedBrowser, play_episode
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.replies import understand
from judge.browser.session import ToolResult
from judge.browser.tools import offered_tools
from judge.records.tools import TOOLS
from shared.models import Page as PageSeen
from shared.models import ToolSpec
from shared.protocol import parse_observation
from shared.snapshot import parse_snapshot

POINTING = {"browser_mouse_click_xy", "browser_mouse_drag_xy", "browser_mouse_move_xy", "browser_mouse_wheel"}
CODE = "async (page) => { await page.goto('http://127.0.0.1:9/'); }"
# What does not name a tool at all counts as unreadable, and three of those in a row would end the episode.
NOT_OFFERED: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("browser_run_code_unsafe", {"code": CODE}),
    ("browser_run_code", {"code": CODE}),
    ("browser_evaluate", {"function": "() => document.title = 'Goal'"}),
    ("browser_file_upload", {"paths": ["/etc/passwd"]}),
    ("browser_drop", {"target": "e1", "paths": ["/etc/passwd"]}),
    ("browser_network_request", {"index": 1}),
    ("browser_network_requests", {"static": True}),
    ("browser_console_messages", {"level": "info"}),
    ("browser_take_screenshot", {"filename": "/tmp/wabe-cheat.png"}),
    ("__proto__", {}),
    ("browser_resize", {"width": 10, "height": 10}),
    ("browser_emulate_media", {"colorScheme": "dark"}),
    ("browser_install", {}),
    ("browser_pdf_save", {"filename": "/tmp/wabe-cheat.pdf"}),
    ("browser_mouse_click_xy", {"x": 1, "y": 1}),
    ("browser_mouse_wheel", {"deltaX": 0, "deltaY": 100}),
    ("browser_start_tracing", {}),
    ("browser_cookie_set", {"name": "a", "value": "b"}),
    ("browser_route", {"pattern": "**"}),
    ("browser_click\nbrowser_evaluate", {"ref": "e1"}),
]
BAD_PARAMS: list[tuple[str, dict[str, Any]]] = [
    ("browser_snapshot", {"filename": "/tmp/wabe-cheat.yaml"}),
    ("browser_snapshot", {"filename": "../../cheat.yaml"}),
    ("browser_tabs", {"action": "new", "isolatedContext": "x"}),
    ("browser_find", {"text": "a", "regex": "(a+)+$"}),
    ("browser_find", {"regex": "(a+)+$"}),
    ("browser_click", {"target": "css=body"}),
    ("browser_click", {"target": "xpath=//a"}),
    ("browser_click", {"target": "e999999"}),
    ("browser_click", {"target": ["e1"]}),
    ("browser_click", {"ref": "e1", "button": "fourth"}),
    ("browser_click", {"ref": "e1", "modifiers": ["Hyper"]}),
    ("browser_click", {"ref": "e1", "__proto__": {"button": "right"}}),
    ("browser_type", {"ref": "e1", "text": "x" * 20_000}),
    ("browser_type", {"ref": "e1", "text": {"toString": "x"}}),
    ("browser_press_key", {"key": "A" * 100}),
    ("browser_wait_for", {"time": 1e9}),
    ("browser_wait_for", {"time": -5}),
    ("browser_wait_for", {}),
    ("browser_scroll", {"direction": "down", "amount": 10**9}),
    ("browser_scroll", {"direction": "inwards"}),
    ("browser_tabs", {"action": "close"}),
    ("browser_fill_form", {"fields": [{"target": "e1", "name": "x", "type": "file", "value": "/etc/passwd"}]}),
    ("browser_fill_form", {"fields": []}),
    ("finish", {"answer": "done", "verdict": "success"}),
    ("browser_close", {"force": True}),
]


class OneField(ScriptedBrowser):
    """A page with one element, on which nothing may be done; real tools."""

    tools = offered_tools(SERVER_TOOLS)

    async def observe(self) -> PageSeen:
        return (await super().observe()).model_copy(update={"snapshot": '- textbox "Field" [ref=e1]'})

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        raise AssertionError(f"{tool} {params}")


def each_is_refused(folder: Path, cheats: list[tuple[str, dict[str, Any]]]) -> None:
    """One attempt tries every cheat and then gives up: each is recorded as failed, and reported to the participant."""
    messages: list[str] = []
    replies = [raw(tool, params) for tool, params in cheats]
    end = play_episode(folder, OneField(), *replies, messages=messages, max_steps=len(cheats) + 1)
    assert (end.stop_reason, len(end.steps)) == ("finished", len(cheats) + 1)
    for cheat, step, message in zip(cheats, end.steps[:-1], messages[1:], strict=True):
        assert step.outcome is not None
        assert (step.outcome.ok, step.outcome.line) == (False, None), cheat
        assert step.outcome.message == parse_observation(message).feedback, cheat
        assert len(step.outcome.message) <= 2000, cheat


def raw(tool: str, params: dict[str, Any]) -> str:
    return f"<json>{json.dumps({'thought': '', 'tool': tool, 'params': params})}</json>"


def offers_nothing_but_what_is_allowed(tools: Sequence[ToolSpec], left_out: set[str]) -> None:
    assert {tool.name for tool in tools} == {name for name, tool in TOOLS.items() if not tool.is_asked_for} - left_out
    schemas = json.dumps([tool.parameters for tool in tools])
    for word in ("filename", "paths", "function", "code", "isolatedContext", "regex"):
        assert f'"{word}"' not in schemas


def test_without_points_only_the_allowed_tools_are_offered_and_none_takes_a_file() -> None:
    offers_nothing_but_what_is_allowed(offered_tools(SERVER_TOOLS, "refs"), POINTING)


def test_a_tool_that_is_not_offered_is_refused_every_time(tmp_path: Path) -> None:
    each_is_refused(tmp_path, NOT_OFFERED)


def test_parameters_outside_the_schema_are_refused_every_time(tmp_path: Path) -> None:
    each_is_refused(tmp_path, BAD_PARAMS)


KINDS = [
    "file:///etc/passwd", "chrome://settings", "chrome://crash", "chrome://kill", "about:blank",
    "view-source:http://127.0.0.1/", "data:text/html,<title>Goal</title>", "javascript:document.title='Goal'",
    "devtools://devtools/bundled/inspector.html", "blob:http://127.0.0.1/1",
    "filesystem:http://127.0.0.1/temporary/x", "ftp://127.0.0.1/", "ws://127.0.0.1/", " file:///etc/passwd",
    "FILE:///etc/passwd", "file:/etc/passwd", "http:\\\\127.0.0.1\\", "http://user:password@127.0.0.1/", "//",
    "\x00http://127.0.0.1/",
]  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "params"), [("browser_navigate", {}), ("browser_tabs", {"action": "new"})], ids=["navigate", "tab"]
)
def test_addresses_of_other_kinds_are_refused(tmp_path: Path, tool: str, params: dict[str, Any]) -> None:
    each_is_refused(tmp_path, [(tool, {**params, "url": url}) for url in KINDS])


LINKS = {
    "file": "file:///etc/passwd",
    "chrome": "chrome://version",
    "source": "view-source:http://127.0.0.1/",
    "data": "data:text/html,<title>Goal</title><h1>Forged</h1>",
    "devtools": "devtools://devtools/bundled/inspector.html",
    "about": "about:version",
}


FOCUSED = """<title>Home</title><input aria-label=Field autofocus><script>
document.querySelector('input').focus();
</script>"""


@pytest.mark.e2e
async def test_a_real_browser_gives_neither_files_nor_code_nor_pages_of_its_own() -> None:
    links = {
        f"{kind} {target}": f'<a href="{address}" target="{target}">{kind} {target}</a> '
        for target in ("_self", "_blank")
        for kind, address in LINKS.items()
    }
    pages: dict[str, Page] = {"/": "<title>Links</title>" + "".join(links.values()), "/focused": FOCUSED}
    with hostile_site(pages) as site:
        async with a_browser(actions="both") as browser:
            offers_nothing_but_what_is_allowed(browser.tools, set())
            await browser.open(site.url, "page-time")
            page = await browser.observe()
            for name in links:
                await browser.act("browser_click", {"target": ref_of(page.snapshot, f'link "{name}"')})
                page = await browser.observe()
                assert page.url.startswith((site.url, "about:blank", "chrome-error:")), (name, page.url)
                for forged in ("root:", "Chromium", "Forged"):
                    assert forged not in f"{page.title} {page.snapshot}", name
                if page.url != site.url:
                    await browser.act("browser_navigate", {"url": site.url})
                    page = await browser.observe()
            await types_where_the_focus_is(browser, f"{site.url}focused")


async def types_where_the_focus_is(browser: PlaywrightBrowser, url: str) -> None:
    typed = '"); } page.goto("about:blank"); ({a: `${page.close()}'
    await browser.act("browser_navigate", {"url": url})
    for slowly in (False, True):
        snapshot = parse_snapshot((await browser.observe()).snapshot)
        reply_read = understand(tool_call("browser_type", text=typed, slowly=slowly), browser.tools, snapshot)
        assert reply_read.line == f"<Field textbox> -> TYPE: {typed}"
        assert reply_read.checked is not None
        assert (await browser.act(reply_read.checked.tool, reply_read.checked.params)).ok
    page = await browser.observe()
    snapshot = parse_snapshot(page.snapshot)
    assert page.url == url
    assert [snapshot.value_of(field) for field in snapshot.find("textbox")] == [typed * 2]
