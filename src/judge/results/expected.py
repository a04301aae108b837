"""What judging will take: model calls, tokens and dollars, estimated before any of them is spent.

The number of calls follows from the method and the recording. Tokens per call are those of earlier verdicts on these
trajectories, by the same judge or else by its method; without any, they are a rough guess. The price is that of the
price table. Replies that are cached cost nothing, which is only known once they are asked for.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.judges.base import Judge, Workload
from judge.judges.rescoring import verdict_on_file, why_settled
from judge.results.judgings import Judging, plain_name
from judge.store import TaskStore
from judge.trajectory.files import load_trajectory
from shared.errors import TrajectoryError
from shared.llm.limits import REPLY_TOKENS, TOKENS_PER_IMAGE
from shared.llm.prices import find_price
from shared.models import Record, TokenUsage

# Of a call's text: instructions, task, and a list of actions.
_TEXT_TOKENS = 900


class Asking(NamedTuple):
    """A judge that is going to be asked about attempts; `again`: also about those that it has judged already."""

    judge: Judge
    off_site: str
    again: bool


class Expected(Record):
    """`asked` of the `trajectories` need model calls, each counted once for each judge that is asked about it.

    `cost_usd` is `None` if a price is unknown. `earlier_calls` is the number of calls that the estimate is made from.
    """

    trajectories: int
    asked: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    earlier_calls: int = 0


def expected(folders: Sequence[Path], askings: Iterable[Asking], earlier: Sequence[Judging]) -> Expected:
    """What the judges will take together. Blocks. `earlier` are the verdicts that exist."""
    found = Expected(trajectories=len(folders))
    for asking in askings:
        works = [(judge, work) for folder in folders for judge, work in _due(folder, asking)]
        for judge, work in works:
            usage, calls = _usage(judge, work, earlier)
            price = find_price(judge.info.model)
            cost = None if price is None or found.cost_usd is None else found.cost_usd + price.cost_usd(usage)
            found = found.model_copy(
                update={
                    "asked": found.asked + 1,
                    "calls": found.calls + work.calls,
                    "tokens": found.tokens + usage.input + usage.output,
                    "cost_usd": cost,
                    "earlier_calls": max(found.earlier_calls, calls),
                }
            )
    return found


def _due(folder: Path, asking: Asking) -> list[tuple[Judge, Workload]]:
    """The judges that need their model for the trajectory, with what each of them will ask."""
    store = TaskStore(folder)
    try:
        trajectory = load_trajectory(folder)
        if trajectory.is_aborted or why_settled(trajectory, asking.off_site) is not None:
            return []
        due = []
        for judge in asking.judge.judges_of(trajectory.task):
            before = verdict_on_file(store, judge.id, trajectory)
            if before is None or before.outcome == "unscored" or asking.again:
                due.append((judge, judge.workload(trajectory)))
    except (TrajectoryError, OSError):
        # Judging says what is wrong with it.
        return []
    return [(judge, work) for judge, work in due if work.calls]


def _usage(judge: Judge, work: Workload, earlier: Sequence[Judging]) -> tuple[TokenUsage, int]:
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
