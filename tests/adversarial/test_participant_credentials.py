"""What a participant asks of its callers is nowhere but in the requests to it: not on disk, not shown, not traced."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from helpers.a2a.agents import our_agent, served
from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import finish
from helpers.ports import free_port
from judge.runner.options import RunOptions
from judge.runner.run import run
from judge.store.layout import newest_run
from shared.a2a.tasks import AgentMessage
from shared.errors import WabeError
from shared.settings import Settings

EXPIRED, VALID, TENANT = "expired-Zq91", "valid-Zq92", "tenant-Zq93"
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{port}"
cmd = "wabe serve --host 127.0.0.1 --port {port}"
[[participants]]
role = "white_agent"
endpoint = "{agent}"
headers = {{ Authorization = "Bearer ${{AGENT_TOKEN}}", X-Tenant = "{tenant}" }}
[config]
judge_model = "offline"
max_steps = 2
max_task_retries = 0
[[tasks]]
task_id = "t"
website = "{site}"
task = "Read the page."
checks = [{{ kind = "text", contains = "Welcome" }}]
"""


class Guarded:
    """An agent that serves its card to callers of its tenant, and answers those with the valid token only.

    It quotes what others sent. `requests` are the paths and credentials of all requests.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self.requests: list[tuple[str, str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append((scope["path"], headers.get("authorization", ""), headers.get("x-tenant", "")))
        is_card = scope["path"].startswith("/.well-known/")
        if headers.get("x-tenant") == TENANT and (is_card or headers.get("authorization") == f"Bearer {VALID}"):
            await self._app(scope, receive, send)
        elif is_card:
            await Response(status_code=401)(scope, receive, send)
        else:
            error = f'{{"code": -32603, "message": "bad headers {headers["authorization"]} {headers["x-tenant"]}"}}'
            body = f'{{"jsonrpc": "2.0", "id": null, "error": {error}}}'
            await Response(body, media_type="application/json")(scope, receive, send)


@asynccontextmanager
async def trace_sink() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Where spans are sent to."""
    spans: list[bytes] = []

    async def take(request: Request) -> Response:
        spans.append(await request.body())
        return Response(media_type="application/x-protobuf")

    async with served(Starlette(routes=[Route("/v1/traces", take, methods=["POST"])])) as url:
        yield url, spans


@pytest.mark.e2e
async def test_no_output_of_a_run_has_the_credentials_and_a_resumed_run_takes_new_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    port, output, screen = free_port(), list[bytes](), io.StringIO()

    async def answer(_: AgentMessage) -> str:
        async with httpx.AsyncClient() as http, http.stream("GET", f"http://127.0.0.1:{port}/events") as events:
            output.append(await anext(events.aiter_bytes()))
        return finish()

    agent = Guarded(our_agent(answer))
    with hostile_site() as site:
        async with served(agent) as url, trace_sink() as (sink, spans):
            path = tmp_path / "scenario.toml"
            path.write_text(SCENARIO.format(port=port, agent=url, site=site.url, tenant=TENANT))

            def start(token: str, **options: Any) -> Any:
                environ = Settings.from_environ().environ
                settings = Settings.from_environ({**environ, "AGENT_TOKEN": token, "OTEL_EXPORTER_OTLP_ENDPOINT": sink})
                run_options = RunOptions(scenario=path, output_dir=tmp_path / "output", display="plain", **options)
                return run(run_options, settings, Console(file=screen, width=200))

            with pytest.raises(
                WabeError, match=r"before any action: .*bad headers \[redacted\] \[redacted\]"
            ) as refused:
                await start(EXPIRED)
            assert await start(VALID, resume="latest") == 0
    store = newest_run(tmp_path / "output")
    assert store is not None
    paths = {path for path, _, _ in agent.requests}
    assert paths == {"/.well-known/agent-card.json", "/"}
    assert {token for _, token, _ in agent.requests} == {f"Bearer {EXPIRED}", f"Bearer {VALID}"}
    texts = [screen.getvalue(), str(refused.value), caplog.text, *map(repr, [*output, *spans])]
    assert output
    assert spans
    assert (store.folder / "results.json").is_file()
    secrets = (EXPIRED, VALID, TENANT)
    files = [file for file in (tmp_path / "output").rglob("*") if file.is_file()]
    results = [str(file) for file in files if any(secret.encode() in file.read_bytes() for secret in secrets)]
    assert results + [text for text in texts if any(secret in text for secret in secrets)] == []
    # The judge's own tasks are among the files.
    assert any(file.suffix == ".sqlite" for file in files), files
