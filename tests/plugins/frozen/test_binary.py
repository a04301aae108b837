"""Requests and messages that are no JSON: other content in one is never answered as if it were the recorded one."""

import asyncio
import base64
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.interception import SocketClose, SocketMessage
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse, RecordedSocketMessage, SiteRecording
from judge.plugins.frozen.matching.binary import data_content
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Matcher
from judge.plugins.frozen.replay import ReplayInterceptor
from judge.plugins.frozen.secrets import placeholder
from plugins.frozen.made import AGAIN, MINUTE_MS, START_MS, answer, recording, request, walk
from plugins.frozen.test_replay import SOCKET, End

pytestmark = pytest.mark.slow


def varint(value: int) -> bytes:
    more, last = divmod(value, 128)
    return bytes([last | 128]) + varint(more) if more else bytes([last])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def frame(data: bytes) -> bytes:
    return struct.pack(">BI", 0, len(data)) + data


class Booking(NamedTuple):
    """What a person chose (`name`, `persons`, `extras`), and what the page adds on each visit.

    `play` is 1 for the second play.
    """

    name: str
    persons: int
    extras: tuple[str, ...] = ("Map",)
    visit: int = 0
    play: int = 0

    @property
    def rid(self) -> str:
        return "".join(random.Random(self.visit).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=11))

    @property
    def now_ms(self) -> int:
        return START_MS + self.play * MINUTE_MS + random.Random(self.visit).randrange(1_000)

    @property
    def json(self) -> bytes:
        return json.dumps([self.rid, self.name, self.persons, self.extras, self.now_ms]).encode()


def protocol_buffer(booking: Booking) -> bytes:
    extras = b"".join(field(1, field(1, each.encode()) + field(2, 1)) for each in booking.extras)
    chosen = field(1, booking.name.encode()) + field(2, booking.persons) + field(3, extras)
    return field(1, booking.rid.encode()) + field(11, chosen) + field(12, booking.now_ms)


def packed(booking: Booking) -> bytes:
    counts = struct.pack("<2d", booking.persons, len(booking.extras))
    texts = field(1, booking.name.encode()) + b"".join(field(2, each.encode()) for each in booking.extras)
    return field(1, booking.rid.encode()) + field(2, counts) + field(3, texts)


def message_pack(booking: Booking) -> bytes:
    texts = (b"".join(bytes([0xA0 | len(each)]) + each.encode() for each in booking.extras), booking.name.encode())
    rid, now = b"\xab" + booking.rid.encode(), b"\xcf" + struct.pack(">Q", booking.now_ms)
    return (
        b"\x95" + rid + bytes([0xA0 | len(texts[1])]) + texts[1] + bytes([booking.persons, 0x90 | len(booking.extras)])
    ) + (texts[0] + now)


def xml(booking: Booking) -> bytes:
    extras = "".join(f"<x>{each}</x>" for each in booking.extras)
    guests = f"<n>{booking.name}</n><c>{booking.persons}</c>{extras}"
    return f"<b><id>{booking.rid}</id>{guests}<t>{booking.now_ms}</t></b>".encode()


def lines(booking: Booking) -> bytes:
    guests = f"{booking.name} {booking.persons} {','.join(booking.extras)}"
    return f"SEND\nid:{booking.rid}\n\n{guests}\n{booking.now_ms}".encode()


STRUCTURED: dict[str, Callable[[Booking], bytes]] = {
    "protocol buffer": protocol_buffer,
    "gRPC-Web": lambda made: frame(protocol_buffer(made)),
}
ENCODINGS = STRUCTURED | {
    "packed": packed,
    "MessagePack": message_pack,
    "XML": xml,
    "lines": lines,
    "base 64": lambda made: base64.b64encode(made.json),
    "deflated": lambda made: zlib.compress(made.json),
}


def by_request(plays: Iterable[Booking], encode: Callable[[Booking], bytes]) -> SiteRecording:
    def posted(booking: Booking) -> Any:
        mime = (("Content-Type", "application/octet-stream"),)
        return request("/book", "POST", encode(booking), mime), answer(b"booked")

    return recording(*(walk(name, posted(made)) for name, made in zip(("w", "w" + AGAIN), plays, strict=False)))


def by_socket(plays: Iterable[Booking], encode: Callable[[Booking], bytes]) -> SiteRecording:
    def opened(name: str, booking: Booking) -> RecordedExchange:
        said = RecordedSocketMessage(True, False, encode(booking), 50, 3, step=1)
        messages = (said, RecordedSocketMessage(False, False, b"\x0a\x06booked", 60, 4))
        accepted = RecordedResponse(101, "Switching Protocols", (), b"")
        return RecordedExchange(name, 0, request(SOCKET), START_MS, 1, 9, accepted, messages=messages)

    return recording(*((opened(name, made),) for name, made in zip(("w", "w" + AGAIN), plays, strict=False)))


def grades_of_request(index: Index, data: bytes) -> list[str]:
    wire_request = request("/book", "POST", data, (("Content-Type", "application/octet-stream"),))
    return [Matcher(index).match(wire_request).grade]


def grades_over_socket(index: Index, data: bytes) -> list[str]:
    async def served() -> list[str]:
        replay = ReplayInterceptor(index)
        page = End([SocketMessage(True, False, data), SocketClose(True, 1000)])
        await asyncio.wait_for(replay.socket(request(SOCKET), page, None), 10)
        return [entry.grade for entry in replay.take()]

    return asyncio.run(served())


Grades = Callable[[Index, bytes], list[str]]
WAYS: dict[str, tuple[Callable[..., SiteRecording], Grades]] = {
    "request": (by_request, grades_of_request),
    "socket": (by_socket, grades_over_socket),
}
FLAGS = {"uncertain", "miss"}
BOOKINGS = st.tuples(
    st.sampled_from(["Ada", "Bob", "Grace", "Oslo", "Ghent", "a longer name"]),
    st.integers(1, 20),
    st.lists(st.sampled_from(["Map", "Tent", "Boots"]), min_size=1, max_size=3, unique=True).map(tuple),
).map(lambda chosen: Booking(*chosen))
VISITS = st.lists(st.integers(0, 10**6), min_size=3, max_size=3, unique=True)


def visited(booking: Booking, visits: list[int]) -> list[Booking]:
    return [booking._replace(visit=visit, play=play) for play, visit in enumerate(visits)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("encoding", ENCODINGS)
@given(made=BOOKINGS, other=BOOKINGS, visits=VISITS, plays=st.sampled_from([1, 2]))
def test_other_content_than_the_recorded_one_is_never_answered_with_certainty(
    way: str, encoding: str, made: Booking, other: Booking, visits: list[int], plays: int
) -> None:
    recorded, grades = WAYS[way]
    encode = ENCODINGS[encoding]
    index = Index(recorded(visited(made, visits[:plays]), encode))
    if made != other:
        assert FLAGS.intersection(grades(index, encode(other._replace(visit=visits[2]))))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("encoding", STRUCTURED)
@given(made=BOOKINGS, visits=VISITS)
def test_what_a_page_adds_to_binary_content_is_recognised_by_its_field(
    way: str, encoding: str, made: Booking, visits: list[int]
) -> None:
    recorded, grades = WAYS[way]
    encode = STRUCTURED[encoding]
    index = Index(recorded(visited(made, visits[:2]), encode))
    assert not FLAGS.intersection(grades(index, encode(made._replace(visit=visits[2]))))


ORDERS = [("Map", "Tent", "Boots"), ("Tent", "Boots", "Map"), ("Boots", "Tent", "Map")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("plays", "flags"), [(ORDERS[:2], set()), ([ORDERS[0]] * 2, {"uncertain"})])
def test_another_order_of_fields_is_certain_only_if_it_differed_between_two_plays(
    way: str, plays: list[tuple[str, ...]], flags: set[str]
) -> None:
    recorded, grades = WAYS[way]
    index = Index(recorded([Booking("Ada", 3, extras) for extras in plays], protocol_buffer))
    assert FLAGS.intersection(grades(index, protocol_buffer(Booking("Ada", 3, ORDERS[2])))) == flags
    assert FLAGS.intersection(grades(index, protocol_buffer(Booking("Ada", 4, ORDERS[2])))) == {"miss"}


def test_an_identifier_that_came_in_a_binary_answer_is_none_that_the_page_made_up() -> None:
    plays = []
    for name, number in (("w", 70_411), ("w" + AGAIN, 83_902)):
        # No text, and as long as a token.
        picture = field(2, b"\xa3\xff" * 12)
        listed = answer(field(1, number) + field(1, 99_120) + picture, mime="application/x-protobuf")
        headers = (("Content-Type", "application/x-protobuf"), ("Cookie", f"visit=of {number}"))
        bought = request("/buy", "POST", field(1, number), headers)
        plays.append(walk(name, (request("/things"), listed), (bought, answer(b"bought"))))
    matcher = Matcher(Index(recording(*plays)), walk="w")
    assert matcher.match(request("/things")).grade == "state"
    headers = (("Content-Type", "application/x-protobuf"), ("Cookie", f"visit={placeholder('a long secret value')}"))
    assert matcher.match(request("/buy", "POST", field(1, 99_120), headers)).grade in FLAGS


def json_bytes(content: Any) -> bytes:
    """The data that `data_content` read."""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    return b"".join(_field(name, value) for each in content for name, value in each.items())


def _field(name: str, value: Any) -> bytes:
    if name.startswith("frame "):
        data = json_bytes(value)
        return struct.pack(">BI", int(name.removeprefix("frame ")), len(data)) + data
    number, _, kind = name.partition(".")
    head = varint(int(number) << 3 | int(kind))
    if kind == "2":
        data = json_bytes(value)
        return head + varint(len(data)) + data
    return head + (varint(value) if kind == "0" else value.to_bytes({"1": 8, "5": 4}[kind], "little"))


MESSAGES = st.recursive(
    st.binary(max_size=12) | st.text(max_size=12).map(str.encode),
    lambda inner: st.lists(st.tuples(st.integers(1, 30), inner | st.integers(0, 2**40)), min_size=1, max_size=4).map(
        lambda fields: b"".join(field(number, value) for number, value in fields)
    ),
    max_leaves=12,
)


@given(MESSAGES | MESSAGES.map(frame))
def test_nothing_of_binary_data_is_lost_when_it_is_read(data: bytes) -> None:
    assert json_bytes(data_content(data)) == data


def test_every_byte_that_changes_a_message_changes_what_is_read() -> None:
    data = protocol_buffer(Booking("Ada", 3))
    seen = {
        json.dumps(data_content(data[:at] + bytes([byte]) + data[at + 1 :]))
        for at in range(len(data))
        for byte in range(256)
    }
    assert len(seen) == 255 * len(data) + 1
