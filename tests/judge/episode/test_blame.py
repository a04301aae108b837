"""Whose fault it is that a browser is lost: of the documents that were open or loading."""

from typing import Any

import pytest

from helpers.browser.hops import typed, went
from judge.browser.session import Hop
from judge.episode.blame import Route, address_of, shortened
from judge.records.sites import Site
from judge.records.steps import Navigation
from shared.models import Page

HOME = "https://shop.example/"
OTHER = "https://other.example/"
THIRD = "https://third.example/"
CLICK: tuple[str, dict[str, Any]] = ("browser_click", {"target": "e1"})
TYPE: tuple[str, dict[str, Any]] = ("browser_type", {"target": "e1", "text": "desk"})
BACK: tuple[str, dict[str, Any]] = ("browser_navigate_back", {})
WAIT: tuple[str, dict[str, Any]] = ("browser_wait_for", {"time": 1})

Event = tuple[str, dict[str, Any]] | list[Hop] | Page


def going(url: str) -> tuple[str, dict[str, Any]]:
    return "browser_navigate", {"url": url}


def page_at(url: str, *links: str, origin: str = "") -> Page:
    return Page(url=url, title="", snapshot="", links=tuple((origin or url, link) for link in links))


def routed(*events: Event) -> Route:
    """A route that began on the home page, with actions, what the browser told, and observations."""
    route = Route(HOME, Site(frozenset()).with_home(HOME))
    for event in (typed(HOME), page_at(HOME), *events):
        if isinstance(event, Page):
            route.saw(event)
        elif isinstance(event, list):
            route.went(event)
        else:
            route.acts(*event)
    return route


def party(*events: Event) -> str:
    return routed(*events).decide().party


# -- on the task's site --


def test_a_page_of_the_tasks_site_is_the_sites_fault() -> None:
    assert party(CLICK, went(f"{HOME}a")) == "site"


def test_an_address_of_the_tasks_site_that_the_participant_named_is_its_own_fault() -> None:
    assert party(going(f"{HOME}a"), typed(f"{HOME}a")) == "participant"


def test_the_target_of_its_redirect_is_allowed_as_well() -> None:
    assert party(going(f"{HOME}a"), typed(f"{HOME}a", f"{HOME}b")) == "participant"


def test_so_is_where_a_script_of_that_page_leads_by_itself() -> None:
    assert party(going(f"{HOME}a"), typed(f"{HOME}a"), WAIT, went(f"{HOME}b")) == "participant"


def test_a_link_of_that_page_is_the_sites_again() -> None:
    assert party(going(f"{HOME}a"), typed(f"{HOME}a"), CLICK, went(f"{HOME}b")) == "site"


@pytest.mark.parametrize("way", [{"cause": "back"}, {}], ids=["by the browser", "by a button of the site"])
def test_going_back_to_an_address_that_it_named_is_its_own_fault(way: dict[str, Any]) -> None:
    to_b = (going(f"{HOME}a"), typed(f"{HOME}a"), CLICK, went(f"{HOME}b"))
    assert party(*to_b, BACK if way else CLICK, went(f"{HOME}a", **way)) == "participant"


def test_going_back_from_elsewhere_to_a_page_of_the_site_is_the_sites_fault() -> None:
    assert party(going(OTHER), typed(OTHER), BACK, went(HOME, cause="back")) == "site"


def test_a_page_that_navigates_while_the_browser_goes_back_is_not_taken_for_a_page_gone_back_to() -> None:
    assert party(going(OTHER), typed(OTHER), BACK, went(f"{HOME}trap", cause="back")) == "participant"


@pytest.mark.parametrize("action", [WAIT, CLICK], ids=["by itself", "by a link"])
def test_a_page_elsewhere_that_it_named_leads_back_on_its_account(action: tuple[str, dict[str, Any]]) -> None:
    assert party(going(OTHER), typed(OTHER), action, went(f"{HOME}a")) == "participant"


# -- elsewhere --


def test_a_page_elsewhere_is_the_participants_fault() -> None:
    assert party(TYPE, CLICK, went(OTHER)) == "participant"


def test_unless_the_tasks_site_had_its_address_before_it_wrote_anything() -> None:
    assert party(page_at(HOME, OTHER), TYPE, CLICK, went(OTHER)) == "site"


def test_a_link_that_came_after_it_wrote_something_is_not_an_excuse() -> None:
    assert party(TYPE, page_at(HOME, OTHER), CLICK, went(OTHER)) == "participant"


def test_a_link_in_a_document_of_another_site_is_not_an_excuse() -> None:
    assert party(page_at(HOME, OTHER, origin=THIRD), TYPE, CLICK, went(OTHER)) == "participant"


@pytest.mark.parametrize("origin", ["null", ""])
def test_a_link_in_a_document_with_an_opaque_origin_is_not_an_excuse(origin: str) -> None:
    page = Page(url=HOME, title="", snapshot="", links=((origin, OTHER),))
    assert party(page, TYPE, CLICK, went(OTHER)) == "participant"


def test_only_that_very_address_counts() -> None:
    assert party(page_at(HOME, OTHER), TYPE, CLICK, went(f"{OTHER}trap")) == "participant"


def test_where_the_site_led_before_it_wrote_anything_is_the_sites() -> None:
    led = (CLICK, went(f"{HOME}out", f"{THIRD}count", OTHER))
    assert party(*led) == "site"
    assert party(CLICK, went(f"{HOME}a"), WAIT, CLICK, went(OTHER)) == "site"
    assert party(*led, CLICK, went(HOME), TYPE, CLICK, went(OTHER)) == "site"


def test_so_is_where_a_page_to_which_the_site_led_goes_by_itself() -> None:
    assert party(CLICK, went(OTHER), WAIT, went(THIRD)) == "site"


def test_a_link_of_a_page_elsewhere_is_the_choice_of_the_participant() -> None:
    assert party(CLICK, went(OTHER), CLICK, went(THIRD, referrer="https://other.example")) == "participant"


def test_a_link_of_the_site_beside_a_frame_from_elsewhere_is_the_sites() -> None:
    framed = (went(THIRD, frame=1, in_frame=True, referrer="https://shop.example"), CLICK)
    assert party(*framed, went(OTHER, referrer="https://shop.example")) == "site"


@pytest.mark.parametrize("referrer", ["https://third.example", ""])
def test_a_link_that_can_be_of_a_frame_from_elsewhere_is_the_choice_of_the_participant(referrer: str) -> None:
    framed = (went(THIRD, frame=1, in_frame=True, referrer="https://shop.example"), CLICK)
    assert party(*framed, went(OTHER, referrer=referrer)) == "participant"


def test_what_it_writes_into_a_page_elsewhere_makes_that_page_its_own() -> None:
    assert party(page_at(HOME, OTHER), CLICK, went(OTHER), page_at(OTHER), TYPE) == "participant"


# -- which documents count --


def test_a_frame_counts_like_a_page() -> None:
    assert party(TYPE, CLICK, went(f"{HOME}a"), went(OTHER, frame=1, in_frame=True)) == "participant"


def test_a_frame_that_was_removed_does_not_count() -> None:
    framed = (TYPE, went(OTHER, frame=1, in_frame=True))
    assert party(*framed, [Hop(event="gone", frame=1)]) == "site"
    assert party(*framed, CLICK, went(f"{HOME}a")) == "site"


def test_a_page_in_another_tab_counts_until_it_is_closed() -> None:
    opened = (("browser_tabs", {"action": "new", "url": OTHER}), typed(OTHER, frame=1, tab=1))
    assert party(*opened) == "participant"
    assert party(*opened, [Hop(event="closed", tab=1)]) == "site"


def test_a_service_worker_counts_until_it_ends() -> None:
    visited = (going(OTHER), typed(OTHER), [Hop(event="worker", frame=5, url=f"{OTHER}worker.js")])
    left = (*visited, BACK, went(HOME, cause="back"))
    assert party(*left) == "participant"
    assert party(*left, [Hop(event="gone", frame=5)]) == "site"


def test_while_a_page_is_loading_the_one_in_front_counts_as_well() -> None:
    assert party(going(OTHER), typed(OTHER), BACK, [Hop(url=HOME, cause="back")]) == "participant"
    assert party(TYPE, CLICK, [Hop(url=OTHER)]) == "participant"


def test_an_address_from_which_no_page_comes_does_not_count_any_longer() -> None:
    assert party(TYPE, CLICK, [Hop(url=OTHER), Hop(event="ended", url=OTHER)]) == "site"


def test_the_redirects_of_a_new_tab_are_followed_before_the_browser_announces_it() -> None:
    redirected = [Hop(url=f"{HOME}go", frame=-4), Hop(url=OTHER, frame=-4, is_redirect=True)]
    arrived = [*redirected, Hop(event="document", url=OTHER, frame=7, tab=6)]
    assert party(CLICK, arrived) == "site"
    assert party(TYPE, CLICK, arrived) == "participant"
    assert party(TYPE, CLICK, arrived, [Hop(event="closed", tab=6)]) == "site"


def test_documents_too_many_to_record_count_against_a_participant_that_wrote_something() -> None:
    assert party(CLICK, [Hop(event="overflow")]) == "site"
    facts = routed(TYPE, CLICK, [Hop(event="overflow")]).decide()
    assert (facts.party, facts.is_incomplete) == ("participant", True)


def test_no_document_is_to_blame_for_a_browser_that_another_process_killed() -> None:
    facts = routed(going(OTHER), typed(OTHER), [Hop(event="lost", is_killed=True)]).decide()
    assert (facts.party, facts.is_killed) == ("site", True)
    assert party(going(OTHER), typed(OTHER), [Hop(event="lost")]) == "participant"


def test_a_page_that_hangs_counts_until_another_one_was_observed_even_if_its_tab_was_closed() -> None:
    hanging = routed(going(OTHER), typed(OTHER, tab=6), [Hop(event="closed", tab=6)])
    assert hanging.decide(with_closed=True).party == "participant"
    assert hanging.decide().party == "site"
    hanging.saw(page_at("about:blank"))
    assert hanging.decide(with_closed=True).party == "site"


def test_the_facts_name_the_document_that_decided() -> None:
    facts = routed(TYPE, CLICK, went(f"{HOME}a"), went(OTHER, frame=1, in_frame=True)).decide()
    expected = {"address": OTHER, "in_frame": True, "is_elsewhere": True, "is_named": False, "is_linked": False}
    assert facts.model_dump(include=set(expected)) == expected
    assert facts.has_written


# -- what the participant named --


def test_what_the_participant_named_is_compared_without_the_fragment() -> None:
    route = routed(going(f"{HOME}a#top"), typed(f"{HOME}a"))
    assert route.has_named(f"{HOME}a#bottom")
    assert not route.has_named(f"{HOME}b")
    assert not route.has_named(HOME)


def test_long_addresses_are_compared_as_the_browsers_recorder_writes_them() -> None:
    assert address_of(f"{HOME}{'x' * 3000}#a") == address_of(f"{HOME}{'x' * 3000}#b")
    assert address_of(f"{HOME}{'x' * 3000}1") != address_of(f"{HOME}{'x' * 3000}2")


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        ("browser_press_key", {"key": "ArrowDown"}),
        ("browser_select_option", {"target": "e1", "values": ["a"]}),
        ("browser_drag", {"startTarget": "e1", "endTarget": "e2"}),
        ("browser_handle_dialog", {"accept": True, "promptText": "x"}),
        ("browser_click", {"target": "e1", "button": "middle"}),
        ("browser_tabs", {"action": "new", "url": HOME}),
        ("a_tool_of_a_newer_server", {}),
    ],
)
def test_whatever_can_write_ends_the_time_in_which_links_are_the_sites(tool: str, params: dict[str, Any]) -> None:
    assert party((tool, params), page_at(HOME, OTHER), CLICK, went(OTHER)) == "participant"


@pytest.mark.parametrize(
    ("tool", "params"),
    [CLICK, BACK, WAIT, ("browser_handle_dialog", {"accept": True}), ("browser_tabs", {"action": "new"})],
)
def test_what_cannot_write_does_not(tool: str, params: dict[str, Any]) -> None:
    assert party((tool, params), page_at(HOME, OTHER), TYPE, CLICK, went(OTHER)) == "site"


# -- leaving the task's site --


def test_the_browser_has_returned_only_when_every_tab_shows_the_tasks_site() -> None:
    opened = (("browser_tabs", {"action": "new", "url": OTHER}), typed(OTHER, frame=1, tab=1))
    assert routed(*opened, page_at(HOME)).is_off_site
    assert not routed(*opened, [Hop(event="closed", tab=1)], page_at(HOME)).is_off_site


def test_the_target_of_the_websites_own_redirect_is_the_tasks_site() -> None:
    website = "https://oldname.example/"
    route = Route(website, Site(frozenset()).with_home(website))
    route.landed(page_at(HOME))
    assert not route.is_elsewhere(f"{HOME}cart")
    assert route.is_elsewhere(OTHER)


@pytest.mark.parametrize(
    ("by", "urls", "is_off_site"),
    [
        ("site", (OTHER, HOME), False),
        ("site", (HOME, OTHER), True),
        ("participant", (OTHER, HOME), True),
        ("participant", (HOME, HOME), False),
    ],
)
def test_a_site_may_pass_visitors_through_another_one(by: str, urls: tuple[str, ...], is_off_site: bool) -> None:
    navigations = [Navigation.model_validate({"url": url, "by": by}) for url in urls]
    assert routed(CLICK).left_site(navigations) == is_off_site


def test_a_frame_from_elsewhere_is_not_a_visit_there() -> None:
    assert not routed(CLICK).left_site([Navigation(url=OTHER, by="site", in_frame=True)])


def test_a_page_that_navigates_endlessly_does_not_fill_the_record() -> None:
    frames = tuple(Navigation(url=f"{OTHER}{number}", by="site", in_frame=True) for number in range(1000))
    pages = tuple(Navigation(url=f"{HOME}{number}", by="site") for number in range(1000))
    recorded = shortened(frames + pages)
    assert len(recorded) == 20
    assert (recorded[0], recorded[-1]) == (pages[0], pages[-1])
