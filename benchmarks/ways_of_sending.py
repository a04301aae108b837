"""Every way of sending something, from every kind of document and worker, against the log of the server that gets it.

    python benchmarks/ways_of_sending.py [--scheme http|https|both] [--sender NAME] [--browser-only]

Each page of the task's site and of the participant's tries all ways of one sender in a real browser, in an attempt at a
task with policies about requests. A policy against each way is then decided on what was recorded. Exit 1 if one is kept
although the server was sent what it forbids. `--browser-only` decides on what the browser reports instead, as before
the guard read all requests of such tasks (without TLS, because that browser trusts no certificate of these servers).
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.browser.hostile_site import self_signed
from helpers.browser.sessions import browser_settings
from helpers.browser.ways_judged import Outcome, four_servers, outcomes
from helpers.browser.ways_of_sending import ORIGINS, SENDERS
from judge.browser.pool import browser_pool


async def play(schemes: Sequence[str], senders: Sequence[str], *, by_guard: bool) -> list[Outcome]:
    """Play them all, one attempt for each sender."""
    outcomes_found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        certificate = self_signed(Path(name))
        os.environ["SSL_CERT_FILE"] = str(certificate)
        for scheme in schemes:
            with four_servers(certificate if scheme == "https" else None) as servers:
                async with browser_pool(browser_settings()) as pool:
                    for origin in ORIGINS:
                        for sender in senders:
                            new_outcomes = await outcomes(pool, servers, origin, sender, by_guard=by_guard)
                            outcomes_found += [each._replace(case=f"{scheme}.{each.case}") for each in new_outcomes]
                            print(f"{scheme} {origin}: {sender}: {counted(new_outcomes)}", flush=True)
    return outcomes_found


def counted(results: Sequence[Outcome]) -> str:
    """The counts in a line."""
    reached = Counter(each.violated for each in results if each.reached)
    return (
        f"{len(results)} ways, {reached.total()} reached the server: {reached[True]} seen, {reached[None]} undecided, "
        f"{reached[False]} missed"
    )


def main() -> None:
    """Play them, print what was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scheme", choices=["http", "https", "both"], default="both")
    parser.add_argument("--sender", choices=[*SENDERS], action="append")
    parser.add_argument("--browser-only", action="store_true")
    options = parser.parse_args()
    schemes = ["http", "https"] if options.scheme == "both" else [options.scheme]
    schemes = ["http"] if options.browser_only else schemes
    results = asyncio.run(play(schemes, options.sender or [*SENDERS], by_guard=not options.browser_only))
    ways = {each.case.split(".", 3)[3] for each in results}
    never = ways - {each.case.split(".", 3)[3] for each in results if each.reached}
    print(f"in all: {counted(results)}")
    print(f"never reached it, as the browser does not send them or the guard does not: {', '.join(sorted(never))}")
    for each in results:
        if each.is_hole:
            print(f"MISSED {each.case}")
    sys.exit(1 if any(each.is_hole for each in results) else 0)


if __name__ == "__main__":
    main()
