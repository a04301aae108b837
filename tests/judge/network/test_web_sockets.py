"""Frames of web sockets, however they are cut into fragments and pieces."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from websockets.protocol import Protocol, Side

from judge.network.interception import SocketClose, SocketMessage
from judge.network.web_sockets import Frames, accept_of

TEXTS = st.text(max_size=300).map(lambda text: (True, text.encode()))
BYTES = st.binary(max_size=300).map(lambda data: (False, data))


class Pieces:
    """A reader of these pieces, and a writer that keeps what is sent."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(pieces)
        self.output = b""

    async def read(self, n: int = -1, /) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def write(self, data: bytes, /) -> None:
        self.output += data

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        pass

    async def wait_closed(self) -> None:
        pass


def pieces_of(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The data in pieces of these sizes."""
    results = []
    for cut in cuts:
        results.append(data[:cut])
        data = data[cut:]
    return [piece for piece in (*results, data) if piece]


async def received(stream: Pieces, *, is_page: bool = True, max_bytes: int = 10**6) -> list[Any]:
    frames = Frames(stream, stream, is_page=is_page, max_bytes=max_bytes)
    results: list[Any] = []
    while not results or isinstance(results[-1], SocketMessage):
        results.append(await frames.receive())
    return results


@given(messages=st.lists(st.one_of(TEXTS, BYTES), max_size=5), data=st.data(), is_page=st.booleans())
def test_messages_arrive_whole_and_in_order(
    messages: list[tuple[bool, bytes]], data: st.DataObject, is_page: bool
) -> None:
    peer = Protocol(Side.CLIENT if is_page else Side.SERVER)
    for is_text, whole in messages:
        first, *others = cut(whole, data.draw(st.lists(st.integers(0, 100), max_size=3)))
        (peer.send_text if is_text else peer.send_binary)(first, fin=not others)
        for place, part in enumerate(others, 1):
            # Between fragments.
            peer.send_ping(b"alive?")
            peer.send_continuation(part, fin=place == len(others))
    peer.send_close(4000, "bye")
    wire = b"".join(peer.data_to_send())
    stream = Pieces(pieces_of(wire, data.draw(st.lists(st.integers(1, 50), max_size=30))))
    *result, end = asyncio.run(received(stream, is_page=is_page))
    assert [(each.is_text, each.data, each.is_from_page) for each in result] == [(*each, is_page) for each in messages]
    assert (end.code, end.reason, end.is_from_page) == (4000, "bye", is_page)


def cut(whole: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The fragments of a message, of which some may be empty."""
    results = []
    for size in cuts:
        results.append(whole[:size])
        whole = whole[size:]
    return [*results, whole]


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=10), st.booleans())
def test_any_bytes_end_a_socket_without_an_error(pieces: list[bytes], is_page: bool) -> None:
    assert isinstance(asyncio.run(received(Pieces(pieces), is_page=is_page))[-1], SocketClose)


@given(st.integers(min_value=-10, max_value=70_000), st.text(max_size=200))
def test_a_socket_is_closed_with_any_code_and_reason(code: int, reason: str) -> None:
    async def closes() -> bytes:
        stream = Pieces([])
        frames = Frames(stream, stream, is_page=True, max_bytes=1000)
        await frames.close(code, reason)
        await frames.close(code, reason)
        await frames.send(SocketMessage(is_from_page=False, is_text=True, data=b"too late"))
        return stream.output

    assert b"too late" not in asyncio.run(closes())


def test_more_bytes_than_allowed_end_a_socket() -> None:
    peer = Protocol(Side.CLIENT)
    for _ in range(20):
        peer.send_binary(b"x" * 90)
    result = asyncio.run(received(Pieces(peer.data_to_send()), max_bytes=1000))
    assert len(result) < 20
    assert isinstance(result[-1], SocketClose)


def test_the_answer_to_a_handshake_is_that_of_the_standard() -> None:
    assert accept_of(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
