"""Marks held requests among those that the browser reported, and adds the ones that it did not report. Pure.

That a request was held, and what was in it, is known from the guard alone. Who sent it is taken from the browser where
it reported the request; otherwise, from headers that no page can forge. Without these, the sender is unknown.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from judge.browser.holding import HeldRequest, Holding
from judge.browser.requests import encoded, har_entry
from judge.browser.senders import origin_text
from judge.browser.session import Traffic
from judge.trajectory.network import HELD, MAX_METHOD_CHARS, LeftOut

_MAX_URL_CHARS = 8_000
_MAX_ORIGIN_CHARS = 300
_FRAMES = frozenset({"embed", "frame", "iframe", "object"})
# Of an entry: what the browser knows better. It saw the request first, and which document sent it.
_OF_BROWSER = ("startedDateTime", "_step", "_resourceType", "_frame", "_sender")
# Of an entry and of a held request: what must not differ, as far as both say it.
_CLAIMS = ("_origin", "_fetchSite", "_refererOrigin", "_fetchDest")
Entry = Mapping[str, Any]


def with_held(traffic: Traffic, holding: Holding) -> Traffic:
    """The requests of an attempt with those that were held."""
    entries: list[Entry] = list(traffic.entries)
    reported = _Reported(entries)
    added = []
    for held in holding.held:
        made = _entry_of(held)
        place = reported.take(made, held)
        if place is None:
            added.append(made)
        else:
            entries[place] = _as_reported(made, entries[place])
    left_out = traffic.left_out
    if holding.left_out:
        # Nobody knows what they were.
        left_out += (LeftOut(is_own=True, count=holding.left_out),)
    return traffic.model_copy(update={"entries": _in_order(entries, added), "left_out": left_out})


def _entry_of(held: HeldRequest) -> dict[str, Any]:
    request, answer = held.request, held.answer
    headers = {name.lower(): value for name, value in request.headers}
    fixed = {
        "origin": headers.get("origin", "")[:_MAX_ORIGIN_CHARS],
        "site": headers.get("sec-fetch-site", "")[:20],
        "mode": headers.get("sec-fetch-mode", "")[:20],
        "dest": headers.get("sec-fetch-dest", "")[:30],
        "referer": (origin_text(headers["referer"]) or "null") if "referer" in headers else "",
        "type": headers.get("content-type", "")[:200],
        "length": str(held.size) if held.size else "",
    }
    said = {name: value for name, value in fixed.items() if value}
    post = encoded(request.body) if held.has_body else {"dropped": held.size}
    is_known = "origin" in said or "site" in said
    part = {
        "began": held.at_ms,
        "method": request.method[:MAX_METHOD_CHARS],
        "long_method": len(request.method) > MAX_METHOD_CHARS or None,
        "url": request.url[:_MAX_URL_CHARS],
        "long_url": len(request.url) > _MAX_URL_CHARS or None,
        "type": _type_of(request.url, fixed),
        "frame": fixed["dest"] in _FRAMES,
        "step": request.step,
        "fixed": said,
        "headers": request.headers,
        "status": answer.status,
        "status_text": answer.reason,
        "response_headers": answer.headers,
        "body": encoded(answer.body) if isinstance(answer.body, bytes) and answer.body else None,
        **({"post": post, "digest": held.digest, "size": held.size} if held.size else {}),
    }
    # A referrer alone says nothing: another site may have redirected to this address.
    entry = har_entry(part, [request.url] if is_known else None)
    return entry | {HELD: True}


def _type_of(url: str, fixed: Mapping[str, str]) -> str:
    if url.startswith("ws"):
        return "websocket"
    if fixed["mode"] == "navigate":
        return "document"
    return "fetch" if fixed["dest"] == "empty" else fixed["dest"] or "other"


class _Reported:
    """The requests that the browser reported, each of which is at most one of the held ones."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        # By what must agree. The digest is `None` if the browser did not report the body.
        self._free: defaultdict[tuple[str, str, str | None], list[int]] = defaultdict(list)
        for place, entry in enumerate(entries):
            request = entry["request"]
            url = request["url"].partition("#")[0]
            self._free[request["method"], url, entry.get("_bodyDigest")].append(place)

    def take(self, made: Entry, held: HeldRequest) -> int | None:
        """The place of the entry that is this request: the one on which most is known to agree, the first of equals."""
        request, best = made["request"], (-1, -1)
        for digest in (held.digest, None):
            places = self._free[request["method"], request["url"], digest]
            for place in places:
                fit = _fit(made, held, self._entries[place])
                if fit is not None and fit > best[0]:
                    best = fit, place
                if fit == len(_CLAIMS):
                    break
            if best[1] >= 0:
                places.remove(best[1])
                return best[1]
        return None


def _fit(made: Entry, held: HeldRequest, entry: Entry) -> int | None:
    """How many claims about the sender agree; `None` if the entry is another request."""
    # A service worker answered it; what that sent is another request.
    if entry.get("_fromServiceWorker") or entry["response"]["status"] not in (0, held.answer.status):
        return None
    known = [(made[name], entry[name]) for name in _CLAIMS if name in made and name in entry]
    return len(known) if all(one == two for one, two in known) else None


def _as_reported(made: Mapping[str, Any], entry: Entry) -> dict[str, Any]:
    """What the guard read, with what the browser knows of it."""
    kept = {name: entry[name] for name in _OF_BROWSER if name in entry}
    # The page was gone before the browser told its headers, and without them nothing was known for sure.
    if kept.get("_sender") is None and "_fetchSite" not in entry and "_origin" not in entry:
        kept.pop("_sender", None)
    return {**made, **kept}


def _in_order(entries: Sequence[Entry], added: Sequence[Entry]) -> tuple[dict[str, Any], ...]:
    """The reported requests in their order, with each other one before the first that began later."""
    placed: list[Entry] = []
    left = sorted(added, key=lambda each: str(each["startedDateTime"]))
    for entry in entries:
        while left and str(left[0]["startedDateTime"]) < str(entry["startedDateTime"]):
            placed.append(left.pop(0))
        placed.append(entry)
    return tuple(dict(each) for each in (*placed, *left))
