"""Removes secrets from the entries of a network trace before they are stored. Pure.

A value is a secret if the scenario lists it, because of its name in a header, a query, a form or a JSON body, or if it
is the value of a session cookie. Bodies without recognisable names are left out.
"""

import base64
import hashlib
import hmac
import html
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from judge.trajectory.forms import MAX_FIELDS, inner_json, is_form, is_multipart, multipart_fields, multipart_text
from judge.trajectory.json_bodies import is_json
from judge.trajectory.network import FILES, HELD_KEY
from shared.strict_json import parse_json

REDACTED = "[redacted]"
# Of the body of a held request that is neither JSON, a form nor plain text; binary ones are counted as base64.
MAX_OPAQUE_CHARS = 1_000_000
_SECRET_HEADER = re.compile(r"auth|token|key|secret|cookie|password|session|signature", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|pwd|credential|session|api_?key|csrf|xsrf|jwt|signature|authoriz|authent",
    re.IGNORECASE,
)
# Matched as complete words only, because they occur in other words: `key` in `keyword`.
_SECRET_WORDS = frozenset({"auth", "key", "keys", "sid", "sess", "pass", "pin", "otp", "cvv", "cvc", "sig"})
# The words of `apiKey`, `API_KEY` and `api-key`.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SESSION_COOKIE = re.compile(r"sess|sid", re.IGNORECASE)
# Preference cookies have shorter values; shorter session ids would be guessable.
_MIN_SESSION_CHARS = 16
_WITH_ADDRESS = frozenset({"referer", "location", "content-location", "refresh", "link"})
_ADDRESS = re.compile(r"https?://[^\s<>\"']+|^/\S*")
# In `{"name": "password", "value": "…"}` the name of the value is beside it.
_NAMING_KEYS = ("name", "key", "field", "id")
_TOO_MANY = MappingProxyType({"_truncated": True, "comment": "too many fields: the body was left out"})


def is_secret_name(name: str) -> bool:
    """Whether a field, a parameter or a cookie of this name has a secret value."""
    return bool(_SECRET_NAME.search(name)) or any(word.lower() in _SECRET_WORDS for word in _WORD.findall(name))


def is_secret_header(name: str) -> bool:
    """Whether a header of this name has a secret value."""
    return bool(_SECRET_HEADER.search(name))


def is_session_cookie(name: str, value: str) -> bool:
    """Whether a cookie whose name is not secret may identify a session."""
    return bool(_SESSION_COOKIE.search(name)) or len(value) >= _MIN_SESSION_CHARS


class Redaction:
    """Redacts HAR entries. `secrets` are values that must not appear anywhere.

    `keep` are names, in lower case, whose values are kept because a check compares them; `files` are the digests of the
    task's files, which are not secret. `salt` is for the digests of cookies and must not be stored with them.
    """

    def __init__(
        self, secrets: Sequence[str] = (), *, keep: Collection[str] = (), files: Collection[str] = (), salt: bytes
    ) -> None:
        self._keep = frozenset(keep)
        self._files = frozenset(files)
        self._salt = salt
        forms = [form for secret in secrets for form in _forms(secret)]
        # The longest first, so that a secret that begins with another one is replaced as a whole.
        self._secrets = re.compile("|".join(sorted(forms, key=len, reverse=True))) if forms else None

    def entry(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The entry (HAR 1.2) without secrets."""
        request, response = dict(entry["request"]), dict(entry["response"])
        request["url"] = self._address(request["url"])
        request["queryString"] = [
            {"name": pair["name"], "value": self._value(pair["name"], pair["value"])} for pair in request["queryString"]
        ]
        response["redirectURL"] = self._address(response["redirectURL"])
        for part in (request, response):
            part["headers"] = [self._header(pair["name"], pair["value"]) for pair in part["headers"]]
        for part, header in ((request, "cookie"), (response, "set-cookie")):
            part["cookies"] = [
                {**cookie, "value": self._cookie(header, cookie["name"], cookie["value"])} for cookie in part["cookies"]
            ]
        if "postData" in request:
            request["postData"] = self._body(request["postData"], is_held=bool(entry.get(HELD_KEY)))
        response["content"] = self._body(response["content"])
        redacted_entry = {**entry, "request": request, "response": response}
        if "_webSocketMessages" in entry:
            redacted_entry["_webSocketMessages"] = [self._message(message) for message in entry["_webSocketMessages"]]
        if "_bodyDigest" in entry:
            # Salted, because a short secret could be guessed from its digest.
            redacted_entry["_bodyDigest"] = self._digest(entry["_bodyDigest"])
        if FILES in entry:
            redacted_entry[FILES] = [{**file, "sha256": self._file_digest(file["sha256"])} for file in entry[FILES]]
        redacted: dict[str, Any] = self._without_secrets(redacted_entry)
        return redacted

    def _file_digest(self, sha256: str) -> str:
        # A page can put anything into a file, a password too.
        return sha256 if sha256 in self._files else self._digest(sha256)

    def _digest(self, value: str) -> str:
        return "sha256:" + hmac.new(self._salt, value.encode(), hashlib.sha256).hexdigest()[:16]

    def text(self, text: str) -> str:
        """Free text without the listed secrets and without those in addresses."""
        redacted: str = self._without_secrets(_ADDRESS.sub(lambda match: self._address(match[0]), text))
        return redacted

    def without_secrets(self, value: Any) -> Any:
        """A JSON value without the listed secrets."""
        return self._without_secrets(value)

    def _is_secret(self, name: str) -> bool:
        return name.lower() not in self._keep and is_secret_name(name)

    def _value(self, name: str, value: str) -> str:
        return REDACTED if self._is_secret(name) else value

    def _header(self, name: str, value: str) -> dict[str, str]:
        lower = name.lower()
        if lower == "cookie":
            value = "; ".join(self._cookie_pair(lower, pair) for pair in value.split(";"))
        elif lower == "set-cookie":
            value = "\n".join(self._set_cookie(line) for line in value.split("\n"))
        elif is_secret_header(name) and lower not in self._keep:
            value = REDACTED
        elif lower in _WITH_ADDRESS:
            value = _ADDRESS.sub(lambda match: self._address(match[0]), value)
        return {"name": name, "value": value}

    def _cookie_pair(self, header: str, pair: str) -> str:
        name, equals, value = pair.strip().partition("=")
        return name + equals + self._cookie(header, name, value)

    def _set_cookie(self, line: str) -> str:
        first, *attributes = line.split(";")
        return ";".join([self._cookie_pair("set-cookie", first), *attributes])

    def _cookie(self, header: str, name: str, value: str) -> str:
        """The value, or a digest if it may be a session id, so that equal sessions remain recognisable within a run.

        A cookie is kept by its own name, or by its header's.
        """
        if not value or not self._keep.isdisjoint((name.lower(), header)):
            return value
        is_session = self._is_secret(name) or is_session_cookie(name, value)
        return self._digest(value) if is_session else value

    def _address(self, url: str) -> str:
        """An address without the secrets in its query and fragment, and without a password."""
        try:
            parts = urlsplit(url)
            query, fragment = (self._pairs_text(text) for text in (parts.query, parts.fragment))
            place = parts.netloc.rpartition("@")
            user = f"{place[0].partition(':')[0]}:{REDACTED}" if ":" in place[0] else place[0]
            return urlunsplit((parts.scheme, user + place[1] + place[2], parts.path, query, fragment))
        except ValueError:
            return url.partition("?")[0].partition("#")[0]

    def _pairs_text(self, text: str) -> str:
        """`a=1&token=2` without the secret; unchanged if it contains none."""
        pieces = text.split("&")
        for place, piece in enumerate(pieces):
            name, equals, value = piece.partition("=")
            if equals and value and any(self._is_secret(each) for each, _ in parse_qsl(name + "=1")):
                pieces[place] = f"{name}={quote(REDACTED)}"
        return "&".join(pieces)

    def _body(self, body: Mapping[str, Any], *, is_held: bool = False) -> dict[str, Any]:
        """A body with named values, redacted; any other is removed, unless it is a held request's."""
        redacted_body = {key: value for key, value in body.items() if key not in ("text", "encoding", "params")}
        is_sent = "params" in body
        if is_sent:
            redacted_body["params"] = []
        text = body.get("text")
        if text is None:
            return redacted_body | ({"comment": "the body was left out"} if body.get("_truncated") else {})
        mime_type = body["mimeType"]
        if is_multipart(mime_type):
            fields = list(islice(multipart_fields(_bytes_of(body), mime_type), MAX_FIELDS + 1))
            if len(fields) > MAX_FIELDS:
                return redacted_body | _TOO_MANY
            redacted_fields = [field | {"value": self._value(field["name"], field["value"])} for field in fields]
            return redacted_body | {"params": redacted_fields, "text": multipart_text(redacted_fields, mime_type)}
        if body.get("encoding") == "base64":
            return redacted_body | (_opaque(body) if is_held else {"comment": "not UTF-8 text"})
        if is_form(mime_type):
            if text.count("&") >= MAX_FIELDS:
                return redacted_body | _TOO_MANY
            pairs = parse_qsl(text, keep_blank_values=True)
            kept_pairs = [(name, self._value(name, value)) for name, value in pairs]
            body_text = text if kept_pairs == pairs else urlencode(kept_pairs)
            return redacted_body | {
                "params": [{"name": n, "value": v} for n, v in kept_pairs] if is_sent else [],
                "text": body_text,
            }
        if is_json(mime_type, text):
            return redacted_body | self._json_body(text)
        if mime_type.lower().startswith("text/plain"):
            return redacted_body | {"text": text}
        return redacted_body | (_opaque(body) if is_held else {"comment": "left out"})

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message of a web socket, redacted like a body of plain text."""
        head, text = inner_json(message.get("data", ""))
        if not is_json("text/plain", text):
            return dict(message)
        redacted = self._json_body(text)
        rest = {key: value for key, value in message.items() if key != "data"}
        return rest | ({"data": head + redacted["text"]} if "text" in redacted else redacted)

    def _json_body(self, text: str) -> dict[str, str]:
        try:
            value = parse_json(text)
        except ValueError:
            return {"comment": "not readable as JSON"}
        redacted = self._json(value)
        return {"text": text if redacted == value else json.dumps(redacted, ensure_ascii=False)}

    def _json(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._json(item) for item in value]
        if not isinstance(value, dict):
            return value
        name = next((value[key] for key in _NAMING_KEYS if isinstance(value.get(key), str)), "")
        # Booleans are kept: a flag such as `authenticated` is not a secret.
        return {
            key: REDACTED
            if item and not isinstance(item, bool) and self._is_secret(name if key == "value" and name else key)
            else self._json(item)
            for key, item in value.items()
        }

    def _without_secrets(self, value: Any) -> Any:
        if self._secrets is None:
            return value
        if isinstance(value, str):
            return self._secrets.sub(REDACTED, value)
        if isinstance(value, Mapping):
            return {self._without_secrets(key): self._without_secrets(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._without_secrets(item) for item in value]
        return value


def _opaque(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body as it is. Nothing in it has a name, so that listed secrets alone are removed from it."""
    if len(body["text"]) > MAX_OPAQUE_CHARS:
        return {"comment": "too large to be kept", "_truncated": True}
    encoding = {"encoding": body["encoding"]} if "encoding" in body else {}
    return {"text": body["text"], "_opaque": True, **encoding}


def _bytes_of(body: Mapping[str, Any]) -> bytes:
    text: str = body["text"]
    return base64.b64decode(text) if body.get("encoding") == "base64" else text.encode("utf-8", "surrogatepass")


def _forms(secret: str) -> Iterator[str]:
    """Patterns that match a secret in a trace: each character in any encoding, or all of it in base64."""
    yield "".join(_any_of(_spellings(character)) for character in secret)
    for text in {secret, secret.strip()}:
        data = text.encode()
        for before in range(3):
            for alphabet in (b"+/", b"-_"):
                coded = base64.b64encode(bytes(before) + data, alphabet).decode().rstrip("=")
                # The first and last base64 characters also encode bits of the text around the secret.
                start = (0, 2, 3)[before]
                end = len(coded) - ((before + len(data)) % 3 != 0)
                yield "".join(_any_of(_spellings(c)) if c in "+/" else c for c in coded[start:end])


def _any_of(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(dict.fromkeys(patterns))})"


def _spellings(character: str) -> Iterator[str]:
    yield re.escape(character)
    # Percent-encoded once or several times, in upper or lower case.
    yield "".join(f"(?i:%(?:25)*{byte:02x})" for byte in character.encode())
    yield "".join(f"(?i:\\\\+u{unit:04x})" for unit in _utf16(character))
    yield re.escape(html.escape(character))
    yield f"&#(?:{ord(character)}|(?i:x0*{ord(character):x}));"
    if character == " ":
        yield r"\+"
    if character in '"\\/':
        yield r"\\+" + re.escape(character)


def _utf16(character: str) -> tuple[int, ...]:
    data = character.encode("utf-16-be", "surrogatepass")
    return tuple(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
