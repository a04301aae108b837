"""One shared limit on concurrent calls and on requests and tokens per minute, and a meter with a budget."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from aiolimiter import AsyncLimiter

from shared.errors import ModelBudgetSpent, ModelError
from shared.llm.model import Completion, ImagePart, Model, ModelRequest
from shared.llm.prices import Price
from shared.models import TokenUsage

# The limit is a promise about any 60 s window at the provider. Requests reach it with some jitter, so a little less
# than the limit is asked for; in return short bursts are let through, which makes up for late timers.
_USED_SHARE = 0.995
_BURST_S = 0.4
_CHARS_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1_100
_REPLY_TOKENS = 400


class RateLimits:
    """Requests and tokens per minute. `None`: no limit.

    Requests are kept in every sliding window of 60 s. So are tokens, as estimated, while requests are small; one larger
    than a twelfth of the limit is sent when all its tokens have been waited for, so that a window may hold one such
    request more than the limit.
    """

    def __init__(self, requests_per_minute: int | None = None, tokens_per_minute: int | None = None) -> None:
        self._requests = _smooth(requests_per_minute, burst=1.0) if requests_per_minute else None
        self._tokens_per_minute = float(tokens_per_minute or 0)
        self._tokens = _smooth(tokens_per_minute, burst=tokens_per_minute / 12) if tokens_per_minute else None
        self._turn = asyncio.Lock()
        self._estimated = 1.0
        self._used = 1.0

    async def request_slot(self) -> None:
        """Wait until one more request may be sent."""
        if self._requests is not None:
            await self._requests.acquire()

    async def token_slots(self, request: ModelRequest) -> int:
        """Wait until the request's tokens, as estimated, may be sent. Returns the raw estimate for `learn`."""
        estimate = estimate_tokens(request)
        if self._tokens is not None:
            # Estimates are corrected by what calls really used so far. What no minute holds counts as a whole one.
            amount = min(estimate * self._used / self._estimated, self._tokens_per_minute)
            # In turn: the limiter lets small amounts overtake large ones, for ever if enough of them come.
            async with self._turn:
                while amount > 0:
                    piece = min(amount, self._tokens.max_rate)
                    await self._tokens.acquire(piece)
                    amount -= piece
        return estimate

    def learn(self, estimate: int, usage: TokenUsage) -> None:
        """Take in what a call of that estimate used."""
        if usage.input + usage.output:
            self._estimated += estimate
            self._used += usage.input + usage.output


def _smooth(per_minute: float, *, burst: float) -> AsyncLimiter:
    """A limiter that lets at most `per_minute` through in any 60 s.

    Such a window holds at most one burst and the steady flow; its first request belongs to both.
    """
    allowed = per_minute * _USED_SHARE
    burst = max(min(max(burst, allowed / 60 * _BURST_S), allowed / 2), 1.0)
    flow_per_s = (allowed - (burst - 1)) / 60
    return AsyncLimiter(burst, burst / flow_per_s)


def estimate_tokens(request: ModelRequest) -> int:
    """A rough count of a request's tokens: four characters each, a fixed sum per image, and a usual reply."""
    texts = len(request.system) + sum(len(part) for part in request.parts if isinstance(part, str))
    images = sum(isinstance(part, ImagePart) for part in request.parts)
    return texts // _CHARS_PER_TOKEN + images * _TOKENS_PER_IMAGE + _REPLY_TOKENS


def _always() -> None:
    """The check of a model without a budget."""


class LimitedModel:
    """A model behind limits: at most `concurrency` calls at once, at the rates of `limits`.

    `check` may raise a `ModelError` before a call waits for the limits: what will not be asked takes nobody's place.
    """

    def __init__(
        self, model: Model, limits: RateLimits, concurrency: int, *, check: Callable[[], None] = _always
    ) -> None:
        self._model = model
        self._limits = limits
        self._places = asyncio.Semaphore(concurrency)
        self._check = check

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Wait for a place, then ask."""
        async with self._places:
            self._check()
            estimate = await self._limits.token_slots(request)
            await self._limits.request_slot()
            completion = await self._model.complete(request)
        self._limits.learn(estimate, completion.usage)
        return completion

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._model.aclose()


class Spending:
    """What a judge model used in all, over every call: also of those whose answers no verdict holds.

    Calls of unknown usage are in it by estimate; `usage.estimated_calls` counts them. No `cost_usd`: no price is known.
    """

    def __init__(self, usage: TokenUsage | None = None, cost_usd: float | None = 0.0) -> None:
        self.usage = usage or TokenUsage()
        self.cost_usd = cost_usd

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.usage.input + self.usage.output

    def add(self, usage: TokenUsage, cost_usd: float | None) -> None:
        """Take in what a call used; no `cost_usd`: no price is known."""
        self.usage += usage
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd


class Budget:
    """Tokens and dollars that one or several models may spend. `None`: no limit.

    `spending` is what was spent before; it is added to. `remedies` say how to raise the limit on dollars and the one on
    tokens.
    """

    def __init__(
        self,
        *,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        spending: Spending | None = None,
        remedies: tuple[str, str] = (
            "raise max_judge_cost_usd and score again",
            "raise max_judge_tokens and score again",
        ),
    ) -> None:
        self._max_cost_usd = max_cost_usd
        self._max_tokens = max_tokens
        self.spending = spending or Spending()
        self._remedies = remedies
        self._held_calls = 0
        self._held_tokens = 0
        self._held_usd = 0.0
        self._released = asyncio.Event()

    def check(self) -> None:
        """Raises `ModelBudgetSpent` once a limit is reached."""
        if self._max_tokens is not None and self.spending.tokens >= self._max_tokens:
            raise ModelBudgetSpent(f"the token budget of {self._max_tokens} is spent", remedy=self._remedies[1])
        if self._max_cost_usd is not None and (self.spending.cost_usd or 0.0) >= self._max_cost_usd:
            raise ModelBudgetSpent(f"the budget of {self._max_cost_usd:g} USD is spent", remedy=self._remedies[0])

    @asynccontextmanager
    async def held(self, tokens: int, cost_usd: float) -> AsyncIterator[None]:
        """Hold a call's estimated share while it is under way; waits until that fits beside the calls already sent.

        A call that is alone may always go, so that an estimate never refuses one: a budget is exceeded by about one
        call, however many are made at once. Raises `ModelBudgetSpent`.
        """
        while True:
            self.check()
            # A provider's answers can be far longer than estimated: what calls took so far counts as well.
            calls = max(self.spending.usage.calls, 1)
            tokens = max(tokens, self.spending.tokens // calls)
            cost_usd = max(cost_usd, (self.spending.cost_usd or 0.0) / calls)
            if not self._held_calls or self._fits(tokens, cost_usd):
                break
            await self._released.wait()
        self._held_calls += 1
        self._held_tokens += tokens
        self._held_usd += cost_usd
        try:
            yield
        finally:
            self._held_calls -= 1
            self._held_tokens -= tokens
            self._held_usd -= cost_usd
            self._released.set()
            self._released = asyncio.Event()

    def _fits(self, tokens: int, cost_usd: float) -> bool:
        in_tokens = self._max_tokens is None or self.spending.tokens + self._held_tokens + tokens <= self._max_tokens
        spent_usd = (self.spending.cost_usd or 0.0) + self._held_usd
        return in_tokens and (self._max_cost_usd is None or spent_usd + cost_usd <= self._max_cost_usd)


class MeteredModel:
    """Counts tokens and dollars, puts the price on each completion, and makes no call once a budget is spent.

    It has a budget of its own and may share `others`. A call that does not tell its usage is counted by estimate, and
    what it cost stays unknown: an endpoint that does not say, or a call that is cut off after it was sent, which the
    provider bills all the same. `spending` is where it is counted.
    """

    def __init__(
        self,
        model: Model,
        price: Price | None,
        *,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        spending: Spending | None = None,
        others: Sequence[Budget] = (),
    ) -> None:
        self._model = model
        self._price = price
        self._spending = spending or Spending()
        if price is None:
            self._spending.cost_usd = None
        own = Budget(max_cost_usd=max_cost_usd, max_tokens=max_tokens, spending=self._spending)
        # The shared ones first: what is left of them is not the client's to raise.
        self._budgets = (*others, own)

    @property
    def usage(self) -> TokenUsage:
        """What all calls used, see `Spending`."""
        return self._spending.usage

    @property
    def cost_usd(self) -> float | None:
        """What all calls cost, see `Spending`."""
        return self._spending.cost_usd

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    def check(self) -> None:
        """Raises `ModelBudgetSpent` once a budget is spent."""
        for budget in self._budgets:
            budget.check()

    async def complete(self, request: ModelRequest) -> Completion:
        """Ask when the budgets allow. Raises `ModelBudgetSpent` when they do not."""
        usage = TokenUsage(input=estimate_tokens(request))
        cost_usd = self._price.cost_usd(usage) if self._price else 0.0
        async with AsyncExitStack() as held:
            for budget in self._budgets:
                await held.enter_async_context(budget.held(usage.input, cost_usd))
            return await self._ask(request)

    async def _ask(self, request: ModelRequest) -> Completion:
        self.check()
        try:
            completion = await self._model.complete(request)
        except asyncio.CancelledError:
            # Nobody is left to be told what it cost; the budget and the run's total have it.
            self._spend(request, TokenUsage(calls=1))
            raise
        except ModelError as error:
            if error.usage is not None:
                error.cost_usd = self._spend(request, error.usage)
            raise
        return completion.model_copy(update={"cost_usd": self._spend(request, completion.usage)})

    def _spend(self, request: ModelRequest, told: TokenUsage) -> float | None:
        """Take in what a call used and give its cost; `None` when it is not known."""
        is_told = told.input + told.output > 0
        estimate = TokenUsage(calls=told.calls, input=estimate_tokens(request), estimated_calls=told.calls)
        usage = told if is_told else estimate
        cost = self._price.cost_usd(usage) if self._price else None
        for budget in self._budgets:
            budget.spending.add(usage, cost)
        return cost if is_told else None

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._model.aclose()
