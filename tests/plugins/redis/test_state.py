"""The rate limit, the budget and the replies that shards share, on a real Redis server."""

import asyncio
import contextlib
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from helpers.llm.scripted import ScriptedModel, completion
from judge.plugins.redis import state as shared_redis
from judge.plugins.redis.state import RedisReplies, RedisState, SharedBudget, SharedLimiter
from plugins.redis.redis_server import PASSWORD, RedisServer, redis_server
from shared.errors import ConfigError, ModelBudgetSpent, ModelUnavailable, SharedStateFault
from shared.llm.cache import CachedModel
from shared.llm.limits import MeteredModel, RateLimits, Spending, estimate_tokens
from shared.llm.model import Completion, ModelRequest
from shared.llm.prices import Price
from shared.models import TokenUsage

pytestmark = pytest.mark.slow

ASK = ModelRequest(system="s", parts=("a private prompt",))
PRICE = Price(input=1.0, cached=0.1, output=1.0)
# Tokens of `ScriptedModel`'s replies.
USED = 110


@pytest.fixture(autouse=True)
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_redis, "_RETRIES", 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


class Shards:
    """The shards of one run, each with connections of its own."""

    def __init__(self, server: RedisServer, run_id: str) -> None:
        self._server = server
        self._run_id = run_id
        self._states: list[RedisState] = []

    def state(self) -> RedisState:
        self._states.append(RedisState(self._server.url, self._run_id))
        return self._states[-1]

    def budget(self, shard: str = "000", *, timeout_s: float = 60.0, **limits: Any) -> SharedBudget:
        options = {"max_cost_usd": None, "max_tokens": None, "spending": Spending(), **limits}
        return SharedBudget(self.state(), shard, call_timeout_s=timeout_s, **options)

    def cached(self, model: ScriptedModel) -> CachedModel:
        return CachedModel(model, namespace="n", folder=None, shared=RedisReplies(self.state()))

    async def keys(self, name: str = "") -> list[str]:
        """The run's keys that begin with a name."""
        state = self.state()
        return [str(key) for key in await state.client.keys(state.key(f"{name}*"))]

    async def contents(self) -> dict[str, str]:
        """All keys and values of the server."""
        client = self.state().client
        results: dict[str, str] = {}
        for key in map(str, await client.keys("*")):
            with contextlib.suppress(Exception):
                results[key] = str(await client.hgetall(key))
            with contextlib.suppress(Exception):
                results[key] = str(await client.get(key))
        return results

    async def aclose(self) -> None:
        for state in self._states:
            await state.aclose()


@pytest.fixture
async def shards(server: RedisServer, request: pytest.FixtureRequest) -> AsyncIterator[Shards]:
    result = Shards(server, f"run-{abs(hash(request.node.name))}")
    yield result
    await result.aclose()


class Planned:
    """`asyncio` as the limiter sees it: `times` are those at which it would wake up, and it does not sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times: list[float] = []
        monkeypatch.setattr(shared_redis, "asyncio", self)

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)

    async def sleep(self, wait_s: float) -> None:
        self.times.append(time.monotonic() + wait_s)

    def busiest_minute(self) -> int:
        self.times.sort()
        return max(bisect_left(self.times, start + 60) - place for place, start in enumerate(self.times))


async def test_shards_together_keep_the_limit_in_every_minute_and_use_nearly_all_of_it(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = Planned(monkeypatch)
    # So many turns are given out already that they do not run out, however slowly this machine asks for more.
    await shards.state().limiter("requests", 3_000, 1).acquire(30_000)
    planned.times.clear()

    async def shard() -> None:
        limits = RateLimits(3_000, limiter=shards.state().limiter)
        for _ in range(900):
            await limits.request_slot()

    await asyncio.gather(*(shard() for _ in range(4)))
    assert 0.93 * 3_000 <= planned.busiest_minute() <= 3_000


async def test_tokens_per_minute_are_kept_by_all_shards_together(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = Planned(monkeypatch)
    request = ModelRequest(system="x" * 4_000, parts=())

    async def shard() -> None:
        limits = RateLimits(tokens_per_minute=60_000, limiter=shards.state().limiter)
        for _ in range(50):
            await limits.token_slots(request)

    await asyncio.gather(shard(), shard())
    assert planned.busiest_minute() * estimate_tokens(request) <= 60_000


async def test_a_turn_that_came_too_late_is_not_used(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_redis, "_GRACE_S", 0.2)
    limiter = SharedLimiter(shards.state(), "requests", per_second=1_000)
    turns: list[float] = []

    class Busy:
        """`asyncio` as the limiter sees it, in a process that is too busy to use its first turn."""

        def __getattr__(self, name: str) -> object:
            return getattr(asyncio, name)

        async def sleep(self, wait_s: float) -> None:
            turns.append(wait_s)
            await asyncio.sleep(wait_s + (0.3 if len(turns) == 1 else 0))

    monkeypatch.setattr(shared_redis, "asyncio", Busy())
    await limiter.acquire()
    assert len(turns) > 1


async def test_the_budget_is_exceeded_by_no_more_than_the_calls_in_flight(shards: Shards) -> None:
    inner = ScriptedModel(lambda _: "x")
    models = [
        MeteredModel(inner, PRICE, own=shards.budget(f"00{index}", max_tokens=100 * USED), concurrency=4)
        for index in range(4)
    ]
    results = await asyncio.gather(
        *(model.complete(ASK) for model in models for _ in range(50)), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, BaseException)]
    assert {type(error) for error in refused} == {ModelBudgetSpent}
    assert len(inner.requests) == 200 - len(refused)
    assert 100 <= len(inner.requests) <= 100 + 16
    assert sum(model.spending.tokens for model in models) == len(inner.requests) * USED


async def test_a_budget_in_dollars_is_one_of_all_shards(shards: Shards) -> None:
    inner = ScriptedModel(lambda _: "x")
    first, second = (
        MeteredModel(inner, PRICE, own=shards.budget(name, max_cost_usd=2 * USED / 1e6)) for name in ("000", "001")
    )
    await first.complete(ASK)
    await second.complete(ASK)
    with pytest.raises(ModelBudgetSpent, match=r"the budget of 0\.00022 USD is spent"):
        await first.complete(ASK)


async def test_a_call_waits_until_it_fits_beside_those_of_other_shards(shards: Shards) -> None:
    first, second = shards.budget("000", max_tokens=1_000), shards.budget("001", max_tokens=1_000)
    async with first.reserve(600, 0.0):
        waiting = asyncio.create_task(second.reserve(600, 0.0).__aenter__())
        while second._is_first:
            await asyncio.sleep(0)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 20)


async def test_a_call_of_a_killed_process_counts_as_spent(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_redis, "_MARGIN_S", 0.0)
    killed = shards.budget("000", max_tokens=1_000, timeout_s=0.05)
    call = killed.reserve(1_000, 0.0)
    await call.__aenter__()
    again = shards.budget("000", max_tokens=1_000)
    with pytest.raises(ModelBudgetSpent):
        async with again.reserve(1, 0.0):
            raise AssertionError
    # It was slow, not dead: the server has forgotten its call, and what it reports counts too.
    await call.__aexit__(None, None, None)


async def test_a_call_that_ended_while_the_server_was_away_counts_once(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_redis, "_MARGIN_S", 0.0)
    budget = shards.budget(max_tokens=1_000, timeout_s=0.1)
    away = SharedStateFault("away")

    async def fail(**_: str) -> str:
        raise away

    async with budget.reserve(400, 0.0):
        budget.spending.add(TokenUsage(calls=1, input=400), 0.0)
        monkeypatch.setattr(budget, "_ask", fail)
    monkeypatch.undo()
    # One call after the other, so that the lapse of the first would be seen by the second.
    for _ in range(2):
        async with budget.reserve(1, 0.0):
            await asyncio.sleep(0.15)
    assert budget._spent()[0] == 400


async def test_what_a_shard_spent_before_counts_once_however_often_it_is_resumed(shards: Shards) -> None:
    for _ in range(2):
        before = Spending(TokenUsage(calls=1, input=90))
        budget = shards.budget("000", max_tokens=100, spending=before)
        async with budget.reserve(1, 0.0):
            before.add(TokenUsage(calls=1, input=4), None)
    assert budget._spent()[0] == 98


@pytest.mark.parametrize("kind", ["held", "replies"])
async def test_a_server_that_lost_its_data_or_is_gone_ends_all_calls(tmp_path: Path, kind: str) -> None:
    inner = ScriptedModel(lambda _: "x")
    with redis_server(tmp_path) as own:
        shards = Shards(own, "run")
        metered = MeteredModel(inner, PRICE, own=shards.budget(max_tokens=10_000))
        model = shards.cached(inner) if kind == "replies" else metered
        await model.complete(ASK)
        if kind == "held":
            own.kill()
            own.start()
            with pytest.raises(SharedStateFault, match=r"has lost what the shards have spent .*start all"):
                await model.complete(ASK)
        own.kill()
        other = ModelRequest(system="another", parts=())
        with pytest.raises(SharedStateFault, match=r"the Redis server at 127\.0\.0\.1:\d+, .*failed: ConnectionError"):
            await model.complete(other)
        await shards.aclose()
    assert len(inner.requests) == 1


async def test_a_reply_that_is_paid_for_survives_the_servers_end(tmp_path: Path) -> None:
    with redis_server(tmp_path) as own:
        shards = Shards(own, "run")

        def answer(_: ModelRequest) -> str:
            own.kill()
            return "paid"

        metered = MeteredModel(ScriptedModel(answer), PRICE, own=shards.budget())
        model = CachedModel(metered, namespace="n", folder=None, shared=RedisReplies(shards.state()))
        assert (await model.complete(ASK)).text == "paid"
        await shards.aclose()


async def test_a_reply_is_paid_for_by_one_shard_and_used_by_all(shards: Shards) -> None:
    first, second = ScriptedModel(lambda _: "one"), ScriptedModel(lambda _: "two")
    reply = await shards.cached(first).complete(ASK)
    assert await shards.cached(second).complete(ASK) == reply
    assert second.requests == []


async def test_a_reply_counts_once_in_all_shards_also_when_a_shard_is_started_again(shards: Shards) -> None:
    model = ScriptedModel(lambda _: "one")
    caches = [shards.cached(model) for _ in range(3)]
    # Whoever asks ahead does not count anything.
    await caches[0].complete(ASK)
    counted = [await cache.complete(ASK, payer) for cache, payer in zip(caches, ("b", "a", "b"), strict=True)]
    assert [(reply.usage.calls, reply.cost_usd) for reply in counted] == [(1, 0.01), (0, 0.0), (1, 0.01)]


async def test_a_new_reply_in_place_of_an_unusable_one_is_counted(shards: Shards) -> None:
    model = ScriptedModel(lambda _: "x")
    first, second = shards.cached(model), shards.cached(model)
    await first.complete(ASK, "a")
    await first.discard(ASK)
    assert (await second.complete(ASK, "b")).usage.calls == 1


async def test_a_request_under_way_in_another_shard_is_waited_for(shards: Shards) -> None:
    first, second = ScriptedModel(lambda _: "one"), ScriptedModel(lambda _: "two")
    first.gate = asyncio.Event()
    asking = asyncio.create_task(shards.cached(first).complete(ASK))
    while not first.requests:
        await asyncio.sleep(0.001)
    others = [asyncio.create_task(shards.cached(second).complete(ASK)) for _ in range(3)]
    await asyncio.wait(others, timeout=0.3)
    first.gate.set()
    replies = await asyncio.gather(asking, *others)
    assert {reply.text for reply in replies} == {"one"}
    assert second.requests == []


async def test_after_an_error_the_shard_that_waited_asks(shards: Shards) -> None:
    first, second = ScriptedModel(lambda _: ModelUnavailable("down")), ScriptedModel(lambda _: "two")
    with pytest.raises(ModelUnavailable):
        await shards.cached(first).complete(ASK)
    assert (await shards.cached(second).complete(ASK)).text == "two"


async def test_a_process_that_was_killed_while_it_asked_blocks_the_others_for_a_while_only(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_redis, "_LEASE_S", 0.2)
    model = ScriptedModel(lambda _: "x")
    cache = shards.cached(model)
    state = shards.state()
    await cache.complete(ASK)
    (file,) = await shards.keys("reply:")
    await state.client.delete(file)
    await state.client.lock(file.replace("reply", "asking"), timeout=0.2).acquire()
    await asyncio.wait_for(shards.cached(model).complete(ASK), 20)
    assert len(model.requests) == 2


async def test_a_process_that_still_asks_keeps_its_claim(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_redis, "_LEASE_S", 2.0)
    model = ScriptedModel(lambda _: "x")
    model.gate = asyncio.Event()
    asking = asyncio.create_task(shards.cached(model).complete(ASK))
    state = shards.state()
    while not (keys := await shards.keys("asking:")):
        await asyncio.sleep(0.001)
    left = await state.client.pttl(keys[0])
    while (now := await state.client.pttl(keys[0])) <= left:
        assert now > 0
        left = now
        await asyncio.sleep(0.01)
    model.gate.set()
    await asking
    assert await shards.keys("asking:") == []


async def test_an_unusable_reply_is_forgotten_for_all_shards(shards: Shards) -> None:
    model = ScriptedModel(lambda _: "x")
    first, second = shards.cached(model), shards.cached(model)
    await first.complete(ASK)
    await first.discard(ASK)
    await second.complete(ASK)
    assert len(model.requests) == 2


async def test_a_reply_that_is_damaged_or_too_large_is_asked_for_again(shards: Shards) -> None:
    answers: Iterator[str | Completion] = iter(["x" * 2_000_000, "y", "z"])
    model = ScriptedModel(lambda _: next(answers))
    assert len((await shards.cached(model).complete(ASK)).text) == 2_000_000
    assert (await shards.cached(model).complete(ASK)).text == "y"
    state = shards.state()
    (file,) = await shards.keys("reply:")
    await state.client.set(file, "{")
    assert (await shards.cached(model).complete(ASK)).text == "z"


async def test_what_a_cancelled_caller_has_begun_ends_before_the_connections_are_closed(shards: Shards) -> None:
    state, has_begun, goes_on = shards.state(), asyncio.Event(), asyncio.Event()

    async def command() -> None:
        has_begun.set()
        await goes_on.wait()
        await state.client.set(state.key("ended"), "1")

    caller = asyncio.create_task(state.to_end(command()))
    await has_begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    asyncio.get_running_loop().call_later(0.05, goes_on.set)
    await state.aclose()
    assert await shards.keys("ended")
    pool = state.client.connection_pool
    assert not pool._in_use_connections
    assert not any(each.is_connected for each in pool._available_connections)


async def test_keys_belong_to_the_run_expire_and_hold_no_secret(shards: Shards, server: RedisServer) -> None:
    limits = RateLimits(600, 100_000, limiter=shards.state().limiter)
    model = MeteredModel(ScriptedModel(lambda _: completion("x")), PRICE, own=shards.budget(), rates=limits)
    replies = RedisReplies(shards.state())
    await CachedModel(model, namespace="n", folder=None, shared=replies).complete(ASK)
    state = shards.state()
    await state.check()
    keys = await shards.keys()
    assert len(keys) == 5
    assert all([await state.client.pttl(key) > 0 for key in keys])
    contents = await shards.contents()
    assert all(key.startswith("wabe:") for key in contents)
    assert not any(secret in f"{contents}" for secret in (PASSWORD, "private prompt"))


@pytest.mark.parametrize("url", ["127.0.0.1:6379", "http://user:secret-word@host/"])
def test_an_address_that_cannot_be_read_is_one_clear_error(url: str) -> None:
    with pytest.raises(ConfigError, match="WABE_REDIS_URL is not the address of a Redis server") as caught:
        RedisState(SecretStr(url), "run")
    assert "secret-word" not in str(caught.value)


async def test_a_wrong_password_is_a_fault_that_does_not_show_it(server: RedisServer) -> None:
    wrong = SecretStr(server.url.get_secret_value().replace(PASSWORD, "wrong-word"))
    with pytest.raises(SharedStateFault, match="AuthenticationError") as caught:
        await RedisState(wrong, "run").check()
    assert "wrong-word" not in str(caught.value)
