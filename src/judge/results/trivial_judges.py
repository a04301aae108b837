"""Judges that look at no page, as the floor for a judge model: how often each is right on the same attempts.

One always says yes; one says yes if the attempt ended within its budget; one if the answer repeats the task; and one
weighs telemetry (steps against the reference, repeats, errors, the last action), by a logistic model fitted on
the attempts at other tasks.
"""

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.records.tools import tool_of
from judge.records.verdicts import CHECKS
from judge.results.agreement import LabelledVerdict, required_verdicts
from judge.results.ground_truth import newest
from judge.results.statistics import mcnemar_exact
from judge.trajectory.files import read_attempt
from judge.trajectory.record import JUDGED_ENDS, Attempt
from shared.errors import TrajectoryError
from shared.models import Record
from shared.replies import FINISH

_WORD = re.compile(r"\w{3,}")
# What the tool of the last action does.
_LAST_KINDS = ("presses", "writes", "goes")
# Tasks are fitted in so many parts at most; each part is judged by what the others taught.
_MAX_PARTS = 10
_ROUNDS, _RIDGE = 8, 1.0
# A judge is better if a paired test would find such a difference by chance less often than this.
_LEVEL = 0.05


class Telemetry(NamedTuple):
    """What these judges know of an attempt. `features` are the numbers that the logistic model weighs."""

    task: str
    is_within_budget: bool = True
    repeats_task: bool = False
    features: tuple[float, ...] = ()

    @classmethod
    def of(cls, attempt: Attempt, reference_length: int | None = None) -> "Telemetry":
        """From a recorded attempt; `reference_length` is used where the task declares none."""
        asked = set(_WORD.findall(attempt.task.task.casefold()))
        said = asked & set(_WORD.findall((attempt.final_answer or "").casefold()))
        repeats_task = bool(asked) and 2 * len(said) >= len(asked)
        acts = [step for step in attempt.steps if step.action and step.action.tool != FINISH]
        lines = attempt.action_history
        steps, reference = len(acts), attempt.task.reference_length or reference_length
        beyond = steps / reference - 1 if reference else 0.0
        last = tool_of(acts[-1].action.tool).does if acts and acts[-1].action else ""
        features = (
            math.log1p(steps),
            steps / attempt.max_steps,
            beyond,
            abs(beyond),
            sum(not (step.outcome and step.outcome.ok) for step in acts) / max(steps, 1),
            (len(lines) - len(set(lines))) / max(len(lines), 1),
            float(bool(attempt.final_answer)),
            float(repeats_task),
            *(float(last == kind) for kind in _LAST_KINDS),
        )
        return cls(attempt.task.task_id, attempt.stop_reason in JUDGED_ENDS, repeats_task, features)


class JudgeFloor(Record):
    """How often a judge is right on `n` attempts, and how often each trivial judge is.

    `p_value`: of McNemar's exact test against the best of them.
    """

    n: int
    right: int
    trivial: dict[str, int]
    p_value: float

    @property
    def best(self) -> str:
        """The trivial judge right most often."""
        return max(self.trivial, key=self.trivial.__getitem__)

    @property
    def is_beaten(self) -> bool:
        """Whether the judge is right more often than any trivial one, and not by chance."""
        return self.right > self.trivial[self.best] and self.p_value < _LEVEL

    def words(self, judge: str) -> str:
        """What to say of a judge that does not beat them; empty if it does."""
        if self.is_beaten:
            return ""
        is_more = self.right > self.trivial[self.best]
        verb = "is not shown to beat" if is_more else "does not beat"
        return (
            f"{judge} {verb} a judge that looks at no page ({self.best}): right on {self.right} of {self.n} attempts,"
            f" that one on {self.trivial[self.best]} (paired test: p = {self.p_value:.2g})"
        )


def trivial_verdicts(attempts: Sequence[tuple[Telemetry, bool]]) -> dict[str, list[bool]]:
    """What each trivial judge says of these attempts, given with what is true."""
    seen = [each for each, _ in attempts]
    verdicts = {"always yes": [True] * len(seen)}
    if any(each.features for each in seen):
        verdicts["finished within the budget"] = [each.is_within_budget for each in seen]
        verdicts["the answer repeats the task"] = [each.repeats_task for each in seen]
        if (weighed := _by_telemetry(attempts)) is not None:
            verdicts["telemetry"] = weighed
    return verdicts


def floor_of(judged: Sequence[tuple[Telemetry, bool, bool]]) -> JudgeFloor | None:
    """The floor under a judge: of each attempt what is true, and what the judge said. `None` without attempts."""
    if not judged:
        return None
    verdicts = trivial_verdicts([(telemetry, truth) for telemetry, truth, _ in judged])
    rights = {
        name: [said == truth for said, (_, truth, _) in zip(of, judged, strict=True)] for name, of in verdicts.items()
    }
    own = [truth == said for _, truth, said in judged]
    trivial = {name: sum(each) for name, each in rights.items()}
    best = rights[max(trivial, key=trivial.__getitem__)]
    pairs = list(zip(own, best, strict=True))
    p_value = mcnemar_exact(pairs.count((True, False)), pairs.count((False, True)))
    return JudgeFloor(n=len(own), right=sum(own), trivial=trivial, p_value=p_value)


def floor_of_pairs(pairs: Iterable[LabelledVerdict], results: Path | None) -> JudgeFloor | None:
    """The floor under a judge that was compared with labels; what was recorded is in the folder `results`."""
    compared = [each for each in pairs if each.excluded is None]
    return floor_of([(_telemetry_in(results, each.task_id), each.human, each.judge) for each in compared])


def floors_in(folders: Iterable[Path]) -> dict[str, JudgeFloor]:
    """The floor under each judge whose verdicts stand beside the checks', by its id."""
    judged: dict[str, list[tuple[Telemetry, bool, bool]]] = {}
    for folder in folders:
        verdicts = required_verdicts(folder)
        truth = newest(verdicts, CHECKS)
        if truth is None or verdicts[truth].outcome == "unscored":
            continue
        telemetry = _telemetry_in(folder.parent, folder.name)
        for judge_id, verdict in verdicts.items():
            same = verdict.trajectory_sha256 == verdicts[truth].trajectory_sha256
            if judge_id != truth and verdict.outcome != "unscored" and same and telemetry.is_within_budget:
                outcomes = (verdicts[truth].outcome == "success", verdict.outcome == "success")
                judged.setdefault(judge_id, []).append((telemetry, *outcomes))
    return {judge_id: floor for judge_id, each in judged.items() if (floor := floor_of(each))}


def _telemetry_in(results: Path | None, name: str) -> Telemetry:
    if results is None or not name:
        return Telemetry(name)
    try:
        return Telemetry.of(read_attempt(results / name))
    except TrajectoryError:
        return Telemetry(name)


def _by_telemetry(attempts: Sequence[tuple[Telemetry, bool]]) -> list[bool] | None:
    """The logistic model's verdicts; `None` if it could not be fitted for some of the attempts."""
    tasks = {task: place for place, task in enumerate(sorted({each.task for each, _ in attempts}))}
    parts = min(_MAX_PARTS, len(tasks))
    part_of = {task: place % parts for task, place in tasks.items()} if parts else {}
    width = max(len(each.features) for each, _ in attempts)
    rows = [(part_of[each.task], _padded(each.features, width), truth) for each, truth in attempts]
    models: dict[int, list[float]] = {}
    for part in range(parts):
        others = [(features, truth) for own, features, truth in rows if own != part]
        if len({truth for _, truth in others}) < 2:
            return None
        models[part] = _fitted(others)
    return [_dot(models[part], features) > 0 for part, features, _ in rows]


def _padded(features: Sequence[float], width: int) -> list[float]:
    """With a constant in front; nothing is known of an attempt without a recording."""
    return [1.0, *features, *[0.0] * (width - len(features))]


def _fitted(rows: Sequence[tuple[list[float], bool]]) -> list[float]:
    """The weights of a logistic model, by Newton's method, held back by a penalty on all but the constant."""
    width = len(rows[0][0])
    weights = [0.0] * width
    for _ in range(_ROUNDS):
        slope = [-_RIDGE * weight if place else 0.0 for place, weight in enumerate(weights)]
        curve = [
            [_RIDGE if one == other and one else 1e-9 * (one == other) for other in range(width)]
            for one in range(width)
        ]
        for features, truth in rows:
            share = 1 / (1 + math.exp(-max(-30.0, min(30.0, _dot(weights, features)))))
            for one, value in enumerate(features):
                if value:
                    slope[one] += (truth - share) * value
                    scaled = share * (1 - share) * value
                    for other, against in enumerate(features):
                        curve[one][other] += scaled * against
        weights = [weight + step for weight, step in zip(weights, _solved(curve, slope), strict=True)]
    return weights


def _solved(matrix: list[list[float]], values: list[float]) -> list[float]:
    """The solution of linear equations whose matrix is positive definite, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, values, strict=True)]
    for place, pivot in enumerate(rows):
        for other in rows[place + 1 :]:
            factor = other[place] / pivot[place]
            other[place:] = [one - factor * two for one, two in zip(other[place:], pivot[place:], strict=True)]
    found = [0.0] * len(rows)
    for place in reversed(range(len(rows))):
        known = sum(rows[place][other] * found[other] for other in range(place + 1, len(rows)))
        found[place] = (rows[place][-1] - known) / rows[place][place]
    return found


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
