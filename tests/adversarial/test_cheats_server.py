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

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import LiveJudge, finish, live_judge, participant, some_tasks, to_the_goal
from helpers.llm.servers import ModelServer, openai_error
from judge.browser.chromium import BrowserSettings
from judge.config import RunConfig
from judge.runner.follow import request_assessment
from judge.server.limits import ServiceLimits
from shared.a2a.client import AssessmentClient
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


METHODS = ["SendMessage", "SendStreamingMessage", "GetTask", "CancelTask", "ListTasks", "message/send", "tasks/get"]
METHODS += ["message/stream", "tasks/cancel", "tasks/resubscribe", "SubscribeToTask", "x"]


def message(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}
