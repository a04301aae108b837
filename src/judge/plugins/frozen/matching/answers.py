"""Compares recorded answers: which mean the same, and which are valid in any state. Pure."""

import hashlib
import re

from judge.plugins.frozen.exchanges import RecordedExchange, header
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.plays import Gap, text_of, without_gaps
from judge.plugins.frozen.matching.synthesis import is_preflight

_MAX_AGE = re.compile(r"(?:s-maxage|max-age)\s*=\s*\"?(\d+)")
_STATIC_KINDS = frozenset({"script", "style", "image", "font", "media", "icon", "source_map", "worker"})


def fingerprint(exchange: RecordedExchange, gaps: frozenset[Gap] = frozenset()) -> str:
    """Equal for answers that differ at gaps only, where they also differ between two plays."""
    answer = exchange.answer
    if answer is None:
        return f"failure {exchange.failure}"
    location = without_gaps(header(answer.headers, "location"), gaps)
    mime_type = header(answer.headers, "content-type").partition(";")[0]
    text = text_of(exchange)
    body = answer.readable if text is None else without_gaps(text, gaps).encode("utf-8", "surrogatepass")
    return hashlib.sha256(f"{answer.status}\n{location}\n{mime_type}\n".encode() + body).hexdigest()


def holds_in_any_state(exchange: RecordedExchange) -> bool:
    """Whether the server allows its answer to be reused, by the rules of a browser's cache.

    Without caching headers, only answers that are usually files, with a date or an `ETag`.
    """
    answer = exchange.answer
    if is_preflight(exchange.request):
        # It has no cookies, and says what the site allows.
        return True
    if answer is None or exchange.request.method != "GET" or answer.status not in (200, 203, 206, 301, 304, 308):
        return False
    control = header(answer.headers, "cache-control").lower()
    if "cookie" in header(answer.headers, "vary").lower() or "no-store" in control:
        return False
    if (age := _MAX_AGE.search(control)) and "no-cache" not in control:
        return int(age[1]) > 0
    if "immutable" in control:
        return True
    has_version = any(header(answer.headers, name) for name in ("last-modified", "etag"))
    return has_version and kind_of(exchange.request) in _STATIC_KINDS and not header(answer.headers, "set-cookie")
