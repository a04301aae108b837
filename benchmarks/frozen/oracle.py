"""Looks for wrong answers that frozen sites give without a flag, on many simulated small sites.

    python benchmarks/frozen oracle [--sites 20000] [--seed 0] [--kinds plain changing loading resting]

plain: the sites and servers of `tests/plugins/frozen/test_matching_oracle.py`. Each is recorded in one to three walks
and then visited in another one: new requests, recorded requests in any order, or a recorded walk with gaps. A plain
generator makes them, because Hypothesis keeps what it has tried, and ends long runs with errors of its own.

changing: see `tests/plugins/frozen/changing_sites.py`. Their entities have new identifiers in each play, and they
talk over a socket. They are recorded in one or two plays.

loading: see `tests/plugins/frozen/loading_sites.py`. Their pages write something as they load, in any order with
their other requests. Recorded walks that are not certain in another order count as wrong.

resting: see `tests/plugins/frozen/resting_pages.py`. Their pages keep what they get. What a success rests on by
the ledger is compared with the live site: looks, requests, and that nothing else was sent.

Prints the number of answers by grade, and each wrong one with the shortest walks that still lead to it. Exit code 1 if
there is any.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from judge.network.interception import WireRequest
from judge.plugins.frozen.matching.matcher import MATCHER, Matcher
from plugins.frozen import changing_sites, loading_sites, resting_pages
from plugins.frozen.made import request
from plugins.frozen.test_matching_oracle import SURE, VARIABLES, Page, Server, Site, Write, recorded

Requests = list[WireRequest]
PAGES = ("/", "/a", "/a/more", "/b", "/list", "/x/y")
WRITES = ("/a/do", "/b/do", "/a/undo", "/save", "/x/y/z")


class Case(NamedTuple):
    site: Site
    walks: list[Requests]
    requests: Requests


def make_case(seed: int) -> Case:
    """The case with this number."""
    dice = random.Random(seed)
    pages = (
        Page(path, frozenset(dice.sample(VARIABLES, dice.randint(0, 2))), dice.random() < 0.3)
        for path in dice.sample(PAGES, dice.randint(1, 5))
    )
    writes = (
        Write(path, dice.choice(VARIABLES), dice.choice(("set", "add", "reset", "copy")), dice.choice(("", *VARIABLES)))
        for path in dice.sample(WRITES, dice.randint(1, 4))
    )
    site = Site(tuple(pages), tuple(writes))
    walks = [walk(dice, site) for _ in range(dice.randint(1, 3))]
    seen = [each for one in walks for each in one]
    others = (
        lambda: walk(dice, site),
        lambda: dice.choices(seen, k=dice.randint(1, 14)),
        lambda: [each for each in dice.choice(walks) if dice.random() < 0.7],
    )
    return Case(site, walks, dice.choice(others)())


def walk(dice: random.Random, site: Site) -> Requests:
    return [random_request(dice, site) for _ in range(dice.randint(1, 14))]


def random_request(dice: random.Random, site: Site) -> WireRequest:
    theme = dice.choice(["", "", "", "", "theme=dark", "theme=light"])
    headers = (("Cookie", theme),) if theme else ()
    if dice.random() < 0.66:
        return request(dice.choice(site.pages).path, headers=headers)
    return request(dice.choice(site.writes).path, "POST", str(dice.randint(0, 2)).encode(), headers)


def wrong(case: Case, grades: Counter[str] | None = None) -> str | None:
    """The first answer that is wrong without a flag."""
    matcher, server = Matcher(recorded(case.site, [one for one in case.walks if one])), Server(case.site)
    for each in case.requests:
        live, match = server.answer(each), matcher.match(each)
        if grades is not None:
            grades[match.grade] += 1
        if match.grade in SURE and (match.answer is None or match.answer.body != live.body):
            return f"{match.grade}: {match.answer and match.answer.body!r}, live {live.body!r}"
    return None


def shortened(case: Case) -> Case:
    """The case without the requests that its wrong answer does not need."""
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for requests in (*case.walks, case.requests):
            for place in reversed(range(len(requests))):
                left = requests.pop(place)
                if any(case.walks) and wrong(case):
                    is_shorter = True
                else:
                    requests.insert(place, left)
    return case


def requests_text(requests: Iterable[WireRequest]) -> str:
    return ", ".join(
        " ".join(filter(None, (each.method, each.url[len("http://shop.test") :], each.body.decode(), *_cookies(each))))
        for each in requests
    )


def _cookies(each: WireRequest) -> Sequence[str]:
    return [value for _, value in each.headers]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sites", type=int, default=20_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first site")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    is_bad = False
    for kind in options.kinds:
        began, grades = time.monotonic(), Counter[str]()
        bad = KINDS[kind](range(options.seed, options.seed + options.sites), grades)
        sure = sum(grades[grade] for grade in SURE)
        is_bad |= bad > 0
        print(f"matcher {MATCHER}, {options.sites} {kind} sites: {bad} wrong of {sure} certain answers; {dict(grades)}")
        print(f"{time.monotonic() - began:.0f} s", flush=True)
    return 1 if is_bad else 0


def plain(seeds: Iterable[int], grades: Counter[str]) -> int:
    """How many of these sites got a wrong answer."""
    bad = 0
    for seed in seeds:
        if wrong(make_case(seed), grades):
            bad += 1
            case = shortened(make_case(seed))
            print(f"wrong, seed {seed}: {wrong(case)}\n  {case.site}")
            print(
                "\n".join(
                    [f"  recorded: {requests_text(one)}" for one in case.walks if one]
                    + [f"  asked: {requests_text(case.requests)}"]
                )
            )
    return bad


def loading(seeds: Iterable[int], grades: Counter[str]) -> int:
    """As `plain`, for sites whose pages write something as they load."""
    bad = 0
    for seed in seeds:
        case = loading_sites.make_case(seed)
        if mistake := loading_sites.wrong(case, grades) or loading_sites.flagged(case):
            bad += 1
            print(f"wrong, seed {seed}: {mistake}\n  {case}")
    return bad


def changing(seeds: Iterable[int], grades: Counter[str]) -> int:
    """As `plain`, for sites that change."""
    bad = 0
    for seed in seeds:
        case = changing_sites.make_case(seed)
        if mistake := asyncio.run(changing_sites.wrong(case, grades)):
            bad += 1
            walks = [("recorded", one) for one in case.walks] + [("asked", case.operations)]
            print(f"wrong, seed {seed}, {case.plays} plays: {mistake}\n  {case.site}")
            print("\n".join(f"  {name}: {', '.join(f'{op.do} {op.of}' for op in one)}" for name, one in walks))
    return bad


def resting(seeds: Iterable[int], grades: Counter[str]) -> int:
    """As `plain`, for pages that keep what they get; `grades` counts what looks rest on."""
    bad = 0
    for seed in seeds:
        case = resting_pages.make_case(seed)
        if mistake := resting_pages.wrong(case, grades):
            bad += 1
            print(f"wrong, seed {seed}: {mistake}\n  {case}")
    return bad


KINDS: Mapping[str, Callable[[Iterable[int], Counter[str]], int]] = {
    "plain": plain,
    "changing": changing,
    "loading": loading,
    "resting": resting,
}


if __name__ == "__main__":
    sys.exit(main())
