"""A page that sends in every way that browsers have, where nothing may be sent: the site hears of none of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import Handler, Page, hostile_site, self_signed
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from helpers.cases import each
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, participant, ref, some_tasks, tool_call
from helpers.trajectory.recordings import checked
from judge.network.holding import Holding
from judge.network.policy import NetworkPolicy
from judge.records.sites import NONE_SHARED
from judge.records.tasks import Task
from judge.trajectory.network import Entry, read_har
from judge.trajectory.record import Attempt

pytestmark = pytest.mark.e2e

FORM = '<form method="post" action="/sent/{way}" target="{target}"><input name="way" value="{way}"></form>'
SUBMIT = "<script>document.forms[0].submit()</script>"
SEND = "fetch('/sent/{way}', {{method: 'POST', body: 'way={way}'{more}}})"
# What the page of each way does. Other parts of the site are asked with GET.
WAYS = {
    "form": FORM + SUBMIT,
    "fetch": "<script>{send}</script>",
    "put": "<script>fetch('/sent/put', {{method: 'PUT', body: 'way=put'}})</script>",
    "xhr": """<script>const x = new XMLHttpRequest(); x.open("POST", "/sent/xhr"); x.send("way=xhr")</script>""",
    "keepalive": "<script>onpagehide = () => {keepalive}</script>",
    "beacon": "<script>onpagehide = () => navigator.sendBeacon('/sent/beacon', 'way=beacon')</script>",
    "frame": '<iframe name="inner"></iframe>' + FORM + SUBMIT,
    "tab": FORM + SUBMIT,
    "worker": "<script>new Worker('/script/worker')</script>",
    "shared": "<script>new SharedWorker('/script/shared')</script>",
    "service": "<script>navigator.serviceWorker.register('/script/service')</script>",
    "socket": "<script>new WebSocket(location.origin.replace('http', 'ws') + '/sent/socket').onopen = e => "
    "e.target.send('way=socket')</script>",
    "redirect": "<script>fetch('/moved', {{method: 'POST', body: 'way=redirect'}})</script>",
    "ping": '<a href="#there" ping="/sent/ping">go</a><script>document.links[0].click()</script>',
    "reload": FORM + SUBMIT,
    "microtask": FORM + "<script>Promise.resolve().then(() => document.forms[0].submit())</script>",
    "elsewhere": "<script>fetch('https://pay.example/sent/elsewhere', {{method: 'POST', credentials: 'include', "
    "headers: {{'Content-Type': 'application/json', 'X-Own': '1'}}, body: '{{\"way\": \"elsewhere\"}}'}})"
    ".then(answer => answer.text()).then(text => document.title = `read ${{text}}`)</script>",
}
TARGETS = {"frame": "inner", "tab": "_blank"}
# The reply to a form that sends itself again.
AGAIN = "<script>if (!sessionStorage.again) { sessionStorage.again = 1; location.reload() }</script>"
HOLD = [{"url": "/sent/reload", "body": AGAIN, "type": "text/html"}]


def page_of(way: str) -> str:
    send = SEND.format(way=way, more="")
    keepalive = SEND.format(way=way, more=", keepalive: true")
    body = WAYS[way].format(way=way, target=TARGETS.get(way, "_self"), send=send, keepalive=keepalive)
    return f"<title>{way}</title>{body}"


def script_of(way: str) -> Page:
    return lambda handler: handler.send(SEND.format(way=way, more="").encode(), Content_Type="text/javascript")


def moved(handler: Handler) -> None:
    handler.send(b"", 307, Location="/sent/redirect")


PAGES: dict[str, Page] = {
    **{f"/way/{way}": page_of(way) for way in WAYS},
    **{f"/script/{way}": script_of(way) for way in ("worker", "shared", "service")},
    "/moved": moved,
}


def goes_every_way(turn: ParticipantTurn) -> str:
    ways = [*WAYS, ""]
    if turn.n >= len(ways):
        return finish()
    return tool_call("browser_navigate", url=turn.website + (f"way/{ways[turn.n]}" if ways[turn.n] else ""))


def held_in(folder: Path) -> dict[str, list[Entry]]:
    """The held requests of the only attempt, by the way in which they were sent."""
    results: dict[str, list[Entry]] = {}
    for entry in read_har(folder / "results" / "t0" / "network.har").entries:
        if entry.is_held:
            results.setdefault(entry.request.url.rpartition("/")[2], []).append(entry)
    return results


# That plain requests are held is what the other tests show.
@pytest.mark.parametrize("has_tls", each([True, False], suite=[True]), ids=["with TLS", "without"])
async def test_nothing_is_sent_in_any_way_and_everything_is_recorded(
    judge: LiveJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_tls: bool
) -> None:
    certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with hostile_site(PAGES, certificate=certificate if has_tls else None) as site:
        keys: dict[str, Any] = {"hold": HOLD, "writes": "hold", "allow_writes": [{"method": "POST", "url": "/moved"}]}
        keys["checks"] = [
            {"kind": "request", "method": "PUT" if way == "put" else "POST", "url": f"/sent/{way}", "at": "any"}
            for way in WAYS
            if way not in ("socket", "elsewhere")
        ]
        tasks = [{**task, **keys} for task in some_tasks(site.url)]
        async with participant(goes_every_way) as url:
            assessed = await judge.ask(url, tasks, judge_model="offline", max_steps=30)
        requests = [path for path in site.paths if path.startswith("/sent")]
    assert requests == []
    assert "/moved" in site.paths
    actual = held_in(assessed.folder)
    assert set(actual) == set(WAYS)
    assert {way: len(entries) for way, entries in actual.items() if len(entries) > 1} == {"reload": 2}
    bodies = {way: entries[0].request.body for way, entries in actual.items()}
    texts = {way: body.text for way, body in bodies.items() if body is not None}
    # A body in a format of its own (`text/ping`) is kept as it is.
    others = {"ping": "PING", "elsewhere": '{"way": "elsewhere"}'}
    assert texts == {way: others.get(way, f"way={way}") for way in WAYS if way != "socket"}
    assert {way for way, entries in actual.items() if entries[0].sender is None} == set()
    # What the page could read of a host that does not exist.
    result = Attempt.from_json(assessed.result(), source="result.json")
    assert any(step.title == "read {}" for step in result.steps)
    # A check of each request has passed.
    assert assessed.verdict == ("success", "finished"), json.dumps(assessed.result()["key_points"], indent=1)


# Pages of the participant that send to the task's site.
FORGED: dict[str, Page] = {
    "/form": '<form method="post" action="{shop}order"><input name="qty" value="1"></form>' + SUBMIT,
    "/beacon": "<script>onpagehide = () => navigator.sendBeacon('{shop}order', 'qty=1')</script>",
    "/frame": """<iframe sandbox="allow-scripts" srcdoc="<script>fetch('{shop}order', {{method: 'POST', body: 'qty=1'}})
        </script>"></iframe>""",
    "/redirected": "<script>fetch('/moved', {{method: 'POST', body: 'qty=1', headers: {{'X-A': '1'}}}})</script>",
    "/worker": """<script>
        new Worker('data:text/javascript,fetch("{shop}order", {{method: "POST", body: "qty=1"}})')</script>""",
}


async def test_what_a_participant_s_own_page_sends_is_held_and_passes_no_check(tmp_path: Path) -> None:
    ordered = {"kind": "request", "method": "POST", "url": "/order", "at": "any"}
    with hostile_site() as shop, hostile_site() as evil:
        evil.pages |= {path: str(page).format(shop=shop.url) for path, page in FORGED.items()}
        evil.pages["/moved"] = lambda handler: handler.send(b"", 307, Location=f"{shop.url}order")
        allowed = ({"method": "POST", "url": f"{evil.url}moved"},)
        task = Task(task_id="t", website=shop.url, task="Order.", writes="hold", allow_writes=allowed)
        holding = Holding(task, NONE_SHARED.of(task))
        policy = NetworkPolicy.for_websites([shop.url, evil.url])
        async with browser_pool(browser_settings()) as pool, pool.browser(policy, holding.interceptor) as browser:
            await browser.log_in(task)
            await browser.open(shop.url)
            await browser.observe()
            for url in (*(evil.url + path[1:] for path in FORGED), shop.url):
                await browser.act("browser_navigate", {"url": url})
                await browser.observe()
            async with asyncio.timeout(20):
                while (traffic := browser.traffic()) and sum("_held" in each for each in traffic.entries) < len(FORGED):
                    await asyncio.sleep(0.05)
        assert not shop.was_requested("/order")
    assert traffic is not None
    entries = [entry for entry in map(Entry.model_validate, traffic.entries) if entry.is_held]
    assert [entry.request.url for entry in entries] == [f"{shop.url}order"] * len(FORGED)
    assert shop.url.rstrip("/") not in {entry.sender for entry in entries}
    assert checked(tmp_path, shop.url, ordered, traffic).passed is False


async def test_a_held_request_can_end_the_attempt(judge: LiveJudge) -> None:
    form = '<title>Cart</title><form method="post" action="/order"><button name="item" value="7">Buy</button></form>'
    with hostile_site({"/": form}) as site:
        hold = {"method": "POST", "url": "/order", "body": "<title>Ordered</title><h1>Thanks</h1>", "ends": True}
        checks = [
            {"kind": "request", "method": "POST", "url": "/order", "post_data": {"item": "7"}},
            {"kind": "element", "element": 'heading "Thanks"'},
        ]
        tasks = [{**task, "hold": [hold], "checks": checks} for task in some_tasks(site.url)]

        async with participant(lambda turn: tool_call("browser_click", ref=ref(turn, 'button "Buy"'))) as url:
            assessed = await judge.ask(url, tasks, judge_model="offline")
        assert not site.was_requested("/order")
    assert assessed.verdict == ("success", "ended_by_page")
    assert assessed.entry["steps_taken"] == 1
