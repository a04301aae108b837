"""Walls are recognised, and what only looks like one is not."""

import pytest

from judge.browser.bot_walls import wall_on
from shared.models import Page

RECAPTCHA = "https://www.google.com/recaptcha/api2/anchor?k=x"
TURNSTILE = "https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2/"
DATADOME = "https://geo.captcha-delivery.com/captcha/?initialCid=x"
BARE = "- iframe [ref=e2]"
GRID = BARE + "".join(f'\n  - button "{n}" [ref=f1e{n}]' for n in range(16)) + '\n  - textbox "Answer" [ref=f1e20]'
LOG_IN = '- textbox "Name" [ref=e1]\n- textbox "Password" [ref=e2]\n- button "Log in" [ref=e3]\n- iframe [ref=e4]'
CATALOGUE = "\n".join(f'- link "Product {n}" [ref=e{n}]' for n in range(30)) + f"\n{BARE}"


def page(status: int | None, title: str = "shop.example", snapshot: str = "") -> Page:
    return Page(url="https://shop.example/", title=title, snapshot=snapshot, http_status=status)


@pytest.mark.parametrize(
    ("observed", "frames", "wall"),
    [
        (page(403, "Just a moment..."), (), "a Cloudflare challenge"),
        (page(503, "Just a\u00a0moment...", LOG_IN), (), "a Cloudflare challenge"),
        (page(403, "Attention Required! | Cloudflare"), (), "a Cloudflare challenge"),
        (page(403, "Access denied | shop.example used Cloudflare to restrict access"), (), "a Cloudflare challenge"),
        (page(403, "Access to this page has been denied."), (), "a PerimeterX challenge"),
        (page(403, "Pardon Our Interruption"), (), "an Imperva challenge"),
        (page(429, "Robot or human?"), (), "a check for robots"),
        (page(403, "shop.example", BARE), (DATADOME,), "a DataDome challenge"),
        (page(403, "shop.example", GRID), (RECAPTCHA,), "a reCAPTCHA"),
        (page(403, "shop.example", BARE), ("https://newassets.hcaptcha.com/captcha/v1/x",), "an hCaptcha"),
        (page(403, "shop.example", BARE), (TURNSTILE,), "a Cloudflare challenge"),
        (
            page(403, "Access Denied", "- text: Reference\n- text: https://errors.edgesuite.net/18.2d3"),
            (),
            "an Akamai refusal",
        ),
        (
            page(429, "https://www.google.com/", "- text: unusual traffic from your computer network"),
            (RECAPTCHA,),
            "a check for robots",
        ),
        (
            page(503, "Amazon.com", "- 'text: to make sure you''re not a robot'\n- textbox \"Type characters\""),
            (),
            "a check for robots",
        ),
    ],
)
def test_a_wall_is_named(observed: Page, frames: tuple[str, ...], wall: str) -> None:
    assert wall_on(observed, frames) == wall


@pytest.mark.parametrize(
    ("observed", "frames"),
    [
        (page(None, "Just a moment..."), ()),
        (page(404, "Just a moment..."), (TURNSTILE,)),
        (page(403, "Just a moment please"), ()),
        (page(403, "Access Denied", "- text: You need to log in."), ()),
        (page(403, "403 Forbidden", "- text: nginx"), ()),
        (page(429, "Too many requests", "- text: try again later"), ()),
        (page(503, "Maintenance", BARE), ("https://status.shop.example/",)),
        (page(None, "Log in", LOG_IN), (RECAPTCHA,)),
        (page(403, "Log in", LOG_IN), (RECAPTCHA,)),
        (page(403, "Members only", CATALOGUE), (TURNSTILE,)),
        (page(403, "Forum", CATALOGUE + "\n- text: confirm you are not a robot"), (RECAPTCHA,)),
        (page(403, "shop.example", BARE), ("https://www.google.com/maps", "https://nohcaptcha.com/", "http://[")),
        (page(403, "shop.example", BARE), ("https://shop.example/?next=challenges.cloudflare.com",)),
    ],
)
def test_what_is_not_surely_a_wall_is_a_page(observed: Page, frames: tuple[str, ...]) -> None:
    assert wall_on(observed, frames) == ""
