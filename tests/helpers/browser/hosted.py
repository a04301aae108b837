"""A Chromium that runs by itself, and a host that gives out its address as hosts of browsers do."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from helpers.browser.sessions import found_browser

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
    """One that is started, and is killed in the end."""
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
