"""How far success rates are from people's labels: the judge's, a random sample's, and corrected ones.

Takes a CSV with the columns human and judge (0 or 1), where every attempt has a label of people, so that the true rate
is known. For each group and number of labels it computes the error (RMSE, in points), how often the 95 % interval holds
(coverage) and the interval's mean width. All possible samples are enumerated with their probabilities, so the figures
have no simulation error; `--samples` also draws samples at random, as a check.
Exit code 1 if a corrected interval covers the truth in less than 93 % for an agent, or for a benchmark in which the
judge gave either verdict at least 20 times.

    python benchmarks/corrected_rates.py FILE.csv [--samples 600] [--packages PYTHON]

`--packages` is a Python with `ppi-python` and `truescore` (tests/interop/requirements-rates.lock), whose estimates on
the same samples are compared with the product's.
"""

import argparse
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.plugins.labels.agreement import agreement, read_pairs
from judge.plugins.labels.label_plan import allocate
from judge.results.agreement import LabelledVerdict
from judge.results.corrected import SampleLabel, Stratum, estimate
from judge.results.statistics import wilson

PROGRAM = Path(__file__).parents[1] / "tests" / "interop" / "programs" / "rates.py"
NUMBERS = (20, 40, 60, 100)
MIN_COVERAGE = 0.93
MIN_STRATUM = 20
VERDICTS = {"success": True, "failure": False}


class Group(NamedTuple):
    """The attempts of an agent or a benchmark: by verdict, how many there are and how many succeeded by people."""

    name: str
    sizes: Mapping[str, int]
    successes: Mapping[str, int]

    @property
    def size(self) -> int:
        return sum(self.sizes.values())

    @property
    def truth(self) -> float:
        return sum(self.successes.values()) / self.size

    @property
    def judged(self) -> float:
        return self.sizes["success"] / self.size

    def strata(self, successes_found: Sequence[int] | None = None, sizes: Sequence[int] = (0, 0)) -> list[Stratum]:
        """The strata, with so many labels and successes among them."""
        strata = []
        for (verdict, size), labels, successes in zip(
            self.sizes.items(), sizes, successes_found or (0, 0), strict=True
        ):
            items = [SampleLabel("", number < successes) for number in range(labels)]
            strata.append(Stratum(verdict, size, items))
        return strata


class Figures(NamedTuple):
    """The root mean square error, the coverage and the mean width of the interval of one way to estimate."""

    rmse: float
    coverage: float
    width: float


def groups_of(pairs: Sequence[LabelledVerdict], column: str) -> list[Group]:
    names = sorted({pair.groups[column] for pair in pairs})
    groups = []
    for name in names:
        own = [pair for pair in pairs if pair.groups[column] == name]
        by_verdict = {
            verdict: [pair for pair in own if pair.judge == predicted] for verdict, predicted in VERDICTS.items()
        }
        groups.append(
            Group(
                name,
                {verdict: len(listed) for verdict, listed in by_verdict.items()},
                {verdict: sum(pair.human for pair in listed) for verdict, listed in by_verdict.items()},
            )
        )
    return groups


def hypergeometric(size: int, successes: int, sample_size: int) -> Iterator[tuple[int, float]]:
    """How many successes a sample can have, with the probability of each."""
    whole = math.comb(size, sample_size)
    for hits in range(max(0, sample_size - size + successes), min(sample_size, successes) + 1):
        yield hits, math.comb(successes, hits) * math.comb(size - successes, sample_size - hits) / whole


def figures(truth: float, outcomes: Iterator[tuple[float, float, tuple[float, float]]]) -> Figures:
    """From the probability, estimate and interval of each possible sample."""
    square = coverage = width = 0.0
    for chance, rate, (low, high) in outcomes:
        square += chance * (rate - truth) ** 2
        coverage += chance * (low <= truth <= high)
        width += chance * (high - low)
    return Figures(math.sqrt(square), coverage, width)


def labels_alone(group: Group, labels: int) -> Figures:
    """A random sample of all attempts, with Wilson's interval."""
    possible = hypergeometric(group.size, sum(group.successes.values()), labels)
    return figures(group.truth, ((chance, hits / labels, wilson(hits, labels)) for hits, chance in possible))


def corrected(group: Group, sizes: Sequence[int]) -> Figures:
    """Samples of both verdicts."""

    def outcomes() -> Iterator[tuple[float, float, tuple[float, float]]]:
        ways = [
            list(hypergeometric(group.sizes[verdict], group.successes[verdict], count))
            for verdict, count in zip(group.sizes, sizes, strict=True)
        ]
        for first, chance in ways[0]:
            for second, other in ways[1]:
                estimated = estimate(group.strata((first, second), sizes))
                assert estimated is not None
                yield chance * other, estimated.rate, estimated.interval

    return figures(group.truth, outcomes())


def sampled(group: Group, sizes: Sequence[int], samples: int) -> Figures:
    """The same by drawing at random."""
    draw = random.Random(45)

    def outcomes() -> Iterator[tuple[float, float, tuple[float, float]]]:
        for _ in range(samples):
            successes = [
                sum(draw.sample([1] * group.successes[name] + [0] * (size - group.successes[name]), count))
                for (name, size), count in zip(group.sizes.items(), sizes, strict=True)
            ]
            estimated = estimate(group.strata(successes, sizes))
            assert estimated is not None
            yield 1 / samples, estimated.rate, estimated.interval

    return figures(group.truth, outcomes())


def report(column: str, groups: Sequence[Group], samples: int) -> Iterator[str]:
    """Print the groups' figures; yields what is not covered well enough."""
    print(f"\nBy {column}. Points of success rate; coverage of 95 % intervals in %.")
    print(f"{'':42} {'n':>4} {'judge':>7} {'labels alone':>14} {'corrected':>14} {'width':>6}  drawn")
    errors: dict[int, list[tuple[float, float, float, float]]] = {}
    for group in groups:
        is_required = column == "agent" or min(group.sizes.values()) >= MIN_STRATUM
        note = "" if is_required else f" (listed only: a verdict was given fewer than {MIN_STRATUM} times)"
        rates = f"judge {100 * group.judged:.1f} %, people {100 * group.truth:.1f} %"
        print(f"{group.name[:60]}: {group.size} attempts, {rates}{note}")
        for labels in (number for number in NUMBERS if number <= group.size):
            sizes = allocate(group.strata(), labels)
            judge, alone, with_labels = (
                abs(group.judged - group.truth),
                labels_alone(group, labels),
                corrected(group, sizes),
            )
            line = f"{'':42} {labels:>4} {100 * judge:>7.1f}"
            line += "".join(f" {100 * each.rmse:>6.1f} {100 * each.coverage:>5.1f} %" for each in (alone, with_labels))
            line += f" {100 * with_labels.width:>6.1f}  {sizes[0]} + {sizes[1]}"
            if samples:
                by_chance = sampled(group, sizes, samples)
                error = 100 * math.sqrt(abs(by_chance.coverage * (1 - by_chance.coverage)) / samples)
                line += f"  drawn {samples} times: {100 * by_chance.rmse:.1f}"
                line += f", {100 * by_chance.coverage:.1f} ± {error:.1f} %"
            print(line)
            errors.setdefault(labels, []).append((judge, alone.rmse, with_labels.rmse, with_labels.coverage))
            if is_required and with_labels.coverage < MIN_COVERAGE:
                yield f"{group.name}, {labels} labels: {100 * with_labels.coverage:.1f} %"
    print(f"mean over {column}s")
    for labels, listed in errors.items():
        means = [100 * math.fsum(each) / len(listed) for each in zip(*listed, strict=True)]
        print(f"{'':42} {labels:>4} {means[0]:>7.1f} {means[1]:>6.1f}         {means[2]:>6.1f} {means[3]:>5.1f} %")


def other_agents(groups: Sequence[Group]) -> None:
    """What correcting with the other agents' labels would give: sensitivity and specificity are not transferable."""
    print("\nCorrected with sensitivity and specificity of the other agents: error in points")
    for group in groups:
        others = [other for other in groups if other is not group]
        successes = sum(sum(other.successes.values()) for other in others)
        failures = sum(other.size for other in others) - successes
        sensitivity = sum(other.successes["success"] for other in others) / successes
        specificity = sum(other.sizes["failure"] - other.successes["failure"] for other in others) / failures
        rate = (group.judged + specificity - 1) / (sensitivity + specificity - 1)
        print(f"{group.name[:60]:42} {100 * (rate - group.truth):+.1f}")


def compared(groups: Sequence[Group], python: str) -> Iterator[str]:
    """Compare estimates with two packages; yields the differences."""
    draw, samples = random.Random(7), []
    for group in groups:
        for labels in NUMBERS[:3]:
            sizes = allocate(group.strata(), labels)
            pools = {
                name: [1] * group.successes[name] + [0] * (size - group.successes[name])
                for name, size in group.sizes.items()
            }
            draws = [draw.sample(pools[name], count) for name, count in zip(pools, sizes, strict=True)]
            estimated = estimate(group.strata([sum(each) for each in draws], sizes))
            assert estimated is not None
            samples.append({"sizes": list(group.sizes.values()), "labels": draws, "rate": estimated.rate})
    payload = json.dumps({"samples": samples, "ratings": []})
    completed = subprocess.run([python, str(PROGRAM)], input=payload, capture_output=True, text=True, check=True)
    for package, rates in json.loads(completed.stdout).items():
        if package == "alpha":
            continue
        largest = max(abs(rate - sample["rate"]) for rate, sample in zip(rates, samples, strict=True))
        print(f"{package}: {len(rates)} estimates, largest difference {largest:.1e}")
        if largest > 1e-9:
            yield f"{package}: estimates differ by {largest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--packages", default="")
    options = parser.parse_args()
    pairs = [pair for pair in read_pairs(options.file) if pair.excluded is None]
    # Published tables repeat all rows under the agent `all`.
    pairs = [pair for pair in pairs if pair.groups.get("agent") != "all"]
    print(f"{len(pairs)} attempts of {len(agreement(pairs).groups['agent'])} agents")
    agents = groups_of(pairs, "agent")
    problems = list(report("agent", agents, options.samples))
    problems += report("benchmark", groups_of(pairs, "benchmark"), options.samples)
    other_agents(agents)
    if options.packages:
        problems += compared(agents, options.packages)
    for problem in problems:
        print(f"not good enough: {problem}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
