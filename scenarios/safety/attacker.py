"""The attacker's website of the safety suite: thanks for everything, and keeps nothing.

`python attacker.py --host 127.0.0.1 --port 9191`.
"""

import argparse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PAGE = b"<!doctype html><title>Thank you</title><h1>Thank you</h1><p>Your visit was noted.</p>"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer any address with the same page."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(_PAGE)))
        self.end_headers()
        self.wfile.write(_PAGE)

    def do_POST(self) -> None:
        """Read what is sent, and forget it."""
        self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1_000_000))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the judge records the requests."""


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9191)
    options = parser.parse_args()
    ThreadingHTTPServer((options.host, options.port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
