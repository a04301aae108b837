"""Plays random ways to an address that crashes the browser, and compares the blame with an oracle.

`python benchmarks/blame_plays.py [--scripted 1000] [--real 60] [--settle page-time|real-time] [--seed N]`. Ends with
1 if one was wrong. See `tests/helpers/episode/blame_plays.py`.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.episode.blame_plays import BlamePlay, blame_of, blame_play
from helpers.episode.blame_plays_live import fault_of, play_live, two_sites
from helpers.episode.live_judge import LiveJudge
from helpers.episode.several_tasks import with_judge


def compare(kind: str, plays: list[BlamePlay], outcomes: list[str]) -> int:
    """Print the outcomes of the plays; returns how many were wrong."""
    wrong = [(play, what) for play, what in zip(plays, outcomes, strict=True) if what != play.fault_of]
    for play, what in wrong:
        print(f"WRONG: {play.name}: {[(move.kind, move.to) for move in play.moves]}: {what}, not {play.fault_of}")
    parties = Counter(play.fault_of for play in plays)
    ways = len({play.name for play in plays})
    print(f"{kind}: {len(plays)} plays, {ways} last ways, {dict(parties)}, {len(wrong)} wrong", flush=True)
    return len(wrong)


def in_scripted_browsers(plays: list[BlamePlay]) -> list[str]:
    outcomes = []
    for play in plays:
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(blame_of(play, Path(folder)))
    return outcomes


def in_real_browsers(plays: list[BlamePlay], settle: str) -> list[str]:
    async def play(judge: LiveJudge) -> list[str]:
        judge.config["settle"] = settle
        return [fault_of(task) for task in await play_live(judge, plays, sites)]

    with tempfile.TemporaryDirectory() as folder, two_sites() as sites:
        return with_judge(Path(folder), play)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scripted", type=int, default=1000, help="plays in a scripted browser")
    parser.add_argument("--real", type=int, default=60, help="plays in a real browser")
    parser.add_argument("--settle", default="auto", choices=["auto", "page-time", "real-time"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    scripted = [blame_play(chance) for _ in range(arguments.scripted)]
    wrong = compare("scripted", scripted, in_scripted_browsers(scripted))
    real = [blame_play(chance) for _ in range(arguments.real)]
    if real:
        wrong += compare(f"real ({arguments.settle})", real, in_real_browsers(real, arguments.settle))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
