"""Which attempt a model is called for: sent in a header, so that a meter on this machine can tell attempts apart."""

from contextvars import ContextVar
from typing import Any

HEADER = "X-Wabe-Attempt"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Set for one turn; the SDKs run their requests in the caller's asyncio task.
attempt: ContextVar[str] = ContextVar("attempt", default="")


def name_attempt(request: Any) -> None:
    """Add the header to a request to this machine. Typed `Any` because each SDK has its own HTTP client package."""
    if (name := attempt.get()) and request.url.host in _LOOPBACK:
        request.headers[HEADER] = name
