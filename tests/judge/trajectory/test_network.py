"""The network trace as a HAR file: what is written, and how files of any origin are read."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from helpers.trajectory.recordings import RecordedRequest
from judge.browser.requests import RequestLog
from judge.trajectory.network import MAX_ENTRIES, NETWORK_FILE, Entry, LeftOut, Pair, Request, read_har, write_har
from judge.trajectory.redaction import Redaction
from shared.errors import TrajectoryError
from shared.files import sha256_file

# The structure of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/) as a JSON schema: what viewers rely on.
TEXT = {"type": "string"}
NUMBER = {"type": "number"}
SIZE = {"type": "integer", "minimum": -1}
TIME = {"type": "number", "minimum": 0}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """An object with these keys; others must begin with an underscore."""
    return {
        "type": "object",
        "properties": {**required, **optional, "comment": TEXT},
        "patternProperties": {"^_": {}},
        "additionalProperties": False,
        "required": list(required),
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_PAIRS = _list(_object({"name": TEXT, "value": TEXT}))
_COOKIES = _list(
    _object(
        {"name": TEXT, "value": TEXT},
        path=TEXT,
        domain=TEXT,
        expires=TEXT,
        httpOnly={"type": "boolean"},
        secure={"type": "boolean"},
    )
)
_PARAMS = _list(_object({"name": TEXT}, value=TEXT, fileName=TEXT, contentType=TEXT))
_MESSAGE = {"httpVersion": TEXT, "cookies": _COOKIES, "headers": _PAIRS, "headersSize": SIZE, "bodySize": SIZE}
_REQUEST = _object(
    {**_MESSAGE, "method": TEXT, "url": {"type": "string", "pattern": "^(https?|wss?)://"}, "queryString": _PAIRS},
    postData=_object({"mimeType": TEXT, "params": _PARAMS}, text=TEXT),
)
_CONTENT = _object({"size": {"type": "integer", "minimum": 0}, "mimeType": TEXT}, text=TEXT, encoding=TEXT)
_RESPONSE = _object(
    {
        **_MESSAGE,
        "status": {"type": "integer", "minimum": 0},
        "statusText": TEXT,
        "content": _CONTENT,
        "redirectURL": TEXT,
    }
)
_ENTRY = _object(
    {
        "startedDateTime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"},
        "time": TIME,
        "request": _REQUEST,
        "response": _RESPONSE,
        "cache": _object({}),
        "timings": _object({"send": TIME, "wait": TIME, "receive": TIME}),
    }
)
_PROGRAM = _object({"name": TEXT, "version": TEXT})
HAR: dict[str, Any] = _object(
    {"log": _object({"version": {"const": "1.2"}, "creator": _PROGRAM, "entries": _list(_ENTRY)}, browser=_PROGRAM)}
)


PLAIN = Redaction(salt=b"test")
LEFT_OUT = [LeftOut(is_own=True, method="GET", url="http://shop.test/a", count=3), LeftOut(is_own=False, count=4)]
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=----b"
PARTS = (
    '------b\r\nContent-Disposition: form-data; name="a %22b%22"\r\n\r\nfür\r\n\r\nÖl\r\n'
    '------b\r\nContent-Disposition: form-data; name="file"; filename="x.png"\r\nContent-Type: image/png\r\n\r\n{}\r\n'
    "------b--\r\n"
)


def har_log(
    folder: Path, *entries: dict[str, Any], redaction: Redaction = PLAIN, left_out: Sequence[LeftOut] = ()
) -> dict[str, Any]:
    """The HAR file's log."""
    versions = {"browser": "Chromium 156.0"}
    trace = write_har(folder, entries, redaction.entry, left_out=left_out, versions=versions)
    path = folder / NETWORK_FILE
    assert (trace.sha256, trace.entries) == (sha256_file(path), len(entries))
    return dict(json.loads(path.read_bytes())["log"])


def recorded(folder: Path, *lines: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """What the recorder's lines are read as."""
    (folder / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RequestLog(folder).read().entries


EVERYTHING: list[dict[str, Any]] = [
    {"id": 0, "began": 1_000, "method": "POST", "url": "http://shop.test/a?b=1", "type": "document", "frame": True,
     "sender": {"navigation": True}, "fixed": {"type": FORM, "origin": "http://shop.test"}, "size": 12, "digest": "ab",
     "post": {"text": "a=1&b=%C3%BC"}, "headers": [["content-type", FORM], ["cookie", "a=b; c"]]},
    {"id": 0, "answered": 1_010, "status": 302, "status_text": "Found",
     "response_headers": [["location", "/b"], ["set-cookie", "x=y; Path=/; HttpOnly\nz=1; Domain=shop.test"]]},
    {"id": 1, "began": 990, "method": "POST", "url": "http://shop.test/f", "type": "fetch", "size": 9,
     "sender": {"document": "http://shop.test"}, "fixed": {"type": MULTIPART, "site": "same-origin"},
     "post": {"text": PARTS.format("bytes")}, "headers": [["content-type", MULTIPART]]},
    {"id": 2, "began": 5_000, "method": "POST", "url": "http://shop.test/g", "type": "fetch",
     "sender": {"document": "null"}, "fixed": {"origin": "null"}, "size": 3,
     "post": {"base64": "//79"}, "headers": [["content-type", "application/octet-stream"]], "long_url": True},
    {"id": 0, "ended": 900},
    {"id": 3, "began": 5_100, "method": "POST", "url": "http://shop.test/h", "type": "fetch",
     "post": {"dropped": 300_000}, "size": 300_000, "headers": []},
    {"id": 2, "failure": "net::ERR_FAILED", "ended": 5_200},
    {"id": 3, "answered": 5_150, "status": 200, "status_text": "", "response_headers": [["content-type", "text/json"]],
     "from_worker": True},
    {"id": 3, "body": {"text": '{"a": 1}'}, "ended": 5_160},
    {"id": 4, "began": 6_000, "method": "GET", "url": "ws://shop.test/s", "type": "websocket"},
    {"id": 5, "began": 6_000, "method": "POST", "url": "http://shop.test/u", "type": "fetch",
     "fixed": {"length": "77", "type": MULTIPART}, "headers": [["content-length", "77"], ["content-type", MULTIPART]]},
]  # fmt: skip


def test_the_file_is_har_1_2(tmp_path: Path) -> None:
    log = har_log(tmp_path, *recorded(tmp_path, *EVERYTHING), left_out=LEFT_OUT)
    Draft202012Validator(HAR).validate({"log": log})
    assert log["browser"] == {"name": "Chromium", "version": "156.0"}
    assert log["comment"] == "at least 3 requests of the task's own sites and 4 of others left out"


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    har_log(tmp_path, *recorded(tmp_path, *EVERYTHING), left_out=LEFT_OUT)
    har = read_har(tmp_path / NETWORK_FILE)
    form, multipart, failed, worker, socket, upload = har.entries
    assert (har.dropped, har.left_out) == (7, LEFT_OUT)
    assert (form.request.method, form.request.url) == ("POST", "http://shop.test/a?b=1")
    assert (form.response.status, form.is_frame) == (302, True)
    assert form.request.body is not None
    assert form.request.body.params == [Pair(name="a", value="1"), Pair(name="b", value="ü")]
    assert Pair(name="location", value="/b") in form.response.headers
    assert multipart.request.body is not None
    fields = [Pair(name='a "b"', value="für\r\n\r\nÖl"), Pair(name="file")]
    assert multipart.request.body.params == fields
    assert (failed.response.status, failed.response.error) == (0, "net::ERR_FAILED")
    assert failed.request.body is not None
    assert failed.request.body.text is None
    assert worker.request.body is not None
    assert worker.request.body.is_cut
    assert (worker.response.body.text, worker.response.status) == ('{"a": 1}', 200)
    assert socket.resource_type == "websocket"
    assert upload.request.body is not None
    assert upload.request.body.is_cut
    assert [entry.sender for entry in har.entries[:4]] == ["http://shop.test", "http://shop.test", None, None]


def test_contents_of_uploaded_files_are_left_out(tmp_path: Path) -> None:
    log = har_log(tmp_path, RecordedRequest(post=PARTS.format("CONTENT"), mime_type=MULTIPART).har_entry(1))
    text = log["entries"][0]["request"]["postData"]["text"]
    assert "CONTENT" not in text
    assert text == PARTS.format("")


@pytest.mark.parametrize(
    ("mime_type", "text", "is_kept"),
    [
        ("application/json; charset=utf-8", '{"a":  1}', True),
        ("application/problem+json", "[1]", True),
        ("text/plain;charset=UTF-8", "hello", True),
        ("text/html", "<p>hello", False),
        ("application/xml", "<a/>", False),
        ("application/json", '{"a": ', False),
        ("application/octet-stream", "abc", False),
        ("", "abc", False),
    ],
)
def test_a_body_other_than_json_form_or_text_is_left_out(
    tmp_path: Path, mime_type: str, text: str, is_kept: bool
) -> None:
    har_log(tmp_path, RecordedRequest(post=text, mime_type=mime_type).har_entry(1))
    (entry,) = read_har(tmp_path / NETWORK_FILE).entries
    assert entry.request.body is not None
    assert (entry.request.body.text, entry.request.body.is_cut) == (text if is_kept else None, False)


def test_a_trace_in_which_redaction_made_bodies_too_long_is_written_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.trajectory.network.MAX_FILE_BYTES", 10_000)
    har_log(tmp_path, RecordedRequest(post='["' + "a" * 9_000 + '"]', response='["x"]').har_entry(1))
    (entry,) = read_har(tmp_path / NETWORK_FILE).entries
    body = entry.request.body
    assert body is not None
    assert (body.text, body.is_cut, entry.response.body.is_cut) == (None, True, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", "not a HAR file"),
        (b'{"log": {}}', "log.entries"),
        (b'{"log": {"entries": [{}]}}', "log.entries.0.request"),
        (b'{"log": {"entries": [{"request": {"method": "GET"}}]}}', "url"),
        (b'{"log": {"entries": [' + b'{"request": {"method": "G", "url": ""}},' * MAX_ENTRIES + b"{}]}}", "entries"),
        (b"[" * 5_000, "nested too deeply"),
    ],
    ids=["empty", "bytes", "list", "no entries", "no request", "no url", "too many", "deep"],
)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.har"
    path.write_bytes(content)
    with pytest.raises(TrajectoryError) as caught:
        read_har(path)
    assert str(path) in caught.value.message
    assert message in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="no such file"):
        read_har(tmp_path / "x.har")


def test_a_file_of_another_program_is_read(tmp_path: Path) -> None:
    entry = {
        "request": {"method": "GET", "url": "http://a/", "x": 1},
        "response": {"status": -1},
        "time": -1,
        "pageref": "p",
    }
    (tmp_path / "x.har").write_text(json.dumps({"log": {"entries": [entry], "pages": []}}))
    assert read_har(tmp_path / "x.har").entries == [Entry(request=Request(method="GET", url="http://a/"))]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
KEYS = st.sampled_from(
    """
        method url headers postData mimeType text params name value encoding _truncated status content _step
    """.split()
)
HALF_RIGHT = st.recursive(JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=5) | st.lists(inner, max_size=3))
FILES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda entries: json.dumps({"log": {"entries": entries}}).encode(),
        st.lists(
            st.fixed_dictionaries({"request": HALF_RIGHT}, optional={"response": HALF_RIGHT, "_step": JSON}), max_size=3
        ),
    ),
)


@given(content=FILES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_is_either_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.har"
    path.write_bytes(content)
    with contextlib.suppress(TrajectoryError):
        assert all(isinstance(entry, Entry) for entry in read_har(path).entries)


LINES = st.fixed_dictionaries(
    {"method": st.text(max_size=9), "url": st.text(max_size=30).map("http://shop.test/".__add__)},
    optional={
        "headers": st.lists(st.tuples(st.text(max_size=9), st.text(max_size=30)), max_size=3),
        "post": st.fixed_dictionaries({"text": st.text(max_size=50)}),
        "body": st.fixed_dictionaries({"text": st.text(max_size=50)}),
        "response_headers": st.lists(
            st.tuples(
                st.sampled_from(["content-type", "set-cookie", "location", "content-length"]), st.text(max_size=30)
            ),
            max_size=4,
        ),
        "answered": st.integers(0, 2**41),
        "ended": st.integers(0, 2**41),
        "status": st.integers(100, 599),
    },
)


@given(lines=st.lists(LINES, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_pages_send_the_file_is_har_1_2(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    parts = [{"id": at, "began": 10**12, "type": "fetch"} | line for at, line in enumerate(lines)]
    log = har_log(tmp_path, *recorded(tmp_path, *parts))
    Draft202012Validator(HAR).validate({"log": log})
    assert len(read_har(tmp_path / NETWORK_FILE).entries) == len(lines)
