"""Spans: their tree, times and attributes, and that a collector on this machine gets them."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from helpers.live_page import serving
from judge.records.events import RunDone, RunStarted, Sink, StepDone, TaskDone, TaskJudging, TaskRetried, TaskStarted
from judge.records.steps import Outcome, Step, Timings
from judge.server.tracing import Tracing, open_tracing
from shared.errors import ModelUnavailable
from shared.llm.model import Completion, ModelRequest
from shared.models import Action, TokenUsage

CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
proto = pytest.importorskip(
    "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="the otel extra is not installed"
)

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes  # noqa: E402
from opentelemetry.trace import SpanKind, StatusCode  # noqa: E402


class Collected:
    """Tracing into memory, and the spans by name."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider, "9.9")

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def spans_named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def below(self, parent: ReadableSpan) -> list[ReadableSpan]:
        return [span for span in self.spans if span.parent and span.parent.span_id == id_of(parent)]


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def attributes(holder: Any) -> dict[str, Any]:
    return dict(holder.attributes)


@pytest.fixture
def collected() -> Collected:
    return Collected()


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


STEPS = (
    Step(
        index=0,
        url="https://shop.test/",
        title="",
        reply="secret reply",
        action=Action(tool="browser_click", params={"ref": "secret"}, thought="secret thought"),
        outcome=Outcome(ok=True, line="<Go button> -> CLICK"),
        timings=Timings(observe_s=1e-6, reply_s=2e-6, act_s=1e-6),
    ),
    Step(
        index=1,
        url="https://shop.test/",
        title="",
        action=Action(tool="fly\naway"),
        outcome=Outcome(ok=False, message="there is no tool 'fly'"),
        # Longer than it can have been: the machine's clock was set back.
        timings=Timings(reply_s=3600, act_s=3600),
    ),
    Step(index=2, url="https://shop.test/", title="", outcome=Outcome(ok=False, message="not readable")),
)


async def an_assessment(tracing: Tracing, *, system: str = "secret prompt") -> None:
    """Two tasks at once, as an assessment emits them; the second is aborted once."""
    model = tracing.model(Scripted())

    async def task(sink: Sink, task_id: str) -> None:
        if task_id == "t2":
            sink(TaskStarted(task_id=task_id, attempt=1, max_steps=5))
            sink(TaskRetried(task_id=task_id, attempt=1, cause="the browser is gone"))
        sink(TaskStarted(task_id=task_id, attempt=2, max_steps=5))
        for number, step in enumerate(STEPS, 1):
            await asyncio.sleep(0)
            line = step.outcome.line if step.outcome else None
            done = {"task_id": task_id, "step": number, "max_steps": 5, "action": line or "no action"}
            sink(StepDone(**done, executed=line is not None, recorded=step))
        sink(TaskJudging(task_id=task_id, steps=3))
        try:
            # As the cache does it: the call is made in an asyncio task of its own.
            await asyncio.create_task(model.complete(ModelRequest(system=system, parts=("secret part",), seed=7)))
        except ModelUnavailable:
            outcome = "unscored"
        else:
            outcome = "success"
        sink(TaskDone(task_id=task_id, outcome=outcome, steps=3, reason="all met"))

    with tracing.watch("r1", "white_agent") as sink:
        sink(RunStarted(run_id="r1", total=2))
        async with asyncio.TaskGroup() as group:
            for name in ("t1", "t2"):
                group.create_task(task(sink, name))
        sink(RunDone(successes=2, scored=2, total=2))


async def test_a_run_is_one_tree_of_spans(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    (root,) = collected.spans_named("assessment")
    attempts = [*collected.spans_named("attempt t1"), *collected.spans_named("attempt t2")]
    assert len({span.context.trace_id for span in collected.spans if span.context}) == 1
    assert root.parent is None
    assert sorted(map(id_of, collected.below(root))) == sorted(map(id_of, attempts))
    outcome = [[span.name for span in collected.below(attempt)] for attempt in attempts]
    assert sorted(outcome) == [[], ["step", "step", "step", "judge"], ["step", "step", "step", "judge"]]
    for judging in collected.spans_named("judge"):
        assert [span.name for span in collected.below(judging)] == ["chat gemini-3-flash-preview"]


async def test_steps_follow_each_other_inside_their_attempt(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    (attempt,) = collected.spans_named("attempt t1")
    first, second, third = (span for span in collected.below(attempt) if span.name == "step")
    assert attempt.start_time == first.start_time
    times = (first.start_time, first.end_time, second.end_time, third.end_time, attempt.end_time)
    assert list(times) == sorted(times, key=lambda time: time or 0)
    assert (first.end_time, second.end_time) == (second.start_time, third.start_time)
    assert attributes(first) == {"wabe.step": 1, "wabe.action": "<Go button> -> CLICK"}


async def test_a_step_has_the_participants_turn_and_the_tool_that_it_called(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    (attempt,) = collected.spans_named("attempt t1")
    clicked, failed, unreadable = (collected.below(step) for step in collected.below(attempt) if step.name == "step")
    turn, tool = clicked
    assert (turn.name, turn.kind, attributes(turn)) == (
        "invoke_agent white_agent",
        SpanKind.CLIENT,
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "a2a", "gen_ai.agent.name": "white_agent"},
    )
    assert (tool.name, tool.status.status_code, attributes(tool)) == (
        "execute_tool browser_click",
        StatusCode.UNSET,
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "browser_click", "gen_ai.tool.type": "function"},
    )
    assert (turn.end_time or 0) - (turn.start_time or 0) == 2000
    assert (tool.end_time or 0) - (tool.start_time or 0) == 1000
    assert turn.end_time == tool.start_time
    assert [(span.name, span.status.description) for span in failed] == [
        ("invoke_agent white_agent", None),
        ("execute_tool fly away", "there is no tool 'fly'"),
    ]
    assert attributes(failed[1])["error.type"] == "tool_error"
    assert [span.name for span in unreadable] == ["invoke_agent white_agent"]


async def test_a_turn_never_begins_before_its_step(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    for step in collected.spans_named("step"):
        assert all((step.start_time or 0) <= (span.start_time or 0) for span in collected.below(step))


async def test_a_model_call_has_the_conventions_attributes(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    call = collected.spans_named("chat gemini-3-flash-preview")[0]
    assert call.kind == SpanKind.CLIENT
    assert attributes(call) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-3-flash-preview",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.response.model": "gemini-3-flash-preview-001",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "wabe.cost_usd": 0.25,
    }


async def test_no_attribute_is_named_like_the_conventions_without_being_in_them(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    known = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    used = {name for span in collected.spans for holder in (span, *span.events) for name in attributes(holder)}
    assert {name for name in used if not name.startswith("wabe.")} - known == {"error.type"}


async def test_the_outcome_of_an_attempt_is_an_evaluation_result(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    results = [
        (attributes(span)["wabe.attempt"], attributes(event)["gen_ai.evaluation.score.label"], span.status.status_code)
        for span in collected.spans
        for event in span.events
    ]
    assert sorted(results, key=str) == [
        (1, "aborted", StatusCode.ERROR),
        (2, "success", StatusCode.UNSET),
        (2, "success", StatusCode.UNSET),
    ]


async def test_a_failed_model_call_names_its_error(collected: Collected) -> None:
    await an_assessment(collected.tracing, system="fail")
    call = collected.spans_named("chat gemini-3-flash-preview")[0]
    assert attributes(call)["error.type"] == "ModelUnavailable"
    assert (call.status.status_code, call.status.description) == (StatusCode.ERROR, "no answer")


async def test_prompts_replies_and_parameters_are_not_sent(collected: Collected) -> None:
    await an_assessment(collected.tracing)
    assert "secret" not in "".join(span.to_json() for span in collected.spans)


async def test_b12_contents_are_sent_by_the_conventions_variable_only(collected: Collected) -> None:
    assert collected.tracing.provider is not None
    await an_assessment(Tracing(collected.tracing.provider, with_contents=True))
    call = attributes(collected.spans_named("chat gemini-3-flash-preview")[0])
    assert json.loads(call["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "secret prompt"}]},
        {"role": "user", "parts": [{"type": "text", "content": "secret part"}]},
    ]
    assert "secret reply" in call["gen_ai.output.messages"]
    tool = attributes(collected.spans_named("execute_tool browser_click")[0])
    assert tool["gen_ai.tool.call.arguments"] == '{"ref": "secret"}'
    known = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    assert {name for span in collected.spans for name in attributes(span) if name.startswith("gen_ai.")} <= known


@pytest.mark.parametrize(
    ("value", "with_contents"), [("true", True), ("span_only", True), ("false", False), ("", False)]
)
def test_b12_the_variable_is_read_as_the_convention_says(value: str, with_contents: bool) -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", CONTENTS: value}
    tracing = open_tracing(environ, version="9.9")
    assert tracing.with_contents is with_contents


async def test_a_run_that_was_stopped_is_sent_as_far_as_it_got(collected: Collected) -> None:
    with collected.tracing.watch("r1") as sink:
        sink(RunStarted(run_id="r1", total=1))
        sink(TaskStarted(task_id="t1", attempt=1, max_steps=5))
    assert {span.name: span.status.status_code for span in collected.spans} == {
        "assessment": StatusCode.ERROR,
        "attempt t1": StatusCode.ERROR,
    }


async def test_a_collector_gets_every_span_over_otlp() -> None:
    names: list[str] = []
    services: set[str] = set()

    async def take(request: Request) -> Response:
        body = await request.body()
        body = gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body
        for group in proto.ExportTraceServiceRequest.FromString(body).resource_spans:
            services.update(item.value.string_value for item in group.resource.attributes if item.key == "service.name")
            names.extend(span.name for scope in group.scope_spans for span in scope.spans)
        return Response(proto.ExportTraceServiceResponse().SerializeToString(), media_type="application/x-protobuf")

    async with serving(Starlette(routes=[Route("/v1/traces", take, methods=["POST"])])) as address:
        tracing = open_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": address}, version="9.9")
        await an_assessment(tracing)
        await asyncio.to_thread(tracing.close)
    here = Collected()
    await an_assessment(here.tracing)
    assert sorted(names) == sorted(span.name for span in here.spans)
    assert services == {"wabe-judge"}


@pytest.mark.parametrize(
    "environ", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}]
)
async def test_without_an_endpoint_nothing_is_traced(environ: dict[str, str]) -> None:
    tracing = open_tracing(environ, version="9.9")
    assert tracing.provider is None
    await an_assessment(tracing)


def test_a_missing_extra_is_a_warning_and_tracing_is_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    assert open_tracing(environ, version="9.9").provider is None
    assert "wabe[otel]" in caplog.text
