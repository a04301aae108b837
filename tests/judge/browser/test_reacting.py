"""What people click on has a reference, whatever the page says that it is; what nobody clicks on has none for it."""

import re
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.pages import open_page
from helpers.browser.sessions import a_browser, ref_of
from helpers.cases import each
from judge.browser.settle import SettleMode
from shared.snapshot import as_shown, parse_snapshot

pytestmark = pytest.mark.e2e

_IMAGE = "src='data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'"
_SVG = "<svg width=20 height=20><path d='M0 0h20v20z'/></svg>"
# By name; LISTENS stands for a listener that a script adds to the element, POINTER for the style of a link's pointer.
ICONS: Mapping[str, str] = MappingProxyType(
    {
        "picture without a text": f"<img alt='' {_IMAGE} width=20 height=20 POINTER LISTENS>",
        "picture without a pointer": f"<img alt='' {_IMAGE} width=20 height=20 LISTENS>",
        "picture that is said to be none": f"<img alt=x role=presentation {_IMAGE} width=20 height=20 POINTER LISTENS>",
        "picture of no role": f"<img role=none {_IMAGE} width=20 height=20 POINTER LISTENS>",
        "picture with an attribute": f"<img alt='' {_IMAGE} width=20 height=20 onclick='said()'>",
        "word": "<span POINTER LISTENS>×</span>",
        "word without a pointer": "<span LISTENS>×</span>",
        "hidden word": "<span aria-hidden=true POINTER LISTENS>×</span>",
        "link without an address": "<a POINTER LISTENS>×</a>",
        "link without an address or a pointer": "<a LISTENS>×</a>",
        "hidden link": "<a aria-hidden=true LISTENS>×</a>",
        "drawing": f"<span POINTER LISTENS>{_SVG}</span>",
        "drawing in a link": f"<a LISTENS>{_SVG}</a>",
        "hidden drawing": f"<span aria-hidden=true LISTENS>{_SVG}</span>",
        "drawing alone": _SVG.replace("<svg", "<svg LISTENS POINTER"),
        "icon of a font": "<i class=icon style='display:inline-block;width:20px;height:20px' LISTENS></i>",
        "bare box": "<div style='width:20px;height:20px' LISTENS></div>",
        "box with an attribute": "<div style='width:20px;height:20px' onmousedown='said()'></div>",
        "box with a pointer, for which the page listens": "<div style='width:20px;height:20px;cursor:pointer'></div>",
    }
)
# Without what the judge adds, these have the references that they have with it.
STATIC = f"""<!doctype html><title>Static</title><h1>Words</h1><p>Some <b>bold</b> and <i>other</i> words.</p>
    <img alt='' {_IMAGE} width=20 height=20><a href=#x><img alt='' {_IMAGE} width=20 height=20><span>Home</span></a>
    <button style='cursor:pointer'><span aria-hidden=true>×</span></button><p>{_SVG}</p>
    <div style='cursor:pointer'><a href=#y>All of it</a></div>
    <label style='cursor:pointer'><input type=checkbox> <span>Yes</span></label>
    <div style='width:20px;height:20px'></div><table><tr><td>1<td><span>2</span></table>"""


def page_of(icons: Mapping[str, str]) -> str:
    html = "".join(f"<section aria-label='{name}'>{icon}</section>" for name, icon in icons.items())
    html = html.replace("POINTER", "style='cursor:pointer'").replace("LISTENS", "data-listens")
    return f"""<!doctype html><title>Icons</title><output aria-label=Clicked></output>{html}<script>
    const said = () => {{
      document.querySelector('output').textContent = event.target.closest('section').getAttribute('aria-label');
    }};
    for (const each of document.querySelectorAll('[data-listens]')) each.addEventListener('click', said);
    document.addEventListener('click', event => event.target.matches('div[style*=pointer]') && said());</script>"""


def without_refs(snapshot: str) -> list[str]:
    return re.sub(r"\[ref=\w+\]", "[ref]", snapshot).replace(" [active]", "").strip().splitlines()


@pytest.mark.parametrize("settle", each(["page-time", "real-time"], suite=["page-time"]))
async def test_everything_that_reacts_to_clicks_can_be_clicked_by_a_reference(settle: SettleMode) -> None:
    clicked = []
    with hostile_site({"/": page_of(ICONS)}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, settle)
            page = parse_snapshot((await browser.observe()).snapshot)
            for name in ICONS:
                region = next((node for node in page.find("region") if node.name == name), None)
                inside = page.subtree(region) if region else ()
                refs = [node.ref for node in inside if node.ref and node is not region]
                if refs:
                    await browser.act("browser_click", {"target": refs[-1]})
                    shown = parse_snapshot((await browser.observe()).snapshot)
                    clicked += [node.text for node in shown.find("status")]
                else:
                    clicked.append(f"no reference: {name}")
    assert clicked == list(ICONS)


async def test_what_begins_to_listen_without_a_change_of_the_document_has_a_reference_in_the_next_look() -> None:
    begins = "<button onclick='bare.addEventListener(`click`, () => 0)'>begin</button>"
    with hostile_site({"/": f"<title>Later</title>{begins}<div id=bare style='width:20px;height:20px'></div>"}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            before = (await browser.observe()).snapshot
            await browser.act("browser_click", {"target": ref_of(before, 'button "begin"')})
            after = (await browser.observe()).snapshot
    assert ("[cursor=pointer]" in before, "[cursor=pointer]" in after) == (False, True)


async def test_nothing_else_gets_a_reference() -> None:
    async with open_page() as watched:
        await watched.page.set_content(STATIC)
        plain = await watched.page.aria_snapshot(mode="ai")
    with hostile_site({"/": STATIC}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            snapshot = (await browser.observe()).snapshot
    assert without_refs(as_shown(snapshot)) == without_refs(plain)
