"""Limits on calls to a model: concurrency, requests and tokens per minute, and a budget."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiolimiter import AsyncLimiter

from shared.errors import ModelBudgetSpent, ModelError
from shared.llm.model import Completion, ImagePart, Model, ModelRequest
from shared.llm.prices import Pricing
from shared.models import TokenUsage

# Providers enforce a limit over any 60 s window. Requests reach them with some jitter, so slightly less than the limit
# is used. Short bursts make up for late timers.
_USED_SHARE = 0.995
_BURST_S = 0.4
# Rough: `RateLimits.learn` corrects estimates by actual use.
_CHARS_PER_TOKEN = 4
# OpenAI counts 1,105 for a screenshot of 1280 x 720 in high detail: 85 and 6 tiles of 170.
TOKENS_PER_IMAGE = 1_100
REPLY_TOKENS = 400


def estimate_tokens(request: ModelRequest) -> int:
    """A rough estimate of a call's tokens: one per four characters, a fixed number per image, and a typical reply."""
    parts = [part for turn in request.turns for part in turn]
    texts = len(request.system) + sum(len(part) for part in parts if isinstance(part, str))
    images = sum(isinstance(part, ImagePart) for part in parts)
    return texts // _CHARS_PER_TOKEN + images * TOKENS_PER_IMAGE + REPLY_TOKENS


class Limiter(Protocol):
    """A rate limiter. No single amount may be larger than `max_rate`."""

    max_rate: float

    async def acquire(self, amount: float = 1) -> None:
        """Wait until `amount` may be used."""
        ...


def _smooth(_name: str, per_minute: float, largest: float) -> AsyncLimiter:
    """A limiter that lets at most `per_minute` through in any 60 s.

    Such a window contains at most one burst and the steady flow; the first request belongs to both.
    """
    allowed = per_minute * _USED_SHARE
    burst = max(min(max(largest, allowed / 60 * _BURST_S), allowed / 2), 1.0)
    flow_per_s = (allowed - (burst - 1)) / 60
    return AsyncLimiter(burst, burst / flow_per_s)


class RateLimits:
    """Requests and tokens per minute. `None`: no limit.

    Requests are limited in every sliding window of 60 s. So are estimated tokens while requests are small; a request
    larger than a twelfth of the limit is sent once it has waited for all its tokens, so that a window may contain one
    such request more than the limit. Each of several `shards` uses its share of the limits, unless `limiter` (called
    with a name, an amount per minute and the largest amount) returns limiters that they share.
    """

    def __init__(
        self,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        shards: int = 1,
        limiter: Callable[[str, float, float], Limiter] = _smooth,
    ) -> None:
        # Rounded down: fractions of a request, rounded up by each shard's window, would add up over the shards.
        requests = max((requests_per_minute or 0) // shards, 1)
        self._requests = limiter("requests", requests, 1.0) if requests_per_minute else None
        tokens = (tokens_per_minute or 0) / shards
        # The total of all shards: a large request may take more than one shard's share.
        self._tokens_per_minute = float(tokens_per_minute or 0)
        self._tokens = limiter("tokens", tokens, tokens / 12) if tokens else None
        self._turn = asyncio.Lock()
        # Equal, so that the first estimates are used as they are.
        self._estimated = 1.0
        self._used = 1.0

    async def request_slot(self) -> None:
        """Wait until one more request may be sent."""
        if self._requests is not None:
            await self._requests.acquire()

    async def token_slots(self, request: ModelRequest) -> None:
        """Wait until the request's estimated tokens may be sent."""
        if self._tokens is None:
            return
        # Estimates are scaled by actual use so far. A request larger than a whole minute's tokens counts as a minute.
        amount = min(estimate_tokens(request) * self._used / self._estimated, self._tokens_per_minute)
        # One at a time: otherwise small amounts overtake a large one, and could starve it.
        async with self._turn:
            while amount > 0:
                piece = min(amount, self._tokens.max_rate)
                await self._tokens.acquire(piece)
                amount -= piece

    def learn(self, request: ModelRequest, usage: TokenUsage) -> None:
        """Correct later estimates by the usage that `request` had."""
        if usage.input + usage.output:
            self._estimated += estimate_tokens(request)
            self._used += usage.input + usage.output


@dataclass
class Spending:
    """A judge model's total usage, including calls whose answers ended up in no verdict.

    Calls of unknown usage are estimated and counted in `usage.estimated_calls`. `cost_usd` is `None` when no price is
    known, `price_date` the date of the price data. `reused` is the number of replies from the cache.
    """

    usage: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float | None = 0.0
    reused: int = 0
    price_date: str | None = None

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.usage.input + self.usage.output

    def recorded(self) -> dict[str, Any]:
        """The spending as recorded; without a date if nothing was paid for."""
        date = {"price_date": self.price_date} if self.price_date and self.cost_usd else {}
        return {"token_usage": self.usage.model_dump(), "cost_usd": self.cost_usd, **date}

    def add(self, usage: TokenUsage, cost_usd: float | None) -> None:
        """Add a call's usage, and its cost where the price is known."""
        self.usage += usage
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd


class Budget:
    """Tokens and dollars that one or several models may spend. `None`: no limit.

    `spending` is the amount spent so far and is updated. `remedies` say how to raise the limits on dollars and tokens.
    Each of several `shards` uses its share of both limits.
    """

    def __init__(
        self,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        *,
        spending: Spending | None = None,
        remedies: tuple[str, str] = (
            "raise max_judge_cost_usd and score again",
            "raise max_judge_tokens and score again",
        ),
        shards: int = 1,
    ) -> None:
        self._max_cost_usd = None if max_cost_usd is None else max_cost_usd / shards
        self._max_tokens = None if max_tokens is None else max_tokens // shards
        self._of_all = f", this shard's part of {shards}," if shards > 1 else ""
        self.spending = spending or Spending()
        self._remedies = remedies
        self._reservations: list[tuple[int, float]] = []
        self._released = asyncio.Event()

    def check(self) -> None:
        """Raises `ModelBudgetSpent` once a limit is reached."""
        tokens, cost_usd = self._spent()
        if self._max_tokens is not None and tokens >= self._max_tokens:
            raise ModelBudgetSpent(
                f"the token budget of {self._max_tokens}{self._of_all} is spent", remedy=self._remedies[1]
            )
        if self._max_cost_usd is not None and cost_usd >= self._max_cost_usd:
            raise ModelBudgetSpent(
                f"the budget of {self._max_cost_usd:g} USD{self._of_all} is spent", remedy=self._remedies[0]
            )

    @asynccontextmanager
    async def reserve(self, tokens: int, cost_usd: float) -> AsyncIterator[None]:
        """Reserve a call's estimated cost while it is in flight; waits until it fits beside the calls in flight.

        A single call always goes ahead, so that an estimate alone never refuses a call: the budget is exceeded by about
        one call at most, however many run at once. Raises `ModelBudgetSpent`.
        """
        while True:
            self.check()
            # Answers can be far longer than estimated, so the average of the calls so far counts as well.
            calls = max(self.spending.usage.calls, 1)
            tokens = max(tokens, self.spending.tokens // calls)
            cost_usd = max(cost_usd, (self.spending.cost_usd or 0.0) / calls)
            if not self._reservations or self._fits(tokens, cost_usd):
                break
            await self._released.wait()
        share = (tokens, cost_usd)
        self._reservations.append(share)
        try:
            yield
        finally:
            self._reservations.remove(share)
            # Wakes everyone who waits; whoever comes later waits for the next release.
            self._released.set()
            self._released = asyncio.Event()

    def _spent(self) -> tuple[int, float]:
        return self.spending.tokens, self.spending.cost_usd or 0.0

    def _fits(self, tokens: int, cost_usd: float) -> bool:
        tokens += self.spending.tokens + sum(reserved for reserved, _ in self._reservations)
        cost_usd += (self.spending.cost_usd or 0.0) + sum(reserved for _, reserved in self._reservations)
        in_tokens = self._max_tokens is None or tokens <= self._max_tokens
        return in_tokens and (self._max_cost_usd is None or cost_usd <= self._max_cost_usd)


class MeteredModel:
    """Enforces limits and budgets, counts tokens and dollars, and adds the cost to each completion.

    It spends from its `own` budget, counted in `spending`, and from `others`, which several models share. At most
    `concurrency` calls run at once.
    The usage of a call is estimated, and its cost stays unknown, if the endpoint does not report it or if the call was
    cut off after it was sent, which the provider bills nevertheless.
    """

    def __init__(
        self,
        model: Model,
        price: Pricing | None,
        *,
        own: Budget,
        others: Sequence[Budget] = (),
        rates: RateLimits | None = None,
        concurrency: int = 1_000,
    ) -> None:
        self.name = model.name
        self._model = model
        self._price = price
        self.spending = own.spending
        if price is None:
            self.spending.cost_usd = None
        else:
            self.spending.price_date = price.date
        # The shared ones first: when one of them is spent, raising the client's limit would not help.
        self._budgets = (*others, own)
        self._rates = rates or RateLimits()
        self._places = asyncio.Semaphore(concurrency)

    def check(self) -> None:
        """Raises `ModelBudgetSpent` once a budget is spent."""
        for budget in self._budgets:
            budget.check()

    async def before_retry(self) -> None:
        """Wait until a retry may be sent. Raises `ModelBudgetSpent`."""
        self.check()
        await self._rates.request_slot()

    async def complete(self, request: ModelRequest) -> Completion:
        """Ask when limits and budgets allow. Raises `ModelBudgetSpent` when they do not."""
        usage = TokenUsage(input=estimate_tokens(request))
        cost_usd = self._price.cost_usd(usage) if self._price else 0.0
        async with self._places, AsyncExitStack() as reservation:
            # Before the rate limits: a call that will be refused must not use them up.
            self.check()
            await self._rates.token_slots(request)
            await self._rates.request_slot()
            for budget in self._budgets:
                await reservation.enter_async_context(budget.reserve(usage.input, cost_usd))
            # Other calls may have spent the rest while this one waited.
            self.check()
            completion = await self._ask(request)
        self._rates.learn(request, completion.usage)
        return completion

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._model.aclose()

    async def _ask(self, request: ModelRequest) -> Completion:
        try:
            completion = await self._model.complete(request)
        except asyncio.CancelledError:
            # No caller is left to receive the cost, but the budget and the run's total must include it.
            self._spend(request, TokenUsage(calls=1))
            raise
        except ModelError as error:
            if error.usage is not None:
                error.cost_usd = self._spend(request, error.usage)
            raise
        # An adapter may report no usage at all; a call it was.
        usage = completion.usage.model_copy(update={"calls": max(completion.usage.calls, 1)})
        return completion.model_copy(update={"usage": usage, "cost_usd": self._spend(request, usage)})

    def _spend(self, request: ModelRequest, reported: TokenUsage) -> float | None:
        """Add a call's usage to all budgets. Returns its cost, `None` when it is not known."""
        is_reported = reported.input + reported.output > 0
        estimate = TokenUsage(calls=reported.calls, input=estimate_tokens(request), estimated_calls=reported.calls)
        usage = reported if is_reported else estimate
        cost = self._price.cost_usd(usage) if self._price else None
        for budget in self._budgets:
            budget.spending.add(usage, cost)
        return cost if is_reported else None
