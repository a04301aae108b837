"""The record of a browser's requests and their answers, and of where it went, with a real browser."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.browser.hops import pages_of
from helpers.browser.hostile_site import Handler, hostile_site, never_answers
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import a_browser, browser_settings
from judge.browser.requests import RequestLog
from judge.browser.session import Traffic
from judge.config import RunConfig
from judge.network.attempt import network_of
from judge.network.policy import NetworkPolicy
from judge.records.tasks import Task

pytestmark = pytest.mark.e2e

SHOP = """<title>Shop</title><link rel="stylesheet" href="/style.css"><script src="/script.js"></script>
    <img src="/picture"><iframe src="/frame"></iframe>
    <button onclick="fetch('/api/cart?from=page', {method: 'POST', headers: {'content-type': 'application/json'},
        body: JSON.stringify({sku: 'D-1', qty: 2})})">json</button>
    <button onclick="const form = new FormData(); form.set('note', 'für Öl');
        fetch('/api/upload', {method: 'POST', body: form})">multipart</button>
    <button onclick="fetch('/api/bytes', {method: 'POST', headers: {'content-type': 'text/plain'},
        body: new Uint8Array([255, 254, 65])})">bytes</button>
    <button onclick="fetch('/api/large', {method: 'POST', body: 'x'.repeat(300000)})">large</button>
    <button onclick="new WebSocket(location.href.replace('http', 'ws') + 'socket')">socket</button>
    <form method="post" action="/order"><input name="item" value="desk &amp; lamp"><button>buy</button></form>"""


def _json(handler: Handler) -> None:
    handler.send(b'{"total": 3}', Content_Type="application/json", Set_Cookie="cart=abc; HttpOnly; Path=/")


PAGES: dict[str, Any] = {
    "/": SHOP,
    "/style.css": lambda handler: handler.send(b"p { color: red }", Content_Type="text/css"),
    "/script.js": lambda handler: handler.send(b"1", Content_Type="text/javascript"),
    "/picture": lambda handler: handler.send(b"", 404),
    "/frame": "<p>inside",
    "/api/cart": _json,
    "/api/upload": _json,
    "/api/bytes": lambda handler: handler.send(b"\xff\xfe", Content_Type="text/plain"),
    "/api/large": lambda handler: handler.send(b"y" * 300_000, Content_Type="text/plain"),
    "/api/slow": never_answers,
    # A click waits for the requests of its own tab.
    "/tab": "<title>Tab</title><script>fetch('/api/slow')</script>",
    "/order": lambda handler: handler.redirect("/done"),
    "/done": '<title>Done</title><a href="/go" target="_blank">tab</a>',
    "/go": lambda handler: handler.redirect("/tab"),
}


async def test_requests_are_recorded_with_the_step_that_caused_them_and_the_browsers_way() -> None:
    buttons = ("json", "multipart", "bytes", "large", "socket", "buy", "tab")
    with hostile_site(PAGES) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            for number, button in enumerate(buttons, 1):
                browser.begin_step(number)
                assert (await browser.act("browser_click", {"target": f':text-is("{button}")'})).ok
            async with asyncio.timeout(60):
                while (traffic := browser.traffic()) and (traffic.is_pending or not _has_request(traffic, "/api/slow")):
                    await asyncio.sleep(0.01)
            hops = browser.take_hops()
    assert traffic is not None
    # Without the icon that the browser asks for.
    entries = [entry for entry in traffic.entries if "favicon" not in entry["request"]["url"]]
    entries_sent = [
        (entry["_step"], entry["request"]["method"], _path(entry), entry["response"]["status"]) for entry in entries
    ]
    assert entries_sent == [
        (0, "GET", "/", 200),
        (0, "GET", "/frame", 200),
        (1, "POST", "/api/cart", 200),
        (2, "POST", "/api/upload", 200),
        (3, "POST", "/api/bytes", 200),
        (4, "POST", "/api/large", 200),
        (5, "GET", "/socket", 0),
        (6, "POST", "/order", 302),
        (6, "GET", "/done", 200),
        (7, "GET", "/go", 302),
        (7, "GET", "/tab", 200),
        (7, "GET", "/api/slow", 0),
    ]
    _, frame, cart, upload, bytes_, large, socket, order, *_ = entries
    assert frame["_frame"]
    assert cart["request"]["postData"]["text"] == '{"sku":"D-1","qty":2}'
    assert cart["response"]["content"]["text"] == '{"total": 3}'
    assert cart["response"]["cookies"][0]["name"] == "cart"
    assert upload["request"]["cookies"] == [{"name": "cart", "value": "abc"}]
    assert "für Öl" in upload["request"]["postData"]["text"]
    assert bytes_["request"]["postData"]["encoding"] == "base64"
    assert large["request"]["postData"] == {"mimeType": "text/plain;charset=UTF-8", "params": [], "_truncated": True}
    assert large["request"]["bodySize"] == large["response"]["content"]["size"] == 300_000
    assert (socket["_resourceType"], socket["request"]["url"]) == (
        "websocket",
        site.url.replace("http", "ws") + "socket",
    )
    assert order["request"]["postData"]["text"] == "item=desk+%26+lamp"
    assert order["response"]["redirectURL"] == "/done"
    assert pages_of(hops) == [
        (site.url, False),
        (f"{site.url}order", False),
        (f"{site.url}done", True),
        (f"{site.url}go", False),
        (f"{site.url}tab", True),
    ]
    assert [hop.url for hop in hops if hop.event == "request" and hop.in_frame] == [f"{site.url}frame"]


LINKS = """<title>Links</title><a download href="/files/a.csv?all=1">csv</a><a download href="/gone">gone</a>
    <a href="/attached">attached</a><a download="x.txt" href="data:text/plain,x">data</a>"""
FILES: dict[str, Any] = {
    "/": LINKS,
    "/files/a.csv": lambda handler: handler.send(b"a,b", Content_Type="text/csv"),
    "/gone": lambda handler: handler.send(b"", 404),
    "/attached": lambda handler: handler.send(b"a", Content_Type="text/csv", Content_Disposition="attachment"),
}


async def test_a_request_that_the_browser_reports_only_as_a_download_is_recorded_once() -> None:
    with hostile_site(FILES) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            for number, link in enumerate(("csv", "gone", "attached", "data"), 1):
                browser.begin_step(number)
                assert (await browser.act("browser_click", {"target": f':text-is("{link}")'})).ok
            traffic = browser.traffic()
    assert traffic is not None
    own = site.url.rstrip("/")
    assert [
        (entry["_step"], entry["request"]["url"], entry["_sender"], entry.get("_download"), entry["response"]["status"])
        for entry in traffic.entries
        if entry["_step"]
    ] == [
        (1, f"{own}/files/a.csv?all=1", own, True, 0),
        (2, f"{own}/gone", own, None, 0),
        (3, f"{own}/attached", own, None, 200),
    ]


def _has_request(traffic: Traffic, path: str) -> bool:
    return any(_path(entry) == path for entry in traffic.entries)


def _path(entry: dict[str, Any]) -> str:
    return str(urlsplit(entry["request"]["url"]).path)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    line = '{"id": 0, "began": 0, "method": "GET", "url": "http://a/", "type": "fetch"}\n'
    (tmp_path / "requests.jsonl").write_text(line + '{"id": 0, "answered": 1, "status"')
    assert [entry["response"]["status"] for entry in RequestLog(tmp_path).read().entries] == [0]
    assert RequestLog(tmp_path / "none").read().entries == ()


BODIES = """<title>Bodies</title><script>
    const body = name => new Blob([JSON.stringify({from: name})], {type: "application/json"});
    const sent = [
        ["/blob", () => fetch("/blob", {method: "POST", body: body("blob")})],
        ["/beacon", async () => navigator.sendBeacon("/beacon", body("beacon"))],
        ["/clone", () => fetch(new Request("/clone", {method: "POST", body: '{"from": "clone"}',
            headers: {"Content-Type": "application/json"}}).clone())],
        ["/keepalive", () => fetch("/keepalive", {method: "PUT", keepalive: true, body: body("keepalive")})],
        ["/frame", async () => document.body.append(Object.assign(document.createElement("iframe"), {srcdoc:
            `<script>fetch("/frame", {method: "POST", body: new Blob(['{"from": "frame"}'],
                {type: "application/json"})})<\\/script>`}))],
        ["/twice", async () => { fetch("/twice", {method: "POST", body: body("first")});
            await fetch("/twice", {method: "POST"}); await fetch("/twice", {method: "POST", body: body("third")}); }],
        ["/large", () => fetch("/large", {method: "POST", body: new Blob(["x".repeat(300000)], {type: "text/plain"})})],
    ];
    // Playwright lets a worker run before another session can listen: only its first moments are missed.
    const script = `setTimeout(() => fetch("${location.origin}/worker", {method: "POST",
        body: new Blob(['{"from": "worker"}'], {type: "application/json"})}), 1000)`;
    new Worker(URL.createObjectURL(new Blob([script])));
    (async () => { for (const [, send] of sent) await send(); })();
</script>"""


async def test_bodies_that_playwright_does_not_report_are_recorded() -> None:
    paths = ("/blob", "/beacon", "/clone", "/keepalive", "/worker", "/frame", "/twice", "/large")
    with hostile_site({"/": BODIES, **dict.fromkeys(paths, "{}")}) as site:
        async with a_browser() as browser:
            await browser.open(site.url)
            async with asyncio.timeout(60):
                while (traffic := browser.traffic()) and (traffic.is_pending or not _has_request(traffic, "/worker")):
                    await asyncio.sleep(0.05)
    assert traffic is not None
    bodies = sorted((_path(entry), _body(entry) or "") for entry in traffic.entries if _path(entry) in paths)
    assert bodies == [
        ("/beacon", '{"from":"beacon"}'),
        ("/blob", '{"from":"blob"}'),
        ("/clone", '{"from": "clone"}'),
        ("/frame", '{"from": "frame"}'),
        ("/keepalive", '{"from":"keepalive"}'),
        ("/large", "too large"),
        ("/twice", ""),
        ("/twice", '{"from":"first"}'),
        ("/twice", '{"from":"third"}'),
        ("/worker", '{"from": "worker"}'),
    ]


def _body(entry: dict[str, Any]) -> str | None:
    post = entry["request"].get("postData", {})
    return "too large" if post.get("_truncated") else post.get("text")


LEAVING = """<title>Leaving</title><script>
    new Worker(URL.createObjectURL(new Blob([`fetch("${location.origin}/worker", {method: "POST",
        body: new Blob(['{"from": "worker"}'], {type: "application/json"})})`])));
    onpagehide = () => navigator.sendBeacon("/beacon", "left");
    document.write('<img src="/picture">')</script>"""


@pytest.mark.parametrize("reads_all", [False, True], ids=["without TLS", "everything"])
async def test_what_is_sent_is_recorded_as_the_guard_read_it_but_not_what_the_judge_asks_for(
    *, reads_all: bool
) -> None:
    requests: list[dict[str, str]] = []

    def state(handler: Handler) -> None:
        requests.append(dict(handler.headers))
        handler.send(b"{}", Content_Type="application/json")

    with hostile_site({"/leave": LEAVING, "/worker": "{}", "/beacon": "", "/state": state}) as site:
        policy = NetworkPolicy.for_websites([site.url])
        watched = {"name": "p", "dimension": "consent", "kind": "request", "url": "*"}
        keys = {"policies": [watched]} if reads_all else {}
        task = Task.model_validate({"task_id": "t", "website": site.url, "task": "x", **keys})
        interceptor = network_of(task, RunConfig()).interceptor
        async with browser_pool(browser_settings()) as pool, pool.browser(policy, interceptor) as browser:
            await browser.log_in(task)
            await browser.open(f"{site.url}leave", "page-time")
            await browser.observe()
            browser.begin_step(1)
            await browser.act("browser_navigate", {"url": site.url})
            assert (await browser.fetch(f"{site.url}state", None)).status == 200
            async with asyncio.timeout(20):
                while not (site.was_requested("/beacon") and site.was_requested("/worker")):
                    await asyncio.sleep(0.02)
            traffic = browser.traffic()
    assert traffic is not None
    assert traffic.seen_by == ("guard" if reads_all else "browser")
    entries = {_path(entry): entry for entry in traffic.entries}
    assert set(entries) - {"/favicon.ico"} == {"/", "/leave", "/worker", "/beacon"} | (
        {"/picture"} if reads_all else set()
    )
    bodies = [entries[path]["request"]["postData"]["text"] for path in ("/worker", "/beacon")]
    assert bodies == ['{"from": "worker"}', "left"]
    origin = site.url.rstrip("/")
    # The browser does not report the beacon.
    assert [entries[path]["_sender"] for path in ("/leave", "/worker", "/beacon")] == ["browser", origin, None]
    assert entries["/worker"]["_step"] == 0
    (headers,) = requests
    assert not any(name.lower().startswith("x-wabe") for name in headers)
