"""Requests that never leave this machine (`hold`, `writes = "hold"`): which ones, and the reply that the page gets.

How they are held: `judge.network.holding`.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from judge.records.checks import AddressPattern, IsWhole, PatternText
from shared.fields import AnyText, Invalid, Line, Table, at_most, printable

MAX_HOLDS = 50
# Requests that change nothing (RFC 9110, 9.2.1), as browsers write them. A page can also send other methods in lower
# case, and what a site makes of those is unknown.
READING = frozenset({"GET", "HEAD", "OPTIONS"})
Writes = Literal["hold"]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _leads_nowhere(status: int) -> int:
    if 300 <= status < 400:
        raise Invalid(f"{status} is a redirect, and a held reply has no address", "use 200 and the page that follows")
    return status


def _is_type(value: str) -> str:
    if not re.fullmatch(r"[\w.+-]+/[\w.+-]+(?:\s*;[ -~]*)?", value, re.ASCII):
        raise Invalid(f"{printable(value)} is not a content type", 'write it like type = "text/html"')
    return value


Method = Annotated[str, Field(pattern=r"^[A-Z]{1,20}$"), BeforeValidator(_upper)]


class Hold(Table):
    """Requests to be held, and the reply to them. `ends`: such a request ends the attempt.

    Without `method`, every method that may change something. A relative `url` is that path on every host, because a
    website may redirect to another one.
    """

    method: Method | None = None
    url: AddressPattern
    status: Annotated[int, Field(ge=200, le=599), IsWhole, AfterValidator(_leads_nowhere)] = 200
    body: Annotated[AnyText, at_most(100_000)] | None = None
    type: Annotated[Line, at_most(200), AfterValidator(_is_type)] | None = None
    ends: Annotated[bool, Field(strict=True)] = False


class AllowedWrite(Table):
    """Requests that `writes = "hold"` lets through. `pattern` (RE2) must be found in the body.

    A relative `url` belongs to the website's origin.
    """

    method: Method | None = None
    url: AddressPattern
    pattern: PatternText | None = None


Holds = Annotated[tuple[Hold, ...], at_most(MAX_HOLDS)]
AllowedWrites = Annotated[tuple[AllowedWrite, ...], at_most(MAX_HOLDS)]


def misplaced_key(writes: Writes | None, allow_writes: tuple[AllowedWrite, ...], allow_sockets: bool) -> str | None:
    """The first key that needs `writes = "hold"` and does not have it."""
    if writes is not None:
        return None
    return "allow_writes" if allow_writes else "allow_sockets" if allow_sockets else None
