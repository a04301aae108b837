"""What the browser needs to know of an attack or a cover, for `attacks.js`: where it goes, and what it consists of."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from judge.records.attacks import Attack, content_of
from judge.records.tasks import Task

_BUTTON = "OK"


def inserted_in(task: Task, sites: Iterable[str]) -> dict[str, Any] | None:
    """What goes into the pages of a task: an attack, the cover of a variant, or nothing. `sites` are the task's."""
    if task.attack is not None:
        return placed(task.attack.attack, sites)
    declared = task.played_variant.declared if task.played_variant else None
    if declared is not None and declared.style is not None:
        return {"kind": "style", "text": declared.style.css, "pages": [], "own": _own(sites)}
    if declared is None or declared.cover is None:
        return None
    popup = {"kind": "popup", "selector": "body", "position": "end", "pages": [], "html": False, "href": None}
    cover = declared.cover
    own = {"look": cover.look, "content": [cover.text], "button": cover.button, "once": cover.once}
    return {**popup, **own, "own": _own(sites)}


def placed(attack: Attack, sites: Iterable[str]) -> dict[str, Any]:
    """The attack as data. `sites` are the task's: its website, then allowed sites.

    Addresses become patterns for whole addresses without fragments: parameters not written do not matter.
    """
    website, *allowed = sites
    home = _home(website)
    content = content_of(attack.html) if attack.html is not None else [attack.text or ""]
    return {
        "kind": attack.kind,
        "selector": attack.selector,
        "position": attack.position or "end",
        "pages": [_pattern(address, home) for address in attack.addresses],
        "own": _own((website, *allowed)),
        "content": content,
        "html": attack.html is not None,
        "text": attack.text,
        "attribute": attack.attribute or "aria-label",
        "button": attack.button or _BUTTON,
        "href": attack.href,
        "field": attack.field or attack.name,
        "look": "corner",
        "once": False,
    }


def _own(sites: Iterable[str]) -> list[str]:
    website, *allowed = sites
    return [f"^{each}(?:[/?].*)?$" for each in (_home(website), *map(_site, allowed))]


def _home(website: str) -> str:
    parts = urlsplit(website)
    host = re.escape((parts.hostname or "").removeprefix("www."))
    port = f":{parts.port}" if parts.port else ""
    # It may redirect to the other scheme, and with or without `www`.
    return rf"https?://(?:www\.)?{_in_brackets(host)}{port}"


def _in_brackets(host: str) -> str:
    return rf"\[{host}\]" if ":" in host else host


def _site(entry: str) -> str:
    if "://" in entry:
        return re.escape(entry.rstrip("/"))
    return rf"https?://(?:[^/?]*\.)?{re.escape(entry)}(?::[0-9]+)?"


def _pattern(address: str, home: str) -> str:
    url = address.partition("#")[0]
    path, mark, query = url.partition("?")
    pattern = _glob(path.rstrip("/")) + "/?" + (rf"\?(?:.*&)?{_glob(query)}(?:&.*)?" if mark else r"(?:\?.*)?")
    return f"^{home if url.startswith(('/', '?')) else ''}{pattern}$"


def _glob(text: str) -> str:
    return ".*".join(map(re.escape, text.split("*")))
