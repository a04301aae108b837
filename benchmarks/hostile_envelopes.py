"""Sends mutated A2A answers and agent cards through the judge's real client over loopback HTTP, and checks the blame.

    python benchmarks/hostile_envelopes.py [--count 5000] [--seed 1]

Reads `--count` answers of each protocol, to messages and to questions about a task, and as many cards, and prints a
table of the outcomes. Exit code 1 if one was anything but a reply or the participant's error: an internal fault aborts
a task, and so takes it out of the rate.
"""

import argparse
import asyncio
import itertools
import sys
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from helpers.a2a.envelopes import (
    PROTOCOLS,
    cards,
    envelopes,
    faults,
    outcomes_of_cards,
    outcomes_of_envelopes,
)


async def measure(count: int, seed: int) -> dict[str, tuple[Counter[str], float]]:
    rows: dict[str, tuple[Counter[str], float]] = {}
    for protocol, polled in itertools.product(PROTOCOLS, (False, True)):
        begun = time.perf_counter()
        bodies = envelopes(protocol, count, seed, polled=polled)
        outcomes = await outcomes_of_envelopes(protocol, bodies, polled=polled)
        rows[f"{'tasks' if polled else 'answers'}, {protocol}"] = outcomes, time.perf_counter() - begun
    begun = time.perf_counter()
    rows["cards"] = await outcomes_of_cards(cards(count, seed)), time.perf_counter() - begun
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = asyncio.run(measure(arguments.count, arguments.seed))
    columns = sorted({name for counts, _ in rows.values() for name in counts})
    table = Table(title=f"{arguments.count} of each, seed {arguments.seed}")
    for column in ("what", *columns, "s"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, (counts, seconds) in rows.items():
        table.add_row(what, *(str(counts[column]) for column in columns), f"{seconds:.1f}")
    Console(width=160).print(table)
    lost = sum(faults(counts).total() for counts, _ in rows.values())
    print(f"{lost} of {sum(counts.total() for counts, _ in rows.values())} were not the participant's")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
