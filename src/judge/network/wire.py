"""The guard's record of an attempt's requests: every request that it read, and every connection that it could not.

Bounded: the task's sites have a share of their own, as have held requests and resources such as images. When a
share is full, the first and the last request for each method and path are still kept, and the others are counted.
"""

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from judge.network.interception import HeaderPairs, SocketMessage, WireAnswer, WireRequest
from judge.network.parts import Parts
from judge.records.holds import READING
from judge.records.sites import Site
from judge.trajectory.forms import is_multipart
from judge.trajectory.network import RESOURCES, LeftOut, Unread, as_http

# A header of the judge's requests, which are not the attempt's. Where the guard ends TLS, it takes it away again.
MARK = "x-wabe-own"
# Where the judge's browser tells the guard how far the page's time is ahead of this machine's, in milliseconds.
CLOCK = "http://clock.wabe.invalid/"
ShareName = Literal["own", "other", "held", "resources"]
MAX_BODY_BYTES = 262_144
MAX_URL_CHARS = 8_000
_MAX_KEY_CHARS = 600
_MAX_KNOWN_CHARS = 300
_MAX_UNREAD = 1_000
_MAX_MESSAGE_BYTES = 500_000


class Limits(NamedTuple):
    """Of a share. Bodies are left out first, then headers, then requests, but for those in `paths`."""

    entries: int
    bytes: int
    bytes_with_headers: int
    bytes_with_bodies: int
    body_bytes: int = MAX_BODY_BYTES
    paths: int = 0
    late_bytes: int = 0


OWN = Limits(7_500, 15_000_000, 12_500_000, 10_000_000, paths=800, late_bytes=3_000_000)
OTHER = Limits(2_500, 7_500_000, 6_250_000, 5_000_000, paths=400, late_bytes=1_500_000)
_LIMITS_WHILE_HOLDING = Limits(2_000, 30_000_000, 20_000_000, 12_000_000, body_bytes=4_000_000)
_RESOURCES = Limits(2_500, 2_500_000, 0, 0, body_bytes=0, paths=400, late_bytes=500_000)
_ASKS = "access-control-request-method"
# The browser's words for what `Sec-Fetch-Dest` calls otherwise.
_KINDS = MappingProxyType(
    {
        "empty": "fetch",
        "style": "stylesheet",
        "audio": "media",
        "video": "media",
        "track": "texttrack",
        **dict.fromkeys(("audioworklet", "paintworklet", "sharedworker", "serviceworker", "worker"), "script"),
    }
)


@dataclass
class Exchange:
    """A request as the guard read it, with the head of its answer.

    `began_ms` and `answered_ms` are in milliseconds since 1970. `headers` and `body` are `None` if they were left out;
    `size` and `digest` are the whole body's. `answer` is `None` until there is one, `failure` says why there
    will not be. `parts` are the files in a multipart form. Of a socket, `messages` are its first text messages, each
    with the step in which it was sent.
    """

    number: int
    connection: int
    began_ms: int
    step: int
    method: str
    url: str
    headers: HeaderPairs | None
    body: bytes | None
    size: int
    hashed: "hashlib._Hash" = field(repr=False)
    kind: str
    browser_facts: dict[str, str] = field(default_factory=dict)
    answer: WireAnswer | None = None
    answered_ms: int | None = None
    failure: str | None = None
    parts: Parts | None = None
    messages: list[tuple[SocketMessage, int]] = field(default_factory=list)
    messages_lost: int = 0

    @property
    def digest(self) -> str | None:
        """The whole body's, if there is one."""
        return self.hashed.hexdigest() if self.size else None

    def add(self, data: bytes) -> None:
        """Record more of a body forwarded as it comes."""
        self.size += len(data)
        if self.parts:
            self.parts.add(data)
        self.hashed.update(data)
        if self.body is not None:
            self.body = self.body + data if self.size <= MAX_BODY_BYTES else None

    @property
    def is_held(self) -> bool:
        """Whether it never left this machine."""
        return self.answer is not None and self.answer.is_held

    @property
    def may_be_resource(self) -> bool:
        """Whether it is, or may be, for a resource: browsers say so to secure sites and this machine only."""
        return self.kind in RESOURCES or (self.kind == "other" and self.method in READING)

    @property
    def path(self) -> str:
        """Its address without the query."""
        return self.url.partition("?")[0]

    @property
    def memory_bytes(self) -> int:
        """About what it takes in memory."""
        headers = sum(len(name) + len(value) for name, value in self.headers or ())
        files = 1_000 * len(self.parts.files) if self.parts else 0
        return len(self.url) + headers + len(self.body or b"") + files + 300


@dataclass
class _Path:
    first: Exchange | None = None
    last: Exchange | None = None
    left_out: int = 0


class _Share:
    def __init__(self, limits: Limits, *, is_own: bool) -> None:
        self._limits = limits
        self._is_own = is_own
        self._exchanges: list[Exchange] = []
        self._bytes = 0
        self._body_bytes = 0
        self._late_bytes = 0
        self._paths: dict[tuple[str, str], _Path] = {}
        self._unnamed = 0

    def add(self, exchange: Exchange) -> None:
        limits, key = self._limits, (exchange.method, exchange.path)
        path = self._paths.get(key)
        is_new = path is None
        if path is None and len(self._paths) < limits.paths and sum(map(len, key)) <= _MAX_KEY_CHARS:
            path = self._paths[key] = _Path()
        if len(self._exchanges) < limits.entries and self._bytes < limits.bytes:
            self._trim(exchange)
            self._bytes += exchange.memory_bytes
            self._body_bytes += len(exchange.body or b"")
            self._exchanges.append(exchange)
            return
        if path is None or self._late_bytes >= limits.late_bytes:
            self._unnamed += 1
            return
        exchange.headers, exchange.body = None, None if exchange.size else b""
        self._late_bytes += exchange.memory_bytes
        if is_new:
            path.first = exchange
            return
        if path.last is not None:
            path.left_out += 1
            self._late_bytes -= path.last.memory_bytes
        path.last = exchange

    def _trim(self, exchange: Exchange) -> None:
        limits = self._limits
        if exchange.size > limits.body_bytes or self._body_bytes + exchange.size > limits.bytes_with_bodies:
            exchange.body = None if exchange.size else b""
        if self._bytes >= limits.bytes_with_headers:
            exchange.headers = None

    def exchanges(self) -> Iterator[Exchange]:
        yield from tuple(self._exchanges)
        for path in tuple(self._paths.values()):
            yield from (each for each in (path.first, path.last) if each)

    def left_out(self) -> Iterator[LeftOut]:
        for (method, url), path in tuple(self._paths.items()):
            if path.left_out:
                yield LeftOut(is_own=self._is_own, method=method, url=url, count=path.left_out)
        if self._unnamed:
            yield LeftOut(is_own=self._is_own, count=self._unnamed)


class ExchangeRecord:
    """The record of one attempt.

    `site` are the task's sites, which decide on shares only. `step` is the number of the step to which requests
    that begin from now on belong. `mark` is the secret value of `MARK`.
    """

    def __init__(self) -> None:
        self.mark = secrets.token_hex(16)
        self.site: Site | None = None
        self.step = 0
        self._count = 0
        self._open: dict[int, Exchange] = {}
        self._shares: dict[ShareName, _Share] = {
            "own": _Share(OWN, is_own=True),
            "other": _Share(OTHER, is_own=False),
            # What a task holds decides its checks, and nobody knows what was lost.
            "held": _Share(_LIMITS_WHILE_HOLDING, is_own=True),
            "resources": _Share(_RESOURCES, is_own=False),
        }
        self._unread: Counter[tuple[str, int]] = Counter()
        self._message_bytes = 0

    def is_marked(self, headers: HeaderPairs) -> bool:
        """Whether these are the headers of a request of the judge's."""
        return any(
            name.lower() == MARK and secrets.compare_digest(value.encode(), self.mark.encode())
            for name, value in headers
        )

    def begin(self, request: WireRequest, connection: int) -> Exchange:
        """Record a request before anything is done with it; `settle` follows."""
        known = _browser_facts(request)
        exchange = Exchange(
            number=self._count,
            connection=connection,
            began_ms=_now_ms(),
            step=request.step,
            method=request.method,
            url=request.url,
            headers=request.headers,
            body=request.body,
            size=len(request.body),
            hashed=hashlib.sha256(request.body),
            kind=_kind(request, known),
            browser_facts=known,
            parts=Parts(known["type"]) if is_multipart(known.get("type", "")) else None,
        )
        if exchange.parts:
            exchange.parts.add(request.body)
        self._count += 1
        self._open[exchange.number] = exchange
        return exchange

    def settle(self, exchange: Exchange | None, answer: WireAnswer | None = None, failure: str | None = None) -> None:
        """Record what became of a request. Does nothing the second time."""
        if exchange is None or self._open.pop(exchange.number, None) is None:
            return
        exchange.answer, exchange.failure = answer, failure
        exchange.answered_ms = _now_ms() if answer else None
        self._shares[self._share_of(exchange)].add(exchange)

    def add_message(self, exchange: Exchange | None, message: SocketMessage) -> None:
        """Record a message of a socket."""
        if exchange is None or not message.is_text:
            return
        self._message_bytes += len(message.data)
        if self._message_bytes > _MAX_MESSAGE_BYTES:
            exchange.messages_lost += 1
        else:
            exchange.messages.append((message, self.step))

    def could_not_read(self, place: str = "") -> None:
        """Record a connection whose content is unknown; `place` is the host and port to which it was to lead."""
        key = place[:300], self.step
        self._unread[key if key in self._unread or len(self._unread) < _MAX_UNREAD else ("", self.step)] += 1

    def exchanges(self) -> list[Exchange]:
        """What was read so far, in order; also those not answered yet."""
        by_number = {each.number: each for share in self._shares.values() for each in share.exchanges()}
        return [each for _, each in sorted((by_number | dict(self._open)).items())]

    def left_out(self, *, with_resources: bool = True) -> tuple[LeftOut, ...]:
        """What did not fit into the shares."""
        shares = [share for name, share in self._shares.items() if with_resources or name != "resources"]
        return tuple(each for share in shares for each in share.left_out())

    def unread(self) -> tuple[Unread, ...]:
        """The connections whose content is unknown."""
        counts = tuple(self._unread.items())
        return tuple(Unread(place=place, step=step, count=count) for (place, step), count in counts)

    def _share_of(self, exchange: Exchange) -> ShareName:
        if exchange.is_held:
            return "held"
        if exchange.may_be_resource:
            return "resources"
        return "own" if self.site and self._is_own(exchange, self.site) else "other"

    def _is_own(self, exchange: Exchange, site: Site) -> bool:
        if not site.holds(as_http(exchange.url)):
            return False
        sender = exchange.browser_facts.get("origin") or exchange.browser_facts.get("referer")
        return site.holds(sender) if sender else exchange.browser_facts.get("site") in ("same-origin", "none")


def _browser_facts(request: WireRequest) -> dict[str, str]:
    """What no page can forge."""
    headers = {name.lower(): value for name, value in request.headers}
    names = {"origin": "origin", "site": "sec-fetch-site", "mode": "sec-fetch-mode", "dest": "sec-fetch-dest"}
    names |= {"referer": "referer", "type": "content-type"}
    return {key: headers[name][:_MAX_KNOWN_CHARS] for key, name in names.items() if headers.get(name)}


def _kind(request: WireRequest, browser_facts: dict[str, str]) -> str:
    """The kind of a request, in the words of the browser's record; sent to secure sites and this machine only."""
    if request.url.startswith("ws"):
        return "websocket"
    if request.method == "OPTIONS" and any(name.lower() == _ASKS for name, _ in request.headers):
        return "preflight"
    if browser_facts.get("mode") == "navigate":
        return "document"
    dest = browser_facts.get("dest", "other")
    return _KINDS.get(dest, dest)


def _now_ms() -> int:
    return round(time.time() * 1000)
