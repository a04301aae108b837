"""What `wabe score --repeat` and `--judges` report: how often a judge contradicts itself, and how far several agree."""

import itertools
from collections.abc import Mapping
from typing import Any

from judge.results.agreement import Interval, LabelledVerdict, rates
from judge.results.reliability import Outcomes, SelfAgreement
from shared.models import Record


class JudgePair(Record):
    """Two judges on the trajectories that both decided; `kappa` is `None` if it is not defined."""

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: float | None
    kappa_interval_95: Interval | None


class JudgeReport(Record):
    """The totals of each repeat of a judge, and the judge's agreement with itself."""

    repeats: tuple[dict[str, Any], ...]
    self_agreement: SelfAgreement


class Reliability(Record):
    """What `wabe score --repeat` and `--judges` report: each judge by its name, and each pair of judges."""

    judges: dict[str, JudgeReport]
    pairs: tuple[JudgePair, ...]


def compare_judges(judges: Mapping[str, Outcomes]) -> tuple[JudgePair, ...]:
    """Each pair of judges."""
    compared = []
    for (first, ones), (second, others) in itertools.combinations(judges.items(), 2):
        decided = [
            (ones[each], others[each]) for each in ones if {ones[each], others.get(each)} <= {"success", "failure"}
        ]
        agreement = rates([LabelledVerdict(human=one == "success", judge=other == "success") for one, other in decided])
        compared.append(
            JudgePair(
                first=first,
                second=second,
                n=agreement.n,
                agreement=agreement.accuracy,
                kappa=agreement.kappa,
                kappa_interval_95=agreement.intervals_95["kappa"],
            )
        )
    return tuple(compared)
