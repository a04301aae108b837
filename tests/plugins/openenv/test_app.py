"""The server on loopback, with a client of WebSockets and one of HTTP."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from pydantic import SecretStr
from websockets.exceptions import ConnectionClosed, InvalidStatus

from plugins.openenv.fakes import FakeSessions, a_page, an_end, answered, ask, dial, fault, serving

TOKEN = SecretStr("open sesame")


@contextlib.asynccontextmanager
async def reading(place: str, **options: object) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://{place}", trust_env=False, **options) as client:  # type: ignore[arg-type]
        yield client


async def closed_by(sessions: FakeSessions) -> None:
    async with asyncio.timeout(10):
        while sessions.active:
            await asyncio.sleep(0.01)


async def test_an_episode_over_the_socket() -> None:
    sessions = FakeSessions([a_page(), an_end(0.0)])
    async with serving(sessions) as place, dial(place) as client:
        assert (await ask(client, "reset", {"task_id": "second"}))[0] == "observation"
        assert (await ask(client, "state"))[1]["task_id"] == "second"
        assert (await ask(client, "step", {"tool": "finish"}))[1]["reward"] is None
        _, end = await ask(client, "step", {"tool": "finish"})
        assert (end["reward"], end["done"]) == (0.0, True)
        assert (await ask(client, "step", {"tool": "finish"}))[1]["code"] == "EXECUTION_ERROR"
        await client.send('{"type": "close"}')
        with pytest.raises(ConnectionClosed) as gone:
            await client.recv()
        assert gone.value.rcvd is not None
        assert gone.value.rcvd.code == 1000
    assert (sessions.opened[0].closed, sessions.active) == (1, 0)


async def test_a_question_before_the_last_answer_closes_the_socket_and_the_late_answer_is_never_sent() -> None:
    sessions = FakeSessions([an_end(1.0)])
    async with serving(sessions) as place, dial(place) as client:
        await ask(client, "reset", {"task_id": "first"})
        sessions.may_answer.clear()
        await client.send('{"type": "step", "data": {"tool": "finish"}}')
        await client.send('{"type": "reset", "data": {"task_id": "second"}}')
        with pytest.raises(ConnectionClosed) as gone:
            await client.recv()
        assert gone.value.rcvd is not None
        assert (gone.value.rcvd.code, gone.value.rcvd.reason) == (1008, "a question before the last answer")
        await closed_by(sessions)
    assert [call[0] for call in sessions.opened[0].calls] == ["reset", "step"]


async def test_an_answer_that_would_come_after_a_clients_limit_is_never_sent() -> None:
    sessions = FakeSessions([an_end(1.0)])
    async with serving(sessions, answer_s=0.1) as place, dial(place) as client:
        await ask(client, "reset")
        sessions.may_answer.clear()
        await client.send('{"type": "step", "data": {"tool": "finish"}}')
        with pytest.raises(ConnectionClosed):
            await client.recv()
        await closed_by(sessions)


async def test_a_client_that_disappears_in_a_step_frees_its_session() -> None:
    sessions = FakeSessions()
    async with serving(sessions) as place:
        client = await dial(place)
        await ask(client, "reset")
        sessions.may_answer.clear()
        await client.send('{"type": "step", "data": {}}')
        client.transport.abort()
        await closed_by(sessions)
    assert sessions.opened[0].closed == 1


async def test_an_idle_client_loses_its_session() -> None:
    sessions = FakeSessions()
    async with serving(sessions, idle_s=0.1) as place, dial(place) as client:
        with pytest.raises(ConnectionClosed) as gone:
            await client.recv()
        assert gone.value.rcvd is not None
        assert (gone.value.rcvd.code, gone.value.rcvd.reason) == (1001, "idle for 0.1 s")
        assert sessions.active == 0


async def test_a_client_above_the_capacity_is_told_and_a_free_session_is_given_again() -> None:
    sessions = FakeSessions(maximum=1)
    async with serving(sessions) as place:
        async with dial(place) as client:
            await ask(client, "reset")
            async with dial(place) as refused:
                await refused.send('{"type": "reset"}')
                kind, data = await answered(refused)
                assert (kind, data["code"]) == ("error", "CAPACITY_REACHED")
                assert (data["active_sessions"], data["max_sessions"]) == (1, 1)
                with pytest.raises(ConnectionClosed):
                    await refused.recv()
        await closed_by(sessions)
        async with dial(place) as client:
            assert (await ask(client, "reset"))[0] == "observation"


async def test_odd_frames_are_answered_and_the_episode_goes_on() -> None:
    sessions = FakeSessions()
    async with serving(sessions) as place, dial(place) as client:
        await ask(client, "reset")
        for frame, code in (("nonsense", "INVALID_JSON"), ("[1]", "VALIDATION_ERROR"), ("{}", "UNKNOWN_TYPE")):
            await client.send(frame)
            assert (await answered(client))[1]["code"] == code
        assert (await ask(client, "step", {"tool": "finish"}))[0] == "observation"


@pytest.mark.parametrize(("frame", "code"), [(b"{}", 1003), ("x" * 16_000_001, 1009)])
async def test_a_frame_that_is_not_text_or_too_large_closes_the_socket(frame: bytes | str, code: int) -> None:
    sessions = FakeSessions()
    async with serving(sessions) as place, dial(place) as client:
        with contextlib.suppress(ConnectionClosed):
            await client.send(frame)
        with pytest.raises(ConnectionClosed) as gone:
            await client.recv()
        assert gone.value.rcvd is not None
        assert gone.value.rcvd.code == code
        await closed_by(sessions)


async def test_an_error_ends_an_episode_and_the_socket_stays_open() -> None:
    sessions = FakeSessions([fault("aborted", "browser", "it died")])
    async with serving(sessions) as place, dial(place) as client:
        await ask(client, "reset")
        kind, data = await ask(client, "step", {})
        assert (kind, data["message"]) == ("error", "aborted: browser: it died")
        assert (await ask(client, "reset"))[0] == "observation"


async def test_what_is_read_over_http() -> None:
    async with serving(FakeSessions()) as place, reading(place) as client:
        answers = {path: (await client.get(path)).json() for path in ("/health", "/metadata", "/list_environments")}
        assert answers == {
            "/health": {"status": "healthy"},
            "/metadata": {"name": "shop", "description": "A shop.", "version": "1.0"},
            "/list_environments": ["shop"],
        }
        schema = (await client.get("/schema")).json()
        assert schema["action"]["required"] == ["tool"]
        assert schema["observation"]["properties"].keys() == {"text"}
        assert schema["state"]["properties"].keys() == {"episode_id", "task_id", "step_count"}
        assert (await client.post("/mcp", json={})).json()["error"]["code"] == -32600
        assert (await client.post("/mcp", content=b"[" * 5_000)).json()["jsonrpc"] == "2.0"
        listed = (await client.get("/openapi.json")).json()
        assert listed["info"]["version"] == "1.0.0"
        assert not {"/reset", "/step", "/state"} & listed["paths"].keys()


async def test_the_task_api_has_ids_and_instructions_only() -> None:
    train = {"split": "train"}
    async with serving(FakeSessions()) as place, reading(place) as client:
        assert [split["name"] for split in (await client.get("/shop/splits")).json()] == ["train"]
        tasks = (await client.post("/shop/tasks", json=train)).json()
        assert tasks["env_name"] == "shop"
        assert tasks["tasks"][0] == {"task_id": "first", "instruction": "Do first."}
        assert (await client.post("/shop/num_tasks", json=train)).json() == {"num_tasks": 3}
        task = (await client.post("/shop/task", json={**train, "index": 2})).json()
        assert task == {"task": {"task_id": "third", "instruction": "Do third."}}
        part = (await client.post("/shop/task_range", json={**train, "start": 1, "stop": 2})).json()
        assert [each["task_id"] for each in part["tasks"]] == ["second"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/shop/task", {"split": "train", "index": 3}, 400),
        ("/shop/task", {"split": "test", "index": 0}, 400),
        ("/shop/task", {"split": "train"}, 422),
        ("/shop/tasks", [], 422),
        ("/other/tasks", {"split": "train"}, 404),
        ("/shop/nothing", {}, 404),
        ("/shop/tasks", {"split": "x" * 200_000}, 413),
    ],
)
async def test_a_wrong_question_over_http_has_its_status(path: str, body: object, status: int) -> None:
    async with serving(FakeSessions()) as place, reading(place) as client:
        assert (await client.post(path, json=body)).status_code == status


async def test_a_page_of_a_browser_cannot_open_a_session() -> None:
    async with serving(FakeSessions()) as place:
        with pytest.raises(InvalidStatus) as refused:
            await dial(place, origin="http://attacker.invalid")
        assert refused.value.response.status_code == 403


async def test_a_name_that_points_to_this_machine_is_refused_without_a_token() -> None:
    async with serving(FakeSessions()) as place, reading(place) as client:
        for path in ("/schema", "/metadata"):
            assert (await client.get(path, headers={"Host": "attacker.invalid"})).status_code == 403


async def test_with_a_token_all_but_health_requires_it() -> None:
    basic = base64.b64encode(f"any:{TOKEN.get_secret_value()}".encode()).decode()
    async with serving(FakeSessions(), auth_token=TOKEN) as place, reading(place) as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/schema")).status_code == 401
        assert (await client.post("/shop/tasks", json={"split": "train"})).status_code == 401
        with pytest.raises(InvalidStatus) as refused:
            await dial(place)
        assert refused.value.response.status_code == 401
        for credentials in (f"Bearer {TOKEN.get_secret_value()}", f"Basic {basic}"):
            headers = {"Authorization": credentials}
            assert (await client.get("/schema", headers=headers)).status_code == 200
            async with dial(place, additional_headers=headers) as socket:
                assert (await ask(socket, "reset"))[0] == "observation"


async def test_a_server_that_stops_closes_its_sessions() -> None:
    sessions = FakeSessions()
    async with serving(sessions) as place:
        client = await dial(place)
        await ask(client, "reset")
    assert sessions.active == 0
    with pytest.raises(ConnectionClosed):
        await client.recv()
    await client.close()


async def test_frames_have_no_name_that_is_not_openenvs() -> None:
    async with serving(FakeSessions([an_end(1.0)])) as place, dial(place) as client:
        for question in ("reset", "step"):
            await client.send(json.dumps({"type": question, "data": {}}))
            assert (await answered(client))[1].keys() == {"observation", "reward", "done"}
