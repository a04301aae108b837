"""Where the test suite's CPU time goes: user and system time of the tests and of all processes that they start.

    python benchmarks/suite_profile.py [--workers N] [--output FILE] [--top N] [pytest arguments]
    python benchmarks/suite_profile.py --read FILE [--top N]

Other work on the machine changes wall time more than CPU time. Each test and the collection of each module is one line
of FILE, written as it ends, so that an interrupted run counts for what it reached. The files are dealt to N processes,
each under a parent that adopts what the tests leave behind: a browser's processes count also if they are killed after
the process that started them. One that lives on counts in the test in which it uses the time.

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
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
WRITES_TO = "WABE_SUITE_PROFILE"
_TICKS = os.sysconf("SC_CLK_TCK")
_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.5


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
    """Pytest's hooks that write how much CPU each test used, and the collection of each module."""

    def __init__(self, path: Path) -> None:
        self._lines = path.open("a", encoding="utf-8")
        self._parent = os.getppid()
        # Not counted: the CPU time that looking at other processes takes.
        self._own = 0.0

    def _now(self) -> float:
        began = time.process_time()
        used = sum(map(used_by, children_of(self._parent))) + used_by(self._parent, only_ended=True) - self._own
        self._own += time.process_time() - began
        return used

    def _measured(self, kind: str, node: Any) -> Iterator[None]:
        before = self._now()
        result = yield
        line = {"kind": kind, "name": _file(node), "cpu": round(self._now() - before, 4), "count": int(kind == "test")}
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured("test", item))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        return (yield from self._measured("collect", collector))


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
                line = {"kind": "process", "name": kind, "cpu": round(cpu, 2), "count": counts[kind]}
                file.write(json.dumps(line) + "\n")
            file.write(json.dumps({"kind": "total", "name": "", "cpu": -time.process_time(), "count": 0}) + "\n")


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
        total = {"kind": "total", "name": "", "cpu": round(used.ru_utime + used.ru_stime, 2), "count": 0}
        file.write(json.dumps(total) + "\n")
    return max(each.exitcode or 0 for each in running)


def tables(path: Path, top: int) -> str:
    """What a run used, in Markdown: by area (two folders deep, as in `tests/judge/browser`), file and process."""
    used: dict[str, Counter[str]] = {part: Counter() for part in ("area", "file", "process", "total")}
    counts: Counter[str] = Counter()
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        name, part = line["name"], line["kind"]
        if part in ("test", "collect"):
            area = "/".join(Path(name).parent.parts[:3]) or name
            used["area"][area] += line["cpu"]
            counts[area] += line["count"]
            part = "file"
        used[part][name] += line["cpu"]
        counts[name] += line["count"]
    total = used["total"][""]
    if used["process"]:
        # Otherwise it was interrupted.
        used["process"]["not seen"] += total - used["process"].total()
    lines = [f"{total:.0f} s of CPU in all processes; {used['file'].total():.0f} s in tests and collection"]
    for part in ("area", "file", "process"):
        lines += ["", f"| {part} | {'started' if part == 'process' else 'tests'} | CPU, s |", "|---|---|---|"]
        lines += [f"| {name} | {counts[name]} | {cpu:.1f} |" for name, cpu in used[part].most_common(top)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Where the test suite's CPU time goes.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("suite_profile.jsonl"), help="the lines of this run")
    parser.add_argument("--read", type=Path, help="print the table of an earlier run, and run nothing")
    parser.add_argument("--top", type=int, default=60, help="files in the table")
    options, rest = parser.parse_known_args()
    status = 0 if options.read else run(options.output, options.workers, rest)
    print(tables(options.read or options.output, options.top))
    return status


if __name__ == "__main__":
    sys.exit(main())
