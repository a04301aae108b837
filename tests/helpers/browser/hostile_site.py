"""A website on loopback that misbehaves on request, and remembers who asked for what."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOME = """<title>Home</title><h1>Welcome</h1><a href="/goal">Goal</a><button onclick="said.textContent='pressed'">Press
</button><input aria-label="Field"><p id="said" role="status">nothing yet</p>"""
GOAL = "<title>Goal</title><h1>You are there</h1><a href='/'>Home</a>"
CHUNK = b"x" * 65_536

Page = str | bytes | Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers from the site's `pages`; a page that is a function writes the answer itself."""

    server: "Site"
    body = b""

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        page = self.server.pages.get(self.path.partition("?")[0])
        if callable(page):
            page(self)
        elif page is None:
            self.send(b"<title>Not here</title>", 404)
        else:
            self.send(page.encode() if isinstance(page, str) else page)

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def send(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        headers = {"Content-Type": "text/html; charset=utf-8", **{k.replace("_", "-"): v for k, v in headers.items()}}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, to: str) -> None:
        self.send(b"", 302, Location=to)

    def log_message(self, *_: Any) -> None:
        pass


class Site(ThreadingHTTPServer):
    """`pages` maps paths to bodies or functions; `paths` are the paths asked for; `bytes_sent` counts endless bytes."""

    daemon_threads = True

    def __init__(self, pages: dict[str, Page], host: str = "127.0.0.1") -> None:
        self.pages: dict[str, Page] = {"/": HOME, "/goal": GOAL, "/favicon.ico": b"", **pages}
        self.paths: list[str] = []
        self.bytes_sent = 0
        self.released = threading.Event()
        self.scheme = "http"
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), Handler)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}/"

    def count(self, path: str) -> int:
        return sum(seen.partition("?")[0] == path for seen in self.paths)

    def was_requested(self, path: str) -> bool:
        return self.count(path) > 0

    def handle_error(self, *_: Any) -> None:
        """Browsers hang up in the middle of things: nothing to tell."""


@contextmanager
def hostile_site(
    pages: dict[str, Page] | None = None, *, certificate: Path | None = None, host: str = "127.0.0.1"
) -> Iterator[Site]:
    """Serve while the body runs; with `certificate` (a PEM of key and certificate) over TLS."""
    site = Site(pages or {}, host)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        site.socket = context.wrap_socket(site.socket, server_side=True, do_handshake_on_connect=False)
        site.scheme = "https"
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.released.set()
        site.shutdown()
        thread.join()
        site.socket.close()


def never_answers(handler: Handler) -> None:
    """Keep the browser waiting until the site is closed."""
    handler.server.released.wait(60)


def slowly(seconds: float, body: str = HOME) -> Page:
    def answer(handler: Handler) -> None:
        handler.server.released.wait(seconds)
        handler.send(body.encode())

    return answer


def endless_redirects(handler: Handler) -> None:
    """To itself with another number, for ever."""
    handler.redirect(f"{handler.path.partition('?')[0]}?{time.monotonic_ns()}")


def endless_download(handler: Handler, total: int = 1_000_000_000) -> None:
    """A gigabyte to save."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/octet-stream")
    handler.send_header("Content-Disposition", "attachment; filename=big.bin")
    handler.send_header("Content-Length", str(total))
    handler.end_headers()
    try:
        for _ in range(total // len(CHUNK)):
            handler.wfile.write(CHUNK)
            handler.server.bytes_sent += len(CHUNK)
    except OSError:
        return


def self_signed(folder: Path) -> Path:
    """A certificate that nobody trusts."""
    pem = folder / "site.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(pem), "-out", str(folder / "cert.pem")], check=True, capture_output=True)
    pem.write_text(pem.read_text() + (folder / "cert.pem").read_text())
    return pem


@contextmanager
def tripwire(host: str = "127.0.0.1") -> Iterator[Site]:
    """A service that must not be reached: stands for the judge's port, the participant's, or any other."""
    with hostile_site({"/": "<title>Secret</title>the secret", "/secret": "the secret"}, host=host) as site:
        yield site
