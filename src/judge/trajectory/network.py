"""`network.har`: the requests of an attempt as HAR 1.2, written without secrets and read with bounds.

Entries also have `_step` (the number of the action that caused the request, 0 for the first page), `_frame` (whether it
is the document of a frame), `_resourceType`, and what is known of where the request came from, which is recorded even
where headers and bodies had to be left out: `_sender` (the origin that sent it, `browser` for an address that the
judge itself opened, `null` if unknown), `_origin`, `_fetchSite`, `_fetchMode`, `_fetchDest`, `_refererOrigin`,
`_bodySize` and `_bodyDigest`. A held request is marked (`_held`), and its answer is the declared reply. One that the
browser reported only as a download is marked (`_download`) if it was answered without an error. The files in a
multipart form, which may be larger than what is recorded of a body, have digests (`_files`). A web socket's
entry has its text messages (`_webSocketMessages`). The log's `_rules` is the version of the format;
`_seenBy` says who read the requests, and `_unread` lists the connections whose content nobody could read.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from judge.records.causes import Cause
from judge.records.files import NetworkTrace
from judge.trajectory.forms import MAX_FIELDS
from shared.errors import TrajectoryError
from shared.fields import first_mistake
from shared.files import MAX_FILE_BYTES, decode, read_errors, read_json, write_atomic
from shared.strict_json import parse_json
from shared.text import counted

NETWORK_FILE = "network.har"
_RULES = 2
BROWSER = "browser"
# Of an entry: the request never left this machine (`judge.network.holding`).
HELD_KEY = "_held"
# Of an entry: the browser began to download the answer, and reported nothing else about it.
DOWNLOAD = "_download"
# Of an entry: the files in its multipart form, which only the guard reads (`judge.network.parts`).
FILES = "_files"
# Kinds of requests that are evidence for policies and goals only. The browser does not report them.
RESOURCES = frozenset({"stylesheet", "script", "image", "font", "media", "texttrack", "manifest", "preflight"})
# Who read the requests: the guard all of them, because it ended TLS; or the browser, which does not report all.
RequestSource = Literal["guard", "browser"]
# For writing and reading.
MAX_ENTRIES = 20_000
MAX_MESSAGES = 200_000
MAX_METHOD_CHARS = 100


class _Part(BaseModel):
    """A part of a HAR file. Other keys, which other programs write, are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, validate_by_name=True)


class Pair(_Part):
    """A header, or a field of a form."""

    name: str
    value: str = ""


class Body(_Part):
    """A body as stored; without `text` if it was not JSON, form or plain text, or too large.

    `params` are the fields of a form. `is_cut`: the body was too large to be recorded. `is_opaque`: it is a
    held request's, and neither JSON, a form nor plain text; base64 (`encoding`) if it is not UTF-8.
    """

    mime_type: str = Field(default="", alias="mimeType")
    text: str | None = None
    encoding: str | None = None
    params: list[Pair] = Field(default=[], max_length=MAX_FIELDS)
    is_cut: bool = Field(default=False, alias="_truncated")
    is_opaque: bool = Field(default=False, alias="_opaque")


class Request(_Part):
    """The browser's request."""

    method: str = Field(max_length=MAX_METHOD_CHARS)
    url: str
    headers: list[Pair] = Field(default=[], max_length=MAX_ENTRIES)
    body: Body | None = Field(default=None, alias="postData")


class Response(_Part):
    """The response. `status` is 0 if there was none; `error` is the reason, in the browser's words."""

    # Some programs write -1 if there was no response.
    status: Annotated[int, AfterValidator(lambda status: max(0, status))] = 0
    headers: list[Pair] = Field(default=[], max_length=MAX_ENTRIES)
    body: Body = Field(default=Body(), alias="content")
    error: str | None = Field(default=None, alias="_error")


class Message(_Part):
    """A text message of a web socket, as browsers' developer tools export it. `text` is absent if it was left out.

    `step` is the number of the action after which it was sent or received, `cause` what the page did last.
    """

    type: Literal["send", "receive"]
    text: str | None = Field(default=None, alias="data")
    step: int | None = Field(default=None, alias="_step", ge=0)
    cause: Cause | None = Field(default=None, alias="_cause")


class MessagesLeftOut(_Part):
    """How many messages of web sockets were left out: of sockets that the task's sites opened, and others."""

    own: int = Field(default=0, ge=0)
    other: int = Field(default=0, ge=0)


class SentFile(_Part):
    """A file in a multipart form. `name` names the form's field.

    `sha256` is its content's only if it is one of the task's files, and otherwise a salted digest.
    """

    name: str
    file_name: str = Field(default="", alias="fileName")
    mime_type: str = Field(default="", alias="contentType")
    size: int = Field(default=0, ge=0)
    sha256: str = ""


class Entry(_Part):
    """One request and its response. A redirect is a separate entry.

    `step` is the number of the action that caused it, 0 for the first page, `None` in another program's HAR file.
    `is_method_cut`, `is_url_cut`: only the beginning was recorded. `is_held`: it never left the judge's machine.
    `is_download`: it was answered without an error, with a status not known.
    `cause` is what started it; recordings of other programs do not say so.
    """

    started: str = Field(default="", alias="startedDateTime")
    time_ms: Annotated[float, AfterValidator(lambda time_ms: max(0.0, time_ms))] = Field(default=0.0, alias="time")
    request: Request
    response: Response = Response()
    resource_type: str = Field(default="", alias="_resourceType")
    step: int | None = Field(default=None, alias="_step", ge=0)
    is_frame: bool = Field(default=False, alias="_frame")
    sender: str | None = Field(default=None, alias="_sender")
    is_method_cut: bool = Field(default=False, alias="_methodCut")
    is_url_cut: bool = Field(default=False, alias="_urlCut")
    has_headers_left_out: bool = Field(default=False, alias="_headersLeftOut")
    is_held: bool = Field(default=False, alias=HELD_KEY)
    is_download: bool = Field(default=False, alias=DOWNLOAD)
    cause: Cause | None = Field(default=None, alias="_cause")
    files: list[SentFile] = Field(default=[], alias=FILES, max_length=MAX_FIELDS)
    has_files_left_out: bool = Field(default=False, alias="_filesLeftOut")
    messages: list[Message] = Field(default=[], alias="_webSocketMessages", max_length=MAX_MESSAGES)

    def as_http(self) -> "Entry":
        """The same request; a socket's with the address of its handshake."""
        url = as_http(self.request.url)
        return (
            self
            if url == self.request.url
            else self.model_copy(update={"request": self.request.model_copy(update={"url": url})})
        )


class LeftOut(_Part):
    """Requests of one method and path that were left out because the trace was full.

    They lie between the first and the last one, which are in the trace. Without a `url` they are of any method and
    path, at any time. `is_own`: the task's sites sent them. `count`: at least so many.
    """

    is_own: bool = Field(alias="own")
    method: str = Field(default="", max_length=MAX_METHOD_CHARS)
    url: str = ""
    count: int = Field(ge=1)


class Unread(_Part):
    """Connections to a `place` (host and port; empty if unknown) whose content the guard could not read.

    `step` is the number of the action before them.
    """

    place: str = ""
    step: int = Field(ge=0)
    count: int = Field(ge=1)


class Log(_Part):
    """The requests of an attempt. `dropped` is the number of requests that could not be recorded.

    `seen_by` is absent in recordings of other programs.
    """

    entries: list[Entry] = Field(max_length=MAX_ENTRIES)
    dropped: int = Field(default=0, alias="_dropped", ge=0)
    left_out: list[LeftOut] = Field(default=[], alias="_leftOut", max_length=MAX_ENTRIES)
    # Absent in recordings of other programs.
    messages_left_out: MessagesLeftOut | None = Field(default=None, alias="_messagesLeftOut")
    seen_by: RequestSource | None = Field(default=None, alias="_seenBy")
    unread: list[Unread] = Field(default=[], alias="_unread", max_length=MAX_ENTRIES)


class HarFile(_Part):
    """A HAR file."""

    log: Log


def as_http(url: str) -> str:
    """The address of the handshake of a web socket; any other address unchanged."""
    return f"http{url.removeprefix('ws')}" if url.startswith("ws") else url


def write_har(
    folder: Path,
    entries: Sequence[Mapping[str, Any]],
    redacted: Callable[[Mapping[str, Any]], dict[str, Any]],
    *,
    left_out: Sequence[LeftOut] = (),
    messages_left_out: MessagesLeftOut | None = None,
    seen_by: RequestSource | None = None,
    unread: Sequence[Unread] = (),
    versions: Mapping[str, str],
) -> NetworkTrace:
    """Write the entries, each of them `redacted`, atomically to the folder's `network.har`.

    The content is parsed first, so that no unreadable file is written. Raises `OSError`, or `TrajectoryError` if
    such a file cannot be made.
    """
    readable = [_readable(redacted(entry)) for entry in entries]
    counts_lost: dict[str, Any] = (
        {} if messages_left_out is None else {"_messagesLeftOut": messages_left_out.model_dump()}
    )
    counts_lost |= {"_seenBy": seen_by} if seen_by else {}
    counts_lost |= {"_unread": [one.model_dump() for one in unread]} if unread else {}
    data = _har_bytes(readable, left_out, versions, counts_lost)
    # Redaction can lengthen texts, though rarely enough to exceed the limit.
    if len(data) > MAX_FILE_BYTES or _problem_of(data):
        data = _har_bytes([_without_bodies(entry) for entry in readable], left_out, versions, counts_lost)
        if problem := _problem_of(data):
            raise TrajectoryError(problem, location=NETWORK_FILE)
    write_atomic(folder / NETWORK_FILE, data)
    return NetworkTrace(file=NETWORK_FILE, sha256=hashlib.sha256(data).hexdigest(), entries=len(readable))


def _readable(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry; without its bodies if they make it unreadable."""
    try:
        Entry.model_validate(entry)
    except ValidationError:
        return _without_bodies(entry)
    return entry


def _problem_of(data: bytes) -> str | None:
    """Why a file with this content could not be read."""
    try:
        HarFile.model_validate(parse_json(decode(data)))
    except ValidationError as error:
        return first_mistake(error)
    except ValueError as error:
        return str(error)
    return None


def _har_bytes(
    entries: Sequence[Mapping[str, Any]],
    left_out: Sequence[LeftOut],
    versions: Mapping[str, str],
    counts_lost: Mapping[str, Any],
) -> bytes:
    name, _, version = versions.get("browser", "unknown").rpartition(" ")
    log: dict[str, Any] = {
        "version": "1.2",
        "creator": {"name": "wabe", "version": versions.get("wabe", "")},
        "browser": {"name": name or "Chromium", "version": version},
        "_rules": _RULES,
        **counts_lost,
        "entries": entries,
    }
    if left_out:
        own = sum(one.count for one in left_out if one.is_own)
        others = sum(one.count for one in left_out if not one.is_own)
        note = f"at least {counted(own, 'request')} of the task's own sites and {others} of others left out"
        log |= {"comment": note, "_dropped": own + others}
        log |= {"_leftOut": [one.model_dump(by_alias=True) for one in left_out]}
    return json.dumps({"log": log}, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")


def _without_bodies(entry: Mapping[str, Any]) -> dict[str, Any]:
    request, response = dict(entry["request"]), dict(entry["response"])
    if "postData" in request:
        request["postData"] = {"mimeType": request["postData"]["mimeType"], "params": [], "_truncated": True}
    content = {key: value for key, value in response["content"].items() if key != "text"}
    shortened_entry = {**entry, "request": request, "response": {**response, "content": content | {"_truncated": True}}}
    if "_webSocketMessages" in entry:
        messages = entry["_webSocketMessages"]
        shortened_entry["_webSocketMessages"] = [
            {key: value for key, value in one.items() if key != "data"} for one in messages
        ]
    return shortened_entry


def read_har(path: Path) -> Log:
    """Read a HAR file of this or another program. Raises `TrajectoryError` naming the file and the problem."""
    with read_errors(path, kind=TrajectoryError):
        try:
            return HarFile.model_validate(read_json(path)).log
        except FileNotFoundError:
            raise TrajectoryError("no such file", location=str(path)) from None
        except ValidationError as error:
            raise TrajectoryError(f"not a HAR file: {first_mistake(error)}", location=str(path)) from None
