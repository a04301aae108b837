"""The guard's record of requests joined with the browser's: each is there once, whole, with a sender only if known."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.trajectory.recordings import checked
from judge.browser.requests import RequestLog
from judge.browser.session import Traffic
from judge.network import wire as wire_limits
from judge.network.interception import HeaderPairs, SocketMessage, WireAnswer, WireRequest
from judge.network.wire import ExchangeRecord
from judge.records.sites import Site, origin_of
from judge.trajectory.network import Entry

SHOP, EVIL = "https://shop.example", "https://evil.example"
ORDER = f"{SHOP}/order"
JSON = ("Content-Type", "application/json")
OWN: HeaderPairs = (JSON, ("Origin", SHOP), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "empty"))
FOREIGN: HeaderPairs = (JSON, ("Origin", EVIL), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "empty"))


class GuardedRequest(NamedTuple):
    """A request that the guard read."""

    request: WireRequest
    answer: WireAnswer | None
    at_ms: int


def held_request(
    body: str = '{"qty": 1}',
    headers: HeaderPairs = OWN,
    *,
    url: str = ORDER,
    step: int = 1,
    status: int = 200,
    method: str = "POST",
    at_ms: int = 5,
    is_held: bool = True,
) -> GuardedRequest:
    answer = WireAnswer(status, "OK", (("Content-Type", "application/json"),), b"{}", is_held=is_held)
    return GuardedRequest(WireRequest(method, url, headers, body.encode(), step), answer, at_ms)


def passed_on(*args: Any, **keys: Any) -> GuardedRequest:
    return held_request(*args, is_held=False, **keys)


def reported(
    body: str | None = '{"qty": 1}', headers: HeaderPairs = OWN, *, status: int = 200, at_ms: int = 4, **more: Any
) -> dict[str, Any]:
    """What the browser reports of a request; without a body, it did not observe it."""
    fixed = {"origin": dict(headers).get("Origin"), "site": dict(headers).get("Sec-Fetch-Site")}
    part: dict[str, Any] = {"began": at_ms, "method": "POST", "url": ORDER, "type": "fetch", "status": status}
    part |= {"fixed": {name: value for name, value in fixed.items() if value}, "headers": headers, "sender": {}}
    if body is not None:
        digest = hashlib.sha256(body.encode()).hexdigest()
        part |= {"post": {"text": body}, "digest": digest, "size": len(body)}
    return part | more


def recorded(*requests: GuardedRequest) -> ExchangeRecord:
    """The guard's record of these requests."""
    wire = ExchangeRecord()
    wire.site = Site(frozenset(filter(None, [origin_of(SHOP)])))
    for request in requests:
        exchange = wire.begin(request.request, 1)
        exchange.began_ms = request.at_ms
        wire.settle(exchange, request.answer)
    return wire


def merged(folder: Path, parts: list[dict[str, Any]], *requests: GuardedRequest) -> Traffic:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"id": number, **part}) + "\n" for number, part in enumerate(parts)]
    (folder / "requests.jsonl").write_text("".join(['{"step": 1}\n', *lines]))
    return RequestLog(folder).read(recorded(*requests))


def summary_of(traffic: Traffic) -> list[tuple[bool, str | None, str]]:
    """Whether each request was held, its sender, and its body."""
    parsed = [Entry.model_validate(entry) for entry in traffic.entries]
    bodies = [entry.request.body for entry in parsed]
    return [
        (entry.is_held, entry.sender, (body.text or "") if body else "")
        for entry, body in zip(parsed, bodies, strict=True)
    ]


def test_a_request_that_the_browser_reported_is_marked_and_stays_in_its_place(tmp_path: Path) -> None:
    page = reported(None, url=f"{SHOP}/", method="GET")
    traffic = merged(tmp_path, [page, reported(sender={"document": SHOP}), page], held_request())
    assert [is_held for is_held, _, _ in summary_of(traffic)] == [False, True, False]
    assert summary_of(traffic)[1] == (True, SHOP, '{"qty": 1}')


def test_what_the_browser_did_not_see_of_it_comes_from_the_wire(tmp_path: Path) -> None:
    bare = reported(None, (), status=0, failure="net::ERR_ABORTED", sender={"document": SHOP})
    (entry,) = merged(tmp_path, [bare], held_request()).entries
    parsed = Entry.model_validate(entry)
    assert (parsed.response.status, parsed.response.error, parsed.sender) == (200, None, SHOP)
    assert {pair.name for pair in parsed.request.headers} >= {"Origin", "Sec-Fetch-Site"}
    assert summary_of(merged(tmp_path, [bare], held_request()))[0][2] == '{"qty": 1}'


def test_a_request_that_the_browser_did_not_report_is_added_where_it_began(tmp_path: Path) -> None:
    page = [reported(None, url=f"{SHOP}/{at}", method="GET", at_ms=at * 10) for at in (1, 2, 3)]
    traffic = merged(tmp_path, page, held_request(at_ms=25, step=2))
    assert [entry["request"]["url"].rpartition("/")[2] for entry in traffic.entries] == ["1", "2", "order", "3"]
    assert summary_of(traffic)[2] == (True, SHOP, '{"qty": 1}')
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
def test_another_request_is_not_taken_for_it(tmp_path: Path, other: dict[str, Any]) -> None:
    assert [is_held for is_held, _, _ in summary_of(merged(tmp_path, [other], held_request()))] == [False, True]


def test_each_of_several_alike_is_there_once(tmp_path: Path) -> None:
    entries = [reported(headers=FOREIGN), reported(), reported()]
    traffic = merged(tmp_path, entries, held_request(), held_request(headers=FOREIGN), held_request())
    assert [(is_held, sender) for is_held, sender, _ in summary_of(traffic)] == [
        (True, EVIL),
        (True, SHOP),
        (True, SHOP),
    ]


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
def test_a_sender_is_made_out_only_from_headers_that_agree(
    tmp_path: Path, headers: HeaderPairs, sender: str | None
) -> None:
    (entry,) = merged(tmp_path, [], held_request(headers=headers)).entries
    assert entry["_sender"] == sender


def test_a_sender_that_the_two_records_contradict_is_unknown(tmp_path: Path) -> None:
    redirected = reported(sender={"document": EVIL})
    assert summary_of(merged(tmp_path, [redirected], held_request()))[0][:2] == (True, None)
    assert summary_of(merged(tmp_path, [redirected], passed_on()))[0][:2] == (False, None)


def test_what_the_guard_passed_on_has_the_browser_s_answer_and_the_guard_s_payload(tmp_path: Path) -> None:
    part = reported(None, sender={"document": SHOP}, answered=6, ended=7, type="xhr") | {"body": {"text": "{}"}}
    (entry,) = merged(tmp_path, [part], passed_on()).entries
    parsed = Entry.model_validate(entry)
    assert (parsed.sender, parsed.resource_type, entry["connection"]) == (SHOP, "xhr", "1")
    assert (parsed.request.body and parsed.request.body.text, parsed.response.body.text) == ('{"qty": 1}', "{}")


@pytest.mark.parametrize("headers", [OWN, FOREIGN, ()], ids=["own", "foreign", "none"])
def test_what_the_browser_did_not_report_has_no_sender_unless_it_was_held(tmp_path: Path, headers: HeaderPairs) -> None:
    (entry,) = merged(tmp_path, [], passed_on(headers=headers)).entries
    assert (entry["_sender"], entry["response"]["status"]) == (None, 200)
    # Its answer was not recorded, which is not the same as an answer without content.
    assert entry["response"]["content"]["_truncated"]


def test_what_the_guard_did_not_see_stays_as_the_browser_reported_it(tmp_path: Path) -> None:
    cached = reported(None, method="GET", sender={"document": SHOP}, headers=())
    first, second = merged(tmp_path, [cached, cached], passed_on("", (), method="GET")).entries
    assert ("connection" in first, "connection" in second) == (True, False)
    assert first["_sender"] == second["_sender"] == SHOP


def test_an_image_is_not_evidence_for_a_check_of_the_task(tmp_path: Path) -> None:
    image = (("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "image"))
    traffic = merged(tmp_path, [], passed_on("", image, method="GET"))
    assert [entry["_resourceType"] for entry in traffic.entries] == ["image"]
    assert passes(tmp_path / "a", traffic, method="GET", **{"not": True}) is True


def test_the_messages_of_a_socket_that_the_browser_did_not_report_are_recorded(tmp_path: Path) -> None:
    wire = recorded()
    exchange = wire.begin(WireRequest("GET", "wss://shop.example/live"), 1)
    wire.settle(exchange, WireAnswer(101))
    wire.step = 2
    for requests, text in ((True, b"buy"), (False, b"bought"), (True, b"x" * 600_000)):
        wire.add_message(exchange, SocketMessage(requests, True, text))
    wire.add_message(exchange, SocketMessage(True, False, b"not text"))
    traffic = RequestLog(tmp_path).read(wire)
    (entry,) = map(Entry.model_validate, traffic.entries)
    assert [(each.type, each.text, each.step) for each in entry.messages] == [
        ("send", "buy", 2),
        ("receive", "bought", 2),
    ]
    assert traffic.messages_left_out.other == 1


REQUESTS = st.lists(
    st.tuples(st.sampled_from(("{}", '{"qty": 1}', "")), st.sampled_from((OWN, FOREIGN, ()))), max_size=12
)


@given(held_requests=REQUESTS, others=REQUESTS, data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_held_request_is_there_once_and_no_other_is_lost(
    tmp_path: Path,
    held_requests: list[tuple[str, HeaderPairs]],
    others: list[tuple[str, HeaderPairs]],
    data: st.DataObject,
) -> None:
    known = data.draw(
        st.lists(st.sampled_from(held_requests), max_size=len(held_requests)) if held_requests else st.just([])
    )
    entries = [reported(body or None, headers) for body, headers in known]
    entries += [reported(body, headers, status=404) for body, headers in others]
    result = summary_of(merged(tmp_path, entries, *(held_request(body, headers) for body, headers in held_requests)))
    assert sorted(body for is_held, _, body in result if is_held) == sorted(body for body, _ in held_requests)
    assert sum(not is_held for is_held, _, _ in result) >= len(others)
    assert not {sender for is_held, sender, _ in result if is_held} - {SHOP, EVIL, None}


def passes(folder: Path, traffic: Traffic, **check: Any) -> bool | None:
    """Whether a check of the order passes."""
    expected = {"kind": "request", "method": "POST", "url": "/order", **check}
    return checked(folder, f"{SHOP}/", expected, traffic).passed


def test_a_held_request_counts_as_sent_whatever_the_page_was_told(tmp_path: Path) -> None:
    refused = held_request(status=500)
    assert passes(tmp_path / "a", merged(tmp_path, [], refused), post_data={"qty": 1}) is True
    assert passes(tmp_path / "b", merged(tmp_path, [], refused), status=200) is False
    assert passes(tmp_path / "c", merged(tmp_path, [], refused), post_data={"qty": 2}) is False
    assert passes(tmp_path / "d", merged(tmp_path, [], held_request(headers=FOREIGN))) is False


def test_what_went_unrecorded_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = wire_limits._LIMITS_WHILE_HOLDING._replace(entries=1)
    monkeypatch.setattr(wire_limits, "_LIMITS_WHILE_HOLDING", one)
    two = merged(tmp_path, [], held_request(), held_request())
    assert passes(tmp_path / "a", two) is False
    assert passes(tmp_path / "b", two, at="any") is True
    monkeypatch.setattr(wire_limits, "_LIMITS_WHILE_HOLDING", one._replace(body_bytes=5))
    cut = merged(tmp_path, [], held_request())
    assert passes(tmp_path / "c", cut, post_data={"qty": 1}) is False
    assert passes(tmp_path / "d", cut) is True
