"""What identifies a request: method, address, canonical body, `Range`, `Accept`, and what its answers vary by. Pure."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse, header
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.binary import data_content
from judge.trajectory.forms import is_form, is_multipart, parts_of
from judge.trajectory.json_bodies import is_json
from judge.trajectory.redaction import is_secret_header
from shared.strict_json import parse_json

# Headers that `Vary` may name, but that do not affect the content or are handled elsewhere.
_NOT_VARYING = frozenset(
    """accept accept-encoding accept-language authorization cookie host origin range referer save-data user-agent
    sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user
    access-control-request-headers access-control-request-method *""".split()
)
_MAX_KEY_CHARS = 4_000
_NO_WRITES = frozenset({"beacon", "report", "prefetch", "icon", "source_map"})
# Words in links with side effects, which sites should not have, but many do.
_VERBS = re.compile(
    r"(?:^|[/_?&=.-])(?:add|remove|delete|del|log_?out|log_?in|sign_?out|sign_?in|toggle|save|update|set|unset|create|buy"
    r"|vote|like|reset|clear|switch|enable|disable|subscribe|unsubscribe|mark|move|copy|undo|accept|dismiss)(?:$|[/_?&=.-])",
    re.IGNORECASE,
)
# Headers that browsers set themselves. All others are the page's, which may say with them what it wants.
_OF_BROWSERS = re.compile(
    r"(?:accept|sec|if|content|access-control|device|viewport|proxy|x-forwarded)-.*|accept|authorization|cache-control"
    r"|connection|cookie|date|dnt|downlink|dpr|ect|expect|forwarded|from|host|keep-alive|last-event-id|origin|pragma"
    r"|priority|purpose|range|referer|rtt|save-data|service-worker.*|te|trailer|transfer-encoding|upgrade.*|user-agent"
    r"|via|x-requested-with",
    re.IGNORECASE,
)
_GRAPHQL_COMMENT = re.compile(r"#[^\n]*")
_GRAPHQL_MUTATION = re.compile(r"(?:^|\})\s*(?:mutation|subscription)\b")


class Keys(NamedTuple):
    """The keys of a request: with and without its `Accept` header."""

    full: str
    any_accept: str


def keys_of(request: WireRequest, varying: Collection[str] = ()) -> Keys:
    """The keys of a request; `varying` are the headers that recorded answers to this address depend on."""
    fields = dict(fields_of(request))
    accept = fields.pop("accept", "")
    fields |= {name: value for name in sorted(varying) if (value := header(request.headers, name))}
    return Keys(json.dumps({**fields, "accept": accept}, sort_keys=True), json.dumps(fields, sort_keys=True))


def fields_of(request: WireRequest) -> Iterator[tuple[str, str]]:
    """The parts of a request that identify it, by name."""
    yield "method", request.method
    yield "url", request.url
    yield "body", canonical_body(request.body, header(request.headers, "content-type"))
    for name in ("range", "last-event-id", "accept"):
        if value := header(request.headers, name):
            yield name, value
    yield from page_headers(request).items()


def page_headers(request: WireRequest) -> dict[str, str]:
    """The headers that the page set itself, but for those that say who asks."""
    return {
        name.lower(): header(request.headers, name.lower())
        for name, _ in request.headers
        if not _OF_BROWSERS.fullmatch(name) and not is_secret_header(name)
    }


def differing(request: WireRequest, recorded: WireRequest) -> tuple[str, ...]:
    """The names of what differs between two requests: parameters of the address, fields of the body, headers."""
    one, other = _values_by_place(request), _values_by_place(recorded)
    return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))


def is_write(request: WireRequest) -> bool:
    """Whether a request may change something on the site."""
    if request.method in ("GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT"):
        return False
    mime_type = header(request.headers, "content-type").lower()
    if mime_type.startswith("application/graphql") and not is_json(mime_type, ""):
        return not _is_query(request.body.decode("utf-8", "replace"))
    parsed = parsed_body(request.body, mime_type) if request.body else ("", None)
    kind, value = parsed[0], parsed[1]
    operations = value if isinstance(value, list) else [value]
    return kind != "json" or not operations or not all(map(_is_graphql_query, operations))


def is_recorded_write(exchange: RecordedExchange) -> bool:
    """Whether the exchange may have changed something on the site."""
    request, answer = exchange.request, exchange.answer
    if exchange.is_socket or kind_of(request) in _NO_WRITES:
        return False
    return is_write(request) or (answer is not None and is_writing_link(request, answer))


def is_writing_link(request: WireRequest, answer: RecordedResponse) -> bool:
    """Whether a link has side effects: it redirects, and its address contains such a word."""
    return answer.status in (302, 303, 307) and request.method == "GET" and names_effect(request)


def names_effect(request: WireRequest) -> bool:
    """Whether the address of a request has a word of links with side effects."""
    return _VERBS.search(request.url.partition("://")[2].partition("/")[2]) is not None


def _is_graphql_query(operation: Any) -> bool:
    if not isinstance(operation, dict):
        return False
    query = operation.get("query")
    # A persisted query consists of its digest only, and of that nobody knows what it does.
    return isinstance(query, str) and _is_query(query)


def _is_query(text: str) -> bool:
    plain = _GRAPHQL_COMMENT.sub("", text).lstrip()
    return plain.startswith(("query", "{", "fragment")) and not _GRAPHQL_MUTATION.search(plain)


def varying_headers(vary: str) -> frozenset[str]:
    """The headers in a `Vary` that can select among representations."""
    names = {name.strip().lower() for name in vary.split(",") if name.strip()}
    return frozenset(names - _NOT_VARYING)


def canonical_body(body: bytes, mime_type: str) -> str:
    """The body as canonical text: without a boundary, and with sorted keys. A digest of a long one."""
    if not body:
        return ""
    kind, value = parsed_body(body, mime_type)
    text = json.dumps(value, sort_keys=True)
    return f"{kind}:{text if len(text) <= _MAX_KEY_CHARS else hashlib.sha256(text.encode()).hexdigest()}"


def parsed_body(body: bytes, mime_type: str) -> tuple[str, Any]:
    """What kind of body it is, and its content."""
    if is_multipart(mime_type):
        parts = parts_of(body, mime_type)
        return "multipart", [[part.head.decode("latin-1"), data_content(part.data)] for part in parts]
    try:
        text = body.decode()
        if is_form(mime_type):
            return "form", parse_qsl(text, keep_blank_values=True, max_num_fields=20_000)
        if is_json(mime_type or "text/plain", text):
            return "json", parse_json(text)
    except ValueError:
        pass
    return "data", data_content(body)


def _values_by_place(request: WireRequest) -> dict[str, str]:
    parts = urlsplit(request.url)
    values = {"method": request.method, "path": f"{parts.scheme}://{parts.netloc}{parts.path}"}
    values |= {f"query.{name}": value for name, value in parse_qsl(parts.query, keep_blank_values=True)}
    parsed = parsed_body(request.body, header(request.headers, "content-type")) if request.body else ("", {})
    pairs = _pairs(*parsed)
    values |= {f"body.{name}".rstrip("."): json.dumps(item, sort_keys=True) for name, item in pairs}
    fixed = {name: header(request.headers, name) for name in ("range", "last-event-id", "accept")}
    return values | fixed | page_headers(request)


def _pairs(kind: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return value.items()
    return value if kind == "form" else [("", value)]
