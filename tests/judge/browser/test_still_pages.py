"""A page is looked at when nothing is pending in it any more: not before its last change, whatever that waits for."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.pending import ANSWERS, Chain, chains, said_after
from helpers.browser.sessions import browser_settings, ref_of
from helpers.cases import each
from judge.browser import chromium, pool, settle

SUITE: tuple[Chain, ...] = (
    ("late timer",),
    ("request", "animation"),
    ("messages", "database", "short timer"),
    ("worker", "fetch", "timer"),
    ("crypto", "script", "interval"),
    ("written frame", "view", "task"),
    ("late timer", "scrolling"),
    ("module", "caches", "permission"),
    ("abort", "finished animation", "back", "transition"),
    ("broadcast", "yields"),
)
# Rows of the table in `page.js` by something in them, and pages that are looked at too early without that row.
NOTICED: dict[str, Chain] = {
    '"setTimeout"': ("late timer",),
    '"requestIdleCallback"': ("idle",),
    '"postTask"': ("task",),
    '"yield"': ("yields",),
    "SubtleCrypto": ("crypto",),
    "WebAssembly": ("program",),
    '"createImageBitmap"': ("bitmap",),
    "Response.prototype": ("answer",),
    "Blob.prototype": ("blob",),
    "Cache?.prototype": ("cache",),
    "CacheStorage": ("caches",),
    "LockManager": ("locks",),
    '["Worker"], making': ("worker",),
    "Worker.prototype": ("asked worker",),
    '[prototype, ["postMessage"]': ("messages",),
    "FileReader.prototype": ("file",),
    "IDBFactory": ("databases",),
    "IDBDatabase": ("database",),
    "CookieStore": ("cookie",),
    "OffscreenCanvas": ("picture off the page",),
    '"toBlob"': ("picture of a canvas",),
    "OfflineAudioContext": ("sound",),
    "Permissions": ("permission",),
    "StorageManager": ("storage",),
    "FileSystemDirectoryHandle": ("directory",),
    "FileSystemFileHandle": ("opened file",),
    "FileSystemWritable": ("written file",),
    "globalThis.WritableStream": ("closed files",),
    "broadcasting": ("broadcast",),
    '["src"], loading': ("local image",),
    "AbortSignal": ("abort",),
    '"waitAsync"': ("waiting",),
}
# Rows without such a page, and why.
UNNOTICED = {
    '"requestAnimationFrame"': "a look waits for some frames anyway",
    '"fetch"': "the network tells of it, too, and what an address contains usually comes at once",
    "XMLHttpRequest": "the same",
    "FontFace": "the network tells of it, too",
    "StreamDefaultReader": "the network tells of it, too",
    "HTMLMediaElement": "plays in real time, which is waited for briefly only",
    '"decode"': "it goes on only while frames are drawn",
    'SharedWorker"], meeting': "the page's clock waits for it, too",
    'BroadcastChannel"], joining': "other documents may answer",
    "closing": "says which channels hear nothing any more, so that the wait ends",
    "MessageChannel": "says which port an answer comes to, so that the wait ends",
    '"startViewTransition"': "its animations are seen, too",
    "scrolling": "it is seen once it moves, which it nearly always does before the look",
    "traversing": "the browser goes there while time passes anyway, unless the machine is busy",
    "leading": "leads to another document, which is seen once it is asked for",
    '"Audio"': "what nobody follows, hardware, or the network tells of it",
    '"getAsString"': "needs a person's drag",
    '"requestFullscreen"': "needs a display",
    '"captureStream"': "needs a display",
    '"speak"': "needs a voice",
    '"IntersectionObserver"': "it calls in the frames that are waited for anyway, see `BY_PROPERTIES`",
}
# What a click changes in the next frames, by properties and styles that no observer of documents reports.
BY_PROPERTIES = {
    "resized": """new ResizeObserver(() => { if (box.offsetWidth > 60) field.value = 'over' }).observe(box);
        const go = () => { box.style.width = '90px' }""",
    "resized in one frame after another": """const [{ style: rule }] = sheet.sheet.cssRules; let left = 12;
        new ResizeObserver(() => {
          if (rule.width && --left) rule.width = `${80 + left}px`; else if (rule.width) field.value = 'over'
        }).observe(box);
        const go = () => { rule.width = '80px' }""",
    "in view": """new IntersectionObserver(([{ isIntersecting }]) => { if (isIntersecting) field.value = 'over' })
        .observe(low);
        const go = () => { far.style.height = 0 }""",
    "scrolled": "list.onscroll = () => { field.value = 'over' }; const go = () => { list.scrollTop = 9 }",
    "opened": "more.ontoggle = () => { field.value = 'over' }; const go = () => { more.open = true }",
    "under the mouse": "const go = () => { button.style.display = 'none' }",
}
_BY_PROPERTIES = """<title>By properties</title>
<style id=sheet>#box { height: 9px } #menu { display: none } #under:hover + #menu { display: block }</style>
<button id=button onclick="go()">go</button><p id=under>under</p><p id=menu>over</p><div id=box></div>
<input id=field aria-label=said><div id=list style="height: 40px; overflow: auto"><p style="height: 90px">list</p></div>
<details id=more></details><div id=far style="height: 4000px">far</div><p id=low>low</p><script>%s</script>"""
_PICTURE = """<title>Picture</title><style>#box { width: 50px; height: 90px }</style><div id=box>box</div>
<canvas id=canvas></canvas><button onclick="go()">go</button><input id=field aria-label=field><script>
const draw = () => canvas.getContext('2d').fillRect(0, 0, box.offsetWidth, 90);
%s</script>"""
# After as many, a browser starts again.
_TOGETHER = 25


@pytest.mark.e2e
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", each(["suite", "all"], suite=["suite"]))
async def test_the_look_after_an_act_shows_the_last_change_that_it_causes(
    size: str, record_property: Callable[[str, object], None]
) -> None:
    drawn = SUITE if size == "suite" else chains(500, seed=63)
    said = {}
    async with browser_pool(browser_settings(), is_guarded=False) as pool:
        with hostile_site(dict(ANSWERS)) as site:
            for start in range(0, len(drawn), _TOGETHER):
                async with pool.browser(None) as browser:
                    await browser.open(site.url, "page-time")
                    for chain in drawn[start : start + _TOGETHER]:
                        said[chain] = await said_after(browser, site, chain)
    record_property("outcome", f"{len(said)} pages")
    assert {chain: each for chain, each in said.items() if each != "over"} == {}


@pytest.mark.e2e
@pytest.mark.parametrize("script", BY_PROPERTIES.values(), ids=BY_PROPERTIES)
async def test_the_look_shows_what_frames_change_by_properties(script: str) -> None:
    async with browser_pool(browser_settings(), is_guarded=False) as pool, pool.browser(None) as browser:
        with hostile_site({"/": _BY_PROPERTIES % script}) as site:
            await browser.open(site.url, "page-time")
            before = await browser.observe()
            await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "go"')})
            assert "over" in (await browser.observe()).snapshot


@pytest.mark.e2e
@pytest.mark.parametrize(
    "script",
    [
        "const go = () => { box.style.background = 'red' }",
        "new ResizeObserver(() => draw()).observe(box); const go = () => { box.style.width = '99%' }",
        "new ResizeObserver(() => draw()).observe(box); const go = () => { field.focus(); box.style.width = '99%' }",
    ],
    ids=["by style", "by an observer", "by an observer, with a caret"],
)
async def test_the_picture_of_a_look_is_the_one_that_a_later_look_would_show(script: str) -> None:
    async with browser_pool(browser_settings(), is_guarded=False) as pool, pool.browser(None) as browser:
        with hostile_site({"/": _PICTURE % script}) as site:
            await browser.open(site.url, "page-time")
            before = await browser.observe()
            await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "go"')})
            pictures = [(await browser.observe()).screenshot for _ in range(2)]
    assert pictures[0] == pictures[1] != before.screenshot


def _rows(source: str) -> list[str]:
    """The rows of the table of sources that are waited for."""
    table = source[source.index("  const SOURCES = [") : source.index("\n  ];\n")]
    rows = re.findall(r"^    (?:\.\.\.)?\[.*?(?=^    (?:\.\.\.)?\[|\Z)", table, re.MULTILINE | re.DOTALL)
    return [row for row in rows if re.search("AWAITED|PACED|COUNTED", row)]


def test_each_source_has_a_page_that_shows_its_row_or_a_reason_why_not() -> None:
    named = [*NOTICED, *UNNOTICED]
    for row in _rows(settle.SETTLER.with_name("page.js").read_text()):
        assert len([name for name in named if name in row]) == 1, row


@pytest.mark.e2e
@pytest.mark.own_browser
@pytest.mark.parametrize("row", each(NOTICED, suite=['"setTimeout"']))
async def test_without_a_row_the_look_after_an_act_is_early(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(settle.SETTLER.parent.parent, tmp_path / "browser")
    table = copy / "settle/page.js"
    source = table.read_text()
    [found] = [each for each in _rows(source) if row in each]
    table.write_text(source.replace(found, "", 1))
    monkeypatch.setattr(chromium, "SETTLER", copy / "settle/settle.cjs")
    async with pool.browser_pool(browser_settings(), is_guarded=False) as own:
        with hostile_site(dict(ANSWERS)) as site:
            async with own.browser(None) as browser:
                await browser.open(site.url, "page-time")
                assert await said_after(browser, site, NOTICED[row]) == "early"
