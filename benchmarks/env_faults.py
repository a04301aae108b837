"""Faults in training episodes with a real browser: is an error what should be one, and a reward never false?

    python benchmarks/env_faults.py [--rounds 3] [--seed 1]

A small site of this process and a policy that clicks its way to a page, or to another one. In each round every fault
happens once, at a random step, to a policy that is right or wrong at random: the browser killed, the site's server
gone, the site answering 500 to everything, a trainer that is idle, closes its session or resets it, and nothing. After
each fault, an episode without one must have its own reward. Exits with 1 if a reward differs from what the same replies
are worth without a fault, if a fault leads to one, or if there is an error without a fault.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.ports import free_port
from judge.environment.errors import EpisodeFault, SessionClosed
from judge.environment.host import EnvironmentHost, HostSettings
from judge.environment.opening import open_host
from judge.environment.session import EnvironmentSession, StepResult

FAULTS = ("none", "browser killed", "site gone", "site answers 500", "idle", "closed", "reset")
IDLE_S = 2.0
FINISH = {"tool": "finish", "params": {"answer": "done"}}
ERROR = "<!doctype html><title>Error</title><h1>Out of order</h1>"
PAGE = (
    "<!doctype html><title>{0}</title><h1>{0}</h1><a href=/one>One</a> <a href=/goal>Goal</a> <a href=/other>Other</a>"
)


class FaultySite:
    """A site whose server can be taken away, or answers 500."""

    def __init__(self) -> None:
        self.port = free_port()
        self.is_broken = False
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Begin to listen."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = (ERROR if site.is_broken else PAGE.format(self.path)).encode()
                self.send_response(500 if site.is_broken else 200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@contextmanager
def broken(fault: str, site: FaultySite) -> Iterator[None]:
    """What is broken while the body runs; whole again afterwards."""
    try:
        if fault == "browser killed":
            for process in psutil.Process().children(recursive=True):
                if "chrom" in process.name() or "headless" in process.name():
                    process.kill()
        elif fault == "site gone":
            site.stop()
        site.is_broken = fault == "site answers 500"
        yield
    finally:
        site.is_broken = False
        if fault == "site gone":
            site.start()


async def clicked(session: EnvironmentSession, answer: StepResult, name: str) -> StepResult:
    """The answer to a click on the link with this name, or on nothing if the page has none."""
    snapshot = answer.message.page.snapshot if answer.message else ""
    line = next((line for line in snapshot.splitlines() if f'link "{name}"' in line), "[ref=e1]")
    return await session.step({"tool": "browser_click", "params": {"target": line.partition("[ref=")[2].split("]")[0]}})


async def play(host: EnvironmentHost, site: FaultySite, fault: str, at: int, goal: str) -> float | str:
    """The reward of an episode, or the beginning of its error."""
    session = host.session()
    try:
        answer = await session.reset()
        for step, name in enumerate(("One", "One", goal)):
            if step == at:
                if fault == "idle":
                    await session.closed.wait()
                elif fault == "closed":
                    await session.close()
                elif fault == "reset":
                    answer = await session.reset()
                    return await _rest(session, answer, goal, of_reset=True)
                with broken(fault, site):
                    answer = await clicked(session, answer, name)
                    return await _rest(session, answer, goal)
            answer = await clicked(session, answer, name)
        return await _rest(session, answer, goal)
    except EpisodeFault as error:
        return f"{error.ending}: {error.party}"
    except SessionClosed:
        return "closed"
    finally:
        await session.close()


async def _rest(session: EnvironmentSession, answer: StepResult, goal: str, *, of_reset: bool = False) -> float:
    if not answer.done:
        answer = await clicked(session, answer, "Other" if of_reset else goal)
        answer = await session.step(FINISH)
    assert answer.reward is not None
    return answer.reward


def is_right(fault: str, goal: str, told: float | str) -> bool:
    """The oracle. A reset gives up the episode; the one after it goes to the other page."""
    if fault == "none":
        return told == float(goal == "Goal")
    if fault == "reset":
        return told == 0.0
    return isinstance(told, str)


async def measure(rounds: int, seed: int) -> int:
    draw, site = random.Random(seed), FaultySite()
    site.start()
    wrong, found = 0, Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "faults.toml"
        scenario.write_text(SCENARIO.format(judge=free_port(), participant=free_port(), site=site.port))
        async with open_host(scenario, HostSettings(idle_s=IDLE_S)) as host:
            for _ in range(rounds):
                for fault in draw.sample(FAULTS, len(FAULTS)):
                    at, goal = draw.randrange(3), draw.choice(["Goal", "Other"])
                    told = await play(host, site, fault, at, goal)
                    after = await play(host, site, "none", -1, "Goal")
                    found[fault, str(told)] += 1
                    if not is_right(fault, goal, told) or after != 1.0:
                        wrong += 1
                        print(f"wrong: {fault} at step {at} of a way to {goal}: {told}, and then {after}")
    site.stop()
    for (fault, told), count in sorted(found.items()):
        print(f"{fault:17} {told:22} {count}")
    print(f"{sum(found.values())} episodes with a fault or without, as many after them, {wrong} wrong")
    return 1 if wrong else 0


SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:{participant}"
[[sites]]
name = "faulty"
endpoint = "http://127.0.0.1:{site}"
static = true
[config]
judge_model = "offline"
[[tasks]]
task_id = "goal"
website = "http://127.0.0.1:{site}/"
task = "Open the page that is called Goal."
checks = [{{ kind = "element", element = 'heading "/goal"' }}]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return asyncio.run(measure(options.rounds, options.seed))


if __name__ == "__main__":
    sys.exit(main())
