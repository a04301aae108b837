"""Four shards that share one judge model through a real Redis server: rate limit, budget and replies.

`python benchmarks/shared_limits.py [--minutes 3] [--processes 4] [--per-minute 3000]` needs `redis-server`. Each shard
is its own process, and a model server on loopback counts requests:

- rate: as many requests as the shards can make. Busiest minute at most the limit, at least 93 % of it used.
- budget: enough for 1,000 calls. Exceeded by no more than the calls in flight.
- replies: all shards ask the same 400 questions, and one is killed in the middle. No reply is paid for twice; only
  requests that the killed one had in flight may be repeated. Exit code 1 if one of these fails.
"""

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from pydantic import SecretStr

from judge.plugins.redis.state import RedisReplies, RedisState, SharedBudget
from model_server import model_server, read_stats
from plugins.redis.redis_server import RedisServer, redis_server
from shared.errors import ModelBudgetSpent, ModelError
from shared.llm.cache import CachedModel
from shared.llm.limits import MeteredModel, RateLimits, Spending
from shared.llm.model import ModelRequest
from shared.llm.opening import open_model
from shared.settings import Settings

CONCURRENCY = 16
# On a busy machine, calls take longer than the model does: enough of them keep the limit used.
RATE_CONCURRENCY = 64
LATENCY_S = 0.2
TOKENS_PER_CALL = 1_540
BUDGET_CALLS = 1_000
QUESTIONS = 400


async def shard(kind: str, number: int, redis_url: str, model_url: str, per_minute: int, seconds: float) -> None:
    """One shard: asks until time, budget or questions are over. Prints how many questions were answered."""
    state = RedisState(SecretStr(redis_url), kind)
    model = open_model("openai:bench", Settings(), purpose="bench", timeout_s=120, base_url=f"{model_url}/v1")
    budget = SharedBudget(
        state,
        f"{number:03d}",
        max_cost_usd=None,
        max_tokens=BUDGET_CALLS * TOKENS_PER_CALL if kind == "budget" else None,
        spending=Spending(),
        call_timeout_s=120,
    )
    rates = RateLimits(per_minute, limiter=state.limiter)
    concurrency = RATE_CONCURRENCY if kind == "rate" else CONCURRENCY
    metered = MeteredModel(model, None, own=budget, rates=rates, concurrency=concurrency)
    cached = CachedModel(metered, namespace="bench", folder=None, shared=RedisReplies(state))
    until, answered = time.monotonic() + seconds, 0
    questions = iter(range(QUESTIONS if kind == "replies" else 1_000_000))

    async def ask() -> None:
        nonlocal answered
        for question in questions:
            if time.monotonic() > until:
                return
            name = f"{question}" if kind == "replies" else f"{number} {question}"
            try:
                await cached.complete(ModelRequest(system="s", parts=(name,)))
            except ModelBudgetSpent:
                return
            except ModelError as error:
                print(error, file=sys.stderr)
            answered += 1

    await asyncio.gather(*(ask() for _ in range(concurrency)))
    await cached.aclose()
    print(answered)


def play(
    kind: str, redis: RedisServer, arguments: argparse.Namespace, *, per_minute: int, seconds: float, kill: bool = False
) -> dict[str, float]:
    """All shards of one kind of run, and the model server's counts."""
    with model_server(LATENCY_S, arguments.per_minute if kind == "rate" else None) as url:
        words = [sys.executable, __file__, "--shard", kind]
        rest = [redis.url.get_secret_value(), url, str(per_minute), str(seconds)]
        shards = [
            subprocess.Popen([*words, str(number), *rest], stdout=subprocess.PIPE, text=True)
            for number in range(arguments.processes)
        ]
        if kill:
            while float(str(read_stats(url)["requests"])) < QUESTIONS / 2:
                time.sleep(0.02)
            shards[0].kill()
        answers = [process.communicate()[0] for process in shards]
        counts = {name: float(str(value)) for name, value in read_stats(url).items()}
    done = [int(answer) for answer in answers if answer.strip()]
    return counts | {"answered": sum(done), "finished": len(done)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--per-minute", type=int, default=3_000)
    arguments = parser.parse_args()
    limit, in_flight = arguments.per_minute, arguments.processes * CONCURRENCY
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as redis:
        rate = play("rate", redis, arguments, per_minute=limit, seconds=arguments.minutes * 60)
        budget = play("budget", redis, arguments, per_minute=60_000, seconds=600)
        replies = play("replies", redis, arguments, per_minute=60_000, seconds=600, kill=True)
    used = rate["requests"] / rate["span_s"] * 60 / limit
    print(
        f"rate: {arguments.processes} processes, {rate['requests']:.0f} requests in {rate['span_s']:.0f} s; busiest "
        f"minute {rate['busiest_minute']:.0f} of {limit}, {used:.1%} used, {rate['refused']:.0f} refused"
    )
    over = budget["requests"] - BUDGET_CALLS
    print(f"budget: {budget['requests']:.0f} calls with a budget for {BUDGET_CALLS}, at most {in_flight} in flight")
    again = replies["requests"] - replies["distinct"]
    print(
        f"replies: {replies['answered']:.0f} answers for {arguments.processes - 1} processes, one more killed; "
        f"{replies['distinct']:.0f} questions, {again:.0f} of them asked again (at most {CONCURRENCY} were in flight)"
    )
    is_kept = rate["busiest_minute"] <= limit and used >= 0.93 and rate["refused"] == 0
    is_shared = replies["distinct"] == QUESTIONS and again <= CONCURRENCY and 0 <= over <= in_flight
    return int(not (is_kept and is_shared))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--shard"]:
        kind, number, redis_url, model_url, per_minute, seconds = sys.argv[2:]
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(shard(kind, int(number), redis_url, model_url, int(per_minute), float(seconds)))
    else:
        sys.exit(main())
