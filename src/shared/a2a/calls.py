"""Shared by every call to a foreign agent: choosing the endpoint, bounding the answer, attributing errors.

Participants are adversaries. An answer is bounded, uncompressed JSON and never redirects; whatever reading it raises
becomes an error that names the cause.
"""

import functools
import re
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import cast

import httpx
from a2a.types import AgentInterface
from a2a.utils.errors import A2AError
from pydantic import SecretStr

from shared.errors import InternalFault, ParticipantError, ParticipantUnreachable, WabeError, is_shortage
from shared.text import excerpt

_MAX_QUOTE_CHARS = 500
# The SDK takes up to 10 µs to decode a JSON value and blocks the event loop meanwhile. Normal replies have a few dozen.
MAX_VALUES = 10_000
# Common servers (uvicorn) close an idle connection after 5 s; no request should meet a closing one.
_KEEP_ALIVE_S = 3.5
_CONNECT_TIMEOUT_S = 10.0
# Some servers send JSON under a generic type.
_JSON_TYPES = ("json", "text/plain", "application/octet-stream")
# Part of the error, because the judge's message shows the error but not the remedy.
_TOO_LARGE = (
    ": it refuses messages of this size; raise the limit of its web framework"
    ' (Express: app.use(express.json({ limit: "20mb" })) before the A2A handler)'
)
# The closing quote is optional: otherwise each quote in a string without end would begin another search to the end.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"{[,"))


def choose_interface(interfaces: Iterable[AgentInterface], dialled: str) -> AgentInterface:
    """The interface to call, on the host that was dialled: JSON-RPC before HTTP+JSON, protocol 1.0 before 0.3.

    Only the path is taken from the card, because many agents publish a host that is right only where they run. An agent
    that publishes another host and another path is behind a gateway: its path is appended to the dialled one.
    """
    offered = list(interfaces)
    for binding in ("JSONRPC", "HTTP+JSON"):
        if matching := [interface for interface in offered if interface.protocol_binding == binding]:
            # False sorts first, and of equals `min` takes the one that the card lists first.
            best = min(matching, key=is_old)
            # The methods used here are the same in 0.2 and 0.3.
            version = "0.3" if is_old(best) else best.protocol_version or "1.0"
            url = _on_dialled_host(best.url, httpx.URL(dialled))
            return AgentInterface(url=url, protocol_binding=binding, protocol_version=version, tenant=best.tenant)
    raise ParticipantError(
        "the agent card offers neither JSON-RPC nor HTTP+JSON", remedy="offer one of them in the agent card"
    )


def is_old(interface: AgentInterface) -> bool:
    """Whether the interface speaks a protocol version before 1.0."""
    return interface.protocol_version.startswith("0.")


def _on_dialled_host(url: str, dialled: httpx.URL) -> str:
    published, base = httpx.URL(url), dialled.path.rstrip("/")
    path = published.raw_path
    if published.netloc != dialled.netloc and not f"{published.path}/".startswith(f"{base}/"):
        if published.path in ("", "/"):
            path = dialled.raw_path
        elif published.netloc:
            path = dialled.raw_path.rstrip(b"/") + path
    return str(dialled.copy_with(raw_path=path or b"/"))


@contextmanager
def blaming_the_agent() -> Iterator[None]:
    """Turn any error raised while calling an agent into a `ParticipantError`.

    The code inside depends only on bytes from the agent, and decoders raise all kinds of errors (protobuf raises
    `SystemError` for a lone surrogate), so no list of exceptions would be complete. If this machine ran out of a
    resource, anywhere in the chain of causes, an `InternalFault` is raised instead. Cancellation and `WabeError`s pass.
    """
    try:
        yield
    except WabeError:
        raise
    except Exception as error:  # noqa: BLE001
        for cause in _chain_of_causes(error):
            if is_shortage(cause):
                raise InternalFault(f"this machine ran out of a resource: {_quoted(cause)}") from None
        raise _participant_error(error) from None


def _chain_of_causes(error: BaseException) -> Iterable[BaseException]:
    # By identity, because causes and contexts may lead to the same error several times.
    found: dict[int, BaseException] = {}
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            pending += [each.__cause__, each.__context__]
            pending += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    return found.values()


def _participant_error(error: BaseException) -> ParticipantError:
    # The SDK wraps the exceptions that it catches; the cause is more precise.
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    cause = error.__cause__ if isinstance(error, A2AError) and error.__cause__ is not None else error
    if isinstance(cause, ParticipantError):
        return cause
    details = f" {quoted}" if (quoted := _quoted(cause)) else ""
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        return ParticipantError(f"the agent answered HTTP {status}{_TOO_LARGE if status == 413 else ''}")
    if isinstance(cause, httpx.TransportError):
        return ParticipantUnreachable(f"the connection to the agent failed: {type(cause).__name__}{details}")
    if isinstance(cause, A2AError):
        return ParticipantError(f"the agent answered with an error:{details}")
    return ParticipantError(f"the agent's answer is not A2A: {type(cause).__name__}{details}")


def _quoted(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  # its arguments may be values that the agent sent
        message = "(a message that cannot be shown)"
    return excerpt(message, _MAX_QUOTE_CHARS) if message else ""


def bounded_client(*, max_bytes: int, streams: bool = False, token: SecretStr | None = None) -> httpx.AsyncClient:
    """A client that refuses answers of more than `max_bytes` bytes. It has no read timeout: callers set a deadline.

    Answers are JSON of at most `MAX_VALUES` values; with `streams` they may also be server-sent events, and the number
    of values is not limited. Any other answer raises `ParticipantError`; a failed connection raises httpx's
    errors. Raises `InternalFault` when this machine cannot set up a client.
    """
    # A small compressed answer can expand to any size.
    headers = {"Accept-Encoding": "identity"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token.get_secret_value()}"
    try:
        transport = _BoundedTransport(max_bytes, streams=streams)
    except OSError as error:
        raise InternalFault(f"cannot set up an HTTP client: {error.strerror or error}") from None
    timeout = httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S)
    return httpx.AsyncClient(transport=transport, trust_env=False, timeout=timeout, headers=headers)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    # Shared by all clients: reading this machine's certificates takes 16 ms.
    return httpx.create_ssl_context(trust_env=False)


class _BoundedTransport(httpx.AsyncHTTPTransport):
    def __init__(self, max_bytes: int, *, streams: bool) -> None:
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=256, keepalive_expiry=_KEEP_ALIVE_S)
        super().__init__(limits=limits, trust_env=False, verify=_tls_context())
        self._max_bytes = max_bytes
        self._streams = streams

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        stream = _BoundedStream(cast(httpx.AsyncByteStream, response.stream), self._max_bytes)
        try:
            self._check_headers(response)
            body = stream if self._streams else await _checked_body(stream)
        except BaseException:
            await stream.aclose()
            raise
        response.stream = body
        return response

    def _check_headers(self, response: httpx.Response) -> None:
        # A redirect could send the judge to a host that is not in the scenario.
        if response.is_redirect:
            raise ParticipantError(
                f"the agent redirects to {excerpt(response.headers['location'])}, which is not allowed",
                remedy="use the address at which the agent itself answers",
            )
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise ParticipantError(
                f"the agent answered with content encoding {excerpt(encoding)}, which is not allowed"
            )
        if int(response.headers.get("content-length", 0)) > self._max_bytes:
            raise _too_large(self._max_bytes)
        media_type = response.headers.get("content-type", "json").lower()
        allowed = (*_JSON_TYPES, "text/event-stream") if self._streams else _JSON_TYPES
        # An error's body may have any type, such as a proxy's HTML: its status is what gets reported.
        if response.is_success and not any(name in media_type for name in allowed):
            raise ParticipantError(f"the agent answered with {excerpt(media_type)} instead of JSON")


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._inner:
            received += len(chunk)
            if received > self._max_bytes:
                raise _too_large(self._max_bytes)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _checked_body(stream: httpx.AsyncByteStream) -> httpx.ByteStream:
    """The complete body. Raises `ParticipantError` if decoding it would block the event loop for long."""
    body = b"".join([chunk async for chunk in stream])
    await stream.aclose()
    # JSON readers also accept UTF-16 and UTF-32, in which the bytes counted below mean something else.
    if b"\0" in body or body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ParticipantError("the agent's answer is not A2A: it is not UTF-8", remedy="answer with JSON in UTF-8")
    # Every value but the first follows a structural character. Those inside strings do not count.
    if _structure_count(body) >= MAX_VALUES and _structure_count(_STRING.sub(b"", body)) >= MAX_VALUES:
        raise ParticipantError(
            f"the agent's answer is not A2A: it has more than {MAX_VALUES} JSON values",
            remedy="answer with fewer parts",
        )
    return httpx.ByteStream(body)


def _structure_count(body: bytes) -> int:
    return len(body.translate(None, _NOT_STRUCTURE))


def _too_large(max_bytes: int) -> ParticipantError:
    return ParticipantError(f"the agent's answer has more than {max_bytes} bytes", remedy="send a shorter answer")
