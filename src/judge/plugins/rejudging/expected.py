"""Estimates what judging will use before it begins: model calls, tokens and dollars.

The number of calls follows from the method and the recording. Tokens per call come from earlier verdicts on these
trajectories, by the same judge or else by its method; without any, they are a rough guess. The price is the
price table's. Replies that are cached cost nothing, which is only known once they are asked for.
"""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.judges.base import Judge, Workload
from judge.judges.rescoring import WHY_ZERO
from judge.records.steps import StopReason
from judge.results.given_verdicts import GivenVerdict, plain_name
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory, read_result
from judge.trajectory.record import ABORTING, RESULT_SCHEMA, Attempt
from shared.errors import TrajectoryError
from shared.llm.limits import REPLY_TOKENS, TOKENS_PER_IMAGE
from shared.models import Record, TokenUsage

# Characters of a call's text: instructions, task, and a list of actions.
_TEXT_TOKENS = 900
# Reading all screenshots of hundreds of trajectories would take seconds.
_SAMPLE = 20


class Asking(NamedTuple):
    """A judge that is going to be asked about attempts; `again`: also about those that it has judged already."""

    judge: Judge
    again: bool


class ExpectedCost(Record):
    """`verdicts` is the number of verdicts that need model calls, on `trajectories`, counted once per judge.

    `cost_usd` is `None` if a price is unknown. `earlier_calls` is the number of calls that the estimate is made from.
    """

    trajectories: int
    verdicts: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    earlier_calls: int = 0


def expected(folders: Sequence[Path], askings: Iterable[Asking], earlier: Sequence[GivenVerdict]) -> ExpectedCost:
    """The estimate for all judges together. Blocks. `earlier` are the existing verdicts."""
    total = ExpectedCost(trajectories=len(folders))
    for asking in askings:
        due = [each for folder in folders for each in _due(folder, asking)]
        by_judge: dict[str, list[_Due]] = {}
        for each in due:
            by_judge.setdefault(each.judge.id, []).append(each)
        for of_judge in by_judge.values():
            work = _work(of_judge)
            if work.calls:
                total = _added(total, of_judge[0].judge, len(of_judge), work, earlier)
    return total


class _Due(NamedTuple):
    folder: Path
    judge: Judge


def _due(folder: Path, asking: Asking) -> list[_Due]:
    """The judges that have no verdict on the trajectory yet, by the records alone: files are compared when judging."""
    store = TaskStore(folder)
    stop_reason: StopReason | None
    try:
        result = read_result(folder) if (folder / "result.json").is_file() else {}
        if result.get("schema_version") == RESULT_SCHEMA:
            attempt, sha256 = Attempt.from_json(result, source=str(folder)), result.get("trajectory_sha256")
            task, stop_reason = attempt.task, attempt.stop_reason
        else:
            # The record of another program: compute the digest.
            trajectory = load_trajectory(folder)
            task, sha256, stop_reason = trajectory.task, trajectory.sha256, trajectory.stop_reason
    except (TrajectoryError, OSError):
        # Judging reports the problem.
        return []
    if stop_reason in ABORTING or stop_reason in WHY_ZERO:
        return []
    due = []
    for judge in asking.judge.judges_of(task):
        before = store.read_verdict(judge.id)
        is_kept = before is not None and before.outcome != "unscored" and before.trajectory_sha256 in (None, sha256)
        if asking.again or not is_kept:
            due.append(_Due(folder, judge))
    return due


def _work(due: Sequence[_Due]) -> Workload:
    """The estimate for the trajectories, from an even sample: reading all images is left to judging."""
    sample = due[:: max(1, len(due) // _SAMPLE)]
    works = []
    for each in sample:
        with contextlib.suppress(TrajectoryError, OSError):
            works.append(each.judge.workload(load_trajectory(each.folder)))
    scale = len(due) / len(sample)
    return Workload(
        calls=round(scale * sum(work.calls for work in works)), images=round(scale * sum(work.images for work in works))
    )


def _added(
    estimate: ExpectedCost, judge: Judge, verdicts: int, work: Workload, earlier: Sequence[GivenVerdict]
) -> ExpectedCost:
    usage, calls = _usage(judge, work, earlier)
    price = judge.price
    return ExpectedCost(
        trajectories=estimate.trajectories,
        verdicts=estimate.verdicts + verdicts,
        calls=estimate.calls + work.calls,
        tokens=estimate.tokens + usage.input + usage.output,
        cost_usd=None
        if price is None or estimate.cost_usd is None
        else estimate.cost_usd + price.cost_usd(usage, work.calls),
        earlier_calls=max(estimate.earlier_calls, calls),
    )


def _usage(judge: Judge, work: Workload, earlier: Sequence[GivenVerdict]) -> tuple[TokenUsage, int]:
    """The estimated tokens of the calls, and the number of earlier calls from which they were estimated."""
    known = [each for each in earlier if each.usage.calls]
    name = plain_name(judge.info)
    alike = [each for each in known if each.name == name] or [
        each for each in known if each.method == judge.info.method
    ]
    if not alike:
        text = work.calls * _TEXT_TOKENS + work.images * TOKENS_PER_IMAGE
        return TokenUsage(input=text, output=work.calls * REPLY_TOKENS), 0
    usage = sum((each.usage for each in alike), TokenUsage())
    share = work.calls / usage.calls
    names = ("input", "output", "cached", "reasoning")
    return TokenUsage(**{key: round(getattr(usage, key) * share) for key in names}), usage.calls
