"""Interceptors: one that only passes on, and one that answers everything by itself."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from judge.network.interception import (
    HeaderPairs,
    PageSocket,
    RequestFailed,
    SocketClose,
    SocketMessage,
    Upstream,
    WireAnswer,
    WireRequest,
)
from judge.network.upstream import pass_on_socket


@dataclass
class PassingOn:
    """Passes on every request and socket, and remembers them."""

    requests: list[WireRequest] = field(default_factory=list)
    messages: list[SocketMessage | SocketClose] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    reaches_out: bool = True

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `judge.network.interception.Interceptor`."""
        self.requests.append(request)
        assert upstream
        try:
            return await upstream.fetch(request)
        except RequestFailed as failure:
            self.failures.append(str(failure))
            raise

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `judge.network.interception.Interceptor`."""
        self.requests.append(request)
        assert upstream
        await pass_on_socket(request, page, upstream, self.messages.append)


Answers = Callable[[WireRequest], WireAnswer]


@dataclass
class Answering:
    """Answers by itself: requests with `answers`, and each message of a socket with the same text in capitals."""

    answers: Answers
    requests: list[WireRequest] = field(default_factory=list)
    upstreams: list[Upstream | None] = field(default_factory=list)
    closed: list[SocketClose] = field(default_factory=list)
    reaches_out: bool = False

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `judge.network.interception.Interceptor`."""
        self.requests.append(request)
        self.upstreams.append(upstream)
        return self.answers(request)

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `judge.network.interception.Interceptor`."""
        self.requests.append(request)
        self.upstreams.append(upstream)
        await page.accept()
        while isinstance(message := await page.receive(), SocketMessage):
            await page.send(SocketMessage(is_from_page=False, is_text=message.is_text, data=message.data.upper()))
        self.closed.append(message)


def answer(body: str | bytes | AsyncIterator[bytes], kind: str = "text/html", *more: tuple[str, str]) -> WireAnswer:
    """An answer 200."""
    headers: HeaderPairs = (("Content-Type", kind), *more)
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, bytes):
        headers = (*headers, ("Content-Length", str(len(body))))
    return WireAnswer(200, "OK", headers, body)
