"""A judge model call that is cut off after it was sent is billed, and so it counts: in the budget and in the record."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import LiveJudge, participant, some_tasks, to_the_goal
from helpers.llm.scripted import ScriptedModel
from helpers.llm.servers import Answer, openai_error, serving
from helpers.results import a_finished_run, a_result
from judge.config import RunConfig
from judge.judges.factory import open_judge
from judge.judges.stored import score_all
from judge.results.run_record import end_run, spending_before
from shared.a2a.client import AssessmentClient
from shared.errors import ModelBudgetSpent, ModelError, ModelUnavailable
from shared.llm.limits import Budget, MeteredModel, Spending, estimate_tokens
from shared.llm.model import ModelRequest
from shared.llm.prices import DATA_DATE, Price
from shared.llm.providers.openai import OpenAIModel
from shared.models import TokenUsage
from shared.settings import Settings

pytestmark = pytest.mark.slow

ASK = ModelRequest(system="s" * 400, parts=("p" * 400,))
PRICE = Price(input=1.0, cached=0.1, output=2.0)


async def cut_off(metered: MeteredModel, inner: ScriptedModel) -> None:
    """One call that is cancelled while it is under way."""
    inner.gate = asyncio.Event()
    calls_before = len(inner.requests)
    call = asyncio.create_task(metered.complete(ASK))
    while len(inner.requests) == calls_before:
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    inner.gate = None


async def test_a_cancelled_call_counts_by_estimate_and_is_marked() -> None:
    inner = ScriptedModel(lambda _: "x")
    metered = MeteredModel(inner, PRICE, own=Budget())
    await cut_off(metered, inner)
    assert metered.spending.usage == TokenUsage(calls=1, input=estimate_tokens(ASK), estimated_calls=1)
    assert metered.spending.cost_usd == pytest.approx(estimate_tokens(ASK) / 1e6)


@pytest.mark.parametrize("budget", [{"max_tokens": estimate_tokens(ASK)}, {"max_cost_usd": 1e-6}])
async def test_cancelled_calls_use_up_a_budget(budget: dict[str, Any]) -> None:
    inner = ScriptedModel(lambda _: "x")
    metered = MeteredModel(inner, PRICE, own=Budget(**budget))
    await cut_off(metered, inner)
    with pytest.raises(ModelBudgetSpent):
        await metered.complete(ASK)
    assert len(inner.requests) == 1


async def test_a_cancelled_call_without_a_price_counts_its_tokens() -> None:
    inner = ScriptedModel(lambda _: "x")
    metered = MeteredModel(inner, None, own=Budget())
    await cut_off(metered, inner)
    assert (metered.spending.usage.estimated_calls, metered.spending.cost_usd) == (1, None)


ENDS: dict[str, tuple[Callable[..., Answer], int]] = {
    "not answered in time": (lambda *_: Answer(delay_s=3), 1),
    "answered with garbage": (lambda *_: Answer(b"<html>"), 1),
    "answered after a refusal, too late": (
        lambda _, number: openai_error(503, "busy", retry_after_ms="1") if number == 0 else Answer(delay_s=3),
        1,
    ),
    "refused": (lambda *_: openai_error(400, "no"), 0),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_call_that_was_sent_without_reporting_usage_is_estimated(end: str) -> None:
    plan, counted = ENDS[end]
    async with serving(plan=plan) as server:
        # Short only where it is waited for: the other ends have to come within it.
        timeout_s = 0.5 if "late" in end or "in time" in end else 60
        # The wait before a repeated call is random: it must not use up the time in which that call is sent.
        inner = OpenAIModel("m", api_key="k", base_url=server.url, timeout_s=timeout_s, retry_delay_s=0.001)
        metered = MeteredModel(inner, PRICE, own=Budget())
        with pytest.raises(ModelError, match="openai:m"):
            await metered.complete(ASK)
        await metered.aclose()
    assert metered.spending.usage.estimated_calls == counted
    assert (metered.spending.cost_usd or 0) >= counted * estimate_tokens(ASK) / 1e6


async def test_an_endpoint_without_a_listener_bills_nothing() -> None:
    inner = OpenAIModel("m", api_key="k", base_url="http://127.0.0.1:9", timeout_s=60, retry_delay_s=0.001)
    metered = MeteredModel(inner, PRICE, own=Budget())
    with pytest.raises(ModelUnavailable):
        await metered.complete(ASK)
    await metered.aclose()
    assert metered.spending.usage == TokenUsage()


async def test_what_a_run_spent_before_it_was_interrupted_counts_in_its_budget(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, a_result("t1"))
    end_run(run, "cancelled", (), Spending(TokenUsage(calls=1, input=500, estimated_calls=1), 0.5))
    again = spending_before(run)
    metered = MeteredModel(ScriptedModel(lambda _: "x"), PRICE, own=Budget(max_tokens=500, spending=again))
    with pytest.raises(ModelBudgetSpent):
        await metered.complete(ASK)


async def test_stopping_a_scoring_counts_the_calls_under_way(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, a_result("t1"))
    spending, is_requested = Spending(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def plan(*_: object) -> Answer:
        loop.call_soon_threadsafe(is_requested.set)
        return Answer(delay_s=30)

    async with serving(plan=plan) as server:
        config = RunConfig(judge_model="openai:o4-mini", judge_base_url=f"{server.url}/v1")
        judge = open_judge(config, Settings(), cache_dir=None, spending=spending)
        scoring = asyncio.create_task(
            score_all([run.task("t1").folder], judge, max_parallel=1, again=True, done=lambda _: None)
        )
        await is_requested.wait()
        scoring.cancel()
        await asyncio.gather(scoring, return_exceptions=True)
        await judge.aclose()
    assert spending.usage.estimated_calls >= 1
    assert spending.cost_usd is not None
    assert spending.cost_usd > 0


@pytest.mark.usefixtures("text_browser")
async def test_cancelling_an_assessment_records_the_calls_under_way(judge: LiveJudge) -> None:
    is_requested, is_started = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def plan(*_: object) -> Answer:
        loop.call_soon_threadsafe(is_requested.set)
        return Answer(delay_s=30)

    judge.model.plan = plan
    with hostile_site() as site:
        async with participant(to_the_goal) as url, AssessmentClient(judge.url) as client:
            config = {"judge_model": "openai:o4-mini", "run_id": "cut-off", "judge_timeout_s": 60}

            async def follow() -> None:
                async with aclosing(client.run(judge.request(url, some_tasks(site.url), **config))) as events:
                    async for _ in events:
                        is_started.set()

            following = asyncio.create_task(follow())
            await is_requested.wait()
            await is_started.wait()
            await client.cancel()
            await following
    await judge.is_clean()
    record = json.loads((judge.output_dir / "runs" / "cut-off" / "run.json").read_text())
    assert record["state"] == "cancelled"
    assert record["judge_usage"]["token_usage"]["estimated_calls"] >= 1
    assert record["judge_usage"]["cost_usd"] > 0
    assert record["judge_usage"]["price_date"] == DATA_DATE
