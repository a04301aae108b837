"""Foreign agents and clients in processes of their own, a judge as users start it, and a website to send them to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from helpers.browser.hostile_site import hostile_site
from helpers.interop.environments import environment
from helpers.paths import ROOT
from helpers.ports import free_port

PROGRAMS = ROOT / "tests" / "interop" / "programs"
# A program by name: the environment it runs in, `None` for ours, and its file.
AGENTS = {"v03": ("v03", "old_agent.py"), "v1": (None, "new_agent.py"), "adk": ("adk", "adk_agent.py")}
# A client by name: the same, and the binding it speaks.
CLIENTS = {
    "v03 JSON-RPC": ("v03", "old_client.py", "JSONRPC"),
    "v03 HTTP+JSON": ("v03", "old_client.py", "HTTP+JSON"),
    "v1 JSON-RPC": (None, "new_client.py", "JSONRPC"),
    "v1 HTTP+JSON": (None, "new_client.py", "HTTP+JSON"),
}
PAGES = {
    "/": "<title>Home</title><h1>Welcome</h1><a href='/goal'>Goal</a>",
    "/goal": "<title>Goal</title><h1>Goal</h1><p>You are there.</p>",
}
_ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
EventRecords = dict[str, Any]


def python_of(name: str | None) -> Path:
    return Path(sys.executable) if name is None else environment(name)


@contextmanager
def program(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is talked to over pipes; it is gone at the end."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=_ENVIRON)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


@contextmanager
def foreign_agents(kind: str, shapes: Sequence[str], gate: Path | None = None) -> Iterator[list[str]]:
    """Agents built with somebody else's library, one for each shape of replies, in one process; their addresses."""
    name, file = AGENTS[kind]
    options = ("--gate", gate) if gate else ()
    with program(python_of(name), PROGRAMS / file, *shapes, *options) as process:
        assert process.stdout is not None
        ports = [process.stdout.readline().strip() for _ in shapes]
        assert all(port.isdigit() for port in ports), "an agent did not start"
        yield [f"http://127.0.0.1:{port}" for port in ports]


@contextmanager
def foreign_agent(kind: str, shape: str = "message", gate: Path | None = None) -> Iterator[str]:
    """One of them."""
    with foreign_agents(kind, [shape], gate) as (url,):
        yield url


class ForeignClient:
    """A foreign client's process. Makes one call after the other; gives what it sees of each, event by event."""

    def __init__(self, process: subprocess.Popen[str], binding: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests = process.stdin
        self._lines = process.stdout
        self._binding = binding

    def call(
        self, url: str, mode: str, *, task: str = "", text: str = "", read_timeout_s: float = 60.0
    ) -> Iterator[EventRecords]:
        """Begin a call; what its card says comes first."""
        request: dict[str, object] = {"url": url, "mode": mode, "task": task, "text": text}
        request |= {"binding": self._binding, "read_timeout_s": read_timeout_s}
        print(json.dumps(request), file=self._requests, flush=True)
        return (json.loads(line) for line in iter(self._lines.readline, "\n"))


@contextmanager
def foreign_client(client: str) -> Iterator[ForeignClient]:
    """A client of `CLIENTS`; at the end it is killed, whatever it is doing."""
    name, file, binding = CLIENTS[client]
    with program(python_of(name), PROGRAMS / file) as process:
        yield ForeignClient(process, binding)


@contextmanager
def calling(client: str, url: str, mode: str, **options: Any) -> Iterator[Iterator[EventRecords]]:
    """What a foreign client sees of its one call; at the end it is killed, done or not."""
    with foreign_client(client) as called:
        yield called.call(url, mode, **options)


class ForeignClients:
    """One process for each client, which lives for many calls."""

    def __init__(self) -> None:
        self._processes = ExitStack()
        self._started: dict[str, ForeignClient] = {}

    def events(self, client: str, url: str, mode: str, **options: Any) -> Iterator[EventRecords]:
        """What a client of `CLIENTS` sees until its call ends; what its card says comes first."""
        if client not in self._started:
            self._started[client] = self._processes.enter_context(foreign_client(client))
        return self._started[client].call(url, mode, **options)

    def call(self, client: str, url: str, mode: str, **options: Any) -> list[EventRecords]:
        """All of it."""
        return list(self.events(client, url, mode, **options))

    def close(self) -> None:
        """End them all."""
        self._processes.close()


@contextmanager
def website() -> Iterator[str]:
    """Two pages, one of which leads to the other."""
    with hostile_site(dict(PAGES)) as site:
        yield site.url


class JudgeProcess:
    """`wabe serve`, which can be ended and started again at the same place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        # Another name for the same place.
        self.card_url = f"http://localhost:{port}/"
        self._command: list[str | Path] = [
            Path(sys.executable).parent / "wabe",
            "serve",
            "--port",
            str(port),
            "--output-dir",
            folder,
            "--card-url",
            self.card_url,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = subprocess.Popen(self._command, env=_ENVIRON, stderr=subprocess.DEVNULL)
        with httpx.Client(transport=httpx.HTTPTransport(retries=8), base_url=self.url, timeout=30) as http:
            assert http.get("/.well-known/agent-card.json").status_code == 200

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it by a signal."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=60)
            self._process = None


@contextmanager
def judge_process(folder: Path) -> Iterator[JudgeProcess]:
    """A judge on a free port."""
    judge = JudgeProcess(folder)
    try:
        judge.start()
        yield judge
    finally:
        judge.end()


def assessment(participant: str, site: str) -> str:
    """The request for one task on the website, decided by its check and so without a judge model."""
    checks = [{"kind": "page", "url": "/goal"}]
    task = {"task_id": "goal", "website": site, "task": "Open the page 'Goal'.", "level": "easy", "checks": checks}
    config = {"judge_model": "offline", "max_steps": 3, "tasks": [task]}
    return json.dumps({"participants": {"white_agent": participant}, "config": config})
