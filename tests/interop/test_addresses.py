"""A judge behind a proxy, under an address that only its `--card-url` knows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from helpers.a2a.agents import served
from helpers.interop.programs import CLIENTS, ForeignClients, judge_process

pytestmark = pytest.mark.usefixtures("environments")
PREFIX = "/judges/wabe"


class Proxy:
    """Passes what comes in under `PREFIX` on to the root of `target`, and keeps count."""

    def __init__(self) -> None:
        self.target = ""
        self.passed: list[str] = []
        self._http = httpx.AsyncClient(timeout=60)
        route = Route(PREFIX + "/{path:path}", self._pass_on, methods=["GET", "POST"])
        self.app = Starlette(routes=[route], lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await self._http.aclose()

    async def _pass_on(self, request: Request) -> Response:
        path = request.path_params["path"]
        self.passed.append(f"{request.method} /{path}")
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        url = f"{self.target}/{path}"
        onward = self._http.build_request(request.method, url, headers=headers, content=await request.body())
        answer = await self._http.send(onward, stream=True)
        kind = {"Content-Type": answer.headers["content-type"]}
        return StreamingResponse(answer.aiter_raw(), answer.status_code, kind)


async def test_clients_reach_a_judge_behind_a_proxy_by_the_address_in_its_card(
    clients: ForeignClients, tmp_path: Path
) -> None:
    proxy = Proxy()
    async with served(proxy.app) as outside:
        with judge_process(tmp_path, card_url=f"{outside}{PREFIX}/") as judge:
            proxy.target = judge.url
            for client in CLIENTS:
                asked = (client, f"{outside}{PREFIX}", "stream")
                card, *_, last = await asyncio.to_thread(clients.call, *asked, text="no assessment request")
                assert card["url"] == f"{outside}{PREFIX}/", client
                assert last["state"] == "rejected", client
                assert [line.split()[0] for line in proxy.passed] == ["GET", "POST"], client
                proxy.passed.clear()
