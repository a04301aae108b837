"""Rates of stratified samples and Krippendorff's alpha by two other packages. Runs with `requirements-rates.lock`.

Standard input has `samples`: `sizes` of the strata (the judge's successes, then its failures), and the `labels` of the
drawn attempts of each, 1 or 0. Half a success and half a failure are added for those without a label. It also has
`ratings`: for each table, a list of 1, 0 or null by labeller. Standard output has the rates by package, and the alphas.
"""

import json
import sys
from typing import Any

import numpy as np
import ppi_py
import truescore


def predicted(sample: dict[str, Any]) -> float:
    """By `ppi_py`, stratum by stratum: what was labelled is known, the rest gets the prediction-powered mean."""
    successes = 0.0
    for verdict, size, labels in zip((1.0, 0.0), sample["sizes"], sample["labels"], strict=True):
        successes += sum(labels)
        if rest := size - len(labels):
            # Weights stand for parts of a label: the package takes their mean to be 1.
            known, weights = np.array([*labels, 1.0, 0.0]), np.array([*[1.0] * len(labels), 0.5, 0.5])
            weights *= len(weights) / weights.sum()
            mean = ppi_py.ppi_mean_pointestimate(
                known, np.full(len(known), verdict), np.full(rest, verdict), lam=1.0, w=weights
            )
            successes += rest * float(np.squeeze(mean))
    return successes / sum(sample["sizes"])


def weighted(sample: dict[str, Any]) -> float:
    """By `truescore`: post-stratified, with the labelled attempts of a verdict and its other ones as two strata."""
    judge: list[float] = []
    gold: list[float] = []
    strata: list[str] = []
    weights: dict[str, float] = {}
    whole = sum(sample["sizes"])
    for name, verdict, size, labels in zip("sf", (1.0, 0.0), sample["sizes"], sample["labels"], strict=True):
        # Every label twice, and one more of each: half a success and half a failure for each label.
        for part, result, weight in (
            ("labelled", labels, len(labels) / whole),
            ("rest", [*labels, *labels, 1, 0], (size - len(labels)) / whole),
        ):
            if weight:
                weights[name + part] = weight
                gold += result
                judge += [verdict] * len(result)
                strata += [name + part] * len(result)
    result = truescore.post_stratified_estimate(
        np.array(judge), np.array(gold, dtype=float), np.arange(len(gold)), np.array(strata), weights, min_gold=2
    )
    return float(result.point)


def alpha(ratings: list[list[float | None]]) -> float:
    """By `truescore`; `ratings` has a list for each labeller."""
    table = np.array([[np.nan if each is None else each for each in row] for row in ratings], dtype=float)
    return float(truescore.krippendorff_alpha(table))


asked = json.load(sys.stdin)
json.dump(
    {
        "ppi-python": [predicted(sample) for sample in asked["samples"]],
        "truescore": [weighted(sample) for sample in asked["samples"]],
        "alpha": [alpha(ratings) for ratings in asked["ratings"]],
    },
    sys.stdout,
)
