"""Reads the browser's requests, as recorded in its folder by `navigations.cjs` (pages) and `requests.cjs` (all)."""

import bisect
import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from judge.browser.acts import Acts
from judge.browser.session import Hop, Traffic
from judge.browser.socket_messages import read_messages
from judge.network.senders import claims_of, sender_of
from judge.network.sent import joined
from judge.network.wire import MAX_BODY_BYTES, MAX_URL_CHARS, OTHER, OWN, ExchangeRecord, Limits
from judge.trajectory.network import DOWNLOAD, FILES, HELD_KEY, MAX_METHOD_CHARS, LeftOut, MessagesLeftOut
from shared.files import read_end

NAVIGATION_RECORDER = Path(__file__).with_name("navigations.cjs")
RECORDER = Path(__file__).with_name("requests.cjs")
_DOCUMENTS = "navigations.jsonl"
_LOST_EVENT = '{"event":"lost"'
_MAX_LAST_BYTES = 65_536
_LOOK_S = 0.01
_LOG = "requests.jsonl"
_LATE = "late_requests.jsonl"


def _share(limits: Limits, *, message_bytes: int) -> dict[str, int]:
    """`paths` and `lateBytes` are for the first and the last request for each method and path, which are kept in any
    case; `messageBytes` and `lateMessageBytes` are for the first and the last messages of web sockets.
    """
    return {
        "entries": limits.entries,
        "bytes": limits.bytes,
        "bytesWithHeaders": limits.bytes_with_headers,
        "bytesWithBodies": limits.bytes_with_bodies,
        "paths": limits.paths,
        "lateBytes": limits.late_bytes,
        "messageBytes": message_bytes,
        "lateMessageBytes": message_bytes // 2,
    }


_LIMITS = {
    "own": _share(OWN, message_bytes=2_000_000),
    "other": _share(OTHER, message_bytes=500_000),
    "bodyBytes": MAX_BODY_BYTES,
    "url": MAX_URL_CHARS,
    "method": MAX_METHOD_CHARS,
    "keyChars": 600,
}
# Above what the recorder's limits allow for each file.
_MAX_BYTES = 40_000_000


def begin_code(sites: Iterable[str]) -> str:
    """The code that prepares the recorder, before the first navigation; `sites` are the task's."""
    known = json.dumps({"sites": [site for site in sites if site], "limits": _LIMITS})
    return f"async page => page.context()[Symbol.for('wabe.requests')]?.begin({known})"


def documents_until_death(folder: Path, limit_s: float) -> None:
    """Wait until the recorder in `folder` has written everything that happened before the browser died. Blocks."""
    for _ in range(round(limit_s / _LOOK_S)):
        if _LOST_EVENT in read_end(folder / _DOCUMENTS, _MAX_LAST_BYTES):
            break
        time.sleep(_LOOK_S)


class NavigationLog:
    """Reads what the recorder has written to `folder` about documents since the last call."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _DOCUMENTS
        self._offset = 0

    def take(self) -> tuple[Hop, ...]:
        """The new hops, oldest first; empty until the browser has navigated, because the file does not exist before."""
        data = b""
        with contextlib.suppress(OSError), self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        # A last line still being written is left for the next call.
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return tuple(Hop.model_validate_json(line) for line in whole.splitlines())


class RequestLog:
    """Reads the requests that the recorder has written to `folder`, and assigns each to the step in which it began."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin_step(self, number: int) -> None:
        """Assign requests from now on to that step."""
        # In the recorder's file, so that its order shows what came first. Both programs only append whole lines.
        with contextlib.suppress(OSError), (self._folder / _LOG).open("ab", buffering=0) as stream:
            stream.write(b'{"step": %d}\n' % number)

    def read(self, wire: ExchangeRecord | None = None, *, reads_all: bool = True) -> Traffic:
        """All requests so far. Works after the browser has died; skips a last line still being written.

        With `wire`, the guard's record, joined with the browser's; `reads_all`: it has all requests.
        """
        steps = [(-1, 0)]
        requests_by_id: dict[int, dict[str, Any]] = {}
        left_out: dict[tuple[bool, str, str], int] = {}
        acts = Acts()
        for offset, part in _lines(self._folder / _LOG):
            if "step" in part:
                steps.append((offset, part["step"]))
            elif "act" in part:
                acts.add(part["act"], steps[-1][1])
            elif "left_out" in part:
                one = part["left_out"]
                left_out[one["own"], one["method"], one["path"]] = one["count"]
            else:
                _add(requests_by_id, part, steps[-1][1])
        offsets = [offset for offset, _ in steps]
        for _, part in _lines(self._folder / _LATE):
            if "gone" in part:
                requests_by_id.pop(part["gone"], None)
            else:
                _add(requests_by_id, part, steps[bisect.bisect_left(offsets, part["at"]) - 1][1])
        parts = [requests_by_id[number] for number in sorted(requests_by_id) if "began" in requests_by_id[number]]
        ids = {part["id"] for part in parts}
        messages, counts_lost = read_messages(
            self._folder, ids, lambda at: steps[bisect.bisect_left(offsets, at) - 1][1], acts
        )
        is_pending = any(
            ("answered" in part and "ended" not in part) or part.get("body_awaited") or part.get("cause", 0) is None
            for part in parts
        )
        left = tuple(
            LeftOut(is_own=is_own, method=method, url=path, count=count)
            for (is_own, method, path), count in left_out.items()
        )
        for part in parts:
            facts = {"chain": _chain(part, requests_by_id), "messages": messages.get(part["id"])}
            part |= facts
        if wire is not None:
            parts, left = joined(parts, wire, left, reads_all=reads_all)
            unseen = sum(part.get("messages_lost", 0) for part in parts)
            counts_lost = MessagesLeftOut(own=counts_lost.own, other=counts_lost.other + unseen)
        return Traffic(
            entries=tuple(_entry(part, acts) for part in parts),
            messages_left_out=counts_lost,
            left_out=left,
            is_pending=is_pending,
            seen_by="guard" if wire and reads_all else "browser",
            unread=wire.unread() if wire and reads_all else (),
        )


def _entry(part: Mapping[str, Any], acts: Acts) -> dict[str, Any]:
    messages = part.get("messages")
    cause = acts.cause(part.get("cause"), part["began"]).model_dump(mode="json")
    return har_entry(part, part["chain"]) | {"_cause": cause} | ({"_webSocketMessages": messages} if messages else {})


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The complete lines with their places."""
    data = b""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
        data = stream.read(_MAX_BYTES)
    offset = 0
    for line in data.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield offset, json.loads(line)
        offset += len(line)


def _add(requests: dict[int, dict[str, Any]], part: Mapping[str, Any], step: int) -> None:
    """Merge a part into its entry. The step is its first line's; headers only become more."""
    entry = requests.setdefault(part["id"], {"step": step})
    fixed = {**entry.get("fixed", {}), **part.get("fixed", {})}
    entry |= part
    entry["fixed"] = fixed


def _chain(part: Mapping[str, Any], requests: Mapping[int, Mapping[str, Any]]) -> list[str] | None:
    """The addresses through which a request was redirected; `None` if one of them is missing."""
    urls = []
    at: Mapping[str, Any] | None = part
    while at is not None and "began" in at:
        urls.append(at["url"])
        before = at.get("sender", {}).get("from")
        # Ids only decrease, so this ends whatever the file contains.
        if before is None:
            return urls[::-1]
        at = requests.get(before) if before < at["id"] else None
    return None


def har_entry(part: Mapping[str, Any], chain: Sequence[str] | None) -> dict[str, Any]:
    """One request with its response as an entry of HAR 1.2. Names with an underscore are not part of the format."""
    began = part["began"]
    # `max`, because the machine's clock may have been set back meanwhile.
    ended_at = max(began, part.get("ended", part.get("answered", began)))
    answered = min(ended_at, max(began, part.get("answered", ended_at)))
    request_headers, received = part.get("headers") or (), part.get("response_headers") or ()
    entry: dict[str, Any] = {
        "startedDateTime": datetime.fromtimestamp(began / 1000, UTC).isoformat(timespec="milliseconds"),
        "time": ended_at - began,
        "request": {
            "method": part["method"],
            "url": part["url"],
            # Not recorded, but HAR requires a value; -1 stands for an unknown size.
            "httpVersion": "HTTP/1.1",
            "cookies": [cookie for text in _values(request_headers, "cookie") for cookie in _cookies(text)],
            "headers": _pairs(request_headers),
            "queryString": _pairs(_query(part["url"])),
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": {
            # An unanswered request has the status 0, as viewers expect.
            "status": part.get("status", 0),
            "statusText": part.get("status_text", ""),
            "httpVersion": "HTTP/1.1",
            # Playwright joins several `Set-Cookie` headers by line breaks.
            "cookies": [_set_cookie(line) for text in _values(received, "set-cookie") for line in text.split("\n")],
            "headers": _pairs(received),
            "content": {"size": _length(received), "mimeType": next(_values(received, "content-type"), "")},
            "redirectURL": next(_values(received, "location"), ""),
            "headersSize": -1,
            "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": answered - began, "receive": ended_at - answered},
        "_resourceType": part["type"],
        "_step": part["step"],
    }
    post = _sent_body(part)
    if post:
        sent_type = part["fixed"].get("type", "application/octet-stream")
        entry["request"] |= {"postData": {"mimeType": sent_type, "params": []}}
        _add_body(entry["request"]["postData"], post, entry["request"], "bodySize")
    if part.get("body"):
        _add_body(entry["response"]["content"], part["body"], entry["response"]["content"], "size")
    if part.get("download"):
        entry[DOWNLOAD] = True
    if part.get("frame"):
        entry["_frame"] = True
    if part.get("from_worker"):
        entry["_fromServiceWorker"] = True
    if part.get("held"):
        entry[HELD_KEY] = True
    if part.get("files"):
        entry[FILES] = part["files"]
    if part.get("files_cut"):
        entry["_filesLeftOut"] = True
    if "connection" in part:
        entry["connection"] = str(part["connection"])
    entry |= _provenance(part, chain)
    if part.get("failure"):
        entry["response"]["_error"] = part["failure"]
    return entry


def _provenance(part: Mapping[str, Any], chain: Sequence[str] | None) -> dict[str, Any]:
    """The small fields that every entry has, even if others had to be left out."""
    fixed = part["fixed"]
    known = {
        "_origin": fixed.get("origin"),
        "_fetchSite": fixed.get("site"),
        "_fetchMode": fixed.get("mode"),
        "_fetchDest": fixed.get("dest"),
        "_refererOrigin": fixed.get("referer"),
        "_methodCut": part.get("long_method"),
        "_urlCut": part.get("long_url"),
        "_headersLeftOut": "headers" not in part or part.get("headers_cut") or None,
        "_bodyDigest": part.get("digest"),
        "_bodySize": part.get("size"),
    }
    sender = sender_of(claims_of(part.get("sender", {}), fixed, chain))
    return {"_sender": sender, **{name: value for name, value in known.items() if value is not None}}


def _sent_body(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The request's body. If its size differs from what the browser sent, it belongs to another request."""
    size = _decimal(part["fixed"].get("length", ""))
    if "post" in part and size in (None, 0, part.get("size")):
        post: Mapping[str, Any] = part["post"]
        return post
    # The browser did not report it.
    return {"dropped": size} if size else None


def _add_body(target: dict[str, Any], body: Mapping[str, Any], sized: dict[str, Any], size: str) -> None:
    """Add the body's text (base64 if it is not UTF-8), or only its size if it was not recorded."""
    if "dropped" in body:
        sized[size] = body["dropped"]
        target["_truncated"] = True
    elif "text" in body:
        sized[size] = len(body["text"].encode("utf-8", "surrogatepass"))
        target["text"] = body["text"]
    else:
        sized[size] = len(body["base64"]) * 3 // 4
        target |= {"text": body["base64"], "encoding": "base64"}


def _length(headers: Any) -> int:
    return _decimal(next(_values(headers, "content-length"), "")) or 0


def _decimal(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def _values(headers: Any, name: str) -> Any:
    return (value for key, value in headers if key.lower() == name)


def _pairs(items: Any) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in items]


def _query(url: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        return []


def _cookies(text: str) -> list[dict[str, Any]]:
    pairs = (each.strip().partition("=") for each in text.split(";"))
    return [{"name": name, "value": value} for name, _, value in pairs if name]


def _set_cookie(line: str) -> dict[str, Any]:
    first, *attributes = [each.strip().partition("=") for each in line.split(";")]
    known = {name.lower(): value for name, _, value in attributes}
    cookie: dict[str, Any] = {"name": first[0], "value": first[2]}
    cookie |= {key: known[key] for key in ("path", "domain") if known.get(key)}
    return cookie | {"httpOnly": "httponly" in known, "secure": "secure" in known}
