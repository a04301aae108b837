"""Plays right and wrong scripts on the real applications of `scenarios/apps`, and prints a table per application.

    wabe apps install all
    python benchmarks/apps.py [--apps NAME…] [--settle page-time|real-time|both] [--scripts right|wrong|both] [--load N]

right: right scripts that were recognised. passed: wrong scripts that passed, which must be none. late: elements that a
script had to wait for, and that appeared. dead: actions that failed, or after which the next element of a right script
never appeared. fallbacks: attempts in page time that were restarted in real time. nameless: targets without a name in
action lines; a glyph of an icon font does not count as a name. vanished: steps with a line `Vanished:`. snapshot:
characters, median and largest. settle: seconds, median and 95th percentile. abroad: addresses outside this machine that
a process of the run, browser included, was connected to.

With `--load N`, N processes keep the machine busy meanwhile. Exit code 1 if a wrong script passed, a right one was not
recognised, or a connection left this machine.
"""

import argparse
import ipaddress
import json
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import psutil

from judge.plugins.apps import apps_folder, is_installed, load_apps, the_app
from judge.records.sites import origin_of
from judge.scenario.toml import load_scenario
from shared.errors import WabeError
from shared.settings import Settings

AGENT_PORTS = (9009, 9019)
MODES = ("page-time", "real-time")
SCRIPTS = {"right": "replay.toml", "wrong": "wrong.toml"}
# A target without a name, or with glyphs of the private use area only.
NAMELESS = re.compile(r"^<(?:[\ue000-\uf8ff\s]+ )?(?!page>)[a-z]+>")
WAIT = "browser_wait_for"
# Looking more often would itself load the machine.
_LOOK_S = 1.0


@dataclass
class Counts:
    """What was counted on one application, in one mode."""

    right: int = 0
    rights: int = 0
    passed: int = 0
    wrongs: int = 0
    lost: int = 0
    late: int = 0
    dead: int = 0
    fallbacks: int = 0
    nameless: int = 0
    targets: int = 0
    vanished: int = 0
    snapshots: list[int] = field(default_factory=list)
    settles: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, result: dict[str, Any], folder: Path, script: str, mode: str) -> None:
        """Count one attempt."""
        is_success = result["verdict"] == "success"
        self.lost += result["verdict"] not in ("success", "failure")
        if script == "right":
            self.rights += 1
            self.right += is_success
        else:
            self.wrongs += 1
            self.passed += is_success
        if is_success != (script == "right"):
            self.failed.append(f"{result['task_id']} ({script}): {result['reason']}")
        self.fallbacks += result["settle"] != mode
        late, gave_up = waits(result["steps"])
        self.late += late
        self.dead += gave_up if script == "right" else 0
        for step in result["steps"]:
            self._add_step(step, folder)

    def _add_step(self, step: dict[str, Any], folder: Path) -> None:
        outcome = step.get("outcome") or {}
        self.dead += outcome.get("ok") is False
        line = outcome.get("line") or ""
        if line.startswith("<") and not line.startswith(("<page>", "<navigation>")):
            self.targets += 1
            self.nameless += NAMELESS.match(line) is not None
        self.vanished += bool(step.get("vanished"))
        if step.get("snapshot"):
            self.snapshots.append(len((folder / step["snapshot"]).read_text(encoding="utf-8")))
        if (seconds := (step.get("timings") or {}).get("settle_s")) is not None:
            self.settles.append(seconds)


def waits(steps: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """How often a script waited for an element that appeared, and for one that never did."""
    tools = [(step.get("action") or {}).get("tool") for step in steps]
    late = gave_up = 0
    for place, tool in enumerate(tools):
        following = tools[place + 1] if place + 1 < len(tools) else None
        if tool == WAIT and following != WAIT:
            late += following not in ("finish", None)
            gave_up += following in ("finish", None)
    return late, gave_up


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep the machine busy with this many processes while the body runs."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


@contextmanager
def watched(process: psutil.Process) -> Iterator[set[str]]:
    """The addresses outside this machine that the process and its descendants are connected to."""
    abroad: set[str] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(_LOOK_S):
            for one in _family(process):
                with suppress(psutil.Error):
                    for link in one.net_connections("inet"):
                        if link.raddr and not _is_here(link.raddr.ip):
                            abroad.add(f"{one.name()} to {link.raddr.ip}:{link.raddr.port}")

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield abroad
    finally:
        is_over.set()
        thread.join()


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _is_here(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def scenario_copy(source: Path, folder: Path, script: str, mode: str) -> Path:
    """The bundled scenario with another script, another way to wait, and free ports for the agents."""
    text = source.read_text(encoding="utf-8")
    for port in AGENT_PORTS:
        with socket.create_server(("127.0.0.1", 0)) as server:
            text = re.sub(rf"(127\.0\.0\.1:|--port ){port}\b", rf"\g<1>{server.getsockname()[1]}", text)
    text = text.replace("{scenario_dir}/replay.toml", str(source.parent / SCRIPTS[script]))
    text = text.replace("{scenario_dir}", str(source.parent))
    text = text.replace("[config]\n", f'[config]\nsettle = "{mode}"\n')
    for login in source.parent.glob("*/login.json"):
        (folder / login.parent.name).mkdir(exist_ok=True)
        shutil.copyfile(login, folder / login.parent.name / login.name)
    copy = folder / "scenario.toml"
    copy.write_text(text, encoding="utf-8")
    return copy


def play(
    source: Path, tasks: Iterable[str], script: str, mode: str, output: Path, more: Sequence[str] = ()
) -> tuple[Path, set[str]]:
    """One run, with `more` options. Returns its folder and the addresses outside this machine that it connected to."""
    with tempfile.TemporaryDirectory(prefix="wabe-apps-") as folder:
        copy = scenario_copy(source, Path(folder), script, mode)
        chosen = [word for task in tasks for word in ("--task", task)]
        command = ["wabe", "run", str(copy), "--display", "none", "--output-dir", str(output), *chosen, *more]
        process = psutil.Popen(command)
        with watched(process) as abroad:
            code = process.wait()
    if code not in (0, 1):
        raise WabeError(f"wabe run ended with exit code {code}")
    return max((output / "runs").iterdir()), abroad


def measure(names: Sequence[str], modes: Sequence[str], scripts: Sequence[str], output: Path) -> dict[str, Any]:
    """Counts by application and mode."""
    source = Settings.from_environ().scenarios_folder / "apps" / "scenario.toml"
    scenario = load_scenario(source)
    name_of = {origin_of(site.endpoint): site.name for site in scenario.sites}
    by_task = {task.task_id: name_of[origin_of(task.website)] for task in scenario.tasks}
    counted = {(name, mode): Counts() for mode in modes for name in names}
    abroad: set[str] = set()
    for mode in modes:
        for script in scripts:
            for name in names:
                tasks = [task for task, app in by_task.items() if app == name]
                folder, measured = play(source, tasks, script, mode, output / f"{name}-{script}-{mode}")
                abroad |= measured
                for path in sorted(folder.glob("results/*/result.json")):
                    result = json.loads(path.read_text(encoding="utf-8"))
                    counted[name, mode].add(result, path.parent, script, mode)
                one = counted[name, mode]
                print(f"{mode} {script}: {row(name, mode, one)}", file=sys.stderr, flush=True)
    return {"counted": counted, "abroad": abroad}


def table(counted: dict[tuple[str, str], Counts]) -> str:
    """The counts as a Markdown table, with the sum of each mode."""
    heads = "application|settle|right|passed|lost|late|dead|fallbacks|nameless|vanished|snapshot|settle s"
    lines = [f"| {' | '.join(heads.split('|'))} |", f"|{'---|' * 12}"]
    lines += [row(name, mode, one) for (name, mode), one in counted.items()]
    for mode in dict.fromkeys(mode for _, mode in counted):
        lines.append(row("all", mode, total(one for (_, its), one in counted.items() if its == mode)))
    return "\n".join(lines)


def total(counts: Iterable[Counts]) -> Counts:
    """The sum of several counts."""
    summed = Counts()
    for one in counts:
        for name, value in vars(one).items():
            setattr(summed, name, getattr(summed, name) + value)
    return summed


def row(name: str, mode: str, one: Counts) -> str:
    """One line of the table."""
    sizes, settles = sorted(one.snapshots) or [0], sorted(one.settles) or [0.0]
    late = settles[min(len(settles) - 1, int(0.95 * len(settles)))]
    cells = [
        name,
        mode,
        f"{one.right}/{one.rights}",
        f"{one.passed}/{one.wrongs}",
        *(str(value) for value in (one.lost, one.late, one.dead, one.fallbacks)),
        f"{one.nameless}/{one.targets}",
        str(one.vanished),
        f"{statistics.median(sizes):.0f}, {sizes[-1]}",
        f"{statistics.median(settles):.2f}, {late:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def installed(names: Sequence[str]) -> list[str]:
    """The applications that are installed, of those that are named. Raises `WabeError` for a named one that is not."""
    settings = Settings.from_environ()
    known = load_apps(settings.scenarios_folder)
    chosen = [the_app(name, known) for name in names] or list(known.values())
    ready = [app.name for app in chosen if is_installed(app, apps_folder(settings.cache_folder) / app.name)]
    if missing := [app.name for app in chosen if app.name not in ready]:
        print(f"Not installed (wabe apps install all): {', '.join(missing)}", file=sys.stderr)
        if names or not ready:
            raise WabeError("nothing was played")
    return ready


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--apps", nargs="*", default=[], help="default: all that are installed")
    parser.add_argument("--settle", choices=[*MODES, "both"], default="both")
    parser.add_argument("--scripts", choices=[*SCRIPTS, "both"], default="both")
    parser.add_argument("--load", type=int, default=0, help="processes that keep the machine busy")
    parser.add_argument("--output", type=Path, help="keep the runs here")
    options = parser.parse_args()
    modes = MODES if options.settle == "both" else (options.settle,)
    scripts = tuple(SCRIPTS) if options.scripts == "both" else (options.scripts,)
    began = time.monotonic()
    try:
        with ExitStack() as stack:
            output = options.output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wabe-apps-runs-")))
            names = installed(options.apps)
            stack.enter_context(busy(options.load))
            measured = measure(names, modes, scripts, output)
    except WabeError as error:
        print(error, file=sys.stderr)
        return 2
    counted: dict[tuple[str, str], Counts] = measured["counted"]
    print(table(counted))
    for (name, mode), one in counted.items():
        for line in one.failed:
            print(f"{name}, {mode}: {line}")
    print(f"abroad: {', '.join(sorted(measured['abroad'])) or 'none'}; {time.monotonic() - began:.0f} s")
    return 1 if any(one.failed for one in counted.values()) or measured["abroad"] else 0


if __name__ == "__main__":
    sys.exit(main())
