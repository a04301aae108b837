"""Requests that may have changed a site, for `only = true` in `request` checks, and which of them a task allows."""

from typing import Annotated, Self

from pydantic import Discriminator, Field, Tag, model_validator

from judge.records.checks import AddressPattern, IsWhole, PathValues, PatternText, Values, names_compared
from judge.records.holds import READING, Method
from judge.trajectory.network import Entry
from shared.fields import Invalid, Table

# Also WebDAV's that change nothing (RFC 4918, 3253, 5323), and what browsers ask beforehand.
SAFE = READING | {"PROPFIND", "REPORT", "SEARCH", "QUERY", "TRACE"}
_ERROR_STATUS = 400
_AGAIN_STATUSES = (307, 308)


def _is_pattern_or_table(value: object) -> str:
    return "<pattern>" if isinstance(value, str) else "<paths>"


MessagePattern = Annotated[
    Annotated[PatternText, Tag("<pattern>")] | Annotated[PathValues, Tag("<paths>")],
    Discriminator(_is_pattern_or_table),
]


class Allowed(Table):
    """What a page sends by itself, beside what the checks name. Without `method`, every method.

    Every value at a path must be the given one, or one of those in a list. With `socket`, the messages of a web socket.
    """

    method: Method | None = None
    url: AddressPattern
    query: Values | None = None
    post_data: PathValues | None = None
    status: Annotated[int, Field(ge=100, le=599), IsWhole] | None = None
    socket: Annotated[bool, Field(strict=True)] = False
    message: MessagePattern | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.socket and (self.method or self.query or self.post_data or self.status):
            raise Invalid("a web socket has messages", 'write { socket = true, url = "/live", message = "^ping$" }')
        if self.message is not None and not self.socket:
            raise Invalid("only web sockets have messages", "add socket = true", key="message")
        return self

    @property
    def is_any_message(self) -> bool:
        """Whether it allows whatever a web socket is sent."""
        return self.socket and self.message is None

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every compared value."""
        in_bodies = names_compared(self.post_data or {}) | names_compared(self.message or {})
        return in_bodies | {name.lower() for name in self.query or ()}


def may_write(entry: Entry) -> bool:
    """Whether a request may have changed the site. A refused one has not, nor has one sent on."""
    if entry.step == 0 or (entry.request.method.upper() in SAFE and not entry.is_method_cut):
        return False
    status = entry.response.status
    return entry.is_held or not (status >= _ERROR_STATUS or status in _AGAIN_STATUSES)


def is_repeated(one: Entry, other: Entry) -> bool:
    """Whether two requests with the same content are one: to the same path, and answered in the same words."""
    return _words_of(one) == _words_of(other)


def _words_of(entry: Entry) -> tuple[object, ...]:
    response = entry.response
    places = tuple(header.value for header in response.headers if header.name.lower() == "location")
    return path_of(entry.request.url), response.status, places, response.body.text, response.body.is_cut


def replaces(one: Entry, earlier: Entry) -> bool:
    """Whether a request puts something else in the place of what an earlier one had put there."""
    is_put = one.request.method == earlier.request.method == "PUT"
    return is_put and path_of(one.request.url) == path_of(earlier.request.url)


def path_of(url: str) -> str:
    """An address without its query."""
    return url.partition("#")[0].partition("?")[0]
