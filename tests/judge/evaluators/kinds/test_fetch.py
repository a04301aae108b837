"""`fetch` checks: how the judge asks, what it stores, and what the stored answer decides."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.episode.scripted import SkippingLoop
from helpers.trajectory.recordings import SHOP, RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.evaluators.kinds.fetch import Fetches
from judge.records.assertions import Assertion
from judge.records.sites import NONE_SHARED
from judge.records.tasks import Task
from judge.trajectory.fetched import MAX_BODY_BYTES, Fetched, FetchResponse, stored
from judge.trajectory.redaction import REDACTED, Redaction

CART = '{"items": [{"sku": "D-1", "qty": 2}], "total": 518, "token": "abc"}'
JSON = "application/json"
CHECK: dict[str, Any] = {"kind": "fetch", "url": "/api/cart", "response": {"total": 518}}


def task_with(*checks: dict[str, Any], **more: Any) -> Task:
    return Task.model_validate({"task_id": "t", "website": f"{SHOP}/", "task": "x", "checks": list(checks), **more})


def redacted(task: Task, *secrets: str) -> Callable[..., dict[str, Any]]:
    return Redaction(secrets, keep=task.named_fields, salt=b"x").entry


def stored_answer(check: dict[str, Any], answer: FetchResponse, *secrets: str) -> Fetched:
    task = task_with(check)
    return stored(check["url"], check.get("bearer"), answer, redacted(task, *secrets))


def decided(folder: Path, check: dict[str, Any], answer: FetchResponse) -> Assertion:
    recorded = recorded_attempt(folder, [check], [RecordedStep()], fetched=(stored_answer(check, answer),))
    (assertion,) = evaluate(recorded)
    return assertion


def answered(body: str, type: str = JSON, status: int = 200) -> FetchResponse:
    return FetchResponse(status=status, type=type, body=body)


@pytest.mark.parametrize(
    ("response", "body", "type", "passed"),
    [
        ({"total": 518}, CART, JSON, True),
        ({"items[*].sku": "D-1"}, CART, "application/json; charset=utf-8", True),
        ({"items[0]": {"qty": 2}}, CART, "text/plain", True),
        ({"items": [{"sku": "D-*", "qty": 2}]}, CART, JSON, True),
        ({"token": "abc"}, CART, JSON, True),
        ("2 desks", " 2\n desks\n", "text/plain", True),
        ("*desks*", "<p>2 desks</p>", "text/html; charset=utf-8", True),
        ({"total": 519}, CART, JSON, False),
        ({"items[1].sku": "D-1"}, CART, JSON, False),
        ({"total": 518}, "518", JSON, False),
        ("desks", "2 desks", "text/plain", False),
        ({"total": 518}, "<p>518</p>", "text/html", False),
        ({"total": 518}, CART[:-1], JSON, False),
    ],
)
def test_an_answer_is_compared_like_the_response_of_a_request(
    tmp_path: Path, response: Any, body: str, type: str, passed: bool
) -> None:
    assert decided(tmp_path, {**CHECK, "response": response}, answered(body, type)).passed is passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (FetchResponse(error="connect ECONNREFUSED"), "no answer: connect ECONNREFUSED"),
        (answered(CART, status=500), "no answer: status 500"),
        (answered(CART, status=404), "no answer: status 404"),
        (answered("x" * (MAX_BODY_BYTES + 1), "text/plain"), f"no answer: the answer has more than {MAX_BODY_BYTES}"),
        (
            answered("PK", "application/zip"),
            "no answer: the answer is neither JSON nor text nor XML, but application/zip",
        ),
        (answered("{", JSON), "no answer: the answer is not readable as JSON"),
        (answered("<p>Log in</p>", "text/html"), "an answer that is not JSON"),
    ],
)
@pytest.mark.parametrize("inverted", [False, True])
def test_an_error_fails_the_check_inverted_or_not(
    tmp_path: Path, answer: FetchResponse, message: str, inverted: bool
) -> None:
    assertion = decided(tmp_path, {**CHECK, "response": {"total": 1}, "not": inverted}, answer)
    assert assertion.passed is False
    assert message in assertion.found


def test_the_finding_shows_a_page_as_text(tmp_path: Path) -> None:
    page = "<!doctype html><title>Shop</title><nav>Help</nav><main><script>a</script><td>1 &lt; <b>2</b></td></main>"
    check = {"kind": "fetch", "url": "/api/cart", "response": "*<td>3*"}
    assert decided(tmp_path, check, answered(page, "text/html")).found == "1 < 2"


@pytest.mark.parametrize(("total", "passed"), [(1, True), (518, False)])
def test_an_inverted_check_passes_if_the_answer_is_another_one(tmp_path: Path, total: int, passed: bool) -> None:
    check = {**CHECK, "response": {"total": total}, "not": True}
    assert decided(tmp_path, check, answered(CART)).passed is passed


def test_a_recording_without_the_answer_is_undecided(tmp_path: Path) -> None:
    (assertion,) = evaluate(recorded_attempt(tmp_path, [CHECK], [RecordedStep()]))
    assert assertion.passed is None
    assert assertion.found == "the judge recorded no answer of /api/cart"


def test_another_header_is_another_answer(tmp_path: Path) -> None:
    known = stored_answer(CHECK, answered(CART))
    check = {**CHECK, "bearer": "localStorage:token"}
    (assertion,) = evaluate(recorded_attempt(tmp_path, [check], [RecordedStep()], fetched=(known,)))
    assert assertion.passed is None


def test_what_looks_like_a_credential_is_stored_only_if_it_is_compared() -> None:
    compared_token = stored_answer({**CHECK, "response": {"token": "abc"}}, answered(CART))
    left_out = stored_answer(CHECK, answered(CART))
    assert '"abc"' in (compared_token.body or "")
    assert '"abc"' not in (left_out.body or "")
    assert REDACTED in (left_out.body or "")


def test_listed_secrets_are_stored_nowhere() -> None:
    text = stored_answer({**CHECK, "response": "*"}, answered("the password is hunter22", "text/plain"), "hunter22")
    error = stored_answer(CHECK, FetchResponse(error="no route to http://shop.test/hunter22"), "hunter22")
    assert (text.body, error.error) == (f"the password is {REDACTED}", f"no route to http://shop.test/{REDACTED}")


class Site:
    """Answers as told, one after the other; the last answer for ever. `requests` are the addresses and names."""

    def __init__(self, *answers: FetchResponse) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[str, str | None]] = []

    async def fetch(self, url: str, key: str | None) -> FetchResponse:
        self.requests.append((url, key))
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def ask(task: Task, site: Site, landed: str = f"{SHOP}/") -> tuple[Fetched, ...]:
    async def asking() -> tuple[Fetched, ...]:
        fetches = Fetches(task, redacted(task))
        await fetches.ask(site, NONE_SHARED.of(task, landed=landed))
        return fetches.answers

    # Its time passes at once.
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(asking())


def test_the_site_is_asked_again_until_the_check_passes() -> None:
    site = Site(answered('{"total": 0}'), FetchResponse(error="connect ECONNREFUSED"), answered(CART))
    (fetch,) = ask(task_with(CHECK), site)
    assert len(site.requests) == 3
    assert '"total": 518' in (fetch.body or "")


def test_the_site_is_asked_for_two_seconds_at_most() -> None:
    site = Site(answered('{"total": 0}'))
    (fetch,) = ask(task_with(CHECK), site)
    assert 5 < len(site.requests) < 15
    assert fetch.body == '{"total": 0}'


def test_one_answer_serves_all_checks_of_an_address() -> None:
    other = {**CHECK, "response": {"items[0].qty": 1}, "not": True}
    site = Site(answered(CART))
    assert len(ask(task_with(CHECK, {"any_of": [other]}), site)) == 1
    assert site.requests == [(f"{SHOP}/api/cart", None)]


def test_in_an_inverted_choice_a_check_is_asked_until_it_does_not_pass() -> None:
    site = Site(answered(CART), answered('{"total": 0}'))
    (fetch,) = ask(task_with({"any_of": [CHECK], "not": True}), site)
    assert fetch.body == '{"total": 0}'


def test_the_name_in_the_local_storage_is_handed_on() -> None:
    site = Site(answered(CART))
    ask(task_with({**CHECK, "bearer": "localStorage:auth token"}), site)
    assert site.requests == [(f"{SHOP}/api/cart", "auth token")]


class Redirecting(Site):
    """Answers the first address with a redirect, and any other with the cart."""

    def __init__(self, to: str) -> None:
        super().__init__(answered(CART))
        self._to = to

    async def fetch(self, url: str, key: str | None) -> FetchResponse:
        answer = await super().fetch(url, key)
        return redirect(self._to) if url == f"{SHOP}/api/cart" else answer


def redirect(to: str) -> FetchResponse:
    return FetchResponse(status=302, location=to)


@pytest.mark.parametrize(
    ("to", "allowed", "followed"),
    [
        (f"{SHOP}/api/v2/cart#top", (), True),
        ("https://www.shop.test/cart", (), True),
        ("http://api.test/cart", ("api.test",), True),
        ("http://evil.test/cart", (), False),
        ("http://shop.test.evil.test/cart", (), False),
        ("http://shop.test@evil.test/cart", (), False),
        ("http://shop.test:8080/cart", (), False),
        ("file:///etc/passwd", (), False),
        ("data:application/json,{%22total%22:518}", (), False),
    ],
)
def test_a_redirect_is_followed_on_the_tasks_site_only(to: str, allowed: tuple[str, ...], followed: bool) -> None:
    site = Redirecting(to)
    (fetch,) = ask(task_with(CHECK, allowed_sites=allowed), site, landed="https://www.shop.test/")
    assert ((to.partition("#")[0], None) in site.requests) is followed
    assert (fetch.error is None) is followed


def test_redirects_end() -> None:
    site = Site(redirect(f"{SHOP}/api/cart"))
    (fetch,) = ask(task_with(CHECK), site)
    assert fetch.error == "more than 5 redirects"


def test_an_address_off_the_tasks_site_is_not_asked() -> None:
    site = Site(answered(CART))
    (fetch,) = ask(task_with({**CHECK, "url": "http://evil.test/cart"}), site)
    assert (site.requests, fetch.error) == ([], '"http://evil.test/cart" is not on the task\'s site')


def test_what_was_never_asked_is_an_error() -> None:
    task = task_with(CHECK)
    (fetch,) = Fetches(task, redacted(task)).answers
    assert fetch.error == "the attempt ended before the judge could ask"
