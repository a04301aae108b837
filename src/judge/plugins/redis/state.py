"""State that the shards of a run share through a Redis server: rate limits, budget, and the judge model's replies.

Every key begins with `wabe:` and the run's id, and expires. If the server does not answer, a model call fails before it
is sent: there is no fallback to the limits of a single process.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr, ValidationError

from shared.concurrency import T
from shared.engines import Engine
from shared.errors import ConfigError, SharedStateFault
from shared.imports import optional_package
from shared.llm.limits import Budget, Spending
from shared.llm.model import Completion

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.lock import Lock

log = logging.getLogger(__name__)
_TIMEOUT_S = 5.0
_RETRIES = 3
_AT_ONCE = 16
# Two weeks after the last use. In a run resumed later, the total is rebuilt from what each resumed shard has recorded.
_KEPT_MS = 14 * 24 * 3600 * 1000
_MAX_REPLY_BYTES = 1_000_000
_POLL_S = 0.2
# A request is sent at most this long after its slot. Network latency varies, so slightly less than the limit is used.
_GRACE_S = 1.5
_USED_SHARE = 0.995
# How long others wait for a process killed while it was waiting for the model.
_LEASE_S = 20.0
# A call that has not ended by its time limit and this counts as lost.
_MARGIN_S = 60.0
_NANO_USD = 1_000_000_000

# The time from now at which the next request may be sent, in seconds. The server's clock, so that all shards agree.
# `%.0f`, because Lua writes large numbers with an exponent.
_NEXT_SLOT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local slot = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local after = slot + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', string.format('%.0f', (after - now) / 1000 + 60000))
return string.format('%.6f', (slot - now) / 1000000)
"""

# Adds what a process has spent so far, ends one of its calls, and begins another if it fits. Idempotent, because a
# command may be sent twice. Totals have the fields `calls`, `tokens` and `cost`, once for the run and once for each
# process; calls in flight are members "ID TOKENS COST" of a sorted set, scored by the time at which they count as lost.
_BUDGET = """
local totals, held = KEYS[1], KEYS[2]
local process, shard, is_first, ended, wanted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local max_tokens, max_cost, lease_ms, kept_ms = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local names = {'calls', 'tokens', 'cost'}
local function get(name) return tonumber(redis.call('HGET', totals, name) or '0') end
local function add(name, value)
  if value ~= 0 then redis.call('HINCRBY', totals, name, string.format('%.0f', value)) end
end
local function amounts(call)
  local tokens, cost = string.match(call, ' (%d+) (%d+)$')
  return tonumber(tokens), tonumber(cost)
end
local function release(call, is_lost)
  if redis.call('ZREM', held, call) == 0 then return end
  local tokens, cost = amounts(call)
  add('held_tokens', -tokens)
  add('held_cost', -cost)
  if is_lost then
    add('calls', 1)
    add('tokens', tokens)
    add('cost', cost)
  end
end

if redis.call('HEXISTS', totals, process .. ':calls') == 0 then
  if is_first ~= '1' then return {'lost', 0, 0, 0} end
  local is_new = redis.call('HSETNX', totals, 'shard:' .. shard, 1) == 1
  for i, name in ipairs(names) do
    redis.call('HSET', totals, process .. ':' .. name, 0)
    if is_new then add(name, tonumber(ARGV[12 + i])) end
  end
end
for i, name in ipairs(names) do
  local more = tonumber(ARGV[9 + i]) - get(process .. ':' .. name)
  if more > 0 then
    add(name, more)
    add(process .. ':' .. name, more)
  end
end
if ended ~= '' then release(ended, false) end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
for _, call in ipairs(redis.call('ZRANGEBYSCORE', held, '-inf', now_ms, 'LIMIT', 0, 1000)) do release(call, true) end

local calls, spent_tokens, spent_cost = get('calls'), get('tokens'), get('cost')
local state = ''
if wanted ~= '' and redis.call('ZSCORE', held, wanted) then
  state = 'held'
elseif max_tokens >= 0 and spent_tokens >= max_tokens or max_cost >= 0 and spent_cost >= max_cost then
  state = 'spent'
elseif wanted ~= '' then
  local tokens, cost = amounts(wanted)
  local is_alone = redis.call('ZCARD', held) == 0
  local in_tokens = max_tokens < 0 or spent_tokens + get('held_tokens') + tokens <= max_tokens
  local in_cost = max_cost < 0 or spent_cost + get('held_cost') + cost <= max_cost
  if is_alone or (in_tokens and in_cost) then
    redis.call('ZADD', held, string.format('%.0f', now_ms + lease_ms), wanted)
    add('held_tokens', tokens)
    add('held_cost', cost)
    state = 'held'
  end
end
redis.call('PEXPIRE', totals, kept_ms)
redis.call('PEXPIRE', held, kept_ms)
return {state, calls, spent_tokens, spent_cost}
"""


class RedisState:
    """The shared state of the run `run_id` on the Redis server at `url`.

    Raises `ConfigError` if the package is missing or the address is invalid; connects on first use.
    """

    def __init__(self, url: SecretStr, run_id: str) -> None:
        with optional_package("WABE_REDIS_URL needs redis", "redis"):
            from redis import asyncio as aioredis
            from redis.asyncio.retry import Retry
            from redis.backoff import ExponentialBackoff
            from redis.exceptions import ConnectionError as Unreachable
            from redis.exceptions import RedisError
            from redis.exceptions import TimeoutError as Unanswered
        self._error = RedisError
        self._prefix = f"wabe:{run_id}"
        try:
            pool = aioredis.ConnectionPool.from_url(
                url.get_secret_value(),
                # More than are used at once, to leave room for commands whose callers were cancelled.
                max_connections=4 * _AT_ONCE,
                socket_timeout=_TIMEOUT_S,
                socket_connect_timeout=_TIMEOUT_S,
                # Safe because every command sent here is idempotent.
                retry=Retry(ExponentialBackoff(cap=1.0, base=0.1), _RETRIES, (Unreachable, Unanswered)),
                decode_responses=True,
            )
        except ValueError:
            # The error's text may contain the password.
            raise ConfigError(
                "WABE_REDIS_URL is not the address of a Redis server", remedy="use redis://HOST:6379/0 or rediss://…"
            ) from None
        address = pool.connection_kwargs
        self._server = f"{address.get('host', address.get('path', 'localhost'))}:{address.get('port', 6379)}"
        self._places = asyncio.Semaphore(_AT_ONCE)
        self.client: Redis = aioredis.Redis(connection_pool=pool)
        self._ending: set[asyncio.Task[Any]] = set()

    def key(self, name: str) -> str:
        """The key `name` of this run."""
        return f"{self._prefix}:{name}"

    @contextlib.asynccontextmanager
    async def command_errors(self) -> AsyncIterator[None]:
        """Wraps every command. Raises `SharedStateFault` if the server does not answer, or refuses."""
        try:
            async with self._places:
                yield
        except self._error as error:
            raise SharedStateFault(
                f"the Redis server at {self._server}, which all shards share limits through, failed: "
                f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
                remedy="start it, then resume or score again",
            ) from None

    def limiter(self, name: str, per_minute: float, largest: float) -> "SharedLimiter":
        """A limiter of at most `per_minute` in any 60 s, for amounts up to `largest`."""
        # A window contains the flow during it and the grace period before it, and all of the last amount to begin.
        flow = per_minute * _USED_SHARE - (largest if largest > 1 else 0)
        return SharedLimiter(self, name, flow / (60 + _GRACE_S))

    def budget(self, shard: str, *limits: Any, **options: Any) -> "SharedBudget":
        """The budget of all shards, with the arguments of `SharedBudget`."""
        return SharedBudget(self, shard, *limits, **options)

    def replies(self) -> "RedisReplies":
        """The replies of all shards."""
        return RedisReplies(self)

    async def check(self) -> None:
        """Raises `SharedStateFault` unless the server answers."""
        async with self.command_errors():
            await self.client.set(self.key("checked"), "1", px=60_000)

    async def to_end(self, command: Coroutine[Any, Any, T]) -> T:
        """Run a command to its end, also if the caller is cancelled."""
        task = asyncio.create_task(command)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Close the connections, after the commands that have to end. One that came later would open another one."""
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self.client.connection_pool.disconnect()


class SharedLimiter:
    """Lets amounts through at `per_second` over all shards, in the order in which they ask.

    The server assigns a time slot to each. A slot that cannot be used within `_GRACE_S` is given up, so that late
    requests do not pile up on those that follow.
    """

    max_rate = float("inf")

    def __init__(self, state: RedisState, name: str, per_second: float) -> None:
        self._state = state
        self._key = state.key(name)
        self._per_second = per_second
        self._next_slot = state.client.register_script(_NEXT_SLOT)

    async def acquire(self, amount: float = 1) -> None:
        """Wait until `amount` may be used. Raises `SharedStateFault`."""
        clock = asyncio.get_running_loop().time
        while True:
            started_at = clock()
            async with self._state.command_errors():
                wait_s = float(await self._next_slot(keys=[self._key], args=[round(amount / self._per_second * 1e6)]))
            await asyncio.sleep(wait_s)
            if clock() <= started_at + wait_s + _GRACE_S:
                return


class SharedBudget(Budget):
    """A budget that all shards of a run share. `spending` is what this shard alone has spent.

    A shard learns the others' spending when it begins or ends a call. A call in flight when its process was
    killed counts at its estimate after `call_timeout_s`.
    """

    def __init__(
        self,
        state: RedisState,
        shard: str,
        max_cost_usd: float | None,
        max_tokens: int | None,
        *,
        spending: Spending | None,
        call_timeout_s: float,
    ) -> None:
        # The server counts in billionths of a dollar.
        super().__init__(None if max_cost_usd is None else round(max_cost_usd, 9), max_tokens, spending=spending)
        self._state = state
        self._shard = shard
        self._process = f"process:{secrets.token_hex(8)}"
        self._before = _amounts(self.spending)
        self._is_first = True
        # Calls that have ended but could not be reported to the server.
        self._unreleased: set[str] = set()
        self._lease_ms = round((call_timeout_s + _MARGIN_S) * 1000)
        self._script = state.client.register_script(_BUDGET)
        self._calls, self._tokens, self._nano_usd = self._before

    @contextlib.asynccontextmanager
    async def reserve(self, tokens: int, cost_usd: float) -> AsyncIterator[None]:
        """As `Budget.held`, beside the calls of all shards. Raises `SharedStateFault` too."""
        name, call = secrets.token_hex(8), ""
        # Otherwise they would count twice: at their cost, and as lost.
        for over in tuple(self._unreleased):
            await self._ask(end=over)
            self._unreleased.discard(over)
        try:
            while True:
                # The average so far includes other shards' calls.
                calls = max(self._calls, 1)
                cost = max(round(cost_usd * _NANO_USD), self._nano_usd // calls)
                call = f"{name} {max(tokens, self._tokens // calls)} {cost}"
                if await self._ask(claim=call) == "held":
                    break
                self.check()
                await asyncio.sleep(_POLL_S)
            yield
        finally:
            try:
                await self._state.to_end(self._ask(end=call))
            except SharedStateFault as error:
                # The reply is paid for and must not be lost; the next call reports this one's cost, or fails.
                log.warning("%s", error.message)
                self._unreleased.add(call)

    def _spent(self) -> tuple[int, float]:
        return self._tokens, self._nano_usd / _NANO_USD

    async def _ask(self, *, claim: str = "", end: str = "") -> str:
        mine = (now - before for now, before in zip(_amounts(self.spending), self._before, strict=True))
        arguments: list[str | int] = [self._process, self._shard, int(self._is_first), end, claim]
        arguments += [
            -1 if self._max_tokens is None else self._max_tokens,
            -1 if self._max_cost_usd is None else round(self._max_cost_usd * _NANO_USD),
        ]
        arguments += [self._lease_ms, _KEPT_MS, *mine, *self._before]
        async with self._state.command_errors():
            keys = [self._state.key("spent"), self._state.key("under way")]
            state, *totals = await self._script(keys=keys, args=arguments)
        if state == "lost":
            raise SharedStateFault(
                "the Redis server has lost what the shards have spent",
                remedy="let it keep its data, then start all shards again: they resume",
            )
        self._is_first = False
        self._calls, self._tokens, self._nano_usd = map(int, totals)
        return str(state)


def _amounts(spending: Spending) -> tuple[int, int, int]:
    """Calls, tokens, and billionths of a dollar."""
    return spending.usage.calls, spending.tokens, round((spending.cost_usd or 0.0) * _NANO_USD)


class RedisReplies:
    """Replies that one shard has paid for and all may use. Shards wait for a request that another has in flight."""

    def __init__(self, state: RedisState) -> None:
        self._state = state
        self.id = state.key("replies")

    async def once(self, name: str, ask: Callable[[], Awaitable[Completion]]) -> Completion:
        """The stored reply to the request `name`, the one that another shard is waiting for, or what `ask` returns.

        Errors are not stored: after one, the next waiting caller asks. Raises `SharedStateFault`.
        """
        lock = self._state.client.lock(self._state.key(f"asking:{name}"), timeout=_LEASE_S)
        while (completion := await self._read(name)) is None:
            async with self._state.command_errors():
                is_claimed = await lock.acquire(blocking=False)
            if is_claimed:
                return await self._once(name, ask, lock)
            await asyncio.sleep(_POLL_S)
        return completion

    async def _once(self, name: str, ask: Callable[[], Awaitable[Completion]], lock: "Lock") -> Completion:
        try:
            # Another shard may have stored the reply just before we got the lock.
            if (reply := await self._read(name)) is not None:
                return reply
            async with self._renewed(lock):
                completion = await ask()
                await self._write(name, completion)
            return completion
        finally:
            # If the server does not answer, the lock expires.
            with contextlib.suppress(SharedStateFault):
                async with self._state.command_errors():
                    # Others need not wait for the lock to expire if the caller is cancelled.
                    await self._state.to_end(lock.release())

    async def payer(self, name: str, payer: str) -> str:
        """The shard that counts the cost of a shared reply: the first one that claimed it with `payer`."""
        key = self._payer(name)
        try:
            async with self._state.command_errors():
                await self._state.client.set(key, payer, px=_KEPT_MS, nx=True)
                return str(await self._state.client.get(key) or payer)
        except SharedStateFault as error:
            # Counted twice rather than not at all.
            log.warning("%s", error.message)
            return payer

    async def discard(self, name: str) -> None:
        """Forget the reply to a request."""
        with contextlib.suppress(SharedStateFault):
            async with self._state.command_errors():
                await self._state.client.delete(self._reply(name), self._payer(name))

    def _payer(self, name: str) -> str:
        return self._state.key(f"payer:{name}")

    def _reply(self, name: str) -> str:
        return self._state.key(f"reply:{name}")

    async def _read(self, name: str) -> Completion | None:
        async with self._state.command_errors():
            data: Any = await self._state.client.get(self._reply(name))
        # A damaged reply counts as absent and is replaced.
        with contextlib.suppress(ValidationError):
            return Completion.model_validate_json(data) if data is not None else None
        return None

    async def _write(self, name: str, completion: Completion) -> None:
        data = completion.model_dump_json()
        if len(data) > _MAX_REPLY_BYTES:
            log.warning("a reply of %d bytes is not shared", len(data))
            return
        try:
            async with self._state.command_errors():
                await self._state.client.set(self._reply(name), data, px=_KEPT_MS)
        except SharedStateFault as error:
            log.warning("a reply is not shared: %s", error.message)

    @contextlib.asynccontextmanager
    async def _renewed(self, lock: "Lock") -> AsyncIterator[None]:
        async def renew() -> None:
            while True:
                await asyncio.sleep(_LEASE_S / 4)
                # The next attempt comes before the lease expires.
                with contextlib.suppress(SharedStateFault):
                    async with self._state.command_errors():
                        await lock.reacquire()

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._state.aclose()


ENGINE = Engine(shared_state=RedisState)
