"""Classifies requests by their headers, and says how much a miss of each kind matters. Pure."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from judge.network.interception import HeaderPairs, WireRequest
from judge.plugins.frozen.exchanges import SOCKET_SCHEMES, header
from judge.records.ledger import MissClass

RequestKind = Literal[
    "document", "frame", "script", "style", "image", "font", "media", "fetch", "socket", "event_stream", "worker",
    "prefetch", "beacon", "report", "icon", "source_map", "other",
]  # fmt: skip

_BY_DESTINATION: Mapping[str, RequestKind] = MappingProxyType(
    {
        "document": "document", "iframe": "frame", "frame": "frame", "embed": "frame", "object": "frame",
        "fencedframe": "frame", "script": "script", "style": "style", "xslt": "style", "image": "image",
        "font": "font", "audio": "media", "video": "media", "track": "media", "worker": "worker",
        "sharedworker": "worker", "serviceworker": "worker", "audioworklet": "worker", "paintworklet": "worker",
        "report": "report", "manifest": "other", "empty": "fetch", "websocket": "socket", "json": "script",
    }
)  # fmt: skip
# Over plain HTTP, a browser sends only `Accept`.
_BY_ENDING: tuple[tuple[re.Pattern[str], RequestKind], ...] = (
    (re.compile(r"\.(?:js|mjs|cjs)$", re.IGNORECASE), "script"),
    (re.compile(r"\.css$", re.IGNORECASE), "style"),
    (re.compile(r"\.(?:woff2?|ttf|otf|eot)$", re.IGNORECASE), "font"),
    (re.compile(r"\.(?:mp4|webm|ogg|ogv|mp3|wav|m4a|flac|vtt)$", re.IGNORECASE), "media"),
    (re.compile(r"\.(?:png|jpe?g|gif|webp|avif|svg|bmp)$", re.IGNORECASE), "image"),
)
_ICON = re.compile(r"/(?:favicon[^/]*\.(?:ico|png|svg)|apple-touch-icon[^/]*\.png)$", re.IGNORECASE)
_SOURCE_MAP = re.compile(r"\.(?:js|css|mjs)\.map$", re.IGNORECASE)
_HARMLESS = frozenset({"prefetch", "beacon", "report", "icon", "source_map"})
_COSMETIC = frozenset({"image", "font", "media"})
# What a browser shows by itself.
DOCUMENTS = frozenset[str]({"document", "frame"})
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


def kind_of(request: WireRequest) -> RequestKind:
    """What the request is for."""
    parts = urlsplit(request.url)
    if parts.scheme in SOCKET_SCHEMES:
        return "socket"
    headers = request.headers
    if _SOURCE_MAP.search(parts.path):
        return "source_map"
    if request.method == "GET" and _ICON.search(parts.path):
        return "icon"
    purpose = f"{header(headers, 'purpose')} {header(headers, 'sec-purpose')}".lower()
    if "prefetch" in purpose or "prerender" in purpose:
        return "prefetch"
    if "text/event-stream" in header(headers, "accept").lower():
        return "event_stream"
    destination = header(headers, "sec-fetch-dest").lower()
    if destination == "empty" or (not destination and request.method == "POST"):
        return "beacon" if _is_beacon(request) else _kind_of_page_request(request, destination)
    if known := _BY_DESTINATION.get(destination):
        return known
    return _guessed(parts.path, headers)


def _is_beacon(request: WireRequest) -> bool:
    headers = request.headers
    mime_type = header(headers, "content-type").lower()
    if mime_type.startswith(("application/csp-report", "application/reports+json")):
        return True
    # `navigator.sendBeacon` and `<a ping>`; both have the lowest priority and the mode `no-cors`.
    return mime_type.startswith("text/ping") or (
        request.method == "POST" and header(headers, "sec-fetch-mode").lower() == "no-cors"
    )


def _kind_of_page_request(request: WireRequest, destination: str) -> RequestKind:
    if destination or header(request.headers, "x-requested-with"):
        return "fetch"
    return _guessed(urlsplit(request.url).path, request.headers)


def _guessed(path: str, headers: HeaderPairs) -> RequestKind:
    accept = header(headers, "accept").lower()
    if accept.startswith("text/html"):
        return "document"
    if accept.startswith("image/"):
        return "image"
    if accept.startswith("text/css"):
        return "style"
    if header(headers, "service-worker"):
        return "worker"
    return next((kind for ending, kind in _BY_ENDING if ending.search(path)), "fetch")


def miss_class(request: WireRequest, kind: RequestKind) -> MissClass:
    """How much it matters if a request has no recorded answer."""
    if kind in _HARMLESS:
        return "harmless"
    return "cosmetic" if kind in _COSMETIC and request.method in _READS else "decisive"
