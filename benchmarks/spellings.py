"""Sends one path in many spellings to real servers that read paths differently, and compares what they did with what
holds, policies and permissions make of the same addresses.

`python benchmarks/spellings.py [--spellings N] [--seed S]`. Exit code 1 if a spelling reached the path on a server and
was not recognised as one that could, or if one was permitted although a server read it as another path.
"""

import argparse
import http.client
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("src", "tests")]

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from helpers.spellings import SERVERS, Server, spelled
from judge.evaluators.addresses import could_be_held, is_permitted, matches
from judge.records.holds import AllowedWrite, Hold
from judge.records.sites import Site, origin_of

PATHS = ("/secret", "/api/order", "/a/b/c")


@contextmanager
def serving(parse: Server) -> Iterator[int]:
    """A server that answers with the path that it read."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = ("/" + parse(self.requestline.split(" ")[1].partition("?")[0]).strip("/")).encode("utf-8", "replace")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def measure(count: int, number: int) -> int:
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        lines = [http.client.HTTPConnection("127.0.0.1", stack.enter_context(serving(server))) for server in SERVERS]

        def answers(path: str) -> set[str]:
            answers_read = set()
            for line in lines:
                line.request("POST", path)
                answers_read.add(line.getresponse().read().decode())
            return answers_read

        @seed(number)
        @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(data=st.data(), path=st.sampled_from(PATHS))
        def play(data: st.DataObject, path: str) -> None:
            spelling = data.draw(spelled(path))
            url = f"http://shop.example{spelling}"
            home = frozenset(filter(None, [origin_of(url)]))
            answers_read = answers(spelling)
            counts["spellings"] += 1
            counts["reached"] += path in answers_read
            policy = Site(home, is_any=True, is_lenient=True)
            if path in answers_read and not (could_be_held(url, Hold(url=path)) and matches(url, path, policy)):
                counts["missed"] += 1
                print(f"missed: {spelling} read as {path}")
            permitted = is_permitted(url, AllowedWrite(url=path), Site(home))
            counts["permitted"] += permitted
            if permitted and answers_read != {path}:
                counts["wrongly permitted"] += 1
                print(f"wrongly permitted: {spelling} read as {sorted(answers_read)}")

        play()
        for line in lines:
            line.close()
    print(
        ", ".join(
            f"{name}: {counts[name]}" for name in ("spellings", "reached", "missed", "permitted", "wrongly permitted")
        )
    )
    return 1 if counts["missed"] or counts["wrongly permitted"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spellings", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    raise SystemExit(measure(options.spellings, options.seed))
