"""Shared by every call to a foreign agent: choosing the endpoint, and attributing errors.

Participants are adversaries: whatever reading their answers raises becomes an error that names the cause.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

import httpx
from a2a.types import AgentInterface
from a2a.utils.errors import (
    A2A_ERROR_REASONS,
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    MethodNotFoundError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from shared.errors import InternalFault, ParticipantError, ParticipantUnreachable, WabeError, is_shortage
from shared.fields import as_mapping, as_mappings
from shared.text import escape_line, excerpt

_MAX_QUOTE_CHARS = 500
# Part of the error, because the judge's message shows the error but not the remedy.
_TOO_LARGE = (
    ": it refuses messages of this size; raise the limit of its web framework"
    ' (Express: app.use(express.json({ limit: "20mb" })) before the A2A handler)'
)
_HIDDEN = "[redacted]"
# Shorter values occur in other words, and are not credentials.
_MIN_SECRET_CHARS = 6
_UNSUPPORTED = (MethodNotFoundError, UnsupportedOperationError)
_UNSUPPORTED_CODES = tuple(JSON_RPC_ERROR_CODE_MAP[each] for each in _UNSUPPORTED)
_UNSUPPORTED_REASONS = tuple(A2A_ERROR_REASONS[each] for each in _UNSUPPORTED)


def choose_interface(interfaces: Iterable[AgentInterface], dialled: str) -> AgentInterface:
    """The interface to call, on the dialled host: JSON-RPC before HTTP+JSON, protocol 1.0 before 0.3.

    Only the path is taken from the card, because many agents publish a host that is right only where they run. An agent
    that publishes another host and another path is behind a gateway: its path is appended to the dialled one.
    """
    offered = list(interfaces)
    for binding in ("JSONRPC", "HTTP+JSON"):
        # Agents write the binding in any case.
        if matching := [each for each in offered if each.protocol_binding.strip().upper() == binding]:
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


def refuses_method(error: BaseException) -> bool:
    """Whether the agent does not have the called method, and so has not taken the message."""
    if isinstance(error, _UNSUPPORTED):
        return True
    cause = error.__cause__ if isinstance(error, A2AError) else error
    if not isinstance(cause, httpx.HTTPStatusError):
        return False
    if cause.response.status_code in (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED):
        return True
    # Not every transport of the SDK reads the error in an answer with an HTTP status of failure.
    try:
        body = cause.response.json()
    except (ValueError, RecursionError):
        return False
    error_in_body = as_mapping(as_mapping(body).get("error"))
    reasons = [each.get("reason") for each in as_mappings(error_in_body.get("details"))]
    return error_in_body.get("code") in _UNSUPPORTED_CODES or any(each in _UNSUPPORTED_REASONS for each in reasons)


def has_no_task(error: BaseException) -> bool:
    """Whether the agent cannot be asked for the task, because it does not keep tasks, or not this one."""
    return isinstance(error, TaskNotFoundError) or refuses_method(error)


def was_not_sent(error: BaseException) -> bool:
    """Whether no connection was made, so that the agent cannot have received the message."""
    return any(isinstance(each, httpx.ConnectError | httpx.ConnectTimeout) for each in _chain_of_causes(error))


def refuses_credentials(error: BaseException) -> bool:
    """Whether the agent does not accept the credentials of a call, or wants some."""
    statuses = [
        each.response.status_code for each in _chain_of_causes(error) if isinstance(each, httpx.HTTPStatusError)
    ]
    return any(status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) for status in statuses)


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


@contextmanager
def hiding(headers: Mapping[str, str]) -> Iterator[None]:
    """Replace the credentials of an agent in errors that quote the agent, because some agents send them back."""
    words = {
        word for value in headers.values() for word in (value, value.split()[-1]) if len(word) >= _MIN_SECRET_CHARS
    }
    try:
        yield
    except ParticipantError as error:
        message = error.message
        # The longest first, because the others are parts of it.
        for word in sorted(words, key=len, reverse=True):
            message = message.replace(word, _HIDDEN).replace(escape_line(word).replace('"', "'"), _HIDDEN)
        if message == error.message:
            raise
        raise type(error)(message, remedy=error.remedy) from None


def _chain_of_causes(error: BaseException) -> Iterable[BaseException]:
    # By identity, because causes and contexts may lead to the same error several times.
    causes: dict[int, BaseException] = {}
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in causes:
            causes[id(each)] = each
            pending += [each.__cause__, each.__context__]
            pending += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    return causes.values()


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
