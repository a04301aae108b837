"""The order of runs under every judge that judged all of them, under checks, and by people's labels.

How much two orders agree is Kendall's tau (tau-b, for ties). Its interval comes from resampling the tasks that all runs
have; for labels from drawing each run's corrected rate from its estimate.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from judge.plugins.labels.corrections import LabelledRun, has_labels
from judge.plugins.labels.labelled import attempts_of
from judge.records.verdicts import CHECKS, method_of
from judge.results.given_verdicts import given_verdicts_in, judge_names
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.models import Record

COUNTED, LABELS = "counted verdicts", "people's labels (corrected)"
_RESAMPLES = 1_000
_SEED = 1938
# By task, the share of scored attempts that succeeded.
TaskRates = Mapping[str, float]


class Order(Record):
    """The runs by success rate under one judge. `tau` compares their order with the counted verdicts'.

    `swapped` are the pairs of runs that change places. `tau` is `None` if a side has all runs tied.
    """

    judge: str
    rates: Mapping[str, float]
    tau: float | None
    interval_95: tuple[float, float] | None
    swapped: tuple[tuple[str, str], ...]


class RankStability(Record):
    """The orders of runs over the tasks that all of them have; the first one is the counted verdicts'."""

    tasks: int
    orders: tuple[Order, ...]


@dataclass(frozen=True)
class _Judged:
    """What one judge says of all runs: a draw gives the rates of the runs for resampled tasks."""

    rates: Mapping[str, float]
    draw: Callable[[Sequence[str], random.Random], Mapping[str, float]]


def rank_stability(runs: Sequence[RunStore]) -> RankStability:
    """Compare the orders of runs. Raises `ConfigError` for runs without a common task, or without labels and judges."""
    names = [run.run_id for run in runs]
    counted = {run.run_id: _counted(run) for run in runs}
    common = sorted(set.intersection(*(set(rates) for rates in counted.values())))
    if not common:
        raise ConfigError("the runs have no scored task in common", remedy="name runs of one scenario")
    orders = {COUNTED: _judged(counted, common)}
    orders |= {name: _judged(verdicts_by_task, common) for name, verdicts_by_task in _by_judge(runs, common).items()}
    if (labelled := _labelled(runs, common)) is not None:
        orders[LABELS] = labelled
    draw = random.Random(_SEED)
    samples = [draw.choices(common, k=len(common)) for _ in range(_RESAMPLES)]
    reference = orders[COUNTED]
    samples_drawn = [reference.draw(sample, draw) for sample in samples]
    return RankStability(
        tasks=len(common),
        orders=tuple(
            _order(name, each, reference, names, samples, samples_drawn, draw) for name, each in orders.items()
        ),
    )


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Kendall's tau-b of two rankings of the same things; `None` if all are tied in one of them."""
    signs = [(_sign(one[a] - one[b]), _sign(other[a] - other[b])) for a, b in combinations(range(len(one)), 2)]
    first, later = sum(x != 0 for x, _ in signs), sum(y != 0 for _, y in signs)
    if not first or not later:
        return None
    tau: float = sum(x * y for x, y in signs) / (first * later) ** 0.5
    return tau


def _sign(value: float) -> int:
    # Rates that are equal may differ by rounding errors.
    return 0 if abs(value) < 1e-12 else 1 if value > 0 else -1


def _order(
    name: str,
    judged: _Judged,
    reference: _Judged,
    runs: Sequence[str],
    samples: Sequence[Sequence[str]],
    shares: Sequence[Mapping[str, float]],
    draw: random.Random,
) -> Order:
    before, after = ([each.rates[run] for run in runs] for each in (reference, judged))
    is_reference = judged is reference
    taus = []
    for sample, counted in zip(samples, shares, strict=True) if not is_reference else ():
        scores = judged.draw(sample, draw)
        tau = kendall_tau([counted[run] for run in runs], [scores[run] for run in runs])
        taus += [tau] if tau is not None else []
    taus.sort()
    tail = len(taus) // 40
    swapped = [
        (runs[a], runs[b])
        for a, b in combinations(range(len(runs)), 2)
        if _sign(before[a] - before[b]) * _sign(after[a] - after[b]) < 0
    ]
    return Order(
        judge=name,
        rates={run: round(100 * judged.rates[run], 1) for run in runs},
        tau=None if is_reference else kendall_tau(before, after),
        interval_95=(taus[tail], taus[-1 - tail]) if taus else None,
        swapped=tuple(swapped),
    )


def _judged(by_run: Mapping[str, TaskRates], common: Sequence[str]) -> _Judged:
    def draw(sample: Sequence[str], _: random.Random) -> Mapping[str, float]:
        return {run: fmean(rates[task] for task in sample) for run, rates in by_run.items()}

    return _Judged({run: fmean(rates[task] for task in common) for run, rates in by_run.items()}, draw)


def _counted(run: RunStore) -> TaskRates:
    outcomes = defaultdict[str, list[bool]](list)
    for attempt in attempts_of(run):
        outcomes[attempt.key.task_id].append(attempt.verdict == "success")
    return {task: fmean(each) for task, each in outcomes.items()}


def _by_judge(runs: Sequence[RunStore], common: Sequence[str]) -> dict[str, dict[str, TaskRates]]:
    """By judge, the rates of those that decided every common task in all runs."""
    outcomes = defaultdict[str, dict[str, dict[str, list[bool]]]](dict)
    plain: dict[str, str] = {}
    for run in runs:
        for task in run.tasks():
            for given in given_verdicts_in([task.folder]) if task.name in common else ():
                if given.outcome in ("success", "failure"):
                    judge = CHECKS if method_of(given.judge) == CHECKS else given.judge
                    plain[judge] = CHECKS if judge == CHECKS else given.name
                    of_run = outcomes[judge].setdefault(run.run_id, {})
                    of_run.setdefault(task.name, []).append(given.outcome == "success")
    names = judge_names(plain)
    return {
        str(names[judge]): {run: {task: fmean(each) for task, each in tasks.items()} for run, tasks in by_run.items()}
        for judge, by_run in sorted(outcomes.items())
        if len(by_run) == len(runs) and all(len(tasks) == len(common) for tasks in by_run.values())
    }


def _labelled(runs: Sequence[RunStore], common: Sequence[str]) -> _Judged | None:
    values = {}
    for run in runs:
        correction = LabelledRun(run).correction_on(set(common)) if has_labels(run) else None
        estimate = correction.estimate if correction else None
        if estimate is None:
            return None
        values[run.run_id] = estimate

    def draw(_: Sequence[str], rng: random.Random) -> Mapping[str, float]:
        return {run: rng.gauss(each.rate, each.standard_error) for run, each in values.items()}

    return _Judged({run: each.rate for run, each in values.items()}, draw)
