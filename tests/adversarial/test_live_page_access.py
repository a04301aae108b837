"""Screenshots of others are for people at the judge's own machine, or for whom its owner lets in."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from typer.testing import CliRunner

from helpers.episode.live_judge import served
from helpers.runs import a_png, write_synthetic_run
from judge.commands.app import app as wabe
from judge.records.events import RunStarted, TaskStarted
from judge.server.live import LiveHub, live_routes
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import listen
from shared.a2a.tasks import AgentMessage

RUN = "20260101-000000-live"
TOKEN = "token-planted-5d1c9e22"
PAGES = (
    "/",
    "/events",
    f"/live/{RUN}/shot/task_000",
    f"/live/{RUN}/tasks/task_000.html",
    f"/live/{RUN}/images/task_000/step_000.png",
    f"/live/{RUN}/steps/task_000.json",
    f"/live/{RUN}/report/index.html",
)


def judge_app(folder: Path, *, is_open: bool = False, token: str | None = None) -> tuple[Starlette, LiveHub]:
    """A judge's routes with one run on show."""
    write_synthetic_run(folder, RUN, tasks=1, steps=3, image=a_png(32, 18))
    hub = LiveHub()
    sink = hub.watch(RUN)
    sink(RunStarted(run_id=RUN, total=1))
    sink(TaskStarted(task_id="task_000", attempt=1, max_steps=15))

    async def answer(turn: AgentMessage) -> str:
        return turn.text

    app = build_app(
        answer,
        name="judge",
        description="d",
        version="1",
        card_url="http://127.0.0.1/",
        skills=[Skill(id="s", name="s", description="s", tags=("t",))],
        extra_routes=live_routes(hub, folder, is_open=is_open),
        auth_token=SecretStr(token) if token else None,
    )
    return app, hub


@asynccontextmanager
async def client_of(app: Starlette, peer: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, client=(peer, 50_000))
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client


async def answers(app: Starlette, hub: LiveHub, peer: str, **headers: str) -> dict[int, int]:
    """How often each status came, over all pages."""
    results: dict[int, int] = {}
    async with client_of(app, peer) as client:
        for path in PAGES:
            if path == "/events":
                # The stream of one that is let in ends with the hub.
                asyncio.get_running_loop().call_later(0.05, lambda: asyncio.ensure_future(hub.close()))
            answer = await client.get(path, headers=headers)
            results[answer.status_code] = results.get(answer.status_code, 0) + 1
            assert answer.status_code != 403 or answer.text.count("\n") == 1
    return results


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("127.0.0.1", "127.0.0.1:9009"),
        ("127.0.0.1", "localhost:9009"),
        ("127.8.8.8", "127.0.0.1"),
        ("::1", "[::1]:9009"),
        ("::ffff:127.0.0.1", "LOCALHOST:9009"),
    ],
)
async def test_a_person_at_this_machine_sees_the_live_page(tmp_path: Path, peer: str, host: str) -> None:
    app, hub = judge_app(tmp_path)
    result = await answers(app, hub, peer, Host=host)
    assert set(result) <= {200, 404}
    assert result[200] >= 4


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        ("192.168.1.7", {"Host": "127.0.0.1:9009"}),
        ("203.0.113.5", {"Host": "localhost:9009"}),
        ("fe80::1", {"Host": "[::1]:9009"}),
        ("::ffff:10.0.0.1", {"Host": "localhost"}),
        ("127.0.0.1", {"Host": "rebound.attacker.test:9009"}),
        ("127.0.0.1", {"Host": "127.0.0.1.attacker.test"}),
        ("127.0.0.1", {"Host": "localhost@attacker.test"}),
        ("127.0.0.1", {"Host": ""}),
        ("127.0.0.1", {"Host": "localhost", "X-Forwarded-For": "127.0.0.1"}),
        ("127.0.0.1", {"Host": "localhost", "X-Forwarded-Host": "judge.test"}),
        ("127.0.0.1", {"Host": "localhost", "X-Forwarded-Proto": "https"}),
        ("127.0.0.1", {"Host": "localhost", "Forwarded": "for=127.0.0.1"}),
        ("127.0.0.1", {"Host": "localhost", "Via": "1.1 gateway"}),
        ("127.0.0.1", {"Host": "localhost", "X-Real-IP": "127.0.0.1"}),
        ("127.0.0.1", {"Host": "localhost", "CF-Connecting-IP": "203.0.113.5"}),
    ],
    ids=lambda value: value if isinstance(value, str) else ", ".join(f"{name}: {text}" for name, text in value.items()),
)
async def test_a_stranger_sees_no_page_and_no_screenshot(tmp_path: Path, peer: str, headers: dict[str, str]) -> None:
    app, hub = judge_app(tmp_path)
    result = await answers(app, hub, peer, **headers)
    assert result == {403: len(PAGES)}


async def test_a_stranger_still_reaches_the_agent_itself(tmp_path: Path) -> None:
    app, _ = judge_app(tmp_path)
    call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "unknown"}}
    async with client_of(app, "203.0.113.5") as client:
        card = await client.get("/.well-known/agent-card.json")
        answer = await client.post("/", json=call, headers={"A2A-Version": "1.0", "X-Forwarded-For": "1.1.1.1"})
    assert (card.status_code, answer.status_code) == (200, 200)


async def test_the_owner_can_open_the_live_page_to_everyone(tmp_path: Path) -> None:
    app, hub = judge_app(tmp_path, is_open=True)
    result = await answers(app, hub, "203.0.113.5", Host="judge.test", Via="1.1 gateway")
    assert 403 not in result


async def test_with_a_token_its_holder_is_let_in_from_anywhere_and_nobody_else_even_here(tmp_path: Path) -> None:
    app, hub = judge_app(tmp_path, is_open=True, token=TOKEN)
    without = await answers(app, hub, "127.0.0.1", Host="localhost")
    secret = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    holder = await answers(app, hub, "203.0.113.5", Host="judge.test", Authorization=f"Basic {secret}")
    assert without == {401: len(PAGES)}
    assert not {401, 403} & set(holder)


@pytest.mark.parametrize(
    ("options", "environ", "status"),
    [((), {}, 403), (("--public-live",), {}, 200), ((), {"WABE_AUTH_TOKEN": TOKEN}, 401)],
    ids=["by default", "--public-live", "with a token"],
)
async def test_what_a_served_judge_answers_behind_a_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], environ: dict[str, str], status: int
) -> None:
    apps: list[Starlette] = []
    monkeypatch.setattr("judge.server.app.run_server", lambda app, *_, **__: apps.append(app))
    monkeypatch.setattr("judge.commands.serve.configure_logging", lambda **_: None)
    completed = CliRunner().invoke(wabe, ["serve", "--output-dir", str(tmp_path), *options], env=environ)
    assert completed.exit_code == 0, completed.output
    sock = listen("127.0.0.1", 0)
    async with served(apps[0], sock), httpx.AsyncClient(trust_env=False) as client:
        address = f"http://127.0.0.1:{sock.getsockname()[1]}/"
        answer = await client.get(address, headers={"X-Forwarded-For": "203.0.113.5"})
    assert answer.status_code == status
