"""`/health` and `/metrics`: what they say, and to whom."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from judge.config import RunConfig
from judge.records.events import RunStarted, TaskDone, TaskRetried, TaskStarted
from judge.records.verdicts import OFF_ARCHIVE, WITHOUT_CHECKS
from judge.scenario.models import AssessmentRequest
from judge.server.metrics import Health, Metrics, operating_routes
from judge.server.running import RunningAssessment
from shared.llm.limits import Spending
from shared.models import TokenUsage

PLANTED = "planted-77b1"


def a_run() -> RunningAssessment:
    """One whose names and addresses must not be shown."""
    request = AssessmentRequest.model_construct(
        participants={PLANTED: f"http://{PLANTED}.test/"}, config=RunConfig(), tasks=()
    )
    return RunningAssessment(f"run-{PLANTED}", request, browsers=lambda: 2)


def values(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """Each value by its name and its labels' values."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def measured() -> str:
    running = a_run()
    spending = Spending(TokenUsage(calls=3, input=700, output=20), cost_usd=0.25)
    metrics = Metrics(lambda: [running], lambda: 4, spending)
    for event in (
        RunStarted(run_id=running.run_id, total=5, kept=1, epochs=2),
        TaskStarted(task_id="a", attempt=1, max_steps=3),
        TaskRetried(task_id="a", attempt=1, cause=PLANTED, blame="browser"),
        TaskStarted(task_id="a", attempt=2, max_steps=3),
        TaskDone(task_id="a", outcome="success", steps=1, reason=PLANTED),
        TaskStarted(task_id="b", attempt=1, max_steps=3),
        TaskDone(task_id="b", outcome="failure", steps=1, reason=PLANTED, blame="participant"),
        TaskDone(task_id="c", outcome="unscored", steps=1, reason=PLANTED),
        TaskDone(task_id="d", outcome="unscored", steps=1, reason=PLANTED, reason_code=WITHOUT_CHECKS),
        TaskDone(task_id="d2", outcome="unscored", steps=1, reason=PLANTED, reason_code=OFF_ARCHIVE),
        TaskDone(task_id="e", outcome="aborted", steps=1, reason=PLANTED, blame=PLANTED),
        TaskStarted(task_id="f", attempt=1, max_steps=3),
    ):
        running.take(event)
        metrics.take(event)
    metrics.count_end("completed")
    return metrics.text().decode()


def test_metrics_count_what_happens_and_say_what_runs() -> None:
    result = values(measured())
    expected: Mapping[Any, float] = {
        ("wabe_assessments_total", ("completed",)): 1,
        ("wabe_assessments_total", ("rejected",)): 0,
        ("wabe_assessments_running", ()): 1,
        ("wabe_assessments_waiting", ()): 4,
        ("wabe_attempts_total", ("success",)): 1,
        ("wabe_attempts_total", ("failure",)): 1,
        ("wabe_attempts_total", ("unscored",)): 3,
        ("wabe_attempts_total", ("aborted",)): 1,
        ("wabe_attempts_total", ("retried",)): 1,
        # Ten attempts, of which one was kept, six have ended and one is open.
        ("wabe_attempts_running", ()): 1,
        ("wabe_attempts_waiting", ()): 2,
        ("wabe_browsers", ()): 2,
        ("wabe_judge_calls_total", ()): 3,
        ("wabe_judge_tokens_total", ("input",)): 700,
        ("wabe_judge_tokens_total", ("output",)): 20,
        ("wabe_judge_cost_usd_total", ()): 0.25,
        ("wabe_errors_total", ("browser",)): 1,
        ("wabe_errors_total", ("participant",)): 1,
        ("wabe_errors_total", ("judge model",)): 1,
        ("wabe_errors_total", ("internal",)): 0,
    }
    assert {key: result.get(key) for key in expected} == expected


def test_metrics_have_nothing_that_somebody_else_chose() -> None:
    assert PLANTED not in measured()


async def answers(health: Health, *, is_open: bool, host: str = "127.0.0.1", peer: str = "127.0.0.1") -> list[Any]:
    """The status of both pages, and what `/health` says."""
    metrics = Metrics(lambda: [a_run()], lambda: 0, Spending())
    app = Starlette(routes=operating_routes(lambda: health, metrics, is_open=is_open))
    transport = httpx.ASGITransport(app, client=(peer, 5000))
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
        response, text = await client.get("/health"), await client.get("/metrics")
        return [response.status_code, response.json(), text.status_code]


@pytest.mark.parametrize(("health", "status"), [("ready", 200), ("full", 200), ("draining", 503)])
async def test_health_is_open_and_says_one_word(health: Health, status: int) -> None:
    assert await answers(health, is_open=False, host="judge.test", peer="203.0.113.5") == [
        status,
        {"status": health},
        403,
    ]


async def test_metrics_have_the_audience_of_the_live_page() -> None:
    assert (await answers("ready", is_open=False))[-1] == 200
    assert (await answers("ready", is_open=False, host="rebound.test"))[-1] == 403
    assert (await answers("ready", is_open=True, host="judge.test", peer="203.0.113.5"))[-1] == 200
