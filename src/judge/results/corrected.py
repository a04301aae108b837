"""Success rates corrected for the judge's error: people's labels of a sample, stratified by the counted verdict. Pure.

How many attempts of each verdict there are is known, so that labels only say how often the judge errs in either one.
A stratum's share of successes among unlabelled attempts is estimated with half a success and half a failure more than
were found, so that a stratum without an error is not taken to be free of them; what was labelled is known (finite
population). Attempts of one website are similar: with several websites, the variance comes from the websites' sums
where it is larger (`clustered`). Intervals are normal, at 95 %.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judge.results.statistics import Z95

# In the detail of a submission.
CORRECTED = "corrected_success_rate"
LABELS_KEY = "labels"
MIN_LABELS = 20
MIN_OF_STRATUM = 5
# The expected standard deviation of labels within a stratum before there are any: judges err about as often in both.
PRIOR_DEVIATIONS: Mapping[str, float] = {"success": 0.40, "failure": 0.36}


class SampleLabel(NamedTuple):
    """A label of a drawn attempt, and the website, by which attempts are clustered."""

    website: str
    is_success: bool


@dataclass(frozen=True)
class Stratum:
    """The attempts of one counted verdict, of which some were drawn at random and labelled.

    `is_settled`: rules decided them, such as the step budget. They are failures that no label can change.
    """

    verdict: str
    size: int
    labels: Sequence[SampleLabel] = ()
    is_settled: bool = False

    @property
    def successes(self) -> int:
        """The labels that say success."""
        return sum(label.is_success for label in self.labels)

    @property
    def missing(self) -> int:
        """How many labels it lacks: it needs `MIN_OF_STRATUM`, or all of it."""
        return 0 if self.is_settled else max(0, min(MIN_OF_STRATUM, self.size) - len(self.labels))

    @property
    def share(self) -> float:
        """The expected share of successes among those without a label."""
        return (self.successes + 0.5) / (len(self.labels) + 1)

    @property
    def deviation(self) -> float:
        """The expected standard deviation of its labels, from which sizes of samples follow."""
        return math.sqrt(self.share * (1 - self.share)) if self.labels else PRIOR_DEVIATIONS[self.verdict]


@dataclass(frozen=True)
class Estimate:
    """A rate, or a difference of two, as a fraction. `by_website` has what each website's labels add to its error.

    `spread` is the variance if all labels are independent.
    """

    rate: float
    spread: float
    by_website: Mapping[str, float]
    lowest: float = 0.0

    @property
    def standard_error(self) -> float:
        """The larger of the two that labels suggest: as independent ones, or clustered by website."""
        count = len(self.by_website)
        clustered = 0.0
        if count > 1:
            # As if the websites were drawn, of which there are few.
            clustered = math.fsum(each * each for each in self.by_website.values()) * count / (count - 1)
        return math.sqrt(max(self.spread, clustered))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        half = Z95 * self.standard_error
        return max(self.lowest, self.rate - half), min(1.0, self.rate + half)

    def minus(self, other: "Estimate") -> "Estimate":
        """This rate minus another one, whose labels are of other attempts."""
        websites = self.by_website.keys() | other.by_website.keys()
        differences = {
            name: self.by_website.get(name, 0.0) - other.by_website.get(name, 0.0) for name in sorted(websites)
        }
        return Estimate(self.rate - other.rate, self.spread + other.spread, differences, lowest=-1.0)


def missing_labels(strata: Sequence[Stratum]) -> int:
    """How many more labels an estimate needs at least; 0 if it can be made."""
    open_ = [stratum for stratum in strata if not stratum.is_settled]
    labels, sizes = sum(len(each.labels) for each in open_), sum(each.size for each in open_)
    return max(min(MIN_LABELS, sizes) - labels, sum(each.missing for each in open_))


def estimate(strata: Sequence[Stratum]) -> Estimate | None:
    """The success rate by people's labels over all attempts of the strata; `None` with too few labels or no attempt."""
    total = sum(stratum.size for stratum in strata)
    if not total or missing_labels(strata):
        return None
    rates, spread, by_website = [], [], defaultdict[str, list[float]](list)
    for stratum in strata:
        labelled = len(stratum.labels)
        if stratum.is_settled or not labelled:
            continue
        rest, share = stratum.size - labelled, stratum.share
        rates.append((stratum.successes + rest * share) / total)
        # What one label adds: nothing if all attempts of the stratum are labelled.
        weight = stratum.size / total * math.sqrt(rest / stratum.size) / labelled
        spread.append(labelled * weight**2 * share * (1 - share))
        for label in stratum.labels:
            by_website[label.website].append(weight * (label.is_success - share))
    sums = {name: math.fsum(by_website[name]) for name in sorted(by_website)}
    return Estimate(math.fsum(rates), math.fsum(spread), sums)
