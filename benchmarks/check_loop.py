"""Measures the loop of writing checks on the demo: play once, suggest, edit, judge again on every save.

Plays the demo (or takes a recorded run of it), proposes checks for each task that succeeded, and compares them with
those that the demo declares. Then a scenario without checks is edited as a person would do it: the proposals are pasted
in and saved task by task, while `wabe score --tasks` watches and judges each save. Last, one check is broken. Exit code
1 if a pasted proposal does not succeed, or the broken one does not fail.

    python benchmarks/check_loop.py [RUN, its folder] [SCENARIO.toml, if it is not the demo's]
"""

import json
import queue
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from judge.evaluators.kinds.action import ActionCheck
from judge.evaluators.kinds.answer import AnswerCheck
from judge.evaluators.kinds.element import ElementCheck
from judge.evaluators.kinds.page import PageCheck
from judge.evaluators.kinds.request import RequestCheck
from judge.records.checks import PlainCheck, as_tuple, plain_checks
from judge.records.elements import parse_element
from judge.results.suggestions import Suggestion, suggest
from judge.scenario.toml import load_scenario
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory

WABE = str(Path(sys.executable).parent / "wabe")
DEMO = (
    Path(sys.argv[2])
    if len(sys.argv) > 2
    else Path(__file__).resolve().parents[1] / "scenarios" / "demo" / "scenario.toml"
)
EDITED_TASKS = 5
ANSWER_S = 60.0


def play(folder: Path) -> Path:
    """The folder of a run of the demo."""
    began = time.monotonic()
    subprocess.run([WABE, "run", str(DEMO), "--output-dir", str(folder), "--display", "none"], check=False)
    print(f"the demo was played in {time.monotonic() - began:.0f} s")
    return (folder / "results").resolve().parent


def covers(own: PlainCheck, proposed: Mapping[str, Any]) -> bool:
    """Whether a proposal states the fact of a declared check, so that a person only has to keep or shorten it."""
    if own.kind != proposed["kind"] or own.inverted != proposed.get("not", False):
        return False
    match own:
        case PageCheck():
            path = str(proposed["url"]).partition("?")[0]
            return bool(own.url) and as_tuple(own.url)[-1].partition("?")[0] == path
        case ElementCheck():
            return any(same_element(element.notation, proposed["element"]) for element in own.elements)
        case ActionCheck():
            lines = as_tuple(own.line)
            return proposed["line"] in lines or bool(own.pattern and re.search(own.pattern, proposed["line"]))
        case RequestCheck():
            return bool(own.method == proposed["method"] and as_tuple(own.url)[-1].partition("?")[0] == proposed["url"])
        case AnswerCheck():
            return True
    return bool(set(as_tuple(getattr(own, "contains", None))) & {proposed.get("contains")})


def same_element(own: str, proposed: str) -> bool:
    """Whether the element of a declared check is the proposed one, perhaps named by a pattern or with fewer states."""
    expected_element, actual = parse_element(own), parse_element(proposed)
    is_named = expected_element.name in (None, actual.name) and (
        expected_element.pattern is None or bool(expected_element.pattern.search(actual.name or ""))
    )
    return (
        is_named and expected_element.role in (None, actual.role) and set(expected_element.states) <= set(actual.states)
    )


def coverage(run: Path) -> dict[str, list[Suggestion]]:
    """The proposals by task; prints which of the demo's own checks are among them."""
    total, proposed_counts, optional = Counter[str](), Counter[str](), Counter[str]()
    proposals: dict[str, list[Suggestion]] = {}
    seconds = []
    for task in load_scenario(DEMO).tasks:
        trajectory = load_trajectory(TaskStore(run / "results" / task.task_id).folder)
        if trajectory.attempt is None or trajectory.attempt.outcome != "success":
            continue
        began = time.monotonic()
        suggestions = suggest(trajectory).checks
        seconds.append(time.monotonic() - began)
        proposals[task.task_id] = [each for each in suggestions if not each.is_optional]
        for own in plain_checks(task.checks):
            total[own.kind] += 1
            hits = [each for each in suggestions if covers(own, each.check)]
            proposed_counts[own.kind] += any(not each.is_optional for each in hits)
            optional[own.kind] += bool(hits) and all(each.is_optional for each in hits)
    numbers = [len(each) for each in proposals.values()]
    print(f"{len(proposals)} tasks that succeeded; {statistics.median(numbers):g} proposals each (median),")
    print(f"made in {statistics.median(seconds):.2f} s each (median, {max(seconds):.2f} s at most)")
    print("| the demo's own checks | of them proposed | proposed as a comment |\n|---|--:|--:|")
    for kind, number in sorted(total.items()):
        print(f"| {number} {kind} | {proposed_counts[kind]} | {optional[kind]} |")
    print(f"| **{total.total()}** | **{proposed_counts.total()}** | **{optional.total()}** |")
    return proposals


def without_checks(text: str) -> str:
    """The demo as a starting point: tasks, but no checks."""
    return re.sub(r"^checks = \[\n(?:  .*\n)*\]\n", "", text, flags=re.MULTILINE)


def with_checks(text: str, task_id: str, checks: Sequence[str]) -> str:
    """The scenario with these checks in a task."""
    before, marker, after = text.partition(f'task_id = "{task_id}"\n')
    return before + marker + "checks = [\n" + "\n".join(checks) + "\n]\n" + after


def suggested(run: Path, task_id: str) -> tuple[list[str], float]:
    """The lines of the checks that the command proposes, without comments, and the seconds that it took."""
    began = time.monotonic()
    done = subprocess.run(
        [WABE, "checks", "suggest", str(run), "--task", task_id], capture_output=True, text=True, check=True
    )
    assert "checks" in tomllib.loads(done.stdout)
    return [line for line in done.stdout.splitlines() if line.startswith("  {")], time.monotonic() - began


def reads(stream: IO[str]) -> "queue.Queue[str]":
    """The lines of a stream as they come."""
    lines: queue.Queue[str] = queue.Queue()

    def read_lines() -> None:
        for line in stream:
            lines.put(line)

    threading.Thread(target=read_lines, daemon=True).start()
    return lines


def answer(lines: "queue.Queue[str]", expected: str) -> str:
    """The next line that contains the text."""
    until = time.monotonic() + ANSWER_S
    while expected not in (line := lines.get(timeout=max(0.1, until - time.monotonic()))):
        pass
    return line.strip()


def edit(run: Path, folder: Path, task_ids: Sequence[str]) -> bool:
    """Paste one proposal after the other, and break the last one. Whether each save got its verdict."""
    path = folder / "my.toml"
    text = without_checks(DEMO.read_text())
    path.write_text(text)
    watching = subprocess.Popen(
        [WABE, "score", str(run), "--tasks", str(path), "--watch"], stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    lines = reads(watching.stdout)
    is_right = True
    try:
        answer(lines, "Watching")
        waits, commands = [], []
        for task_id in task_ids:
            checks, took = suggested(run, task_id)
            commands.append(took)
            text = with_checks(text, task_id, checks)
            began = time.monotonic()
            path.write_text(text)
            answer_line = answer(lines, f"{task_id}:")
            waits.append(time.monotonic() - began)
            is_right = is_right and "→ success" in answer_line
            print(f"  {answer_line}")
        broken = text.replace('url = "/', 'url = "/nowhere/', 1)
        began = time.monotonic()
        path.write_text(broken)
        answer_line = answer(lines, "→ failure")
        print(f"  {answer_line[:160]}")
        waits.append(time.monotonic() - began)
    finally:
        watching.terminate()
        watching.wait()
    print(f"wabe checks suggest: {statistics.median(commands):.1f} s; from a save to its verdict:")
    print(f"{statistics.median(waits):.1f} s (median of {len(waits)}, {max(waits):.1f} s at most)")
    return is_right


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="check-loop-"))
    try:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else play(folder)
        # Copied, because judging writes verdicts beside the recording.
        mine = folder / "out" / "runs" / run.name
        shutil.copytree(run, mine, symlinks=True)
        outcomes = json.loads((mine / "run.json").read_text()).get("outcomes")
        print(f"recorded: {outcomes}")
        proposals = coverage(mine)
        return 0 if edit(mine, folder, [name for name, checks in proposals.items() if checks][:EDITED_TASKS]) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
