"""What the browser needs to know of an attack, for `attacks.js`: where it goes, and what it consists of."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from judge.records.attacks import Attack, content_of

_BUTTON = "OK"


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
        "own": [f"^{each}(?:[/?].*)?$" for each in (home, *map(_site, allowed))],
        "content": content,
        "html": attack.html is not None,
        "text": attack.text,
        "attribute": attack.attribute or "aria-label",
        "button": attack.button or _BUTTON,
        "href": attack.href,
        "field": attack.field or attack.name,
    }


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
