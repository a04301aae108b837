"""What a client of `wabe env serve` sees at each way in which an episode can end.

    python benchmarks/env_ends.py

Plays a small site of its own: its process is killed, it begins to answer 500, the browsers are killed, the judge's
process is killed, and clients do what they must not. Prints a row for each: what the client saw, and whether the next
episode on that session, or on a new one, has its reward. Exits with 1 if a fault had a reward, or a later episode none.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from websockets.exceptions import ConnectionClosed

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from env_serving import FINISH, dialled, served
from helpers.ports import free_port

SITE = """
import http.server, pathlib, sys
folder = pathlib.Path(sys.argv[2])
class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_broken = (folder / "broken").exists()
        self.send_response(500 if is_broken else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        name = "Broken" if is_broken else "Goal" if self.path == "/goal" else "Home"
        self.wfile.write(f"<title>{name}</title><h1>{name}</h1><a href='/goal'>Goal</a>".encode())
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Site).serve_forever()
"""
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:1"

[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:2"

[[sites]]
name = "site"
endpoint = "http://127.0.0.1:{port}"
static = true
cmd = "python {folder}/site.py {port} {folder}"

[config]
judge_model = "offline"

[[tasks]]
task_id = "goal"
website = "http://127.0.0.1:{port}/"
task = "Open the goal."
checks = [{{ kind = "element", element = 'heading "Goal"' }}]
"""


class Ends:
    """The server, its site, and what was seen."""

    def __init__(self, place: str, server: psutil.Process, port: int, folder: Path) -> None:
        self.place, self._server, self._folder = place, server, folder
        self.go = {"tool": "browser_navigate", "params": {"url": f"http://127.0.0.1:{port}/goal"}}

    def kill(self, *words: str) -> None:
        """Kill the server's descendants whose command line has one of the words."""
        for process in self._server.children(recursive=True):
            try:
                if any(word in " ".join(process.cmdline()) for word in words):
                    process.kill()
            except psutil.Error:
                continue

    def break_site(self, *, is_broken: bool) -> None:
        """From now on the site answers 500, or no longer."""
        (self._folder / "broken").touch() if is_broken else (self._folder / "broken").unlink()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Callable[..., Awaitable[dict[str, Any]]]]:
        """Asks, and returns what came: the data of an answer, or how the socket was closed."""
        async with dialled(self.place) as socket:

            async def ask(kind: str, data: object = None, *, twice: bool = False) -> dict[str, Any]:
                frame = json.dumps({"type": kind, "data": data})
                try:
                    await socket.send(frame)
                    if twice:
                        await socket.send(frame)
                    found: dict[str, Any] = json.loads(await socket.recv())["data"]
                except ConnectionClosed as gone:
                    found = {"closed": f"{gone.rcvd.code} {gone.rcvd.reason}" if gone.rcvd else "without a word"}
                return found

            yield ask


def shown(answer: dict[str, Any]) -> str:
    """What a client sees."""
    if "code" in answer:
        return f"`{answer['code']}`: {answer['message']}"
    if "closed" in answer:
        return f"socket closed: {answer['closed']}"
    return f"reward {answer['reward']}, done" if answer["done"] else "the next observation"


async def is_right(ask: Callable[..., Awaitable[dict[str, Any]]], ends: Ends) -> bool:
    """Whether an episode in which the task is done has its reward."""
    if "observation" not in await ask("reset", {"task_id": "goal"}):
        return False
    await ask("step", ends.go)
    return (await ask("step", FINISH)).get("reward") == 1.0


async def row(ends: Ends, what: str, act: Callable[[], None], *steps: tuple[str, object, bool]) -> bool:
    """Begin an episode, let something happen, ask, print what came, and play another episode."""
    async with ends.client() as ask:
        await ask("reset", {"task_id": "goal"})
        act()
        answer: dict[str, Any] = {}
        for kind, data, is_twice in steps:
            answer = await ask(kind, data, twice=is_twice)
        if (ends._folder / "broken").exists():
            ends.break_site(is_broken=False)
        works = "closed" not in answer and await is_right(ask, ends)
    for _ in range(0 if works else 30):
        async with ends.client() as ask:
            if works := await is_right(ask, ends):
                break
        await asyncio.sleep(1)
    print(f"| {what} | {shown(answer)} | {'yes' if works else 'no'} |", flush=True)
    return works


async def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        (folder / "site.py").write_text(SITE)
        (folder / "ends.toml").write_text(SCENARIO.format(folder=folder, port=port))
        async with served(folder / "ends.toml", "--idle", "12") as (place, server):
            ends = Ends(place, server, port, folder)
            print("| what happens | what the client sees | a later episode is right |\n|---|---|---|")
            finish, go, prose = ("step", FINISH, False), ("step", ends.go, False), ("step", "I am done.", False)
            works = [
                await row(ends, "nothing, and the task is done", lambda: None, go, finish),
                await row(ends, "nothing, and the task is not done", lambda: None, finish),
                await row(ends, "an unreadable reply", lambda: None, prose),
                await row(ends, "three of them in a row", lambda: None, prose, prose, prose),
                await row(ends, "a step after the end", lambda: None, finish, finish),
                await row(ends, "the browser is killed", lambda: ends.kill("chrom", "headless"), go),
                await row(ends, "the site begins to answer 500", lambda: ends.break_site(is_broken=True), go, finish),
                await row(ends, "the judge's process is killed", lambda: ends.kill("openenv.worker"), go),
                await row(ends, "a question before the last answer", lambda: None, ("step", ends.go, True)),
                await row(ends, "an unknown task", lambda: None, ("reset", {"task_id": "gaol"}, False)),
            ]
            async with ends.client() as ask, ends.client() as other:
                await ask("reset", {"task_id": "goal"})
                print(f"| one client more than sessions | {shown(await other('reset'))} | |")
                await asyncio.sleep(14)
                print(f"| idle for longer than `--idle 12` | {shown(await ask('step', FINISH))} | |")
            async with ends.client() as ask:
                await ask("reset", {"task_id": "goal"})
                ends.kill("site.py")
                await ask("step", ends.go)
                lost = await ask("step", FINISH)
                print(f"| the site is killed | {shown(lost)} | |")
    return 0 if all(works) and "reward" not in lost else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
