"""Attempts at the same time on instances of a site with one cart: none sees or reaches the instance of another one."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import Handler, Site, hostile_site
from helpers.cases import each
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, participant, ref, tool_call
from helpers.network.served_sites import Authority
from helpers.network.web_sockets import echoing
from helpers.ports import free_port
from judge.records.sites import place_of

pytestmark = pytest.mark.e2e
# It tries to reach each of the ports, under several names of this machine: with a request, an image and a socket.
PAGE = """<title>Shop</title><h1>Cart: {count}</h1><form method=post action=/add><button>Add</button></form>
<p id=socket>socket: waiting</p><p id=stream>stream: waiting</p><script>
new WebSocket(`${{location.protocol.replace('http', 'ws')}}//${{location.host}}/socket`).onopen = ({{target}}) => {{
  target.onmessage = ({{data}}) => socket.textContent = `socket: ${{data}}`; target.send('{count}') }}
new EventSource('/stream').onmessage = ({{data}}) => stream.textContent = `stream: ${{data}}`
for (const port of {ports}) {{
  new WebSocket(`${{location.protocol.replace('http', 'ws')}}//127.0.0.1:${{port}}/by-a-page`)
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {{
    fetch(`${{location.protocol}}//${{host}}:${{port}}/by-a-page`, {{mode: 'no-cors', method: 'POST'}}).catch(() => 0)
    new Image().src = `${{location.protocol}}//${{host}}:${{port}}/by-a-page` }} }}
</script>"""
# Nothing matches it, but for its sake the judge ends and reads every connection itself.
READ_ALL: dict[str, Any] = {"hold": [{"url": "/never"}]}
CHECKS: list[dict[str, Any]] = [
    {"kind": "element", "element": 'heading "Cart: 1"'},
    {"kind": "text", "contains": "socket: echo: 1"},
    {"kind": "text", "contains": "stream: 1"},
    {"kind": "fetch", "url": "/cart", "response": {"count": 1}},
    {"kind": "request", "method": "POST", "url": "/add", "status": 302},
]


class Shop:
    """An instance of a shop that has one cart for everybody. `hosts` are those that it was asked for."""

    def __init__(self, site: Site) -> None:
        self.site, self.count, self.adds = site, 0, list[int]()
        self.hosts = set[str]()
        self.ports: list[int] = []
        pages = {"/": self.home, "/add": self.add, "/reset": self.reset, "/cart": self.cart, "/stream": self.stream}
        site.pages |= {**pages, "/socket": echoing}

    @property
    def address(self) -> str:
        return self.site.url.rstrip("/")

    def home(self, handler: Handler) -> None:
        self.hosts.add(handler.headers["Host"])
        handler.send(PAGE.format(count=self.count, ports=self.ports).encode())

    def add(self, handler: Handler) -> None:
        self.count += 1
        # To where the browser says that it is, in full.
        handler.redirect(f"{self.site.scheme}://{handler.headers['Host']}/")

    def reset(self, handler: Handler) -> None:
        self.adds.append(self.count)
        self.count = 0
        handler.send(b"", 204)

    def cart(self, handler: Handler) -> None:
        handler.send(f'{{"count": {self.count}}}'.encode(), Content_Type="application/json")

    def stream(self, handler: Handler) -> None:
        handler.send(f"data: {self.count}\n\n".encode(), Content_Type="text/event-stream")


@contextmanager
def shops(certificate: Path | None) -> Iterator[tuple[Shop, Shop]]:
    """Two instances, which both know the ports of both; with a `certificate`, over TLS."""
    with hostile_site(certificate=certificate) as first, hostile_site(certificate=certificate) as second:
        both_shops = Shop(first), Shop(second)
        for shop in both_shops:
            shop.ports = [place.port for each in both_shops if (place := place_of(each.address))]
        yield both_shops


class InPairs:
    """Adds once and finishes; of two attempts, each waits for the other one before it adds."""

    def __init__(self) -> None:
        self._begun: dict[int, set[int]] = defaultdict(set)
        self._both: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    async def __call__(self, turn: ParticipantTurn) -> str:
        if turn.n:
            return finish()
        pair = turn.episode // 2
        self._begun[pair].add(turn.episode)
        if len(self._begun[pair]) == 2:
            self._both[pair].set()
        await self._both[pair].wait()
        return tool_call("browser_click", ref=ref(turn, 'button "Add"'))


@pytest.mark.parametrize(("scheme", "attempts"), each([("http", 4), ("https", 2)], suite=[("http", 4)]))
async def test_attempts_at_once_have_an_instance_each_and_no_page_reaches_another_one(
    judge: LiveJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, attempts: int
) -> None:
    host, certificate = f"localhost:{free_port()}", None
    if scheme == "https":
        authority, certificate = Authority.made_in(tmp_path), tmp_path / "site.pem"
        certificate.write_bytes(authority.key.read_bytes() + authority.chain.read_bytes())
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    website = f"{scheme}://{host}"
    # The browser trusts the judge's certificates only.
    reads_all = [scheme == "https" or n % 2 == 0 for n in range(attempts)]
    tasks = [
        {"task_id": f"t{n}", "website": f"{website}/", "task": "Add.", "checks": CHECKS, **(READ_ALL if reads else {})}
        for n, reads in enumerate(reads_all)
    ]
    with shops(certificate) as both:
        instances = {website: [shop.address for shop in both]}
        async with participant(InPairs()) as url:
            assessed = await judge.ask(
                url,
                tasks,
                judge_model="offline",
                max_parallel=2,
                site_instances=instances,
                site_resets={website: f"{website}/reset"},
            )
        assessed.check()
        assert [entry["verdict"] for entry in assessed.detail["tasks"]] == ["success"] * attempts, assessed.summary()
        results = [assessed.result(task["task_id"]) for task in tasks]
        assert {result["site_instances"][website] for result in results[:2]} == set(instances[website])
        # Before each attempt an instance had what the attempt before it left there, and no more.
        assert [shop.adds for shop in both] == [[0, 1][: attempts // 2]] * 2
        assert [shop.hosts for shop in both] == [{host}] * 2
        assert not any(path == "/by-a-page" for shop in both for path in shop.site.paths)
    refused = {text for result in results for step in result["steps"] for text in step["refused"]}
    why = "an instance of a site, which is reached at the site's own address only"
    assert refused >= {f"{host}:{port}: {why}" for host in ("127.0.0.1", "localhost") for port in both[0].ports}
