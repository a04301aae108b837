"""What a page sees of the browser is what the configuration says, on any machine."""

import base64
import json
import re
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser
from judge.config import Geolocation

pytestmark = pytest.mark.e2e

PAGE = """<p role="status" id="seen">wait</p><script type="module">
    const outcome = promise => promise.then(value => value, error => error.name || `code ${error.code}`);
    seen.textContent = btoa(JSON.stringify({
        languages: navigator.languages,
        month: new Date(0).toLocaleDateString(undefined, {month: "long"}),
        timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        dark: matchMedia("(prefers-color-scheme: dark)").matches,
        agent: navigator.userAgent,
        place: await outcome(new Promise((found, refused) => navigator.geolocation.getCurrentPosition(
            position => found([position.coords.latitude, position.coords.longitude]), refused))),
        notifications: await outcome(Notification.requestPermission()),
        clipboard: await outcome(navigator.clipboard.readText()),
        camera: (await navigator.permissions.query({name: "camera"})).state,
    }));
    </script>"""


async def seen_by_a_page(**settings: Any) -> tuple[dict[str, Any], str]:
    """What the page above reports, and the `Accept-Language` that its site was sent."""
    requests: list[str] = []

    def page(handler: Any) -> None:
        requests.append(handler.headers["Accept-Language"])
        handler.send(PAGE.encode())

    with hostile_site({"/": page}) as site:
        async with a_browser(**settings) as browser:
            await browser.open(site.url)
            await browser.act("browser_wait_for", {"textGone": "wait"})
            snapshot = (await browser.observe()).snapshot
    match = re.search(r"status \[.*\]: \"?([\w+/=]+)", snapshot)
    assert match, snapshot
    return json.loads(base64.b64decode(match[1])), requests[0]


async def test_by_default_a_page_sees_an_english_browser_in_utc_and_is_refused_every_permission() -> None:
    seen, language = await seen_by_a_page()
    assert "Headless" in seen.pop("agent"), "the browser does not hide what it is"
    assert language.startswith("en-US")
    assert seen == {
        "languages": ["en-US"],
        "month": "January",
        "timezone": "UTC",
        "dark": False,
        "place": "code 1",
        "notifications": "denied",
        "clipboard": "NotAllowedError",
        "camera": "denied",
    }


async def test_a_page_sees_what_is_configured() -> None:
    seen, language = await seen_by_a_page(
        locale="de-DE",
        timezone="Asia/Tokyo",
        color_scheme="dark",
        user_agent="Tester/1.0",
        geolocation=Geolocation(latitude=52.5, longitude=13.4),
    )
    assert language.startswith("de-DE")
    assert seen == {
        "languages": ["de-DE"],
        "month": "Januar",
        "timezone": "Asia/Tokyo",
        "dark": True,
        "agent": "Tester/1.0",
        "place": [52.5, 13.4],
        "notifications": "denied",
        "clipboard": "NotAllowedError",
        "camera": "denied",
    }
