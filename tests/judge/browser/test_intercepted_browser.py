"""A real browser whose requests an interceptor answers: every kind of request that a page can send reaches it."""

import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from helpers.browser.hostile_site import Handler, Page, hostile_site, self_signed
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, ref_of
from helpers.network.interceptors import Answering, PassingOn, answer
from helpers.network.web_sockets import talk
from judge.browser.pool import BrowserPool
from judge.network.interception import RequestFailed, WireAnswer, WireRequest
from judge.network.policy import NetworkPolicy

pytestmark = pytest.mark.e2e

# The event stream stays open, so what it said must have arrived before its end.
HOME = """<title>Home</title><ul id="said"></ul><button onclick="load('/late')">later</button><script type="module">
const say = text => { said.innerHTML += `<li>${text}</li>` };
window.load = async path => say("fetched " + await (await fetch(path)).text());
await load("/fetched");
new Worker("/worker.js").onmessage = ({ data }) => say(data);
await navigator.serviceWorker.register("/service.js");
await navigator.serviceWorker.ready;
const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
socket.onopen = () => socket.send("hello");
socket.onmessage = ({ data }) => say("socket " + data);
new EventSource("/events").onmessage = ({ data }) => say("event " + data);
fetch("/fails").catch(() => say("failed"));
</script>"""
WORKER = "(async () => postMessage('worker ' + await (await fetch('/of-worker')).text()))()"
SERVICE = """oninstall = event => event.waitUntil((async () => {
    await (await caches.open('x')).put('/kept', await fetch('/of-service')); await skipWaiting() })());
    onactivate = event => event.waitUntil(clients.claim())"""
TEXTS = {"/fetched": "text", "/of-worker": "done", "/of-service": "kept", "/late": "late"}
SCRIPTS = {"/worker.js": WORKER, "/service.js": SERVICE}
EXPECTED_PATHS = set("/ /events /fails /fetched /of-service /of-worker /service.js /socket /worker.js".split())
EXPECTED_TEXTS = ("fetched text", "worker done", "socket HELLO", "event 1", "failed")
POLICY = NetworkPolicy.for_websites(["https://shop.example/"])


def events(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    handler.wfile.write(b"data: 1\n\n")
    handler.wfile.flush()
    handler.server.released.wait(30)
    handler.close_connection = True


def hangs_up(handler: Handler) -> None:
    handler.close_connection = True


def says(text: str, kind: str) -> Page:
    return lambda handler: handler.send(text.encode(), Content_Type=kind)


SITE: dict[str, Page] = {
    "/": HOME,
    **TEXTS,
    **{path: says(text, "text/javascript") for path, text in SCRIPTS.items()},
    "/socket": lambda handler: talk(handler, (), lambda text: [text.upper()]),
    "/events": events,
    "/fails": hangs_up,
}


async def event_stream() -> AsyncIterator[bytes]:
    import asyncio

    yield b"data: 1\n\n"
    await asyncio.sleep(60)


def answers(request: WireRequest) -> WireAnswer:
    path = path_of(request)
    match path:
        case "/":
            return answer(HOME)
        case "/events":
            return WireAnswer(200, "OK", (("Content-Type", "text/event-stream"),), event_stream())
        case "/fails":
            raise RequestFailed("as recorded")
    if path in SCRIPTS:
        return answer(SCRIPTS[path], "text/javascript")
    return answer(TEXTS[path], "text/plain") if path in TEXTS else WireAnswer(404, "Not Found")


def path_of(request: WireRequest) -> str:
    return "/" + request.url.split("/", 3)[3]


async def said_on(
    pool: BrowserPool, interceptor: Answering | PassingOn, url: str, *, clock_ms: int | None = None
) -> str:
    """What the page says, after a press of its button as the first step."""
    async with pool.browser(NetworkPolicy.for_websites([url]), interceptor) as browser:
        await browser.open(url, "page-time", clock_ms)
        page = await browser.observe()
        browser.begin_step(1)
        await browser.act("browser_click", {"target": ref_of(page.snapshot, 'button "later"')})
        return (await browser.observe()).snapshot


async def test_every_kind_of_request_is_answered_without_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with browser_pool(browser_settings()) as pool:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("a name was resolved"))
        for url in ("https://shop.example/", "http://127.0.0.1:9100/"):
            interceptor = Answering(answers)
            snapshot = await said_on(pool, interceptor, url)
            assert [messages for messages in (*EXPECTED_TEXTS, "fetched late") if messages not in snapshot] == []
            paths = {path_of(each) for each in interceptor.requests}
            assert paths - {"/favicon.ico"} == {*EXPECTED_PATHS, "/late"}
            assert {each.step for each in interceptor.requests if path_of(each) == "/late"} == {1}
            assert {each.step for each in interceptor.requests if path_of(each) in EXPECTED_PATHS} == {0}
            assert [path_of(each) for each in interceptor.requests].count("/fails") == 1


async def test_every_kind_of_request_is_passed_on_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with browser_pool(browser_settings()) as pool:
        for pem in (certificate, None):
            interceptor = PassingOn()
            with hostile_site(SITE, certificate=pem) as site:
                snapshot = await said_on(pool, interceptor, site.url)
            assert [messages for messages in (*EXPECTED_TEXTS, "fetched late") if messages not in snapshot] == []
            assert {path_of(each) for each in interceptor.requests} - {"/favicon.ico"} == {*EXPECTED_PATHS, "/late"}
            assert b"hello" in [getattr(each, "data", b"") for each in interceptor.messages]


CLOCKS = """<title>Clocks</title><ul id="said"></ul><iframe src="https://other.example/frame"></iframe>
<a href="/clock" target="_blank">tab</a><a href="/clock" target="_blank" rel="noopener">apart</a>
<script>const say = (who, at) => { said.innerHTML += `<li>${who} ${new Date(at).toISOString()}</li>` };
say("document", Date.now()); new Worker("/worker.js").onmessage = ({ data }) => say("worker", data);
onmessage = ({ data }) => say("frame", data)</script>"""
CLOCK = "<title>Clock</title><p id=said></p><script>said.textContent = 'tab ' + new Date().toISOString()</script>"
FRAME = "<script>parent.postMessage(Date.now(), '*')</script>"


@pytest.mark.parametrize("link", ["tab", "apart"])
async def test_in_page_time_every_clock_begins_where_it_is_set_and_the_next_task_is_unaffected(link: str) -> None:
    def pages(request: WireRequest) -> WireAnswer:
        match path_of(request):
            case "/":
                return answer(CLOCKS)
            case "/frame":
                return answer(FRAME)
            case "/worker.js":
                return answer("postMessage(Date.now())", "text/javascript")
        return answer(CLOCK)

    began = datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
    async with browser_pool(browser_settings()) as pool:
        async with pool.browser(POLICY, Answering(pages)) as browser:
            await browser.open("https://shop.example/", "page-time", round(began.timestamp() * 1000))
            page = await browser.observe()
            for who in ("document", "worker", "frame"):
                assert f"{who} 2021-03-04T05:06" in page.snapshot
            await browser.act("browser_click", {"target": ref_of(page.snapshot, f'link "{link}"')})
            assert "tab 2021-03-04T05:06" in (await browser.observe()).snapshot
        async with pool.browser(POLICY, Answering(pages)) as browser:
            await browser.open("https://shop.example/", "page-time")
            page = await browser.observe()
            assert time.strftime("document %Y-%m-%d", time.gmtime()) in page.snapshot


async def test_the_judges_own_requests_are_answered_as_well_also_at_addresses() -> None:
    interceptor = Answering(lambda request: answer(f"to {request.url}", "text/plain"))
    hosts = ("shop.example", "203.0.113.7", "203.0.113.7:8443", "[2001:db8::7]", "[2001:db8::7]:8443")
    policy = NetworkPolicy.for_websites([f"https://{host}/" for host in hosts])
    async with browser_pool(browser_settings()) as pool, pool.browser(policy, interceptor) as browser:
        await browser.open("https://shop.example/", "page-time")
        for url in ("http://shop.example/api", *(f"https://{host}/api" for host in hosts)):
            fetched = await browser.fetch(url, None)
            assert (fetched.status, fetched.body) == (200, f"to {url}")


async def test_only_the_browsers_of_intercepted_tasks_trust_the_guards_key() -> None:
    async with browser_pool(browser_settings()) as pool:
        folders = []
        for interceptor in (None, Answering(answers), Answering(answers)):
            async with pool.browser(POLICY, interceptor) as browser:
                folders.append(browser.folder)
                config = (browser.folder / "server.json").read_text()
                assert ("spki" in config) == (interceptor is not None)
                assert (browser.folder / "authority.pem").exists() == (interceptor is not None)
        assert folders[0] != folders[1] == folders[2]
