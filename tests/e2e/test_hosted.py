"""Tasks in a Chromium that somebody else started."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import found_browser
from helpers.episode.live_judge import (
    AssessedRun,
    LiveJudge,
    ParticipantTurn,
    always_yes,
    live_judge,
    participant,
    some_tasks,
    to_the_goal,
)
from helpers.llm.servers import ModelServer

_START_S = 60.0


class RunningChromium:
    """Started and killed at will. Each start has a new secret address (`socket_url`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.socket_url = ""

    def start(self) -> None:
        ready = self._folder / "DevToolsActivePort"
        ready.unlink(missing_ok=True)
        options = [f"--user-data-dir={self._folder}", "--headless", "--no-sandbox", "--disable-dev-shm-usage"]
        self._process = subprocess.Popen(
            [str(found_browser().path), *options, "--remote-debugging-port=0", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A group of its own: the program may be a script that starts the browser.
            start_new_session=True,
        )
        until = time.monotonic() + _START_S
        while not (ready.exists() and len(lines := ready.read_text().splitlines()) == 2):
            assert time.monotonic() < until, "Chromium did not start"
            time.sleep(0.02)
        self.socket_url = f"ws://127.0.0.1:{lines[0]}{lines[1]}"

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def running_chromium(folder: Path) -> Iterator[RunningChromium]:
    """One started, and killed in the end."""
    chromium = RunningChromium(folder)
    try:
        chromium.start()
        yield chromium
    finally:
        chromium.kill()


class BrowserHost:
    """What was asked of a host: the query of each request for a browser. `is_closed`: it refuses all of them."""

    def __init__(self) -> None:
        self.queries: list[dict[str, list[str]]] = []
        self.url = ""
        self.is_closed = False


@contextmanager
def browser_host(chromium: RunningChromium) -> Iterator[BrowserHost]:
    """A server that answers where the browser is, at an address with whatever token the client was given."""
    host = BrowserHost()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.queries.append(parse_qs(urlsplit(self.path).query))
            body = json.dumps({"webSocketDebuggerUrl": chromium.socket_url}).encode()
            self.send_response(403 if host.is_closed else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    host.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


pytestmark = pytest.mark.e2e
TOKEN = "hunter22"


@pytest.fixture
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningChromium]:
    with running_chromium(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def host(chromium: RunningChromium) -> Iterator[BrowserHost]:
    with browser_host(chromium) as answering:
        yield answering


@pytest.fixture
async def judge(tmp_path: Path, browser_files: Path, host: BrowserHost) -> AsyncIterator[LiveJudge]:
    url = f"{host.url}?token={TOKEN}"
    with ModelServer(always_yes) as model:
        async with live_judge(
            tmp_path, browser_files, model, cdp_url=url, cdp_private=True, settle="real-time"
        ) as running:
            yield running


def is_secret_in(assessed: AssessedRun, secret: str) -> list[Path]:
    files = [path for path in assessed.folder.rglob("*") if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]


async def test_tasks_are_won_over_one_connection_and_recorded_as_unguarded(
    judge: LiveJudge, host: BrowserHost, chromium: RunningChromium
) -> None:
    with hostile_site() as site:
        assessed = await judge.play(to_the_goal, site.url, tasks=2, max_parallel=1)
    assert [each["verdict"] for each in assessed.detail["tasks"]] == ["success", "success"]
    assert len(host.queries) == 1
    versions = assessed.result()["versions"]
    assert (versions["browser_mode"], versions["guarded"]) == ("hosted", "false")
    assert versions["browser"].startswith("Chromium 1")
    assert assessed.detail["provenance"]["environment"]["guarded"] == "false"
    assert is_secret_in(assessed, TOKEN) == []
    assert is_secret_in(assessed, chromium.socket_url.rpartition("/")[2]) == []


async def test_each_task_has_its_own_session_where_the_address_names_it(judge: LiveJudge, host: BrowserHost) -> None:
    url = f"{host.url}?session={{task_id}}"
    with hostile_site() as site:
        assessed = await judge.play(to_the_goal, site.url, tasks=2, max_parallel=1, cdp_url=url)
    assert [each["verdict"] for each in assessed.detail["tasks"]] == ["success", "success"]
    assert [each["session"] for each in host.queries] == [["t0"], ["t1"]]


async def test_a_hosted_browser_that_dies_midway_is_a_fault_that_names_it_and_the_attempt_is_played_again(
    judge: LiveJudge, host: BrowserHost, chromium: RunningChromium
) -> None:
    def script(turn: ParticipantTurn) -> str:
        if turn.episode == 0 and turn.n == 1:
            chromium.kill()
            chromium.start()
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, tasks=2, max_parallel=1, max_task_retries=1)
    assert [each["verdict"] for each in assessed.detail["tasks"]] == ["success", "success"]
    assert assessed.result()["attempt"] == 2
    first = assessed.folder / "results" / "t0" / "attempts" / "001" / "steps.jsonl"
    assert len(first.read_text().splitlines()) == 2


async def test_a_hosted_browser_that_stays_away_aborts_the_task_and_is_named_without_its_token(
    judge: LiveJudge, host: BrowserHost, chromium: RunningChromium
) -> None:
    def script(turn: ParticipantTurn) -> str:
        chromium.kill()
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    entry = assessed.entry
    assert (entry["verdict"], entry["stop_reason"]) == ("aborted", "environment_fault"), entry
    assert f"the hosted browser at {host.url.rstrip('/')}: the connection was closed" in entry["error"]
    assert is_secret_in(assessed, TOKEN) == []


async def test_a_host_that_refuses_the_token_is_named_with_its_answer(judge: LiveJudge, host: BrowserHost) -> None:
    host.is_closed = True
    with hostile_site() as site:
        assessed = await judge.play(to_the_goal, site.url)
    assert assessed.entry["verdict"] == "aborted"
    assert f"the hosted browser at {host.url.rstrip('/')}: no connection: status 403" in assessed.entry["error"]
    assert is_secret_in(assessed, TOKEN) == []


async def test_a_task_on_a_private_address_is_refused_unless_that_is_allowed(judge: LiveJudge) -> None:
    async with participant(to_the_goal) as url:
        assessed = await judge.ask(url, some_tasks("http://127.0.0.1:9/"), cdp_private=False)
    assert assessed.outcome.state == "rejected"
    assert "a hosted browser has no guard" in assessed.outcome.message
