"""Ways out of the browser to what it may not reach: each is tried for real and must end at the guard, on record."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.browser.hostile_site import HOME, Handler, Site, hostile_site, tripwire
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import a_guarded_browser, browser_settings
from helpers.episode.live_judge import (
    AssessedRun,
    LiveJudge,
    ParticipantTurn,
    finish,
    participant,
    some_tasks,
    tool_call,
)
from judge.browser import proxying
from judge.browser.pool import BrowserPool
from judge.browser.session import ToolResult
from judge.network import guard

pytestmark = pytest.mark.e2e

SPELLINGS = [
    "127.0.0.1", "localhost", "LOCALHOST", "localhost.", "foo.localhost", "127.1", "127.0.1", "0", "0.0.0.0",
    "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.0.0.2", "%31%32%37.0.0.1", "１２７.0.0.1",
    "127。0。0。1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]",
    "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]",
]  # fmt: skip
ELSEWHERE = """
    http://169.254.169.254/latest/meta-data/ http://[fd00:ec2::254]/ http://metadata.google.internal/
    http://metadata/ http://100.100.100.200/ http://10.0.0.1/ http://172.17.0.1/ http://192.168.0.1/
    http://224.0.0.1/ http://[fe80::1]/ https://10.0.0.1/ https://localhost/
""".split()


def is_flagged(assessed: AssessedRun) -> list[str]:
    """The refused addresses on record; every step that has some is flagged, and so is the task."""
    refused: list[str] = []
    for step in assessed.result()["steps"]:
        assert ("blocked_address" in step["flags"]) == bool(step["refused"])
        refused += step["refused"]
    assert ("blocked_address" in assessed.entry["flags"]) == bool(refused)
    return refused


@contextlib.contextmanager
def names(monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[str]]) -> Iterator[dict[str, int]]:
    """Names that resolve as told, one answer after the other, the last one for ever; counts the look-ups."""
    real, request = socket.getaddrinfo, dict.fromkeys(answers, 0)

    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name in answers:
            address = answers[name][min(request[name], len(answers[name]) - 1)]
            request[name] += 1
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
        return real(host, port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield request


async def test_allowed_sites_open_their_own_places_and_never_a_server_of_the_assessment(
    judge: LiveJudge, secret: Site
) -> None:
    targets: list[str] = []
    snapshots: list[str] = []

    def script(turn: ParticipantTurn) -> str:
        snapshots.append(turn.observation.page.snapshot)
        return tool_call("browser_navigate", url=targets[turn.n]) if turn.n < len(targets) else finish()

    address = f"http://127.0.0.1:{secret.server_port}/"
    asking = f"{HOME}<script>fetch('{address}', {{mode: 'no-cors'}}).catch(() => {{}})</script>"
    with hostile_site({"/": asking}) as site, hostile_site({"/": "<title>Allowed</title>"}) as allowed:
        async with participant(script) as url:
            own = [judge.url, url]
            targets += [allowed.url, address]
            targets += [f"{address}.well-known/agent-card.json" for address in own]
            closed = [*own, "http://169.254.169.254/", "http://metadata.google.internal/"]
            targets += closed[2:]
            tasks = some_tasks(site.url)
            tasks[0]["allowed_sites"] = [f"127.0.0.1:{allowed.server_port}", "metadata.google.internal"]
            assessed = await judge.ask(
                url, tasks, allowed_sites=[address.rstrip("/") for address in closed], max_steps=len(targets) + 1
            )
    assessed.check()
    assert allowed.was_requested("/")
    assert secret.paths == []
    first, second, *others = assessed.result()["steps"]
    assert (first["flags"], second["title"]) == (["blocked_address"], "Allowed")
    # What the website itself asked for.
    assert first["refused"] == [f"127.0.0.1:{secret.server_port}: this machine"]
    assert all("Blocked" in step["title"] for step in others)
    assert "protocolVersion" not in "".join(snapshots)
    refused = is_flagged(assessed)
    assert not any(str(allowed.server_port) in entry for entry in refused)
    for address in targets[1:]:
        parts = urlsplit(address)
        assert any(f"{parts.hostname}:{parts.port or 80}: " in entry for entry in refused), (address, refused)


WAYS = {
    "frame": "const f = document.createElement('iframe'); f.src = url; document.body.append(f);",
    "image": "new Image().src = url;",
    "script": "const s = document.createElement('script'); s.src = url; document.body.append(s);",
    "style": "const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = url; document.head.append(l);",
    "fetch": "fetch(url, {mode: 'no-cors'}).catch(() => {});",
    "keepalive": "fetch(url, {mode: 'no-cors', keepalive: true}).catch(() => {});",
    "beacon": "navigator.sendBeacon(url, 'x');",
    "xhr": "const x = new XMLHttpRequest(); x.open('POST', url); x.send('x');",
    "socket": "new WebSocket(url.replace('http', 'ws'));",
    "events": "new EventSource(url);",
    "worker": "new Worker(URL.createObjectURL(new Blob([`fetch('${url}', {mode: 'no-cors'})`])));",
    "video": "const v = document.createElement('video'); v.src = url; v.load(); document.body.append(v);",
    "object": "const o = document.createElement('object'); o.data = url; document.body.append(o);",
    "prefetch": "const p = document.createElement('link'); p.rel = 'prefetch'; p.href = url; document.head.append(p);",
    "preconnect": "const p = document.createElement('link'); p.rel = 'preconnect'; p.href = url;"
    " document.head.append(p);",
    "speculation": "const r = document.createElement('script'); r.type = 'speculationrules';"
    " r.textContent = JSON.stringify({prefetch: [{urls: [url], eagerness: 'immediate'}]}); document.head.append(r);",
    "form in a frame": "const f = document.createElement('iframe'); f.name = 'f' + Math.random();"
    " document.body.append(f); const form = document.createElement('form'); form.action = url; form.method = 'post';"
    " form.target = f.name; document.body.append(form); form.submit();",
}
FEW = ["127.0.0.1", "localhost", "0", "[::1]", "127.1"]


def page_with_ways(secrets: dict[str, Site]) -> str:
    tries = [
        f"for (const url of {json.dumps([f'http://{host}:{secret.server_port}/secret' for host in FEW])})"
        f" {{ try {{ {WAYS[way]} }} catch (e) {{}} }}"
        for way, secret in secrets.items()
    ]
    # The picture comes last and through the guard as well: when it is answered, the others have been sent.
    return f"{HOME}<script>{' '.join(tries)} setTimeout(() => new Image().src = '/sent', 700);</script>"


@dataclass
class Tries:
    """What a browser behind a guard answered and what was refused to it; `reached` says which ways led to a service.

    `ports` are those of the services, by way.
    """

    visited: dict[str, list[ToolResult]] = field(default_factory=dict)
    from_page: list[str] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    reached: list[str] = field(default_factory=list)
    looked_up: dict[str, int] = field(default_factory=dict)
    rebound: ToolResult | None = None

    def refusals(self, way: str) -> list[str]:
        """What the guard refused to a way to a service, which was not reached."""
        results = [entry for result in self.visited[way] for entry in result.refused]
        assert self.reached == []
        return results


async def wait_until_requested(site: Site, path: str) -> None:
    while not site.was_requested(path):
        await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def tries() -> Tries:
    """One browser tries everything, without an assessment around it."""
    attempts = Tries()

    def to_secret(handler: Handler) -> None:
        handler.redirect(address)

    async def go() -> None:
        async with browser_pool(browser_settings(call_timeout_s=5, navigation_timeout_s=4)) as pool:
            async with a_guarded_browser(pool, site.url) as browser:
                for way, urls in visits.items():
                    attempts.visited[way] = [await browser.act("browser_navigate", {"url": url}) for url in urls]
            async with a_guarded_browser(pool, f"{site.url}ways") as browser:
                await wait_until_requested(site, "/sent")
                attempts.from_page += (await browser.observe()).refused
            attempts.rebound = await rebind(pool)

    answers = {
        "innocent.example": ["127.0.0.1"],
        "meta.example": ["169.254.169.254"],
        # 192.0.2.0/24 is reserved for documentation: allowed to nobody, reachable by nobody.
        "rebind.example": ["192.0.2.1", "127.0.0.1"],
    }
    with contextlib.ExitStack() as stack:
        secret, site = stack.enter_context(tripwire()), stack.enter_context(hostile_site({"/away": to_secret}))
        # A service for each way out of a page: what was refused names its port.
        services = {way: stack.enter_context(tripwire()) for way in WAYS}
        site.pages["/ways"] = page_with_ways(services)
        services["this machine"] = secret
        address = f"http://127.0.0.1:{secret.server_port}/secret"
        visits = {host: [f"http://{host}:{secret.server_port}/secret"] for host in SPELLINGS}
        visits |= {url: [url] for url in ELSEWHERE}
        visits |= {"another port": [address], "a redirect": [f"{site.url}away"]}
        visits["names"] = [f"http://innocent.example:{secret.server_port}/secret", "http://meta.example/latest"]
        visits["a name that changes its meaning"] = [f"http://rebind.example:{secret.server_port}/secret"] * 3
        with contextlib.suppress(OSError):
            services["IPv6"] = stack.enter_context(tripwire("::1"))
            visits["IPv6"] = [f"http://[::1]:{services['IPv6'].server_port}/secret"]
        attempts.looked_up = stack.enter_context(names(stack.enter_context(pytest.MonkeyPatch.context()), answers))
        asyncio.run(go())
        attempts.ports = {way: service.server_port for way, service in services.items()}
        attempts.reached = [way for way, service in services.items() if service.paths]
    return attempts


async def rebind(pool: BrowserPool) -> ToolResult:
    """A visit to the task's own name after it has changed its meaning."""
    answers = {"own.example": ["127.0.0.1"]}
    with (
        hostile_site() as site,
        pytest.MonkeyPatch.context() as monkeypatch,
        names(monkeypatch, answers),
        # Two servers on one port: the site at an address that counts as public here, the other at one of this machine.
        socket.create_server(("127.0.0.2", site.server_port)) as secret,
    ):
        monkeypatch.setattr(guard, "refuse_ip", lambda address: None if address == "127.0.0.1" else "this machine")
        secret.setblocking(False)
        website = f"http://own.example:{site.server_port}/"
        async with a_guarded_browser(pool, website) as browser:
            assert site.was_requested("/")
            answers["own.example"] = ["127.0.0.2"]
            result = await browser.act("browser_navigate", {"url": f"{website}secret"})
        with pytest.raises(BlockingIOError):
            secret.accept()
    return result


def test_no_spelling_of_this_machine_is_reached_by_going_there(tries: Tries) -> None:
    assert tries.reached == []
    answers = [tries.visited[host][0] for host in SPELLINGS]
    refused = sum(bool(answer.refused) for answer in answers)
    assert not any(answer.ok for answer in answers if not answer.refused)
    assert refused >= len(SPELLINGS) - 3


@pytest.mark.parametrize("url", ELSEWHERE)
def test_private_link_local_and_metadata_addresses_are_refused(tries: Tries, url: str) -> None:
    assert any(str(urlsplit(url).hostname) in entry for entry in tries.refusals(url))


@pytest.mark.parametrize("way", ["another port", "a redirect"])
def test_another_service_of_this_machine_is_out_of_reach(tries: Tries, way: str) -> None:
    place = f"127.0.0.1:{tries.ports['this machine']}"
    assert tries.refusals(way) == [f"{place}: this machine"]


def test_this_machine_is_out_of_reach_over_ipv6(tries: Tries) -> None:
    if "IPv6" not in tries.visited:
        pytest.skip("this machine has no IPv6")
    assert tries.refusals("IPv6")


def test_a_name_that_resolves_to_this_machine_is_refused(tries: Tries) -> None:
    place = f"innocent.example:{tries.ports['this machine']}"
    expected = [f"{place}: this machine", "meta.example:80: a link-local address"]
    # The browser with a window asks for some of them twice.
    assert list(dict.fromkeys(tries.refusals("names"))) == expected


def test_a_name_that_changes_its_meaning_is_judged_anew_each_time(tries: Tries) -> None:
    assert len(tries.refusals("a name that changes its meaning")) >= 2
    assert tries.looked_up["rebind.example"] >= 2


@pytest.mark.parametrize("way", WAYS)
def test_no_way_out_of_a_page_reaches_this_machine(tries: Tries, way: str) -> None:
    refused = [entry for entry in tries.from_page if f":{tries.ports[way]}: " in entry]
    assert way not in tries.reached
    # A preconnect of plain http opens a connection to the proxy and asks it for nothing.
    assert refused or way in ("preconnect", "speculation")


def test_the_tasks_own_name_cannot_turn_private_under_its_page(tries: Tries) -> None:
    assert tries.rebound is not None
    (refused,) = set(tries.rebound.refused)
    assert refused.endswith(": this machine, under a name that was public before")


DATAGRAMS = """<title>Datagrams</title><h1>Datagrams</h1><script>
(async () => {
  for (const [host, port] of Object.entries(%s)) {
    const servers = [{urls: `stun:${host}:${port}`},
      {urls: `turn:${host}:${port}`, username: 'a', credential: 'b'},
      {urls: `turn:${host}:${port}?transport=tcp`, username: 'a', credential: 'b'}];
    const peer = new RTCPeerConnection({iceServers: servers});
    peer.createDataChannel('x');
    await peer.setLocalDescription(await peer.createOffer());
    const sdp = peer.localDescription.sdp.replace(/a=setup:actpass/g, 'a=setup:active')
      .replace(/a=ice-ufrag:.*/g, 'a=ice-ufrag:abcd').replace(/a=ice-pwd:.*/g, 'a=ice-pwd:abcdefghijklmnopqrstuvwx');
    await peer.setRemoteDescription({type: 'answer', sdp}).catch(() => {});
    const candidate = `candidate:1 1 UDP 2122252543 ${host} ${port} typ host`;
    await peer.addIceCandidate({candidate, sdpMid: '0'}).catch(() => {});
    try {
      const hash = {algorithm: 'sha-256', value: new Uint8Array(32)};
      const transport = new WebTransport(`https://${host}:${port}/x`, {serverCertificateHashes: [hash]});
      transport.closed.catch(() => {}); transport.ready.catch(() => {});
    } catch (error) {}
  }
  setTimeout(() => new Image().src = '/sent', 500);
})();
</script>"""


@contextlib.contextmanager
def datagram_ears() -> Iterator[list[socket.socket]]:
    """UDP sockets on loopback and, where there is one, on this machine's own address."""
    with contextlib.ExitStack() as stack:
        addresses = ["127.0.0.1"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
            addresses.append(probe.getsockname()[0])
        ears = []
        for address in dict.fromkeys(addresses):
            ear = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            ear.bind((address, 0))
            ear.setblocking(False)
            ears.append(ear)
        yield ears


def datagrams_received(ears: list[socket.socket]) -> int:
    count = 0
    for ear in ears:
        with contextlib.suppress(BlockingIOError):
            while ear.recv(65_536):
                count += 1
    return count


NAMES = """<link rel="dns-prefetch" href="//prefetch.leak.example">
    <link rel="preconnect" href="https://preconnect.leak.example"><img src="http://image.leak.example/">
    <script>try { new RTCPeerConnection({iceServers: [{urls: 'stun:stun.leak.example:3478'}]}); } catch (e) {}
    </script>"""


async def datagrams(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """How many datagrams a page sends from a browser with these arguments, and what the guard refused to it."""
    monkeypatch.setattr(proxying, "_PROXY_ONLY", arguments)
    with datagram_ears() as ears:
        ports = {ear.getsockname()[0]: ear.getsockname()[1] for ear in ears}
        with hostile_site({"/": DATAGRAMS % json.dumps(ports) + NAMES}) as site:
            async with (
                browser_pool(browser_settings()) as pool,
                a_guarded_browser(pool, site.url, "real-time") as browser,
            ):
                await wait_until_requested(site, "/sent")
                refused = (await browser.observe()).refused
        return datagrams_received(ears), refused


async def test_the_browser_neither_sends_a_datagram_nor_looks_a_name_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "net.json"
    count, refused = await datagrams(monkeypatch, (*proxying._PROXY_ONLY, f"--log-net-log={log}"))
    assert count == 0
    assert refused, "what goes by TCP has to end at the guard"
    assert looked_up(log.read_text()) == []


async def test_the_page_would_send_datagrams_without_the_guards_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    count, _ = await datagrams(monkeypatch, ())
    assert count > 0


def looked_up(text: str) -> list[str]:
    """Our host names that the browser gave to a resolver, from its own log (which a kill may have cut short)."""
    try:
        log = json.loads(text)
    except ValueError:
        log = json.loads(text.rstrip().rstrip(",") + "]}")
    types = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    messages = [
        event for event in log["events"] if types[event["type"]].startswith(("HOST_RESOLVER_SYSTEM", "DNS_TRANS"))
    ]
    return [json.dumps(event) for event in messages if "leak.example" in json.dumps(event)]
