"""Pages that change last when a chain of things that were pending is over, each of them in its own way.

A page's button starts the chain. When it is over, the page says "over", which a look after the click must show.
"""

import itertools
import random
import re
from pathlib import Path

from helpers.browser.hostile_site import Handler, Page, Site
from helpers.browser.sessions import ref_of
from judge.browser.playwright import PlaywrightBrowser

_SOURCES = Path(__file__).with_suffix(".js").read_text()
SOURCES = tuple(re.findall(r'^  "([\w ]+)"\(next\)', _SOURCES, re.MULTILINE))
_PAGE = """<title>Pending</title><style>@keyframes fade { from { opacity: 0 } }</style>
<div id=box style="width: 50px">box</div>
<button onclick="go()">go</button><p id=said>not yet</p><button onclick="this.after('reacted')">react</button>
<script>
const code = text => URL.createObjectURL(new Blob([text]));
const worker = text => new Worker(code(text));
const drawn = new OffscreenCanvas(2000, 2000); drawn.getContext('2d');
const picture = () => drawn.convertToBlob();
const sources = %s;
const steps = %s;
const go = () => {
  const step = sources[steps.shift()];
  if (!step) return said.textContent = 'over';
  let isDone = false;
  step(() => { if (!isDone) { isDone = true; go() } });
};
</script>"""
_SLOW_S = 0.25
_PICTURE = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'></svg>"


Chain = tuple[str, ...]


def _after(body: bytes, content_type: str, pieces: int = 1) -> Page:
    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", content_type)
        handler.end_headers()
        for _ in range(pieces):
            handler.server.released.wait(_SLOW_S)
            handler.wfile.write(body)
            handler.wfile.flush()

    return answer


ANSWERS: dict[str, Page] = {
    "/slow": _after(b"slow", "text/plain"),
    "/drip": _after(b"drip", "text/plain", 3),
    "/picture": _after(_PICTURE, "image/svg+xml"),
    "/script": _after(b"setTimeout(loaded, 50)", "text/javascript"),
    "/style": _after(b"p { color: black }", "text/css"),
    "/events": _after(b"data: one\n\n", "text/event-stream"),
}


def chains(count: int, seed: int) -> tuple[Chain, ...]:
    """Each source alone, then chains of several."""
    draw = random.Random(seed)
    drawn = (tuple(draw.sample(SOURCES, draw.randint(2, 4))) for _ in range(count))
    return tuple(itertools.islice(itertools.chain(((name,) for name in SOURCES), drawn), count))


async def said_after(browser: PlaywrightBrowser, site: Site, chain: Chain) -> str:
    """Whether the look after the click shows that the chain is over, and another click at once has its effect."""
    site.pages["/chain"] = _PAGE % (_SOURCES.replace("</", "<\\/"), list(chain))
    await browser.act("browser_navigate", {"url": f"{site.url}chain"})
    before = await browser.observe()
    await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "go"')})
    seen = (await browser.observe()).snapshot
    await browser.act("browser_click", {"target": ref_of(seen, 'button "react"')})
    after = (await browser.observe()).snapshot
    shown = "over" if "over" in seen else "early"
    return shown if "reacted" in after else f"{shown}, dead"
