"""`only`, `allow`, `times` and `exact`: what must not happen besides what a task asks for."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.records.checks import plain_checks
from judge.trajectory.network import LeftOut, MessagesLeftOut, write_har

FORM = "application/x-www-form-urlencoded"
CANCEL: dict[str, Any] = {"kind": "request", "method": "DELETE", "url": "/orders/2", "only": True}
ORDER: dict[str, Any] = {"kind": "request", "method": "POST", "url": "/orders", "post_data": {"lamp": 1}, "only": True}


def step(*requests: RecordedRequest) -> RecordedStep:
    return RecordedStep(requests=requests)


def cancelled(number: int, **more: Any) -> RecordedRequest:
    return RecordedRequest(
        **{"method": "DELETE", "path": f"/orders/{number}", "response": f'{{"id": {number}}}', **more}
    )


def ordered(number: int, post: str = '{"lamp": 1}', **more: Any) -> RecordedRequest:
    return RecordedRequest(path="/orders", post=post, response=f'{{"number": {number}}}', **more)


def socket(*sent: str | None) -> RecordedRequest:
    return RecordedRequest(
        method="GET", path="ws://shop.test/live", status=101, messages=tuple(("send", text) for text in sent)
    )


@pytest.mark.parametrize(
    "besides",
    [
        [RecordedRequest(method="GET", path="/orders/1")],
        [RecordedRequest(method="PROPFIND", path="/orders/1")],
        [RecordedRequest(path="http://ads.test/beacon")],
        [cancelled(1, status=404)],
        [cancelled(1, status=308)],
        [cancelled(2)],
    ],
    ids=["read", "read by WebDAV", "another site", "refused", "sent on", "repeated"],
)
def test_what_changes_nothing_on_the_site_may_be_sent(tmp_path: Path, besides: list[RecordedRequest]) -> None:
    assert evaluate_check(tmp_path, CANCEL, [step(*besides), step(cancelled(2))]).passed is True


@pytest.mark.parametrize(
    "besides",
    [
        cancelled(1),
        cancelled(1, status=0),
        cancelled(1, sender="http://evil.test"),
        cancelled(2, response='{"id": 2, "again": true}'),
        RecordedRequest(path="/orders/2/notes", post="x=1", mime_type=FORM),
        RecordedRequest(method="BREW", path="/pot"),
        socket('{"type": "cancel", "id": 1}'),
    ],
    ids=["another", "unanswered", "sent by another site", "answered otherwise", "a form", "unknown", "a message"],
)
def test_any_other_write_is_named_with_its_action(tmp_path: Path, besides: RecordedRequest) -> None:
    assertion = evaluate_check(tmp_path, CANCEL, [step(), step(besides), step(cancelled(2))])
    assert assertion.passed is False
    assert assertion.found.startswith("also ")
    assert "(after action 2)" in assertion.found
    assert assertion.near_step == 1
    assert (
        evaluate_check(tmp_path, CANCEL | {"only": False}, [step(), step(besides), step(cancelled(2))]).passed is True
    )


def test_repetitions_of_an_unexpected_write_are_reported_once(tmp_path: Path) -> None:
    found = evaluate_check(tmp_path, CANCEL, [step(cancelled(1), cancelled(1)), step(cancelled(2))]).found
    assert found == "also DELETE /orders/1: 200 (after action 1), 2 times"


def test_what_other_checks_of_the_task_name_is_expected(tmp_path: Path) -> None:
    log_in = RecordedRequest(path="/login", post='{"user": "ada"}')
    note = {"kind": "request", "method": "POST", "url": ["/login", "/orders/2/notes"]}
    noted = RecordedRequest(path="/orders/2/notes")
    walk = [step(log_in), step(cancelled(2), noted)]
    assert evaluate_check(tmp_path, CANCEL, walk).passed is False
    assert evaluate(recorded_attempt(tmp_path, [CANCEL, note], walk))[0].passed is True
    inverted = [CANCEL, {"kind": "request", "method": "POST", "url": "/login", "not": True}]
    assert evaluate(recorded_attempt(tmp_path, inverted, [step(log_in), step(cancelled(2))]))[0].passed is False


def test_a_second_order_with_an_answer_of_its_own_is_another_write(tmp_path: Path) -> None:
    twice = [step(ordered(1004)), step(ordered(1005))]
    assert evaluate_check(tmp_path, ORDER, twice).passed is False
    assert evaluate_check(tmp_path, ORDER | {"times": 2}, twice).passed is True
    assert evaluate_check(tmp_path, ORDER, [step(ordered(1004)), step(ordered(1004))]).passed is True


def test_the_same_answer_of_another_address_is_another_write(tmp_path: Path) -> None:
    made = {"kind": "request", "method": "MKCOL", "url": "/ada/*", "only": True}
    books = [RecordedRequest(method="MKCOL", path=f"/ada/{name}", status=201) for name in "ab"]
    assert evaluate_check(tmp_path, made, [step(books[0]), step(books[1])]).passed is False
    assert evaluate_check(tmp_path, made, [step(books[1]), step(books[1])]).passed is True


def test_what_a_later_put_replaces_does_not_matter(tmp_path: Path) -> None:
    plan = {"kind": "request", "method": "PUT", "url": "/plan", "post_data": {"first": "b"}, "only": True}
    first, then = (RecordedRequest(method="PUT", path="/plan", post=f'{{"first": "{name}"}}') for name in "ab")
    assert evaluate_check(tmp_path, plan, [step(first), step(then)]).passed is True
    assert evaluate_check(tmp_path, plan, [step(then), step(first)]).passed is False


def saved(text: str) -> RecordedRequest:
    return RecordedRequest(method="PUT", path="/plan", post=f'{{"first": "{text}"}}', response=f'{{"kept": "{text}"}}')


# A plan saved at each keystroke, and one order: each as some of the ways in which somebody comes to it.
PLANS = st.lists(st.text("abx", max_size=3), max_size=4).map(lambda drafts: [*map(saved, drafts), saved("b")])
ORDERS = st.sampled_from(
    [
        [ordered(7)],
        [ordered(7), ordered(7)],
        [RecordedRequest(path="/orders", post='{"lamp": 1}', status=422), ordered(7)],
        [RecordedRequest(path="/orders", post='{"lamp": 5}', status=409), ordered(7)],
    ]
)
NOISE = st.lists(
    st.sampled_from(
        [
            RecordedRequest(path="/events", post='{"seen": "/plan"}'),
            RecordedRequest(path="http://ads.test/beacon"),
            RecordedRequest(method="GET", path="/orders/1"),
        ]
    ),
    max_size=5,
)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(plans=PLANS, orders=ORDERS, noise=NOISE, data=st.data())
def test_an_honest_walk_in_any_order_passes_and_one_more_order_fails(
    tmp_path: Path, plans: list[RecordedRequest], orders: list[RecordedRequest], noise: list[RecordedRequest], data: Any
) -> None:
    queues = [list(each) for each in (plans, orders, noise) if each]
    walk = []
    while queues := [each for each in queues if each]:
        walk.append(data.draw(st.sampled_from(queues)).pop(0))
    plan = {"kind": "request", "method": "PUT", "url": "/plan", "post_data": {"first": "b"}, "only": True}
    checks = [plan | {"allow": [{"url": "/events"}]}, {key: value for key, value in ORDER.items() if key != "only"}]
    assert all(each.passed for each in evaluate(recorded_attempt(tmp_path, checks, list(map(step, walk)))))
    walk.insert(data.draw(st.integers(0, len(walk))), ordered(8, post='{"chair": 1}'))
    assert evaluate(recorded_attempt(tmp_path, checks, list(map(step, walk))))[0].passed is False


BATCH = {"method": "POST", "url": "/graphql", "post_data": {"$[*].name": ["boats", "basket"]}}
ALLOWED: list[tuple[dict[str, Any], RecordedRequest, bool]] = [
    ({"url": "/graphql"}, RecordedRequest(path="/graphql?_=17"), True),
    ({"url": "/graphql?_=1"}, RecordedRequest(path="/graphql?_=17"), False),
    ({"url": "/graphql", "query": {"_": "1*"}}, RecordedRequest(path="/graphql?_=17"), True),
    ({"url": "/graphql", "query": {"_": "1*"}}, RecordedRequest(path="/graphql?_=17&_=2"), False),
    ({"url": "/graphql", "method": "PUT"}, RecordedRequest(path="/graphql"), False),
    ({"url": "/ping"}, RecordedRequest(path="/graphql"), False),
    ({"url": "/form", "status": 200}, RecordedRequest(path="/form"), True),
    ({"url": "/form", "status": 200}, RecordedRequest(path="/form", status=303), False),
    (BATCH, RecordedRequest(path="/graphql", post='[{"name": "boats"}, {"name": "basket"}]'), True),
    (BATCH, RecordedRequest(path="/graphql", post='[{"name": "boats"}, {"name": "order"}]'), False),
    (BATCH, RecordedRequest(path="/graphql", post="[]"), False),
    (BATCH, RecordedRequest(path="/graphql", post='{"name": "boats"}'), False),
    (BATCH, RecordedRequest(path="/graphql", is_cut=True), False),
    (
        {"url": "/t", "post_data": {"unread": "0"}},
        RecordedRequest(path="/t", post="unread=0&a=1", mime_type=FORM),
        True,
    ),
    ({"url": "/t", "post_data": {"a": "0"}}, RecordedRequest(path="/t", post="a=0&a=1", mime_type=FORM), False),
    ({"url": "/live", "socket": True}, socket("2", None), True),
    ({"url": "/live", "socket": True, "message": "^2$"}, socket("2"), True),
    ({"url": "/live", "socket": True, "message": "^2$"}, socket("2", "42"), False),
    ({"url": "/live", "socket": True, "message": "^2$"}, socket(None), False),
    ({"url": "/live", "socket": True, "message": {"t": ["a", "b"]}}, socket('{"t": ["a", "b"]}'), True),
    ({"url": "/other", "socket": True}, socket("2"), False),
    ({"url": "/live"}, socket("2"), False),
]


@pytest.mark.parametrize(("allowed", "request_sent", "passes"), ALLOWED, ids=lambda value: str(value)[:40])
def test_what_a_page_sends_by_itself_is_allowed_by_address_and_content(
    tmp_path: Path, allowed: dict[str, Any], request_sent: RecordedRequest, passes: bool
) -> None:
    check = CANCEL | {"allow": [allowed]}
    assert evaluate_check(tmp_path, check, [step(request_sent), step(cancelled(2))]).passed is passes


def test_requests_before_the_first_action_are_the_pages_own(tmp_path: Path) -> None:
    attempt = recorded_attempt(tmp_path, [CANCEL], [step(cancelled(1)), step(cancelled(2))])
    har = tmp_path / "network.har"
    assert evaluate(attempt)[0].passed is False
    har.write_text(har.read_text().replace('"_step": 1', '"_step": 0'))
    assert evaluate(attempt)[0].passed is True


def test_a_held_write_counts_as_sent(tmp_path: Path) -> None:
    attempt = recorded_attempt(tmp_path, [CANCEL], [step(cancelled(1, status=404)), step(cancelled(2))])
    har = tmp_path / "network.har"
    assert evaluate(attempt)[0].passed is True
    har.write_text(har.read_text().replace('"_step": 1', '"_step": 1, "_held": true'))
    assert evaluate(attempt)[0].passed is False


@pytest.mark.parametrize(
    ("lost", "passes"),
    [
        (LeftOut(is_own=False, method="POST", url="http://shop.test/x", count=1), False),
        (LeftOut(is_own=True, count=1), False),
        (LeftOut(is_own=True, method="GET", url="http://shop.test/x", count=1), True),
        (LeftOut(is_own=False, method="POST", url="http://ads.test/x", count=1), True),
        (LeftOut(is_own=True, method="POST", url="http://shop.test/ping", count=9), True),
    ],
    ids=str,
)
def test_a_write_that_went_unrecorded_may_be_any(tmp_path: Path, lost: LeftOut, passes: bool) -> None:
    check = CANCEL | {"allow": [{"url": "/ping"}]}
    attempt = recorded_attempt(tmp_path, [check], [step(cancelled(2))])
    entries = [cancelled(2).har_entry(1)]
    write_har(tmp_path, entries, dict, left_out=[lost], messages_left_out=MessagesLeftOut(), versions={})
    assert evaluate(attempt)[0].passed is passes


def test_lost_messages_may_be_writes_unless_all_are_allowed(tmp_path: Path) -> None:
    def passes(check: dict[str, Any]) -> bool | None:
        lost = MessagesLeftOut(own=1)
        return evaluate(recorded_attempt(tmp_path, [check], [step(cancelled(2))], messages_left_out=lost))[0].passed

    assert passes(CANCEL) is False
    assert passes(CANCEL | {"allow": [{"socket": True, "url": "/live"}]}) is True


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_times_counts_requests_messages_and_actions(tmp_path: Path, count: int) -> None:
    hits = [step(ordered(7), socket('{"t": 1}')) for _ in range(count)]
    actions = [each.model_copy(update={"line": "<Buy button> -> CLICK"}) for each in hits]
    walk = [step(ordered(7, '{"lamp": 2}')), *actions]
    checks: list[dict[str, Any]] = [
        {"kind": "request", "method": "POST", "url": "/orders", "post_data": {"lamp": 1}},
        {"kind": "request", "socket": True, "url": "/live", "direction": "sent", "message": {"t": 1}},
        {"kind": "action", "line": "<Buy button> -> CLICK"},
        {"kind": "action", "pattern": "^<Buy"},
    ]
    exact = [check | {"times": 2} for check in checks]
    assert {each.passed for each in evaluate(recorded_attempt(tmp_path, exact, walk))} == {count == 2}
    fewer = [check | {"times": 2, "not": True} for check in checks]
    walk = [*walk, step(ordered(7, '{"lamp": 2}'))]
    assert {each.passed for each in evaluate(recorded_attempt(tmp_path, fewer, walk))} == {count < 2}


def test_the_last_request_must_match_however_many_do(tmp_path: Path) -> None:
    check = ORDER | {"only": False, "times": 1}
    walk = [step(ordered(7)), step(ordered(8, '{"lamp": 9}'))]
    assert evaluate_check(tmp_path, check, walk).passed is False
    assert evaluate_check(tmp_path, check | {"at": "any"}, walk).passed is True


BODIES: list[tuple[dict[str, Any], str, str]] = [
    ({"a": "1", "b[c]": "2"}, "a=1&b[c]=2", ""),
    ({"a": "1"}, "a=1&cc=Zz&d=", "cc, d"),
    ({"a": ["1", "2"]}, "a=1&a=2", ""),
    ({"a": 1, "b.c": 2}, '{"a": 1, "b": {"c": 2}}', ""),
    ({"a": 1, "b.c": 2}, '{"a": 1, "b": {"c": 2, "d": 3}, "e": []}', "b.d, e"),
    ({"b": {"c": 2}}, '{"b": {"c": 2, "d": 3}}', "b.d"),
    ({"a[*].x": 1}, '{"a": [{"x": 1}, {"x": 1, "y": 2}]}', "a[1].y"),
    ({"a[0]": 1}, '{"a": [1, 2]}', "a[1]"),
    ({"a": [{"x": 1}]}, '{"a": [{"x": 1, "y": 2}]}', "a[0].y"),
    ({"$[0]": 1}, "[1, 2]", "$[1]"),
    ({"a.b": 1}, '{"a.b": 1}', ""),
]


@pytest.mark.parametrize(("expected", "body", "others"), BODIES, ids=lambda value: str(value)[:40])
def test_exact_names_the_other_keys(tmp_path: Path, expected: dict[str, Any], body: str, others: str) -> None:
    check = {"kind": "request", "method": "POST", "url": "/orders", "post_data": expected}
    mime_type = "application/json" if body[0] in "[{" else FORM
    walk = [step(RecordedRequest(path="/orders", post=body, mime_type=mime_type))]
    assert evaluate_check(tmp_path, check, walk).passed is True
    assertion = evaluate_check(tmp_path, check | {"exact": True}, walk)
    assert assertion.passed is (not others)
    assert f"post_data has {others} as well" in assertion.found or not others


@pytest.mark.parametrize(
    ("expected", "passes"), [("<name>Crew</name>", True), ("*Crew*", True), ("*Team*", False), ("Crew", False)]
)
def test_a_body_that_is_neither_a_form_nor_json_is_compared_as_text(
    tmp_path: Path, expected: str, passes: bool
) -> None:
    check = {"kind": "request", "method": "PROPPATCH", "url": "/team", "post_data": expected}
    sent = RecordedRequest(method="PROPPATCH", path="/team", post="<name>Crew</name>", mime_type="text/plain")
    assert evaluate_check(tmp_path, check, [step(sent)]).passed is passes
    assert evaluate_check(tmp_path, check, [step(sent.model_copy(update={"post": None}))]).passed is False


def test_a_value_that_may_be_anything_stays_redacted(tmp_path: Path) -> None:
    check = {"kind": "request", "method": "POST", "url": "/orders", "exact": True}
    check |= {"post_data": {"csrf_token": "*", "name": "Ada"}}
    walk = [step(RecordedRequest(path="/orders", post="csrf_token=abcdef&name=Ada", mime_type=FORM))]
    assert evaluate_check(tmp_path, check, walk).passed is True
    assert "abcdef" not in (tmp_path / "network.har").read_text()


def test_the_new_keys_are_written_and_read_again(tmp_path: Path) -> None:
    check = ORDER | {"times": 1, "exact": True, "allow": [{"url": "/ping", "post_data": {"unread": ["0", "1"]}}]}
    (declared,) = plain_checks(recorded_attempt(tmp_path, [check], [step()]).task.checks)
    assert declared.model_dump(mode="json", exclude_defaults=True) == check
