"""What a request may ask for is bounded by the judge's owner, not by who sends it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import live_judge, some_tasks, to_the_goal
from helpers.llm.scripted import ScriptedModel, completion
from helpers.llm.servers import ModelServer
from helpers.runner.recorded_ends import RecordedEnds
from judge.config import RunConfig
from judge.scenario.models import AssessmentRequest
from judge.server.limits import Capacity, ServiceLimits
from judge.server.service import JudgeService
from shared.a2a.tasks import AgentMessage
from shared.errors import ModelBudgetSpent
from shared.llm.limits import Budget, MeteredModel, estimate_tokens
from shared.llm.model import ModelRequest
from shared.llm.prices import Price
from shared.models import TokenUsage
from shared.settings import Settings

PRICED, UNPRICED = "openai:o4-mini", "openai:a-model-of-my-own"
KEYS = Settings.from_environ({"OPENAI_API_KEY": "sk-not-a-real-key"})


async def ask(folder: Path, limits: ServiceLimits, tasks: int = 1, **config: Any) -> RecordedEnds:
    """How a judge with these limits ends a request that is accepted; its shard holds none of the tasks."""
    service = JudgeService(KEYS.model_copy(update={"browser_path": sys.executable}), folder, limits)
    empty_shard = {"shard_index": tasks, "num_shards": tasks + 1}
    request_body = {"tasks": some_tasks("https://shop.test/", tasks), "judge_model": PRICED, **empty_shard, **config}
    text = json.dumps({"participants": {"p": "http://127.0.0.1:1/"}, "config": request_body})
    ends = RecordedEnds()
    await service.execute(AgentMessage(text=text, context_id="c", task_id="t"), ends)
    return ends


def recorded(folder: Path, key: str) -> object:
    (path,) = folder.glob("runs/*/run.json")
    return json.loads(path.read_text())["config"][key]


@pytest.mark.parametrize("requested", [None, 1_000_000, 7], ids=["no budget", "a larger one", "a smaller one"])
@pytest.mark.parametrize(
    ("key", "limits"),
    [("max_judge_cost_usd", ServiceLimits(max_cost_usd=50)), ("max_judge_tokens", ServiceLimits(max_tokens=50))],
)
async def test_a_budget_is_clamped_to_the_judges_and_the_client_summary_of(
    tmp_path: Path, key: str, limits: ServiceLimits, requested: int | None
) -> None:
    ends = await ask(tmp_path, limits, **({} if requested is None else {key: requested}))
    set_to = recorded(tmp_path, key)
    assert ends.ending[0] == "completed"
    assert set_to == min(requested or 50, 50)
    assert bool(ends.notes) == (set_to == 50)
    assert all(key in note and "50" in note for note in ends.notes)


@pytest.mark.parametrize(
    ("limits", "config", "why"),
    [
        (ServiceLimits(max_tasks=2), {"tasks": 3, "num_shards": 1, "shard_index": 0}, "3 tasks"),
        (
            ServiceLimits(max_tasks=8),
            {"tasks": 3, "epochs": 3, "num_shards": 1, "shard_index": 0},
            "3 tasks in 3 epochs",
        ),
        (ServiceLimits(max_steps=30), {"max_steps": 1000}, "config.max_steps is 1000"),
        (ServiceLimits(max_task_timeout_s=3600), {"task_timeout_s": 86_000}, "config.task_timeout_s"),
        (ServiceLimits(max_cost_usd=5), {"judge_model": UNPRICED}, "has no price"),
        (ServiceLimits(max_cost_usd=0), {}, "the budget of 0 USD is spent"),
        (ServiceLimits(max_tokens=0), {}, "the token budget of 0 is spent"),
    ],
    ids=["tasks", "epochs", "steps", "task time", "a model of unknown price", "no money", "no tokens"],
)
async def test_a_request_beyond_a_cap_is_rejected_and_leaves_nothing(
    tmp_path: Path, limits: ServiceLimits, config: dict[str, Any], why: str
) -> None:
    ends = await ask(tmp_path, limits, **config)
    assert ends.ending[0] == "rejected"
    assert why in ends.ending[1]
    assert list(tmp_path.iterdir()) == []


async def test_the_cap_on_tasks_counts_those_of_the_shard_that_is_asked_for(tmp_path: Path) -> None:
    ends = await ask(tmp_path, ServiceLimits(max_tasks=2), tasks=6, num_shards=7, shard_index=6)
    assert ends.ending[0] == "completed"


async def test_no_default_changes_what_a_local_user_asks_for(tmp_path: Path) -> None:
    expected = {"max_parallel": 64, "judge_max_concurrency": 256, "max_steps": 1000, "task_timeout_s": 80_000}
    ends = await ask(tmp_path, ServiceLimits(descriptors=20_000), **expected)
    assert {key: recorded(tmp_path, key) for key in expected} == expected
    assert recorded(tmp_path, "max_judge_cost_usd") is None
    assert ends.notes == []


PRICE = Price(input=1.0, cached=0.1, output=1.0)
QUESTION = ModelRequest(system="s", parts=("p",))


async def test_many_requests_cost_together_no_more_than_the_judges_budget() -> None:
    shared, calls_before = Budget(max_tokens=1_000), 0
    for _ in range(50):
        inner = ScriptedModel(lambda _: "x")
        model = MeteredModel(inner, PRICE, own=Budget(max_tokens=1_000_000), others=(shared,))
        answers = await asyncio.gather(*(model.complete(QUESTION) for _ in range(3)), return_exceptions=True)
        calls_before += len(inner.requests)
    assert calls_before == 10
    assert isinstance(answers[-1], ModelBudgetSpent)


async def test_many_calls_at_once_exceed_a_budget_by_one_call_at_most() -> None:
    long = completion("x").model_copy(update={"usage": TokenUsage(calls=1, input=100, output=900)})
    inner = ScriptedModel(lambda _: long)
    model = MeteredModel(inner, PRICE, own=Budget(max_cost_usd=0.0105))
    await model.complete(QUESTION)
    inner.gate = asyncio.Event()
    calls = [asyncio.create_task(model.complete(QUESTION)) for _ in range(256)]
    for _ in range(10):
        await asyncio.sleep(0)
    under_way = len(inner.requests) - 1
    inner.gate.set()
    await asyncio.gather(*calls, return_exceptions=True)
    assert estimate_tokens(QUESTION) < 1_000
    assert under_way == 9
    assert 0.0105 <= (model.spending.cost_usd or 0) <= 0.0115


def request(**config: Any) -> AssessmentRequest:
    tasks = tuple(some_tasks("https://a.test/", 100))
    return AssessmentRequest.model_validate(
        {"participants": {"p": "http://127.0.0.1:1/"}, "config": RunConfig(**config), "tasks": tasks, "warnings": ()}
    )


def test_all_assessments_together_run_no_more_tasks_at_once_than_allowed() -> None:
    capacity = Capacity(ServiceLimits(max_parallel=10))
    first = capacity.fit(request(max_parallel=8), 100)
    assert first is not None
    with capacity.reserve(first.config, 100):
        second = capacity.fit(request(max_parallel=8), 100)
        assert second is not None
        with capacity.reserve(second.config, 100):
            third = capacity.fit(request(), 1)
        one_task = capacity.fit(request(max_parallel=8), 2)
    again = capacity.fit(request(max_parallel=8), 100)
    at_once = (first.config.max_parallel, second.config.max_parallel)
    assert at_once == (8, 2)
    assert second.warnings
    assert third is None
    assert one_task is not None
    assert one_task.warnings == ()
    assert again == first


@pytest.mark.parametrize(("descriptors", "tasks_at_once"), [(144, 3), (720, 21), (60_000, 64)])
def test_tasks_at_once_fit_the_available_descriptors(descriptors: int, tasks_at_once: int) -> None:
    capacity = Capacity(ServiceLimits(descriptors=descriptors))
    fitting = capacity.fit(request(max_parallel=64, judge_max_concurrency=40), 100)
    assert fitting is not None
    config = fitting.config
    assert config.max_parallel == tasks_at_once
    assert config.max_parallel * 32 + config.judge_max_concurrency <= descriptors


@pytest.mark.usefixtures("text_browser")
async def test_once_the_budget_is_spent_the_next_assessment_is_rejected(
    tmp_path: Path, browser_files: Path, model: ModelServer
) -> None:
    async with live_judge(tmp_path, browser_files, model, limits=ServiceLimits(max_tokens=300)) as judge:
        with hostile_site() as site:
            first = await judge.play(to_the_goal, site.url)
            second = await judge.ask("http://127.0.0.1:9/", some_tasks(site.url))
    assert len(model.received) <= 4
    assert first.entry["verdict"] in ("failure", "unscored")
    assert second.outcome.state == "rejected"
    assert "--max-tokens" in second.outcome.message
