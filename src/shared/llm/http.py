"""What both model SDKs share on the wire: every repeat waits for `Retry-After` and for a place in the rate limit.

The SDKs repeat failed requests themselves; hooks on their client see each attempt, so the limits hold for repeats too.
"""

import asyncio
import contextvars
import datetime
import email.utils
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from shared.models import TokenUsage

BeforeRetry = Callable[[], Awaitable[None]]
MAX_ATTEMPTS = 5
_RETRIABLE = frozenset({408, 409, 429, 500, 502, 503, 504})
_MAX_RETRY_AFTER_S = 300.0

# The usage of a call that was sent and whose answer never said.
UNTOLD = TokenUsage(calls=1, estimated_calls=1)


@dataclass
class Attempts:
    """The HTTP requests of one model call: tried, sent over a connection, and refused, which costs nothing."""

    tried: int = 0
    sent: int = 0
    refused: int = 0

    async def trace(self, event: str, _info: object) -> None:
        """Take an event of the HTTP client's connection."""
        self.sent += event.endswith(".send_request_headers.complete")

    @property
    def usage(self) -> TokenUsage | None:
        """What the call used when it ends without an answer: nothing when no request was left waiting for one."""
        return UNTOLD if self.sent > self.refused else None


_attempts: contextvars.ContextVar[Attempts | None] = contextvars.ContextVar("attempts", default=None)


async def no_wait() -> None:
    """The `BeforeRetry` of a model without a rate limit."""


@contextmanager
def counted_attempts(attempts: Attempts) -> Iterator[None]:
    """Count the attempts of one model call; the first one is the caller's own, already let through by the limits."""
    token = _attempts.set(attempts)
    try:
        yield
    finally:
        _attempts.reset(token)


class _Response(Protocol):
    """What is read of a response; the SDKs bring HTTP clients of different packages."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


def attempt_hooks(
    before_retry: BeforeRetry, *, honour_retry_after: bool
) -> dict[str, list[Callable[[Any], Awaitable[None]]]]:
    """Event hooks for an HTTP client: repeats wait for `before_retry`.

    `honour_retry_after` is for an SDK that does not read that header itself: the wait then happens here.
    """

    async def on_request(request: Any) -> None:
        attempts = _attempts.get()
        if attempts is not None:
            request.extensions["trace"] = attempts.trace
            attempts.tried += 1
            if attempts.tried > 1:
                await before_retry()

    async def on_response(response: _Response) -> None:
        attempts = _attempts.get()
        if attempts is None:
            return
        attempts.refused += response.status_code >= 400
        if honour_retry_after and response.status_code in _RETRIABLE and attempts.tried < MAX_ATTEMPTS:
            await asyncio.sleep(retry_after_s(response.headers.get("retry-after")))

    return {"request": [on_request], "response": [on_response]}


def retry_after_s(value: str | None, *, now: datetime.datetime | None = None) -> float:
    """The seconds a `Retry-After` header asks for (RFC 9110, 10.2.3: seconds or a date), at most five minutes."""
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            until = email.utils.parsedate_to_datetime(value)
        except ValueError:
            return 0.0
        if until.tzinfo is None:
            until = until.replace(tzinfo=datetime.UTC)
        seconds = (until - (now or datetime.datetime.now(datetime.UTC))).total_seconds()
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER_S) if seconds == seconds else 0.0


def without_secret(text: str, secret: str, *, limit: int = 300) -> str:
    """A provider's error text, bounded, in one line, with the key taken out."""
    line = " ".join(text.split())
    return (line.replace(secret, "[key]") if secret else line)[:limit]
