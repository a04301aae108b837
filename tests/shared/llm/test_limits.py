"""Limits on calls and rates, and the budget."""

import asyncio
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.llm.scripted import ScriptedModel, completion
from shared.errors import ModelBudgetSpent, ModelTruncated, ModelUnavailable
from shared.llm.limits import Budget, MeteredModel, RateLimits, estimate_tokens
from shared.llm.model import Completion, ImagePart, ModelRequest
from shared.llm.prices import Price
from shared.models import TokenUsage

ASK = ModelRequest(system="s", parts=("p",))


class FakeClock:
    """Runs a coroutine on an event loop whose clock jumps to the next timer instead of waiting."""

    def __init__(self) -> None:
        self.loop = asyncio.SelectorEventLoop()
        self.now = 0.0
        self.loop.time = lambda: self.now  # type: ignore[method-assign]
        selector: Any = self.loop._selector  # type: ignore[attr-defined]
        select = selector.select

        def jump(timeout: float | None = None) -> Any:
            # Time always passes a little, as it does in a real loop; else rounding could stop it for ever.
            self.now += (timeout or 0.0) + 1e-7
            return select(0)

        selector.select = jump

    def run(self, work: Any) -> None:
        try:
            self.loop.run_until_complete(work)
        finally:
            self.loop.close()


def busiest_minute(times: list[float]) -> int:
    return max(sum(start <= at < start + 60 for at in times) for start in times)


@pytest.mark.slow
@given(st.integers(1, 1_000))
@example(6_000)
def test_no_minute_holds_more_requests_than_the_limit_and_nearly_all_of_it_is_used(per_minute: int) -> None:
    clock, times = FakeClock(), []
    limits = RateLimits(per_minute)

    async def ask() -> None:
        for _ in range(min(3 * per_minute, 7_000)):
            await limits.request_slot()
            times.append(clock.now)

    clock.run(ask())
    sampled = times[:: max(1, len(times) // 200)]
    assert max(sum(start <= at < start + 60 for at in times) for start in sampled) <= per_minute
    assert len(times) == 1 or (len(times) - 1) / times[-1] * 60 >= 0.97 * per_minute


def test_tokens_per_minute_are_kept_as_estimated() -> None:
    clock, times = FakeClock(), []
    limits = RateLimits(tokens_per_minute=60_000)
    request = ModelRequest(system="x" * 4_000, parts=())

    async def ask() -> None:
        for _ in range(100):
            await limits.token_slots(request)
            times.append(clock.now)

    clock.run(ask())
    assert busiest_minute(times) * estimate_tokens(request) <= 60_000


@pytest.mark.parametrize("shards", [4, 7])
def test_shards_together_keep_the_limit_and_use_nearly_all_of_it(shards: int) -> None:
    clock, times = FakeClock(), []

    async def shard() -> None:
        limits = RateLimits(300, shards=shards)
        for _ in range(900 // shards):
            await limits.request_slot()
            times.append(clock.now)

    async def all_of_them() -> None:
        await asyncio.gather(*(shard() for _ in range(shards)))

    clock.run(all_of_them())
    assert busiest_minute(times) <= 300
    assert (len(times) - 1) / times[-1] * 60 >= 0.93 * 300


def test_a_request_larger_than_a_shards_minute_waits_for_all_its_tokens() -> None:
    clock = FakeClock()
    limits = RateLimits(tokens_per_minute=40_000, shards=4)
    clock.run(limits.token_slots(ModelRequest(system="x" * 80_000, parts=())))
    # 20,400 tokens at 10,000 a minute, the first few in a burst.
    assert 115 < clock.now < 130


def test_a_request_larger_than_the_bucket_still_gets_through() -> None:
    clock = FakeClock()
    limits = RateLimits(tokens_per_minute=100)
    clock.run(limits.token_slots(ModelRequest(system="x" * 100_000, parts=())))
    assert clock.now < 120


def test_a_request_larger_than_the_bucket_is_counted_whole() -> None:
    clock, times = FakeClock(), []
    limits = RateLimits(tokens_per_minute=60_000)
    large = ModelRequest(system="x" * 118_400, parts=())

    async def ask() -> None:
        for _ in range(20):
            await limits.token_slots(large)
            times.append(clock.now)

    clock.run(ask())
    assert estimate_tokens(large) == 30_000
    assert times[-1] >= 19 * 30
    assert busiest_minute(times) <= 2


def test_small_requests_do_not_overtake_a_large_one_that_came_first() -> None:
    clock, order = FakeClock(), []
    limits = RateLimits(tokens_per_minute=60_000)

    async def ask(name: str, characters: int) -> None:
        await limits.token_slots(ModelRequest(system="x" * characters, parts=()))
        order.append(name)

    async def all_of_them() -> None:
        await asyncio.gather(ask("first", 100), ask("large", 80_000), *(ask("small", 100) for _ in range(20)))

    clock.run(all_of_them())
    assert order[:2] == ["first", "large"]


def test_estimates_count_texts_and_images_of_both_turns_and_a_reply() -> None:
    image = ImagePart(data=b"1")
    request = ModelRequest(system="x" * 40, lead=("z" * 40, image), parts=("y" * 40, image))
    assert estimate_tokens(request) == 30 + 2 * 1_100 + 400


async def test_concurrency_limits_the_calls_at_once() -> None:
    running, peak = 0, 0

    class Slow(ScriptedModel):
        async def complete(self, request: ModelRequest) -> Completion:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1
            return await super().complete(request)

    model = MeteredModel(Slow(lambda _: "x"), None, own=Budget(), concurrency=3)
    await asyncio.gather(*(model.complete(ASK) for _ in range(20)))
    assert peak == 3


async def test_a_call_that_the_budget_refuses_does_not_wait_for_the_limits() -> None:
    rates = RateLimits(requests_per_minute=1)
    model = MeteredModel(ScriptedModel(lambda _: "x"), None, own=Budget(max_tokens=100), rates=rates, concurrency=1)
    await model.complete(ASK)
    # A second slot would be there in a minute only.
    results = await asyncio.wait_for(
        asyncio.gather(*(model.complete(ASK) for _ in range(50)), return_exceptions=True), 5
    )
    assert {type(result) for result in results} == {ModelBudgetSpent}


async def test_the_meter_adds_up_tokens_and_prices_every_completion() -> None:
    model = MeteredModel(ScriptedModel(lambda _: "x"), Price(input=1.0, cached=0.1, output=2.0), own=Budget())
    done = await model.complete(ASK)
    await model.complete(ASK)
    assert done.cost_usd == pytest.approx((100 * 1.0 + 10 * 2.0) / 1e6)
    assert model.spending.cost_usd == pytest.approx(2 * (done.cost_usd or 0))
    assert model.spending.usage == TokenUsage(calls=2, input=200, output=20)


async def test_without_a_price_the_cost_is_unknown() -> None:
    unpriced = completion("x").model_copy(update={"cost_usd": None})
    model = MeteredModel(ScriptedModel(lambda _: unpriced), None, own=Budget())
    assert (await model.complete(ASK)).cost_usd is None
    assert model.spending.cost_usd is None


async def test_a_call_counts_even_if_the_adapter_reports_none() -> None:
    silent = completion("x").model_copy(update={"usage": TokenUsage(), "cost_usd": None})
    model = MeteredModel(ScriptedModel(lambda _: silent), None, own=Budget())
    assert (await model.complete(ASK)).usage == TokenUsage(calls=1)
    assert model.spending.usage.calls == 1


async def test_a_call_that_is_paid_for_without_an_answer_counts() -> None:
    error = ModelTruncated("all thoughts", usage=TokenUsage(calls=1, input=100, output=900, reasoning=900))
    model = MeteredModel(
        ScriptedModel(lambda _: error), Price(input=1.0, cached=0.1, output=2.0), own=Budget(max_tokens=1000)
    )
    with pytest.raises(ModelTruncated) as caught:
        await model.complete(ASK)
    assert caught.value.cost_usd == pytest.approx((100 + 1800) / 1e6)
    with pytest.raises(ModelBudgetSpent):
        await model.complete(ASK)


async def test_a_call_that_was_never_sent_costs_nothing() -> None:
    model = MeteredModel(
        ScriptedModel(lambda _: ModelUnavailable("down")), Price(input=1.0, cached=0.1, output=2.0), own=Budget()
    )
    with pytest.raises(ModelUnavailable) as caught:
        await model.complete(ASK)
    assert (caught.value.usage, model.spending.cost_usd, model.spending.usage) == (None, 0.0, TokenUsage())


async def test_a_call_of_unknown_usage_has_no_known_cost_and_counts_by_estimate() -> None:
    silent = completion("x").model_copy(update={"usage": TokenUsage(calls=1), "cost_usd": None})
    price = Price(input=1.0, cached=0.1, output=1.0)
    model = MeteredModel(ScriptedModel(lambda _: silent), price, own=Budget(max_tokens=estimate_tokens(ASK)))
    assert (await model.complete(ASK)).cost_usd is None
    with pytest.raises(ModelBudgetSpent):
        await model.complete(ASK)


@pytest.mark.parametrize("budget", [{"max_tokens": 150}, {"max_cost_usd": 0.00015}])
async def test_no_call_is_made_once_the_budget_is_spent(budget: dict[str, Any]) -> None:
    inner = ScriptedModel(lambda _: "x")
    model = MeteredModel(inner, Price(input=1.0, cached=0.1, output=1.0), own=Budget(**budget))
    await model.complete(ASK)
    await model.complete(ASK)
    with pytest.raises(ModelBudgetSpent, match="budget"):
        await model.complete(ASK)
    assert len(inner.requests) == 2


@pytest.mark.parametrize("budget", [{"max_tokens": 4 * 150}, {"max_cost_usd": 4 * 0.00015}])
async def test_a_shard_spends_its_part_of_the_budget_and_says_so(budget: dict[str, Any]) -> None:
    inner = ScriptedModel(lambda _: "x")
    model = MeteredModel(inner, Price(input=1.0, cached=0.1, output=1.0), own=Budget(shards=4, **budget))
    await model.complete(ASK)
    await model.complete(ASK)
    with pytest.raises(ModelBudgetSpent, match="this shard's part of 4, is spent"):
        await model.complete(ASK)
    assert len(inner.requests) == 2


async def test_a_retry_waits_for_a_place_and_is_refused_once_the_budget_is_spent() -> None:
    rates = RateLimits(requests_per_minute=600)
    model = MeteredModel(ScriptedModel(lambda _: "x"), None, own=Budget(max_tokens=100), rates=rates)
    await model.before_retry()
    await model.complete(ASK)
    with pytest.raises(ModelBudgetSpent):
        await model.before_retry()
