"""Spans for any OTLP backend: assessment, attempt, step, participant's turn, browser tool, judging, model call.

Names and attributes follow OpenTelemetry's semantic conventions for generative AI where they exist; others begin with
`wabe.`. Prompts, replies and screenshots are not sent, unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is
true: then the conventions' attributes for contents have them, bounded. Tracing is on when the `otel` extra is installed
and `OTEL_EXPORTER_OTLP_ENDPOINT` (or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`) is set; the exporter reads the other
standard variables (headers, timeout, compression) itself and speaks OTLP over HTTP.

The provider is private to this module instead of the process-wide one, so no library adds further spans.
"""

import base64
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.util.types import Attributes, AttributeValue

from judge.records.events import (
    Event,
    RunDone,
    RunStarted,
    Sink,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
)
from judge.records.steps import Step
from shared.errors import WabeError
from shared.llm.model import Completion, ImagePart, Model, ModelRequest
from shared.llm.opening import find_provider
from shared.text import clip, one_line, without_surrogates

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger(__name__)
_TEXT_CHARS = 300
_NAME_CHARS = 60
_FLUSH_MS = 5000
_STOPPED = "the run was stopped"
_CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# `span_only` is what newer instrumentations call it, whose other values are about events.
_YES = ("true", "1", "span_only", "span_and_event")
_CONTENT_CHARS = 100_000
# A screenshot in base64.
_IMAGE_CHARS = 2_000_000


def open_tracing(environ: Mapping[str, str], *, version: str) -> "Tracing":
    """Tracing as configured by the environment: off without an endpoint, and off with a warning without the extra."""
    endpoint = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if not endpoint and (base := environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")):
        endpoint = f"{base.rstrip('/')}/v1/traces"
    if not endpoint or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Tracing()
    # Imported only when needed: the SDK is an optional extra and slow to load.
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("an OTLP endpoint is set but the otel extra is not installed: pip install 'wabe[otel]'")
        return Tracing()
    resource = {"service.name": environ.get("OTEL_SERVICE_NAME") or "wabe-judge", "service.version": version}
    # `Tracing.close` shuts it down, with a time limit.
    provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return Tracing(provider, version, with_contents=environ.get(_CONTENTS, "").strip().lower() in _YES)


class Tracing:
    """Creates spans through a provider of OpenTelemetry's SDK; without a provider they are discarded."""

    def __init__(
        self, provider: "TracerProvider | None" = None, version: str = "", *, with_contents: bool = False
    ) -> None:
        self.provider = provider
        self.with_contents = with_contents
        self._tracer = (provider or trace.NoOpTracerProvider()).get_tracer("wabe", version)

    @contextmanager
    def watch(self, run_id: str, agent: str = "") -> Iterator[Sink]:
        """The sink for the events of one run: a root span with one span per attempt, its steps and its judging."""
        # An empty context makes the assessment a root.
        with self._tracer.start_as_current_span(
            "assessment", context=Context(), attributes={"wabe.run_id": run_id}, record_exception=False
        ) as root:
            spans = _RunSpans(self._tracer, root, agent, with_contents=self.with_contents)
            try:
                yield spans.take
            finally:
                spans.stop()

    def model(self, model: Model) -> Model:
        """The model with a `chat` span around each call. Wrap the provider's model, inside caches and limits."""
        return _TracedModel(model, self._tracer, with_contents=self.with_contents)

    def close(self) -> None:
        """Send the remaining spans, for at most five seconds. Blocks, so call it in a thread at the end."""
        if self.provider is not None:
            self.provider.force_flush(_FLUSH_MS)
            self.provider.shutdown()


@dataclass
class _AttemptSpans:
    """The open spans of one attempt. `step_start` is in nanoseconds since 1970."""

    span: Span
    step_start: int
    judging: Span | None = None


class _RunSpans:
    """Turns the events of a run into spans below `root`.

    The events of a task are emitted in that task's asyncio task. So a span that is made current at one event is
    the parent of later steps and model calls there, and does not affect other tasks. It is never detached, because
    the context ends with the asyncio task.
    """

    def __init__(self, tracer: Tracer, root: Span, agent: str, *, with_contents: bool = False) -> None:
        self._tracer = tracer
        self._root = root
        self._with_contents = with_contents
        self._agent = agent
        self._attempts: dict[str, _AttemptSpans] = {}
        self._is_done = False

    def take(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self._root.set_attributes({"wabe.tasks": event.total, "wabe.tasks_kept": event.kept})
            case TaskStarted():
                self._begin(event)
            case StepDone() if attempt := self._attempts.get(event.key):
                self._step(attempt, event)
            # If several judges decide a task, each of them sends this event; only the first opens the span.
            case TaskJudging() if (attempt := self._attempts.get(event.key)) and attempt.judging is None:
                attempt.judging = self._tracer.start_span("judge")
                _make_current(attempt.judging)
            case TaskRetried():
                self._end(event.key, "aborted", event.cause)
            case TaskDone():
                self._end(event.key, event.outcome, event.reason)
            case RunDone():
                self._root.set_attributes({"wabe.successes": event.successes, "wabe.scored": event.scored})
                self._is_done = True

    def stop(self) -> None:
        """End the spans of a cancelled or failed run."""
        for key in list(self._attempts):
            self._end(key, "aborted", _STOPPED)
        if not self._is_done:
            self._root.set_status(Status(StatusCode.ERROR, _STOPPED))

    def _begin(self, event: TaskStarted) -> None:
        now = time.time_ns()
        attributes: Attributes = {
            "wabe.task_id": event.task_id,
            "wabe.epoch": event.epoch,
            "wabe.attempt": event.attempt,
            "wabe.max_steps": event.max_steps,
        }
        span = self._tracer.start_span(f"attempt {event.key}", start_time=now, attributes=attributes)
        self._attempts[event.key] = _AttemptSpans(span, now)
        _make_current(span)

    def _step(self, attempt: _AttemptSpans, event: StepDone) -> None:
        """The spans of a step, created when it is over, with explicit times. A step begins when the previous ended."""
        began, ended_at = attempt.step_start, time.time_ns()
        attributes: Attributes = {"wabe.step": event.step, "wabe.action": one_line(event.action, _TEXT_CHARS)}
        span = self._tracer.start_span("step", start_time=began, attributes=attributes)
        if event.recorded is not None:
            self._turn(trace.set_span_in_context(span), event.recorded, began, ended_at)
        attempt.step_start = ended_at
        span.end(ended_at)

    def _turn(self, context: Context, step: Step, began: int, end: int) -> None:
        """The participant's turn and the tool call: the end of a step, which begins with the observation.

        A refused action is a tool call that failed.
        """
        acting = max(began, end - round(step.timings.act_s * 1e9))
        question_time = max(began, acting - round(step.timings.reply_s * 1e9))
        turn: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "invoke_agent",
            # The convention requires a provider, but the participant's model provider is not known.
            "gen_ai.provider.name": "a2a",
        }
        if self._agent:
            turn["gen_ai.agent.name"] = self._agent
        if self._with_contents:
            turn["gen_ai.output.messages"] = _messages(("assistant", [step.reply or ""]))
        self._tracer.start_span(
            f"invoke_agent {self._agent}".strip(), context, SpanKind.CLIENT, turn, start_time=question_time
        ).end(acting)
        if step.action is None:
            return
        tool, outcome = one_line(step.action.tool, _NAME_CHARS), step.outcome
        called: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
        }
        if self._with_contents:
            called["gen_ai.tool.call.arguments"] = _json(step.action.params)
            called["gen_ai.tool.call.result"] = clip((outcome and (outcome.line or outcome.message)) or "", _TEXT_CHARS)
        span = self._tracer.start_span(f"execute_tool {tool}", context, attributes=called, start_time=acting)
        if outcome is not None and not outcome.ok:
            span.set_attribute("error.type", "tool_error")
            span.set_status(Status(StatusCode.ERROR, one_line(outcome.message, _TEXT_CHARS)))
        span.end(end)

    def _end(self, key: str, outcome: str, reason: str) -> None:
        attempt = self._attempts.pop(key, None)
        if attempt is None:
            return
        explanation = one_line(reason, _TEXT_CHARS)
        if attempt.judging is not None:
            attempt.judging.end()
        attempt.span.set_attribute("wabe.outcome", outcome)
        attempt.span.add_event(
            "gen_ai.evaluation.result",
            {
                "gen_ai.evaluation.name": "task success",
                "gen_ai.evaluation.score.label": outcome,
                "gen_ai.evaluation.explanation": explanation,
            },
        )
        if outcome == "aborted":
            attempt.span.set_attribute("error.type", "aborted")
            attempt.span.set_status(Status(StatusCode.ERROR, explanation))
        attempt.span.end()
        _make_current(self._root)


def _make_current(span: Span) -> None:
    otel_context.attach(trace.set_span_in_context(span))


def _messages(*said: tuple[str, Sequence[str | ImagePart]]) -> str:
    """Messages by role as the convention writes them, in JSON."""
    return _json([{"role": role, "parts": [_content_part(part) for part in parts]} for role, parts in said])


def _content_part(part: str | ImagePart) -> dict[str, str]:
    if isinstance(part, str):
        return {"type": "text", "content": clip(part, _CONTENT_CHARS)}
    data = base64.b64encode(part.data).decode()
    if len(data) > _IMAGE_CHARS:
        return {"type": "text", "content": f"an image of {len(part.data)} bytes"}
    return {"type": "blob", "modality": "image", "mime_type": part.named_type or part.media_type, "content": data}


def _json(value: object) -> str:
    return without_surrogates(json.dumps(value, ensure_ascii=False, default=str))


class _TracedModel:
    """A model whose calls are spans."""

    def __init__(self, model: Model, tracer: Tracer, *, with_contents: bool = False) -> None:
        self._model = model
        self._tracer = tracer
        self._with_contents = with_contents

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """The wrapped model's answer; the span has models, tokens, cost and the outcome."""
        provider, _, model = self.name.partition(":")
        known = find_provider(provider)
        limits = {"temperature": request.temperature, "max_tokens": request.max_output_tokens, "seed": request.seed}
        with self._tracer.start_as_current_span(
            f"chat {model or provider}",
            kind=SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": known.telemetry_name if known else provider,
                "gen_ai.request.model": model or provider,
                **{f"gen_ai.request.{key}": value for key, value in limits.items() if value is not None},
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            if self._with_contents:
                asked = (("user", turn) for turn in request.turns)
                span.set_attribute("gen_ai.input.messages", _messages(("system", [request.system]), *asked))
            try:
                completion = await self._model.complete(request)
            except WabeError as error:
                # Not `record_exception`, which sends a traceback that may quote the prompt.
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR, one_line(error.message, _TEXT_CHARS)))
                raise
            if self._with_contents:
                span.set_attribute("gen_ai.output.messages", _messages(("assistant", [completion.text])))
            usage = completion.usage
            span.set_attributes(
                {
                    "gen_ai.response.model": completion.model,
                    "gen_ai.response.finish_reasons": [completion.finish_reason],
                    "gen_ai.usage.input_tokens": usage.input,
                    "gen_ai.usage.output_tokens": usage.output,
                    "gen_ai.usage.cache_read.input_tokens": usage.cached,
                    "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
                }
            )
            if completion.cost_usd is not None:
                span.set_attribute("wabe.cost_usd", completion.cost_usd)
            return completion

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._model.aclose()
