"""How much of the browsers' throughput remains under the judge: complete assessments against the same bare MCP calls.

    python benchmarks/throughput.py [--slots 1 2 4 8] [--tasks 6]

Both sides play the same walk through the demo shop, with the same servers, the same settings and the same reuse of
browsers: one server for each slot, a new context for each task. The judge's side is an assessment as it runs in
production (guard, recording, judging by a check), with a participant over real A2A in another process, whose own CPU is
not counted. The bare side makes the calls that the judge makes, the final look included, and nothing else. A task's
start is the cost of a task without any action, minus its two looks at the page (waiting, snapshot, screenshot); the
cost of a look is the difference between bare tasks with more and with fewer of them. Bounds: 0.9 of the bare
throughput, 0.2 s of CPU for a task's start. The cost of a new context and the shop's page without waiting and without a
look is printed as well: it is a lower bound for any judge on top of this server.
"""

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.a2a.raw_agent import RawRequest, message, raw_agent
from helpers.ports import free_port
from judge.browser.chromium import CONFIG_FILE, BrowserSettings
from judge.browser.folders import BrowserFolder
from judge.browser.pool import browser_pool
from judge.browser.settle import MAX_SETTLE_S, SettleMode, begin_code, settle_code, settle_mode
from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.episode.attempts import AttemptSetup
from judge.judges.factory import open_judge
from judge.records.tasks import Task
from judge.records.verdicts import OFFLINE
from judge.store.layout import RunStore
from shared.a2a.client import ParticipantClient
from shared.models import Action
from shared.protocol import render_reply
from shared.settings import Settings

THROUGHPUT, START_CPU_S = 0.9, 0.2
# Looks at a page in a task without actions: the first page, and the final look.
LOOKS, MORE_LOOKS = 2, 4
# The tool, the element as the snapshot shows it, and the other parameters.
WALK: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("browser_click", 'checkbox "Lamps', {}),
    ("browser_click", 'checkbox "Oak', {}),
    ("browser_click", 'link "Help', {}),
    ("browser_type", 'searchbox "Search the help centre"', {"text": "delivery", "submit": True}),
    ("browser_navigate_back", "", {}),
)


@dataclass(frozen=True)
class Figures:
    """The totals of one side: tasks and steps, with their seconds of wall time and CPU."""

    tasks: int
    steps: int
    wall_s: float
    cpu_s: float


def action(step: int, page: str) -> Action:
    """The walk's next action on a page that is described in `page`."""
    tool, element, params = WALK[step]
    if element:
        match = re.search(rf"- {re.escape(element)}[^\n]*?\[ref=(\w+)\]", page)
        assert match, f"no {element} on the page"
        params = {**params, "target": match[1]}
    return Action(tool=tool, params=params)


async def participant(steps: int) -> None:
    """The other process: takes this many steps of the walk in each task. Prints its address."""
    turns = Counter[str]()

    def answer(request: RawRequest) -> bytes:
        turn = turns[request.context_id]
        turns[request.context_id] += 1
        chosen = action(turn, request.text) if turn < steps else Action(tool="finish", params={"answer": "done"})
        return message(request, render_reply(chosen))

    async with raw_agent(answer) as agent:
        print(agent.url, flush=True)
        await asyncio.Event().wait()


@contextmanager
def participant_process(steps: int) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    command = [sys.executable, __file__, "--participant", str(steps)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            yield running.stdout.readline().strip(), running.pid
        finally:
            running.terminate()


def cpu_s(*, without: set[int]) -> float:
    """CPU time of this process and all it started, those that have ended included."""
    me = psutil.Process()
    family = [me, *(each for each in me.children(recursive=True) if each.pid not in without)]
    used = 0.0
    for each in family:
        try:
            used += sum(each.cpu_times()[:4])
        except psutil.Error:
            continue
    return used


async def measured(play: Callable[[], Awaitable[None]], tasks: int, actions: int, without: set[int]) -> Figures:
    """Play once, and measure it."""
    cpu, began = cpu_s(without=without), time.perf_counter()
    await play()
    return Figures(tasks, tasks * (actions + 1), time.perf_counter() - began, cpu_s(without=without) - cpu)


@asynccontextmanager
async def player(
    settings: BrowserSettings, website: str, slots: int, participant_url: str, folder: Path
) -> AsyncIterator[Callable[[str, int], Awaitable[None]]]:
    """A function that plays a run of that id and so many tasks; all runs use the same browsers."""
    config = settings.config.model_copy(update={"max_parallel": slots, "judge_model": OFFLINE})
    check = {"kind": "page", "url": "*"}
    judge = open_judge(config, Settings.from_environ(), cache_dir=None)
    async with ParticipantClient(participant_url) as line, browser_pool(settings) as pool:

        @asynccontextmanager
        async def connect() -> AsyncIterator[ParticipantClient]:
            yield line

        async def play(run: str, count: int) -> None:
            store = RunStore(folder, run)
            store.create()
            task = {"website": website, "task": "Walk through the shop.", "checks": [check]}
            tasks = tuple(Task.model_validate({**task, "task_id": f"t{n}"}) for n in range(count))
            setup = AttemptSetup(config, pool.browser, judge, closed=(participant_url,))
            assessment = Assessment(tasks, setup, connect, store, emit=lambda _: None)
            outcomes = Counter(result.outcome for result in await assessment.run())
            assert outcomes == {"success": count}, outcomes

        yield play


async def judged(settings: BrowserSettings, website: str, slots: int, tasks: int, actions: int, site: int) -> Figures:
    """An assessment. Every slot has played a task before the measurement begins, as on the bare side."""
    with tempfile.TemporaryDirectory() as folder, participant_process(actions) as (url, pid):
        async with player(settings, website, slots, url, Path(folder)) as play:
            await play("warm", slots)
            return await measured(partial(play, "run", tasks), tasks, actions, {site, pid})


@asynccontextmanager
async def bare_server(settings: BrowserSettings) -> AsyncIterator[Client]:
    """A server as the judge starts it, without its guard."""
    owned = BrowserFolder()
    (owned.path / CONFIG_FILE).write_text(settings.config_file())
    command, *args = settings.command(owned.path)
    parameters = StdioServerParameters(
        command=command, args=args, cwd=owned.path, env=settings.environ(owned.path), encoding_error_handler="replace"
    )
    try:
        with (owned.path / "log").open("w") as log:
            async with Client(stdio_client(parameters, errlog=log), mode="legacy") as client:
                yield client
    finally:
        owned.remove()


async def call(client: Client, tool: str, params: dict[str, Any]) -> str:
    """The answer's text."""
    result = await client.call_tool(tool, params)
    assert not result.is_error, (tool, params, result.content)
    return next((block.text for block in result.content if block.type == "text"), "")


async def bare_task(client: Client, settle: SettleMode, website: str, actions: int, looks: int) -> None:
    """One task, and the context for the next one. Looks before each action, and then as often as is left."""
    if looks:
        await call(client, "browser_run_code_unsafe", {"code": begin_code(settle)})
    await call(client, "browser_navigate", {"url": website})
    for step in range(looks):
        await call(client, "browser_run_code_unsafe", {"code": settle_code(MAX_SETTLE_S, MAX_SETTLE_S)})
        page = await call(client, "browser_snapshot", {"boxes": True})
        await call(client, "browser_take_screenshot", {"type": "jpeg", "scale": "css"})
        if step < actions:
            chosen = action(step, page)
            await call(client, chosen.tool, chosen.params)
    await call(client, "browser_close", {})
    await call(client, "browser_tabs", {"action": "list"})


async def bare(
    settings: BrowserSettings,
    website: str,
    slots: int,
    tasks: int,
    actions: int,
    site: int,
    *,
    looks: int | None = None,
) -> Figures:
    """The same calls by the bare client library. It does not observe pages, so it never waits for them."""
    looks = actions + LOOKS if looks is None else looks
    ready, go, done = asyncio.Semaphore(0), asyncio.Event(), asyncio.Semaphore(0)
    left = iter(range(tasks))
    end = asyncio.Event()

    mode = await settle_mode(settings.config.settle, website)

    async def slot() -> None:
        # A client is closed by the task that opened it.
        async with bare_server(settings) as client:
            await bare_task(client, mode, website, actions, looks)
            ready.release()
            await go.wait()
            for _ in left:
                await bare_task(client, mode, website, actions, looks)
            done.release()
            await end.wait()

    async def play() -> None:
        go.set()
        for _ in range(slots):
            await done.acquire()

    async with asyncio.TaskGroup() as group:
        for _ in range(slots):
            group.create_task(slot())
        for _ in range(slots):
            await ready.acquire()
        figures = await measured(play, tasks, actions, {site})
        end.set()
    return figures


async def compare(settings: BrowserSettings, website: str, site: int, options: argparse.Namespace) -> list[str]:
    """Print a row for each number of slots. Returns the missed bounds."""
    missed: list[str] = []
    print("slots  side    steps/s  CPU s/step  CPU s/task  of bare")
    for slots in options.slots:
        tasks = options.tasks * slots
        reference = await bare(settings, website, slots, tasks, len(WALK), site)
        ours = await judged(settings, website, slots, tasks, len(WALK), site)
        ratio = (ours.steps / ours.wall_s) / (reference.steps / reference.wall_s)
        for side, run in (("bare", reference), ("judged", ours)):
            print(
                f"{slots:5}  {side:6}  {run.steps / run.wall_s:7.2f}  {run.cpu_s / run.steps:10.3f}"
                f"  {run.cpu_s / run.tasks:10.3f}  {f'{ratio:7.2f}' if run is ours else '':>7}",
                flush=True,
            )
        if ratio < THROUGHPUT:
            missed.append(f"{slots} slots: {ratio:.2f} of the bare throughput")
    count = options.tasks * 2
    short, least, few, many = (
        figures.cpu_s / figures.tasks
        for figures in (
            await judged(settings, website, 1, count, 0, site),
            await bare(settings, website, 1, count, 0, site, looks=0),
            await bare(settings, website, 1, count, 0, site),
            await bare(settings, website, 1, count, 0, site, looks=LOOKS + MORE_LOOKS),
        )
    )
    look = (many - few) / MORE_LOOKS
    start = short - LOOKS * look
    print(
        f"a task without actions: {short:.3f} s of CPU, bare {few:.3f} s; a look: {look:.3f} s; a start: {start:.3f} s,"
        f" of which context and page alone {least:.3f} s"
    )
    return missed if start <= START_CPU_S else [*missed, f"a task's start takes {start:.2f} s of CPU"]


def main() -> int:
    """Start the shop, compare, and return whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--tasks", type=int, default=6, help="tasks for each slot")
    parser.add_argument("--settle", default="page-time", choices=["page-time", "real-time"], help="on both sides")
    parser.add_argument("--participant", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.participant is not None:
        asyncio.run(participant(options.participant))
        return 0
    settings = BrowserSettings.from_config(RunConfig(settle=options.settle), Settings.from_environ())
    port = free_port()
    shop = subprocess.Popen([sys.executable, str(ROOT / "scenarios/demo/site.py"), "--port", str(port)])
    try:
        wait_until_listening(port)
        missed = asyncio.run(compare(settings, f"http://127.0.0.1:{port}/search", shop.pid, options))
    finally:
        shop.terminate()
        shop.wait()
    print("within bounds" if not missed else f"OUT OF BOUNDS: {'; '.join(missed)}")
    return 1 if missed else 0


def wait_until_listening(port: int) -> None:
    until = time.monotonic() + 30
    while not any(each.laddr.port == port and each.status == "LISTEN" for each in psutil.net_connections("tcp")):
        assert time.monotonic() < until, "the shop did not start"
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
