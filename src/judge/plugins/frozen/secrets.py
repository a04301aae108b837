"""Removes secrets from recordings, and from later requests in the same way, so that both match. Pure.

The rules are as for `network.har`. Each value is replaced by a placeholder that depends only on the value: a digest
for a long value, which cannot be guessed, and one byte of a slow digest for a password. One byte nearly always tells a
wrong password from the right one, and is far too little to recover it.

Bodies of answers and what sockets receive stay as they are, because pages work with them, except in log-ins, and where
they contain a secret of the scenario.
"""

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import (
    RecordedExchange,
    RecordedResponse,
    RecordedSocketMessage,
    header,
    without_headers,
)
from judge.trajectory.forms import Part, inner_json, is_form, is_multipart, mark_of, parts_of
from judge.trajectory.json_bodies import is_json
from judge.trajectory.redaction import is_secret_header, is_secret_name, is_session_cookie
from shared.strict_json import parse_json

PLACEHOLDER = re.compile(r"redacted-[0-9a-f]{2,16}")
# Names of fields whose values people choose.
_PASSWORD = re.compile(r"passw|pwd|passphrase|secret|credential", re.IGNORECASE)
_PASSWORD_WORDS = re.compile(r"(?:^|[^a-z])(?:pass|pin|otp|cvv|cvc)(?:$|[^a-z])", re.IGNORECASE)
# Shorter values of a field such as `key` are names: `?key=profile`.
_MIN_TOKEN_CHARS = 16
# Signed data: a JSON web token, or the session of a framework.
_SIGNED = re.compile(r"((?:eyJ|\.eJ)[\w-]+\.[\w-]+)\.[\w-]+")
_BASIC = re.compile(r"basic\s", re.IGNORECASE)
_DIGEST_LOGIN = re.compile(r"digest\s", re.IGNORECASE)
_DIGEST_PARTS = re.compile(r'\b(username|realm)="([^"]*)"')
# The names look secret, but the browser needs the values.
_NEEDED_HEADERS = frozenset({"www-authenticate", "proxy-authenticate", "authentication-info"})
_HANDSHAKE = "sec-websocket-"


@functools.lru_cache(maxsize=1_000)
def _slow(value: str) -> str:
    return hashlib.scrypt(value.encode("utf-8", "surrogatepass"), salt=b"wabe", n=2**14, r=8, p=1, dklen=1).hex()


def placeholder(value: str, *, is_chosen: bool = False) -> str:
    """The placeholder of a secret. `is_chosen`: a person chose the value, so it could be guessed from a digest."""
    if not value or PLACEHOLDER.fullmatch(value):
        return value
    if is_chosen or len(value) < _MIN_TOKEN_CHARS:
        return f"redacted-{_slow(value)}"
    if token := _SIGNED.fullmatch(value):
        # Pages read the payload. Without its signature, it is useless.
        ending = value.rpartition(".")[2]
        return f"{token[1]}.{placeholder(ending)}"
    return "redacted-" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_password(name: str) -> bool:
    """Whether a person chooses the value of a field of this name."""
    return bool(_PASSWORD.search(name) or _PASSWORD_WORDS.search(name))


class Secrets:
    """Replaces secrets. `listed` are values that must not appear anywhere."""

    def __init__(self, values: Sequence[str] = ()) -> None:
        self._values = sorted({value for value in values if value}, key=len, reverse=True)

    def request(self, request: WireRequest) -> WireRequest:
        """The request without secrets. Idempotent."""
        mime_type = header(request.headers, "content-type")
        return replace(
            request,
            url=self.address(request.url),
            headers=tuple((name, self._header(name, value)) for name, value in request.headers),
            body=self._unlisted(self._body(request.body, mime_type)),
        )

    def exchange(self, exchange: RecordedExchange) -> RecordedExchange:
        """The exchange without secrets."""
        request = self.request(exchange.request)
        answer = exchange.answer
        messages = {message: self._message(message) for message in exchange.messages if message.is_from_page}
        is_login = request.body != exchange.request.body or bool(header(request.headers, "authorization"))
        logs_in = any(message != masked for message, masked in messages.items())
        return replace(
            exchange,
            request=request,
            answer=None if answer is None else self._answer(answer, is_login=is_login, lasts=bool(exchange.chunks)),
            messages=tuple(
                self._message(each) if each.is_from_page or logs_in else replace(each, data=self._unlisted(each.data))
                for each in exchange.messages
            ),
        )

    def address(self, url: str) -> str:
        """The address without secret values in its query, and without a password."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return self._text(url)
        pieces = parts.query.split("&")
        for place, piece in enumerate(pieces):
            name, equals, value = piece.partition("=")
            if equals and (masked := _value(name, value)) != value:
                pieces[place] = f"{name}={masked}"
        query = "&".join(pieces)
        place_of = parts.netloc.rpartition("@")
        if query == parts.query and not place_of[1]:
            # Not reassembled, because that would drop an empty query.
            return self._text(url)
        return self._text(urlunsplit((parts.scheme, place_of[2], parts.path, query, parts.fragment)))

    def message(self, data: bytes, *, is_text: bool) -> bytes:
        """A message of a socket without secrets."""
        if not is_text:
            return self._unlisted(data)
        head, text = inner_json(data.decode("utf-8", "replace"))
        if not is_json("text/plain", text):
            return self._unlisted(data)
        masked = _json_text(text)
        return self._unlisted(data if masked is None else (head + masked).encode("utf-8", "surrogatepass"))

    def _message(self, message: RecordedSocketMessage) -> RecordedSocketMessage:
        return replace(message, data=self.message(message.data, is_text=message.is_text))

    def _answer(self, answer: RecordedResponse, *, is_login: bool, lasts: bool) -> RecordedResponse:
        headers = tuple((name, self._header(name, value)) for name, value in answer.headers)
        body = None if lasts else self._answered(answer, is_login=is_login)
        if body is None:
            return replace(answer, headers=headers)
        other_headers = without_headers(headers, "content-encoding", "content-length", "etag", "content-md5", "digest")
        return replace(
            answer, headers=(*other_headers, ("Content-Length", str(len(body)))), body=body, is_redacted=True
        )

    def _answered(self, answer: RecordedResponse, *, is_login: bool) -> bytes | None:
        """The body without secrets, decoded; `None` if it has none."""
        body = answer.decoded
        if body is None:
            return None
        masked = body
        mime_type = header(answer.headers, "content-type")
        if is_login and is_json(mime_type, ""):
            masked = self._body(body, mime_type)
        masked = self._unlisted(masked)
        return None if masked == body else masked

    def _header(self, name: str, value: str) -> str:
        lower = name.lower()
        if lower in _NEEDED_HEADERS or lower.startswith(_HANDSHAKE):
            return value
        if lower == "cookie":
            return "; ".join(_cookie_pair(pair) for pair in value.split(";"))
        if lower == "set-cookie":
            first, semicolon, attributes = value.partition(";")
            can_be_read = "httponly" not in attributes.lower()
            return _cookie_pair(first, only_secret=can_be_read) + semicolon + attributes
        if _DIGEST_LOGIN.match(value) and lower.endswith("authorization"):
            # Everything else in it changes with each request.
            who = dict(_DIGEST_PARTS.findall(value))
            return placeholder(f"digest login of {who.get('username', '')} in {who.get('realm', '')}")
        if is_secret_header(name):
            scheme, space, token = value.rpartition(" ")
            if space and not _BASIC.match(value):
                # A token issued anew in an answer is recognised only without its scheme.
                return f"{scheme} {placeholder(token)}"
            return placeholder(value, is_chosen=bool(_BASIC.match(value)))
        return self.address(value) if lower in ("referer", "location", "content-location") else self._text(value)

    def _body(self, body: bytes, mime_type: str) -> bytes:
        """The body without secret values; the same object if it has none."""
        if not body:
            return body
        if is_multipart(mime_type):
            parts = parts_of(body, mime_type)
            masked_parts = [
                part if part.is_file else replace(part, data=_value(part.name, part.text).encode("utf-8", "replace"))
                for part in parts
            ]
            # Compared as text: secrets are UTF-8.
            changed = [part for part, old in zip(masked_parts, parts, strict=True) if part.text != old.text]
            return written_parts(masked_parts, mime_type) if changed else body
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return body
        if is_form(mime_type):
            pairs = parse_qsl(text, keep_blank_values=True)
            masked = [(name, _value(name, value)) for name, value in pairs]
            return body if masked == pairs else urlencode(masked).encode()
        if is_json(mime_type or "text/plain", text):
            masked_text = _json_text(text)
            return body if masked_text is None else masked_text.encode("utf-8", "surrogatepass")
        return body

    def _text(self, text: str) -> str:
        for secret in self._values:
            if secret in text:
                text = text.replace(secret, placeholder(secret, is_chosen=True))
        return text

    def _unlisted(self, body: bytes) -> bytes:
        for secret in self._values:
            if (secret_bytes := secret.encode("utf-8", "surrogatepass")) in body:
                body = body.replace(secret_bytes, placeholder(secret, is_chosen=True).encode())
        return body


def _value(name: str, value: str) -> str:
    if is_password(name):
        return placeholder(value, is_chosen=True)
    return placeholder(value) if is_secret_name(name) and len(value) >= _MIN_TOKEN_CHARS else value


def _cookie_pair(pair: str, *, only_secret: bool = False) -> str:
    name, equals, value = pair.strip().partition("=")
    is_secret = is_secret_name(name) or (not only_secret and is_session_cookie(name, value))
    return name + equals + (placeholder(value) if is_secret else value)


def _json_text(text: str) -> str | None:
    """The JSON text without secret values; `None` if it has none, or is not readable."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    masked = _json(value)
    return None if masked == value else json.dumps(masked, ensure_ascii=False, separators=(",", ":"))


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _value(key, item) if isinstance(item, str) else _json(item) for key, item in value.items()}


def written_parts(parts: Iterable[Part], mime_type: str) -> bytes:
    """The body of these parts."""
    mark = (mark_of(mime_type) or b"\r\n--").removeprefix(b"\r\n")
    pieces = [mark + b"\r\n" + part.head + b"\r\n\r\n" + part.data + b"\r\n" for part in parts]
    return b"".join(pieces) + mark + b"--\r\n"
