"""Held requests among those that the browser reported: each is there once, whole, and with a sender only if known."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.browser.held import with_held
from judge.browser.holding import HeldRequest, Holding
from judge.browser.interception import Headers, WireAnswer, WireRequest
from judge.browser.requests import har_entry
from judge.browser.session import Traffic
from judge.evaluators.checks import evaluate
from judge.records.tasks import Task
from judge.sites import own_site
from judge.trajectory.network import Entry, write_har
from judge.trajectory.redaction import Redaction

SHOP, EVIL = "https://shop.example", "https://evil.example"
ORDER = f"{SHOP}/order"
JSON = ("Content-Type", "application/json")
OWN: Headers = (JSON, ("Origin", SHOP), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "empty"))
FOREIGN: Headers = (JSON, ("Origin", EVIL), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "empty"))


def held(
    body: str = '{"qty": 1}', headers: Headers = OWN, *, at_ms: int = 5, url: str = ORDER, **more: Any
) -> HeldRequest:
    data = body.encode()
    request = WireRequest("POST", url, headers, data, more.pop("step", 1))
    answer = WireAnswer(200, "OK", (("Content-Type", "application/json"),), b"{}")
    return replace(HeldRequest(request, answer, at_ms, len(data), hashlib.sha256(data).hexdigest(), True), **more)


def reported(
    body: str | None = '{"qty": 1}', headers: Headers = OWN, *, status: int = 200, at_ms: int = 4, **more: Any
) -> dict[str, Any]:
    """What the browser says of a request; without a body, it did not observe it."""
    fixed = {"origin": dict(headers).get("Origin"), "site": dict(headers).get("Sec-Fetch-Site")}
    part: dict[str, Any] = {
        "began": at_ms,
        "method": "POST",
        "url": ORDER,
        "type": "fetch",
        "step": 1,
        "status": status,
    }
    part |= {"fixed": {name: value for name, value in fixed.items() if value}, "headers": headers, "sender": {}}
    if body is not None:
        digest = hashlib.sha256(body.encode()).hexdigest()
        part |= {"post": {"text": body}, "digest": digest, "size": len(body)}
    part |= more
    return har_entry(part, [part["url"]])


def merged(entries: list[dict[str, Any]], *requests: HeldRequest, left_out: int = 0) -> Traffic:
    task = Task(task_id="t", website=f"{SHOP}/", task="Order.", writes="hold")
    holding = Holding(task, own_site(task))
    holding.held, holding.left_out = list(requests), left_out
    return with_held(Traffic(entries=tuple(entries)), holding)


def seen(traffic: Traffic) -> list[tuple[bool, str | None, str]]:
    """Whether each request was held, its sender, and its body."""
    parsed = [Entry.model_validate(entry) for entry in traffic.entries]
    bodies = [entry.request.body for entry in parsed]
    return [
        (entry.is_held, entry.sender, (body.text or "") if body else "")
        for entry, body in zip(parsed, bodies, strict=True)
    ]


def test_a_request_that_the_browser_reported_is_marked_and_stays_in_its_place() -> None:
    page = reported(None, url=f"{SHOP}/", method="GET")
    traffic = merged([page, reported(sender={"document": SHOP}), page], held())
    assert [is_held for is_held, _, _ in seen(traffic)] == [False, True, False]
    assert seen(traffic)[1] == (True, SHOP, '{"qty": 1}')


def test_what_the_browser_did_not_see_of_it_comes_from_the_wire() -> None:
    bare = reported(None, (), status=0, failure="net::ERR_ABORTED", sender={"document": SHOP})
    (entry,) = merged([bare], held()).entries
    parsed = Entry.model_validate(entry)
    assert (parsed.response.status, parsed.response.error, parsed.sender) == (200, None, SHOP)
    assert {pair.name for pair in parsed.request.headers} >= {"Origin", "Sec-Fetch-Site"}
    assert seen(merged([bare], held()))[0][2] == '{"qty": 1}'


def test_a_request_that_the_browser_did_not_report_is_added_where_it_began() -> None:
    page = [reported(None, url=f"{SHOP}/{at}", method="GET", at_ms=at * 10) for at in (1, 2, 3)]
    traffic = merged(page, held(at_ms=25, step=2))
    assert [entry["request"]["url"].rpartition("/")[2] for entry in traffic.entries] == ["1", "2", "order", "3"]
    assert seen(traffic)[2] == (True, SHOP, '{"qty": 1}')
    assert Entry.model_validate(traffic.entries[2]).step == 2


@pytest.mark.parametrize(
    "other",
    [
        reported('{"qty": 2}'),
        reported(headers=FOREIGN),
        reported(status=500),
        reported(from_worker=True),
        reported(method="PUT"),
        reported(url=f"{SHOP}/orders"),
    ],
    ids=["body", "origin", "status", "answered by a service worker", "method", "address"],
)
def test_another_request_is_not_taken_for_it(other: dict[str, Any]) -> None:
    assert [is_held for is_held, _, _ in seen(merged([other], held()))] == [False, True]


def test_each_of_several_alike_is_there_once() -> None:
    entries = [reported(headers=FOREIGN), reported(), reported()]
    traffic = merged(entries, held(), held(headers=FOREIGN), held())
    assert [(is_held, sender) for is_held, sender, _ in seen(traffic)] == [(True, EVIL), (True, SHOP), (True, SHOP)]


@pytest.mark.parametrize(
    ("headers", "sender"),
    [
        (OWN, SHOP),
        ((("Origin", SHOP),), SHOP),
        (FOREIGN, EVIL),
        # Where nothing else is said, another site may have redirected to this address.
        ((("Referer", f"{SHOP}/"),), None),
        ((), None),
        ((("Origin", "null"), ("Referer", f"{SHOP}/")), None),
        ((("Origin", "null"), ("Sec-Fetch-Site", "cross-site"), ("Referer", f"{SHOP}/")), None),
        ((("Origin", SHOP), ("Sec-Fetch-Site", "cross-site")), None),
        ((("Origin", EVIL), ("Referer", f"{SHOP}/")), None),
        ((("Sec-Fetch-Site", "none"),), None),
    ],
    ids=str,
)
def test_a_sender_is_made_out_only_from_headers_that_agree(headers: Headers, sender: str | None) -> None:
    (entry,) = merged([], held(headers=headers)).entries
    assert entry["_sender"] == sender


def test_the_browser_s_word_on_the_sender_comes_first() -> None:
    redirected = reported(sender={"document": EVIL})
    assert redirected["_sender"] is None
    assert seen(merged([redirected], held()))[0][:2] == (True, None)


REQUESTS = st.lists(
    st.tuples(st.sampled_from(("{}", '{"qty": 1}', "")), st.sampled_from((OWN, FOREIGN, ()))), max_size=12
)


@given(sent=REQUESTS, others=REQUESTS, data=st.data())
def test_every_held_request_is_there_once_and_no_other_is_lost(
    sent: list[tuple[str, Headers]], others: list[tuple[str, Headers]], data: st.DataObject
) -> None:
    known = data.draw(st.lists(st.sampled_from(sent), max_size=len(sent)) if sent else st.just([]))
    entries = [reported(body or None, headers) for body, headers in known]
    entries += [reported(body, headers, status=404) for body, headers in others]
    found = seen(merged(entries, *(held(body, headers) for body, headers in sent)))
    assert sorted(body for is_held, _, body in found if is_held) == sorted(body for body, _ in sent)
    assert sum(not is_held for is_held, _, _ in found) >= len(others)
    assert not {sender for is_held, sender, _ in found if is_held} - {SHOP, EVIL, None}


def passes(folder: Path, traffic: Traffic, **check: Any) -> bool | None:
    """Whether a check of the order passes, on the trace as it is written and read."""
    wanted = {"kind": "request", "method": "POST", "url": "/order", **check}
    trajectory = recorded_attempt(folder, [wanted], [RecordedStep(), RecordedStep()], website=f"{SHOP}/")
    redaction = Redaction(salt=b"x", keep=trajectory.task.named_fields)
    write_har(folder, traffic.entries, redaction.entry, left_out=traffic.left_out, versions={})
    (assertion,) = evaluate(trajectory)
    return assertion.passed


def test_a_held_request_counts_as_sent_whatever_the_page_was_told(tmp_path: Path) -> None:
    refused = replace(held(), answer=WireAnswer(500, "", (), b""))
    assert passes(tmp_path / "a", merged([], refused), post_data={"qty": 1}) is True
    assert passes(tmp_path / "b", merged([], refused), status=200) is False
    assert passes(tmp_path / "c", merged([], refused), post_data={"qty": 2}) is False
    assert passes(tmp_path / "d", merged([], held(headers=FOREIGN))) is False


def test_what_went_unrecorded_proves_nothing(tmp_path: Path) -> None:
    assert passes(tmp_path / "a", merged([], held(), left_out=1)) is False
    assert passes(tmp_path / "b", merged([], held(), left_out=1), at="any") is True
    cut = replace(held(), request=replace(held().request, body=b""), has_body=False)
    assert passes(tmp_path / "c", merged([], cut), post_data={"qty": 1}) is False
