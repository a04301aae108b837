"""What a page sends later, in each way in which it can schedule that, counts for who started it.

All ways begin in the handler of one form, whose effects arrive one after the other while other things are done. Events
of the site's server come right after the next act on the site, where they look most like that act's effect.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from itertools import product
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest

from adversarial.causes import shop
from helpers.browser.hostile_site import Handler, Site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, ref_of
from helpers.cases import each
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import SettleMode
from judge.network.policy import NetworkPolicy
from judge.records.causes import Cause

Starter = Literal["editor", "site"]
# Each calls `go` after about `ms`. `True`: what scheduled it is known; otherwise it may be unknown.
WAYS: dict[str, tuple[str, bool]] = {
    "timer": ("setTimeout(go, ms)", True),
    "code": ("globalThis.went = go; setTimeout('went()', ms)", False),
    "interval": ("const each = setInterval(() => { clearInterval(each); go() }, ms)", True),
    "timers": ("setTimeout(() => setTimeout(go, ms / 2), ms / 2)", True),
    "frame": ("setTimeout(() => requestAnimationFrame(go), ms)", True),
    "idle": ("setTimeout(() => requestIdleCallback(go), ms)", True),
    "microtask": ("setTimeout(() => queueMicrotask(() => queueMicrotask(go)), ms)", True),
    "task": ("scheduler.postTask(go, { delay: ms })", True),
    "await": ("(async () => { await new Promise(done => setTimeout(done, ms)); await null; go() })()", True),
    "then": ("new Promise(done => setTimeout(done, ms)).then(() => {}).then(go)", True),
    "fetch": ("fetch(`/slow?ms=${ms}`).then(go)", True),
    "body": ("(async () => { await (await fetch(`/slow?ms=${ms}`)).text(); go() })()", True),
    "stream": (
        """(async () => { const reader = (await fetch(`/drip?ms=${ms}`)).body.getReader();
            while (!(await reader.read()).done); go() })()""",
        True,
    ),
    "request": (
        """const asked = new XMLHttpRequest(); asked.onload = go;
            asked.open('GET', `/slow?ms=${ms}`); asked.send()""",
        True,
    ),
    "worker": (
        """const own = worker(`onmessage = () => setTimeout(() => postMessage(1), ${ms})`);
            own.onmessage = go; own.postMessage(1)""",
        True,
    ),
    "channel": (
        """const { port1, port2 } = new MessageChannel(); port1.onmessage = go;
            const own = worker(`onmessage = ({ ports: [port] }) => setTimeout(() => port.postMessage(1), ${ms})`);
            port1.postMessage(0); own.postMessage(1, [port2])""",
        False,
    ),
    "message": (
        "addEventListener('message', ({ data }) => data === 'go' && go()); setTimeout(() => postMessage('go'), ms)",
        False,
    ),
    "broadcast": (
        """new BroadcastChannel('x').onmessage = go;
            setTimeout(() => new BroadcastChannel('x').postMessage(1), ms)""",
        False,
    ),
    "shared": (
        """const { port } = new SharedWorker(URL.createObjectURL(new Blob([
            `onconnect = ({ ports: [port] }) => setTimeout(() => port.postMessage(1), ${ms})`])));
            port.onmessage = go; port.start()""",
        False,
    ),
    "realm": ("inner.contentWindow.setTimeout(go, ms)", False),
    "other": ("inner.contentWindow.postMessage({ ms, item: go.item }, '*')", False),
    "storage": ("setTimeout(() => localStorage.setItem('item', go.item), ms)", False),
    "database": (
        """const opened = indexedDB.open('x', 1);
            opened.onupgradeneeded = () => opened.result.createObjectStore('s');
            opened.onsuccess = () => setTimeout(() => {
              opened.result.transaction('s', 'readwrite').objectStore('s').put(1, 1).onsuccess = go }, ms)""",
        True,
    ),
    "lock": (
        """navigator.locks.request('x', () => new Promise(done => setTimeout(done, ms)));
            navigator.locks.request('x', go)""",
        True,
    ),
    "size": (
        """new ResizeObserver(() => box.style.width === '99px' && go()).observe(box);
            setTimeout(() => { box.style.width = '99px' }, ms)""",
        False,
    ),
    "change": (
        """new MutationObserver(go).observe(box, { attributes: true });
            setTimeout(() => box.setAttribute('x', 'y'), ms)""",
        True,
    ),
    "event": ("addEventListener('own', go); setTimeout(() => dispatchEvent(new CustomEvent('own')), ms)", True),
    "animation": ("box.animate([{ opacity: 0 }, { opacity: 1 }], ms).onfinish = go", False),
    "image": ("const image = new Image(); image.onerror = go; image.src = `/slow?ms=${ms}`", False),
    "hash": ("addEventListener('hashchange', go); setTimeout(() => { location.hash = 'x' }, ms)", False),
    "events": ("hear(ms, source => { source.onmessage = go })", False),
    "named event": ("hear(ms, source => source.addEventListener('named', go))", False),
    "awaited event": (
        "hear(ms, async source => { await new Promise(done => { source.onmessage = done }); await null; go() })",
        False,
    ),
    "address": ("hear(ms, source => { source.onmessage = () => { place.src = `/order?item=${go.item}` } })", False),
    "link": (
        """hear(ms, source => { source.onmessage = () => { const link = document.createElement('a');
            link.href = `/order?item=${go.item}`; link.target = 'opens';
            link.dispatchEvent(new MouseEvent('click')) } })""",
        False,
    ),
    "focus": ("field.onfocus = go; hear(ms, source => { source.onmessage = () => field.focus() })", False),
    "beacon": ("setTimeout(() => navigator.sendBeacon('/order', new URLSearchParams({ item: go.item })), ms)", True),
    "inside": (
        """worker(`setTimeout(() => fetch('${location.origin}/order', {
            method: 'POST', body: 'item=${go.item}' }), ${ms})`)""",
        False,
    ),
    "form": (
        """setTimeout(() => { const form = document.createElement('form'); form.method = 'post'; form.action = '/order';
            form.target = 'target'; form.innerHTML = `<input name=item value=${go.item}>`; document.body.append(form);
            form.submit() }, ms)""",
        False,
    ),
}
FIRST_MS = 6000
APART_MS = 400
_FORM = "<form class=all><button>go</button></form>"
_PAGE = """<title>Later</title><div id=box style="width: 9px">box</div>
<div contenteditable><p>Text</p><div contenteditable=false>%s<a href="#there">trap</a></div></div>
%s<button onclick="fetch('/here')">here</button><input id=field aria-label=field>
<iframe id=place name=opens title=opens></iframe>
<iframe id=inner src="/receives" title=inner></iframe><iframe name=target title=target></iframe>
<script>
// Until the next event that was sent.
const hear = (ms, listen) => setTimeout(() => {
  const source = new EventSource('/events');
  listen(source);
  source.addEventListener('named', () => source.close());
}, ms);
const worker = code => new Worker(URL.createObjectURL(new Blob([code])));
const send = item => fetch('/order', { method: 'POST', body: new URLSearchParams({ item }) });
const ways = { %s };
addEventListener('submit', event => {
  event.preventDefault();
  Object.entries(ways).forEach(([name, way], at) => {
    let isDone = false;
    const go = () => { if (!isDone) { isDone = true; send(go.item) } };
    go.item = '%s' + name;
    way(go, %d + at * %d);
  });
});
</script>"""
_RECEIVES = """<title>Receives</title><script>
const send = item => fetch('/order', { method: 'POST', body: new URLSearchParams({ item }) });
addEventListener('message', ({ data }) => setTimeout(() => send(data.item), data.ms));
addEventListener('storage', ({ newValue }) => newValue && send(newValue));
</script>"""


def _wait(handler: Handler) -> None:
    handler.server.released.wait(float(handler.path.rpartition("ms=")[2]) / 1000)


def _slow(handler: Handler) -> None:
    _wait(handler)
    handler.send(b"text")


def _drip(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    handler.wfile.write(b": one\n\n")
    handler.wfile.flush()
    _wait(handler)
    handler.wfile.write(b"two")


def _events(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    site, before = handler.server, handler.server.count("/here")
    # A browser has a few connections to a site only, and acts may wait for one.
    until = time.monotonic() + 1
    while site.count("/here") == before and time.monotonic() < until:
        time.sleep(0.001)
    handler.wfile.write(b"data: one\n\nevent: named\ndata: two\n\n")


def add_pages(site: Site, starter: Starter, item: str) -> None:
    """The page of a start by that author, at `/later`."""
    ways = ",".join(f"'{name}'(go, ms) {{ {code} }}" for name, (code, _) in WAYS.items())
    forms = [_FORM if starter == each else "" for each in ("editor", "site")]
    site.pages |= {
        "/later": _PAGE % (*forms, ways, item, FIRST_MS, APART_MS),
        "/receives": _RECEIVES,
        "/here": "here",
        "/slow": _slow,
        "/drip": _drip,
        "/events": _events,
    }


def way_of(request: Mapping[str, Any]) -> str | None:
    """The way that sent a request."""
    sent = parse_qs(request["postData"]["text"] if "postData" in request else urlsplit(request["url"]).query)
    return sent["item"][0].removeprefix("i") if "item" in sent and request["method"] != "OPTIONS" else None


async def all_sent(browser: PlaywrightBrowser, site: Site, starter: Starter, item: str) -> None:
    """Start all ways, and act on the site until everything has arrived.

    Before the site starts them, a link in an editor is clicked, after which the page is followed.
    """
    await browser.act("browser_navigate", {"url": f"{site.url}later"})
    if starter == "site":
        await _click(browser, 'link "trap"')
    await _click(browser, 'button "go"')
    until = time.monotonic() + FIRST_MS / 1000 + len(WAYS) * APART_MS / 1000 + 60
    left = set(WAYS)
    while left and time.monotonic() < until:
        await _click(browser, 'button "here"')
        arrived = {
            sent["item"][0] for path in site.paths if (sent := parse_qs(re.split(r"[ ?]", path)[-1])).get("item")
        }
        left = {name for name in left if f"{item}{name}" not in arrived}
        await asyncio.sleep(0.1)
    assert left == set(), left


async def _click(browser: PlaywrightBrowser, element: str) -> None:
    page = await browser.observe()
    await browser.act("browser_click", {"target": ref_of(page.snapshot, element)})


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("starter", "settle"),
    each(
        product(["editor", "site"], ["page-time", "real-time"]), suite=[("editor", "page-time"), ("site", "page-time")]
    ),
)
async def test_what_begins_later_has_the_cause_of_what_scheduled_it_or_none(
    starter: Starter, settle: SettleMode
) -> None:
    async with browser_pool(browser_settings(action_timeout_s=3)) as pool:
        with shop() as site:
            add_pages(site, starter, "i")
            async with pool.browser(NetworkPolicy.for_websites([site.url])) as browser:
                await browser.open(f"{site.url}harmless", settle)
                await all_sent(browser, site, starter, "i")
                traffic = browser.traffic()
    assert traffic is not None
    causes = {name: Cause(**entry["_cause"]) for entry in traffic.entries if (name := way_of(entry["request"]))}
    assert causes.keys() == WAYS.keys()
    evidence = {name for name, cause in causes.items() if cause.why_not is None}
    if starter == "editor":
        assert evidence == set()
    else:
        assert {name for name, (_, is_told) in WAYS.items() if is_told} - evidence == set()
