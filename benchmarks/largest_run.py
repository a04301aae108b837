"""Writes the largest attempt that there can be, then reads, judges, reports and verifies it.

`python benchmarks/largest_run.py [KIND…]` does so for each kind of worst character, prints the size of each file and
the seconds of each part, and ends with 1 when a file is larger than what is read, or something does not match.
"""

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.episode.live_judge import ALWAYS_YES
from helpers.llm.scripted import ScriptedModel, parts_for
from helpers.results import a_finished_run, a_result
from helpers.trajectory.largest import LONG, TEXTS, sizes, write_largest
from judge.config import MAX_STEPS
from judge.judges.rescoring import judge_stored
from judge.judges.webjudge import WebJudge
from judge.report.build import make_report
from judge.results.verify import verify_run
from shared.files import MAX_FILE_BYTES

REPLY_CHARS = 5_000


def measure(folder: Path, kind: str) -> bool:
    """One attempt of one kind of characters; whether everything held."""
    character = TEXTS[kind]
    judge = WebJudge(parts_for(ScriptedModel(lambda _: f"{ALWAYS_YES}\n{character * REPLY_CHARS}")))
    run = a_finished_run(folder, a_result("t1"), judge_id=judge.id)
    task = run.task("t1")
    clock = [time.perf_counter()]

    def lap() -> float:
        clock.append(time.perf_counter())
        return clock[-1] - clock[-2]

    result = write_largest(task, character * LONG)
    written_s = lap()
    scored = asyncio.run(judge_stored(task, judge))
    task.write_result(result.model_copy(update={"verdict": scored.verdict}).to_json())
    judged_s = lap()
    make_report([run], folder / "report")
    reported_s = lap()
    # The run's totals are those of another attempt; the task's own files must match.
    wrong = [line for line in verify_run(run).mismatches if line.startswith("results/t1/")]
    verified_s = lap()
    megabytes = ", ".join(f"{name.split('-')[0]} {size / 1e6:.1f} MB" for name, size in sizes(task).items())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"{kind:<10} {scored.outcome}; {megabytes}; written {written_s:.1f} s, judged {judged_s:.1f} s, "
        f"reported {reported_s:.1f} s, verified {verified_s:.1f} s; peak {peak:.0f} MB"
    )
    for line in wrong:
        print(f"  does not match: {line}")
    return scored.outcome == "success" and not wrong and max(sizes(task).values()) < MAX_FILE_BYTES


def main() -> int:
    """All kinds, or those that are named."""
    print(f"{MAX_STEPS} steps; at most {MAX_FILE_BYTES / 1e6:.0f} MB are read of a file")
    outcomes = []
    for kind in sys.argv[1:] or TEXTS:
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(measure(Path(folder), kind))
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
