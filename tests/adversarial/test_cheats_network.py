"""Ways out of the browser to what it may not reach: each is tried for real and must end at the guard, on record."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.browser.hostile_site import HOME, Site, hostile_site, tripwire
from helpers.episode.live_judge import (
    AssessedRun,
    LiveJudge,
    ParticipantTurn,
    finish,
    participant,
    some_tasks,
    tool_call,
)
from judge.browser import chromium, guard

pytestmark = pytest.mark.e2e

SPELLINGS = [
    "127.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "foo.localhost",
    "127.1",
    "127.0.1",
    "0",
    "0.0.0.0",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.2",
    "%31%32%37.0.0.1",
    "１２７.0.0.1",
    "127。0。0。1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
]
ELSEWHERE = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "http://metadata.google.internal/",
    "http://metadata/",
    "http://100.100.100.200/",
    "http://10.0.0.1/",
    "http://172.17.0.1/",
    "http://192.168.0.1/",
    "http://224.0.0.1/",
    "http://[fe80::1]/",
    "https://10.0.0.1/",
    "https://localhost/",
]


def is_flagged(assessed: AssessedRun) -> list[str]:
    """The refused addresses on record; every step that has some is flagged, and so is the task."""
    refused: list[str] = []
    for step in assessed.result()["steps"]:
        assert ("blocked_address" in step["flags"]) == bool(step["refused"])
        refused += step["refused"]
    assert ("blocked_address" in assessed.entry["flags"]) == bool(refused)
    return refused


async def visits(judge: LiveJudge, urls: list[str]) -> AssessedRun:
    """One episode that goes to every address, whatever it is told."""

    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_navigate", url=urls[turn.n]) if turn.n < len(urls) else finish()

    with hostile_site() as site:
        return await judge.play(script, site.url, max_steps=len(urls) + 1)


async def test_no_spelling_of_this_machine_is_reached_by_going_there(judge: LiveJudge, secret: Site) -> None:
    assessed = await visits(judge, [f"http://{host}:{secret.server_port}/secret" for host in SPELLINGS])
    assert secret.seen == []
    refused = is_flagged(assessed)
    failed = [step for step in assessed.result()["steps"][:-1] if not step["refused"]]
    assert all(not step["outcome"]["ok"] for step in failed), failed
    assert len(refused) >= len(SPELLINGS) - 3


async def test_private_link_local_and_metadata_addresses_are_refused(judge: LiveJudge) -> None:
    refused = is_flagged(await visits(judge, ELSEWHERE))
    for url in ELSEWHERE:
        host = urlsplit(url).hostname
        assert host is not None
        assert any(host in entry for entry in refused), url


async def test_the_judge_and_the_participant_are_out_of_reach(judge: LiveJudge) -> None:
    steps: list[str] = []

    def script(turn: ParticipantTurn) -> str:
        targets = [f"{judge.url}.well-known/agent-card.json", f"{url}.well-known/agent-card.json", judge.model.url]
        steps.append(turn.observation.page.snapshot)
        return tool_call("browser_navigate", url=targets[turn.n]) if turn.n < len(targets) else finish()

    with hostile_site() as site:
        async with participant(script) as url:
            assessed = await judge.ask(url, some_tasks(site.url))
    assessed.check()
    assert len(is_flagged(assessed)) >= 3
    assert all("Blocked" in step["title"] or step["index"] == 0 for step in assessed.result()["steps"])
    assert "protocolVersion" not in "".join(steps)


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
WAYS_IN_A_PAGE = 4
FEW = ["127.0.0.1", "localhost", "0", "[::1]", "127.1"]


async def test_no_way_out_of_a_page_reaches_this_machine(judge: LiveJudge) -> None:
    with contextlib.ExitStack() as stack:
        # A secret for each way: what was refused names its port.
        secrets = {way: stack.enter_context(tripwire()) for way in WAYS}
        pages = [list(WAYS)[place : place + WAYS_IN_A_PAGE] for place in range(0, len(WAYS), WAYS_IN_A_PAGE)]
        bodies = {f"/{number}": page_with(ways, secrets, f"/sent{number}") for number, ways in enumerate(pages)}

        async def script(turn: ParticipantTurn) -> str:
            while turn.n and not site.asked(f"/sent{turn.n - 1}"):
                await asyncio.sleep(0.02)
            if turn.n < len(pages):
                return tool_call("browser_navigate", url=f"{site.url}{turn.n}")
            return tool_call("browser_press_key", key="Tab") if turn.n == len(pages) else finish()

        site = stack.enter_context(hostile_site(dict(bodies)))
        assessed = await judge.play(script, site.url, max_steps=len(pages) + 2)
    refused = is_flagged(assessed)
    for way, secret in secrets.items():
        assert secret.seen == [], way
        is_refused = any(f":{secret.server_port}: " in entry for entry in refused)
        # A preconnect of plain http opens a connection to the proxy and asks it for nothing.
        assert is_refused or way in ("preconnect", "speculation"), way


def page_with(ways: list[str], secrets: dict[str, Site], sent: str) -> str:
    tries = [
        f"for (const url of {json.dumps([f'http://{host}:{secrets[way].server_port}/secret' for host in FEW])})"
        f" {{ try {{ {WAYS[way]} }} catch (e) {{}} }}"
        for way in ways
    ]
    # The picture comes last and through the guard as well: when it is answered, the others have been sent.
    return f"{HOME}<script>{' '.join(tries)} setTimeout(() => new Image().src = '{sent}', 700);</script>"


async def test_a_redirect_to_this_machine_is_refused(judge: LiveJudge, secret: Site) -> None:
    def to_secret(handler: Any) -> None:
        handler.redirect(f"http://127.0.0.1:{secret.server_port}/secret")

    with hostile_site({"/away": to_secret}) as site:

        def script(turn: ParticipantTurn) -> str:
            return tool_call("browser_navigate", url=f"{site.url}away") if turn.n == 0 else finish()

        assessed = await judge.play(script, site.url)
    assert secret.seen == []
    assert is_flagged(assessed) == [f"127.0.0.1:{secret.server_port}: this machine"]


@contextlib.contextmanager
def names(monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[str]]) -> Iterator[dict[str, int]]:
    """Names that resolve as told, one answer after the other, the last one for ever; counts the look-ups."""
    real, asked = socket.getaddrinfo, dict.fromkeys(answers, 0)

    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name in answers:
            address = answers[name][min(asked[name], len(answers[name]) - 1)]
            asked[name] += 1
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
        return real(host, port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield asked


async def test_a_name_that_resolves_to_this_machine_is_refused(
    judge: LiveJudge, secret: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with names(monkeypatch, {"innocent.example": ["127.0.0.1"], "meta.example": ["169.254.169.254"]}):
        port = secret.server_port
        assessed = await visits(judge, [f"http://innocent.example:{port}/secret", "http://meta.example/latest"])
    assert secret.seen == []
    assert is_flagged(assessed) == [f"innocent.example:{port}: this machine", "meta.example:80: a link-local address"]


async def test_a_name_that_changes_its_meaning_is_judged_anew_each_time(
    judge: LiveJudge, secret: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 192.0.2.0/24 is reserved for documentation: allowed to nobody, reachable by nobody.
    with names(monkeypatch, {"rebind.example": ["192.0.2.1", "127.0.0.1"]}) as asked:
        url = f"http://rebind.example:{secret.server_port}/secret"
        assessed = await visits(judge, [url, url, url])
    assert asked["rebind.example"] >= 2
    assert secret.seen == []
    assert len(is_flagged(assessed)) >= 2


async def test_the_tasks_own_name_cannot_turn_private_under_its_page(
    judge: LiveJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two servers on one port: the site at an address that counts as public here, the other at one of this machine.
    monkeypatch.setattr(guard, "refuse_ip", lambda address: None if address == "127.0.0.1" else "this machine")
    answers = {"own.example": ["127.0.0.1"]}

    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            answers["own.example"] = ["127.0.0.2"]
            return tool_call("browser_navigate", url=f"http://own.example:{site.server_port}/secret")
        return finish()

    with (
        hostile_site() as site,
        names(monkeypatch, answers),
        socket.create_server(("127.0.0.2", site.server_port)) as secret,
    ):
        secret.setblocking(False)
        assessed = await judge.play(script, f"http://own.example:{site.server_port}/")
        with pytest.raises(BlockingIOError):
            secret.accept()
    assert site.asked("/")
    place = f"own.example:{site.server_port}"
    assert f"{place}: this machine, under a name that was public before" in is_flagged(assessed)


async def test_another_port_of_the_tasks_own_host_is_refused(judge: LiveJudge, secret: Site) -> None:
    assessed = await visits(judge, [f"http://127.0.0.1:{secret.server_port}/"])
    assert secret.seen == []
    assert is_flagged(assessed)


async def test_allowed_sites_open_their_own_places_and_never_a_server_of_the_assessment(
    judge: LiveJudge, secret: Site
) -> None:
    targets: list[str] = []

    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_navigate", url=targets[turn.n]) if turn.n < len(targets) else finish()

    with hostile_site() as site, hostile_site({"/": "<title>Allowed</title><h1>Allowed</h1>"}) as allowed:
        async with participant(script) as url:
            closed = [judge.url, url, "http://169.254.169.254/", "http://metadata.google.internal/"]
            targets += [allowed.url, f"http://127.0.0.1:{secret.server_port}/", *closed]
            tasks = some_tasks(site.url)
            tasks[0]["allowed_sites"] = [f"127.0.0.1:{allowed.server_port}", "metadata.google.internal"]
            assessed = await judge.ask(
                url, tasks, allowed_sites=[address.rstrip("/") for address in closed], max_steps=len(targets) + 1
            )
    assessed.check()
    assert allowed.asked("/")
    assert secret.seen == []
    first, second = assessed.result()["steps"][:2]
    assert (first["flags"], second["title"]) == ([], "Allowed")
    refused = is_flagged(assessed)
    assert not any(str(allowed.server_port) in entry for entry in refused)
    for address in targets[1:]:
        parts = urlsplit(address)
        assert any(f"{parts.hostname}:{parts.port or 80}: " in entry for entry in refused), (address, refused)


async def test_this_machine_is_out_of_reach_over_ipv6(judge: LiveJudge) -> None:
    try:
        listening = tripwire("::1")
        with listening as secret:
            assessed = await visits(judge, [f"http://[::1]:{secret.server_port}/secret"])
            assert secret.seen == []
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert is_flagged(assessed)


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
  setTimeout(() => new Image().src = '/sent', 1500);
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


def heard(ears: list[socket.socket]) -> int:
    count = 0
    for ear in ears:
        with contextlib.suppress(BlockingIOError):
            while ear.recv(65_536):
                count += 1
    return count


async def datagrams(judge: LiveJudge) -> tuple[int, AssessedRun]:
    with datagram_ears() as ears:
        ports = {ear.getsockname()[0]: ear.getsockname()[1] for ear in ears}

        async def script(turn: ParticipantTurn) -> str:
            while not site.asked("/sent"):
                await asyncio.sleep(0.02)
            return finish()

        with hostile_site({"/": DATAGRAMS % json.dumps(ports)}) as site:
            assessed = await judge.play(script, site.url)
        return heard(ears), assessed


async def test_neither_webrtc_nor_webtransport_sends_a_datagram(judge: LiveJudge) -> None:
    count, assessed = await datagrams(judge)
    assert count == 0
    assert is_flagged(assessed), "what goes by TCP has to end at the guard"


async def test_the_page_would_send_datagrams_without_the_guards_arguments(
    judge: LiveJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "_PROXY_ONLY", ())
    count, _ = await datagrams(judge)
    assert count > 0


async def test_the_browser_looks_no_name_up_itself(
    judge: LiveJudge, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    log = tmp_path / "net.json"
    monkeypatch.setattr(chromium, "_PROXY_ONLY", (*chromium._PROXY_ONLY, f"--log-net-log={log}"))
    page = """<title>Names</title><link rel="dns-prefetch" href="//prefetch.leak.example">
        <link rel="preconnect" href="https://preconnect.leak.example"><img src="http://image.leak.example/">
        <script>try { new RTCPeerConnection({iceServers: [{urls: 'stun:stun.leak.example:3478'}]}); } catch (e) {}
        setTimeout(() => new Image().src = '/sent', 700)</script>"""

    async def script(turn: ParticipantTurn) -> str:
        while not site.asked("/sent"):
            await asyncio.sleep(0.02)
        return finish()

    with hostile_site({"/": page}) as site:
        await judge.play(script, site.url)
    assert looked_up(log.read_text()) == []


def looked_up(text: str) -> list[str]:
    """Names of ours that the browser gave to a resolver, from its own log (which a kill may have cut short)."""
    try:
        log = json.loads(text)
    except ValueError:
        log = json.loads(text.rstrip().rstrip(",") + "]}")
    types = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    told = [event for event in log["events"] if types[event["type"]].startswith(("HOST_RESOLVER_SYSTEM", "DNS_TRANS"))]
    return [json.dumps(event) for event in told if "leak.example" in json.dumps(event)]
