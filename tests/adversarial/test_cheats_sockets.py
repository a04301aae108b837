"""Messages on web sockets that a participant has said by a page of its own, and honest ones from odd documents."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import Site, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from helpers.cases import each
from helpers.network.web_sockets import echoing, saying
from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.browser import requests
from judge.browser.session import Traffic
from judge.browser.settle import SettleMode
from judge.evaluators.checks import evaluate
from judge.records.assertions import Assertion
from judge.records.tasks import Task
from judge.trajectory.network import write_har
from judge.trajectory.redaction import Redaction

pytestmark = pytest.mark.e2e

Record = Callable[[str, object], None]
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


async def record_traffic(settle: SettleMode, website: str, *urls: str, site: Site) -> Traffic:
    """What is recorded when the participant opens these pages, and the site was notified of the end."""
    async with browser_pool(browser_settings(), is_guarded=False) as pool, pool.browser(None) as browser:
        await browser.log_in(Task(task_id="t", website=website, task="x"))
        await browser.open(website, settle)
        await browser.observe()
        for number, url in enumerate(urls, 1):
            browser.begin_step(number)
            if not (await browser.act("browser_navigate", {"url": url})).ok:
                # On a busy machine it may time out. The page's clock then stands until the next look, as in an attempt.
                await browser.observe()
        async with asyncio.timeout(20):
            while not site.was_requested("/done"):
                await asyncio.sleep(0.05)
        traffic = browser.traffic()
        assert traffic is not None
        return traffic


def checked(folder: Path, website: str, check: dict[str, Any], traffic: Traffic) -> Assertion:
    """What the check makes of the messages, written as in a run and read back."""
    trajectory = recorded_attempt(folder, [check], [RecordedStep(), RecordedStep()], website=website)
    redaction = Redaction(salt=b"x", keep=trajectory.task.named_fields)
    write_har(
        folder,
        traffic.entries,
        redaction.entry,
        left_out=traffic.left_out,
        messages_left_out=traffic.messages_left_out,
        versions={},
    )
    (assertion,) = evaluate(trajectory)
    return assertion


def outcomes(folder: Path, site: Site, traffic: Traffic) -> tuple[bool | None, ...]:
    """Of what was sent, received, and must not be sent."""
    checks = (SOCKET_CHECK, RECEIVED, {**SOCKET_CHECK, "not": True})
    return tuple(checked(folder / str(number), site.url, check, traffic).passed for number, check in enumerate(checks))


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


@pytest.mark.parametrize("document", each(OWN, suite=("the page", "an empty frame", "a worker", "a tab")))
async def test_what_a_document_of_the_site_says_counts(
    tmp_path: Path, settle: SettleMode, document: str, record_property: Record
) -> None:
    with hostile_site({"/ws": echoing}) as site:
        script = order(site)
        site.pages["/order.js"] = lambda handler: handler.send(script.encode(), Content_Type="text/javascript")
        site.pages["/inner"] = f"<body><script>{script}</script>"
        site.pages["/order"] = OWN[document].format(order=script)
        traffic = await record_traffic(settle, site.url, f"{site.url}order", site=site)
    result = outcomes(tmp_path, site, traffic)
    record_property("outcome", result)
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


@pytest.mark.parametrize(
    "document",
    each(FOREIGN, suite=("a page", "a srcdoc frame", "a sandboxed frame", "a worker", "a data frame", "a tab")),
)
async def test_what_a_foreign_document_says_to_the_site_does_not_count(
    tmp_path: Path, settle: SettleMode, document: str, record_property: Record
) -> None:
    with hostile_site({"/ws": echoing}) as site, hostile_site() as evil:
        script = order(site)
        evil.pages["/order.js"] = lambda handler: handler.send(script.encode(), Content_Type="text/javascript")
        evil.pages["/inner"] = f"<body><script>{script}</script>"
        evil.pages["/"] = FOREIGN[document].format(order=script, site=site.url, evil=evil.url)
        traffic = await record_traffic(settle, site.url, evil.url, site=site)
    result = outcomes(tmp_path, site, traffic)
    record_property("outcome", result)
    # What must not be said must not be said by others either.
    assert result == (False, False, False)


async def test_a_socket_of_the_site_to_another_one_does_not_count(tmp_path: Path) -> None:
    with hostile_site() as site, hostile_site({"/ws": echoing}) as evil:
        site.pages["/order"] = f"<body><script>{order(evil)}</script>"
        traffic = await record_traffic("page-time", site.url, f"{site.url}order", site=evil)
    assert outcomes(tmp_path, site, traffic) == (False, False, True)


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
        traffic = await record_traffic("page-time", site.url, evil.url, site=site)
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
        traffic = await record_traffic("page-time", site.url, f"{site.url}order", site=site)
    (socket,) = (entry for entry in traffic.entries if entry["_resourceType"] == "websocket")
    texts = [message.get("data") for message in socket["_webSocketMessages"]]
    assert (texts[0], texts[-2:]) == ("tick 0", [None, "last"])
    assert len(texts) + traffic.messages_left_out.own == 502
    for message, passed in (("^tick 0$", True), ("^last$", True), ("^tick 250$", False)):
        check = {**RECEIVED, "message": message}
        assert checked(tmp_path / message[1:-1], site.url, check, traffic).passed is passed
