"""The contents of an archive: exchanges, sockets, and the walks they were recorded in. Pure.

A walk has a logical clock that counts events (`began`, `ended`, the ticks of chunks and messages), so that their order
does not depend on the resolution of timestamps.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlsplit

from judge.network.interception import HeaderPairs, SocketClose, WireRequest
from judge.plugins.frozen.encodings import decoded

SOCKET_SCHEMES = frozenset({"ws", "wss"})


@dataclass(frozen=True)
class Chunk:
    """A piece of a streamed answer: its time since the start of the request, and where in the body it ends."""

    at_ms: int
    tick: int
    end: int


@dataclass(frozen=True)
class RecordedSocketMessage:
    """A message of a socket, as `SocketMessage`, with its tick. `step` is `None` if it is the site's, or not known."""

    is_from_page: bool
    is_text: bool
    data: bytes
    at_ms: int
    tick: int
    step: int | None = None


@dataclass(frozen=True)
class RecordedResponse:
    """A recorded answer. `body` is content-encoded as on the wire, and transfer-decoded.

    `is_redacted`: secrets in the body were replaced when it was recorded.
    """

    status: int
    reason: str
    headers: HeaderPairs
    body: bytes
    http_version: str = "1.1"
    is_redacted: bool = False

    @property
    def decoded(self) -> bytes | None:
        """The body without its content encoding; `None` if it cannot be decoded."""
        return decoded(self.body, header(self.headers, "content-encoding"))

    @property
    def readable(self) -> bytes:
        """The body, decoded if possible."""
        body = self.decoded
        return self.body if body is None else body


@dataclass(frozen=True)
class RecordedExchange:
    """A request and its outcome.

    `answer` is `None` if there was none. `failure` is the reason; if it is empty, the page stopped waiting. `is_whole`:
    the answer or socket ended by itself. `chunks` are an event stream's, `messages` a socket's.
    """

    walk: str
    number: int
    request: WireRequest
    at_ms: int
    began: int
    ended: int
    answer: RecordedResponse | None
    failure: str = ""
    is_whole: bool = True
    chunks: tuple[Chunk, ...] = ()
    messages: tuple[RecordedSocketMessage, ...] = ()
    closed: SocketClose | None = None

    @property
    def record_id(self) -> str:
        """Names the exchange in ledgers."""
        return f"{self.walk}/{self.number}"

    @property
    def is_socket(self) -> bool:
        """Whether it is a web socket."""
        return urlsplit(self.request.url).scheme in SOCKET_SCHEMES

    @property
    def path(self) -> str:
        """The path of the address."""
        return urlsplit(self.request.url).path or "/"

    @cached_property
    def host(self) -> str:
        """Host and port, which sockets share with pages."""
        return urlsplit(self.request.url).netloc.lower()


@dataclass(frozen=True)
class Walk:
    """One recorded attempt. `task_id` is the task that it played, if any; `start_ms` is its first moment.

    `passed` is whether the task's checks passed at recording; `None` if undecided. `repeats` names the walk whose
    actions this one repeated one for one, on the site in the same initial state.
    """

    name: str
    start_ms: int
    task_id: str | None = None
    is_reference: bool = False
    passed: bool | None = None
    repeats: str | None = None


@dataclass(frozen=True)
class SiteRecording:
    """Everything recorded, by walk and in order of `began`."""

    walks: tuple[Walk, ...]
    exchanges: tuple[RecordedExchange, ...]

    @property
    def clock_ms(self) -> int:
        """The start of the pages' clock."""
        return min((walk.start_ms for walk in self.walks), default=0)

    @property
    def origins(self) -> frozenset[str]:
        """The origins with recorded requests, not counting sockets."""
        addresses = (urlsplit(exchange.request.url) for exchange in self.exchanges if not exchange.is_socket)
        return frozenset(f"{parts.scheme}://{parts.netloc}" for parts in addresses)


def header(headers: HeaderPairs, name: str) -> str:
    """All values of a header, or an empty text."""
    return ", ".join(value for each, value in headers if each.lower() == name)


def without_headers(headers: HeaderPairs, *names: str) -> HeaderPairs:
    """The headers without these names, in lower case."""
    return tuple((name, value) for name, value in headers if name.lower() not in names)


def renamed(exchange: RecordedExchange, walk: str) -> RecordedExchange:
    """A copy of the exchange that belongs to another walk."""
    return replace(exchange, walk=walk)
