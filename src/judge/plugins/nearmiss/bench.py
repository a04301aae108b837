"""How often judges are right on attempts whose outcome is known, and where they find the fault."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from judge.judges.rescoring import Scored
from judge.plugins.nearmiss.corpus import KnownAttempt
from judge.results.agreement import Interval, LabelledVerdict, Rates, rates
from judge.results.reliability import SelfAgreement, self_agreement
from judge.results.significance import holm
from judge.results.statistics import interval_95, mcnemar_exact, tallies_of, wilson
from judge.results.submission import total_cost
from judge.results.trivial_judges import JudgeFloor, Telemetry, floor_of, trivial_verdicts
from shared.models import Record

# The judge whose verdicts the corpus itself has.
OWN_CHECKS = "the tasks' checks"
# A fault is located if the action that a judge names is at most so far from it.
_NEAR = 1


class Share(Record):
    """So many of `of`, with Wilson's 95 % interval."""

    n: int
    of: int
    interval_95: Interval

    @classmethod
    def among(cls, hits: Sequence[bool]) -> "Share":
        """The share of true ones."""
        return cls(n=sum(hits), of=len(hits), interval_95=wilson(sum(hits), len(hits)))

    def __str__(self) -> str:
        return f"{self.n} of {self.of}"


class BenchedJudge(Record):
    """What a judge said of the attempts that it decided. Intervals of `accuracy` are clustered by task.

    `located`: of the near misses that it failed, those whose fault it found within one action; `None` for judges that
    never name one.
    """

    name: str
    unscored: int
    rates: Rates
    accuracy_interval_95: Interval
    balanced_accuracy: float | None
    by_operator: dict[str, Rates]
    located: Share | None = None
    agreement_with_itself: SelfAgreement | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    floor: JudgeFloor | None = None


class PairedTest(Record):
    """Two judges on the attempts that both decided: how often only one of them was right.

    `p_value`: of McNemar's exact test, corrected for the number of pairs (Holm).
    """

    first: str
    second: str
    only_first: int
    only_second: int
    p_value: float


class JudgesBench(Record):
    """Judges on a corpus."""

    attempts: int
    tasks: int
    judges: tuple[BenchedJudge, ...]
    pairs: tuple[PairedTest, ...]


@dataclass
class BenchTally:
    """What one judge said, by attempt: the first time, and each time that it was asked."""

    name: str
    repeats: list[dict[str, Scored]] = field(default_factory=list)
    # How long each newly decided attempt took.
    seconds: list[float] = field(default_factory=list)


def benched(
    corpus: Sequence[KnownAttempt], tallies: Sequence[BenchTally], telemetry: Mapping[str, Telemetry]
) -> JudgesBench:
    """The figures of each judge, of the tasks' own checks, and of trivial judges; and each pair of judges."""
    by_id = {each.task_id: each for each in corpus}
    said: dict[str, dict[str, bool]] = {}
    judges = []
    for each in tallies:
        decided = {name: one.outcome for name, one in each.repeats[0].items()}
        said[each.name] = {name: one == "success" for name, one in decided.items() if one in ("success", "failure")}
        judges.append(_of_model(each, by_id, said[each.name], telemetry))
    pairs = _pairs(by_id, said)
    said_by_rule = {OWN_CHECKS: {each.task_id: each.checks for each in corpus}}
    known = [(telemetry[each.task_id], each.human) for each in corpus]
    for name, verdicts in trivial_verdicts(known).items():
        said_by_rule[name] = {each.task_id: verdict for each, verdict in zip(corpus, verdicts, strict=True)}
    judges += [_figures(name, by_id, own) for name, own in said_by_rule.items()]
    tasks = {each.task for each in corpus}
    return JudgesBench(attempts=len(corpus), tasks=len(tasks), judges=tuple(judges), pairs=pairs)


def _of_model(
    tally: BenchTally, corpus: Mapping[str, KnownAttempt], said: Mapping[str, bool], telemetry: Mapping[str, Telemetry]
) -> BenchedJudge:
    verdicts = {name: each.verdict for name, each in tally.repeats[0].items() if each.verdict}
    named = {name: each.wrong_action for name, each in verdicts.items()}
    faults = [(named[name], fault) for name, yes in said.items() if not yes and (fault := corpus[name].faulty)]
    repeats = [{name: each.outcome for name, each in one.items()} for one in tally.repeats]
    known = {
        "located": Share.among([action is not None and abs(action - fault) <= _NEAR for action, fault in faults])
        if any(action is not None for action in named.values())
        else None,
        "agreement_with_itself": self_agreement(repeats) if len(repeats) > 1 else None,
        "cost_usd": total_cost([each.cost for each in verdicts.values()]),
        "seconds": fmean(tally.seconds) if tally.seconds else None,
        "floor": floor_of([(telemetry[name], corpus[name].human, is_success) for name, is_success in said.items()]),
    }
    return _figures(tally.name, corpus, said, unscored=len(tally.repeats[0]) - len(said)).model_copy(update=known)


def _figures(
    name: str, corpus: Mapping[str, KnownAttempt], said: Mapping[str, bool], *, unscored: int = 0
) -> BenchedJudge:
    pairs = [(corpus[attempt], verdict) for attempt, verdict in said.items()]
    of_all = rates([LabelledVerdict(human=each.human, judge=verdict) for each, verdict in pairs])
    right = tallies_of((each.task_id, "success" if each.human == verdict else "failure") for each, verdict in pairs)
    recall, false_positives = of_all.recall, of_all.false_positive_rate
    balanced = None if recall is None or false_positives is None else (recall + 1 - false_positives) / 2
    misses = [(each.operator, LabelledVerdict(human=False, judge=yes)) for each, yes in pairs if not each.human]
    operators = sorted({operator for operator, _ in misses})
    return BenchedJudge(
        name=name,
        unscored=unscored,
        rates=of_all,
        accuracy_interval_95=interval_95(right.values(), [corpus[name].task for name in right]),
        balanced_accuracy=balanced,
        by_operator={name: rates([each for operator, each in misses if operator == name]) for name in operators},
    )


def _pairs(corpus: Mapping[str, KnownAttempt], said: Mapping[str, Mapping[str, bool]]) -> tuple[PairedTest, ...]:
    found = []
    for (first, ones), (second, others) in itertools.combinations(said.items(), 2):
        both = [
            (ones[name] == corpus[name].human, others[name] == corpus[name].human) for name in ones if name in others
        ]
        only_first, only_second = both.count((True, False)), both.count((False, True))
        found.append((first, second, only_first, only_second))
    corrected = holm([mcnemar_exact(gained, lost) for _, _, gained, lost in found])
    return tuple(
        PairedTest(first=first, second=second, only_first=gained, only_second=lost, p_value=p_value)
        for (first, second, gained, lost), p_value in zip(found, corrected, strict=True)
    )
