"""Decides who sent a request, from what the browser itself reported about it. Pure.

If a document sent the request, that document is known. A navigation replaces its document, and any other document may
have caused it; some documents are known only to their creator. These cases are decided by headers that no page can
forge: `Origin`, `Sec-Fetch-Site`, `Referer`. If the facts contradict each other, the sender is unknown. The protocol's
`initiator` is not used: it names the scripts that ran, and a script chooses its own name.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from judge.records.sites import origin_of
from judge.trajectory.network import BROWSER
from shared.models import Record

_OPAQUE = "null"


class Claims(Record):
    """What is known about a request's sender. `None`: not reported.

    `chain` are the origins of the addresses that it was sent to, redirects included, the last one its own; `None` if a
    redirect was not recorded. `only` is the origin of all documents that were ever open, if there is one. `is_guess`: a
    document other than `document` may have sent it.
    """

    is_judges: bool = False
    is_navigation: bool = False
    document: str | None = None
    is_guess: bool = False
    is_srcdoc: bool = False
    only: str | None = None
    origin: str | None = None
    site: str | None = None
    referer: str | None = None
    chain: tuple[str, ...] | None = ()


def origin_text(url: str) -> str | None:
    """The origin of an http(s) address, as browsers write it; `None` for any other address."""
    host, port = origin_of(url) or ("", None)
    host_text = f"[{host}]" if ":" in host else host
    return f"{urlsplit(url).scheme}://{host_text}{'' if port is None else f':{port}'}" if host else None


def claims_of(facts: Mapping[str, Any], headers: Mapping[str, Any], chain: Sequence[str] | None) -> Claims:
    """The claims in the recorder's notes; `chain` are the addresses that the request was sent to."""
    claims = {"document": facts.get("document"), "only": facts.get("only")}
    claims |= {name: headers.get(name) for name in ("origin", "referer")}
    return Claims(
        is_judges=facts.get("judge", False),
        is_navigation=facts.get("navigation", False),
        is_guess=facts.get("guess", False),
        is_srcdoc=facts.get("srcdoc", False),
        site=headers.get("site"),
        chain=None if chain is None else tuple(origin_text(url) or "" for url in chain),
        **{name: None if url is None else origin_text(url) or _OPAQUE for name, url in claims.items()},
    )


def sender_of(claims: Claims) -> str | None:
    """The origin that sent the request, `BROWSER` for an address that the judge itself opened, or `None`: unknown."""
    if claims.chain is None:
        return None
    if claims.is_judges:
        # A page cannot pass for the judge by opening an address at the same moment: its request's headers would show
        # it.
        return BROWSER if claims.origin is None else None
    origins = _reported_origins(claims)
    if len(origins) > 1:
        return None
    sender = next(iter(origins), None) or claims.only
    if sender is None or sender == _OPAQUE or not _is_consistent(claims, sender):
        return None
    return sender


def _reported_origins(claims: Claims) -> set[str]:
    """The origins reported as the sender."""
    named = {each for each in (claims.origin, claims.referer) if each not in (None, _OPAQUE)}
    if claims.site == "same-origin":
        named |= set(claims.chain or ())
    # A guess counts only if something else confirms it.
    is_known = not claims.is_guess or named or claims.only == claims.document
    if claims.document is not None and is_known:
        named.add(claims.document)
    return {each for each in named if each is not None}


def _is_consistent(claims: Claims, sender: str) -> bool:
    """Whether `Sec-Fetch-Site`, `Origin` and the redirects fit a request by that sender."""
    *earlier, _ = claims.chain or ("",)
    # Another site chose the address.
    if any(hop != sender for hop in earlier):
        return False
    is_to_itself = all(hop == sender for hop in claims.chain or ())
    # The content of a sandboxed `srcdoc` document is its parent's, but the browser sends it with an opaque origin.
    is_sandboxed = claims.is_srcdoc and claims.origin in (None, _OPAQUE) and claims.site in (None, "cross-site")
    if claims.origin == _OPAQUE and claims.site != "same-origin" and not is_sandboxed:
        return False
    match claims.site:
        case None:
            return True
        case "same-origin":
            return is_to_itself
        case "same-site" | "cross-site":
            return not is_to_itself or is_sandboxed
    # `none`: no page was involved, but the judge did not open it either.
    return False
