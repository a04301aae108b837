"""The judge's machine runs out of something while it talks to a participant: aborted and tried again, nobody scored."""

import errno
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
from a2a.utils.errors import A2AError

from helpers.a2a.envelopes import body_agent, encode, in_envelope
from helpers.episode.still_page import PlayedTask, play
from shared.a2a.calls import blaming_the_agent
from shared.a2a.client import ParticipantClient
from shared.errors import InternalFault, ParticipantError, WabeError


@contextmanager
def no_more_files() -> Iterator[None]:
    """Every file and socket that would be opened fails with EMFILE, in this process and for real."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open(os.devnull, os.O_RDONLY)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Starved:
    """Calls the participant when there are no file descriptors left."""

    def __init__(self, client: ParticipantClient) -> None:
        self._client = client

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        with no_more_files():
            return await self._client.send(text, image=image, media_type=media_type, context_id=context_id)


async def play_starved(folder: Path, *, while_dialling: bool = False, attempts: int = 9) -> PlayedTask:
    """One task, tried up to twice, against a participant that writes prose; the first `attempts` are starved."""
    async with body_agent() as agent:
        agent.reply = encode(
            in_envelope({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hm"}]}})
        )
        starved = iter([True] * attempts)

        @asynccontextmanager
        async def connect() -> AsyncIterator[ParticipantClient | Starved]:
            is_starved = next(starved, False)
            if is_starved and while_dialling:
                with no_more_files():
                    await ParticipantClient(agent.url).__aenter__()
            async with ParticipantClient(agent.url) as client:
                yield Starved(client) if is_starved else client

        return await play(folder, connect, max_task_retries=1)


async def test_no_descriptor_left_to_send_with_aborts_the_task(tmp_path: Path) -> None:
    attempts = await play_starved(tmp_path)
    assert (attempts.outcome, attempts.retries) == ("aborted", 1)
    assert attempts.error.startswith("internal: this machine ran out of a resource")
    assert "Too many open files" in attempts.error


async def test_no_descriptor_left_to_read_the_card_with_aborts_the_task(tmp_path: Path) -> None:
    attempts = await play_starved(tmp_path, while_dialling=True)
    assert (attempts.outcome, attempts.retries) == ("aborted", 1)
    assert attempts.error.startswith("internal: ")


async def test_a_shortage_that_passes_costs_one_attempt(tmp_path: Path) -> None:
    attempts = await play_starved(tmp_path, attempts=1)
    assert attempts.retries == 1
    assert attempts.entry["stop_reason"] == "unreadable_replies"


def wrapped(cause: BaseException) -> Exception:
    """As an HTTP client raises it."""
    middle = OSError("All connection attempts failed")
    middle.__cause__ = cause
    outer = httpx.ConnectError("All connection attempts failed")
    outer.__cause__ = middle
    return outer


SHORTAGES: dict[str, Exception] = {
    **{
        name: wrapped(OSError(getattr(errno, name), name))
        for name in ("EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "ENOSPC")
    },
    "MemoryError": MemoryError(),
    "MemoryError inside": wrapped(MemoryError()),
    "one of several addresses": wrapped(ExceptionGroup("", [ConnectionRefusedError(), OSError(errno.EMFILE, "")])),
    "the resolver's memory": wrapped(socket.gaierror(socket.EAI_MEMORY, "")),
}
OTHERS: dict[str, Exception] = {
    "refused": wrapped(ConnectionRefusedError(errno.ECONNREFUSED, "")),
    "an address that this machine does not have": wrapped(OSError(errno.EADDRNOTAVAIL, "")),
    "an unknown name": wrapped(socket.gaierror(socket.EAI_NONAME, "")),
    "SystemError": SystemError(),
    "OverflowError": OverflowError(),
    "RecursionError": RecursionError(),
    "AssertionError": AssertionError(),
    "StopIteration": StopIteration(),
    "a group": ExceptionGroup("", [ExceptionGroup("", [SystemError()])]),
    "the SDK's own": A2AError("boom"),
    "one whose message cannot be shown": ValueError(type("Sly", (), {"__str__": lambda _: 1 / 0})()),
}


@pytest.mark.parametrize("what", SHORTAGES)
def test_a_shortage_is_the_judges_own_wherever_it_stands(what: str) -> None:
    assert blamed(SHORTAGES[what]).startswith("internal: ")


@pytest.mark.parametrize("what", OTHERS)
def test_any_other_error_is_the_agents(what: str) -> None:
    assert blamed(OTHERS[what]).startswith("participant: ")


def blamed(error: Exception) -> str:
    with pytest.raises((InternalFault, ParticipantError)) as caught, blaming_the_agent():
        raise error
    result: WabeError = caught.value
    return f"{result.blame}: {result.message}"
