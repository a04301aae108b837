"""Detects bot walls and CAPTCHAs shown instead of a page. Pure.

Prefers false negatives: a missed wall is a failure that somebody will investigate, but a page mistaken for a wall would
remove its task from the rates. So the HTTP status must be a refusal, and the page must say that it is a wall or show
only a challenge. A form that contains a CAPTCHA is a normal page.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from shared.models import Page

WALL_STATUSES = frozenset({403, 429, 503})
# A page with more controls than this is a normal page.
_MAX_CONTROLS = 10
_TITLES = {
    "a Cloudflare challenge": r"just a moment\.{3}|attention required! \| cloudflare"
    r"|access denied \| .* used cloudflare .*",
    "a PerimeterX challenge": r"access to this page has been denied\.?",
    "an Imperva challenge": r"pardon our interruption(\.{3})?",
    "an AWS WAF challenge": r"human verification",
    "a DDoS-Guard challenge": r"ddos-guard",
    "a check for robots": r"(robot or human|are you (a )?(robot|human))\?"
    r"|verify(ing)? (that )?you are (a )?human\.{0,3}",
}
_TEXTS = {
    "an Akamai refusal": r"https?://errors\.edgesuite\.net/",
    "a check for robots": r"(make sure|confirm|verify|prove)( that)? you( are|'{1,2}re|’re) (not a robot|(a )?human)\b"
    r"|unusual traffic from your computer network",
}
# Where the frames of challenges come from: host (with subdomains) and the beginning of the path.
_FRAMES = {
    "a Cloudflare challenge": (("challenges.cloudflare.com", "/"),),
    "a reCAPTCHA": (("google.com", "/recaptcha/"), ("recaptcha.net", "/recaptcha/")),
    "an hCaptcha": (("hcaptcha.com", "/"),),
    "a DataDome challenge": (("captcha-delivery.com", "/"),),
    "a PerimeterX challenge": (("px-cloud.net", "/"), ("perimeterx.net", "/"), ("px-captcha.com", "/")),
    "an AWS WAF challenge": (("awswaf.com", "/"),),
}
_CONTROL = re.compile(r"- (?:link|button|checkbox|radio|combobox|listbox|textbox|searchbox|menuitem|tab|slider)\b")
_FIELD = re.compile(r"- (?:combobox|textbox|searchbox)\b")
_FRAME = re.compile(r"- iframe\b")


def wall_on(page: Page, frames: Iterable[str]) -> str:
    """What blocks the page, in words; empty if nothing does. `frames` are the addresses of the page's frames."""
    if page.http_status not in WALL_STATUSES:
        return ""
    title = " ".join(page.title.split())
    if wall := next((name for name, words in _TITLES.items() if re.fullmatch(words, title, re.IGNORECASE)), ""):
        return wall
    lines = list(_outside_frames(page.snapshot))
    if sum(map(bool, map(_CONTROL.match, lines))) > _MAX_CONTROLS:
        return ""
    text = "\n".join(lines)
    if wall := next((name for name, words in _TEXTS.items() if re.search(words, text, re.IGNORECASE)), ""):
        return wall
    if any(map(_FIELD.match, lines)):
        return ""
    urls = tuple(frames)
    return next((name for name, places in _FRAMES.items() if any(_is_at(url, places) for url in urls)), "")


def _outside_frames(snapshot: str) -> Iterator[str]:
    """The snapshot's lines without indentation and without the content of frames."""
    frame_indent: int | None = None
    for line in snapshot.splitlines():
        rest = line.lstrip(" ")
        indent = len(line) - len(rest)
        if frame_indent is not None and indent > frame_indent:
            continue
        frame_indent = indent if _FRAME.match(rest) else None
        yield rest


def _is_at(url: str, places: Iterable[tuple[str, str]]) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return any(f".{host}".endswith(f".{name}") and parts.path.startswith(path) for name, path in places)
