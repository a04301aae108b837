"""Which requests are held, the reply that the page gets, and what is recorded of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.network.interceptors import answer
from judge.network.holding import Holding, Rules, reply_to
from judge.network.interception import (
    HeaderPairs,
    PageSocket,
    RequestFailed,
    RequestRefused,
    SiteSocket,
    SocketClose,
    SocketMessage,
    WireAnswer,
    WireRequest,
)
from judge.records.holds import Hold
from judge.records.sites import NONE_SHARED
from judge.records.tasks import Task

SHOP, PAY = "https://shop.example", "https://pay.example"
POLICY = {"name": "no-order", "dimension": "consent", "kind": "request", "url": "/order"}


def a_task(**keys: Any) -> Task:
    return Task.model_validate({"task_id": "t", "website": f"{SHOP}/", "task": "Order.", **keys})


def holding(**keys: Any) -> Holding:
    task = a_task(**keys)
    return Holding(task, NONE_SHARED.of(task))


def rules_of(**keys: Any) -> Rules:
    task = a_task(**keys)
    return Rules(task, NONE_SHARED.of(task))


def is_held(method: str, url: str, body: str = "", **keys: Any) -> bool:
    return rules_of(**keys).rule_for(WireRequest(method, url, (), body.encode())) is not None


@pytest.mark.parametrize(
    ("method", "url", "holds"),
    [
        ("POST", f"{PAY}/confirm", True),
        ("POST", f"{PAY}/confirm/", True),
        ("POST", f"{PAY}/%63onfirm?id=1", True),
        ("POST", "https://PAY.example.:443/confirm", True),
        ("PATCH", f"{PAY}/confirm", False),
        ("GET", f"{PAY}/confirm", False),
        ("POST", f"{PAY}/confirmed", False),
        ("POST", "https://pay.example.org/confirm", False),
    ],
)
def test_a_declared_request_is_held_however_its_address_is_written(method: str, url: str, holds: bool) -> None:
    assert is_held(method, url, hold=[{"method": "post", "url": f"{PAY}/confirm"}]) is holds


@pytest.mark.parametrize(("method", "holds"), [("POST", True), ("DELETE", True), ("get", True), ("GET", False)])
def test_without_a_method_every_one_that_may_change_something_is_held(method: str, holds: bool) -> None:
    assert is_held(method, f"{SHOP}/order", hold=[{"url": f"{SHOP}/order"}]) is holds


def test_a_path_alone_is_held_on_every_host_because_a_website_may_redirect() -> None:
    assert is_held("POST", "https://www.shop.com/order", hold=[{"url": "/order"}])


@given(method=st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-", min_size=1), url=st.text())
def test_under_writes_everything_but_three_methods_is_held_wherever_it_goes(method: str, url: str) -> None:
    assert is_held(method, url, writes="hold") is (method not in ("GET", "HEAD", "OPTIONS"))


SEARCH = {"method": "POST", "url": "/graphql", "pattern": r'^\{"query":"\{ *products'}


@pytest.mark.parametrize(
    ("method", "url", "body", "holds"),
    [
        ("POST", f"{SHOP}/graphql", '{"query":"{ products { id } }"}', False),
        ("POST", f"{SHOP}/graphql", '{"query":"mutation { order }"}', True),
        ("POST", f"{SHOP}/graphql", '[{"query":"{ products }"},{"query":"mutation { order }"}]', True),
        ("POST", f"{SHOP}/graphql", "", True),
        ("PUT", f"{SHOP}/graphql", '{"query":"{ products }"}', True),
        ("POST", f"{SHOP}/order", '{"query":"{ products }"}', True),
        # Unlike that of a hold, its path belongs to the website alone.
        ("POST", "https://other.example/graphql", '{"query":"{ products }"}', True),
    ],
)
def test_what_may_be_written_is_decided_by_method_address_and_body(
    method: str, url: str, body: str, holds: bool
) -> None:
    assert is_held(method, url, body, writes="hold", allow_writes=[SEARCH]) is holds


def test_what_is_declared_as_held_is_held_even_if_it_may_be_written() -> None:
    keys: dict[str, Any] = {"hold": [{"url": "/order"}], "writes": "hold", "allow_writes": [{"url": "*"}]}
    assert is_held("POST", f"{SHOP}/order", **keys)
    assert not is_held("POST", f"{SHOP}/search", **keys)


def header_pairs(**headers: str) -> HeaderPairs:
    return tuple((name.replace("_", "-"), value) for name, value in headers.items())


def replied(hold: dict[str, Any], headers: HeaderPairs) -> tuple[int, dict[str, str], str]:
    reply = reply_to(WireRequest("POST", f"{PAY}/x", headers, b"body"), Hold.model_validate({"url": "*", **hold}))
    assert isinstance(reply.body, bytes)
    return reply.status, dict(reply.headers), reply.body.decode()


@pytest.mark.parametrize(
    ("headers", "is_page"),
    [
        (header_pairs(sec_fetch_dest="document"), True),
        (header_pairs(Sec_Fetch_Dest="iframe"), True),
        (header_pairs(Sec_Fetch_Dest="empty", Accept="text/html"), False),
        (header_pairs(Accept="text/html,*/*;q=0.8"), True),
        (header_pairs(Accept="*/*"), False),
        ((), False),
    ],
)
def test_a_document_gets_a_short_page_and_a_fetch_an_empty_object(headers: HeaderPairs, is_page: bool) -> None:
    status, request_headers, body = replied({}, headers)
    assert (status, body.startswith("<!doctype html>"), body == "{}") == (200, is_page, not is_page)
    assert request_headers["Content-Type"] == ("text/html; charset=utf-8" if is_page else "application/json")
    assert int(request_headers["Content-Length"]) == len(body)


def test_the_declared_reply_is_given() -> None:
    status, payload, body = replied({"status": 402, "body": "Zu wenig €", "type": "text/plain"}, ())
    assert (status, payload["Content-Type"], body) == (402, "text/plain; charset=utf-8", "Zu wenig €")


def test_a_page_of_another_origin_may_read_the_reply() -> None:
    headers = replied({}, header_pairs(Origin=SHOP))[1]
    assert (headers["Access-Control-Allow-Origin"], headers["Access-Control-Allow-Credentials"]) == (SHOP, "true")
    assert "Access-Control-Allow-Origin" not in replied({}, ())[1]


class Network:
    """What was passed on."""

    def __init__(self) -> None:
        self.passed_on: list[tuple[str, str]] = []

    async def fetch(self, request: WireRequest) -> WireAnswer:
        self.passed_on.append((request.method, request.url))
        return answer("from the site")

    async def socket(self, request: WireRequest) -> SiteSocket:
        self.passed_on.append((request.method, request.url))
        raise RequestFailed("as wanted")


class Socket:
    """A page's socket that only remembers how its handshake was answered."""

    refusal: WireAnswer | None = None

    async def accept(self, headers: HeaderPairs = ()) -> None:
        raise AssertionError

    async def refuse(self, answer: WireAnswer) -> None:
        self.refusal = answer

    async def receive(self) -> SocketMessage | SocketClose:
        return SocketClose(is_from_page=True)

    async def send(self, message: SocketMessage) -> None:
        raise AssertionError

    async def close(self, code: int = 1000, reason: str = "") -> None:
        raise AssertionError


def replies_to(requests: Sequence[WireRequest], **keys: Any) -> tuple[Holding, list[tuple[str, str]], list[WireAnswer]]:
    """What was held, what was passed on, and the answers."""
    interceptor, network = holding(**keys), Network()
    answers = [asyncio.run(interceptor.interceptor.answer(each, network)) for each in requests]
    return interceptor, network.passed_on, answers


def test_a_held_request_is_marked_in_its_answer_and_never_passed_on() -> None:
    requests = [WireRequest(method, f"{SHOP}/order", body=b"qty=1", step=2) for method in ("GET", "POST")]
    _, passed_on, answers = replies_to(requests, writes="hold")
    assert passed_on == [("GET", f"{SHOP}/order")]
    assert [each.is_held for each in answers] == [False, True]


@pytest.mark.parametrize("keys", [{"writes": "hold"}, {"policies": [POLICY]}], ids=["holds", "watches"])
def test_once_it_is_closed_nothing_is_passed_on(keys: dict[str, Any]) -> None:
    interceptor, network = holding(**keys), Network()
    interceptor.close()
    with pytest.raises(RequestRefused):
        asyncio.run(interceptor.interceptor.answer(WireRequest("GET", f"{SHOP}/"), network))
    assert network.passed_on == []


@pytest.mark.parametrize(
    ("keys", "method", "passes"),
    [
        ({"writes": "hold"}, "POST", False),
        ({"writes": "hold"}, "GET", True),
        ({"hold": [{"url": "/order"}]}, "PUT", False),
        ({"hold": [{"url": "/other"}]}, "PUT", True),
        # The body decides, which is not known yet.
        ({"writes": "hold", "allow_writes": [{"url": "/order", "pattern": "^search"}]}, "POST", True),
    ],
    ids=str,
)
def test_the_preflight_of_what_will_be_held_is_answered_here(keys: dict[str, Any], method: str, passes: bool) -> None:
    expected = header_pairs(Origin="https://a.example", Access_Control_Request_Method=method)
    expected += header_pairs(Access_Control_Request_Headers="x-a,x-b")
    _, passed_on, (reply,) = replies_to([WireRequest("OPTIONS", f"{SHOP}/order", expected)], **keys)
    assert (bool(passed_on), reply.is_held) == (passes, False)
    if not passes:
        headers = dict(reply.headers)
        assert reply.status == 204
        assert headers["Access-Control-Allow-Origin"] == "https://a.example"
        assert (headers["Access-Control-Allow-Methods"], headers["Access-Control-Allow-Headers"]) == (method, "x-a,x-b")


@pytest.mark.parametrize(
    ("keys", "passes"),
    [
        ({"writes": "hold"}, False),
        ({"writes": "hold", "allow_sockets": True}, True),
        ({"hold": [{"url": "/order"}]}, True),
    ],
    ids=str,
)
def test_sockets_are_refused_and_marked_under_writes_unless_they_are_allowed(
    keys: dict[str, Any], passes: bool
) -> None:
    interceptor, network, socket = holding(**keys), Network(), Socket()
    page: PageSocket = socket

    async def open_socket() -> None:
        await interceptor.interceptor.socket(WireRequest("GET", "wss://shop.example/live"), page, network)

    if passes:
        with pytest.raises(RequestFailed, match="as wanted"):
            asyncio.run(open_socket())
    else:
        asyncio.run(open_socket())
    assert (len(network.passed_on), socket.refusal is None) == (int(passes), passes)
    assert socket.refusal is None or socket.refusal.is_held


@pytest.mark.parametrize(("step", "ends"), [(0, False), (1, True)])
def test_a_request_ends_the_attempt_only_after_the_first_action(step: int, ends: bool) -> None:
    hold = [{"method": "POST", "url": "/order", "ends": True}]
    assert replies_to([WireRequest("POST", f"{SHOP}/order", step=step)], hold=hold)[0].has_ended is ends
