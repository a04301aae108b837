"""Uploads and downloads on pages of every usual kind, right and subtly wrong; and every way to another file.

    python benchmarks/files_cases.py [--settle page-time|real-time] [--case NAME]

The pages are those of `tests/helpers/browser/upload_pages.py` and `download_pages.py`: nine that take files (plain,
hidden, several, two drop zones, in a frame, in a shadow root, replaced while the chooser is open, with a preview) and
seven that give one away (attachment, the same in a new tab, blob, data address, generated table, PDF, from a POST). On
each, one attempt does what the task asks for, and one sends or saves another file under the same name or field. Exit 1
if a right attempt fails, if a wrong one passes, or if a reply of `WAYS_OUT` leads to a file that is not declared.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.browser.hostile_site import hostile_site
from helpers.episode.file_plays import CASES, FILES, WAYS_OUT, FileCase, FilePlayer, file_site, file_tasks
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, participant, ref, tool_call
from helpers.episode.several_tasks import with_judge


async def play(judge: LiveJudge, cases: Mapping[str, FileCase], settle: str) -> list[str]:
    """Play all cases in one settle mode. Returns what went wrong."""
    with hostile_site(file_site()) as site:
        tasks = file_tasks(site.url, cases)
        async with participant(FilePlayer()) as url:
            assessed = await judge.ask(url, tasks, judge_model="offline", settle=settle, max_parallel=2, max_steps=8)
    wrong = []
    counts: Counter[str] = Counter()
    for entry in assessed.detail["tasks"]:
        way = entry["task_id"].rpartition("-")[2]
        counts[f"{way} {entry['verdict']}"] += 1
        if entry["verdict"] != ("success" if way == "right" else "failure"):
            wrong.append(f"{settle} {entry['task_id']}: {entry['verdict']}: {entry['error'] or 'see its checks'}")
    counts_text = ", ".join(f"{key} {count}" for key, count in sorted(counts.items()))
    print(f"{settle}, {len(cases)} pages: {counts_text}", flush=True)
    return wrong


async def reach(judge: LiveJudge, ways: Sequence[str]) -> list[str]:
    """Try every way to another file, with a file chooser open. Returns those that were executed."""

    def tries(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_click", ref=ref(turn, 'button "Your CV"'))
        return ways[turn.n - 1] if turn.n <= len(ways) else finish()

    with hostile_site(file_site()) as site:
        task = {"task_id": "t0", "website": f"{site.url}plain", "task": "Send it.", "files": ["cv.pdf"]}
        async with participant(tries) as url:
            assessed = await judge.ask(url, [task], judge_model="offline", max_steps=len(ways) + 5)
        was_sent = site.was_requested("/upload")
    steps = assessed.result()["steps"]
    done = [step["action"] for step in steps[1:-1] if step["outcome"]["ok"]]
    print(f"{len(ways)} ways to another file: {len(done)} executed, {'something' if was_sent else 'nothing'} sent")
    return [f"executed: {action}" for action in done] + (["something was sent"] if was_sent else [])


async def run(judge: LiveJudge, cases: Mapping[str, FileCase], modes: Sequence[str]) -> list[str]:
    """All parts."""
    judge.files = FILES
    wrong = [each for mode in modes for each in await play(judge, cases, mode)]
    return wrong + await reach(judge, list(WAYS_OUT.values()))


def main() -> None:
    """Play them, print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--settle", choices=["page-time", "real-time"])
    parser.add_argument("--case", choices=[*CASES], action="append")
    options = parser.parse_args()
    cases = {name: CASES[name] for name in options.case or CASES}
    modes = [options.settle] if options.settle else ["page-time", "real-time"]
    with tempfile.TemporaryDirectory(prefix="wf") as folder:
        wrong = asyncio.run(with_judge(Path(folder), lambda judge: run(judge, cases, modes)))
    print("\n".join(wrong) or "nothing went wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
