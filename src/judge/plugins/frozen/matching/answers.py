"""Compares recorded answers: which mean the same, and which are valid in any state. Pure."""

import hashlib
import html
import re
from collections.abc import Collection, Iterator

from judge.plugins.frozen.encodings import decoded
from judge.plugins.frozen.exchanges import Answer, Exchange, header
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.loose import comparable, token_values
from judge.plugins.frozen.matching.synthesis import is_preflight
from judge.plugins.frozen.secrets import placeholder

_TEXT = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml)|application/(?:javascript|x-ndjson)|image/svg", re.I)
_MAX_COMPARED_BYTES = 8_000_000
_MAX_AGE = re.compile(r"(?:s-maxage|max-age)\s*=\s*\"?(\d+)")
_STATIC_KINDS = frozenset({"script", "style", "image", "font", "media", "icon", "source_map", "worker"})


def fingerprint(exchange: Exchange, identities: Collection[str] = frozenset()) -> str:
    """Equal for answers that differ only in times, tokens, and identifiers other than `identities`."""
    answer = exchange.answer
    if answer is None:
        return f"failure {exchange.failure}"
    location = comparable(header(answer.headers, "location"), exchange.at_ms, identities)
    mime_type = header(answer.headers, "content-type")
    digest = hashlib.sha256(f"{answer.status}\n{location}\n{mime_type.partition(';')[0]}\n".encode())
    digest.update(_compared(answer, mime_type, exchange.at_ms, identities))
    for message in exchange.messages:
        if not message.sent:
            text = comparable(message.data.decode("latin-1"), exchange.at_ms, identities)
            digest.update(text.encode("latin-1", "replace"))
    return digest.hexdigest()


def _compared(answer: Answer, mime_type: str, at_ms: int, identities: Collection[str]) -> bytes:
    body = decoded(answer.body, header(answer.headers, "content-encoding"))
    if body is None:
        return answer.body
    if len(body) > _MAX_COMPARED_BYTES or not _TEXT.match(mime_type):
        return body
    try:
        return comparable(body.decode(), at_ms, identities).encode()
    except UnicodeDecodeError:
        return body


def holds_in_any_state(exchange: Exchange) -> bool:
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


def tokens_in(exchange: Exchange) -> Iterator[str]:
    """Placeholders of the tokens in a page's forms, as they appear in requests."""
    answer = exchange.answer
    if answer is None or not header(answer.headers, "content-type").lower().startswith(
        ("text/html", "application/xhtml")
    ):
        return
    body = decoded(answer.body, header(answer.headers, "content-encoding")) or b""
    for value in token_values(body[:_MAX_COMPARED_BYTES].decode("utf-8", "replace")):
        yield placeholder(html.unescape(value))
