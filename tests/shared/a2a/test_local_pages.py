"""A local page: who reads it, and what may change something through it."""

import asyncio
import json
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from shared.a2a.local_pages import MAX_CHANGE_BYTES, PAGE_HEADERS, LocalPages, PageRefused
from shared.errors import ConfigError
from shared.models import Record
from shared.pages import TOKEN_HEADER, HtmlPage

TOKEN = "token-of-the-page"
OWN = {"Host": "localhost:9009", "Origin": "http://localhost:9009", TOKEN_HEADER: TOKEN}
JSON = {"Content-Type": "application/json"}


class Choice(Record):
    """A change for these tests."""

    colour: str


def page_app(applied: list[Any], admitted_host: str = "") -> Starlette:
    def apply(choice: Choice) -> dict[str, str]:
        if choice.colour == "none":
            raise ConfigError("there is no such colour", remedy="choose another one")
        applied.append(choice)
        return {"colour": choice.colour}

    local = LocalPages("not here", admitted_host, token=TOKEN)
    return Starlette(
        routes=[*local.shows({"/": lambda _: HtmlPage("the page", "")}), local.takes("/colour", Choice, apply)]
    )


def respond(
    headers: dict[str, str] | Sequence[tuple[str, str]],
    *,
    content: bytes = b'{"colour": "red"}',
    method: str = "POST",
    path: str = "/colour",
    peer: str = "127.0.0.1",
    admitted_host: str = "",
) -> tuple[httpx.Response, list[Any]]:
    applied: list[Any] = []

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(page_app(applied, admitted_host), client=(peer, 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://192.0.2.7:9009") as client:
            return await client.request(method, path, headers=headers, content=content)

    return asyncio.run(ask()), applied


def test_a_change_of_the_page_itself_is_applied() -> None:
    answer, applied = respond(OWN | JSON)
    assert (answer.status_code, answer.json()) == (200, {"colour": "red"})
    assert [each.colour for each in applied] == ["red"]
    assert {name: answer.headers[name] for name in PAGE_HEADERS} == dict(PAGE_HEADERS)


@pytest.mark.parametrize(
    ("status", "changed"),
    [
        (403, {"Host": "rebound.attacker.test:9009", "Origin": "http://rebound.attacker.test:9009"}),
        (403, {"Host": "localhost@attacker.test"}),
        (403, {"Origin": "http://attacker.test"}),
        # Another page of this machine.
        (403, {"Origin": "http://localhost:3000"}),
        (403, {"Origin": "https://localhost:9009"}),
        (403, {"Origin": "http://127.0.0.1:9009"}),
        (403, {"Origin": "null"}),
        (403, {"Origin": None}),
        (403, {TOKEN_HEADER: None}),
        (403, {TOKEN_HEADER: ""}),
        (403, {TOKEN_HEADER: f"{TOKEN}x"}),
        (403, {TOKEN_HEADER: None, "Cookie": f"{TOKEN_HEADER}={TOKEN}"}),
        (403, {"X-Forwarded-For": "127.0.0.1"}),
        (403, {"Via": "1.1 gateway"}),
        (415, {"Content-Type": None}),
        (415, {"Content-Type": "text/plain"}),
        (415, {"Content-Type": "application/x-www-form-urlencoded"}),
        (415, {"Content-Type": "multipart/form-data; boundary=x"}),
        (415, {"Content-Type": "application/jsonp"}),
    ],
    ids=str,
)
def test_any_other_request_changes_nothing(status: int, changed: dict[str, str | None]) -> None:
    headers = {name: value for name, value in {**OWN, **JSON, **changed}.items() if value is not None}
    answer, applied = respond(headers)
    assert (answer.status_code, applied) == (status, [])
    assert answer.json()["error"]


@pytest.mark.parametrize("name", ["Host", "Origin", TOKEN_HEADER, "Content-Type"])
def test_a_header_that_is_sent_twice_changes_nothing(name: str) -> None:
    headers = [*(OWN | JSON).items(), (name, (OWN | JSON)[name])]
    assert respond(headers)[1] == []


def test_a_change_from_another_machine_is_refused_whatever_its_headers_are() -> None:
    answer, applied = respond(OWN | JSON, peer="192.168.1.7")
    assert (answer.status_code, applied) == (403, [])


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_no_other_method_changes_anything(method: str) -> None:
    answer, applied = respond(OWN | JSON, method=method)
    assert (answer.status_code, applied) == (405, [])


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (400, b""),
        (400, b"colour=red"),
        (400, b'{"colour": "red", "colour": "blue"}'),
        (400, b'{"colour": NaN}'),
        (400, b"\xff\xfe{}"),
        (422, b"[]"),
        (422, b'{"colour": 7}'),
        (422, b'{"colour": "red", "size": 1}'),
        (422, b'{"colour": "none"}'),
        (413, json.dumps({"colour": "r" * MAX_CHANGE_BYTES}).encode()),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_change_that_cannot_be_used_is_answered_with_the_reason(status: int, content: bytes) -> None:
    answer, applied = respond(OWN | JSON, content=content)
    assert (answer.status_code, applied) == (status, [])
    assert answer.json()["error"]


# The test client's server is 192.0.2.7.
@pytest.mark.parametrize(
    ("is_admitted", "admitted_host", "host", "peer"),
    [
        (True, "mybox.local", "mybox.local:9009", "192.0.2.7"),
        (True, "MyBox.local", "mybox.local:9009", "127.0.0.1"),
        (True, "192.0.2.7", "192.0.2.7:9009", "192.0.2.7"),
        (True, "192.0.2.7", "localhost:9009", "127.0.0.1"),
        # From another machine, and by a name that nobody chose.
        (False, "192.0.2.7", "192.0.2.7:9009", "192.0.2.8"),
        (False, "mybox.local", "other.local:9009", "127.0.0.1"),
        (False, "", "mybox.local:9009", "127.0.0.1"),
        # An address of all networks is not a name: browsers take websites to it.
        (False, "0.0.0.0", "0.0.0.0:9009", "127.0.0.1"),
        (False, "::", "[::]:9009", "::1"),
    ],
)
def test_the_host_that_the_user_named_is_admitted_for_people_at_this_machine(
    is_admitted: bool, admitted_host: str, host: str, peer: str
) -> None:
    status, _ = respond({"Host": host}, method="GET", path="/", admitted_host=admitted_host, peer=peer)
    changed, applied = respond(
        OWN | JSON | {"Host": host, "Origin": f"http://{host}"}, admitted_host=admitted_host, peer=peer
    )
    expected = 200 if is_admitted else 403
    assert (status.status_code, changed.status_code, len(applied)) == (expected, expected, int(is_admitted))


def test_each_server_has_a_token_of_its_own() -> None:
    one, other = LocalPages(""), LocalPages("")
    assert one.token != other.token
    assert len(one.token) >= 32
    assert one.token not in repr(one)


@pytest.mark.parametrize("in_thread", [True, False])
def test_what_an_endpoint_gives_decides_what_is_sent(in_thread: bool, tmp_path: Path) -> None:
    shown = tmp_path / "a.txt"
    shown.write_text("a file")
    results: dict[str, Any] = {
        "page": HtmlPage("<title>Page</title>", "default-src 'none'"),
        "file": shown,
        "json": {"colour": "red"},
        "list": [],
        "own": Response(b"x", 201),
        "nothing": None,
        "refused": PageRefused(HTTPStatus.CONFLICT, "not now"),
        "mistake": ConfigError("no such run"),
    }

    def give(request: Request) -> Any:
        result = results[request.path_params["name"]]
        if isinstance(result, Exception):
            raise result
        return result

    async def give_later(request: Request) -> Any:
        return give(request)

    app = Starlette(routes=LocalPages("").shows({"/{name}": give if in_thread else give_later}))

    async def ask() -> dict[str, httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return {name: await client.get(f"/{name}") for name in results}

    answers = asyncio.run(ask())
    assert {name: (answer.status_code, answer.text) for name, answer in answers.items()} == {
        "page": (200, "<title>Page</title>"),
        "file": (200, "a file"),
        "json": (200, '{"colour":"red"}'),
        "list": (200, "[]"),
        "own": (201, "x"),
        "nothing": (404, "not found\n"),
        "refused": (409, "not now\n"),
        "mistake": (404, "no such run\n"),
    }
    assert answers["page"].headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    for answer in answers.values():
        assert {name: answer.headers[name] for name in PAGE_HEADERS} == dict(PAGE_HEADERS)
