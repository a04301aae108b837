"""Finds what looks like a credential in an archive, before it is shared. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from judge.plugins.frozen.exchanges import RecordedExchange
from judge.plugins.frozen.secrets import PLACEHOLDER
from judge.trajectory.redaction import is_secret_header, is_secret_name
from shared.text import clip, one_line

_MAX_SEARCHED_BYTES = 4_000_000
# Well-known formats of credentials.
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.(?!redacted)[\w-]{16,}")),
    ("an AWS key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}\b")),
    ("a Slack token", re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}")),
    ("a payment service key", re.compile(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("a model provider key", re.compile(r"\b(?:sk-[A-Za-z0-9_-]{20,}|AIza[\w-]{35})")),
)
# `"token": "…"` and `token=…` with a value that looks generated.
_NAMED_SECRET = re.compile(r"""["']?([A-Za-z_][\w-]{1,40})["']?\s*[:=]\s*["']([A-Za-z0-9_+/=.-]{20,200})["']""")
_HIDDEN = re.compile(r"<(?:input|meta)\b[^>]{0,600}>", re.IGNORECASE)


class Credential(NamedTuple):
    """A possible credential: where it is, what it looks like, and its first characters."""

    record: str
    url: str
    where: str
    what: str
    begins: str


def credentials_in(exchanges: Iterable[RecordedExchange]) -> list[Credential]:
    """Everything that looks like a credential, without duplicates."""
    by_key: dict[tuple[str, str], Credential] = {}
    for exchange in exchanges:
        for where, what, value in _values(exchange):
            if not PLACEHOLDER.search(value):
                url = one_line(exchange.request.url, 120)
                credential = Credential(exchange.record_id, url, where, what, clip(one_line(value), 12))
                by_key.setdefault((what, value), credential)
    return list(by_key.values())


def _values(exchange: RecordedExchange) -> Iterator[tuple[str, str, str]]:
    request, answer = exchange.request, exchange.answer
    for name, value in parse_qsl(urlsplit(request.url).query):
        if is_secret_name(name) and len(value) >= 16:
            yield "the address", f"the parameter {name}", value
    for name, value in (*request.headers, *(answer.headers if answer else ())):
        if is_secret_header(name) and name.lower() in ("authorization", "x-api-key", "x-auth-token"):
            yield "a header", f"the header {name}", value
    yield from _searched("the request", request.body)
    if answer is not None and (body := answer.decoded) is not None:
        yield from _searched("the answer", body)
    for message in exchange.messages:
        yield from _searched("a message of a socket", message.data)


def _searched(where: str, body: bytes) -> Iterator[tuple[str, str, str]]:
    text = body[:_MAX_SEARCHED_BYTES].decode("utf-8", "replace")
    for what, form in _FORMS:
        for match in form.finditer(text):
            yield where, what, match[0]
    # Tokens in forms are useless without the session of the visit.
    for match in _NAMED_SECRET.finditer(_HIDDEN.sub("", text)):
        name, value = match[1], match[2]
        is_mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
        if is_mixed and is_secret_name(name) and "csrf" not in name.lower():
            yield where, f"the value of {name}", value
