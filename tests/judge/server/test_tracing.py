"""Spans, as a collector on this machine receives them."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from judge.events import RunDone, RunStarted, Sink, StepDone, TaskDone, TaskJudging, TaskRetried, TaskStarted
from judge.server.tracing import Tracing, open_tracing
from shared.errors import ModelUnavailable
from shared.llm.model import Completion, ModelRequest
from shared.models import TokenUsage
from shared.settings import Settings

proto = pytest.importorskip(
    "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="the otel extra is not installed"
)


class Collected:
    """What the collector got: spans by name, with their attributes as plain values."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()

    def add(self, body: bytes) -> None:
        for group in proto.ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services.add(attributes(group.resource)["service.name"])
            self.spans += [span for scope in group.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Any:
        (span,) = self.named(name)
        return span


def attributes(holder: Any) -> dict[str, Any]:
    values = {}
    for item in holder.attributes:
        kind = item.value.WhichOneof("value")
        value = getattr(item.value, kind)
        values[item.key] = [part.string_value for part in value.values] if kind == "array_value" else value
    return values


@asynccontextmanager
async def collecting() -> AsyncIterator[tuple[Tracing, Collected]]:
    """Tracing to a collector on a port of its own. Leave the block's tracing open: it is closed here."""
    collected = Collected()

    async def take(request: Request) -> Response:
        body = await request.body()
        collected.add(gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body)
        return Response(proto.ExportTraceServiceResponse().SerializeToString(), media_type="application/x-protobuf")

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    app = Starlette(routes=[Route("/v1/traces", take, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    job = asyncio.create_task(server.serve(sockets=[listener]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    tracing = open_tracing(Settings.from_environ({"OTEL_EXPORTER_OTLP_ENDPOINT": address}), version="9.9")
    try:
        yield tracing, collected
    finally:
        server.should_exit = True
        await job
        listener.close()


class Scripted:
    """A model at the network boundary."""

    name = "gemini:gemini-3-flash-preview"

    async def complete(self, request: ModelRequest) -> Completion:
        if request.system == "fail":
            raise ModelUnavailable("no answer")
        usage = TokenUsage(calls=1, input=100, output=20, cached=40, reasoning=5)
        return Completion(text="secret reply", model="gemini-3-flash-preview-001", usage=usage, cost_usd=0.25)

    async def aclose(self) -> None:
        """Nothing is open."""


async def an_assessment(tracing: Tracing, *, system: str = "secret prompt") -> None:
    """Two tasks at once, as an assessment emits them; the second is aborted once."""
    model = tracing.model(Scripted())

    async def task(sink: Sink, task_id: str) -> None:
        if task_id == "t2":
            sink(TaskStarted(task_id=task_id, attempt=1, max_steps=5))
            sink(TaskRetried(task_id=task_id, attempt=1, cause="the browser is gone"))
        sink(TaskStarted(task_id=task_id, attempt=2, max_steps=5))
        for number in (1, 2):
            await asyncio.sleep(0)
            sink(StepDone(task_id=task_id, step=number, max_steps=5, action="<Go button> -> CLICK"))
        sink(TaskJudging(task_id=task_id, steps=2))
        try:
            # As the cache does it: the call is made in an asyncio task of its own.
            await asyncio.create_task(model.complete(ModelRequest(system=system, parts=("secret part",), seed=7)))
        except ModelUnavailable:
            outcome = "unscored"
        else:
            outcome = "success"
        sink(TaskDone(task_id=task_id, outcome=outcome, steps=2, reason="all met"))

    with tracing.watch("r1", "white_agent") as sink:
        sink(RunStarted(run_id="r1", total=2))
        async with asyncio.TaskGroup() as group:
            for name in ("t1", "t2"):
                group.create_task(task(sink, name))
        sink(RunDone(successes=2, scored=2, total=2))
    await asyncio.to_thread(tracing.close)


async def test_a_run_is_one_tree_of_spans() -> None:
    async with collecting() as (tracing, got):
        await an_assessment(tracing)
    root = got.one("assessment")
    episodes = got.named("invoke_agent white_agent")
    assert len({span.trace_id for span in got.spans}) == 1
    assert root.parent_span_id == b""
    assert [span.parent_span_id for span in episodes] == [root.span_id] * 3
    judged = {span.parent_span_id for span in got.named("judge")}
    assert judged < {span.span_id for span in episodes}
    calls = got.named("chat gemini-3-flash-preview")
    assert {span.parent_span_id for span in calls} == {span.span_id for span in got.named("judge")}


async def test_steps_follow_each_other_inside_their_episode() -> None:
    async with collecting() as (tracing, got):
        await an_assessment(tracing)
    for episode in got.named("invoke_agent white_agent"):
        steps = [span for span in got.named("step") if span.parent_span_id == episode.span_id]
        if steps:
            first, second = steps
            assert episode.start_time_unix_nano == first.start_time_unix_nano <= first.end_time_unix_nano
            assert first.end_time_unix_nano == second.start_time_unix_nano <= episode.end_time_unix_nano
            assert attributes(first) == {"wabe.step": 1, "wabe.action": "<Go button> -> CLICK"}


async def test_a_model_call_has_the_conventions_attributes() -> None:
    async with collecting() as (tracing, got):
        await an_assessment(tracing)
    call = got.named("chat gemini-3-flash-preview")[0]
    assert call.kind == 3  # client
    assert attributes(call) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-3-flash-preview",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.response.model": "gemini-3-flash-preview-001",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "wabe.cost_usd": 0.25,
    }


async def test_the_outcome_of_an_episode_is_an_evaluation_result() -> None:
    async with collecting() as (tracing, got):
        await an_assessment(tracing)
    results = [
        (attributes(span)["wabe.attempt"], attributes(event)["gen_ai.evaluation.score.label"], span.status.code)
        for span in got.named("invoke_agent white_agent")
        for event in span.events
    ]
    assert sorted(results) == [(1, "aborted", 2), (2, "success", 0), (2, "success", 0)]


async def test_a_failed_model_call_names_its_error() -> None:
    async with collecting() as (tracing, got):
        await an_assessment(tracing, system="fail")
    call = got.named("chat gemini-3-flash-preview")[0]
    assert attributes(call)["error.type"] == "ModelUnavailable"
    assert (call.status.code, call.status.message) == (2, "no answer")


async def test_prompts_and_replies_are_not_sent() -> None:
    async with collecting() as (tracing, got):
        await an_assessment(tracing)
    assert b"secret" not in b"".join(span.SerializeToString() for span in got.spans)
    assert got.services == {"wabe-judge"}


async def test_a_run_that_was_stopped_is_sent_as_far_as_it_got() -> None:
    async with collecting() as (tracing, got):
        with tracing.watch("r1") as sink:
            sink(RunStarted(run_id="r1", total=1))
            sink(TaskStarted(task_id="t1", attempt=1, max_steps=5))
        await asyncio.to_thread(tracing.close)
    assert {span.name: span.status.code for span in got.spans} == {"assessment": 2, "invoke_agent": 2}


@pytest.mark.parametrize(
    "environ", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}]
)
async def test_without_an_endpoint_nothing_is_traced(environ: dict[str, str]) -> None:
    tracing = open_tracing(Settings.from_environ(environ), version="9.9")
    assert tracing.provider is None
    await an_assessment(tracing)


def test_a_missing_extra_is_a_warning_and_tracing_is_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    settings = Settings.from_environ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert open_tracing(settings, version="9.9").provider is None
    assert ".[otel]" in caplog.text
