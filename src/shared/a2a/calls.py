"""What a call to an agent is made of, whatever its protocol: where to dial, what comes back, whom to blame."""

import errno
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from shared.errors import InternalFault, ParticipantError, ParticipantUnreachable, WabeError
from shared.models import Record
from shared.text import excerpt

MAX_WORDS_CHARS = 500

# What this machine can run out of. EADDRNOTAVAIL is not among them: an address that the agent publishes can cause it.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENOSPC})


class AgentSummary(Record):
    """What an agent's card says, as far as it is used: `url` and `protocol` are those that calls will use."""

    name: str
    url: str
    protocol: str


class StatusText(NamedTuple):
    """What an agent says of its progress."""

    text: str


class ArtifactTexts(NamedTuple):
    """The text parts of one artifact, or of one piece of it."""

    texts: tuple[str, ...]


class Final(NamedTuple):
    """The end: `state` is the protocol's word (completed, failed, canceled, rejected, input-required, …)."""

    state: str
    message: str


AgentEvent = StatusText | ArtifactTexts | Final


class Interface(NamedTuple):
    """One way to call an agent, as its card names it."""

    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str = ""

    @property
    def is_old(self) -> bool:
        """Whether it speaks a protocol before 1.0."""
        return self.protocol_version.startswith("0.")


def choose_interface(interfaces: Iterable[Interface], dialled: str) -> Interface:
    """The interface to call, at the host that was dialled: JSON-RPC before HTTP+JSON, the newest protocol first.

    Only the path is taken from the card: many agents name a host that is right only where they run. An agent that
    names another host and another path stands behind a gateway: its path begins where the dialled one ends.
    """
    offered = list(interfaces)
    for binding in ("JSONRPC", "HTTP+JSON"):
        found = [interface for interface in offered if interface.protocol_binding == binding]
        if found:
            best = max(found, key=lambda interface: not interface.is_old)
            # Agents that name 0.2 speak what 0.3 speaks, as far as it is used here.
            protocol = "0.3" if best.is_old else best.protocol_version or "1.0"
            return best._replace(url=_pinned(best.url, httpx.URL(dialled)), protocol_version=protocol)
    raise ParticipantError(
        "the agent's card offers neither JSON-RPC nor HTTP+JSON", remedy="offer one of them in the agent card"
    )


def _pinned(url: str, dialled: httpx.URL) -> str:
    named, under = httpx.URL(url), dialled.path.rstrip("/")
    path = named.raw_path
    if named.netloc != dialled.netloc and not f"{named.path}/".startswith(f"{under}/"):
        if named.path in ("", "/"):
            path = dialled.raw_path
        elif named.netloc:
            path = dialled.raw_path.rstrip(b"/") + path
    return str(dialled.copy_with(raw_path=path or b"/"))


@contextmanager
def blaming(protocol_error: type[Exception]) -> Iterator[None]:
    """The one boundary around reading an agent: whatever goes wrong inside is that agent's `ParticipantError`.

    Only bytes from the agent decide what happens inside, and decoders raise what they like (protobuf raises
    `SystemError` for a lone surrogate): no list of exceptions would be complete. The exception is a shortage of this
    machine, found anywhere in the chain of causes: an `InternalFault`. Cancellation and errors that already name their
    cause pass. `protocol_error` is the base of the SDK's own errors.
    """
    try:
        yield
    except WabeError:
        raise
    except Exception as error:  # noqa: BLE001
        for cause in _causes(error):
            if _is_shortage(cause):
                raise InternalFault(f"the judge's machine could not go on: {_words(cause)}") from None
        raise _blamed(error, protocol_error) from None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and everything that led to it."""
    found: dict[int, BaseException] = {}
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        waiting += [cause for cause in (each.__context__, each.__cause__) if cause is not None]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
    yield from found.values()


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror):  # its numbers are not those of the system
        return error.errno == socket.EAI_MEMORY
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _SHORTAGES)


def _blamed(error: BaseException, protocol_error: type[Exception]) -> ParticipantError:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    cause = error.__cause__ if isinstance(error, protocol_error) and error.__cause__ is not None else error
    if isinstance(cause, ParticipantError):
        return cause
    words = f" {said}" if (said := _words(cause)) else ""
    if isinstance(cause, httpx.HTTPStatusError):
        return ParticipantError(f"the agent answered HTTP {cause.response.status_code}")
    if isinstance(cause, httpx.TransportError):
        return ParticipantUnreachable(f"the connection to the agent failed: {type(cause).__name__}{words}")
    if isinstance(cause, protocol_error):
        return ParticipantError(f"the agent answered with an error:{words}")
    return ParticipantError(f"the agent's answer is not A2A: {type(cause).__name__}{words}")


def _words(error: BaseException) -> str:
    """What an error says, as one bounded line. Its arguments may be the agent's own values."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001
        said = "(its message cannot be shown)"
    return excerpt(said, MAX_WORDS_CHARS) if said else ""


def check_context(given: str, asked: str) -> None:
    """Refuse an answer that names another conversation than the one it was asked in."""
    if given not in ("", asked):
        raise ParticipantError(f"the agent answered in another context: {excerpt(given)} instead of {excerpt(asked)}")


def reply_of(texts: Iterable[str]) -> str:
    """The text parts of a reply, one below the other, each text once: agents say the same in artifact and status."""
    different = dict.fromkeys(texts)
    if not different:
        raise ParticipantError("the agent's reply has no text part", remedy="reply with a text part")
    return "\n".join(different)


def no_reply(state: str, texts: Iterable[str]) -> ParticipantError:
    """The error for a task that ended in `state` without a reply; `texts` is what the agent says of it."""
    words = " ".join(texts)
    return ParticipantError(f"the agent's task is {state}" + (f": {excerpt(words, MAX_WORDS_CHARS)}" if words else ""))
