"""Requests that a participant sends, hides or breaks, and honest ones that are recorded in unusual ways."""

import json
from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from adversarial.traffic import Recorded, recorded_family, recorded_traffic
from helpers.browser.hostile_site import Page, Site, hostile_site
from helpers.browser.sessions import found_browser, with_flags
from helpers.cases import each
from helpers.trajectory.recordings import checked
from judge.browser import requests
from judge.browser.installed import FoundBrowser
from judge.browser.settle import SettleMode
from judge.records.tasks import Task
from judge.trajectory.network import write_har
from judge.trajectory.redaction import Redaction

pytestmark = pytest.mark.e2e

Settles = Callable[[str], SettleMode]
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
SOME = ("many requests", "large bodies", "frames of the site")


@pytest.mark.parametrize(
    ("flood", "is_plain"),
    each(product(FLOODS, (False, True)), suite=list(zip(SOME, cycle((False, True)), strict=False))),
)
async def test_a_form_of_its_own_does_not_count_even_if_the_log_is_full(
    tmp_path: Path, settle: SettleMode, little_room: None, flood: str, is_plain: bool,
    resolving: FoundBrowser,
) -> None:  # fmt: skip
    with hostile_site({"/order": "<title>Thanks</title>"}) as site, hostile_site() as evil:
        own, foreign = addresses(site, evil, is_plain=is_plain)
        evil.pages["/"] = FORM.format(site=own, target="_self", before=FLOODS[flood].format(site=own))
        program = resolving if is_plain else None
        traffic = await recorded_traffic(settle, own, {own: "", foreign: "/order"}, site=site, program=program)
    assertion = checked(tmp_path / "run", own, ORDERED, traffic)
    assert assertion.passed is False


@pytest.mark.parametrize("flood", each(FLOODS, suite=SOME))
async def test_a_flood_elsewhere_does_not_push_out_the_order_on_the_site(
    tmp_path: Path, settle: SettleMode, little_room: None, flood: str
) -> None:
    with hostile_site({"/order": "<title>Thanks</title>"}) as site, hostile_site() as evil:
        evil.pages["/"] = f"<title>Flood</title><body><script>{FLOODS[flood].format(site=site.url)}</script>"
        site.pages["/form"] = FORM.format(site=site.url, target="_self", before="")
        pages = {site.url: "", evil.url: "", f"{site.url}form": "/order"}
        traffic = await recorded_traffic(settle, site.url, pages, site=site)
    assertion = checked(tmp_path / "run", site.url, ORDERED, traffic)
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


@pytest.fixture(scope="module", params=[False, True], ids=["this machine", "plain"])
async def without_origin(request: pytest.FixtureRequest, settle_of: Settles, resolving: FoundBrowser) -> Recorded:
    with hostile_site({"/order": "<title>Thanks</title>"}) as site, hostile_site() as evil:
        own, foreign = addresses(site, evil, is_plain=request.param)
        form = FORM.format(site=own, target="_self", before="").replace("\n", " ")
        for number, page in enumerate(WITHOUT_ORIGIN.values()):
            text = page.replace("{form}", form)
            evil.pages[f"/{number}"] = text.format(site=own, target="_self", before="") if "{site}" in text else text
        evil.pages["/redirect"] = lambda handler: handler.send(b"", 307, Location=f"{own}order")
        pages = {way: (f"{foreign}{number}", "/order") for number, way in enumerate(WITHOUT_ORIGIN)}
        program = resolving if request.param else None
        return await recorded_family(settle_of(f"without_origin-{request.param}"), site, pages, own, program)


@pytest.mark.parametrize("way", WITHOUT_ORIGIN)
def test_a_form_without_an_origin_does_not_count(tmp_path: Path, without_origin: Recorded, way: str) -> None:
    assert any(entry["request"]["url"].endswith("/order") for entry in without_origin.traffic[way].entries)
    assertion = without_origin.checked(tmp_path, way, ORDERED)
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
    "a long address": "fetch('/x?' + 'a&'.repeat(20000))",
    # More than the log has room for.
    "large bodies": "for (let n = 0; n < 64; n++) fetch('/x' + n, {method: 'POST', body: 'x'.repeat(250000)})",
}


@pytest.fixture(
    scope="module",
    params=[tuple(way for way in BROKEN if way != "large bodies"), ("large bodies",)],
    ids=["one request", "a full log"],
)
async def broken(request: pytest.FixtureRequest, settle_of: Settles) -> Recorded:
    with hostile_site({"/order": b"y" * 300_000}) as site:
        for number, way in enumerate(request.param):
            site.pages[f"/form{number}"] = FORM.format(site=site.url, target="_self", before=BROKEN[way])
        pages = {way: (f"{site.url}form{number}", "/order") for number, way in enumerate(request.param)}
        return await recorded_family(settle_of(request.param[0]), site, pages, site.url)


def test_no_request_makes_the_trace_unreadable_or_the_task_unscored(tmp_path: Path, broken: Recorded) -> None:
    for way in broken.traffic:
        ordered = broken.checked(tmp_path, way, ORDERED)
        answered = broken.checked(tmp_path, way, ORDERED | {"response": {"total": 3}})
        assert (ordered.passed, answered.passed) == (True, False), way


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


SESSION = "f7d0a8b1c2e3f4a5b6c7d8e9f0a1b2c3"


@pytest.fixture(scope="module")
async def honest(settle_of: Settles) -> Recorded:
    """Each way to save with each text, and a page that sends cookies."""
    page: Page = f"""<title>Map</title><script>document.cookie = '_engine=engine_long_name_car';
        document.cookie = '_session={SESSION}'; fetch('/route')</script>"""
    with hostile_site({"/map": page, "/route": "{}", "/save": "{}"}) as site:
        pages = {"map": (f"{site.url}map", "/route")}
        for number, (way, body) in enumerate(product(SAVES, ("right", "wrong"))):
            site.pages[f"/editor{number}"] = f"""<title>Save</title><script>
                const text = '{json.dumps({"text": body})}';
                const blob = new Blob([text], {{type: 'application/json'}}); {SAVES[way]}</script>"""
            pages[f"{way}, {body}"] = (f"{site.url}editor{number}", "/save")
        return await recorded_family(settle_of("honest"), site, pages, site.url)


@pytest.mark.parametrize("body", ["right", "wrong"])
@pytest.mark.parametrize("way", SAVES)
def test_what_a_site_saves_is_compared_however_it_sends_it(
    tmp_path: Path, honest: Recorded, way: str, body: str
) -> None:
    assertion = honest.checked(tmp_path, f"{way}, {body}", SAVED)
    assert assertion.passed is (body == "right")


@pytest.mark.parametrize(
    ("keep", "secrets", "expected"),
    [
        (("Cookie",), (), ("engine_long_name_car", SESSION)),
        (("cookie",), (), ("engine_long_name_car", SESSION)),
        (("_engine",), (), ("engine_long_name_car",)),
        (("_ENGINE",), (), ("engine_long_name_car",)),
        (("_session",), (), (SESSION,)),
        (("Cookie",), (SESSION,), ("engine_long_name_car",)),
        ((), (), ()),
    ],
    ids=str,
)
def test_a_cookie_that_an_evaluator_reads_is_kept_and_no_other(
    tmp_path: Path, honest: Recorded, keep: tuple[str, ...], secrets: tuple[str, ...],
    expected: tuple[str, ...],
) -> None:  # fmt: skip
    task = Task(task_id="t", website=honest.website, task="x", keep_fields=keep)
    redaction = Redaction(secrets, salt=b"x", keep=task.named_fields)
    write_har(tmp_path, honest.traffic["map"].entries, redaction.entry, versions={})
    har = (tmp_path / "network.har").read_text()
    result = tuple(value for value in ("engine_long_name_car", SESSION) if value in har)
    assert result == expected
