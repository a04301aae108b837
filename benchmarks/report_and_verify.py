"""`wabe report` and `wabe verify` of a large run: seconds, and compared with only reading and hashing the same files.

    python benchmarks/report_and_verify.py [--tasks 10000] [--run RUN] [--folder FOLDER]

The run consists of copies of a recorded one: the demo's, which is played first, or `--run`. Each copy is a task
of its own, with its own files and digests, a check of a request besides its own checks, and the verdict that they give.
`--folder` keeps the run, and uses the one that is there already. Exit code 1 if `wabe verify` finds anything, or a
command takes more than its limit for 10,000 tasks.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.runner.commands import BIN
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.judges.rescoring import recomputed
from judge.records.tasks import Task
from judge.results.identity import identity_in
from judge.results.run_record import begin_run, end_run, provenance
from judge.results.submission import TaskSummary, build_submission
from judge.store.layout import RunStore, TaskStore, resolve_run
from judge.trajectory.files import load_trajectory, read_attempt

RUN_ID = "copies"
ROLE = "white_agent"
CONFIG = RunConfig(judge_model="offline")
# Seconds for a task.
LIMITS = {"report": 120 / 10_000, "verify": 60 / 10_000}


def copy_task(source: Path, target: Path) -> TaskSummary:
    """The attempt in the folder `source` as a task of its own in `target`, judged by its checks."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("verdicts", "attempts"))
    attempt, store, judge = read_attempt(source), TaskStore(target), ChecksJudge(CONFIG)
    attempt = attempt.model_copy(update={"task": _with_request(attempt.task, target.name), "verdict": None})
    store.write_result(attempt.to_json())
    verdict = recomputed(judge, load_trajectory(target))
    assert verdict is not None
    store.write_verdict(judge.id, verdict)
    attempt = attempt.model_copy(update={"verdict": verdict})
    store.write_result(attempt.to_json())
    return TaskSummary.of(attempt, judge.id)


def _with_request(task: Task, task_id: str) -> Task:
    path = urlsplit(task.website).path or "/"
    opened = {
        "kind": "request",
        "method": "GET",
        "url": path,
        "at": "any",
        "description": "The first page is asked for",
    }
    fields = task.model_dump(mode="json", exclude_defaults=True)
    return Task.model_validate({**fields, "task_id": task_id, "checks": [*fields.get("checks", ()), opened]})


def write_copies(recorded: RunStore, folder: Path, tasks: int) -> RunStore:
    """A finished run of this many copies of the tasks of `recorded`."""
    store = RunStore(folder, RUN_ID)
    sources = [task.folder for task in recorded.tasks()]
    picked = [sources[number % len(sources)] for number in range(tasks)]
    targets = [store.results / f"{source.name}_{number:05d}" for number, source in enumerate(picked)]
    declared = [
        _with_request(read_attempt(source).task, target.name) for source, target in zip(picked, targets, strict=True)
    ]
    judge_id = ChecksJudge(CONFIG).id
    begin_run(store, config=CONFIG, tasks=declared, role=ROLE, url="http://127.0.0.1:9019", judge_id=judge_id)
    with ProcessPoolExecutor() as pool:
        done = tuple(pool.map(copy_task, picked, targets, chunksize=16))
    end_run(store, "completed", done)
    made_with = provenance(config=CONFIG, results=done, run_id=RUN_ID)
    made_with["identity"] = identity_in(store.read_run() or {})
    store.write_submission(build_submission(role=ROLE, participant_ids={}, results=done, provenance=made_with))
    return store


def play_demo(folder: Path) -> RunStore:
    """The demo as it is recorded."""
    print("playing the demo", flush=True)
    subprocess.run([str(BIN / "wabe"), "run", "demo", "--output-dir", str(folder)], check=True, stdout=subprocess.PIPE)
    return resolve_run("latest", folder)


def floor(store: RunStore) -> tuple[float, int, float]:
    """Seconds to read and hash every file of the tasks once, their bytes, and seconds to parse each `result.json`."""
    paths = [path for path in sorted(store.results.rglob("*")) if path.is_file()]
    began, size = time.perf_counter(), 0
    for path in paths:
        data = path.read_bytes()
        size += len(data)
        hashlib.sha256(data).hexdigest()
    read_s, began = time.perf_counter() - began, time.perf_counter()
    for path in paths:
        if path.name == "result.json":
            json.loads(path.read_bytes())
    return read_s, size, time.perf_counter() - began


def timed(name: str, run: str) -> tuple[float, float]:
    """Seconds and seconds of CPU of a `wabe` command, which must succeed."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run([str(BIN / "wabe"), name, run], stdout=subprocess.PIPE, text=True, check=False)
    took, after = time.perf_counter() - began, os.times()
    print(f"{name}: {done.stdout.strip().splitlines()[-1]}", flush=True)
    if done.returncode:
        sys.exit(done.stdout[-2000:])
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return took, cpu_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the run, measure, compare with the limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--run", type=Path, help="the folder of a recorded run with checks, instead of the demo's")
    parser.add_argument("--folder", type=Path, help="where the run is kept")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        store = RunStore(folder, RUN_ID)
        if not (store.folder / "results.json").exists():
            recorded = resolve_run(str(options.run), folder) if options.run else play_demo(folder)
            began = time.perf_counter()
            store = write_copies(recorded, folder, options.tasks)
            print(f"{options.tasks} tasks made in {time.perf_counter() - began:.0f} s", flush=True)
        tasks = len(list(store.tasks()))
        read_s, size, parsed_s = floor(store)
        print(
            f"{tasks} tasks, {size / 1e9:.2f} GB: read and hashed in {read_s:.1f} s, each result.json parsed in "
            f"{parsed_s:.1f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        is_fast = True
        for name, limit in LIMITS.items():
            took, cpu_s = timed(name, str(store.folder))
            allowed = limit * tasks
            is_fast = is_fast and took <= allowed
            print(
                f"wabe {name}: {took:.1f} s (at most {allowed:.1f} s), {1000 * took / tasks:.2f} ms a task, "
                f"{took / (read_s + parsed_s):.1f} times reading, hashing and parsing; {cpu_s:.1f} s of CPU; "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
