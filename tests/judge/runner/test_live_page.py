"""Where the live page of a judge is."""

from pathlib import Path

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from helpers.live_page import serving
from helpers.ports import free_port
from judge.runner.live_page import live_page_of
from judge.server.live import LiveHub, live_routes
from shared.a2a.server import Skill, build_app
from shared.a2a.tasks import AgentMessage

TOKEN = SecretStr("token-planted-5d1c9e22")


def a_judge(*routes: BaseRoute, token: SecretStr | None = None) -> Starlette:
    async def answer(turn: AgentMessage) -> str:
        return turn.text

    skills = [Skill(id="s", name="s", description="s", tags=("t",))]
    return build_app(
        answer,
        name="judge",
        description="d",
        version="1",
        card_url="http://127.0.0.1/",
        skills=skills,
        extra_routes=routes,
        auth_token=token,
    )


async def test_a_page_that_is_open_is_named_without_a_note(tmp_path: Path) -> None:
    async with serving(a_judge(*live_routes(LiveHub(), tmp_path))) as address:
        page = await live_page_of(f"{address}/")
    assert (page.url, page.note) == (f"{address}/", "")


@pytest.mark.parametrize("token", [TOKEN, None], ids=["with the token", "without it"])
async def test_a_page_behind_a_token_is_named_with_its_password(tmp_path: Path, token: SecretStr | None) -> None:
    async with serving(a_judge(*live_routes(LiveHub(), tmp_path, is_open=True), token=TOKEN)) as address:
        page = await live_page_of(address, token)
    assert (page.url, page.note) == (address, "its password is the judge's WABE_AUTH_TOKEN")


async def test_a_judge_without_a_page_has_none() -> None:
    async with serving(a_judge()) as address:
        page = await live_page_of(address)
    assert (page.url, page.note) == (None, "the judge was started with --no-ui, or has none")


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:{port}/", "http://[/"])
async def test_a_judge_that_does_not_answer_has_none(endpoint: str) -> None:
    assert (await live_page_of(endpoint.format(port=free_port()))).url is None
