"""The table of results of people: `python benchmarks/human_baseline.py RUN…`, one run for each person and task set.

A run is one of `wabe run SCENARIO --agent human`. One that another participant played is refused, and one in which a
program sent an action in the place of a person: such runs are never results of people.
"""

import argparse
import sys
from statistics import median

from judge.plugins.play_page.desk import BY_PROGRAM
from judge.results.statistics import exact
from judge.store.layout import RunStore, find_run, output_folder
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.fields import as_mapping
from shared.participants import HUMAN


def main() -> int:
    """Print the table as Markdown; 1 if a run is refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="runs by id or folder")
    print(
        "| person | task set | success | 95 % interval | replies, median | minutes, median |\n|---|---|---|---|---|---|"
    )
    refused = [_row(find_run(run, output_folder(None))) for run in parser.parse_args().runs]
    return int(any(refused))


def _row(store: RunStore) -> bool:
    """Print the row of a run; returns whether it is refused."""
    record = store.read_run() or {}
    attempts = [load_trajectory(task.folder) for task in store.tasks()]
    if why := _refusal(as_mapping(record.get("identity")).get("card_name"), attempts):
        print(f"{store.run_id}: {why}", file=sys.stderr)
        return True
    scored = [each for each in attempts if each.attempt.outcome in ("success", "failure")]
    successes = sum(each.attempt.outcome == "success" for each in scored)
    low, high = exact(successes, len(scored))
    minutes = median(sum(step.timings.reply_s for step in each.steps) for each in scored) / 60
    person = as_mapping(record.get("identity")).get("name") or store.run_id
    scenario = as_mapping(record.get("scenario")).get("name") or "?"
    print(
        f"| {person} | {scenario} | {successes} of {len(scored)} | {100 * low:.1f} to {100 * high:.1f} %"
        f" | {median(len(each.steps) for each in scored):g} | {minutes:.1f} |"
    )
    return False


def _refusal(name: object, attempts: list[Trajectory]) -> str:
    if name != HUMAN:
        return f"its participant is {name!r}, not {HUMAN!r}"
    texts = [step.action.thought for each in attempts for step in each.steps if step.action is not None]
    if BY_PROGRAM in texts:
        return f"a program sent {texts.count(BY_PROGRAM)} of {len(texts)} actions, so it is not the result of a person"
    return "" if texts else "nothing was played"


if __name__ == "__main__":
    sys.exit(main())
