"""Exchanges as WARC 1.1 records, through `warcio`.

An exchange is a `response` record and a `request` record, which every tool can read, and a `metadata` record with what
is not part of HTTP (`Details`): walk, step, ticks, the times of chunks, the messages of a socket, why there was no
answer. Without an answer there is no `response` record; the handshake of a socket has the scheme `http` or `https`.

HTTP headers are written and read here rather than by `warcio`, which changes some of them. A chunked answer is stored
without chunks, and its `Transfer-Encoding` as `X-Archive-Orig-Transfer-Encoding`.
"""

import base64
import hashlib
import io
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Literal, NamedTuple

from pydantic import Field, ValidationError
from warcio.exceptions import ArchiveLoadFailed
from warcio.recordloader import ArcWarcRecord, ArcWarcRecordLoader
from warcio.statusandheaders import StatusAndHeaders, StatusAndHeadersParserException
from warcio.warcwriter import WARCWriter

from judge.network.interception import HeaderPairs, SocketClose, WireRequest
from judge.plugins.frozen.exchanges import Chunk, RecordedExchange, RecordedResponse, RecordedSocketMessage
from shared.models import Record

# With any other type, replay tools would treat it as content.
DETAILS_TYPE = "application/warc-fields"
_DETAILS_FIELD = b"wabe-exchange: "
MAX_RECORD_BYTES = 256_000_000
MAX_RECORDS = 600_000
# Of all records, decompressed: text is rarely compressed to less than a fiftieth, and images are not at all.
MAX_TOTAL_BYTES = 4_000_000_000
_MAX_RATIO = 50
_FREE_BYTES = 256_000_000
_INFLATED_AT_ONCE = 1 << 16
_ORIGINAL = "X-Archive-Orig-"
_STATUS_LINE = re.compile(rb"HTTP/(\d\.\d) (\d{3})(?: ([^\r\n]*))?")
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}) (\S+) HTTP/\d\.\d")
_SCHEMES = (("ws:", "http:"), ("wss:", "https:"))
# The same body in many walks is stored once (WARC 1.1, 6.7.2).
_SAME_BODY = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_MIN_SHARED_BYTES = 200
_NAMESPACE = uuid.UUID("7d3a4f52-1b0c-5c3e-9e57-5e2f0a9b7c11")


class DamagedWarc(ValueError):
    """The data is not WARC, or is incomplete; the message says what is wrong."""


class RecordedMessage(Record):
    """A message of a socket; `data` is base64. `step`: in which the page sent it, if known."""

    sent: bool
    is_text: bool
    data: str
    at_ms: int
    tick: int
    step: int | None = Field(None, ge=0)


class RecordedClose(Record):
    """The end of a socket."""

    sent: bool
    code: int
    reason: str
    at_ms: int


class Details(Record):
    """Facts for which WARC has no field. `chunks` are milliseconds, tick and end in the body of each."""

    format: Literal[1] = 1
    walk: str = Field(max_length=300)
    number: int = Field(ge=0)
    url: str
    step: int = Field(ge=0)
    at_ms: int
    began: int = Field(ge=0)
    ended: int = Field(ge=0)
    failure: str = ""
    is_whole: bool = True
    is_redacted: bool = False
    http_version: str = "1.1"
    chunks: tuple[tuple[int, int, int], ...] = ()
    messages: tuple[RecordedMessage, ...] = ()
    closed: RecordedClose | None = None


class RecordPosition(NamedTuple):
    """Where the record of an answer is in the file, for an index. `is_revisit`: its body is in an earlier record."""

    exchange: RecordedExchange
    offset: int
    length: int
    digest: str
    is_revisit: bool = False


class _Raw(NamedTuple):
    kind: str
    record_id: str
    refers_to: str
    uri: str
    block: bytes
    payload: str = ""


def write_warc(
    exchanges: Iterable[RecordedExchange], out: BinaryIO, *, file_name: str, software: str
) -> Iterator[RecordPosition]:
    """Write the exchanges as a compressed WARC file. Yields the place of each answer."""
    writer = WARCWriter(out, gzip=True, warc_version="1.1")
    info = f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode()
    writer.write_record(_record("warcinfo", "", 0, "application/warc-fields", info, {"WARC-Filename": file_name}))
    stored: dict[str, dict[str, str]] = {}
    for exchange in exchanges:
        target, at_ms = target_uri(exchange.request.url), exchange.at_ms
        ids = {kind: _record_id(exchange, kind) for kind in ("request", "response", "metadata")}
        first = "request"
        if exchange.answer is not None:
            first = "response"
            start, digest = out.tell(), _digest(exchange.answer.body)
            response_headers = {"WARC-Record-ID": ids["response"], "WARC-Payload-Digest": digest}
            kind, block = "response", _answer_head(exchange.answer)
            if (first_stored := stored.get(digest)) is not None:
                kind, response_headers = "revisit", {**response_headers, **first_stored}
            else:
                block += exchange.answer.body
                if len(exchange.answer.body) >= _MIN_SHARED_BYTES:
                    stored[digest] = _revisiting(ids["response"], target, at_ms)
            writer.write_record(
                _record(kind, target, at_ms, "application/http; msgtype=response", block, response_headers)
            )
            yield RecordPosition(exchange, start, out.tell() - start, digest, kind == "revisit")
        response_headers = {"WARC-Record-ID": ids["request"], "WARC-Payload-Digest": _digest(exchange.request.body)}
        if first == "response":
            response_headers["WARC-Concurrent-To"] = ids["response"]
        block = _request_head(exchange.request) + exchange.request.body
        writer.write_record(
            _record("request", target, at_ms, "application/http; msgtype=request", block, response_headers)
        )
        response_headers = {"WARC-Record-ID": ids["metadata"], "WARC-Refers-To": ids[first]}
        if first == "response":
            response_headers["WARC-Concurrent-To"] = ids["request"]
        details = _DETAILS_FIELD + _details(exchange).model_dump_json(exclude_defaults=True).encode() + b"\r\n"
        writer.write_record(_record("metadata", target, at_ms, DETAILS_TYPE, details, response_headers))


def _revisiting(record_id: str, target: str, at_ms: int) -> dict[str, str]:
    """The headers of a record whose body is in another one."""
    return {
        "WARC-Profile": _SAME_BODY,
        "WARC-Refers-To": record_id,
        "WARC-Refers-To-Target-URI": target,
        "WARC-Refers-To-Date": warc_date(at_ms),
    }


def read_warc(data: bytes) -> Iterator[RecordedExchange]:
    """The exchanges of a WARC file that `write_warc` wrote, in its order. Raises `DamagedWarc`."""
    answers: dict[str, bytes] = {}
    requests: dict[str, bytes] = {}
    bodies: dict[str, bytes] = {}
    shared = 0
    for raw in _raw_records(data):
        if raw.kind == "response":
            answers[raw.record_id] = raw.block
            bodies.setdefault(raw.payload, raw.block.partition(b"\r\n\r\n")[2])
        elif raw.kind == "revisit":
            if raw.payload not in bodies:
                raise DamagedWarc(f"the body of {raw.uri[:200]} is missing")
            shared += len(bodies[raw.payload])
            if shared > _most(data):
                raise DamagedWarc(f"more than {_most(data)} bytes in its records")
            answers[raw.record_id] = raw.block + bodies[raw.payload]
        elif raw.kind == "request":
            requests[raw.refers_to or raw.record_id] = raw.block
        elif raw.kind == "metadata" and raw.block.startswith((_DETAILS_FIELD, b"{")):
            block = requests.pop(raw.refers_to, None)
            if block is None:
                raise DamagedWarc(f"the request of {raw.uri[:200]} is missing")
            yield _exchange(raw.block.removeprefix(_DETAILS_FIELD), block, answers.pop(raw.refers_to, None))


def target_uri(url: str) -> str:
    """The address in a WARC record: a socket's handshake has an HTTP address."""
    for scheme, form in _SCHEMES:
        if url.startswith(scheme):
            return form + url.removeprefix(scheme)
    return url


def split_head(block: bytes) -> tuple[bytes, HeaderPairs, bytes]:
    """The first line, the headers and the body of a message. Raises `DamagedWarc`."""
    head, blank, body = block.partition(b"\r\n\r\n")
    if not blank:
        raise DamagedWarc("a message without the end of its head")
    first, *lines = head.split(b"\r\n")
    headers = []
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not name:
            raise DamagedWarc("a header without a name")
        headers.append((name, value.strip(" \t")))
    return first, tuple(headers), body


def _record_id(exchange: RecordedExchange, kind: str) -> str:
    return f"<urn:uuid:{uuid.uuid5(_NAMESPACE, f'{exchange.walk}/{exchange.number}/{exchange.at_ms}/{kind}')}>"


def _record(
    kind: str, target: str, at_ms: int, content_type: str, block: bytes, extra_headers: dict[str, str]
) -> ArcWarcRecord:
    record_id = extra_headers.pop(
        "WARC-Record-ID", f"<urn:uuid:{uuid.uuid5(_NAMESPACE, kind + hashlib.sha256(block).hexdigest())}>"
    )
    headers = [("WARC-Type", kind), ("WARC-Record-ID", record_id), ("WARC-Date", warc_date(at_ms))]
    headers += [("WARC-Target-URI", target)] if target else []
    headers += [*extra_headers.items(), ("WARC-Block-Digest", _digest(block))]
    if "WARC-Payload-Digest" not in extra_headers:
        # Otherwise warcio adds another.
        headers.append(("WARC-Payload-Digest", _digest(block)))
    record_headers = StatusAndHeaders("", headers, protocol="WARC/1.1")
    # Of a revisit, warcio would write the block only if it had parsed it itself.
    written_as = "response" if kind == "revisit" else kind
    return ArcWarcRecord("warc", written_as, record_headers, io.BytesIO(block), None, content_type, len(block))


def warc_date(at_ms: int) -> str:
    """A time in the format of WARC and WACZ."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _lines(first: str, headers: HeaderPairs) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def _answer_head(answer: RecordedResponse) -> bytes:
    headers = tuple(
        (_ORIGINAL + name if name.lower() == "transfer-encoding" else name, value) for name, value in answer.headers
    )
    # Always 1.1, which every tool can read; the actual version is in the details.
    return _lines(f"HTTP/1.1 {answer.status:03} {answer.reason}", headers)


def _request_head(request: WireRequest) -> bytes:
    target = request.url.partition("://")[2]
    path = target[len(target.split("/", 1)[0].split("?", 1)[0]) :]
    path = path if path.startswith("/") else f"/{path}"
    return _lines(f"{request.method} {path} HTTP/1.1", request.headers)


def _details(exchange: RecordedExchange) -> Details:
    closed = exchange.closed
    return Details(
        walk=exchange.walk,
        number=exchange.number,
        url=exchange.request.url,
        step=exchange.request.step,
        at_ms=exchange.at_ms,
        began=exchange.began,
        ended=exchange.ended,
        failure=exchange.failure,
        is_whole=exchange.is_whole,
        is_redacted=exchange.answer is not None and exchange.answer.is_redacted,
        http_version=exchange.answer.http_version if exchange.answer else "1.1",
        chunks=tuple((chunk.at_ms, chunk.tick, chunk.end) for chunk in exchange.chunks),
        messages=tuple(
            RecordedMessage(
                sent=message.is_from_page,
                is_text=message.is_text,
                data=base64.b64encode(message.data).decode(),
                at_ms=message.at_ms,
                tick=message.tick,
                step=message.step,
            )
            for message in exchange.messages
        ),
        closed=closed
        and RecordedClose(sent=closed.is_from_page, code=closed.code, reason=closed.reason, at_ms=closed.at_ms),
    )


def _exchange(details: bytes, request: bytes, answer: bytes | None) -> RecordedExchange:
    try:
        known = Details.model_validate_json(details)
        messages = tuple(
            RecordedSocketMessage(
                each.sent, each.is_text, base64.b64decode(each.data, validate=True), each.at_ms, each.tick, each.step
            )
            for each in known.messages
        )
    except (ValidationError, ValueError):
        raise DamagedWarc("the details of an exchange cannot be read") from None
    first, headers, body = split_head(request)
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise DamagedWarc(f"the request of {known.url[:200]} cannot be read")
    closed = known.closed
    return RecordedExchange(
        walk=known.walk,
        number=known.number,
        request=WireRequest(line[1].decode(), known.url, headers, body, known.step),
        at_ms=known.at_ms,
        began=known.began,
        ended=known.ended,
        answer=None if answer is None else _answer(answer, known),
        failure=known.failure,
        is_whole=known.is_whole,
        chunks=tuple(Chunk(*chunk) for chunk in known.chunks),
        messages=messages,
        closed=None if closed is None else SocketClose(closed.sent, closed.code, closed.reason, closed.at_ms),
    )


def _answer(block: bytes, details: Details) -> RecordedResponse:
    first, headers, body = split_head(block)
    line = _STATUS_LINE.fullmatch(first)
    if line is None:
        raise DamagedWarc(f"the answer of {details.url[:200]} cannot be read")
    original_headers = tuple(
        (name.removeprefix(_ORIGINAL) if _is_framing(name) else name, value) for name, value in headers
    )
    reason = (line[3] or b"").decode("latin-1")
    return RecordedResponse(int(line[2]), reason, original_headers, body, details.http_version, details.is_redacted)


def _is_framing(name: str) -> bool:
    return name.lower() == f"{_ORIGINAL}transfer-encoding".lower()


def _raw_records(data: bytes) -> Iterator[_Raw]:
    loader = ArcWarcRecordLoader(verify_http=False, arc2warc=False)
    count = 0
    for piece in _members(data):
        stream = io.BytesIO(piece)
        while stream.tell() < len(piece):
            count += 1
            if count > MAX_RECORDS:
                raise DamagedWarc(f"more than {MAX_RECORDS} records")
            yield _raw_record(loader, stream)


def _raw_record(loader: ArcWarcRecordLoader, stream: io.BytesIO) -> _Raw:
    try:
        record = loader.parse_record_stream(stream, known_format="warc", no_record_parse=True)
        headers = {name.lower(): value for name, value in record.rec_headers.headers}
        length = int(headers["content-length"])
        # A negative length would read everything.
        block = record.raw_stream.read(length) if length > 0 else b""
    except (ArchiveLoadFailed, StatusAndHeadersParserException, EOFError, KeyError, ValueError, TypeError) as error:
        raise DamagedWarc("a record that cannot be read") from error
    if len(block) != length or stream.read(4) != b"\r\n\r\n":
        raise DamagedWarc("a record that is not complete")
    expected = headers.get("warc-block-digest", "")
    if expected.startswith("sha256:") and expected != _digest(block):
        raise DamagedWarc("a record that differs from its digest")
    return _Raw(
        headers.get("warc-type", ""),
        headers.get("warc-record-id", ""),
        headers.get("warc-refers-to" if headers.get("warc-type") == "metadata" else "warc-concurrent-to", ""),
        headers.get("warc-target-uri", ""),
        block,
        headers.get("warc-payload-digest", ""),
    )


def _most(data: bytes) -> int:
    """The bytes that all records of a file of this size may have."""
    return min(MAX_TOTAL_BYTES, max(_FREE_BYTES, _MAX_RATIO * len(data)))


def _members(data: bytes) -> Iterator[bytes]:
    """The members of a compressed file, decompressed; a file not compressed is one member."""
    if not data.startswith(b"\x1f\x8b"):
        if data:
            yield data
        return
    most = _most(data)
    view, at, total = memoryview(data), 0, 0
    while at < len(data):
        inflater, pieces, size = zlib.decompressobj(31), [], 0
        while not inflater.eof:
            # In pieces, because what remains after a member is copied.
            if not (piece := view[at : at + _INFLATED_AT_ONCE]):
                raise DamagedWarc("the end of the file is missing")
            at += len(piece)
            try:
                pieces.append(inflater.decompress(piece, MAX_RECORD_BYTES + 1 - size))
            except zlib.error:
                raise DamagedWarc("a member that cannot be decompressed") from None
            size += len(pieces[-1])
            if size > MAX_RECORD_BYTES:
                raise DamagedWarc(f"a record of more than {MAX_RECORD_BYTES} bytes")
            if total + size > most:
                raise DamagedWarc(f"more than {most} bytes in its records")
        at -= len(inflater.unused_data)
        total += size
        yield b"".join(pieces)
