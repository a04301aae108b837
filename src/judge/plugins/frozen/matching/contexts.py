"""The state in which a request was made: the writes before it, and its cookies. Pure.

A server's state is not recorded, so it is approximated by what was sent to the server: the cookies, and the writes in
order, with a number for each different one. Session identifiers are left out, because they add nothing to the writes of
the session.
"""

import base64
import binascii
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from judge.network.interception import Headers, WireRequest
from judge.plugins.frozen.exchanges import Exchange, header
from judge.plugins.frozen.matching.loose import loosened
from judge.plugins.frozen.secrets import PLACEHOLDER


class Write(NamedTuple):
    """A write; `time` counts its repetitions from 1. If its effect is unknown, its number is negative, or 0."""

    number: int
    time: int = 1


# A write, or the name of a cookie.
Label = Write | str
_ANALYTICS = re.compile(
    r"(?:_ga|_gid|_gat|_gcl|_fbp|_hj|ajs_|amp_|amplitude|mp_|_pk_|optimizely|_clck|_clsk|__utm)", re.I
)
_OPAQUE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w%:+/=-]{16,}")
# `payload.time.signature` and `header.payload.signature`.
_SIGNED = re.compile(r"(\.?[\w-]{4,})\.([\w-]+)\.[\w-]+")
AUTHORIZATION = "authorization"
# The placeholder of a token. Those of passwords are shorter.
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
    seen: Counter[int] = Counter()
    found = []
    for number in numbers:
        seen[number] += 1
        found.append(Write(number, seen[number]))
    return tuple(found)


class Sessions(NamedTuple):
    """What only identifies a session: names of cookies, and values of `Authorization`."""

    cookies: frozenset[str]
    authorizations: frozenset[str]


def chosen_login(request: WireRequest) -> tuple[str, str] | None:
    """The origin and the placeholder of a login in `Authorization` that a person chose; `None` without one."""
    said = header(request.headers, AUTHORIZATION)
    if not PLACEHOLDER.fullmatch(said) or _DIGEST.fullmatch(said):
        return None
    return urlsplit(request.url).netloc, said


def session_authorizations(exchanges: Iterable[Exchange]) -> frozenset[str]:
    """Values of `Authorization` that only identify a session.

    Every walk has its own one, and began without it, so that the writes of the walk say how it was obtained.
    """
    walks: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for exchange in exchanges:
        said = header(exchange.request.headers, AUTHORIZATION)
        walks[urlsplit(exchange.request.url).netloc, exchange.walk].append(said)
    found: set[str] = set()
    for origin in {origin for origin, _ in walks}:
        in_walks = [said for (where, _), said in walks.items() if where == origin and any(map(_DIGEST.fullmatch, said))]
        values = [value for said in in_walks for value in set(said) if _DIGEST.fullmatch(value)]
        if len(values) == len(set(values)) == len(in_walks) and not any(said[0] for said in in_walks):
            found.update(values)
    return frozenset(found)


def session_cookies(exchanges: Iterable[Exchange]) -> frozenset[str]:
    """Names of cookies that only identify a session."""
    found: set[str] = set()
    for exchange in exchanges:
        for name, value in exchange.answer.headers if exchange.answer else ():
            if name.lower() == "set-cookie":
                cookie, _, content = value.partition(";")[0].strip().partition("=")
                if is_opaque(content):
                    found.add(cookie)
    return frozenset(found)


def is_opaque(value: str) -> bool:
    """Whether a cookie's value is an identifier rather than data."""
    plain = unquote(value)
    if _SIGNED.fullmatch(value) or plain[:1] in ("{", "[", '"'):
        return False
    return bool(PLACEHOLDER.fullmatch(value) or (_OPAQUE.fullmatch(value) and _data_in(value) is None))


def cookies_of(
    headers: Headers, sessions: Sessions, now_ms: int, identities: Collection[str] = frozenset()
) -> frozenset[tuple[str, str]]:
    """The cookies of a request that may reflect the state, and its `Authorization` header."""
    found = {}
    for pair in header(headers, "cookie").split(";"):
        name, equals, value = pair.strip().partition("=")
        if equals and name not in sessions.cookies and not _ANALYTICS.match(name):
            found[name] = loosened(_content(value), now_ms, identities)
    if said := header(headers, AUTHORIZATION):
        found[AUTHORIZATION] = "{session}" if said in sessions.authorizations else said
    return frozenset(found.items())


def _content(value: str) -> str:
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
        found: object = json.loads(text)
    except (ValueError, binascii.Error, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def place_key(label: Label) -> int | str:
    """The key of a label's places. Those of a write do not depend on its effect."""
    return label if isinstance(label, str) else abs(label.number)


class Places(NamedTuple):
    """Where a write or a cookie belongs: its own paths, and pages that it leads to or comes from."""

    paths: frozenset[str]
    pages: frozenset[str]

    def concern(self, path: str, prefix: int) -> bool:
        """Whether a page is likely to show changes there. `prefix`: how many leading segments all paths share."""
        if path in self.pages or len(_segments(path)) <= prefix:
            return True
        head = _segments(path)[: prefix + 1]
        return any(_segments(each)[: prefix + 1] in ([], head) for each in self.paths)


# The place of what was never recorded: the root, which concerns every address.
EVERYWHERE = Places(frozenset({"/"}), frozenset())


def shared_prefix(paths: Iterable[str]) -> int:
    """The number of leading segments that all these paths share, not counting their last ones."""
    parts = [_segments(path)[:-1] for path in paths if len(_segments(path)) > 1]
    count = 0
    for level in zip(*parts, strict=False):
        if len(set(level)) != 1:
            break
        count += 1
    return count


def path_of(url: str) -> str:
    """The path of an address."""
    return urlsplit(url).path or "/"


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]
