"""Actions by coordinates, against a real browser."""

from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser
from judge.browser.action_lines import action_line
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.tools import CheckedAction, check_action
from shared.models import Action, Page
from shared.snapshot import parse_snapshot

pytestmark = pytest.mark.e2e

DESK = """<title>Desk</title><style>* { margin: 0; position: absolute; border: 0 }</style>
<a href="#casa" style="left:20px;top:20px;width:200px;height:60px"><h3 style="position:static">Casa Mar</h3></a>
<button style="left:20px;top:100px;width:100px;height:30px" onclick="say('clicked ' + event.detail)">Order</button>
<input aria-label="Name" style="left:20px;top:150px;width:200px;height:30px"
  onkeydown="event.key === 'Enter' && say('entered ' + this.value)">
<div id=pad style="left:300px;top:20px;width:200px;height:200px;background:#eee"
  onmousedown="say('down ' + at(event))" onmouseup="say('up ' + at(event))">pad</div>
<div role=region aria-label=rows style="left:600px;top:20px;width:200px;height:200px;overflow:auto">
  <p style="height:4000px">first row</p></div>
<iframe src="/inner" style="left:20px;top:300px;width:300px;height:200px"></iframe>
<button style="left:20px;top:2000px;width:100px;height:30px" onclick="say('clicked below')">Below</button>
<p id=said role=status style="left:20px;top:250px">start</p>
<script>
const at = event => event.clientX + ' ' + event.clientY;
const say = text => said.textContent += ', ' + text;
onmessage = event => say(event.data);
document.querySelector('[role=region]').onscroll = event => said.dataset.scrolled ||= (say('rows scrolled'), 'yes');
</script>"""
INNER = """<style>* { margin: 0; position: absolute; border: 0 }</style>
<button style="left:10px;top:10px;width:80px;height:30px"
  onclick="parent.postMessage('clicked inside', '*')">Inside</button>
<input aria-label="Note" style="left:10px;top:50px;width:100px;height:30px"
  oninput="parent.postMessage('noted ' + this.value, '*')">"""


COVERED = """<title>Covered</title><style>* { margin: 0; position: absolute; border: 0 }</style>
<button style="left:20px;top:20px;width:100px;height:30px" onclick="said.textContent += ', ordered'">Order</button>
<div style="left:0;top:0;width:300px;height:60px" onclick="said.textContent += ', covered'"></div>
<div style="left:20px;top:100px;width:300px;height:50px;overflow:hidden">
  <button style="left:0;top:60px;width:100px;height:30px">Cut off</button></div>
<label style="left:20px;top:200px;width:300px;height:30px"><span>By express</span>
  <input type=checkbox style="left:200px" onchange="said.textContent += ', express'"></label>
<p id=said role=status style="left:20px;top:250px">start</p>"""
SHADOW = """<title>Shadow</title><x-shop></x-shop><script>
const root = document.querySelector('x-shop').attachShadow({mode: 'open'});
root.innerHTML = '<button style="position:absolute;left:20px;top:20px;width:90px;height:30px"><b>Pay</b></button>';
</script>"""


class Pointer:
    """Acts like an episode: each action is checked against the page that was observed last."""

    def __init__(self, browser: PlaywrightBrowser) -> None:
        self._browser = browser
        self.page: Page

    async def opens(self, url: str) -> None:
        await self._browser.open(url, "page-time")
        await self.looks()

    async def looks(self) -> None:
        self.page = await self._browser.observe()

    async def does(self, tool: str, **params: Any) -> str:
        """Carry out the action; its line."""
        if tool == "browser_type":
            # Its line names the field that has the focus.
            await self.looks()
        snapshot = parse_snapshot(self.page.snapshot)
        action = Action(tool=tool, params=params)
        checked = check_action(action, self._browser.tools, snapshot, open_tabs=1, viewport=(1280, 720))
        assert isinstance(checked, CheckedAction), checked
        result = await self._browser.act(checked.tool, checked.params)
        assert result.ok, result.text
        return action_line(checked, snapshot, result.hit)

    async def status_text(self) -> str:
        await self.looks()
        return next(parse_snapshot(self.page.snapshot).value_of(node) for node in self.nodes("status"))

    def nodes(self, role: str) -> list[Any]:
        return parse_snapshot(self.page.snapshot).find(role)


async def clicks_moves_and_drags_go_to_the_points_and_name_what_is_there(pointer: Pointer, url: str) -> None:
    await pointer.opens(url)
    lines = [
        await pointer.does("browser_mouse_click_xy", x=70, y=115, element="the way out"),
        await pointer.does("browser_mouse_click_xy", x=70, y=115, clickCount=2),
        await pointer.does("browser_mouse_drag_xy", startX=310, startY=30, endX=450.5, endY=150),
        await pointer.does("browser_mouse_move_xy", x=1000, y=600),
        await pointer.does("browser_mouse_click_xy", x=40, y=30),
    ]
    assert await pointer.status_text() == "start, clicked 1, clicked 1, clicked 2, down 310 30, up 450 150"
    assert pointer.page.url.endswith("#casa")
    assert lines == [
        "<Order button> -> CLICK (70, 115)",
        "<Order button> -> DOUBLE CLICK (70, 115)",
        "<pad generic> -> DRAG: to pad generic (310, 30) to (450.5, 150)",
        "<page> -> HOVER (1000, 600)",
        "<Casa Mar link> -> CLICK (40, 30)",
    ]


async def text_goes_to_the_focused_field_even_in_a_frame(pointer: Pointer, url: str) -> None:
    await pointer.opens(url)
    lines = [
        await pointer.does("browser_type", text="lost"),
        await pointer.does("browser_mouse_click_xy", x=100, y=165),
        await pointer.does("browser_type", text="A'da \\ \"`${1}\u2028"),
        await pointer.does("browser_type", text=" L", slowly=True, submit=True),
        await pointer.does("browser_mouse_click_xy", x=60, y=365),
        await pointer.does("browser_type", text="x"),
    ]
    assert (await pointer.status_text()).replace("\u2028", "") == "start, entered A'da \\ \"`${1} L, noted x"
    assert lines == [
        "<page> -> TYPE: lost",
        "<Name textbox> -> CLICK (100, 165)",
        "<Name textbox> -> TYPE: A'da \\ \"`${1}",
        "<Name textbox> -> TYPE AND ENTER: L",
        "<Note textbox> -> CLICK (60, 365)",
        "<Note textbox> -> TYPE: x",
    ]


async def points_in_a_frame_and_on_a_scrolled_page_are_those_of_the_screenshot(pointer: Pointer, url: str) -> None:
    await pointer.opens(url)
    lines = [
        await pointer.does("browser_mouse_click_xy", x=50, y=320),
        await pointer.does("browser_mouse_wheel", x=700, y=100, deltaY=300),
        await pointer.does("browser_mouse_wheel", x=1000, y=600, deltaY=1900),
    ]
    await pointer.looks()
    (below,) = [node for node in pointer.nodes("button") if node.name == "Below"]
    x, y, *_ = below.box
    lines.append(await pointer.does("browser_mouse_click_xy", x=x + 5, y=y + 5))
    assert await pointer.status_text() == "start, clicked inside, rows scrolled, clicked below"
    assert lines[:3] == [
        "<Inside button> -> CLICK (50, 320)",
        "<rows region> -> SCROLL: down 300 (700, 100)",
        "<page> -> SCROLL: down 1900 (1000, 600)",
    ]
    assert lines[3].startswith("<Below button> -> CLICK (25, ")


async def a_line_names_what_was_really_hit(pointer: Pointer, url: str) -> None:
    await pointer.opens(f"{url}covered")
    lines = [
        await pointer.does("browser_mouse_click_xy", x=70, y=35),
        await pointer.does("browser_mouse_click_xy", x=70, y=170),
        await pointer.does("browser_mouse_click_xy", x=30, y=210),
    ]
    assert await pointer.status_text() == "start, covered, express"
    assert lines == [
        "<generic> -> CLICK (70, 35)",
        "<page> -> CLICK (70, 170)",
        "<By express checkbox> -> CLICK (30, 210)",
    ]


async def an_element_in_a_shadow_tree_is_named(pointer: Pointer, url: str) -> None:
    await pointer.opens(f"{url}shadow")
    assert await pointer.does("browser_mouse_click_xy", x=60, y=35) == "<Pay button> -> CLICK (60, 35)"


async def test_actions_go_to_the_points_that_they_name(subtests: pytest.Subtests) -> None:
    with hostile_site({"/": DESK, "/inner": INNER, "/covered": COVERED, "/shadow": SHADOW}) as site:
        async with a_browser(actions="coordinates", action_timeout_s=1.0) as browser:
            pointer = Pointer(browser)
            for behaves in (
                clicks_moves_and_drags_go_to_the_points_and_name_what_is_there,
                text_goes_to_the_focused_field_even_in_a_frame,
                points_in_a_frame_and_on_a_scrolled_page_are_those_of_the_screenshot,
                a_line_names_what_was_really_hit,
                an_element_in_a_shadow_tree_is_named,
            ):
                with subtests.test(behaves.__name__):
                    await behaves(pointer, site.url)
            with subtests.test("typing key by key ends at the time limit of an action"):
                result = await browser.act("browser_type", {"text": "x" * 10_000, "slowly": True})
                assert not result.ok
                assert "Timeout 1000ms exceeded" in result.text
                assert (await browser.observe()).title == "Shadow"
