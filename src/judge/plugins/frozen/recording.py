"""Records the traffic between a browser and the sites: an interceptor that forwards everything and keeps a copy."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from judge.network.interception import (
    PageSocket,
    RequestFailed,
    SiteSocket,
    SocketClose,
    SocketMessage,
    Upstream,
    WireAnswer,
    WireRequest,
)
from judge.network.upstream import pass_on_socket
from judge.plugins.frozen.exchanges import (
    Chunk,
    RecordedExchange,
    RecordedResponse,
    RecordedSocketMessage,
    SiteRecording,
    Walk,
    header,
)
from judge.plugins.frozen.secrets import Secrets

MAX_BODY_BYTES = 100_000_000
_STREAMS = ("text/event-stream", "application/x-ndjson", "multipart/x-mixed-replace")
# An answer that arrives over a longer time than this is a stream, regardless of its type.
_LASTING_MS = 1_000
# Their answers have no body.
_WITHOUT_BODY = frozenset({204, 205, 304})
# Of the encodings that browsers accept, those that `encodings.py` decodes, and the words for none and any.
_DECODED = frozenset({"gzip", "x-gzip", "deflate", "identity", "*"})
_ENDED_EARLY = "the connection ended without an answer"


@dataclass
class _Entry:
    """An exchange in progress."""

    number: int
    request: WireRequest
    at_ms: int
    began: int
    started_s: float
    answer: WireAnswer | None = None
    failure: str = ""
    ended: int | None = None
    body: bytearray = field(default_factory=bytearray)
    chunks: list[Chunk] = field(default_factory=list)
    messages: list[RecordedSocketMessage] = field(default_factory=list)
    closed: SocketClose | None = None
    is_whole: bool = False
    # The page stopped waiting for an answer.
    is_given_up: bool = False

    def since_ms(self) -> int:
        return round((time.monotonic() - self.started_s) * 1000)


class RecordingInterceptor:
    """Records one walk. `secrets` are values never stored."""

    reaches_out = True

    def __init__(
        self,
        walk: str,
        secrets: Sequence[str] = (),
        *,
        task_id: str | None = None,
        is_reference: bool = False,
        repeats: str | None = None,
    ) -> None:
        self._walk = Walk(walk, _now_ms(), task_id, is_reference, repeats=repeats)
        self._secrets = Secrets(secrets)
        self._entries: list[_Entry] = []
        self._tick = 0

    @property
    def walk(self) -> Walk:
        """The recorded walk."""
        return self._walk

    @property
    def exchanges(self) -> tuple[RecordedExchange, ...]:
        """Everything so far, without secrets. Exchanges in progress are marked as incomplete."""
        return tuple(self._secrets.exchange(self._exchange(entry)) for entry in self._entries)

    def recording(self) -> SiteRecording:
        """This walk as a separate recording."""
        return SiteRecording((self._walk,), self.exchanges)

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `judge.network.interception.Interceptor`."""
        entry = self._begin(request)
        try:
            answer = await _reachable(upstream).fetch(_in_known_encodings(request))
        except RequestFailed as failure:
            self._end(entry, str(failure) or _ENDED_EARLY)
            raise
        except asyncio.CancelledError:
            entry.is_given_up = True
            self._end(entry)
            raise
        entry.answer = answer
        if request.method == "HEAD" or answer.status in _WITHOUT_BODY:
            # The browser stopped reading.
            answer = replace(answer, body=b"")
        if isinstance(answer.body, bytes):
            entry.body += answer.body
            entry.is_whole = True
            self._end(entry)
            return answer
        body = self._record_body(entry, answer.body)
        return WireAnswer(answer.status, answer.reason, answer.headers, body, answer.http_version)

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `judge.network.interception.Interceptor`."""
        entry = self._begin(request)

        def record_message(message: SocketMessage | SocketClose) -> None:
            tick = self._next()
            if isinstance(message, SocketMessage):
                step = message.step if message.is_from_page else None
                entry.messages.append(
                    RecordedSocketMessage(
                        message.is_from_page, message.is_text, message.data, max(0, message.at_ms), tick, step
                    )
                )
            elif entry.closed is None:
                entry.closed, entry.ended = message, tick
                entry.is_whole = True

        try:
            entry.answer = await pass_on_socket(request, page, _Noting(_reachable(upstream), entry), record_message)
            if isinstance(entry.answer.body, bytes):
                entry.body += entry.answer.body
        except RequestFailed as failure:
            entry.failure = str(failure) or _ENDED_EARLY
            raise
        finally:
            self._end(entry, entry.failure)

    async def _record_body(self, entry: _Entry, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for piece in body:
                if len(entry.body) + len(piece) > MAX_BODY_BYTES:
                    raise RequestFailed("the answer is too large to be recorded")
                entry.body += piece
                entry.chunks.append(Chunk(entry.since_ms(), self._next(), len(entry.body)))
                yield piece
            entry.is_whole = True
        except RequestFailed as failure:
            entry.failure = str(failure)
            raise
        finally:
            self._end(entry, entry.failure)

    def _begin(self, request: WireRequest) -> _Entry:
        entry = _Entry(len(self._entries), request, _now_ms(), self._next(), time.monotonic())
        self._entries.append(entry)
        return entry

    def _end(self, entry: _Entry, failure: str = "") -> None:
        entry.failure = failure
        entry.ended = entry.ended or self._next()

    def _next(self) -> int:
        self._tick += 1
        return self._tick

    def _exchange(self, entry: _Entry) -> RecordedExchange:
        answer = entry.answer
        is_socket = entry.request.url.startswith("ws")
        if is_socket and answer is None and not entry.failure:
            # It is still open, so its handshake succeeded.
            answer = WireAnswer(101, "Switching Protocols")
        is_given_up = answer is None and (entry.is_given_up or entry.ended is None)
        return RecordedExchange(
            walk=self._walk.name,
            number=entry.number,
            request=entry.request,
            at_ms=entry.at_ms,
            began=entry.began,
            ended=entry.ended if entry.ended is not None else self._tick + 1,
            answer=None if answer is None else _stored(answer, bytes(entry.body)),
            failure=entry.failure or ("" if answer or is_given_up else _ENDED_EARLY),
            is_whole=entry.is_whole or (answer is None and not is_given_up),
            chunks=tuple(entry.chunks) if _lasts(entry) else (),
            messages=tuple(entry.messages),
            closed=entry.closed,
        )


class _Noting:
    """Forwards to the network, and notes the answer to a handshake while the socket is still open."""

    def __init__(self, upstream: Upstream, entry: _Entry) -> None:
        self._upstream, self._entry = upstream, entry

    async def fetch(self, request: WireRequest) -> WireAnswer:
        return await self._upstream.fetch(request)

    async def socket(self, request: WireRequest) -> SiteSocket:
        site = await self._upstream.socket(request)
        if site.answer.status == 101:
            self._entry.answer = site.answer
        return site


def _in_known_encodings(request: WireRequest) -> WireRequest:
    """The request, accepting only encodings that can be decoded: otherwise neither secrets nor times would be found."""
    headers = tuple(
        (name, _known_encodings(value) if name.lower() == "accept-encoding" else value)
        for name, value in request.headers
    )
    return replace(request, headers=headers)


def _known_encodings(accepted: str) -> str:
    offered = (each.strip() for each in accepted.split(","))
    known = [each for each in offered if each.partition(";")[0].strip().lower() in _DECODED]
    return ", ".join(known) or "identity"


def _stored(answer: WireAnswer, body: bytes) -> RecordedResponse:
    return RecordedResponse(answer.status, answer.reason, answer.headers, body, answer.http_version)


def _lasts(entry: _Entry) -> bool:
    """Whether the times of an answer's pieces matter."""
    if entry.answer is None or not entry.chunks:
        return False
    if header(entry.answer.headers, "content-type").lower().startswith(_STREAMS):
        return True
    has_length = bool(header(entry.answer.headers, "content-length"))
    return not has_length and entry.chunks[-1].at_ms - entry.chunks[0].at_ms > _LASTING_MS


def _reachable(upstream: Upstream | None) -> Upstream:
    if upstream is None:
        raise RequestFailed("nothing can be recorded without the network")
    return upstream


def _now_ms() -> int:
    return round(time.time() * 1000)
