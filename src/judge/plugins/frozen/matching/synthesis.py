"""Derives answers from recorded ones by the rules of HTTP: ranges, `304`, `HEAD`, preflights. Pure."""

import re
from dataclasses import replace

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedResponse, header, without_headers

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_CONDITIONS = ("if-none-match", "if-modified-since", "if-range")
# The headers that a `304` repeats (RFC 9110, 15.4.5).
_OF_NOT_MODIFIED = frozenset({"cache-control", "content-location", "date", "etag", "expires", "vary", "set-cookie"})


def without_conditions(request: WireRequest) -> WireRequest:
    """The request without conditions, as if the browser had nothing in its cache."""
    return replace(request, headers=without_headers(request.headers, *_CONDITIONS))


def without_range(request: WireRequest) -> WireRequest:
    """The request without `Range`."""
    return replace(request, headers=without_headers(request.headers, "range", "if-range"))


def not_modified(request: WireRequest, answer: RecordedResponse) -> RecordedResponse | None:
    """A `304` if the browser already has the recorded answer."""
    if answer.status != 200 or request.method not in ("GET", "HEAD"):
        return None
    etag, etags = header(answer.headers, "etag"), header(request.headers, "if-none-match")
    if etags:
        names = {name.strip().removeprefix("W/") for name in etags.split(",")}
        is_same = etags.strip() == "*" or (bool(etag) and etag.removeprefix("W/") in names)
    else:
        since = header(request.headers, "if-modified-since")
        is_same = bool(since) and since == header(answer.headers, "last-modified")
    if not is_same:
        return None
    headers = tuple((name, value) for name, value in answer.headers if name.lower() in _OF_NOT_MODIFIED)
    return RecordedResponse(304, "Not Modified", (*headers, *_cors(answer)), b"", answer.http_version)


def part_of(request: WireRequest, whole: RecordedResponse) -> RecordedResponse | None:
    """The part that `Range` asks for, cut from a recorded answer that contains it; `None` if impossible."""
    range_match = _RANGE.fullmatch(header(request.headers, "range").replace(" ", ""))
    if range_match is None or header(whole.headers, "content-encoding") not in ("", "identity"):
        return None
    offset, total = 0, len(whole.body)
    if whole.status == 206:
        place = _CONTENT_RANGE.fullmatch(header(whole.headers, "content-range").strip())
        if place is None or place[3] == "*" or int(place[2]) - int(place[1]) + 1 != len(whole.body):
            return None
        offset, total = int(place[1]), int(place[3])
    elif whole.status != 200:
        return None
    if not range_match[1] and not range_match[2]:
        return None
    start = int(range_match[1]) if range_match[1] else max(0, total - int(range_match[2]))
    end = min(int(range_match[2]), total - 1) if range_match[1] and range_match[2] else total - 1
    other_headers = without_headers(whole.headers, "content-range", "content-length", "transfer-encoding")
    if start >= total or start > end:
        return RecordedResponse(
            416, "Range Not Satisfiable", (*other_headers, ("Content-Range", f"bytes */{total}")), b""
        )
    if start < offset or end >= offset + len(whole.body):
        return None
    body = whole.body[start - offset : end - offset + 1]
    range_headers = (("Content-Range", f"bytes {start}-{end}/{total}"), ("Content-Length", str(len(body))))
    return RecordedResponse(206, "Partial Content", (*other_headers, *range_headers), body, whole.http_version)


def head_of(whole: RecordedResponse) -> RecordedResponse:
    """The answer to HEAD."""
    return replace(whole, body=b"")


def preflight(request: WireRequest, answer: RecordedResponse) -> RecordedResponse | None:
    """The answer to a preflight for a request recorded with `answer`."""
    origin = header(answer.headers, "access-control-allow-origin")
    if not origin:
        return None
    allowed = {
        "Access-Control-Allow-Methods": header(request.headers, "access-control-request-method"),
        "Access-Control-Allow-Headers": header(request.headers, "access-control-request-headers"),
    }
    headers = (*_cors(answer), *((name, value) for name, value in allowed.items() if value))
    return RecordedResponse(204, "No Content", headers, b"")


def is_preflight(request: WireRequest) -> bool:
    """Whether the request is a CORS preflight."""
    return request.method == "OPTIONS" and bool(header(request.headers, "access-control-request-method"))


def after_preflight(request: WireRequest) -> str:
    """The method of the request that a preflight asks for."""
    return header(request.headers, "access-control-request-method")


def _cors(answer: RecordedResponse) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in answer.headers if name.lower().startswith("access-control-allow-"))


def accepts(accept: str, content_type: str) -> bool:
    """Whether an `Accept` header allows an answer of this type (RFC 9110, 12.5.1). Without one, any is allowed."""
    mime_type = content_type.partition(";")[0].strip().lower()
    ranges = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    if not mime_type or not any(ranges):
        return True
    return any(
        each in ("*/*", mime_type) or (each.endswith("/*") and mime_type.startswith(each[:-1])) for each in ranges
    )
