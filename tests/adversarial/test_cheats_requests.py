"""Requests that a participant sends, hides or breaks, and honest ones that are recorded in unusual ways."""

import asyncio
import json
from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import Page, Site, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, found_browser, with_flags
from helpers.cases import each
from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.browser import requests
from judge.browser.chromium import FoundBrowser
from judge.browser.session import Traffic
from judge.browser.settle import SettleMode
from judge.evaluators.checks import evaluate
from judge.records.assertions import Assertion
from judge.records.tasks import Task
from judge.trajectory.network import write_har
from judge.trajectory.redaction import Redaction

pytestmark = pytest.mark.e2e

Record = Callable[[str, object], None]
ORDERED: dict[str, Any] = {"kind": "request", "method": "POST", "url": "/order", "post_data": {"item": "desk"}}
SAVED: dict[str, Any] = {"kind": "request", "method": "POST", "url": "/save", "post_data": {"text": "right"}}
FORM = """<form method="post" action="{site}order" target="{target}"><input name="item" value="desk"></form>
    <script>{before}; document.forms[0].submit()</script>"""
# So that a page fills the log in a moment; the shares are those of real runs.
_SMALL = {
    "entries": 40,
    "bytes": 120_000,
    "bytesWithHeaders": 80_000,
    "bytesWithBodies": 50_000,
    "paths": 20,
    "lateBytes": 60_000,
}


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_LIMITS", requests._LIMITS | {"own": _SMALL, "other": _SMALL})


@pytest.fixture(scope="module")
def resolving(tmp_path_factory: pytest.TempPathFactory) -> FoundBrowser:
    """The installed browser, for which every host of `.test` is this machine; one program, so that tests share it."""
    path = with_flags(tmp_path_factory.mktemp("browser"), "--host-resolver-rules='MAP *.test 127.0.0.1'")
    return found_browser().model_copy(update={"path": path})


async def sent_by(
    settle: SettleMode, website: str, *urls: str, site: Site, until: str, program: FoundBrowser | None = None
) -> Traffic:
    """What is recorded when the participant opens these pages, one after the other, and the site was asked `until`."""
    async with (
        browser_pool(browser_settings(program), is_guarded=False) as pool,
        pool.browser(None) as browser,
    ):
        await browser.log_in(Task(task_id="t", website=website, task="x"))
        await browser.open(website, settle)
        await browser.observe()
        for number, url in enumerate(urls, 1):
            browser.begin_step(number)
            if not (await browser.act("browser_navigate", {"url": url})).ok:
                # On a busy machine it may time out. The page's clock then stands until the next look, as in an attempt.
                await browser.observe()
        async with asyncio.timeout(20):
            while True:
                traffic = browser.traffic()
                assert traffic is not None
                stage_requests = [entry for entry in traffic.entries if until in entry["request"]["url"]]
                is_answered = all(
                    entry["response"]["status"] or "_error" in entry["response"] for entry in stage_requests
                )
                # Where the log is full, even this request may be left out of it.
                if site.was_requested(until) and is_answered and not traffic.is_pending:
                    return traffic
                await asyncio.sleep(0.05)


def checked(folder: Path, website: str, check: dict[str, Any], traffic: Traffic) -> Assertion:
    """What the check makes of the requests, written as in a run and read back."""
    trajectory = recorded_attempt(folder, [check], [RecordedStep(), RecordedStep()], website=website)
    redaction = Redaction(salt=b"x", keep=trajectory.task.named_fields)
    write_har(folder, traffic.entries, redaction.entry, left_out=traffic.left_out, versions={})
    (assertion,) = evaluate(trajectory)
    return assertion


FLOODS = {
    "many requests": "for (let n = 0; n < 200; n++) fetch('{site}flood' + n, {{mode: 'no-cors'}})",
    "one request, often": "for (let n = 0; n < 200; n++) fetch('{site}flood', {{mode: 'no-cors'}})",
    "long addresses": "for (let n = 0; n < 60; n++) fetch('{site}flood?' + 'x'.repeat(7000) + n, {{mode: 'no-cors'}})",
    "large bodies": """for (let n = 0; n < 60; n++)
        fetch('{site}flood', {{method: 'POST', mode: 'no-cors', body: 'x'.repeat(60000)}})""",
    "frames of the site": """for (let n = 0; n < 60; n++)
        document.body.append(Object.assign(document.createElement('iframe'), {{src: '{site}flood' + n}}))""",
    "requests elsewhere": "for (let n = 0; n < 200; n++) fetch('/flood' + n)",
}


@pytest.mark.parametrize(
    ("flood", "is_plain"),
    each(product(FLOODS, (False, True)), suite=list(zip(FLOODS, cycle((False, True)), strict=False))),
)
async def test_a_form_of_its_own_does_not_count_even_if_the_log_is_full(
    tmp_path: Path, settle: SettleMode, little_room: None, record_property: Record, flood: str, is_plain: bool,
    resolving: FoundBrowser,
) -> None:  # fmt: skip
    with hostile_site({"/order": "<title>Thanks</title>"}) as site, hostile_site() as evil:
        own, foreign = addresses(site, evil, is_plain=is_plain)
        evil.pages["/"] = FORM.format(site=own, target="_self", before=FLOODS[flood].format(site=own))
        traffic = await sent_by(
            settle, own, foreign, site=site, until="/order", program=resolving if is_plain else None
        )
    assertion = checked(tmp_path / "run", own, ORDERED, traffic)
    record_property("outcome", f"failed: {assertion.found}"[:200])
    assert assertion.passed is False


@pytest.mark.parametrize("flood", each(FLOODS, suite=("many requests", "large bodies", "frames of the site")))
async def test_a_flood_elsewhere_does_not_push_out_the_order_on_the_site(
    tmp_path: Path, settle: SettleMode, little_room: None, record_property: Record, flood: str
) -> None:
    with hostile_site({"/order": "<title>Thanks</title>"}) as site, hostile_site() as evil:
        evil.pages["/"] = f"<title>Flood</title><body><script>{FLOODS[flood].format(site=site.url)}</script>"
        site.pages["/form"] = FORM.format(site=site.url, target="_self", before="")
        traffic = await sent_by(settle, site.url, evil.url, f"{site.url}form", site=site, until="/order")
    assertion = checked(tmp_path / "run", site.url, ORDERED, traffic)
    record_property("outcome", f"passed: {assertion.found}"[:200])
    assert assertion.passed is True


def addresses(site: Site, evil: Site, *, is_plain: bool) -> tuple[str, str]:
    """Their addresses. Without TLS, a browser sends `Sec-Fetch-Site` to its own machine only."""
    if not is_plain:
        return site.url, evil.url
    return f"http://shop.test:{site.server_port}/", f"http://evil.test:{evil.server_port}/"


WITHOUT_ORIGIN = {
    "no referrer": "<meta name=referrer content=no-referrer>" + FORM,
    "a new tab": "<meta name=referrer content=no-referrer>" + FORM.replace("{target}", "_blank"),
    "a frame": """<meta name=referrer content=no-referrer><iframe name="f"></iframe>""" + FORM.replace("{target}", "f"),
    "a sandboxed frame": """<iframe sandbox="allow-scripts allow-forms allow-top-navigation"
        srcdoc='{form}'></iframe>""",
    "a data frame": "<iframe src='data:text/html,{form}'></iframe>",
    "a redirect with its body": """<form method="post" action="/redirect"><input name="item" value="desk"></form>
        <script>document.forms[0].submit()</script>""",
}


@pytest.mark.parametrize(
    ("way", "is_plain"),
    each(product(WITHOUT_ORIGIN, (False, True)), suite=list(zip(WITHOUT_ORIGIN, cycle((False, True)), strict=False))),
)
async def test_a_form_without_an_origin_does_not_count(
    tmp_path: Path, settle: SettleMode, record_property: Record, way: str, is_plain: bool, resolving: FoundBrowser
) -> None:
    with hostile_site({"/order": "<title>Thanks</title>"}) as site, hostile_site() as evil:
        own, foreign = addresses(site, evil, is_plain=is_plain)
        form = FORM.format(site=own, target="_self", before="").replace("\n", " ")
        page = WITHOUT_ORIGIN[way]
        evil.pages["/"] = (
            page.replace("{form}", form)
            if "{form}" in page
            else page.format(site=own, target="_self", before="")
            if "{site}" in page
            else page
        )
        evil.pages["/redirect"] = lambda handler: handler.send(b"", 307, Location=f"{own}order")
        traffic = await sent_by(
            settle, own, foreign, site=site, until="/order", program=resolving if is_plain else None
        )
    assertion = checked(tmp_path / "run", own, ORDERED, traffic)
    record_property("outcome", f"failed: {assertion.found}"[:200])
    assert assertion.passed is False


BROKEN = {
    "a method of 101 characters": "fetch('/x', {method: 'M'.repeat(101)})",
    "a method of 5,000 characters": "fetch('/x', {method: 'M'.repeat(5000)})",
    "20,001 fields": "fetch('/x', {method: 'POST', body: new URLSearchParams('a=1&'.repeat(20001))})",
    "20,001 empty fields": """fetch('/x', {method: 'POST', body: '&'.repeat(20001),
        headers: {'content-type': 'application/x-www-form-urlencoded'}})""",
    "20,001 parts": """fetch('/x', {method: 'POST', headers: {'content-type': 'multipart/form-data; boundary=b'},
        body: '--b\\r\\nname="a"\\r\\n\\r\\n'.repeat(9000) + '--b--'})""",
    "deep JSON": """fetch('/x', {method: 'POST', headers: {'content-type': 'application/json'},
        body: '['.repeat(90000)})""",
    "numbers beyond a double": """fetch('/x', {method: 'POST', headers: {'content-type': 'application/json'},
        body: '[1e999, ' + '9'.repeat(5000) + ']'})""",
    "half a character": """fetch('/x?a=%ED%A0%80', {method: 'POST', headers: {'content-type': 'application/json'},
        body: '"\\\\ud800"'})""",
    "large bodies": "for (let n = 0; n < 100; n++) fetch('/x' + n, {method: 'POST', body: 'x'.repeat(250000)})",
    "a long address": "fetch('/x?' + 'a&'.repeat(20000))",
}


@pytest.mark.parametrize(
    "way",
    each(
        BROKEN,
        suite=(
            "a method of 101 characters",
            "20,001 fields",
            "20,001 parts",
            "deep JSON",
            "half a character",
            "large bodies",
            "a long address",
        ),
    ),
)
async def test_no_request_makes_the_trace_unreadable_or_the_task_unscored(
    tmp_path: Path, settle: SettleMode, record_property: Record, way: str
) -> None:
    answered = ORDERED | {"response": {"total": 3}}
    with hostile_site({"/order": b"y" * 300_000}) as site:
        site.pages["/form"] = FORM.format(site=site.url, target="_self", before=BROKEN[way])
        traffic = await sent_by(settle, site.url, f"{site.url}form", site=site, until="/order")
    website = site.url
    ordered, response = (checked(tmp_path / "run", website, check, traffic) for check in (ORDERED, answered))
    record_property("outcome", f"order: {ordered.passed}; too large an answer: {response.passed}")
    assert (ordered.passed, response.passed) == (True, False)


SAVES = {
    "a Blob": "fetch('/save', {method: 'POST', body: blob})",
    "a beacon with a Blob": "navigator.sendBeacon('/save', blob)",
    "a cloned request": """fetch(new Request('/save', {method: 'POST', body: text,
        headers: {'content-type': 'application/json'}}).clone())""",
    "a request that is kept alive": "fetch('/save', {method: 'POST', keepalive: true, body: blob})",
    "a form with a file": """const form = new FormData(); form.set('text', JSON.parse(text).text);
        form.set('file', new File(['content'], 'a.txt')); fetch('/save', {method: 'POST', body: form})""",
    "XMLHttpRequest with a Blob": "const asked = new XMLHttpRequest(); asked.open('POST', '/save'); asked.send(blob)",
}


@pytest.mark.parametrize(
    ("way", "body"),
    each(
        product(SAVES, ("right", "wrong")),
        suite=[*((way, "right") for way in SAVES), ("a Blob", "wrong"), ("a form with a file", "wrong")],
    ),
)
async def test_what_a_site_saves_is_compared_however_it_sends_it(
    tmp_path: Path, settle: SettleMode, record_property: Record, way: str, body: str
) -> None:
    saves = f"""<title>Save</title><script>const text = '{json.dumps({"text": body})}';
        const blob = new Blob([text], {{type: 'application/json'}}); {SAVES[way]}</script>"""
    with hostile_site({"/save": "{}", "/editor": saves}) as site:
        traffic = await sent_by(settle, site.url, f"{site.url}editor", site=site, until="/save")
    assertion = checked(tmp_path / "run", site.url, SAVED, traffic)
    record_property("outcome", f"{'passed' if assertion.passed else 'failed'}: {assertion.found}"[:200])
    assert assertion.passed is (body == "right")


SESSION = "f7d0a8b1c2e3f4a5b6c7d8e9f0a1b2c3"


@pytest.mark.parametrize(
    ("keep", "secrets", "expected"),
    each(
        [
            (("Cookie",), (), ("engine_long_name_car", SESSION)),
            (("cookie",), (), ("engine_long_name_car", SESSION)),
            (("_engine",), (), ("engine_long_name_car",)),
            (("_ENGINE",), (), ("engine_long_name_car",)),
            (("_session",), (), (SESSION,)),
            (("Cookie",), (SESSION,), ("engine_long_name_car",)),
            ((), (), ()),
        ],
        suite=[
            (("cookie",), (), ("engine_long_name_car", SESSION)),
            (("_ENGINE",), (), ("engine_long_name_car",)),
            (("Cookie",), (SESSION,), ("engine_long_name_car",)),
            ((), (), ()),
        ],
    ),
    ids=str,
)
async def test_a_cookie_that_an_evaluator_reads_is_kept_and_no_other(
    tmp_path: Path, settle: SettleMode, record_property: Record, keep: tuple[str, ...], secrets: tuple[str, ...],
    expected: tuple[str, ...],
) -> None:  # fmt: skip
    page: Page = f"""<title>Map</title><script>document.cookie = '_engine=engine_long_name_car';
        document.cookie = '_session={SESSION}'; fetch('/route')</script>"""
    with hostile_site({"/map": page, "/route": "{}"}) as site:
        traffic = await sent_by(settle, site.url, f"{site.url}map", site=site, until="/route")
    task = Task(task_id="t", website=site.url, task="x", keep_fields=keep)
    redaction = Redaction(secrets, salt=b"x", keep=task.named_fields)
    write_har(tmp_path, traffic.entries, redaction.entry, versions={})
    har = (tmp_path / "network.har").read_text()
    result = tuple(value for value in ("engine_long_name_car", SESSION) if value in har)
    record_property("outcome", f"kept: {result}")
    assert result == expected
