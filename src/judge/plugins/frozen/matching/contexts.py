"""The state in which a request was made: the writes before it, and its cookies. Pure.

A server's state is not recorded, so it is approximated by what was sent to the server: the cookies, and the writes in
order, with a number for each different one. Session identifiers are left out, because they add nothing to the writes of
the session.
"""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from judge.network.interception import HeaderPairs, WireRequest
from judge.plugins.frozen.exchanges import header
from judge.plugins.frozen.secrets import PLACEHOLDER


class Write(NamedTuple):
    """A write; `time` counts its repetitions from 1. If its effect is unknown, its number is negative, or 0."""

    number: int
    time: int = 1


# A write, or the name of a cookie.
Label = Write | str
# `payload.time.signature` and `header.payload.signature`.
_SIGNED = re.compile(r"(\.?[\w-]{4,})\.([\w-]+)\.[\w-]+")
AUTHORIZATION = "authorization"
# The placeholder of a token. A password's is shorter.
_DIGEST = re.compile(r"redacted-[0-9a-f]{16}")


class Context(NamedTuple):
    """Writes in order, and cookies by name."""

    writes: tuple[Write, ...]
    cookies: frozenset[tuple[str, str]]


def differences(one: Context, other: Context) -> frozenset[Label]:
    """What is in only one of the contexts."""
    writes = frozenset(one.writes) ^ frozenset(other.writes)
    return writes | frozenset(name for name, _ in one.cookies ^ other.cookies)


def counted(numbers: Iterable[int]) -> tuple[Write, ...]:
    """The writes with these numbers, in this order."""
    counts: Counter[int] = Counter()
    contexts = []
    for number in numbers:
        counts[number] += 1
        contexts.append(Write(number, counts[number]))
    return tuple(contexts)


def chosen_login(request: WireRequest) -> tuple[str, str] | None:
    """The origin and the placeholder of a login in `Authorization` that a person chose; `None` without one."""
    authorization = header(request.headers, AUTHORIZATION)
    if not PLACEHOLDER.fullmatch(authorization) or _DIGEST.fullmatch(authorization):
        return None
    return urlsplit(request.url).netloc, authorization


def cookies_of(
    headers: HeaderPairs, sessions: Collection[str], credentials: Collection[str], class_of: Callable[[str], str | None]
) -> frozenset[tuple[str, str]]:
    """The cookies of a request that may reflect the state, and the headers that say who asks.

    `sessions` are names of cookies that differ in each play, `credentials` names of headers. `class_of` returns
    what a token that the site issued stands for.
    """
    cookies = {}
    for pair in header(headers, "cookie").split(";"):
        name, equals, value = pair.strip().partition("=")
        if equals and name not in sessions:
            cookies[name] = content_of(value)
    for name in credentials:
        if value := header(headers, name):
            cookies[name] = class_of(token_in(value)) or value
    return frozenset(cookies.items())


def token_in(value: str) -> str:
    """The token in a header such as `Authorization`, without its scheme."""
    return value.rpartition(" ")[2]


def content_of(value: str) -> str:
    """The payload of a signed cookie, without its time and signature."""
    signed = _SIGNED.fullmatch(value)
    if signed is None:
        return value
    header_part = _data_in(signed[1])
    if isinstance(header_part, dict) and "alg" in header_part:
        content = _data_in(signed[2])
        if isinstance(content, dict):
            return json.dumps({key: item for key, item in content.items() if key not in ("iat", "exp", "nbf", "jti")})
        return signed[2]
    return signed[1]


def _data_in(value: str) -> object:
    """The value parsed as JSON in base64; `None` if it is not."""
    try:
        text = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()
        parsed: object = json.loads(text)
    except (ValueError, binascii.Error, RecursionError):
        return None
    return parsed if isinstance(parsed, dict | list) else None


def path_of(url: str) -> str:
    """The path of an address."""
    return urlsplit(url).path or "/"
