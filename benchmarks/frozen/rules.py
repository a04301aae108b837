"""What each rule of the matcher of frozen sites brings: the same simulated visits without it.

    python benchmarks/frozen rules [--sites 1000] [--changing 500] [--loading 300] [--visits 50] [--rules NAME…]

The sites and visits come from all kinds of `frozen oracle`, and from `frozen entities`. For each rule, in points: how
many more answers are certain and wrong without it, and how many fewer are certain. What a rule brings on real pages is
shown by `frozen sites --again --without RULE`, on recordings and visits that it kept.
"""

import argparse
import io
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import oracle

from judge.plugins.frozen import sockets
from judge.plugins.frozen.matching import index, matcher, messages, states, writes
from plugins.frozen import loading_sites
from plugins.frozen.test_matching_oracle import SURE
from plugins.frozen.visits import entered_case, entity_case, invented_case, of_invented, of_other, of_same

Patch = tuple[Any, str, Any]


def in_the_same_context(
    group: states.ObservationGroup, context: states.Context, learnt: states.Learnt
) -> list[states.RecordedObservation]:
    """As `fitting_in`, without the writes that were under way."""

    def comparable(each: states.Context) -> tuple[object, ...]:
        return learnt.state(group, each.writes), learnt.cookies(group, each)

    return [each for each in group.observations if comparable(each.context) == comparable(context)]


def unbound(*args: Any, **kwargs: Any) -> states.Selection:
    """As `choose`, without the walks that answered writes."""
    return states.choose(*args, **kwargs | {"bound": {}})


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


RULES: dict[str, Sequence[Patch]] = {
    "writes and cookies without an effect on an answer do not count for it": [
        (states.Learnt, "_write_effects", always(states._WriteEffects(frozenset(), {})))
    ],
    "a request during a write may belong before or after it": [
        (states, "fitting_in", in_the_same_context),
        (matcher, "fitting_in", in_the_same_context),
    ],
    "what follows a write is in the walk that answered it": [(matcher, "choose", unbound)],
    "answers that a server allows to be reused hold in any state": [(index, "holds_in_any_state", always(False))],
    "answers are compared without what differs between two plays": [(index, "gaps_by", always({}))],
    "a token or identifier stands for the request that it was issued to": [(index.Index, "token_class", always(None))],
    "the second thing that the same request creates is another one": [(index.Index, "_time_of", always(0))],
    "identifiers of another play are exchanged": [(index.Index, "issued", always(()))],
    "values that the page made up are exchanged": [(matcher.Matcher, "_keep", always(None))],
    "an order that was the same in both plays by chance": [(index.Index, "_learn_orders", always(None))],
    "a reply over a socket is certain only after the same writes": [(index.Index, "is_same_state", always(True))],
    "a write that the site may report over a socket is uncertain": [(index.Index, "is_foreseen", always(True))],
    "what a page writes as it loads counts from the next step on": [
        (writes.RecordedWrites, "own", always(frozenset()))
    ],
    "signals change nothing": [(messages, "is_signal", always(False)), (sockets, "is_signal", always(False))],
    "cookies that differ in each play identify a session": [(index, "changing_cookies", always(frozenset()))],
    "signed cookies are compared by their content": [(index, "content_of", lambda value: value)],
}


@contextmanager
def without(rule: str) -> Iterator[None]:
    """The matcher without this rule; an empty name means with all of them."""
    patches = RULES[rule] if rule else ()
    before = [getattr(place, name) for place, name, _ in patches]
    for place, name, instead in patches:
        setattr(place, name, instead)
    try:
        yield
    finally:
        for (place, name, _), value in zip(patches, before, strict=True):
            setattr(place, name, value)


def measured(options: argparse.Namespace) -> list[tuple[int, int, int]]:
    """The answers that are wrong, certain, and all of them: on simulated, changing and loading sites, and on visits."""
    measurements = []
    for kind, count in (("plain", options.sites), ("changing", options.changing)):
        grades = Counter[str]()
        with redirect_stdout(io.StringIO()):
            bad = oracle.KINDS[kind](range(count), grades)
        measurements.append((bad, sum(grades[grade] for grade in SURE), grades.total()))
    cases, grades = [loading_sites.make_case(seed) for seed in range(options.loading)], Counter[str]()
    bad = sum(loading_sites.wrong(case, grades) is not None for case in cases)
    for case in cases:
        loading_sites.flagged(case, grades)
    measurements.append((bad, sum(grades[grade] for grade in SURE), grades.total()))
    numbers = range(options.visits)
    own = [*map(entity_case, numbers), *map(entered_case, numbers)]
    outcomes = Counter(of_other(case).outcome for case in own)
    outcomes.update(of_same(case).outcome for case in own if case.plays == 2)
    outcomes.update(of_invented(invented_case(number, 2)).outcome for number in numbers)
    certain = outcomes.total() - outcomes["uncertain"] - outcomes["miss"]
    return [*measurements, (outcomes["certain and wrong"], certain, outcomes.total())]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sites", type=int, default=1_000)
    parser.add_argument("--changing", type=int, default=500)
    parser.add_argument("--loading", type=int, default=300)
    parser.add_argument("--visits", type=int, default=50, help="of each kind")
    parser.add_argument("--rules", nargs="*", default=list(RULES), choices=list(RULES), metavar="NAME")
    options = parser.parse_args()
    began = time.monotonic()
    with without(""):
        whole = measured(options)
    print(f"all rules: {', '.join(f'{bad} wrong of {sure} certain of {count}' for bad, sure, count in whole)}")
    print("| without | more wrong: simulated, changing, loading, visits | fewer certain, in points |\n|---|---|---|")
    for rule in options.rules:
        with without(rule):
            measurements = measured(options)
        wrong = ", ".join(str(now[0] - then[0]) for now, then in zip(measurements, whole, strict=True))
        # A page goes on differently after another answer, so that the number of requests differs too.
        points = (100 * (then[1] / then[2] - now[1] / now[2]) for now, then in zip(measurements, whole, strict=True))
        print(f"| {rule} | {wrong} | {', '.join(f'{each:.1f}' for each in points)} |", flush=True)
    print(f"matcher {matcher.MATCHER}, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
