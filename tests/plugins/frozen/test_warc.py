import gzip
import io
import random
import time
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from judge.network.interception import SocketClose, WireRequest
from judge.plugins.frozen.exchanges import Chunk, RecordedExchange, RecordedResponse, RecordedSocketMessage
from judge.plugins.frozen.warc import DamagedWarc, _members, read_warc, write_warc
from plugins.frozen.made import answer, request, walk

TOKEN = st.text("abcdefghijklmnopqrstuvwxyzABCDEF0123456789-_", min_size=1, max_size=20)
# What h11 lets through in a value: visible bytes and inner blanks.
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_categories=["Cc", "Zs"]), max_size=30)
HEADERS = st.lists(st.tuples(TOKEN, VALUE), max_size=6).map(tuple)
NUMBER = st.integers(0, 10**12)
REQUESTS = st.builds(
    WireRequest,
    method=st.sampled_from(["GET", "POST", "PUT", "PROPFIND"]),
    url=st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "ws", "wss"]), TOKEN, TOKEN),
    headers=HEADERS,
    body=st.binary(max_size=200),
    step=st.integers(0, 99),
)
ANSWERS = st.builds(
    RecordedResponse,
    status=st.integers(100, 599),
    reason=TOKEN,
    headers=HEADERS,
    body=st.binary(max_size=2000),
    http_version=st.sampled_from(["1.0", "1.1"]),
    is_redacted=st.booleans(),
)
EXCHANGES = st.builds(
    RecordedExchange,
    walk=TOKEN,
    number=NUMBER,
    request=REQUESTS,
    at_ms=NUMBER,
    began=NUMBER,
    ended=NUMBER,
    answer=st.none() | ANSWERS,
    failure=st.text(max_size=50).filter(lambda text: text.isprintable()),
    is_whole=st.booleans(),
    chunks=st.lists(st.builds(Chunk, NUMBER, NUMBER, NUMBER), max_size=4).map(tuple),
    messages=st.lists(
        st.builds(
            RecordedSocketMessage,
            st.booleans(),
            st.booleans(),
            st.binary(max_size=50),
            NUMBER,
            NUMBER,
            st.none() | st.integers(0, 99),
        ),
        max_size=4,
    ).map(tuple),
    closed=st.none() | st.builds(SocketClose, st.booleans(), st.integers(1000, 4999), TOKEN, NUMBER),
)


def warc_bytes(exchanges: Sequence[RecordedExchange]) -> bytes:
    out = io.BytesIO()
    list(write_warc(exchanges, out, file_name="data.warc.gz", software="test"))
    return out.getvalue()


@pytest.mark.slow
@given(st.lists(EXCHANGES, max_size=5, unique_by=lambda each: (each.walk, each.number)))
def test_what_is_read_is_what_was_written(exchanges: list[RecordedExchange]) -> None:
    assert list(read_warc(warc_bytes(exchanges))) == exchanges


def test_bodies_and_content_encodings_are_stored_as_they_were_on_the_wire() -> None:
    body = zlib.compress(b"page" * 100) + b"\r\n\r\nno part of it\xff"
    recorded = walk("w", (request(), answer(body, headers=(("content-ENCODING", "deflate"),))))
    (exchange,) = read_warc(warc_bytes(recorded))
    assert exchange.answer == recorded[0].answer


def test_an_answer_that_came_in_chunks_is_stored_without_them_for_other_tools() -> None:
    recorded = walk("w", (request(), answer(b"whole", headers=(("Transfer-Encoding", "chunked"),))))
    records = [each for each in ArchiveIterator(io.BytesIO(warc_bytes(recorded))) if each.rec_type == "response"]
    assert records[0].http_headers.get_header("X-Archive-Orig-Transfer-Encoding") == "chunked"
    assert [each.answer for each in read_warc(warc_bytes(recorded))] == [recorded[0].answer]


def test_a_body_that_was_recorded_twice_is_stored_once() -> None:
    recorded = walk("w", *((request(path), answer(random.Random(0).randbytes(9_000))) for path in ("/a", "/b", "/a")))
    data = warc_bytes(recorded)
    assert list(read_warc(data)) == list(recorded)
    assert len(data) < 15_000
    kinds = [each.rec_type for each in ArchiveIterator(io.BytesIO(data)) if each.rec_type in ("response", "revisit")]
    assert kinds == ["response", "revisit", "revisit"]


def test_a_record_without_the_body_that_it_refers_to_is_damaged() -> None:
    recorded = walk("w", *((request(path), answer(b"x" * 900)) for path in ("/a", "/b")))
    data = warc_bytes(recorded)
    first = next(each for each in write_warc(recorded, io.BytesIO(), file_name="data.warc.gz", software="test"))
    with pytest.raises(DamagedWarc, match=r"the body of http://shop.test/b is missing"):
        list(read_warc(data[: first.offset] + data[first.offset + first.length :]))


def test_warcio_reads_what_was_written_and_its_digests_agree() -> None:
    recorded = walk("w", (request(), answer(b"one")), (request("/two", "POST", b"a=1"), answer(b"two")))
    results = []
    for record in ArchiveIterator(io.BytesIO(warc_bytes(recorded)), check_digests="raise"):
        if record.rec_type == "response":
            results.append((record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()))
    assert results == [("http://shop.test/", b"one"), ("http://shop.test/two", b"two")]


def test_an_index_names_where_each_answer_is() -> None:
    out = io.BytesIO()
    recorded = walk("w", (request(), answer(b"one")), (request("/gone"), None), (request("/two"), answer(b"two")))
    places = list(write_warc(recorded, out, file_name="data.warc.gz", software="test"))
    texts = [gzip.decompress(out.getvalue()[each.offset : each.offset + each.length]) for each in places]
    assert [text.rstrip().rpartition(b"\r\n")[2] for text in texts] == [b"one", b"two"]


@given(st.binary(max_size=400), st.booleans())
def test_any_other_data_is_refused(data: bytes, is_compressed: bool) -> None:
    given_data = gzip.compress(data) if is_compressed else data
    if data:
        with pytest.raises(DamagedWarc):
            list(read_warc(given_data))


@given(st.integers(1, 2_000), st.binary(min_size=1, max_size=3))
def test_a_damaged_file_is_refused_or_means_the_same(place: int, change: bytes) -> None:
    recorded = walk("w", (request("/a", "POST", b"x=1"), answer(b"one")), (request("/b"), answer(b"two")))
    data = warc_bytes(recorded)
    at = place % len(data)
    damaged = data[:at] + change + data[at + len(change) :]
    try:
        exchange = list(read_warc(damaged))
    except DamagedWarc:
        return
    assert exchange == list(recorded)


@given(st.data())
def test_a_truncated_file_is_refused(data: st.DataObject) -> None:
    whole = warc_bytes(walk("w", (request("/a"), answer(b"one" * 50)), (request("/b"), answer(b"two"))))
    cut = data.draw(st.integers(1, len(whole) - 1))
    try:
        exchange = list(read_warc(whole[:cut]))
    except DamagedWarc:
        return
    # Cut between two records: what is left is whole.
    assert len(exchange) < 2


def test_a_record_that_inflates_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.plugins.frozen.warc.MAX_RECORD_BYTES", 100_000)
    with pytest.raises(DamagedWarc, match="more than 100000 bytes"):
        list(read_warc(gzip.compress(bytes(1_000_000))))


def test_records_that_inflate_without_end_are_refused_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.plugins.frozen.warc._FREE_BYTES", 1_000_000)
    member = gzip.compress(bytes(400_000))
    with pytest.raises(DamagedWarc, match="more than 1000000 bytes in its records"):
        list(_members(member * 40))
    assert len(list(_members(member * 2))) == 2


def test_many_small_members_are_read_in_linear_time() -> None:
    member = gzip.compress(b"x")
    began = time.process_time()
    assert sum(map(len, _members(member * 100_000))) == 100_000
    # Copying the rest of the file after each member took minutes.
    assert time.process_time() - began < 10
