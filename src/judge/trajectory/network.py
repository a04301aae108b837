"""`network.har`: the requests of an attempt as HAR 1.2, written without secrets and read with bounds.

Entries also have `_step` (the number of the action that caused it, 0 for the first page), `_frame` (the document of a
frame in the page), `_resourceType`, and `_sender` (the origin of the document that sent it, where it has not just been
navigated to).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.trajectory.record import NetworkTrace
from shared.errors import TrajectoryError
from shared.fields import first_mistake
from shared.files import MAX_FILE_BYTES, read_errors, read_json, write_atomic
from shared.models import Record

NETWORK_FILE = "network.har"
MAX_ENTRIES = 20_000


class Body(Record):
    """A body as it was stored; no `text` where it was left out: not JSON, form or plain text, or too large.

    `fields` are those of a form. `is_cut`: there was one, too large to be recorded.
    """

    mime_type: str = ""
    text: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False


class Entry(Record):
    """One request and its answer. A redirect is an entry of its own. `status` is 0 where no answer came.

    `step` is the number of the action that caused it, 0 for the first page, `None` in a HAR file of another program.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    post: Body | None = None
    status: int = 0
    response_headers: tuple[tuple[str, str], ...] = ()
    response: Body = Body()
    started: str = ""
    time_ms: float = 0.0
    resource_type: str = ""
    step: int | None = None
    is_frame: bool = False
    sender: str | None = None
    error: str | None = None


class Har(Record):
    """A trace. `dropped` is how many requests more there were than could be recorded."""

    entries: tuple[Entry, ...]
    dropped: int = 0


def write_har(
    folder: Path,
    entries: Sequence[Mapping[str, Any]],
    redacted: Callable[[Mapping[str, Any]], dict[str, Any]],
    *,
    dropped: int = 0,
    versions: Mapping[str, str],
) -> NetworkTrace:
    """Write the entries, each of them `redacted`, to the folder's `network.har` in one step. Raises `OSError`."""
    kept = [redacted(entry) for entry in entries]
    data = _har_bytes(kept, dropped, versions)
    if len(data) > MAX_FILE_BYTES:
        # Redaction makes texts longer, if hardly ever that much.
        data = _har_bytes([_without_bodies(entry) for entry in kept], dropped, versions)
    write_atomic(folder / NETWORK_FILE, data)
    return NetworkTrace(file=NETWORK_FILE, sha256=hashlib.sha256(data).hexdigest(), entries=len(kept))


def _har_bytes(entries: Sequence[Mapping[str, Any]], dropped: int, versions: Mapping[str, str]) -> bytes:
    name, _, version = versions.get("browser", "unknown").rpartition(" ")
    log: dict[str, Any] = {
        "version": "1.2",
        "creator": {"name": "wabe", "version": versions.get("wabe", "")},
        "browser": {"name": name or "Chromium", "version": version},
        "entries": entries,
    }
    if dropped:
        log |= {"comment": f"at least {dropped} more requests were left out", "_dropped": dropped}
    return json.dumps({"log": log}, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")


def _without_bodies(entry: Mapping[str, Any]) -> dict[str, Any]:
    request, response = dict(entry["request"]), dict(entry["response"])
    if "postData" in request:
        request["postData"] = {"mimeType": request["postData"]["mimeType"], "params": [], "_truncated": True}
    content = {key: value for key, value in response["content"].items() if key != "text"}
    return {**entry, "request": request, "response": {**response, "content": content | {"_truncated": True}}}


class _Read(BaseModel):
    """A part of a HAR file, of which only what is needed is read."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class _Pair(_Read):
    name: str
    value: str = ""


class _Body(_Read):
    mimeType: str = ""
    text: str | None = None
    encoding: str | None = None
    params: list[_Pair] = Field(default=[], max_length=MAX_ENTRIES)
    truncated: bool = Field(default=False, alias="_truncated")

    def read(self) -> Body:
        text = None if self.encoding else self.text
        fields = tuple((pair.name, pair.value) for pair in self.params)
        return Body(mime_type=self.mimeType, text=text, fields=fields, is_cut=self.truncated)


class _Request(_Read):
    method: str = Field(max_length=100)
    url: str
    headers: list[_Pair] = Field(default=[], max_length=MAX_ENTRIES)
    postData: _Body | None = None


class _Response(_Read):
    status: int = 0
    headers: list[_Pair] = Field(default=[], max_length=MAX_ENTRIES)
    content: _Body = _Body()
    error: str | None = Field(default=None, alias="_error")


class _Entry(_Read):
    startedDateTime: str = ""
    time: float = 0.0
    request: _Request
    response: _Response = _Response()
    resource_type: str = Field(default="", alias="_resourceType")
    step: int | None = Field(default=None, alias="_step", ge=0)
    frame: bool = Field(default=False, alias="_frame")
    sender: str | None = Field(default=None, alias="_sender")

    def read(self) -> Entry:
        request, response = self.request, self.response
        return Entry(
            method=request.method,
            url=request.url,
            headers=tuple((pair.name, pair.value) for pair in request.headers),
            post=request.postData.read() if request.postData else None,
            # Some programs write -1 where no answer came.
            status=max(0, response.status),
            response_headers=tuple((pair.name, pair.value) for pair in response.headers),
            response=response.content.read(),
            started=self.startedDateTime,
            time_ms=max(0.0, self.time),
            resource_type=self.resource_type,
            step=self.step,
            is_frame=self.frame,
            sender=self.sender,
            error=response.error,
        )


class _Log(_Read):
    entries: list[_Entry] = Field(max_length=MAX_ENTRIES)
    dropped: int = Field(default=0, alias="_dropped", ge=0)


class _Har(_Read):
    log: _Log


def read_har(path: Path) -> Har:
    """A HAR file of this or another program. Raises `TrajectoryError`, which names it and what is wrong with it."""
    with read_errors(path, kind=TrajectoryError):
        try:
            found = _Har.model_validate(read_json(path))
        except FileNotFoundError:
            raise TrajectoryError(f"{path}: no such file") from None
        except ValidationError as error:
            raise TrajectoryError(f"{path}: not a HAR file: {first_mistake(error)}") from None
    return Har(entries=tuple(entry.read() for entry in found.log.entries), dropped=found.log.dropped)
