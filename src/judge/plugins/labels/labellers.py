"""How well people agree with each other: each pair of labellers, and all of them (Krippendorff's alpha). Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from judge.plugins.labels.label_files import AttemptKey, LabelWord, Opinions, rule_of
from judge.results.agreement import LabelledVerdict, Rates, rates
from shared.models import Record

_WORDS = {"success": True, "failure": False}


class LabellerPair(Record):
    """Two labellers on the attempts that both could decide. `rates` has the first one as `human`."""

    one: str
    other: str
    rates: Rates


class Conflict(Record):
    """An attempt on which people differ: their labels, and the adjudicated one if there is one."""

    task_id: str
    epoch: int
    labels: Mapping[str, LabelWord]
    notes: Mapping[str, str]
    adjudicated: LabelWord | None


class LabellerAgreement(Record):
    """The agreement of people. `alpha` is `None` if no attempt has two labels, or all labels are the same.

    Labels that could not be given count as missing, except in `conflicts`. `rule` made one label of several.
    """

    labellers: Mapping[str, int]
    attempts: int
    pairs: tuple[LabellerPair, ...]
    alpha: float | None
    conflicts: tuple[Conflict, ...]
    rule: str


def labeller_agreement(opinions: Mapping[AttemptKey, Opinions]) -> LabellerAgreement:
    """The agreement of everyone who labelled these attempts; adjudicated labels are not part of it."""
    labellers = Counter(name for each in opinions.values() for name in each.lines)
    blind = {
        key: {name: _WORDS[str(line.label)] for name, line in each.decided.items()} for key, each in opinions.items()
    }
    pairs = []
    for one, other in combinations(sorted(labellers), 2):
        both = [labels for labels in blind.values() if one in labels and other in labels]
        if both:
            compared = [LabelledVerdict(human=each[one], judge=each[other]) for each in both]
            pairs.append(LabellerPair(one=one, other=other, rates=rates(compared)))
    return LabellerAgreement(
        labellers=dict(sorted(labellers.items())),
        attempts=len(opinions),
        pairs=tuple(pairs),
        alpha=krippendorff_alpha([list(labels.values()) for labels in blind.values()]),
        conflicts=tuple(_conflict(key, each) for key, each in sorted(opinions.items()) if each.is_conflict),
        rule=rule_of(list(opinions.values())),
    )


def krippendorff_alpha(units: Sequence[Sequence[bool]]) -> float | None:
    """Krippendorff's alpha of nominal labels, of which any may be missing; `units` are the labels of each attempt.

    `None` if no unit has two labels, or all labels are the same.
    """
    paired = [unit for unit in units if len(unit) > 1]
    counts = Counter(label for unit in paired for label in unit)
    total = counts.total()
    by_chance = 2 * counts[True] * counts[False]
    if not by_chance:
        return None
    # Each unit counts as many pairs as it has labels.
    observed = sum(2 * sum(unit) * (len(unit) - sum(unit)) / (len(unit) - 1) for unit in paired)
    return 1 - (total - 1) * observed / by_chance


def _conflict(key: AttemptKey, opinions: Opinions) -> Conflict:
    lines = {name: line for name, line in opinions.lines.items() if not line.adjudicates}
    return Conflict(
        task_id=key.task_id,
        epoch=key.epoch,
        labels={name: line.label for name, line in lines.items() if line.label is not None},
        notes={name: line.note for name, line in lines.items() if line.note},
        adjudicated=opinions.adjudicated,
    )
