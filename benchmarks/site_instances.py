"""16 attempts on each of three sites, one after another and four at once, each on an instance of its own.

    wabe apps install django-admin trac
    python benchmarks/site_instances.py [--sites shop django-admin trac] [--pause SECONDS] [--at-once 4] [--keep FOLDER]

`shop` has one cart for all its visitors, on the server; the others are applications of `scenarios/apps`. Four tasks of
each are played with a right and with a wrong script, twice, and each attempt restarts its instance. Compares the
verdicts, and looks into each instance's log: requests of two attempts must not be mixed. The shop logs who asked; of
the applications, the times of requests are compared with the attempts'.

wall: seconds from the first attempt's start to the last one's end. CPU: of all processes of the run, in seconds, while
attempts are played. floor: that CPU, spread over all cores, as a share of the wall time one after another: nothing that
does the same work can be faster. MB: memory of the instances, and of everything, at the peak (PSS). `--pause` is a
model's thinking time before each step (`step_delay`). Prints one table; exit code 1 if a verdict differs, or if a log
mixes attempts.
"""

import argparse
import asyncio
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import psutil

from helpers.ports import free_ports
from judge.records.sites import place_of

APPS = ROOT / "scenarios" / "apps"
TASKS, EPOCHS = 4, 2
# What distinguishes a task that is played with a wrong script.
WRONG = " Take your time."
_LOOK_S = 0.5
_APP_PORTS = re.compile(r"(?<=127\.0\.0\.1:)93\d\d")
# A line of Django's and of Trac's logs, in UTC as these processes run.
_LOGGED = re.compile(r'\[(\d\d/\w{3}/\d{4} \d\d:\d\d:\d\d)\] "(\w+ \S+)')
SHOP_PAGE = """<title>Shop</title><h1>Cart: {lamps} lamps, {rugs} rugs</h1>
<form method=post action=/lamp><button>Add a lamp</button></form>
<form method=post action=/rug><button>Add a rug</button></form>"""
SHOP_TASKS = (
    ("one_lamp", "Put one lamp into the cart.", (1, 0), ["lamp"], ["rug"]),
    ("two_lamps", "Put two lamps into the cart.", (2, 0), ["lamp", "lamp"], ["lamp"]),
    ("a_set", "Put a lamp and a rug into the cart.", (1, 1), ["lamp", "rug"], ["lamp", "rug", "rug"]),
    ("two_rugs", "Put two rugs into the cart.", (0, 2), ["rug", "rug"], ["rug", "lamp"]),
)


async def serve_shop(port: int, folder: Path) -> None:
    """The shop: one cart for everybody, in a file; each line of its log begins with the visitor."""
    state, visitors = folder / "cart.json", iter(range(1_000_000))
    cart = json.loads(state.read_text()) if state.exists() else {"lamp": 0, "rug": 0}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path, _ = head.split(" ", 2)
            known = re.search(r"visitor=([\w-]+)", head)
            visitor = known[1] if known else f"{os.getpid()}-{next(visitors)}"
            print(visitor, method, path, flush=True)
            if method == "POST":
                cart[path.strip("/")] += 1
                state.write_text(json.dumps(cart))
            is_page = path == "/" and method == "GET"
            body = SHOP_PAGE.format(lamps=cart["lamp"], rugs=cart["rug"]) if is_page else json.dumps(cart)
            lines = ["HTTP/1.1 303 See Other", "Location: /"] if method == "POST" else ["HTTP/1.1 200 OK"]
            lines += [f"Content-Type: {'text/html' if is_page else 'application/json'}"]
            lines += [f"Set-Cookie: visitor={visitor}", f"Content-Length: {len(body)}", "Connection: close", "", body]
            writer.write("\r\n".join(lines).encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


@dataclass(frozen=True)
class Scenario:
    """A scenario's sites and tasks as TOML, and its scripts."""

    tables: str
    scripts: str


def shop() -> Scenario:
    """The shop's scenario."""
    (port,) = free_ports(1)
    program = shlex.join([sys.executable, str(Path(__file__).resolve()), "--serve"])
    site = {"name": "shop", "endpoint": f"http://127.0.0.1:{port}", "cmd": f"{program} {{port}} {{data_dir}}"}
    tables = _table("sites", {**site, "restart": True, "instances": "per_slot"})
    scripts = ""
    for name, text, (lamps, rugs), *ways in SHOP_TASKS:
        checks = [
            {"kind": "element", "element": f'heading "Cart: {lamps} lamps, {rugs} rugs"'},
            {"kind": "fetch", "url": "/cart.json", "response": {"lamp": lamps, "rug": rugs}},
        ]
        for way, ending, kind in zip(ways, ("", WRONG), ("right", "wrong"), strict=True):
            task = {"task_id": f"{name}_{kind}", "website": f"{site['endpoint']}/", "task": text + ending}
            tables += _table("tasks", {**task, "checks": checks})
            steps = [{"tool": "browser_click", "role": "button", "name": f"Add a {what}"} for what in way]
            steps += [{"tool": "finish", "params": {"answer": "Done."}}]
            scripts += _table("scripts", {"task": text + ending, "steps": steps})
    return Scenario(tables, scripts)


def application(name: str) -> Scenario:
    """An application's site and the first of its tasks, each with a right and a wrong script."""
    (port,) = free_ports(1)
    parts = re.split(r"^(?=\[\[)", (APPS / "scenario.toml").read_text(), flags=re.MULTILINE)[1:]
    read = [(part, tomllib.loads(part.partition("\n[config]")[0])) for part in parts]
    (site,) = [
        (part, table["sites"][0]) for part, table in read if "sites" in table and table["sites"][0]["name"] == name
    ]
    own = [(part, table["tasks"][0]) for part, table in read if "tasks" in table]
    own = [(part, task) for part, task in own if place_of(task["website"]) == place_of(site[1]["endpoint"])][:TASKS]
    tables = _moved(site[0].partition("\n[config]")[0], port)
    scripts = ""
    by_kind = {
        kind: {each["task"]: each for each in tomllib.loads((APPS / file).read_text())["scripts"]}
        for kind, file in (("right", "replay.toml"), ("wrong", "wrong.toml"))
    }
    for part, task in own:
        for kind, ending in (("right", ""), ("wrong", WRONG)):
            named = part.replace(f'"{task["task_id"]}"', f'"{task["task_id"]}_{kind}"', 1)
            tables += _moved(named.replace(task["task"], task["task"] + ending, 1), port)
            script = by_kind[kind][task["task"]]
            scripts += _table("scripts", {**script, "task": task["task"] + ending})
    return Scenario(tables, _moved(scripts, port))


def _moved(part: str, port: int) -> str:
    return _APP_PORTS.sub(str(port), part) + "\n"


def _table(name: str, table: dict[str, Any]) -> str:
    return f"[[{name}]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in table.items()) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@dataclass
class Watch:
    """What the processes of a run use: CPU in seconds up to a moment, and the peaks of memory in MB."""

    used: list[tuple[float, float]] = field(default_factory=list)
    cpu: dict[tuple[int, float], float] = field(default_factory=dict)
    sites_mb: float = 0.0
    all_mb: float = 0.0

    def look(self, root: psutil.Process) -> None:
        """Add what the process and its descendants use now."""
        sites = everything = 0.0
        with suppress(psutil.Error):
            for one in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):
                    spent = one.cpu_times()
                    self.cpu[one.pid, one.create_time()] = spent.user + spent.system
                    size = one.memory_full_info().pss / 1e6
                    everything += size
                    # A site runs in a session of its own, and its command names its folder.
                    words = " ".join(one.cmdline())
                    sites += size if "wabe-site-" in words or "--serve" in words else 0
        self.sites_mb, self.all_mb = max(self.sites_mb, sites), max(self.all_mb, everything)
        self.used.append((time.time(), sum(self.cpu.values())))

    def between(self, start: float, end: float) -> float:
        """The CPU used in a span of time."""
        return max(cpu for at, cpu in self.used if at <= end) - max(
            (cpu for at, cpu in self.used if at <= start), default=0
        )


@dataclass
class RunResult:
    """A run: its attempts, how long they took, and what they used."""

    folder: Path
    attempts: dict[str, dict[str, Any]]
    watch: Watch

    @property
    def verdicts(self) -> dict[str, str]:
        return {name: attempt["verdict"] for name, attempt in self.attempts.items()}

    @property
    def span(self) -> tuple[float, float]:
        spans = [_span(attempt) for attempt in self.attempts.values()]
        return min(start for start, _ in spans), max(end for _, end in spans)

    @property
    def wall_s(self) -> float:
        return self.span[1] - self.span[0]

    @property
    def cpu_s(self) -> float:
        return self.watch.between(*self.span)

    @property
    def mb(self) -> tuple[float, float]:
        return self.watch.sites_mb, self.watch.all_mb


def play(scenario: Scenario, folder: Path, at_once: int, pause: float) -> RunResult:
    """One run of the scenario, so many attempts at once."""
    judge, agent = free_ports(2)
    folder.mkdir(parents=True)
    (folder / "scripts.toml").write_text(scenario.scripts, encoding="utf-8")
    for login in APPS.glob("*/login.json"):
        (folder / login.parent.name).mkdir()
        shutil.copyfile(login, folder / login.parent.name / login.name)
    agents = "".join(
        f'{head}\nendpoint = "http://127.0.0.1:{port}"\ncmd = "wabe {cmd} --host 127.0.0.1 --port {port}"\n'
        for head, port, cmd in (
            ("[green_agent]", judge, "serve"),
            ('[[participants]]\nrole = "agent"', agent, "participant replay --script {scenario_dir}/scripts.toml"),
        )
    )
    config = f'[config]\njudge_model = "offline"\nmax_steps = 15\nepochs = {EPOCHS}\nstep_delay = {pause}\n'
    (folder / "scenario.toml").write_text(f"{agents}{config}{scenario.tables}", encoding="utf-8")
    words = [str(Path(sys.executable).with_name("wabe")), "run", str(folder / "scenario.toml"), "--display", "none"]
    words += ["--output-dir", str(folder / "out"), "--max-parallel", str(at_once)]
    watch, is_over = Watch(), threading.Event()
    with (folder / "log").open("w") as log:
        # In UTC, as the attempts' records are.
        process = psutil.Popen(words, stdout=log, stderr=log, env={**os.environ, "TZ": "UTC"})

        def follow() -> None:
            while not is_over.wait(_LOOK_S):
                watch.look(process)

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            process.wait()
        finally:
            is_over.set()
            thread.join()
    (run,) = (folder / "out" / "runs").iterdir()
    attempts = {
        f"{path.parent.name} {number}": json.loads(path.read_text(encoding="utf-8"))
        for number, results in enumerate([run / "results", *sorted(run.glob("epochs/*/results"))], 1)
        for path in sorted(results.glob("*/result.json"))
    }
    if not attempts:
        raise SystemExit((folder / "log").read_text())
    return RunResult(run, attempts, watch)


def _span(attempt: dict[str, Any]) -> tuple[float, float]:
    times = attempt["times"]
    begun, ended = (datetime.fromisoformat(times[key]).timestamp() for key in ("started_at", "ended_at"))
    return begun, ended


def mixed(result: RunResult, name: str) -> list[str]:
    """Where attempts at the same instance were mixed, one line each."""
    messages: list[str] = []
    by_instance: dict[str, list[tuple[float, float]]] = {}
    for attempt in result.attempts.values():
        ((_, address),) = attempt["site_instances"].items()
        by_instance.setdefault(address, []).append(_span(attempt))
    for address, spans in by_instance.items():
        spans.sort()
        messages += [f"{address}: attempts overlap" for one, two in pairwise(spans) if one[1] > two[0]]
        place = place_of(address)
        log = (result.folder / "logs" / f"{name}-{place.port if place else ''}.log").read_text(errors="replace")
        messages += _mixed_visitors(log, address) if name == "shop" else _strangers(log, address, spans)
    return messages


def _mixed_visitors(log: str, address: str) -> list[str]:
    """Visitors of the shop who came back after another one. The judge's own look at the start is a visitor as well."""
    visitors = [line.split()[0] for line in log.splitlines() if line.count(" ") == 2]
    changes = [visitor for before, visitor in pairwise(["", *visitors]) if visitor != before]
    return [f"{address}: {visitor} came back" for visitor in set(changes) if changes.count(visitor) > 1]


def _strangers(log: str, address: str, spans: Sequence[tuple[float, float]]) -> list[str]:
    """Times of requests at which no attempt at this instance, or more than one, was played."""
    strangers = []
    for text, request in _LOGGED.findall(log):
        moment = datetime.strptime(text, "%d/%b/%Y %H:%M:%S").replace(tzinfo=UTC).timestamp()
        # The runner looks at this page after each restart, until it is there. The log is to the second.
        if request != "GET /" and not any(start - 1 <= moment <= end for start, end in spans):
            strangers.append(f"{address}: {request} at {text}, when no attempt was played there")
    return strangers


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sites", nargs="+", default=["shop", "django-admin", "trac"])
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each step, as for a model")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--keep", type=Path, help="keep the runs here")
    parser.add_argument("--serve", nargs=2, metavar=("PORT", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve_shop(int(options.serve[0]), Path(options.serve[1])))
        return 0
    problems: list[str] = []
    print("| site | attempts | right, failed | verdicts | logs | wall s | ratio | floor | CPU s | MB sites, all |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wabe-instances-")))
        for name in options.sites:
            scenario = shop() if name == "shop" else application(name)
            one = play(scenario, folder / name / "one", 1, options.pause)
            more = play(scenario, folder / name / "more", options.at_once, options.pause)
            differing = [each for each in one.verdicts if one.verdicts[each] != more.verdicts.get(each)]
            wrongly_mixed = mixed(one, name) + mixed(more, name)
            problems += [f"{name}: {each}: {one.verdicts[each]}, {more.verdicts.get(each)}" for each in differing]
            expected = {each: "success" if "_right " in each else "failure" for each in one.verdicts}
            problems += [
                f"{name}: {each}: {one.verdicts[each]}" for each in expected if expected[each] != one.verdicts[each]
            ]
            problems += [f"{name}: {each}" for each in wrongly_mixed]
            verdicts = [*one.verdicts.values()]
            floor = more.cpu_s / (os.cpu_count() or 1) / one.wall_s
            cells = [
                name,
                str(len(verdicts)),
                f"{verdicts.count('success')}, {verdicts.count('failure')}",
                "differ" if differing else "equal",
                "mixed" if wrongly_mixed else "one at a time",
                f"{one.wall_s:.1f} → {more.wall_s:.1f}",
                f"{more.wall_s / one.wall_s:.2f}",
                f"{floor:.2f}",
                f"{one.cpu_s:.0f} → {more.cpu_s:.0f}",
                ", ".join(f"{before:.0f} → {after:.0f}" for before, after in zip(one.mb, more.mb, strict=True)),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
