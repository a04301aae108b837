"""Controls that are drawn elsewhere than where they are: each has a reference, and is clicked where a person would."""

import time
from collections.abc import AsyncIterator

import pytest

from helpers.browser.hostile_site import Handler, hostile_site
from helpers.browser.sessions import a_browser, ref_of
from helpers.cases import each
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import SettleMode
from shared.points import element_at
from shared.snapshot import Snapshot, parse_snapshot

pytestmark = pytest.mark.e2e

STYLE = """<!doctype html><title>Controls</title><style>
    .clipped { position: absolute; width: 1px; height: 1px; overflow: hidden; clip: rect(0, 0, 0, 0) }
    .nothing { position: absolute; width: 0; height: 0; opacity: 0; margin: 0 }
    .box { position: relative; display: inline-block; padding: 6px; border: 3px solid #ccc }
    .drawing { display: inline-block; width: 40px; height: 20px; background: #ccc }
    .over { position: absolute; inset: 0 }
    .stretched::after { content: ''; position: absolute; inset: 0; z-index: 1 }</style>
    <p id=said role=status>said:</p><script>window.say = text => { said.textContent += ` ${text}` }</script>"""
# By name, each with the element to click. It says its name once it is used.
WAYS = {
    "clipped": (
        "<div class=box style='padding: 20px'><b class=over style='width: 30px'>Size</b><label for=a style='margin: "
        "20px'>"
        "Clipped</label><input class=clipped style='left: 0; top: 0' type=radio id=a "
        "onchange=\"say('clipped')\"></div>",
        'radio "Clipped"',
    ),
    "untouchable": (
        "<input class=clipped style='pointer-events: none; width: 9px; height: 9px' type=radio id=b"
        " onchange=\"say('untouchable')\"><label class=box for=b>Untouchable</label>",
        'radio "Untouchable"',
    ),
    "segment": (
        "<label class=box><input class=nothing style='pointer-events: none' type=radio onchange=\"say('segment')\">"
        "<div>Segment</div></label>",
        'radio "Segment"',
    ),
    "far": (
        "<input type=checkbox id=c style='position: absolute; left: -9999px' onchange=\"say('far')\"><label "
        "for=c>Far</label>",
        'checkbox "Far"',
    ),
    "unrendered": (
        "<input type=radio id=d style='display: none' onchange=\"say('unrendered')\"><label for=d>Unrendered</label>",
        'radio "Unrendered"',
    ),
    "invisible": (
        "<input type=checkbox id=e style='visibility: hidden' onchange=\"say('invisible')\"><label "
        "for=e>Invisible</label>",
        'checkbox "Invisible"',
    ),
    "switch": (
        "<div class=box onclick=\"say('switch')\"><input class=nothing type=checkbox role=switch aria-label=Wifi>"
        "<span class=drawing></span></div>",
        'switch "Wifi"',
    ),
    "through": (
        "<div class=box onclick=\"say('through')\"><span role=switch aria-checked=false aria-label=Through "
        "class=drawing"
        " style='pointer-events: none'></span></div>",
        'switch "Through"',
    ),
    "terms": (
        "<label class=box><input type=checkbox class=nothing onchange=\"say('terms')\" aria-label=Terms>"
        "<a href='#terms' onclick=\"say('link')\" style='display: block'>The long terms of this service</a> "
        "agreed</label>",
        'checkbox "Terms"',
    ),
    "placeholder": (
        "<div class=box onclick=\"say('placeholder')\"><div><input role=combobox readonly aria-label=City></div>"
        "<div class=over>Choose a city</div></div>",
        'combobox "City"',
    ),
    "rect": (
        "<img usemap='#m' width=200 height=60 style='border: 5px solid; padding: 4px' alt=Map src='/map.svg'><map "
        "name=m>"
        "<area shape=rect coords='0,0,50,50' href='#1' alt=Rect onclick=\"say('rect')\">"
        "<area shape=circle coords='90,30,20' href='#2' alt=Circle onclick=\"say('circle')\">"
        "<area shape=poly coords='130,0,190,0,190,60,180,60,180,10,130,10' href='#3' alt=Corner "
        "onclick=\"say('corner')\"></map>",
        'link "Rect"',
    ),
    "circle": ("", 'link "Circle"'),
    "corner": ("", 'link "Corner"'),
    "card": (
        "<div class=box><h2>Card</h2><a class=stretched href='#card' onclick=\"say('card')\">Go</a></div>",
        'heading "Card"',
    ),
    "tile": (
        "<div class=box><h2>Tile</h2><p>words</p><a class=over href='#tile' aria-label='To it' "
        "onclick=\"say('tile')\"></a></div>",
        'heading "Tile"',
    ),
    "panel": (
        "<div class=box><h2>Panel</h2><h3><a href='#panel' onclick=\"say('panel')\"><span "
        "class=over></span>To</a></h3></div>",
        'heading "Panel"',
    ),
    "shadow": (
        "<x-switch></x-switch><script>document.querySelector('x-switch').attachShadow({ mode: 'open' }).innerHTML ="
        " `<label style='padding: 9px'><input type=checkbox role=switch style='position: absolute; opacity: 0;"
        " pointer-events: none' onchange=\"say('shadow')\"> Shadow</label>`</script>",
        'switch "Shadow"',
    ),
    "framed": (
        "<iframe style='border: 7px solid; padding: 3px; height: 60px' srcdoc=\"<input type=radio id=z "
        "style='display: none'"
        " onchange='parent.say(`framed`)'><label for=z style='margin: 20px'>Framed</label>\"></iframe>",
        'radio "Framed"',
    ),
}
# What nobody can use has no reference.
UNUSABLE = """<input class=nothing style="padding: 0;
  border: 0" aria-label=Honeypot><label>Off<input type=radio class=nothing disabled></label>
    <div aria-hidden=true><label>Doubled<input type=checkbox class=nothing></label></div>
    <img usemap='#gone' style='display: none' alt=Gone><map name=gone>
    <area coords='0,0,9,9' href='#0' alt=Nowhere></map>
    <div style='display: none'><label>Closed<input type=checkbox></label></div>"""
PREVENTED = """<title>Prevented</title><p id=said role=status>no</p><h1>Title</h1>
    <div inert><button onclick="said.textContent = 'inert'">Inert</button></div>
    <button disabled onclick="said.textContent = 'disabled'">Disabled</button>
    <select aria-label=Plan disabled><option>A<option>B</select><select aria-label=Size><option>S<option>M</select>
    <input aria-label=Fixed readonly value=1><button onclick="said.textContent = 'pressed'">Below</button>
    <div role=dialog aria-label="Cookies" style='position: fixed; inset: 0; background: #eee'><p>We use some</p>
    <button onclick="said.textContent = 'agreed'"
      style='position: fixed; left: 0; top: 0; width: 300px; height: 300px'>Agree to all</button></div>"""
# By element: what is done to it, and what is said then.
PREVENTIONS: dict[str, tuple[str, dict[str, object], str]] = {
    'button "Below"': ("browser_click", {}, 'The element cannot be used: dialog "Cookies" covers it'),
    'heading "Title"': ("browser_click", {}, 'The element cannot be used: dialog "Cookies" covers it'),
    'button "Inert"': ("browser_click", {}, 'The element cannot be used: it is inert, behind dialog "Cookies"'),
    'button "Disabled"': ("browser_click", {}, "The element cannot be used: it is disabled"),
    'textbox "Fixed"': ("browser_type", {"text": "2"}, "The element cannot be used: it is read-only"),
    'combobox "Plan"': ("browser_select_option", {"values": ["B"]}, "This dropdown is disabled"),
    'combobox "Size"': (
        "browser_select_option",
        {"values": ["L"]},
        'There is no option "L". The options are: "S"; "M"',
    ),
}
MOVING = """<!doctype html><title>Moving</title><style>button { position: absolute }
    @keyframes pulse { 50% { transform: scale(1.3) } } @keyframes slide { to { left: 300px } }</style>
    <button style="top: 100px; animation: pulse .7s infinite" onclick="say('pulsing')">Pulsing</button>
    <button style="top: 160px; left: 0; width: 150px;
      animation: slide 6s linear infinite alternate" onclick="say('sliding')">Sliding</button>
    <button id=driven style="top: 220px; width: 150px" onclick="say('driven')">Driven</button>
    <div style="position: absolute; top: 280px;
      animation: pulse 1s infinite"><button onclick="say('inside')">Inside</button></div>
    <p id=said role=status>said:</p><script>let t = 0; const say = text => { said.textContent += ` ${text}` };
    (function frame() { driven.style.left = 150 + 150 * Math.sin(t += .005) + 'px';
      requestAnimationFrame(frame) })()</script>"""


def map_image(handler: Handler) -> None:
    handler.send(b"<svg xmlns='http://www.w3.org/2000/svg' width='200' height='60'/>", Content_Type="image/svg+xml")


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with a_browser(action_timeout_s=5) as browser:
        yield browser


def middle_of(page: Snapshot, ref: str) -> tuple[float, float]:
    node = page.by_ref(ref)
    assert node is not None
    box = page.boxes[node.position]
    assert box is not None
    return box[0] + box[2] / 2, box[1] + box[3] / 2


@pytest.mark.parametrize("settle", each(["page-time", "real-time"], suite=["page-time"]))
async def test_a_control_that_is_drawn_elsewhere_is_used_by_its_reference(
    browser: PlaywrightBrowser, settle: SettleMode
) -> None:
    html = STYLE + "".join(html for html, _ in WAYS.values()) + UNUSABLE
    with hostile_site({"/": html, "/map.svg": map_image}) as site:
        await browser.open(site.url, settle)
        before = (await browser.observe()).snapshot
        results = {
            name: await browser.act("browser_click", {"target": ref_of(before, element)})
            for name, (_, element) in WAYS.items()
        }
        after = (await browser.observe()).snapshot
    assert {name: result.text for name, result in results.items() if not result.ok} == {}
    text = next(line for line in after.splitlines() if "- status" in line).partition("said: ")[2].strip('"')
    assert text.split() == list(WAYS)
    used = {node.name for node in parse_snapshot(after).nodes if node.states.get("checked") == "true"}
    assert {"Clipped", "Untouchable", "Segment", "Far", "Unrendered", "Invisible", "Shadow", "Framed"} <= used
    without = [node.name for node in parse_snapshot(after).nodes if node.name and node.box and node.ref is None]
    assert {"Honeypot", "Off"} <= set(without)
    assert not any(name in after for name in ("Nowhere", 'checkbox "Closed'))


async def test_a_point_on_what_is_drawn_for_a_control_names_that_control(browser: PlaywrightBrowser) -> None:
    names = ("segment", "rect", "circle")
    with hostile_site({"/": STYLE + "".join(WAYS[name][0] for name in names), "/map.svg": map_image}) as site:
        await browser.open(site.url, "page-time")
        page = parse_snapshot((await browser.observe()).snapshot)
        results = []
        for role, name in (("radio", "Segment"), ("link", "Rect"), ("link", "Circle")):
            node = next(node for node in page.find(role) if node.name == name)
            x, y = middle_of(page, node.ref or "")
            result = await browser.act("browser_mouse_click_xy", {"x": x, "y": y})
            at = element_at(page, (x, y), result.hit[0] if result.hit else None)
            results.append(at is not None and at.name == name)
    assert results == [True, True, True]


async def test_a_form_with_hidden_switches_is_filled(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": STYLE + WAYS["invisible"][0] + WAYS["segment"][0]}) as site:
        await browser.open(site.url, "page-time")
        snapshot = (await browser.observe()).snapshot
        fields = [
            {"target": ref_of(snapshot, f'{role} "{name}"'), "name": name, "type": role, "value": "true"}
            for role, name in (("checkbox", "Invisible"), ("radio", "Segment"))
        ]
        assert (await browser.act("browser_fill_form", {"fields": fields})).ok
        after = (await browser.observe()).snapshot
    assert after.count("[checked]") == 2


async def test_what_cannot_be_used_fails_soon_and_says_by_what() -> None:
    limit_s = 60
    async with a_browser(action_timeout_s=limit_s, call_timeout_s=2 * limit_s) as browser:
        with hostile_site({"/": PREVENTED}) as site:
            await browser.open(site.url, "page-time")
            snapshot = (await browser.observe()).snapshot
            texts, began = {}, time.monotonic()
            for element, (tool, params, _) in PREVENTIONS.items():
                result = await browser.act(tool, {"target": ref_of(snapshot, element), **params})
                assert not result.ok
                texts[element] = result.text
            took_s = time.monotonic() - began
            page = parse_snapshot((await browser.observe()).snapshot)
    assert texts == {element: text for element, (*_, text) in PREVENTIONS.items()}
    assert [page.text_of(node) for node in page.find("status")] == ["no"]
    # Otherwise each takes as long as an action may.
    assert took_s < limit_s


@pytest.mark.parametrize(
    ("settle", "names"),
    [("page-time", ["Pulsing", "Sliding", "Driven", "Inside"]), ("real-time", ["Pulsing", "Driven"])],
)
async def test_what_moves_all_the_time_is_clicked_where_it_is(
    browser: PlaywrightBrowser, settle: SettleMode, names: list[str]
) -> None:
    with hostile_site({"/": MOVING}) as site:
        await browser.open(site.url, settle)
        snapshot = (await browser.observe()).snapshot
        for name in names:
            result = await browser.act("browser_click", {"target": ref_of(snapshot, f'button "{name}"')})
            assert result.ok, result.text
        after = (await browser.observe()).snapshot
    assert " ".join(["said:", *names]).lower() in after
