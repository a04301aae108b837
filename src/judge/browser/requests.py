"""Reads the browser's requests, as recorded in its folder by `navigations.cjs` (pages) and `requests.cjs` (all)."""

import asyncio
import bisect
import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from judge.browser.session import Hop, Traffic
from shared.files import read_end

NAVIGATION_RECORDER = Path(__file__).with_name("navigations.cjs")
RECORDER = Path(__file__).with_name("requests.cjs")
_DOCUMENTS = "navigations.jsonl"
_LOST = '{"event":"lost"}'
_MAX_LAST_BYTES = 65_536
_LOOK_S = 0.01
# Just above the recorder's own limit.
_MAX_BYTES = 30_000_000


async def documents_until_death(folder: Path, limit_s: float) -> None:
    """Wait until the recorder in `folder` has written everything that happened before the browser died."""
    for _ in range(round(limit_s / _LOOK_S)):
        if _LOST in read_end(folder / _DOCUMENTS, _MAX_LAST_BYTES):
            break
        await asyncio.sleep(_LOOK_S)


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
        # A last line that is still being written is left for the next call.
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return tuple(Hop.model_validate_json(line) for line in whole.splitlines())


class RequestLog:
    """Reads the requests that the recorder has written to `folder`, and assigns each to the step in which it began."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "requests.jsonl"
        # The file position at which each step's action began, by step number; 0 is the opening of the first page.
        self._began = [0]
        self._steps = [0]

    def begin_step(self, number: int) -> None:
        """Assign requests from now on to that step."""
        size = 0
        with contextlib.suppress(OSError):
            size = self._path.stat().st_size
        self._began.append(size)
        self._steps.append(number)

    def read(self) -> Traffic:
        """All requests so far. Works after the browser has died; skips a last line that is still being written."""
        data = b""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as stream:
            data = stream.read(_MAX_BYTES)
        found: dict[int, dict[str, Any]] = {}
        dropped = offset = 0
        for line in data.splitlines(keepends=True):
            if line.endswith(b"\n"):
                part = json.loads(line)
                dropped = part.get("dropped", dropped)
                if "id" in part:
                    # The step in which the request began: only its first line counts.
                    step = self._steps[bisect.bisect_right(self._began, offset) - 1]
                    entry = found.setdefault(part["id"], {"step": step})
                    entry |= part
            offset += len(line)
        entries = tuple(_har_entry(part) for part in found.values() if "began" in part)
        is_pending = any("answered" in part and "ended" not in part for part in found.values())
        return Traffic(entries=entries, dropped=dropped, is_pending=is_pending)


def _har_entry(part: Mapping[str, Any]) -> dict[str, Any]:
    """One request with its response as an entry of HAR 1.2. Names with an underscore are not part of the format."""
    began = part["began"]
    # `max`, because the machine's clock may have been set back meanwhile.
    ended = max(began, part.get("ended", part.get("answered", began)))
    answered = min(ended, max(began, part.get("answered", ended)))
    sent, received = part.get("headers") or (), part.get("response_headers") or ()
    entry: dict[str, Any] = {
        "startedDateTime": datetime.fromtimestamp(began / 1000, UTC).isoformat(timespec="milliseconds"),
        "time": ended - began,
        "request": {
            "method": part["method"],
            "url": part["url"],
            # Not recorded, but HAR requires a value; -1 stands for an unknown size.
            "httpVersion": "HTTP/1.1",
            "cookies": [cookie for text in _values(sent, "cookie") for cookie in _cookies(text)],
            "headers": _pairs(sent),
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
        "timings": {"send": 0, "wait": answered - began, "receive": ended - answered},
        "_resourceType": part["type"],
        "_step": part["step"],
    }
    # The browser does not report the body of a form that contains a file.
    post = part.get("post") or ({"dropped": size} if (size := _length(sent)) else None)
    if post:
        sent_type = next(_values(sent, "content-type"), "application/octet-stream")
        entry["request"] |= {"postData": {"mimeType": sent_type, "params": []}}
        _add_body(entry["request"]["postData"], post, entry["request"], "bodySize")
    if part.get("body"):
        _add_body(entry["response"]["content"], part["body"], entry["response"]["content"], "size")
    if part.get("frame"):
        entry["_frame"] = True
    if part.get("from_worker"):
        entry["_fromServiceWorker"] = True
    if part.get("sender") is not None:
        entry["_sender"] = part["sender"]
    if part.get("failure"):
        entry["response"]["_error"] = part["failure"]
    if part.get("long_url"):
        entry["comment"] = "the address was cut"
    return entry


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
    text = next(_values(headers, "content-length"), "")
    return int(text) if text.isdecimal() and len(text) < 16 else 0


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
