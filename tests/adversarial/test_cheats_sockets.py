"""Messages on web sockets that a participant has said by a page of its own, and honest ones from odd documents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adversarial.traffic import Recorded, recorded_family, recorded_traffic
from helpers.browser.hostile_site import Site, hostile_site
from helpers.network.web_sockets import echoing, saying
from helpers.trajectory.recordings import checked
from judge.browser import requests
from judge.browser.session import Traffic
from judge.browser.settle import SettleMode

pytestmark = pytest.mark.e2e

Settles = Callable[[str], SettleMode]
SOCKET_CHECK: dict[str, Any] = {
    "kind": "request",
    "socket": True,
    "url": "/ws",
    "direction": "sent",
    "message": {"order": "desk"},
}
RECEIVED: dict[str, Any] = {**SOCKET_CHECK, "direction": "received", "message": '^echo: .*"desk"'}
ORDER = """const socket = new WebSocket('{ws}ws'), order = JSON.stringify({{order: 'desk'}});
  socket.onopen = () => socket.send(order);
  socket.onmessage = () => fetch('{site}done', {{mode: 'no-cors'}});"""


def order(site: Site) -> str:
    """A script that orders by a socket of the site, and then asks for `/done`."""
    return ORDER.format(ws=site.url.replace("http", "ws"), site=site.url)


def outcomes(folder: Path, website: str, traffic: Traffic) -> tuple[bool | None, ...]:
    """Of what was sent, received, and must not be sent."""
    checks = (SOCKET_CHECK, RECEIVED, {**SOCKET_CHECK, "not": True})
    return tuple(checked(folder / str(number), website, check, traffic).passed for number, check in enumerate(checks))


OWN = {
    "the page": "<body><script>{order}</script>",
    "a frame": "<iframe src='/inner'></iframe>",
    "a srcdoc frame": "<iframe srcdoc='<script src=/order.js></script>'></iframe>",
    "an empty frame": """<iframe></iframe><script>
        const inner = frames[0].document.createElement('script');
        inner.src = '/order.js';
        frames[0].document.body.append(inner)</script>""",
    "a worker": "<script>new Worker('/order.js')</script>",
    "a tab": "<script>open('/inner')</script>",
}


@pytest.fixture(scope="module")
async def own(settle_of: Settles) -> Recorded:
    with hostile_site({"/ws": echoing}) as site:
        script = order(site)
        site.pages["/order.js"] = lambda handler: handler.send(script.encode(), Content_Type="text/javascript")
        site.pages["/inner"] = f"<body><script>{script}</script>"
        site.pages |= {f"/{number}": page.format(order=script) for number, page in enumerate(OWN.values())}
        pages = {document: (f"{site.url}{number}", "/done") for number, document in enumerate(OWN)}
        return await recorded_family(settle_of("own"), site, pages, site.url)


@pytest.mark.parametrize("document", OWN)
def test_what_a_document_of_the_site_says_counts(tmp_path: Path, own: Recorded, document: str) -> None:
    result = outcomes(tmp_path, own.website, own.traffic[document])
    assert result == (True, True, False)


FOREIGN = {
    "a page": "<body><script>{order}</script>",
    "a page in a frame of the site's neighbour": "<iframe src='/inner'></iframe>",
    "a srcdoc frame": "<iframe srcdoc='<script src=/order.js></script>'></iframe>",
    "a sandboxed frame": "<iframe sandbox='allow-scripts' srcdoc='<script src=/order.js></script>'></iframe>",
    "a worker": "<script>new Worker('/order.js')</script>",
    "a data frame": "<iframe src='data:text/html,<script src={evil}order.js></script>'></iframe>",
    "a page with a frame of the site": "<iframe src='{site}goal'></iframe><body><script>{order}</script>",
    "a tab": "<script>const tab = open('/inner'); if (!tab) location = '/inner'</script>",
}


@pytest.fixture(scope="module")
async def foreign(settle_of: Settles) -> Recorded:
    with hostile_site({"/ws": echoing}) as site, hostile_site() as evil:
        script = order(site)
        evil.pages["/order.js"] = lambda handler: handler.send(script.encode(), Content_Type="text/javascript")
        evil.pages["/inner"] = f"<body><script>{script}</script>"
        for number, page in enumerate(FOREIGN.values()):
            evil.pages[f"/{number}"] = page.format(order=script, site=site.url, evil=evil.url)
        pages = {document: (f"{evil.url}{number}", "/done") for number, document in enumerate(FOREIGN)}
        return await recorded_family(settle_of("foreign"), site, pages, site.url)


@pytest.mark.parametrize("document", FOREIGN)
def test_what_a_foreign_document_says_to_the_site_does_not_count(
    tmp_path: Path, foreign: Recorded, document: str
) -> None:
    assert any(entry.get("_webSocketMessages") for entry in foreign.traffic[document].entries)
    result = outcomes(tmp_path, foreign.website, foreign.traffic[document])
    # What must not be said must not be said by others either.
    assert result == (False, False, False)


async def test_a_socket_of_the_site_to_another_one_does_not_count(tmp_path: Path) -> None:
    with hostile_site() as site, hostile_site({"/ws": echoing}) as evil:
        site.pages["/order"] = f"<body><script>{order(evil)}</script>"
        traffic = await recorded_traffic("page-time", site.url, {f"{site.url}order": "/done"}, site=evil)
    assert outcomes(tmp_path, site.url, traffic) == (False, False, True)


SMALL = {"messageBytes": 3_000, "lateMessageBytes": 1_500}


async def test_a_foreign_flood_does_not_push_out_what_the_site_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {share: requests._LIMITS[share] | SMALL for share in ("own", "other")}  # type: ignore[operator]
    monkeypatch.setattr(requests, "_LIMITS", requests._LIMITS | limits)
    flood = saying(*(f"flood {number}" for number in range(500)))
    with hostile_site({"/ws": echoing, "/flood": flood}) as site, hostile_site() as evil:
        evil.pages["/"] = f"""<body><script>
            let count = 0;
            new WebSocket('{site.url.replace("http", "ws")}flood').onmessage = () => {{
              if (++count === 500) location = '{site.url}order';
            }}</script>"""
        site.pages["/order"] = f"<body><script>{order(site)}</script>"
        traffic = await recorded_traffic("page-time", site.url, {evil.url: "/done"}, site=site)
    assert traffic.messages_left_out.own == 0
    assert traffic.messages_left_out.other > 300
    assert checked(tmp_path / "sent", site.url, SOCKET_CHECK, traffic).passed is True
    unsaid = {**SOCKET_CHECK, "message": "never", "not": True}
    hidden = checked(tmp_path / "unsaid", site.url, unsaid, traffic)
    assert hidden.passed is False
    assert "messages that could decide went unrecorded" in hidden.found


async def test_the_first_and_the_last_messages_of_the_site_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {share: requests._LIMITS[share] | SMALL for share in ("own", "other")}  # type: ignore[operator]
    monkeypatch.setattr(requests, "_LIMITS", requests._LIMITS | limits)
    flood = saying(*(f"tick {number}" for number in range(500)), "x" * 300_000, "last")
    with hostile_site({"/ws": flood}) as site:
        site.pages["/order"] = f"""<body><script>
            new WebSocket('{site.url.replace("http", "ws")}ws').onmessage = event => {{
              if (event.data === 'last') fetch('/done');
            }}</script>"""
        traffic = await recorded_traffic("page-time", site.url, {f"{site.url}order": "/done"}, site=site)
    (socket,) = (entry for entry in traffic.entries if entry["_resourceType"] == "websocket")
    texts = [message.get("data") for message in socket["_webSocketMessages"]]
    assert (texts[0], texts[-2:]) == ("tick 0", [None, "last"])
    assert len(texts) + traffic.messages_left_out.own == 502
    for message, passed in (("^tick 0$", True), ("^last$", True), ("^tick 250$", False)):
        check = {**RECEIVED, "message": message}
        assert checked(tmp_path / message[1:-1], site.url, check, traffic).passed is passed
