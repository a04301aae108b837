"""The MCP server, called by the SDK's own client over loopback, and the socket for the verdict."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from mcp.client.client import Client
from pydantic import SecretStr

from judge.environment.errors import EpisodeFault
from judge.plugins.harbor.episode import AgentEpisode
from judge.plugins.harbor.server import build_app, giving_verdicts, read_verdict
from judge.plugins.harbor.verdict import EpisodeVerdict
from plugins.harbor.sessions import END, WrittenSession
from shared.a2a.serving import listen, serve_app
from shared.errors import ConfigError


@asynccontextmanager
async def served(episode: AgentEpisode, token: SecretStr | None = None) -> AsyncIterator[str]:
    """The address of the server."""
    sock = listen("127.0.0.1", 0)
    app = build_app(episode, host="127.0.0.1", auth_token=token)
    serving = asyncio.create_task(serve_app(app, sock, takes_signals=False))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def read(client: Client, tool: str, **params: object) -> tuple[str, list[str], bool | None]:
    """The text, the kinds of content, and whether it is an error."""
    result = await client.call_tool(tool, dict(params))
    return result.content[0].text, [block.type for block in result.content], result.is_error  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_plays_over_either_kind_of_mcp(mode: str) -> None:
    session = WrittenSession(finish=END._replace(reward=1.0))
    async with served(AgentEpisode(session, "t1")) as url, Client(f"{url}/mcp", mode=mode) as client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert list(tools) == ["current_page", "browser_click", "finish"]
        assert tools["browser_click"] == {"type": "object", "properties": {}}
        text, kinds, is_error = await read(client, "browser_click", target="e1")
        assert ("Title: page 1" in text, kinds, is_error) == (True, ["text", "image"], False)
        # Neither unknown tools nor wrong parameters are the server's business: the judge counts and answers them.
        await read(client, "unknown", x=1)
        assert await read(client, "finish", answer="a") == ("The task has ended.", ["text"], False)
    assert session.replies == [
        {"tool": "browser_click", "params": {"target": "e1"}},
        {"tool": "unknown", "params": {"x": 1}},
        {"tool": "finish", "params": {"answer": "a"}},
    ]


async def test_another_client_joins_the_same_episode() -> None:
    session = WrittenSession()
    async with served(AgentEpisode(session, "t1")) as url, Client(f"{url}/mcp") as first:
        await read(first, "browser_click")
        async with Client(f"{url}/mcp") as second:
            assert "Title: page 1" in (await read(second, "current_page"))[0]
            await read(second, "browser_click")
        assert "Title: page 2" in (await read(first, "current_page"))[0]
    assert session.resets == 1


async def test_a_client_that_does_not_wait_for_an_answer_loses_only_that_answer() -> None:
    session = WrittenSession()
    async with served(AgentEpisode(session, "t1")) as url:
        async with Client(f"{url}/mcp") as client:
            await client.list_tools()
            session.hold.clear()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(read(client, "browser_click", n=1), 0.2)
        session.hold.set()
        async with Client(f"{url}/mcp") as client:
            assert "Title: page 1" in (await read(client, "current_page"))[0]
    assert session.replies == [{"tool": "browser_click", "params": {"n": 1}}]


async def test_with_a_token_only_its_holders_play() -> None:
    async with (
        served(AgentEpisode(WrittenSession(), "t1"), SecretStr("t0ken")) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Accept": "application/json, text/event-stream"}
        refused = await client.post("/mcp", json=body, headers=headers)
        admitted = await client.post("/mcp", json=body, headers=headers | {"Authorization": "Bearer t0ken"})
        health = await client.get("/health")
    assert (refused.status_code, admitted.status_code, health.json()) == (401, 200, {"status": "healthy"})


async def test_pages_of_other_names_do_not_reach_the_tools() -> None:
    # A website may give its own name the address of this machine.
    async with served(AgentEpisode(WrittenSession(), "t1")) as url, httpx.AsyncClient(base_url=url) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Accept": "application/json, text/event-stream", "Host": "evil.test"}
        assert (await client.post("/mcp", json=body, headers=headers)).status_code == 421


@pytest.mark.parametrize("path", ["/", "/verdict", "/state", "/reset", "/mcp/verdict"])
async def test_nothing_else_is_served(path: str) -> None:
    async with served(AgentEpisode(WrittenSession(), "t1")) as url, httpx.AsyncClient(base_url=url) as client:
        assert [(await call(path)).status_code for call in (client.get, client.post)] == [404, 404]


async def test_the_verdict_is_given_to_whoever_reaches_the_file(tmp_path: Path) -> None:
    episode = AgentEpisode(WrittenSession(finish=END._replace(reward=1.0)), "t1")
    path = tmp_path / "out" / "harbor.sock"
    async with giving_verdicts(episode, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await episode.tools.call("finish", {})
        verdicts = [await read_verdict(path, within_s=5) for _ in range(2)]
    assert [verdict.reward for verdict in verdicts] == [1.0, 1.0]
    assert not path.exists()


async def test_without_the_judge_a_verdict_is_lost(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def closing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    verdicts = [await read_verdict(tmp_path / "none.sock", within_s=5)]
    for number, behaviour in enumerate((silent, closing)):
        path = tmp_path / f"{number}.sock"
        async with await asyncio.start_unix_server(behaviour, path):
            verdicts.append(await read_verdict(path, within_s=0.2))
    assert {(verdict.outcome, verdict.reward, verdict.blame) for verdict in verdicts} == {("lost", None, "internal")}


async def test_a_socket_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot listen at .* --output-dir"):
        async with giving_verdicts(AgentEpisode(WrittenSession(), "t1"), tmp_path / ("x" * 120)):
            pass


def test_a_reward_file_exists_only_for_an_attempt_that_was_scored(tmp_path: Path) -> None:
    EpisodeVerdict.of_reward(0.0).write(tmp_path)
    assert json.loads((tmp_path / "reward.json").read_text()) == {"reward": 0.0}
    assert json.loads((tmp_path / "verdict.json").read_text()) == {"outcome": "scored", "reward": 0.0}
    EpisodeVerdict.of_fault(EpisodeFault("unscored", "judge model", "x" * 5000)).write(tmp_path)
    document = json.loads((tmp_path / "verdict.json").read_text())
    assert (document["outcome"], document["blame"], len(document["message"])) == ("unscored", "judge model", 2000)
    assert not (tmp_path / "reward.json").exists()
