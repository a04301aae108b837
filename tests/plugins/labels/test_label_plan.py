"""How many labels are drawn of each verdict, and that estimates from such draws hold."""

import math
import random
from collections.abc import Sequence
from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.labels.label_plan import allocate
from judge.results.corrected import MIN_OF_STRATUM, SampleLabel, Stratum, estimate

sizes = st.integers(min_value=0, max_value=400)


@given(successes=sizes, failures=sizes, settled=sizes, total=st.integers(min_value=0, max_value=300))
def test_a_draw_is_as_large_as_asked_and_gives_each_verdict_what_an_estimate_needs(
    successes: int, failures: int, settled: int, total: int
) -> None:
    strata = [Stratum("success", successes), Stratum("failure", failures), Stratum("failure", settled, is_settled=True)]
    sample_sizes = allocate(strata, total)
    least = [min(MIN_OF_STRATUM, successes), min(MIN_OF_STRATUM, failures)]
    assert sample_sizes[2] == 0
    assert all(need <= count <= each.size for need, count, each in zip(least, sample_sizes[:2], strata, strict=False))
    assert sum(sample_sizes) == max(sum(least), min(total, successes + failures))


def test_the_larger_stratum_is_drawn_from_in_proportion_to_size_and_deviation() -> None:
    assert allocate([Stratum("success", 50), Stratum("failure", 250)], 60) == [11, 49]


def run_of(draw: random.Random, size: int, errs: Sequence[float]) -> tuple[list[tuple[str, bool]], float]:
    """Attempts as verdict and truth, where the judge errs so often in each verdict; and people's rate."""
    attempts = []
    for _ in range(size):
        verdict = draw.random() < 0.3
        attempts.append(("success" if verdict else "failure", verdict != (draw.random() < errs[not verdict])))
    return attempts, fmean(truth for _, truth in attempts)


def test_intervals_cover_the_rate_of_people_where_the_judge_does_not() -> None:
    draw, covered = random.Random(5), 0
    for _ in range(400):
        attempts, truth = run_of(draw, 200, (0.2, 0.25))
        pools = {name: [each for verdict, each in attempts if verdict == name] for name in ("success", "failure")}
        strata = [Stratum(name, len(pool)) for name, pool in pools.items()]
        sample_sizes = allocate(strata, 40)
        estimated = estimate(
            [
                Stratum(each.verdict, each.size, [SampleLabel("", one) for one in draw.sample(pools[each.verdict], n)])
                for each, n in zip(strata, sample_sizes, strict=True)
            ]
        )
        assert estimated is not None
        covered += estimated.interval[0] <= truth <= estimated.interval[1]
    # 95 %, less three times the error of 400 samples.
    assert covered / 400 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)
