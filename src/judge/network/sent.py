"""Joins the guard's record of requests with the browser's. Pure.

What was sent is what the guard saw. The browser knows what caused it: the document, the kind, the redirects. The two
have no common id, so each request of the guard's record is at most one of the browser's, by method, address, body and
order, unless headers that no page can forge, or the answers, contradict each other. What the browser did not report has
an unknown sender, but a held request has the one that such headers name.
"""

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from judge.network.senders import origin_text
from judge.network.wire import MAX_URL_CHARS, Exchange, ExchangeRecord
from judge.trajectory.forms import is_multipart
from judge.trajectory.network import MAX_ENTRIES, MAX_METHOD_CHARS, LeftOut

_MAX_ORIGIN_CHARS = 300
# A page may send any number of equal requests.
_MAX_CANDIDATES = 100
_FRAMES = frozenset({"embed", "frame", "iframe", "object"})
_NOT_MODIFIED = 304
# What must not differ, as far as both say it.
_CLAIMS = ("origin", "site", "referer", "dest")
# Of a part: what the guard knows better.
_REQUEST_PARTS = (
    "connection",
    "method",
    "long_method",
    "url",
    "long_url",
    "headers",
    "post",
    "digest",
    "size",
    "files",
    "files_cut",
)
_ANSWER = ("answered", "ended", "status", "status_text", "response_headers", "body", "held")
RequestPart = Mapping[str, Any]


def joined(
    parts: Sequence[RequestPart], wire: ExchangeRecord, left_out: Sequence[LeftOut], *, reads_all: bool
) -> tuple[list[dict[str, Any]], tuple[LeftOut, ...]]:
    """The requests of both records, as parts of entries in the order in which they began, and what was left out.

    `parts` and `left_out` are the browser's. Those that the guard did not see were not sent, if it `reads_all`: they
    came from a cache, a service worker answered them, or they were cancelled before. Otherwise they may have been sent
    with TLS, and what the browser left out on purpose is left out here as well.
    """
    reported = _BrowserRequests(parts)
    requests_by_place: dict[int, dict[str, Any]] = {}
    added = []
    for exchange in wire.exchanges():
        guard_part = _part_of(exchange)
        place = reported.take(guard_part, exchange)
        if place is not None:
            requests_by_place[place] = _completed(parts[place], guard_part, exchange)
        elif reads_all or not exchange.may_be_resource:
            added.append(guard_part)
    unsent = [place for place in range(len(parts)) if place not in requests_by_place]
    lost = set(unsent[max(0, MAX_ENTRIES - len(requests_by_place) - len(added)) :])
    merged_parts = [requests_by_place.get(place) or dict(part) for place, part in enumerate(parts) if place not in lost]
    more = (LeftOut(is_own=True, count=len(lost)),) if lost else ()
    both = wire.left_out() if reads_all else _most((*left_out, *wire.left_out(with_resources=False)))
    return _in_order(merged_parts, added), both + more


def _most(left_out: Sequence[LeftOut]) -> tuple[LeftOut, ...]:
    """For each method and path the larger number, because both records may have left out the same requests."""
    most: dict[tuple[bool, str, str], LeftOut] = {}
    for each in left_out:
        key = each.is_own, each.method, each.url
        if key not in most or most[key].count < each.count:
            most[key] = each
    return tuple(most.values())


def encoded(data: bytes) -> dict[str, str]:
    """A body as the browser's record has it."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _part_of(exchange: Exchange) -> dict[str, Any]:
    known, size, answer = exchange.browser_facts, exchange.size, exchange.answer
    fixed = {
        "origin": known.get("origin", "")[:_MAX_ORIGIN_CHARS],
        "site": known.get("site", "")[:20],
        "mode": known.get("mode", "")[:20],
        "dest": known.get("dest", "")[:30],
        "referer": (origin_text(known["referer"]) or "null") if "referer" in known else "",
        "type": known.get("type", "")[:200],
        "length": str(size) if size else "",
    }
    part: dict[str, Any] = {
        "connection": exchange.connection,
        "began": exchange.began_ms,
        "method": exchange.method[:MAX_METHOD_CHARS],
        "long_method": len(exchange.method) > MAX_METHOD_CHARS or None,
        "url": exchange.url[:MAX_URL_CHARS],
        "long_url": len(exchange.url) > MAX_URL_CHARS or None,
        "type": exchange.kind,
        "frame": fixed["dest"] in _FRAMES,
        "step": exchange.step,
        "fixed": {name: value for name, value in fixed.items() if value},
    }
    if exchange.headers is not None:
        part["headers"] = exchange.headers
    if size:
        post = {"dropped": size} if exchange.body is None else encoded(exchange.body)
        part |= {"post": post, "size": size} | ({"digest": exchange.digest} if exchange.digest else {})
    if exchange.parts:
        part |= {"files": exchange.parts.files, "files_cut": exchange.parts.left_out or None}
    if answer is not None:
        # The body of any other answer is encoded, and the browser alone decodes it.
        is_part_held = exchange.is_held and isinstance(answer.body, bytes)
        body = encoded(answer.body) if is_part_held and isinstance(answer.body, bytes) else {"dropped": 0}
        part |= {"answered": exchange.answered_ms, "status": answer.status, "status_text": answer.reason[:200]}
        part |= {"response_headers": answer.headers, "body": body if answer.body else None, "held": exchange.is_held}
    if exchange.failure:
        part["failure"] = exchange.failure[:200]
    # Of a held request nothing else is known; a referrer alone says nothing, because another site may have redirected.
    is_known = exchange.is_held and ("origin" in part["fixed"] or "site" in part["fixed"])
    part["chain"] = [part["url"]] if is_known else None
    if exchange.messages:
        part["messages"] = [
            {
                "type": "send" if one.is_from_page else "receive",
                "time": (exchange.began_ms + one.at_ms) / 1000,
                "opcode": 1,
            }
            | {"_step": step, "data": one.data.decode("utf-8", "replace")}
            for one, step in exchange.messages
        ]
    part["messages_lost"] = exchange.messages_lost
    return part


class _BrowserRequests:
    """The requests that the browser reported, each of which is at most one of the guard's."""

    def __init__(self, parts: Sequence[RequestPart]) -> None:
        self._parts = parts
        # By what must agree. The digest is `None` if the browser did not report a body.
        self._free: defaultdict[tuple[str, str, str | None], list[int]] = defaultdict(list)
        for place, part in enumerate(parts):
            # Of a form with files, the browser reports the fields only.
            is_whole = not is_multipart(part.get("fixed", {}).get("type", ""))
            self._free[part["method"], _plain(part["url"]), part.get("digest") if is_whole else None].append(place)

    def take(self, request: RequestPart, exchange: Exchange) -> int | None:
        """The place of the part that is this request: the one on which most is known to agree, the first of equals."""
        for digest in dict.fromkeys((exchange.digest, None)):
            places = self._free.get((request["method"], _plain(request["url"]), digest), [])
            best = (-1, -1)
            for place in places[:_MAX_CANDIDATES]:
                fit = _fit(request, exchange, self._parts[place])
                if fit is not None and fit > best[0]:
                    best = fit, place
                if fit == len(_CLAIMS):
                    break
            if best[1] >= 0:
                places.remove(best[1])
                return best[1]
        return None


def _plain(url: str) -> str:
    """An address as it is sent: without a fragment, and without a user's name."""
    scheme, mark, rest = url.partition("#")[0].partition("://")
    place, slash, path = rest.partition("/")
    return scheme + mark + place.rpartition("@")[2] + slash + path


def _fit(request: RequestPart, exchange: Exchange, part: RequestPart) -> int | None:
    """How many claims about the sender agree; `None` if the part is another request."""
    status, answer = part.get("status", 0), exchange.answer
    # A service worker answered it; what that sent is another request.
    if part.get("from_worker") or (status and answer and answer.status not in (status, _NOT_MODIFIED)):
        return None
    # Before the answer, the browser has not told the headers that it sent.
    claimed = part.get("fixed", {}) if status else {}
    known = [
        (request["fixed"][name], claimed[name]) for name in _CLAIMS if name in request["fixed"] and name in claimed
    ]
    return len(known) if all(one == two for one, two in known) else None


def _completed(part: RequestPart, request: RequestPart, exchange: Exchange) -> dict[str, Any]:
    """What the guard read, with what the browser knows of it."""
    parts = {name: request[name] for name in _REQUEST_PARTS if name in request}
    if exchange.size and exchange.body is None and part.get("digest"):
        parts.pop("post")
    both = {**part, **parts, "fixed": {**part.get("fixed", {}), **request["fixed"]}}
    if exchange.is_held:
        # It counts as answered, whatever the page made of the reply.
        both.pop("failure", None)
        both |= {name: request[name] for name in _ANSWER if name in request}
    return both


def _in_order(parts: Sequence[dict[str, Any]], added: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reported requests in their order, with each other one before the first that began later."""
    placed: list[dict[str, Any]] = []
    remaining = sorted(added, key=lambda each: int(each["began"]), reverse=True)
    for part in parts:
        while remaining and remaining[-1]["began"] < part["began"]:
            placed.append(remaining.pop())
        placed.append(part)
    return placed + remaining[::-1]
