"""What one attempt costs in CPU, by kind of process: the floor of the tests with a real browser.

`python benchmarks/attempt_cost.py [--attempts 10] [--settle page-time]`: attempts of four steps at a local site with
the real service, browser, MCP server and A2A, one after the other, in one browser, each in a new context. The first
one, with the imports and the start of the browser, is a line of its own.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.browser.hostile_site import hostile_site
from helpers.browser.kept import KEPT
from helpers.episode.live_judge import always_no, live_judge, to_the_goal
from helpers.llm.servers import ModelServer
from judge.server import service
from suite_profile import children_of, kind_of, used_by


def used() -> Counter[str]:
    """Seconds of CPU so far, by kind: this process (judge and participant), the MCP server, Chromium."""
    usage = Counter({"Python": time.process_time()})
    for pid in set(children_of(os.getpid())):
        usage["Chromium" if "chromium" in kind_of(pid) else "MCP server"] += used_by(pid)
    return usage


def line(name: str, before: Counter[str], after: Counter[str], count: int) -> str:
    each = {kind: (after[kind] - before[kind]) / count for kind in after}
    return f"| {name} | {sum(each.values()):.2f} | " + " | ".join(f"{each[kind]:.2f}" for kind in sorted(each)) + " |"


async def measure(attempts: int, settle: str) -> None:
    KEPT.loop = asyncio.get_running_loop()
    vars(service)["browser_pool"] = KEPT.pool
    marks = []
    with ModelServer(always_no) as model, tempfile.TemporaryDirectory() as name, hostile_site() as site:
        marks.append(used())
        async with live_judge(Path(name), Path(name) / "none", model) as judge:
            for _ in range(attempts):
                attempt = await judge.play(
                    to_the_goal, site.url, checks=[{"kind": "page", "url": "/goal"}], settle=settle
                )
                assert attempt.verdict == ("success", "finished"), attempt.entry
                marks.append(used())
    await KEPT.end()
    kinds = sorted(marks[-1])
    print("\n".join(["| CPU, s | all | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 2) + "|"]))
    print(line("first attempt", marks[0], marks[1], 1))
    print(line("each further one", marks[1], marks[-1], attempts - 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=10)
    parser.add_argument("--settle", default="page-time", choices=["page-time", "real-time"])
    options = parser.parse_args()
    asyncio.run(measure(options.attempts, options.settle))
    return 0


if __name__ == "__main__":
    sys.exit(main())
