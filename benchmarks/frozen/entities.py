"""Whether frozen sites tell values apart: another entity or input than was recorded, and what pages invent.

    python benchmarks/frozen entities [--entities 300] [--entered 200] [--invented 250] [--show 3]

The visits come from `tests/plugins/frozen/visits.py`: small pages, recorded in memory in one or two plays of each
task, and visited again. entities and entered: the attempt asks for another value than any task of the recording, and
goes on to what that changes. invented: the attempt does what was recorded, and its page invents other values. recorded:
the walks of the first two as they were recorded. same orders: the walks of both whose pages send batches in a random
order that happened to be the same in both plays, so that an uncertain answer to another order is right.

certain and wrong: an answer that differs from what the site would say, with no flag. A visit counts by its worst
answer, in the order of the columns. Exit code 1 if an answer is certain and wrong, or if a recorded walk of two plays
has a miss or an uncertain answer, but for the uncertain ones of the same orders.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from judge.plugins.frozen.matching.matcher import MATCHER
from plugins.frozen.visits import (
    Answered,
    Case,
    Invented,
    Outcome,
    entered_case,
    entity_case,
    invented_case,
    of_invented,
    of_other,
    of_same,
)

SAME = "same orders, two plays"
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
CaseAnswers = list[tuple[Any, Answered]]


def answers_of(cases: Sequence[Any], outcome_of: Callable[[Any], Answered]) -> CaseAnswers:
    return [(case, outcome_of(case)) for case in cases]


def line(name: str, answers: CaseAnswers) -> str:
    counts = Counter(each.outcome for _, each in answers)
    return f"| {' | '.join([name, str(len(answers)), *(str(counts[each]) for each in OUTCOMES)])} |"


def table(parts: dict[str, CaseAnswers]) -> str:
    """All parts: entities and inputs by place, invented values by their use."""
    lines = [f"| visits | all | {' | '.join(OUTCOMES)} |", "|---|" + "---|" * (1 + len(OUTCOMES))]
    for name, cases in parts.items():
        lines.append(line(name, cases))
        by: dict[str, CaseAnswers] = {}
        for case, each in cases:
            by.setdefault(case.use if isinstance(case, Invented) else case.place, []).append((case, each))
        lines += [line(f"– {group}", part) for group, part in by.items()]
    return "\n".join(lines)


def problems(parts: dict[str, CaseAnswers]) -> list[str]:
    """The demands that are not met."""
    missed = []
    for name, cases in parts.items():
        if wrong := sum(each.outcome == "certain and wrong" for _, each in cases):
            missed.append(f"{name}: {wrong} certain and wrong")
        is_recorded = name not in ("entities", "entered")
        for outcome in ("miss",) if name == SAME else ("miss", "uncertain"):
            if lost := sum(each.outcome == outcome and case.plays == 2 and is_recorded for case, each in cases):
                missed.append(f"{name}: {lost} times {outcome} on walks of two plays")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--entities", type=int, default=300)
    parser.add_argument("--entered", type=int, default=200)
    parser.add_argument("--invented", type=int, default=250)
    parser.add_argument("--show", type=int, default=3, help="how many visits of each bad kind to print")
    options = parser.parse_args()
    began = time.monotonic()
    entities: list[Case] = [entity_case(number) for number in range(options.entities)]
    entered: list[Case] = [entered_case(number) for number in range(options.entered)]
    own = [*entities, *entered]
    invented = [invented_case(number, 2) for number in range(options.invented)]
    twice = [case for case in own if case.plays == 2]
    same = [case for case in invented if case.is_same_by_chance], [case for case in twice if case.is_same_by_chance]
    parts = {
        "entities": answers_of(entities, of_other),
        "entered": answers_of(entered, of_other),
        "invented, two plays": answers_of([case for case in invented if case not in same[0]], of_invented),
        "invented, one play": answers_of([invented_case(number, 1) for number in range(options.invented)], of_invented),
        "recorded, two plays": answers_of([case for case in twice if case not in same[1]], of_same),
        "recorded, one play": answers_of([case for case in own if case.plays == 1], of_same),
        SAME: [*answers_of(same[0], of_invented), *answers_of(same[1], of_same)],
    }
    print(table(parts))
    for name, cases in parts.items():
        bad = ("certain and wrong",) if name in ("entities", "entered") else OUTCOMES[:-1]
        for outcome in bad:
            for case, each in [one for one in cases if one[1].outcome == outcome][: options.show]:
                print(f"{name}, {outcome}: {case}\n    {each.request}")
    missed = problems(parts)
    print(f"matcher {MATCHER}, {time.monotonic() - began:.0f} s; {'; '.join(missed) or 'every demand is met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
