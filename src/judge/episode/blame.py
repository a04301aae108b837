"""Attributes navigations: did the participant or the task's website cause them?

A fault of browser or site aborts an attempt and excludes its task from the rates. So a participant that can send the
browser to a page of its choice could get rid of any task that it is about to lose. Therefore each navigation is
attributed (`judge.browser.requests`), whether or not a page arrived.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal

from judge.browser.session import Hop
from judge.sites import Site, is_off_site, site_of, sites_linked_in, sites_named_in
from shared.models import Navigation, Page

Party = Literal["participant", "site"]
_PAGE_TOOLS = frozenset(
    {
        "browser_click", "browser_drag", "browser_fill_form", "browser_handle_dialog", "browser_mouse_click_xy",
        "browser_mouse_drag_xy", "browser_press_key", "browser_select_option", "browser_type",
    }
)  # fmt: skip
_BACK = "browser_navigate_back"
# A key press may go back as well: Alt+ArrowLeft.
_BACK_TOOLS = frozenset({_BACK, "browser_press_key"})
_MAX_NAVIGATIONS = 20


class Lead(Enum):
    """What last could make the browser navigate. Observing, waiting, scrolling and changing tabs cannot."""

    WEBSITE = "the website's own address, before any action"
    ADDRESS = "an address that the participant typed"
    PAGE = "an action on what the page shows, such as a link"


def chosen_by(lead: Lead, *, is_named: bool = False, is_astray: bool = False) -> Party:
    """Who caused a navigation.

    | last lead                                        | on the task's site                              | astray      |
    |--------------------------------------------------|-------------------------------------------------|-------------|
    | the website's own address                        | site                                            | -           |
    | an address the participant typed, its redirects  | participant                                     | participant |
    | an action on the page                            | site; participant if it typed that site's       | participant |
    |                                                  | address, into a field or inside another address |             |

    Astray: the participant chose to go to another site, or back to one, and since then not all of its tabs have been
    observed on the task's site.
    """
    return "participant" if lead is Lead.ADDRESS or is_named or is_astray else "site"


class Route:
    """Tracks the browser's navigations through one attempt."""

    def __init__(self, website: str, allowed_sites: Iterable[str] = ()) -> None:
        self._website = website
        self._allowed = Site(frozenset(), tuple(allowed_sites))
        self._landed = ""
        self._lead = Lead.WEBSITE
        self._named: frozenset[str] = frozenset()
        self._has_typed = self._has_strayed = False
        self._is_elsewhere = False
        # Whether the participant led the browser to another site and not all tabs have returned.
        self.is_astray = False

    @property
    def is_off_site(self) -> bool:
        """Whether the browser shows, or is navigating to, another site, whoever caused it."""
        return self._is_elsewhere or self.is_astray

    def is_elsewhere(self, url: str) -> bool:
        """Whether an address is on a site that does not belong to the task."""
        return is_off_site(self._website, url, landed=self._landed) and not self._allowed.holds(url)

    def landed(self, page: Page) -> None:
        """Record the page that the website's own address led to before any action; it counts as the task's site too."""
        self._landed = page.url

    def saw(self, page: Page) -> None:
        """Record an observed page with its tabs."""
        self._is_elsewhere = self.is_elsewhere(page.url)
        addresses = (page.url, *(tab.url for tab in page.tabs))
        # A tab without a site, such as `about:blank`, may still be on its way to one.
        if all(site_of(url) is not None and not self.is_elsewhere(url) for url in addresses):
            self.is_astray = False

    def acts(self, tool: str, params: Mapping[str, Any]) -> None:
        """Record an action. Call this before executing it, because the next page may break the browser immediately."""
        if url := params.get("url"):
            self._lead = Lead.ADDRESS
            self._has_typed = True
            self._named |= sites_named_in(url)
            self._strays(url)
        elif tool == _BACK and self._has_typed:
            # Back may lead to any earlier page, including those reached through a typed address.
            self._lead = Lead.ADDRESS
        elif tool in _PAGE_TOOLS:
            self._lead = Lead.PAGE
            self._named = self._named.union(*map(sites_linked_in, _typed_texts(params)))
        # Going back may show the other site from the browser's cache, without a request that could be attributed.
        self.is_astray |= self._has_strayed and tool in _BACK_TOOLS

    def went(self, hops: Iterable[Hop]) -> tuple[Navigation, ...]:
        """Attribute the navigations since the last action."""
        navigations = []
        for hop in hops:
            self._is_elsewhere = self.is_elsewhere(hop.url)
            is_named = self._is_elsewhere and site_of(hop.url) in self._named
            by = chosen_by(self._lead, is_named=is_named, is_astray=self.is_astray)
            if by == "participant":
                self._strays(hop.url)
            navigations.append(Navigation(url=hop.url, is_redirect=hop.is_redirect, by=by))
        return tuple(navigations)

    def has_named(self, url: str) -> bool:
        """Whether the participant itself named the site of this address."""
        return site_of(url) in self._named

    def _strays(self, url: str) -> None:
        if self.is_elsewhere(url):
            self.is_astray = self._has_strayed = True

    def left_site(self, navigations: Sequence[Navigation]) -> bool:
        """Whether navigations left the task's site, even if no page arrived.

        For navigations caused by the participant every hop counts, for those caused by the site only the last one: a
        site may redirect visitors through another one, for example to log in.
        """
        if self._lead is Lead.WEBSITE or not navigations:
            return False
        counted = [each.url for each in navigations if each.by == "participant"] + [navigations[-1].url]
        return any(map(self.is_elsewhere, counted))


def _typed_texts(params: Mapping[str, Any]) -> list[str]:
    fields = [field.get("value") for field in params.get("fields", ())]
    return [text for text in (params.get("text"), params.get("promptText"), *fields) if isinstance(text, str)]


def shortened(navigations: Sequence[Navigation]) -> tuple[Navigation, ...]:
    """The first and last navigations; a limit, because a page can navigate any number of times."""
    if len(navigations) <= _MAX_NAVIGATIONS:
        return tuple(navigations)
    half = _MAX_NAVIGATIONS // 2
    return (*navigations[:half], *navigations[-half:])
