"""What a scripted browser tells of its documents."""

from collections.abc import Sequence
from typing import Any

from judge.browser.session import Hop


def went(*urls: str, **about: Any) -> list[Hop]:
    """A document is requested, redirected and shown. `about` are keys of its first request."""
    frame = {key: about[key] for key in ("frame", "tab", "in_frame") if key in about}
    first = Hop(url=urls[0], **about)
    redirects = [Hop(url=url, is_redirect=True, **frame) for url in urls[1:]]
    return [first, *redirects, Hop(event="document", url=urls[-1], **frame)]


def typed(*urls: str, **about: Any) -> list[Hop]:
    """The server was asked to open an address."""
    tab = {"tab": about["tab"]} if "tab" in about else {}
    return [Hop(event="goto", url=urls[0], **tab), *went(*urls, cause="goto", **about)]


def pages_of(hops: Sequence[Hop]) -> list[tuple[str, bool]]:
    """The addresses that were requested as pages, and whether by a redirect."""
    return [(hop.url, hop.is_redirect) for hop in hops if hop.event == "request" and not hop.in_frame]
