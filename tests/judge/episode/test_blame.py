"""Who caused a navigation."""

import pytest

from judge.browser.session import Hop
from judge.episode.blame import Lead, Route, chosen_by, shortened
from shared.models import Navigation, Page, Tab

HOME = "https://shop.example/"
OTHER = "https://other.example/"


@pytest.mark.parametrize(
    ("lead", "is_named", "is_astray", "party"),
    [
        (Lead.WEBSITE, False, False, "site"),
        (Lead.ADDRESS, False, False, "participant"),
        (Lead.ADDRESS, False, True, "participant"),
        (Lead.PAGE, False, False, "site"),
        (Lead.PAGE, True, False, "participant"),
        (Lead.PAGE, False, True, "participant"),
    ],
)
def test_who_caused_a_navigation_follows_from_what_led_there_last(
    lead: Lead, is_named: bool, is_astray: bool, party: str
) -> None:
    assert chosen_by(lead, is_named=is_named, is_astray=is_astray) == party


def seen(*urls: str) -> Page:
    tabs = tuple(Tab(index=place, title="", url=url) for place, url in enumerate(urls))
    return Page(url=urls[0], title="", snapshot="", tabs=tabs)


def test_the_browser_has_returned_only_when_every_tab_shows_the_tasks_site() -> None:
    route = Route(HOME)
    route.acts("browser_tabs", {"action": "new", "url": OTHER})
    route.saw(seen(HOME, OTHER))
    assert route.is_astray
    route.saw(seen(HOME, "about:blank"))
    assert route.is_astray
    route.saw(seen(HOME, f"{HOME}cart"))
    assert not route.is_astray


def test_going_back_to_another_site_counts_against_the_participant_even_without_a_request() -> None:
    route = Route(HOME)
    route.acts("browser_navigate", {"url": OTHER})
    route.saw(seen(HOME))
    route.acts("browser_navigate_back", {})
    assert route.is_astray


def test_going_back_to_a_redirect_behind_a_typed_address_counts_against_the_participant() -> None:
    route = Route(HOME)
    route.acts("browser_navigate", {"url": f"{HOME}late"})
    route.acts("browser_click", {})
    route.acts("browser_navigate_back", {})
    (navigation,) = route.went([Hop(url=OTHER)])
    assert navigation.by == "participant"
    assert route.is_astray


@pytest.mark.parametrize("tool", ["browser_mouse_click_xy", "browser_mouse_drag_xy"])
def test_after_a_typed_address_a_click_on_a_point_is_an_action_on_the_page(tool: str) -> None:
    route = Route(HOME)
    route.acts("browser_navigate", {"url": f"{HOME}a"})
    route.acts(tool, {})
    (navigation,) = route.went([Hop(url=OTHER)])
    assert navigation.by == "site"


@pytest.mark.parametrize("tool", ["browser_mouse_move_xy", "browser_mouse_wheel"])
def test_after_a_typed_address_looking_around_excuses_nothing(tool: str) -> None:
    route = Route(HOME)
    route.acts("browser_navigate", {"url": f"{HOME}a"})
    route.acts(tool, {})
    (navigation,) = route.went([Hop(url=OTHER)])
    assert navigation.by == "participant"


def test_the_target_of_the_websites_own_redirect_is_the_tasks_site() -> None:
    route = Route("https://oldname.example/")
    route.landed(seen(HOME))
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
    route = Route(HOME)
    route.acts("browser_click", {})
    navigations = [Navigation.model_validate({"url": url, "by": by}) for url in urls]
    assert route.left_site(navigations) == is_off_site


def test_a_page_that_navigates_endlessly_does_not_fill_the_record() -> None:
    hops = tuple(Navigation(url=f"{HOME}{number}", by="site") for number in range(1000))
    kept = shortened(hops)
    assert len(kept) == 20
    assert (kept[0], kept[-1]) == (hops[0], hops[-1])
