"""Shards that share limits through Redis lose it while they judge: unscored, nothing more is spent, never a success."""

from pathlib import Path

import pytest

from helpers.episode.live_judge import ALWAYS_YES
from helpers.llm.scripted import trajectory
from helpers.llm.servers import Answer, ModelCall, openai_answer, serving
from judge.config import RunConfig
from judge.judges.base import Judge
from judge.judges.factory import open_judge
from judge.plugins.redis import state as shared_redis
from plugins.redis.redis_server import RedisServer, redis_server
from shared.settings import Settings


def shard(number: int, model_url: str, redis: RedisServer) -> Judge:
    config = RunConfig(
        run_id=f"run/shards/00{number}-of-002",
        judge_model="openai:m",
        judge_base_url=f"{model_url}/v1",
        max_judge_tokens=1_000_000,
        judge_requests_per_minute=60_000,
    )
    settings = Settings.from_environ({"OPENAI_API_KEY": "k", "WABE_REDIS_URL": redis.url.get_secret_value()})
    return open_judge(config, settings, cache_dir=None, shards=2)


async def test_two_shards_that_judge_the_same_evidence_pay_for_it_once(tmp_path: Path) -> None:
    with redis_server(tmp_path) as redis:
        async with serving(openai_answer(ALWAYS_YES)) as server:
            judges = [shard(number, server.url, redis) for number in range(2)]
            first, second = [await judge.judge(trajectory(tmp_path / "t")) for judge in judges]
            for judge in judges:
                await judge.aclose()
    # Key points, two screenshots, the outcome.
    assert len(server.received) == 4
    assert first.outcome == second.outcome == "success"


@pytest.mark.slow
@pytest.mark.parametrize("answered", [0, 1, 3])
async def test_without_the_server_a_verdict_is_unscored_and_no_more_calls_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: int
) -> None:
    monkeypatch.setattr(shared_redis, "_RETRIES", 1)
    with redis_server(tmp_path) as redis:

        def plan(_: ModelCall, number: int) -> Answer:
            if number == answered:
                redis.kill()
            return openai_answer(ALWAYS_YES)

        async with serving(plan=plan) as server:
            judge = shard(0, server.url, redis)
            verdict = await judge.judge(trajectory(tmp_path / "t"))
            await judge.aclose()
    if answered == 3:
        # The last question was answered and paid for.
        assert verdict.outcome == "success"
    else:
        assert verdict.outcome == "unscored"
        assert verdict.reason.startswith("internal: the Redis server at 127.0.0.1")
        # Screenshots are asked about together.
        assert len(server.received) <= answered + 2
