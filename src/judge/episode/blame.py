"""Decides whose fault it is that the browser's process was lost.

A fault of the browser or the site aborts an attempt and excludes its task from the rates. A participant that can crash
the browser with a page of its choice could therefore get rid of any task that it is about to lose. Any document that
was open or loading, in any tab or frame, may have crashed the browser. Each of them is judged by facts that the browser
reports (`navigations.cjs`), never by what was typed:

| the document is        | whose fault                                                                               |
|------------------------|-------------------------------------------------------------------------------------------|
| on the task's site     | the site's, unless the participant named its address: itself, or by what an address that  |
|                        | it named led to                                                                           |
| elsewhere              | the participant's, unless the task's site led to that very address (see `Route.saw`)      |
|                        | before the participant first wrote anything                                               |

One document by the participant's fault is enough, because it may have been the cause. None is if another process
killed the browser.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from judge.browser.session import Hop
from judge.episode.only_tab import OnlyTab
from judge.records.sites import Site, is_off_site, origin_of, site_of
from judge.records.steps import BlameFacts, Navigation
from judge.records.tools import acts_on_page, reaches_into_frame, writes
from shared.models import Page

Party = Literal["participant", "site"]
_MAX_NAVIGATIONS = 20
# Of addresses in records.
_MAX_RECORDED_CHARS = 300
# As in `navigations.cjs`.
_MAX_ADDRESS_CHARS = 2000


@dataclass(frozen=True)
class _VisitedDocument:
    """A document shown or requested.

    `by`: who led the browser to it. `is_sites`: the task's site led there, before the participant wrote anything.
    `acts`: how often the participant had acted before. `tab`: `None` for a new tab not known yet.
    """

    address: str
    by: Party
    is_sites: bool
    acts: int
    tab: int | None
    request: int
    in_frame: bool = False


def address_of(url: str) -> str:
    """An address as it is compared: as the browser wrote it, without a fragment."""
    whole = url.partition("#")[0]
    if len(whole) <= _MAX_ADDRESS_CHARS:
        return whole
    return f"{whole[:_MAX_ADDRESS_CHARS]}#{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()}"


class Route:
    """Tracks the browser's documents through one attempt."""

    def __init__(self, website: str, site: Site) -> None:
        self._website = website
        self._site = site
        self._landed = ""
        # How often the participant has acted on a page, and whether it has written anything.
        self._acts = 0
        self._has_written = False
        self.tab = OnlyTab()
        # How many documents tabs have shown.
        self.documents = 0
        # Whether the participant's first action has been taken; until then the judge alone opens pages.
        self.has_begun = False
        self._named_addresses: set[str] = set()
        self._linked: set[str] = set()
        # By frame. A document stays until the next one of its frame has arrived.
        self._documents: dict[int, _VisitedDocument] = {}
        self._loading: dict[int, _VisitedDocument] = {}
        # Service workers outlive the page that started them.
        self._workers: dict[int, _VisitedDocument] = {}
        self._visited: set[tuple[int | None, str]] = set()
        self._is_incomplete = False
        self._is_killed = False
        # Documents of tabs that were closed since the last observation.
        self._closed: list[_VisitedDocument] = []
        self._is_elsewhere = False
        self._front = website

    @property
    def has_acted(self) -> bool:
        """Whether the participant has done anything in the browser, other than waiting or looking."""
        return self._acts > 0 or self._has_written

    @property
    def is_astray(self) -> bool:
        """Whether a tab shows, or is loading, a page elsewhere to which the participant led the browser."""
        pages = (one for one in self._live() if not one.in_frame)
        return any(one.by == "participant" and self.is_elsewhere(one.address) for one in pages)

    @property
    def is_off_site(self) -> bool:
        """Whether the browser shows, or is navigating to, another site, whoever caused it."""
        return self._is_elsewhere or self.is_astray

    def is_elsewhere(self, url: str) -> bool:
        """Whether an address is on a site that does not belong to the task."""
        return is_off_site(self._website, url, landed=self._landed) and not self._site.holds(url)

    def has_named(self, url: str) -> bool:
        """Whether the participant itself named this address, or one that led to it."""
        address = address_of(url)
        return address in self._named_addresses or any(
            one.address == address and one.by == "participant" for one in self._live()
        )

    def landed(self, page: Page) -> None:
        """Record the page that the website's address led to before any action; it counts as the task's site too."""
        self._landed = page.url

    def saw(self, page: Page) -> None:
        """Record an observed page. Before the participant wrote anything, the links of the task's site are the site's.

        The same applies to addresses to which a page of the task's site leads by itself in the meantime, and to what
        those lead to before the participant acts again: redirects, frames, scripts.
        """
        self._front = page.url
        self._closed.clear()
        self._is_elsewhere = self.is_elsewhere(page.url)
        if not self._has_written:
            self._linked.update(address_of(url) for origin, url in page.links if self._is_of_task(origin))

    def _is_of_task(self, url: str) -> bool:
        return site_of(url) is not None and not self.is_elsewhere(url)

    def acts(self, tool: str, params: Mapping[str, Any]) -> None:
        """Record an action. Call this before executing it, because the next page may break the browser immediately."""
        self.has_begun = True
        self._acts += acts_on_page(tool)
        if not writes(tool, params):
            return
        self._has_written = True
        if "url" not in params and (self.is_elsewhere(self._front) or reaches_into_frame(params)):
            # What it writes there becomes part of a page elsewhere, which is then not the site's responsibility.
            self._linked -= {one.address for one in self._live() if self.is_elsewhere(one.address)}

    def went(self, hops: Iterable[Hop]) -> tuple[Navigation, ...]:
        """Follow what happened in the browser since the last action. Returns the navigations, with who caused them."""
        return tuple(navigation for hop in hops if (navigation := self._follow(hop)) is not None)

    def _follow(self, hop: Hop) -> Navigation | None:
        self.tab.follow(hop)
        match hop.event:
            case "request":
                return self._request(hop)
            case "document":
                self._show(hop)
            case "ended":
                # The next request of the frame may be under way already.
                if (loading := self._loading.get(hop.frame)) and loading.request == hop.request:
                    del self._loading[hop.frame]
            case "gone":
                for documents in (self._documents, self._loading, self._workers):
                    documents.pop(hop.frame, None)
            case "closed":
                self._closed += [one for one in self._live() if one.tab == hop.tab]
                self._leave(hop.tab)
            case "renamed":
                self._visited.add((hop.tab, hop.url))
            case "worker" if self.is_elsewhere(hop.url):
                self._workers[hop.frame] = replace(self._document(hop, None), in_frame=True)
            case "goto" if self.has_begun:
                self._named_addresses.add(hop.url)
            case "overflow" | "lost":
                self._is_incomplete |= hop.event == "overflow"
                self._is_killed |= hop.is_killed
        return None

    def _request(self, hop: Hop) -> Navigation:
        previous = self._loading.get(hop.frame) if hop.is_redirect else None
        document = self._document(hop, previous)
        self._loading[hop.frame] = document
        self._visited.add((hop.tab, hop.url))
        if document.is_sites:
            self._linked.add(document.address)
        if document.by == "participant" and not hop.in_frame:
            self._named_addresses.add(document.address)
        if not hop.in_frame:
            self._is_elsewhere = self.is_elsewhere(hop.url)
        url = hop.url[:_MAX_RECORDED_CHARS]
        cause = None if hop.cause == "page" else hop.cause
        return Navigation(url=url, is_redirect=hop.is_redirect, by=document.by, in_frame=hop.in_frame, cause=cause)

    def _document(self, hop: Hop, previous: _VisitedDocument | None) -> _VisitedDocument:
        return _VisitedDocument(
            address=hop.url,
            by=previous.by if previous else self._led_by(hop),
            is_sites=not self._has_written and (previous.is_sites if previous else self._is_led_by_site(hop)),
            acts=self._acts,
            tab=hop.tab,
            request=hop.request,
            in_frame=hop.in_frame,
        )

    def _led_by(self, hop: Hop) -> Party:
        if hop.cause == "goto":
            return "participant" if self.has_begun else "site"
        if self._is_back(hop):
            return "participant" if hop.url in self._named_addresses else "site"
        # A frame can be meant only if the browser names its origin.
        senders = (one for one in self._senders(hop) if hop.referrer or not one.in_frame)
        return "participant" if any(map(self._leads, senders)) else "site"

    def _is_back(self, hop: Hop) -> bool:
        # A page may navigate while the server goes back, but the server only goes to where the tab has been.
        return hop.cause == "back" and (hop.tab, hop.url) in self._visited

    def _leads(self, document: _VisitedDocument) -> bool:
        """Whether the participant is to blame for where this document leads.

        A page of the task's site may offer links of its own, even if the participant named its address.
        """
        if document.by == "site":
            return False
        return self.is_elsewhere(document.address) or self._has_rested_since(document)

    def _has_rested_since(self, document: _VisitedDocument) -> bool:
        return document.acts == self._acts

    def _is_led_by_site(self, hop: Hop) -> bool:
        """Whether the task's site, rather than a page elsewhere, led there before the participant wrote anything."""
        if hop.cause == "goto":
            return not self.has_begun
        if self._is_back(hop):
            return hop.url in self._linked or not self.is_elsewhere(hop.url)
        return all(
            not self.is_elsewhere(sender.address) or (sender.is_sites and self._has_rested_since(sender))
            for sender in self._senders(hop)
        )

    def _senders(self, hop: Hop) -> list[_VisitedDocument]:
        """The documents that can have sent the request: of the origin that the browser names, else all."""
        documents = [*self._documents.values(), *self._workers.values()]
        senders = [one for one in documents if hop.referrer and origin_of(one.address) == origin_of(hop.referrer)]
        return senders or documents

    def _show(self, hop: Hop) -> None:
        # Nothing else is known about some of them, such as an error page.
        document = self._take_loading(hop) or self._document(hop, None)
        if not hop.in_frame:
            self.documents += 1
            self._leave(hop.tab, but=hop.frame)
        self._documents[hop.frame] = replace(document, tab=hop.tab, in_frame=hop.in_frame)
        self._visited.add((hop.tab, hop.url))

    def _take_loading(self, hop: Hop) -> _VisitedDocument | None:
        """The document of this address that the frame was loading, which it now no longer is."""
        # The first document of a new tab was requested before the tab was known.
        frames = (hop.frame, *(frame for frame in self._loading if frame < 0))
        for frame in frames:
            if (loading := self._loading.get(frame)) and loading.address == hop.url:
                return self._loading.pop(frame)
        return None

    def _leave(self, tab: int | None, *, but: int | None = None) -> None:
        """Forget the documents of a tab; the new document's next request may be under way already."""
        self._documents = {frame: one for frame, one in self._documents.items() if one.tab != tab}
        self._loading = {frame: one for frame, one in self._loading.items() if one.tab != tab or frame == but}

    def _live(self) -> list[_VisitedDocument]:
        return [*self._documents.values(), *self._loading.values(), *self._workers.values()]

    def decide(self, *, with_closed: bool = False) -> BlameFacts:
        """Whose fault it is that the browser's process is lost now, and the facts that decide it.

        `with_closed`: the documents of tabs that were closed since the last observation count as well, because a page
        that hangs keeps the browser busy until its tab has been replaced.
        """
        if self._is_killed:
            address = self._front[:_MAX_RECORDED_CHARS]
            return BlameFacts(
                fault="browser_lost",
                party="site",
                address=address,
                is_elsewhere=self.is_elsewhere(address),
                has_written=self._has_written,
                is_killed=True,
            )
        documents = [*self._live(), *(self._closed if with_closed else ())]
        # PageObserver before their frames.
        live = sorted(filter(self._counts, documents), key=lambda one: one.in_frame)
        guilty = next(filter(self._is_participants, live), None)
        if guilty is None and self._is_incomplete and self._has_written:
            return BlameFacts(fault="browser_lost", party="participant", has_written=True, is_incomplete=True)
        guilty_route = guilty or next(iter(live), None)
        address = guilty_route.address if guilty_route else self._front
        return BlameFacts(
            fault="browser_lost",
            party="participant" if guilty else "site",
            address=address[:_MAX_RECORDED_CHARS],
            in_frame=guilty_route.in_frame if guilty_route else False,
            is_elsewhere=self.is_elsewhere(address),
            is_named=self.has_named(address),
            is_linked=address in self._linked,
            has_written=self._has_written,
        )

    def _counts(self, document: _VisitedDocument) -> bool:
        """Whether a document may have crashed the browser.

        A page of the task's site does not count while the participant is leaving it for another one: that one does.
        """
        if document in self._loading.values() or self.is_elsewhere(document.address):
            return True
        pages = (one for one in self._loading.values() if not one.in_frame)
        return all(page.tab not in (None, document.tab) for page in pages)

    def _is_participants(self, document: _VisitedDocument) -> bool:
        if self.is_elsewhere(document.address):
            return document.address not in self._linked
        return document.by == "participant" or document.address in self._named_addresses

    def left_site(self, navigations: Sequence[Navigation]) -> bool:
        """Whether pages left the task's site, even if none arrived.

        For navigations caused by the participant every hop counts, for those caused by the site only the last one: a
        site may redirect visitors through another one, for example to log in.
        """
        pages = [each for each in navigations if not each.in_frame]
        if not self.has_begun or not pages:
            return False
        counted = [each.url for each in pages if each.by == "participant"] + [pages[-1].url]
        return any(map(self.is_elsewhere, counted))


def shortened(navigations: Sequence[Navigation]) -> tuple[Navigation, ...]:
    """The first and last navigations, pages before frames; a limit, because a page can navigate any number of times."""
    if len(navigations) > _MAX_NAVIGATIONS:
        navigations = [each for each in navigations if not each.in_frame]
    if len(navigations) <= _MAX_NAVIGATIONS:
        return tuple(navigations)
    half = _MAX_NAVIGATIONS // 2
    return (*navigations[:half], *navigations[-half:])
