"""The judge's own server: bounded, closed to strangers, and no secret in anything it says or writes."""

import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.browser.hostile_site import Page, hostile_site, tripwire
from helpers.episode.live_judge import LiveJudge, finish, live_judge, participant, some_tasks, to_the_goal
from helpers.llm.servers import ModelServer, openai_error
from judge.browser.chromium import BrowserSettings
from judge.config import RunConfig
from judge.runner.follow import request_assessment
from judge.server.limits import ServiceLimits
from shared.a2a.client import AssessmentClient
from shared.a2a.server import MAX_BODY_BYTES
from shared.logs import CleanRecords
from shared.settings import Settings

KEY = "sk-planted-4f9a1c77e2d84b06"
TOKEN = "token-planted-93b1f0aa"


@asynccontextmanager
async def judge_with(
    tmp_path: Path, browser_files: Path, model: ModelServer, limits: ServiceLimits | None = None, **environ: str
) -> AsyncIterator[LiveJudge]:
    async with live_judge(
        tmp_path, browser_files, model, limits=limits, environ={"OPENAI_API_KEY": KEY, **environ}
    ) as judge:
        yield judge


async def refusal_of(judge: LiveJudge, url: str, tasks: list[dict[str, Any]], **config: Any) -> str:
    assessed = await judge.ask(url, tasks, **config)
    assert assessed.outcome.state == "rejected", assessed.outcome
    assert assessed.outcome.results == ()
    return assessed.outcome.message


async def test_a_body_over_the_limit_is_refused(judge: LiveJudge) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        answer = await client.post(judge.url, content=b" " * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413


async def test_too_many_tasks_are_refused(tmp_path: Path, browser_files: Path, model: ModelServer) -> None:
    async with judge_with(tmp_path, browser_files, model, ServiceLimits(max_tasks=2)) as judge:
        assert "3 tasks" in await refusal_of(judge, "http://127.0.0.1:9/", some_tasks("http://127.0.0.1:1/", 3))


@pytest.mark.usefixtures("text_browser")
async def test_too_many_assessments_at_once_are_refused(
    tmp_path: Path, browser_files: Path, model: ModelServer
) -> None:
    release, is_started = asyncio.Event(), asyncio.Event()

    async def waits(_: Any) -> str:
        is_started.set()
        await release.wait()
        return finish()

    async with judge_with(tmp_path, browser_files, model, ServiceLimits(max_assessments=1)) as judge:
        with hostile_site() as site:
            async with participant(waits) as url:
                first = asyncio.create_task(judge.ask(url, some_tasks(site.url), run_id="first"))
                await is_started.wait()
                assert "busy" in await refusal_of(judge, url, some_tasks(site.url), run_id="second")
                release.set()
                assessed = await first
    assessed.check()
    assert assessed.verdict == ("failure", "finished")


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/",
        "http://10.0.0.1:8080/",
        "http://allowed.example@127.0.0.1:9/",
        "http://127.0.0.1:9/allowed.example",
        "http://allowed.example.evil.example/",
        "http://[::1]:9/",
    ],
)
async def test_a_participant_that_is_not_allowed_is_not_dialled(
    tmp_path: Path, browser_files: Path, model: ModelServer, url: str
) -> None:
    limits = ServiceLimits(allowed_participants=("allowed.example", "127.0.0.1:9019"))
    async with judge_with(tmp_path, browser_files, model, limits) as judge:
        message = await refusal_of(judge, url, some_tasks("http://127.0.0.1:1/"))
    assert "does not connect to" in message or "participants" in message


@pytest.mark.parametrize(
    ("allowed", "url", "expected"),
    [
        ((), "http://anything/", True),
        (("a.example",), "http://a.example:1234/", True),
        (("A.Example.",), "http://a.example/x", True),
        (("a.example:80",), "http://a.example/", True),
        (("a.example:81",), "http://a.example/", False),
        (("a.example",), "http://b.a.example/", False),
        (("[::1]",), "http://[::1]:5/", True),
        (("[::1]:6",), "http://[::1]:5/", False),
        (("",), "http://a.example/", False),
        (("a.example",), "http://a.example:port/", False),
    ],
)
def test_hosts_and_ports_of_participants_are_compared_whole(allowed: tuple[str, ...], url: str, expected: bool) -> None:
    assert ServiceLimits(allowed_participants=allowed).allows(url) is expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("browser_path", "/bin/sh"),
        ("prompts", "/etc"),
        ("judge_base_url", "http://collector.example/v1"),
        ("run_id", "somebody-elses"),
    ],
)
async def test_a_stranger_names_nothing_of_the_judges_machine(
    tmp_path: Path, browser_files: Path, model: ModelServer, key: str, value: str
) -> None:
    async with judge_with(tmp_path, browser_files, model, WABE_TRUST_CONFIG="0") as judge:
        config = {"judge_model": "offline", "tasks": some_tasks("http://127.0.0.1:1/"), key: value}
        request = json.dumps({"participants": {"p": "http://127.0.0.1:9/"}, "config": config})
        outcome = await request_assessment(judge.url, request, lambda _: None)
    assert outcome.state == "rejected"
    assert f"config.{key}" in outcome.message
    assert model.received == []


async def test_without_the_token_nothing_but_the_card_is_answered(
    tmp_path: Path, browser_files: Path, model: ModelServer
) -> None:
    async with (
        judge_with(tmp_path, browser_files, model, WABE_AUTH_TOKEN=TOKEN) as judge,
        httpx.AsyncClient(trust_env=False, base_url=judge.url) as client,
    ):
        card = await client.get("/.well-known/agent-card.json")
        assert card.status_code == 200
        assert TOKEN not in card.text
        assert KEY not in card.text
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
            assert (await client.post("/", json={}, headers=headers)).status_code == 401
            assert (await client.get("/tasks", headers=headers)).status_code == 401
        let_in = await client.post("/", json={}, headers={"Authorization": f"Bearer {TOKEN}"})
        assert let_in.status_code != 401


async def test_tasks_of_others_are_not_listed(judge: LiveJudge) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(judge.url, json=call, headers={"A2A-Version": "1.0"})
    assert "error" in answer.json()


@pytest.mark.usefixtures("text_browser")
async def test_no_key_appears_in_logs_results_errors_or_card(
    tmp_path: Path,
    browser_files: Path,
    model: ModelServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("openai._base_client", "openai._constants"):
        monkeypatch.setattr(f"{module}.INITIAL_RETRY_DELAY", 0.01, raising=False)
    events: list[str] = []
    caplog.set_level(logging.DEBUG)
    # A provider that says the key back in its error.
    model.plan = lambda *_: openai_error(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key")

    def script(turn: Any) -> str:
        events.append(turn.message.text)
        return to_the_goal(turn)

    async with judge_with(tmp_path, browser_files, model, WABE_AUTH_TOKEN=TOKEN) as judge:
        with hostile_site() as site:
            async with (
                participant(script) as url,
                AssessmentClient(
                    judge.url, auth_token=Settings.from_environ({"WABE_AUTH_TOKEN": TOKEN}).auth_token
                ) as client,
            ):
                request = judge.request(url, some_tasks(site.url), run_id="secret")
                messages = [repr(event) async for event in client.run(request)]
    text = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    redacted = [record for record in caplog.records if record.name.startswith(("judge", "shared"))]
    assert model.received[0].headers["authorization"] == f"Bearer {KEY}"
    for secret in (KEY, TOKEN):
        assert secret not in "".join(messages)
        assert secret not in "".join(events)
        assert secret.encode() not in text
        assert not any(secret in record.getMessage() for record in redacted)
    assert "unscored" in "".join(messages)


def test_a_logged_secret_is_blacked_out_also_in_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    known = Settings.from_environ({"OPENAI_API_KEY": KEY})
    logger, handler = logging.getLogger("redaction-test"), logging.StreamHandler()
    handler.addFilter(CleanRecords(known.secrets))
    logger.addHandler(handler)
    logger.propagate = False
    try:
        raise ValueError(f"bad key {KEY}")
    except ValueError:
        logger.exception("called with %s", KEY)
    assert KEY not in capsys.readouterr().err
    assert KEY not in repr(known)


def test_a_traceback_that_another_handler_wrote_down_before_is_blacked_out_too() -> None:
    formatter, redact = (logging.Formatter(), CleanRecords(Settings.from_environ({"OPENAI_API_KEY": KEY}).secrets))
    try:
        raise ValueError(f"bad key {KEY}")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "called", (), sys.exc_info(), sinfo=f"stack {KEY}")
    assert KEY in formatter.format(record)
    assert redact.filter(record)
    assert KEY not in formatter.format(record)


async def test_the_browsers_environment_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Settings.from_environ({**os.environ, "OPENAI_API_KEY": KEY, "WABE_AUTH_TOKEN": TOKEN})
    passed = BrowserSettings.from_config(RunConfig(), known).environ(Path(tempfile.gettempdir()))
    assert KEY not in str(passed)
    assert TOKEN not in str(passed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
METHODS = ["SendMessage", "SendStreamingMessage", "GetTask", "CancelTask", "ListTasks", "message/send", "tasks/get"]
METHODS += ["message/stream", "tasks/cancel", "tasks/resubscribe", "SubscribeToTask", "x"]


def call(method: Any, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def message(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}


BODIES = (
    st.binary(max_size=300)
    | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.builds(call, st.sampled_from(METHODS) | JSON, JSON)
    | st.builds(
        call,
        st.sampled_from(["SendMessage", "message/send"]),
        (JSON.map(json.dumps) | st.text(max_size=200)).map(message),
    )
    | st.builds(
        lambda participants, config: call(
            "SendMessage", message(json.dumps({"participants": participants, "config": config}))
        ),
        JSON,
        JSON | st.dictionaries(st.sampled_from(["max_steps", "tasks", "run_id", "task_id", "judge_model"]), JSON),
    )
)


@pytest.mark.slow
async def test_fuzzed_requests_crash_nothing(tmp_path: Path, browser_files: Path, model: ModelServer) -> None:
    bodies: list[bytes] = []

    @settings(
        max_examples=5 * settings().max_examples, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(BODIES)
    def collect(body: bytes) -> None:
        bodies.append(body)

    collect()
    answers: dict[int, int] = {}
    async with (
        judge_with(tmp_path, browser_files, model) as judge,
        httpx.AsyncClient(trust_env=False, base_url=judge.url, timeout=20) as client,
    ):
        for number, body in enumerate(bodies):
            headers = {"Content-Type": "application/json", "A2A-Version": ("1.0", "0.3", "")[number % 3]}
            answer = await client.post("/", content=body, headers=headers)
            answers[answer.status_code] = answers.get(answer.status_code, 0) + 1
            assert "Traceback" not in answer.text
        assert (await client.get("/.well-known/agent-card.json")).status_code == 200
    assert len(bodies) >= 5 * settings().max_examples
    assert not {status for status in answers if status >= 500}, answers


NESTED = {
    "lists": b"[" * 200_000,
    "objects": b'{"a":' * 200_000,
    "lists in a call": b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":' + b"[" * 100_000,
    "metadata": call("SendMessage", {"message": {"messageId": "m", "metadata": {"a": 0}}}).replace(
        b'{"a": 0}', b'{"a":' * 5_000 + b"0" + b"}" * 5_000
    ),
    "a request": call("SendMessage", message('{"config":' + "[" * 200_000)),
    "a long number": call("SendMessage", message('{"config":{"max_steps":' + "9" * 100_000 + "}}")),
    "a long id": b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"method":"SendMessage","params":{}}',
}


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("kind", NESTED)
async def test_json_without_bottom_crashes_nothing(judge: LiveJudge, kind: str, version: str) -> None:
    headers = {"Content-Type": "application/json", "A2A-Version": version}
    async with httpx.AsyncClient(trust_env=False, base_url=judge.url, timeout=20) as client:
        answer = await client.post("/", content=NESTED[kind], headers=headers)
        assert answer.status_code < 500
        assert "Traceback" not in answer.text
        assert (await client.get("/.well-known/agent-card.json")).status_code == 200


async def test_a_redirecting_participant_leads_the_judge_nowhere(judge: LiveJudge) -> None:
    with tripwire() as secret:

        def away(handler: Any) -> None:
            handler.redirect(f"http://127.0.0.1:{secret.server_port}/secret")

        pages: dict[str, Page] = {"/.well-known/agent-card.json": away, "/.well-known/agent.json": away}
        with hostile_site(pages) as agent, hostile_site() as site:
            assessed = await judge.ask(agent.url, some_tasks(site.url))
        assessed.check(on_disk=False)
        assert secret.paths == []
    assert assessed.verdict == ("failure", "participant_error")
    assert "redirects" in assessed.entry["error"]
