"""Which addresses belong to a task's own site, by origin. Pure."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from judge.sites import ascii_host

_DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_SITE_CHARS = 300


def origin_of(url: str) -> tuple[str, int | None] | None:
    """Host and port of an http(s) address, the default ports as `None`; `None` for any other address."""
    try:
        parts = urlsplit(url)
        host, port = ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return None
    return host, None if port == _DEFAULT_PORTS[parts.scheme] else port


@dataclass(frozen=True)
class Site:
    """The task's own site: its website's origin, where that redirects before the first action, and `allowed_sites`.

    An allowed site is an origin (`https://pay.example`), or a host with everything below it (`example.org`).
    """

    home: frozenset[tuple[str, int | None]]
    allowed: tuple[str, ...] = ()

    def is_home(self, url: str) -> bool:
        """Whether an address lies on the website's own origin, to which relative addresses belong."""
        return origin_of(url) in self.home

    def holds(self, url: str) -> bool:
        """Whether an address belongs to the task's site."""
        origin = origin_of(url)
        return origin is not None and (origin in self.home or any(_allows(entry, origin) for entry in self.allowed))


def _allows(entry: str, origin: tuple[str, int | None]) -> bool:
    if "://" in entry:
        return origin_of(entry) == origin
    wanted = origin_of(f"http://{entry}")
    if wanted is None or wanted[1] != origin[1]:
        return False
    return origin[0] == wanted[0] or origin[0].endswith(f".{wanted[0]}")


def addresses_of(entry: str) -> tuple[str, ...]:
    """The addresses of an allowed site itself; hosts below a host are left out."""
    return (entry,) if "://" in entry else (f"http://{entry}", f"https://{entry}")


def is_site(entry: str) -> bool:
    """Whether it is a host (`example.org`) or an origin (`https://pay.example`), without a path."""
    scheme, mark, rest = entry.rpartition("://")
    if len(entry) > MAX_SITE_CHARS or any(char in rest for char in "/?#@*") or any(char.isspace() for char in entry):
        return False
    return origin_of(entry if mark else f"http://{rest}") is not None and (not mark or scheme in ("http", "https"))
