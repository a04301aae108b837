"""An attempt's requests and console messages, grouped by the step whose action caused them."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from judge.records.sites import origin_of
from judge.trajectory.console import ConsoleMessage, read_console
from judge.trajectory.json_bodies import is_json
from judge.trajectory.network import NETWORK_FILE, Body, Entry, Pair, read_har
from judge.trajectory.record import Attempt
from shared.errors import TrajectoryError
from shared.strict_json import parse_json
from shared.text import counted

_MAX_SHOWN = 200
# The limit for headers and bodies; the file has all of them.
_MAX_BODY_CHARS = 4_000
_MIN_BODY_CHARS = 300
_MAX_DETAILS_CHARS = 1_500_000


@dataclass(frozen=True)
class NetworkView:
    """A trace: its requests by step (0: the first page). `note` says why there is none, or what is missing."""

    file: Path | None = None
    by_step: Mapping[int, Sequence[Entry]] = field(default_factory=lambda: MappingProxyType({}))
    count: int = 0
    note: str = ""
    home: object = None
    has_contents: bool = True

    def address(self, entry: Entry) -> str:
        """The request's address, without the origin if that is the task's."""
        if origin_of(entry.request.url) != self.home:
            return entry.request.url
        parts = urlsplit(entry.request.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def details(self, entry: Entry) -> tuple[tuple[str, str], ...]:
        """Headers and bodies, each with its title, cut so that the page stays usable."""
        if not self.has_contents:
            return ()
        limit = min(_MAX_BODY_CHARS, max(_MIN_BODY_CHARS, _MAX_DETAILS_CHARS // max(1, self.count)))
        texts = {
            "Request headers": _headers(entry.request.headers),
            "Request body": _body(entry.request.body),
            "Response headers": _headers(entry.response.headers),
            "Response body": _body(entry.response.body),
            "Error": entry.response.error or "",
        }
        return tuple((title, _cut(text, limit)) for title, text in texts.items() if text)

    def of_step(self, number: int) -> Sequence[Entry]:
        """The shown requests of a step; the rest are in the file."""
        return self.by_step.get(number, ())[:_MAX_SHOWN]

    def left_out(self, number: int) -> int:
        """How many requests of a step are not shown."""
        return max(0, len(self.by_step.get(number, ())) - _MAX_SHOWN)


@dataclass(frozen=True)
class ConsoleView:
    """Console messages by step (0: the first page). `dropped`: at least so many more were not recorded."""

    by_step: Mapping[int, Sequence[ConsoleMessage]] = field(default_factory=lambda: MappingProxyType({}))
    dropped: int = 0

    def of_step(self, number: int) -> Sequence[ConsoleMessage]:
        """The shown messages of a step; the rest are in the file."""
        return self.by_step.get(number, ())[:_MAX_SHOWN]

    def left_out(self, number: int) -> int:
        """How many messages of a step are not shown."""
        return max(0, len(self.by_step.get(number, ())) - _MAX_SHOWN)


def console_view(folder: Path) -> ConsoleView:
    """The console messages of an attempt, as far as they were recorded."""
    by_step: dict[int, list[ConsoleMessage]] = {}
    dropped = 0
    for message in read_console(folder):
        dropped = max(dropped, message.dropped)
        if message.level:
            by_step.setdefault(message.step, []).append(message)
    return ConsoleView(by_step, dropped)


def network_view(folder: Path, attempt: Attempt) -> NetworkView:
    """The trace of an attempt, even if damaged. Older versions recorded none; then there is no note either."""
    if attempt.network is None:
        return NetworkView(note=attempt.network_missing or "")
    path = folder / NETWORK_FILE
    try:
        # In a run from someone else, a link could point to any file of this machine.
        if path.is_symlink():
            raise TrajectoryError("a link", location=NETWORK_FILE)
        har = read_har(path)
    except TrajectoryError as error:
        return NetworkView(note=f"{Path(error.location).name}: {error.problem}")
    home = origin_of(attempt.task.website)
    by_step: dict[int, list[Entry]] = {}
    for entry in har.entries:
        by_step.setdefault(entry.step or 0, []).append(entry)
    note = f"at least {counted(har.dropped, 'more request')} went unrecorded" if har.dropped else ""
    return NetworkView(path, by_step, len(har.entries), note, home)


def _headers(headers: Sequence[Pair]) -> str:
    return "\n".join(f"{header.name}: {header.value}" for header in headers)


def _body(body: Body | None) -> str:
    """A body as text: the fields of a form, indented JSON, or a description."""
    if body is None:
        return ""
    if body.is_cut:
        return "too large to be recorded"
    if body.params:
        return "\n".join(f"{field.name}={field.value}" for field in body.params)
    if body.text is None:
        return ""
    if body.encoding is not None:
        return f"{len(body.text)} characters of {body.encoding}"
    if is_json(body.mime_type, body.text):
        with contextlib.suppress(ValueError):
            return json.dumps(parse_json(body.text), ensure_ascii=False, indent=1)
    return body.text


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… (network.har has {len(text) - limit} more characters)"
