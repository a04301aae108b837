"""What identifies a request: method, address, canonical body, `Range`, `Accept`, and what its answers vary by. Pure.

The exact key contains all of it. In the loose key, changing values are replaced by their kinds, and lists in the bodies
of queries are sorted. In the last key, all lists are sorted.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import header
from judge.plugins.frozen.matching.loose import loosened
from judge.plugins.frozen.multipart import parts_of
from judge.plugins.frozen.secrets import PLACEHOLDER
from judge.trajectory.forms import is_form, is_json, is_multipart
from shared.strict_json import parse_json

# Headers that `Vary` may name, but that do not affect the content or are handled elsewhere.
_NOT_VARYING = frozenset(
    """accept accept-encoding accept-language authorization cookie host origin range referer save-data user-agent
    sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user
    access-control-request-headers access-control-request-method *""".split()
)
# Engine.IO's parameter that contains an encoded time.
_ENGINE_IO_TIME = re.compile(r"(?<=[?&])t=[^&]*")

_GRAPHQL_COMMENT = re.compile(r"#[^\n]*")
_GRAPHQL_MUTATION = re.compile(r"(?:^|\})\s*(?:mutation|subscription)\b")


@dataclass(frozen=True)
class Key:
    """The keys of a request, most specific first."""

    full: str
    any_accept: str
    loose: str
    any_order: str


def key_of(
    request: WireRequest,
    now_ms: int,
    varying: Collection[str] = (),
    tokens: Collection[str] = frozenset(),
    identities: Collection[str] = frozenset(),
) -> Key:
    """The keys of a request; `varying` are the headers that recorded answers to this address depend on.

    `tokens` are placeholders of the per-visit tokens in recorded pages, `identities` values that a page received.
    """

    def loose_text(text: str) -> str:
        return loosened(text, now_ms, identities)

    fields = dict(fields_of(request))
    accept = fields.pop("accept", "")
    said = {name: value for name in sorted(varying) if (value := header(request.headers, name))}
    any_accept = _text({**fields, **said})
    kept = {name: value if name == "method" else loose_text(value) for name, value in fields.items()}
    kept["url"] = _without_tokens(_loose_url(kept["url"]), tokens)
    kept["body"] = _without_tokens(_loose_body(request, loose_text), tokens)
    loose = _text({**kept, **said})
    kept["body"] = _without_tokens(_loose_body(request, loose_text, in_any_order=True), tokens)
    return Key(_text({**fields, **said, "accept": accept}), any_accept, loose, _text({**kept, **said}))


def fields_of(request: WireRequest) -> Iterator[tuple[str, str]]:
    """The parts of a request that identify it, by name."""
    yield "method", request.method
    yield "url", request.url
    yield "body", canonical_body(request.body, header(request.headers, "content-type"))
    for name in ("range", "last-event-id", "accept"):
        if value := header(request.headers, name):
            yield name, value


def differing(asked: WireRequest, recorded: WireRequest) -> tuple[str, ...]:
    """The names of what differs between two requests: parameters of the address, fields of the body, headers."""
    one, other = _named(asked), _named(recorded)
    return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))


def is_write(request: WireRequest) -> bool:
    """Whether a request may change something on the site."""
    if request.method in ("GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT"):
        return False
    mime_type = header(request.headers, "content-type").lower()
    if mime_type.startswith("application/graphql") and not is_json(mime_type, ""):
        return not _is_query(request.body.decode("utf-8", "replace"))
    parsed = _parsed(request.body, mime_type) if request.body else ("", None)
    kind, value = parsed[0], parsed[1]
    operations = value if isinstance(value, list) else [value]
    return kind != "json" or not operations or not all(map(_is_graphql_query, operations))


def _is_graphql_query(operation: Any) -> bool:
    if not isinstance(operation, dict):
        return False
    query = operation.get("query")
    if isinstance(query, str) and query:
        return _is_query(query)
    # A persisted query consists of its name only.
    name = operation.get("operationName")
    return "extensions" in operation and isinstance(name, str) and name.endswith("Query")


def _is_query(text: str) -> bool:
    plain = _GRAPHQL_COMMENT.sub("", text).lstrip()
    return plain.startswith(("query", "{", "fragment")) and not _GRAPHQL_MUTATION.search(plain)


def varying_headers(vary: str) -> frozenset[str]:
    """The headers in a `Vary` that can select among representations."""
    names = {name.strip().lower() for name in vary.split(",") if name.strip()}
    return frozenset(names - _NOT_VARYING)


def canonical_body(body: bytes, mime_type: str) -> str:
    """The body as canonical text: without a boundary, and with sorted keys."""
    if not body:
        return ""
    kind, value = _parsed(body, mime_type)
    return f"{kind}:{json.dumps(value, sort_keys=True)}"


def _parsed(body: bytes, mime_type: str) -> tuple[str, Any]:
    if is_multipart(mime_type):
        parts = parts_of(body, mime_type)
        return "multipart", [[part.head.decode("latin-1"), _data(part.data)] for part in parts]
    try:
        text = body.decode()
        if is_form(mime_type):
            return "form", parse_qsl(text, keep_blank_values=True, max_num_fields=20_000)
        if is_json(mime_type or "text/plain", text):
            return "json", parse_json(text)
    except ValueError:
        pass
    return "data", _data(body)


def _data(data: bytes) -> str:
    """A short text as it is, so that its changing values are recognised; a digest of anything else."""
    if len(data) <= 2_000:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _loose_body(request: WireRequest, loose_text: Callable[[str], str], *, in_any_order: bool = False) -> str:
    if not request.body:
        return ""
    kind, value = _parsed(request.body, header(request.headers, "content-type"))
    # In a write, the order of a list may be the change itself.
    in_any_order = in_any_order or not is_write(request)
    return f"{kind}:{json.dumps(_loose(value, loose_text, in_any_order=in_any_order), sort_keys=True)}"


def _loose(value: Any, loose_text: Callable[[str], str], *, in_any_order: bool) -> Any:
    if isinstance(value, dict):
        return {loose_text(key): _loose(item, loose_text, in_any_order=in_any_order) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_loose(item, loose_text, in_any_order=in_any_order) for item in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True)) if in_any_order else items
    if isinstance(value, bool) or value is None:
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    loose = loose_text(text)
    return value if loose == text else loose


def _without_tokens(text: str, tokens: Collection[str]) -> str:
    return PLACEHOLDER.sub(lambda found: "{token}" if found[0] in tokens else found[0], text)


def _loose_url(url: str) -> str:
    return _ENGINE_IO_TIME.sub("t={time}", url) if "EIO=" in url else url


def _named(request: WireRequest) -> dict[str, str]:
    parts = urlsplit(request.url)
    named = {"method": request.method, "path": f"{parts.scheme}://{parts.netloc}{parts.path}"}
    named |= {f"query.{name}": value for name, value in parse_qsl(parts.query, keep_blank_values=True)}
    parsed = _parsed(request.body, header(request.headers, "content-type")) if request.body else ("", {})
    pairs = _pairs(*parsed)
    named |= {f"body.{name}".rstrip("."): json.dumps(item, sort_keys=True) for name, item in pairs}
    return named | {name: header(request.headers, name) for name in ("range", "last-event-id", "accept")}


def _pairs(kind: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return value.items()
    return value if kind == "form" else [("", value)]


def _text(fields: dict[str, str]) -> str:
    return json.dumps(fields, sort_keys=True)
