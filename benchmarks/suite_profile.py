"""Where the test suite's CPU time goes: user and system time of the tests and of all processes that they start.

    python benchmarks/suite_profile.py [--workers N] [--output FILE] [pytest arguments]
    python benchmarks/suite_profile.py --read FILE [--before FILE] [--top N]

Other work on the machine changes wall time more than CPU time. Each phase of each test, each fixture and the collection
of each module is one line of FILE, written as it ends, so that an interrupted run counts for what it reached. The files
are dealt to N processes, each under a parent that adopts what the tests leave behind: a browser's processes count also
if they are killed after the process that started them. One that lives on counts in the phase in which it uses the time.

The last table is by kind of process. They are looked at twice a second: what one uses after its last look, and all of
one that ends before the first, is in the line `not seen`.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
WRITES_TO = "WABE_SUITE_PROFILE"
_TICKS = os.sysconf("SC_CLK_TCK")
_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.5
_PHASES = ("collect", "setup", "call", "teardown")


def children_of(pid: int) -> Iterator[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for thread in threads:
        try:
            children = (thread / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from children_of(child)


def used_by(pid: int, *, only_ended: bool = False) -> float:
    """Seconds of CPU of a process and of its children that have ended, or of those only."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[13 if only_ended else 11 : 15])) / _TICKS


class Meter:
    """Pytest's hooks that write how much CPU each part used. Nested parts do not count twice."""

    def __init__(self, path: Path) -> None:
        self._lines = path.open("a", encoding="utf-8")
        self._parent = os.getppid()
        # Not counted: the CPU time that looking at other processes takes.
        self._own = 0.0
        self._inner: list[float] = [0.0]

    def _now(self) -> float:
        began = time.process_time()
        used = sum(map(used_by, children_of(self._parent))) + used_by(self._parent, only_ended=True) - self._own
        self._own += time.process_time() - began
        return used

    def _measured(self, kind: str, place: str, name: str) -> Iterator[None]:
        self._inner.append(0.0)
        before = self._now()
        result = yield
        used = self._now() - before
        inside = self._inner.pop()
        self._inner[-1] += used
        line = {"kind": kind, "place": place, "name": name, "cpu": round(used - inside, 4)}
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured("setup", _file(item), item.name))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured("call", _file(item), item.name))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured("teardown", _file(item), item.name))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        return (yield from self._measured("fixture", _file(request.node), fixturedef.argname))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        return (yield from self._measured("collect", _file(collector), ""))


def _file(node: Any) -> str:
    path = Path(getattr(node, "path", ROOT))
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) and path.is_file() else "(folders)"


def pytest_configure(config: pytest.Config) -> None:
    """Called by pytest where this module is given with `-p`."""
    if path := os.environ.get(WRITES_TO):
        config.pluginmanager.register(Meter(Path(path)))


def kind_of(pid: int) -> str:
    """What a process is, by its command line: `chromium renderer`, `server.cjs`, `wabe serve`, `pytest`."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").strip("\0").split("\0")
    except OSError:
        return ""
    program = Path(words[0].split(" ")[0]).name
    if "chrom" in program:
        # Chromium rewrites the command lines of its processes, with spaces.
        kinds = [word.removeprefix("--type=") for word in " ".join(words).split() if word.startswith("--type=")]
        return f"chromium {kinds[0] if kinds else 'browser'}"
    script = next((Path(word).name for word in words[1:] if not word.startswith("-")), "")
    command = words[2] if script == "wabe" and len(words) > 2 else ""
    return f"{program.rstrip('0123456789.')} {script} {command}".strip()[:60]


class _Processes:
    """What each process below this one has used, by looking at them again and again."""

    def __init__(self) -> None:
        self._used: dict[tuple[int, str], float] = {}
        self._kinds: dict[tuple[int, str], str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            for pid in set(children_of(os.getpid())):
                try:
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                process = (pid, fields[19])
                is_known = process in self._used
                self._used[process] = sum(map(int, fields[11:13])) / _TICKS
                # At the first look it may still be the copy of its parent.
                if (not is_known or self._used[process] < 1) and (kind := kind_of(pid)):
                    self._kinds[process] = kind

    def end(self, output: Path) -> None:
        """Write a line for each kind, and one with what the looking has cost, which the total contains."""
        self._over.set()
        self._thread.join()
        used: Counter[str] = Counter()
        for process, cpu in self._used.items():
            used[self._kinds.get(process, "not seen")] += cpu
        counts = Counter(self._kinds.values())
        with output.open("a", encoding="utf-8") as file:
            for kind, cpu in used.items():
                line = {"kind": "process", "place": "", "name": kind, "cpu": round(cpu, 2), "count": counts[kind]}
                file.write(json.dumps(line) + "\n")
            file.write(json.dumps({"kind": "total", "place": "", "name": "", "cpu": -time.process_time()}) + "\n")


def _adopting(command: list[str], environment: dict[str, str]) -> None:
    """Run a command as the parent of everything that it leaves without one; ends with its exit code."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    running = subprocess.Popen(command, cwd=ROOT, env=environment)
    processes = _Processes()
    status = 0
    while True:
        try:
            pid, ended = os.wait()
        except ChildProcessError:
            processes.end(Path(environment[WRITES_TO]))
            sys.exit(status)
        if pid == running.pid:
            status = os.waitstatus_to_exitcode(ended)


def run(output: Path, workers: int, rest: list[str]) -> int:
    """Run the test files among the arguments, or all, and write what they used to `output`."""
    named = [word for word in rest if (ROOT / word).exists()]
    options = [word for word in rest if word not in named]
    folders = [ROOT / word for word in named or ["tests"]]
    files = sorted(file for place in folders for file in ([place] if place.is_file() else place.rglob("test_*.py")))
    output.write_text("")
    environment = dict(os.environ)
    environment[WRITES_TO] = str(output.resolve())
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-p", Path(__file__).stem, "-n", "0", *options]
    context = multiprocessing.get_context("fork")
    running = [
        context.Process(target=_adopting, args=([*command, *map(str, files[number::workers])], environment))
        for number in range(min(workers, len(files)))
    ]
    for each in running:
        each.start()
    for each in running:
        each.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with output.open("a", encoding="utf-8") as file:
        total = {"kind": "total", "place": "", "name": "", "cpu": round(used.ru_utime + used.ru_stime, 2)}
        file.write(json.dumps(total) + "\n")
    return max(each.exitcode or 0 for each in running)


class Profile:
    """What one run used, by file and phase, and by fixture."""

    def __init__(self, path: Path) -> None:
        self.by_file: dict[str, Counter[str]] = defaultdict(Counter)
        self.by_fixture: Counter[str] = Counter()
        self.setups: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self.by_process: Counter[str] = Counter()
        self.processes: Counter[str] = Counter()
        self.total = 0.0
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if line["kind"] == "total":
                self.total += line["cpu"]
                continue
            if line["kind"] == "process":
                self.by_process[line["name"]] += line["cpu"]
                self.processes[line["name"]] += line["count"]
                continue
            if line["kind"] == "fixture":
                self.by_fixture[line["name"]] += line["cpu"]
                self.setups[line["name"]] += 1
            self.tests[line["place"]] += line["kind"] == "call"
            self.by_file[line["place"]]["setup" if line["kind"] == "fixture" else line["kind"]] += line["cpu"]

    def used_in(self, place: str) -> float:
        return sum(self.by_file[place].values()) if place in self.by_file else 0.0

    def by_folder(self) -> dict[str, Counter[str]]:
        """The same by area: two folders deep, as in `tests/judge/browser`."""
        areas: dict[str, Counter[str]] = defaultdict(Counter)
        for place, phases in self.by_file.items():
            areas["/".join(Path(place).parent.parts[:3]) or place].update(phases)
        return areas


def table(profile: Profile, before: Profile | None, top: int) -> str:
    """All tables in Markdown: areas and files, then fixtures, then processes."""
    covered = sum(map(profile.used_in, profile.by_file))
    lines = [f"{profile.total:.0f} s of CPU in all processes; {covered:.0f} s in the lines below", ""]
    head = "| place | tests | " + ("before | " if before else "") + "CPU, s | " + " | ".join(_PHASES) + " |"
    rule = "|---" * (head.count("|") - 1) + "|"

    def row(place: str, tests: int, phases: Counter[str], earlier: float | None) -> str:
        cells = [place, str(tests), *([f"{earlier:.1f}"] if earlier is not None else []), f"{sum(phases.values()):.1f}"]
        return "| " + " | ".join([*cells, *(f"{phases[phase]:.1f}" for phase in _PHASES)]) + " |"

    lines += [head, rule]
    areas, earlier_areas = profile.by_folder(), before.by_folder() if before else {}
    for area, phases in sorted(areas.items(), key=lambda pair: -sum(pair[1].values())):
        tests = sum(count for place, count in profile.tests.items() if "/".join(Path(place).parent.parts[:3]) == area)
        lines.append(row(area, tests, phases, sum(earlier_areas.get(area, Counter()).values()) if before else None))
    lines += ["", head, rule]
    for place in sorted(profile.by_file, key=lambda place: -profile.used_in(place))[:top]:
        earlier = before.used_in(place) if before else None
        lines.append(row(place, profile.tests[place], profile.by_file[place], earlier))
    lines += ["", "| fixture | set up | CPU, s |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {profile.setups[name]} | {used:.1f} |" for name, used in profile.by_fixture.most_common(20)
    ]
    if not (seen := profile.by_process):
        # It was interrupted.
        return "\n".join(lines)
    seen["not seen"] += profile.total - sum(seen.values())
    lines += ["", "| process | started | CPU, s | of all |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {profile.processes[name]} | {used:.1f} | {used / profile.total:.0%} |"
        for name, used in seen.most_common(20)
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Where the test suite's CPU time goes.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("suite_profile.jsonl"), help="the lines of this run")
    parser.add_argument("--read", type=Path, help="print the table of an earlier run, and run nothing")
    parser.add_argument("--before", type=Path, help="another run, for a column to compare with")
    parser.add_argument("--top", type=int, default=60, help="files in the table")
    options, rest = parser.parse_known_args()
    status = 0 if options.read else run(options.output, options.workers, rest)
    before = Profile(options.before) if options.before else None
    print(table(Profile(options.read or options.output), before, options.top))
    return status


if __name__ == "__main__":
    sys.exit(main())
