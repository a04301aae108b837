"""Checks of requests: which requests count, and what happens without a recording."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import SHOP, RecordedRequest, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.records.files import TaskFile
from judge.records.tasks import Task
from judge.trajectory.network import LeftOut, write_har
from judge.trajectory.redaction import Redaction

CHECK: dict[str, Any] = {"kind": "request", "method": "POST", "url": "/order"}
EVIL = "http://evil.test"


def order(**changes: Any) -> list[RecordedStep]:
    return [RecordedStep(requests=(RecordedRequest(**{"path": "/order", **changes}),))]


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"sender": "browser"}, True),
        ({"sender": None}, False),
        ({"sender": None, "headers": {"Origin": "http://shop.test", "Sec-Fetch-Site": "same-origin"}}, False),
        ({"sender": "null"}, False),
        ({"sender": EVIL}, False),
        ({"sender": "http://shop.test:81"}, False),
        ({"sender": "http://shop.test.evil.test"}, False),
    ],
    ids=str,
)
def test_a_request_counts_if_the_site_itself_or_the_browser_is_known_to_have_sent_it(
    tmp_path: Path, changes: dict[str, Any], counts: bool
) -> None:
    assert evaluate_check(tmp_path, CHECK, order(**changes)).passed is counts


def test_what_must_not_be_sent_counts_whoever_sent_it(tmp_path: Path) -> None:
    assert evaluate_check(tmp_path, CHECK | {"not": True}, order(sender=EVIL)).passed is False


def test_requests_of_an_allowed_site_count(tmp_path: Path) -> None:
    payment = [RecordedStep(requests=(RecordedRequest(path="https://pay.test/pay", sender="https://pay.test"),))]
    check = CHECK | {"url": "https://pay.test/pay"}
    assert evaluate_check(tmp_path, check, payment, allowed_sites=["pay.test"]).passed is True
    assert evaluate_check(tmp_path, check, payment).passed is False


def test_the_step_is_the_one_whose_action_caused_the_request(tmp_path: Path) -> None:
    assert evaluate_check(tmp_path, CHECK, [RecordedStep(), *order(), RecordedStep()]).step == 1


def test_a_value_that_differs_is_named_with_the_request(tmp_path: Path) -> None:
    assertion = evaluate_check(tmp_path, CHECK | {"post_data": {"qty": 2}}, order(post='{"qty": 3}'))
    assert assertion.found == 'post_data qty is 3 in POST /order {"qty": 3}: 200'


def test_of_a_long_form_the_compared_fields_are_shown_and_secrets_are_not(tmp_path: Path) -> None:
    post = "csrf_token=abcdefgh&" + "&".join(f"other_{n}=x" for n in range(99)) + "&qty=3&size=big+one"
    requests = order(post=post, mime_type="application/x-www-form-urlencoded")
    assertion = evaluate_check(tmp_path, CHECK | {"post_data": {"qty": 2, "size": "big one"}}, requests)
    assert assertion.found.startswith('post_data qty is "3" in POST /order qty=3&size=big one&other_0=x&')
    assert "csrf_token" not in assertion.found


@pytest.mark.parametrize(
    ("check", "closest"),
    [
        (CHECK | {"url": "/orders"}, ["POST /order/7: 200", "POST /api/cart: 200", "GET /orders: 200"]),
        ({"kind": "request", "url": "/api/card"}, ["POST /api/cart: 200", "POST /order/7: 200", "GET /poll: 200"]),
        (CHECK | {"method": "PUT", "url": "/api/cart"}, ["POST /api/cart: 200", "POST /order/7: 200"]),
    ],
)
def test_the_closest_requests_are_named_by_method_and_address_and_writes_before_reads(
    tmp_path: Path, check: dict[str, Any], closest: list[str]
) -> None:
    requests = [("GET", "/orders"), ("POST", "/order/7"), ("POST", "/api/cart"), *[("GET", "/poll")] * 9]
    if check["url"] == "/api/card":
        requests = requests[1:]
    step = RecordedStep(requests=tuple(RecordedRequest(method=method, path=path) for method, path in requests))
    message = evaluate_check(tmp_path, check, [step]).found
    assert message.startswith(f"no such request; instead {'; '.join(closest)}")


@pytest.mark.parametrize(("check", "passes"), [({}, True), ({"status": 200}, False)])
def test_a_download_counts_as_answered_but_its_status_is_not_known(
    tmp_path: Path, check: dict[str, Any], passes: bool
) -> None:
    attempt = recorded_attempt(tmp_path, [CHECK | {"method": "GET"} | check], order(method="GET", status=0))
    har = attempt.folder / "network.har"
    har.write_text(har.read_text().replace('"_resourceType"', '"_download": true, "_resourceType"'))
    assert evaluate(attempt)[0].passed is passes
    har.write_text(har.read_text().replace('"_download": true, ', ""))
    assert evaluate(attempt)[0].passed is False


def test_without_such_a_request_the_closest_ones_are_named(tmp_path: Path) -> None:
    assertion = evaluate_check(tmp_path, CHECK | {"url": "/orders"}, order())
    assert assertion.found == "no such request; instead POST /order: 200"


@pytest.mark.parametrize("damage", ["missing", "not JSON", "no HAR"])
def test_a_missing_or_damaged_trace_leaves_the_check_undecided(tmp_path: Path, damage: str) -> None:
    trajectory = recorded_attempt(tmp_path, [CHECK, {"kind": "page", "url": "/"}], order())
    path = tmp_path / "network.har"
    path.unlink() if damage == "missing" else path.write_text("{" if damage == "not JSON" else "{}")
    request, page = evaluate(trajectory)
    assert (request.passed, page.passed) == (None, True)
    assert "network.har" in request.found


def test_without_a_trace_the_check_is_undecided_for_the_reason_that_was_recorded(tmp_path: Path) -> None:
    trajectory = recorded_attempt(tmp_path, [CHECK], order()).model_copy(update={"network": None})
    (assertion,) = evaluate(trajectory)
    assert assertion.passed is None
    assert "no recorded requests: there is no network.har" in assertion.found


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ({"response": {"total": 3}}, {"is_answer_cut": True}),
        ({"post_data": {"qty": 2}}, {"is_cut": True}),
        ({"post_data": {"qty": 2}}, {"post": '{"qty": 2', "mime_type": "application/json"}),
        ({"post_data": {"qty": 2}}, {"post": "qty=2", "mime_type": "application/octet-stream"}),
        ({"headers": {"X-A": "1"}}, {"has_no_headers": True}),
        ({"query": {"a": "1"}}, {"path": "/order?a=1", "is_url_cut": True}),
        ({"query": {"a": "1"}}, {"path": "/order?a=1" + "&" * 1_000}),
    ],
    ids=["answer", "body", "JSON", "unnamed values", "headers", "address", "parameters"],
)
@pytest.mark.parametrize("inverted", [False, True])
def test_what_was_not_recorded_fails_a_check_of_it(
    tmp_path: Path, keys: dict[str, Any], changes: dict[str, Any], inverted: bool
) -> None:
    assert evaluate_check(tmp_path, CHECK | keys | {"not": inverted}, order(**changes)).passed is False


def test_a_recorded_difference_decides_an_inverted_check_despite_unrecorded_requests(tmp_path: Path) -> None:
    check = CHECK | {"not": True, "query": {"a": "1"}, "post_data": {"qty": 2}}
    assert evaluate_check(tmp_path, check, order(path="/order?a=2", is_cut=True)).passed is True


def left_out(path: str, *, is_own: bool = True) -> LeftOut:
    return LeftOut(is_own=is_own, method="POST", url=SHOP + path if path else "", count=7)


@pytest.mark.parametrize(
    ("counts", "keys", "passed"),
    [
        # The last request to an address is always recorded: what was left out came before.
        (left_out("/order"), {}, True),
        (left_out("/other"), {}, True),
        (left_out("/order"), {"at": "any"}, True),
        (left_out(""), {"at": "any"}, True),
        (left_out(""), {}, False),
        (left_out("/order"), {"url": ["/cart", "/order"]}, True),
        # The last request does not match, and one of those before it could.
        (left_out("/order"), {"post_data": {"qty": 3}, "at": "any"}, False),
        (left_out("/order"), {"not": True, "post_data": {"qty": 3}}, False),
        (left_out("/other"), {"not": True, "post_data": {"qty": 3}}, True),
        # Others' requests decide only what must not be sent.
        (left_out("", is_own=False), {}, True),
        (left_out("", is_own=False), {"not": True, "post_data": {"qty": 3}}, False),
        (left_out("/order", is_own=False), {"not": True, "post_data": {"qty": 3}}, False),
    ],
    ids=str,
)
def test_a_check_fails_if_the_request_that_decides_may_have_been_left_out(
    tmp_path: Path, counts: LeftOut, keys: dict[str, Any], passed: bool
) -> None:
    trajectory = recorded_attempt(tmp_path, [CHECK | keys], order())
    entries = [RecordedRequest(path=path, post='{"qty": 2}').har_entry(1) for path in ("/cart", "/order")]
    write_har(tmp_path, entries, Redaction(salt=b"").entry, left_out=[counts], versions={})
    (assertion,) = evaluate(trajectory)
    assert assertion.passed is passed


def test_every_name_that_a_check_compares_is_kept() -> None:
    checks = [
        CHECK | {"post_data": {"form_key": "x", "user.api_token": "y", "auth": {"pin": 1}}},
        {"any_of": [CHECK | {"url": "/a?session=1", "query": {"key": "k"}, "headers": {"X-Token": "t"}}]},
        {"kind": "page", "url": "/?secret=1"},
    ]
    task = Task.model_validate({"task_id": "t", "website": "", "task": "x", "checks": checks})
    assert task.named_fields >= {"form_key", "api_token", "pin", "session", "key", "x-token"}
    assert "secret" not in task.named_fields


CV, OLD = TaskFile.of("cv.pdf", b"new"), TaskFile.of("cv-old.pdf", b"old")
SENT_FILE = ("cv", "cv.pdf", b"new")


@pytest.mark.parametrize(
    ("files", "sent_files", "why"),
    [
        ([{"field": "cv", "name": "cv.pdf", "file": "cv.pdf"}], (SENT_FILE,), None),
        ([{"file": "cv.pdf"}], (("other", "x", b"1"), SENT_FILE), None),
        ([{"field": "c*", "name": "*.pdf"}], (SENT_FILE,), None),
        # Each is another one, whichever is looked for first.
        ([{"field": "cv"}, {"file": "cv.pdf"}], (SENT_FILE, ("cv", "b.pdf", b"1")), None),
        ([{"file": "cv.pdf"}, {"file": "cv.pdf"}], (SENT_FILE,), "no file with file cv.pdf"),
        ([{"file": "cv.pdf"}], (("cv", "cv.pdf", b"old"),), "instead field cv, name cv.pdf, the task's cv-old.pdf"),
        ([{"file": "cv.pdf"}], (("cv", "cv.pdf", b"new "),), "4 bytes that are none of the task's files"),
        ([{"field": "photo", "file": "cv.pdf"}], (SENT_FILE,), "no file with field photo, file cv.pdf"),
        ([{"name": "other.pdf", "file": "cv.pdf"}], (SENT_FILE,), "no file with name other.pdf"),
        ([{"file": "cv.pdf"}], (), "no file with file cv.pdf in POST /order"),
    ],
)
def test_files_that_were_sent_are_compared_by_field_name_and_content(
    tmp_path: Path, files: list[dict[str, str]], sent_files: tuple[tuple[str, str, bytes], ...], why: str | None
) -> None:
    check = CHECK | {"files": files}
    declared = [each.model_dump() for each in (CV, OLD)]
    recorded = recorded_attempt(tmp_path, [check], order(files=sent_files), seen_by="guard", files=declared)
    (one,) = evaluate(recorded)
    assert (one.passed, (why or "") in one.found) == (why is None, True), one.found
    # What else a page puts into a file cannot be guessed from its digest.
    digests = [
        each["sha256"]
        for each in json.loads((tmp_path / "network.har").read_text())["log"]["entries"][0].get("_files", [])
    ]
    known = {CV.sha256, OLD.sha256}
    assert all(digest in known or digest.startswith("sha256:") for digest in digests)


def test_files_that_nobody_read_leave_the_check_undecided(tmp_path: Path) -> None:
    assertion = evaluate_check(tmp_path, CHECK | {"files": [{"field": "cv"}]}, order())
    assert (assertion.passed, "play it again" in assertion.found) == (None, True)
