"""The expected and actual costs of the judge models of `wabe score`."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task
from rich.text import Text

from judge.config import RunConfig
from judge.judges.rescoring import Scored
from judge.plugins.rejudging.expected import Asking, ExpectedCost, expected
from judge.results.given_verdicts import cost_of, given_verdicts_in, plain_name
from shared.llm.limits import Spending
from shared.text import counted, usd

_MAX_NAMED = 3
_NOTHING_JUDGED = "Nothing was judged (--dry-run)."
# Verdicts with their evidence are large, and this many are enough to estimate the tokens of a call.
_EARLIER = 200


class Estimated(Exception):
    """Only the estimate was asked for: nothing is judged."""


@dataclass
class Costs:
    """The costs of one command that judges these trajectories; `is_quiet`: only JSON goes to standard output.

    With `is_dry`, `expect` raises `Estimated` after it has printed the estimate.
    """

    folders: Sequence[Path]
    config: RunConfig
    is_quiet: bool
    is_dry: bool = False
    spending: Spending = field(default_factory=Spending)
    expected: ExpectedCost | None = None
    # Trajectories that a budget left unscored.
    unpaid: int = 0

    async def expect(self, askings: Sequence[Asking]) -> None:
        """Estimate the judges' usage, and print it before anything is spent."""
        models = [each for each in askings if each.judge.info.model != "offline"]
        if not models:
            estimate, who = ExpectedCost(trajectories=len(self.folders)), "no judge model"
        else:
            estimate, who = await self._estimate(models)
            self.expected = estimate
        if models or self.is_dry:
            typer.echo(f"{who}: {expectation(estimate)}", err=self.is_quiet)
        if self.is_dry:
            typer.echo(json.dumps({"expected": estimate.model_dump()}) if self.is_quiet else _NOTHING_JUDGED)
            raise Estimated

    async def _estimate(self, models: Sequence[Asking]) -> tuple[ExpectedCost, str]:
        """The estimate, and the names of the judges."""
        # In a thread, because it reads the record of every trajectory.
        estimate = await asyncio.to_thread(
            lambda: expected(self.folders, models, list(given_verdicts_in(self.folders[:_EARLIER])))
        )
        names = list(dict.fromkeys(plain_name(each.judge.info) for each in models))
        who = ", ".join(names[:_MAX_NAMED]) + (f" and {len(names) - _MAX_NAMED} more" if names[_MAX_NAMED:] else "")
        return estimate, who

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[], None]]:
        """On a terminal, a progress bar with the money spent; the body calls what it gets after each trajectory."""
        console = Console(stderr=True)
        if self.expected is None or not self.expected.calls or not console.is_terminal or self.is_quiet:
            yield lambda: None
            return
        columns = (BarColumn(), MofNCompleteColumn(), _SpendingColumn(self.spending, self.expected.cost_usd))
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("", total=total)
            yield lambda: progress.advance(bar)

    def lines(self) -> Iterator[str]:
        """The costs of the command and of all verdicts on the trajectories, and what to do about a spent budget."""
        if self.expected is not None:
            calls, reused = self.spending.usage.calls, self.spending.reused
            everything = cost_of(given_verdicts_in(self.folders))
            yield (
                f"This command: {counted(calls, 'call')}, {reused} cached, {usd(self.spending.cost_usd)}; "
                f"all verdicts: {usd(everything)}"
            )
        if self.unpaid:
            remaining = counted(self.unpaid, "verdict")
            yield f"The budget is spent, {remaining} missing: score again with a higher {' or '.join(self._reached())}."

    def summary(self) -> dict[str, Any]:
        """The same for `--json`; empty without a judge model."""
        if self.expected is None:
            return {}
        spending = self.spending
        return {
            "expected": self.expected.model_dump(),
            "command": {"calls": spending.usage.calls, "cached": spending.reused, "cost_usd": spending.cost_usd},
            "all_verdicts_cost_usd": cost_of(given_verdicts_in(self.folders)),
        }

    def _reached(self) -> list[str]:
        """The options whose limits are reached."""
        most, tokens = self.config.max_judge_cost_usd, self.config.max_judge_tokens
        limits: Mapping[str, bool] = {
            "--max-cost-usd": most is not None and (self.spending.cost_usd or 0.0) >= most,
            "--max-tokens": tokens is not None and self.spending.tokens >= tokens,
        }
        return [name for name, is_reached in limits.items() if is_reached] or list(limits)


class _SpendingColumn(ProgressColumn):
    """Calls and dollars so far, and the expected dollars."""

    def __init__(self, spending: Spending, expected_usd: float | None) -> None:
        super().__init__()
        self._spending, self._expected = spending, expected_usd

    def render(self, task: Task) -> Text:
        """The column's text."""
        about = "" if self._expected is None else f" of about {usd(self._expected)}"
        return Text(f"{counted(self._spending.usage.calls, 'call')}, {usd(self._spending.cost_usd)}{about}")


def expectation(estimate: ExpectedCost) -> str:
    """An estimate in one line."""
    total = counted(estimate.trajectories, "trajectory", "trajectories")
    if not estimate.calls:
        return f"{total}, no verdicts to ask for"
    basis = f"from {estimate.earlier_calls:,} earlier calls" if estimate.earlier_calls else "without earlier calls"
    price = "price unknown" if estimate.cost_usd is None else usd(estimate.cost_usd)
    return (
        f"{total}, {counted(estimate.verdicts, 'verdict')} to ask for: about {counted(estimate.calls, 'call')}, "
        f"{estimate.tokens:,} tokens, {price} (estimated {basis}; cached replies are free)"
    )


def both(take: Callable[[Scored], None], done: Callable[[], None]) -> Callable[[Scored], None]:
    """Takes a judged trajectory, then advances the bar."""

    def on_scored(scored: Scored) -> None:
        take(scored)
        done()

    return on_scored
