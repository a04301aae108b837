"""What of an agent's answer gets through, and what is sent to whom."""

import json
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from helpers.a2a.agents import served
from shared.a2a.transport import MAX_VALUES, Bounds, _Events, bounded_client
from shared.errors import ParticipantError

BOUNDS = Bounds(body_bytes=200_000, stream_bytes=400_000)
SECRET = {"Authorization": "Bearer s3cr3t-token", "X-Key": "k3y-value"}
MANY = f"data: {json.dumps([[]] * MAX_VALUES)}"


class Chunks(httpx.AsyncByteStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


async def events_of(chunks: Sequence[bytes], bounds: Bounds = BOUNDS) -> list[bytes]:
    return [part async for part in _Events(Chunks(chunks), bounds)]


# --- events -----------------------------------------------------------------------------------------------------------


@given(
    lines=st.lists(st.sampled_from([b"data: a", b"data:", b": ping", b"event: x", b"", "data: é".encode()])),
    ends=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=1),
    data=st.data(),
)
async def test_events_arrive_whole_and_unchanged_however_they_are_cut(
    lines: list[bytes], ends: list[bytes], data: st.DataObject
) -> None:
    text = b"".join(line + ends[n % len(ends)] for n, line in enumerate(lines))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=20)))
    chunks = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]
    parts = await events_of(chunks)
    assert b"".join(parts) == text
    for part in parts[:-1]:
        assert part.splitlines()[-1] == b"", parts


@pytest.mark.parametrize("cut", [7, 50_000], ids=str)
async def test_an_event_of_too_many_values_is_refused_before_it_is_passed_on(cut: int) -> None:
    text = f"data: 1\n\n{MANY}\n\n".encode()
    chunks = [text[begin : begin + cut] for begin in range(0, len(text), cut)]
    with pytest.raises(ParticipantError, match=f"more than {MAX_VALUES} JSON values"):
        await events_of(chunks)


async def test_an_event_that_never_ends_is_refused() -> None:
    with pytest.raises(ParticipantError, match="more than 200000 bytes"):
        await events_of([b"data: " + b"x" * 1000] * 250)


async def test_many_small_events_are_refused_beyond_the_bound_of_the_stream() -> None:
    with pytest.raises(ParticipantError, match="more than 400000 bytes"):
        await events_of([b"data: " + b"x" * 1000 + b"\n\n"] * 450)


async def test_line_separators_of_other_standards_stay_in_their_event() -> None:
    text = json.dumps("a\u2028b\u2029c\u0085d", ensure_ascii=False)
    (part,) = await events_of([f"data: {text}\n\n".encode()])
    lines = httpx.Response(200, content=part).text.splitlines()
    assert json.loads(lines[0].removeprefix("data: ")) == "a\u2028b\u2029c\u0085d"


# --- redirects and credentials ----------------------------------------------------------------------------------------


class Recorder:
    """Answers as `answers` says by path, else with 404; `requests` are the requests."""

    def __init__(self, **answers: Response) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self._answers = answers
        self.app = Starlette(routes=[Route("/{path:path}", self._serve, methods=["GET", "POST"])])

    async def _serve(self, request: Request) -> Response:
        self.requests.append((request.method, request.url.path, dict(request.headers), await request.body()))
        return self._answers.get(request.url.path, Response(status_code=404))


def redirected(to: str, status: int = 307) -> Response:
    return RedirectResponse(to, status_code=status)


async def ask(url: str, method: str = "GET", **more: Any) -> httpx.Response:
    async with bounded_client(BOUNDS, origin=url, credentials=SECRET) as http:
        return await http.request(method, url, **more)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("is_absolute", [True, False], ids=["address", "path"])
async def test_a_redirect_that_only_adds_a_slash_is_followed_with_the_body_and_the_credentials(
    method: str, is_absolute: bool
) -> None:
    answers = {"/card/": JSONResponse({"ok": True})}
    agent = Recorder(**answers)
    async with served(agent.app) as url:
        agent._answers["/card"] = redirected(f"{url if is_absolute else ''}/card/?a=b")
        content = b'{"a": 1}' if method == "POST" else b""
        response = await ask(f"{url}/card?a=b", method, content=content)
    assert response.json() == {"ok": True}
    assert [(each[0], each[1], each[3]) for each in agent.requests] == [
        (method, "/card", content),
        (method, "/card/", content),
    ]
    assert all(each[2]["authorization"] == SECRET["Authorization"] for each in agent.requests)


@pytest.mark.parametrize(
    "to", "/other/ /card// /card/?x=1 /card/#x /Card/ //127.0.0.1/card/ http://127.0.0.1:1/card/ /card".split()
)
async def test_any_other_redirect_is_refused(to: str) -> None:
    agent = Recorder(**{"/card": redirected(to)})
    async with served(agent.app) as url:
        with pytest.raises(ParticipantError, match="redirects"):
            await ask(f"{url}/card")
    assert len(agent.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_message_is_not_redirected_in_a_way_that_loses_it(status: int) -> None:
    agent = Recorder(**{"/rpc": redirected("/rpc/", status), "/rpc/": JSONResponse({})})
    async with served(agent.app) as url:
        with pytest.raises(ParticipantError, match="redirects"):
            await ask(f"{url}/rpc", "POST", content=b"{}")
    assert len(agent.requests) == 1


async def test_a_second_redirect_is_refused() -> None:
    agent = Recorder(**{"/card": redirected("/card/"), "/card/": redirected("/card//")})
    async with served(agent.app) as url:
        with pytest.raises(ParticipantError, match="redirects"):
            await ask(f"{url}/card")


async def test_credentials_are_sent_to_their_origin_only() -> None:
    here, there = Recorder(), Recorder()
    async with (
        served(here.app) as url,
        served(there.app) as elsewhere,
        bounded_client(BOUNDS, origin=f"{url}/base", credentials=SECRET) as http,
    ):
        await http.get(f"{url}/x")
        await http.get(f"{elsewhere}/x")
        await http.get(url.replace("127.0.0.1", "localhost"))
    (request_headers,) = [headers for _, path, headers, _ in here.requests if path == "/x"]
    assert (request_headers["authorization"], request_headers["x-key"]) == tuple(SECRET.values())
    others = [headers for _, path, headers, _ in [*there.requests, *here.requests] if headers is not request_headers]
    assert len(others) == 2
    assert not any(name in headers for headers in others for name in ("authorization", "x-key"))
