"""A session of daily use on the demo, as a transcript: edit checks without playing again, and what judging costs.

Plays the demo (or takes a recorded run of it). Then every command is run as a person would, and its output printed:
checks are proposed, pasted, judged and broken; a judge model (a stand-in on this machine, with the price of a real one)
is asked, asked again with another threshold, and stopped by a budget; agreement and report name it. Last, the waiting
for five edits of checks, with `suggest` and `--tasks` against playing each task again. Exit code 1 if an output lacks
what the documents promise.

    python benchmarks/daily_use.py [RUN, its folder]
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from check_loop import DEMO, WABE, play, with_checks, without_checks
from model_server import model_server

TASKS = ("product_by_suggestion", "deal_of_the_day", "invoice_article", "oak_desks", "cookies_then_delivery")
MODEL = "openai:gpt-4.1-mini"
MAX_SHOWN = 14
LATENCY_S = 0.05
# In the scenario's order, the last of them is the first wrong attempt: the model and the checks disagree on it.
JUDGED = 6


class Session:
    """Runs commands in a folder, prints them with their output, and collects missing promises."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.missing: list[str] = []

    def run(self, *words: str, promises: Sequence[str] = (), code: int | None = 0) -> str:
        """The command's output. `promises` are patterns that it must match."""
        completed = subprocess.run([WABE, *words], cwd=self._folder, capture_output=True, text=True, check=False)
        output = completed.stdout + completed.stderr
        print(f"\n$ wabe {' '.join(words)}")
        lines = [line[:200] for line in output.splitlines()]
        more = [f"… {len(lines) - MAX_SHOWN} lines …"] if len(lines) > MAX_SHOWN else []
        print("\n".join([*lines[: MAX_SHOWN // 2], *more, *lines[len(lines) - MAX_SHOWN // 2 :]] if more else lines))
        self.missing += [f"{words[0]}: {promise}" for promise in promises if not re.search(promise, output, re.DOTALL)]
        if code is not None and completed.returncode != code:
            self.missing.append(f"{' '.join(words)}: exit code {completed.returncode}, not {code}")
        return output


def proposal(output: str) -> list[str]:
    """The checks of `wabe checks suggest`, without comments."""
    return [line for line in output.splitlines() if line.startswith("  {")]


def edit_checks(session: Session, folder: Path, run: str) -> None:
    """Point 1: propose, paste, judge, break."""
    task, text, path = TASKS[0], without_checks(DEMO.read_text()), folder / "my.toml"
    path.write_text(text)
    output = session.run("checks", "suggest", run, "--task", task, promises=["doing nothing fails it"])
    text = with_checks(text, task, proposal(output))
    path.write_text(text)
    only = f"{task}: success: all \\d+ checks passed"
    session.run("score", run, "--tasks", path.name, "--model", "offline", promises=[only], code=1)
    path.write_text(text.replace('url = "/', 'url = "/nowhere/', 1))
    broken = f"{task}: failure: page url /nowhere/.* failed, found"
    session.run("score", run, "--tasks", path.name, "--model", "offline", promises=[broken], code=1)
    probe = '  { kind = "probe", expression = "document.title", expected = "Lamp" },'
    path.write_text(with_checks(without_checks(DEMO.read_text()), task, [probe]))
    unread = f"{task}: unscored: .* was not read when the attempt was played"
    session.run("score", run, "--tasks", path.name, "--model", "offline", promises=[unread], code=1)
    path.write_text(re.sub(rf'(task_id = "{task}"\n(?:.*\n)*?task = ")', r"\1Twice: ", DEMO.read_text(), count=1))
    session.run("score", run, "--tasks", path.name, "--model", "offline", promises=["not judged: its task was"], code=1)


def judge_with_a_model(session: Session, run: str) -> None:
    """Point 4: the estimate, cached replies, a budget, and the names of judges everywhere."""
    name = f"webjudge · {MODEL}"
    with model_server(LATENCY_S) as url:
        judge = ("score", run, "--model", MODEL, "--base-url", f"{url}/v1", "--limit", str(JUDGED))
        stopped = ("The budget is spent, \\d+ verdicts missing: score again with a higher --max-cost-usd\\.",)
        session.run(*judge, "--max-cost-usd", "0.005", "--max-calls", "2", promises=stopped, code=1)
        estimate = (
            f"{name}: {JUDGED} trajectories, \\d verdicts to ask for: about \\d+ calls, [\\d,]+ tokens, \\$0\\.\\d+"
        )
        total = "This command: \\d+ calls, \\d+ cached, \\$0\\.\\d+; all verdicts: \\$0\\.\\d+"
        session.run(*judge, promises=[estimate, total])
        session.run(*judge, promises=["nothing to ask", "This command: 0 calls, 0 cached, \\$0.00"])
        cached = "This command: 0 calls, \\d+ cached, \\$0.00; all verdicts: \\$0\\.\\d+"
        session.run(*judge, "--threshold", "4", promises=["\\(from \\d+ earlier calls", cached])
    # Two thresholds, so two judges of one name.
    session.run("agreement", run, "--truth", "checks", promises=[f"disagreements? of {name} \\([0-9a-f]{{6}}\\)"])


def waiting(run: Path, folder: Path) -> None:
    """How long a person waits for the verdicts on five edits, with the recording and by playing again."""
    path, began = folder / "my.toml", time.monotonic()
    for task in TASKS:
        completed = subprocess.run(
            [WABE, "checks", "suggest", str(run), "--task", task], capture_output=True, text=True, check=True
        )
        path.write_text(with_checks(without_checks(DEMO.read_text()), task, proposal(completed.stdout)))
        edited = [WABE, "score", str(run), "--tasks", str(path), "--model", "offline"]
        subprocess.run(edited, capture_output=True, check=False)
    recorded_s, began = time.monotonic() - began, time.monotonic()
    for task in TASKS:
        again = [WABE, "run", str(DEMO), "--task", task, "--display", "none", "--output-dir", str(folder / "again")]
        done = subprocess.run(again, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"\nnot compared with playing again: {done.stderr.strip()}")
            return
    played_s = time.monotonic() - began
    print(f"\nwaiting for the verdicts on {len(TASKS)} edits, one after the other: {recorded_s:.0f} s with")
    print(f"`checks suggest` and `score --tasks`, {played_s:.0f} s by playing the edited task again each time")


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="daily-use-"))
    try:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else play(folder)
        # Copied, because judging writes verdicts beside the recording.
        mine = folder / ".output" / "runs" / run.name
        shutil.copytree(run, mine, symlinks=True)
        session = Session(folder)
        edit_checks(session, folder, run.name)
        judge_with_a_model(session, run.name)
        session.run("report", run.name, promises=["Report: "])
        front = (mine / "report" / "index.html").read_text()
        sections = ("What judging cost", "All judgings", f"webjudge · {MODEL}", "Where judges disagree")
        session.missing += [f"report: {text}" for text in sections if text not in front]
        waiting(mine, folder)
        print(f"missing: {'; '.join(session.missing) or 'nothing'}")
        return int(bool(session.missing))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
