"""Checks that the judge tells right from subtly wrong: scripts for MiniWoB++ tasks, and the same scripts with one
mistake.

    python benchmarks/miniwob_confusion.py [--all] [--seeds 0:2] [--parallel 3] [--keep FOLDER] [--json]

The tasks come from `wabe tasks import miniwob`, and `wabe run` plays them twice, with a participant in a process of its
own that gets what every participant gets: the instruction, the snapshot, the tools. The wrong one differs in one point:
the second largest number, another letter's case, the neighbour's mail (`tests/plugins/miniwob`). Whether an attempt
succeeded is known from the page itself. Exit code 1 unless every right attempt is a success and every wrong one a
failure.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.ports import free_ports
from participants.base import serve
from plugins.miniwob.scripts import participant

WABE = Path(sys.executable).parent / "wabe"
TASKS = """
    book-flight buy-ticket choose-date choose-list click-button-sequence click-checkboxes-large click-collapsible
    click-dialog click-dialog-2 click-menu click-menu-2 click-option click-scroll-list click-tab copy-paste-2
    email-inbox-delete email-inbox-forward email-inbox-important email-inbox-reply enter-date enter-text-2 enter-time
    find-greatest find-word focus-text-2 form-sequence-2 form-sequence-3 generate-number login-user-popup multi-layouts
    navigate-tree odd-or-even phone-book read-table-2 scroll-text-2 search-engine simple-algebra terminal
    use-autocomplete use-spinner
"""
# Similar to those above.
OTHERS = """
    book-flight-nodelay choose-date-easy choose-date-medium choose-date-nodelay click-checkboxes
    click-checkboxes-transfer click-collapsible-nodelay click-test-2 click-test-transfer copy-paste email-inbox
    email-inbox-noscroll email-inbox-star-reply enter-password enter-text enter-text-dynamic guess-number login-user
    multi-orderings read-table scroll-text simple-arithmetic text-transform use-autocomplete-nodelay
"""
EXPECTED = {"right": "success", "wrong": "failure"}
# An interrupted attempt fails for another reason than its mistake.
ENDS = ("ended_by_page", "finished")


def imported(folder: Path, names: list[str], seeds: str) -> str:
    """The imported scenario of these tasks, on free ports, with our participant of the side `SIDE`."""
    path = folder / "miniwob.toml"
    chosen = ["--tasks", ",".join(names), "--seeds", seeds]
    command: list[str | Path] = [WABE, "tasks", "import", "miniwob", *chosen, "-o", path, "--force"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    text = path.read_text()
    used = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", text)))
    for old, new in zip(used, free_ports(len(used)), strict=True):
        text = re.sub(rf"(127\.0\.0\.1:|--port ){old}\b", rf"\g<1>{new}", text)
    return re.sub(r"wabe participant \S+", f"{sys.executable} {Path(__file__).resolve()} --participant SIDE", text)


def play_side(folder: Path, scenario: str, side: str, parallel: int) -> tuple[float, list[dict[str, Any]]]:
    """The seconds that the run of one side took, and its tasks with their verdicts."""
    path, results = folder / f"{side}.toml", folder / f"{side}.json"
    path.write_text(scenario.replace("SIDE", side))
    command: list[str | Path] = [WABE, "run", path, "--max-parallel", str(parallel)]
    command += ["--output-dir", folder / side, "--output", results]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if not results.exists():
        raise SystemExit(f"the {side} run ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds, json.loads(results.read_text())["results"][0]["detail"]["tasks"]


def described(side: str, task: dict[str, Any]) -> str:
    """An attempt whose verdict is not the one expected for its script."""
    why = f"{task['stop_reason']}{', ' if task['error'] else ''}{task['error'] or ''}"
    return f"{task['task_id']}: the {side} attempt is {task['verdict']} ({why}): {'; '.join(task['action_history'])}"


def main() -> None:
    """Import the tasks, play both sides, print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", action="store_true", help="every task that has a script, not just 40")
    parser.add_argument("--tasks", nargs="+", metavar="NAME", help="these tasks only")
    parser.add_argument("--seeds", default="0:2", help="as `wabe tasks import miniwob` takes them")
    parser.add_argument("--parallel", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the runs here")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--participant", choices=EXPECTED, help=argparse.SUPPRESS)
    parser.add_argument("--host", default="127.0.0.1", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=9019, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.participant:
        decide = participant(is_wrong=options.participant == "wrong")
        serve(decide, name=f"miniwob-{options.participant}", host=options.host, port=options.port)
        return
    names = options.tasks or (TASKS + OTHERS if options.all else TASKS).split()
    matrix: dict[str, Counter[str]] = {}
    disagreements: list[str] = []
    seconds = 0.0
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        scenario = imported(folder, names, options.seeds)
        for side, expected in EXPECTED.items():
            took, tasks = play_side(folder, scenario, side, options.parallel)
            seconds += took
            matrix[side] = Counter(task["verdict"] for task in tasks)
            disagreements += [
                described(side, task)
                for task in tasks
                if task["verdict"] != expected or task["stop_reason"] not in ENDS
            ]
    report(matrix, disagreements, seconds, as_json=options.json)
    sys.exit(1 if disagreements else 0)


def report(matrix: dict[str, Counter[str]], disagreements: list[str], seconds: float, *, as_json: bool) -> None:
    """Print the matrix, every disagreement and the time."""
    attempts = sum(counts.total() for counts in matrix.values())
    if as_json:
        figures = {"matrix": matrix, "disagreements": disagreements, "attempts": attempts, "seconds": round(seconds, 1)}
        print(json.dumps(figures, indent=2))
        return
    columns = ["success", "failure", *sorted(set().union(*matrix.values()) - {"success", "failure"})]
    print(f"{'':8}" + "".join(f"{column:>10}" for column in columns))
    for side, counts in matrix.items():
        print(f"{side:8}" + "".join(f"{counts[column]:>10}" for column in columns))
    print(f"{attempts} attempts in {seconds:.0f} s: {seconds / attempts:.2f} s each")
    print("\n".join(disagreements) or "every verdict is the expected one")


if __name__ == "__main__":
    main()
