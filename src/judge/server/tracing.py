"""Spans of what happens, for any OTLP backend: assessment, episode, step, judging, model call.

Names and attributes follow OpenTelemetry's semantic conventions for generative AI where they have one; ours begin with
`wabe.`. Prompts, replies and screenshots are not sent. Tracing is on when the `otel` extra is installed and
`OTEL_EXPORTER_OTLP_ENDPOINT` (or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`) is set; the exporter reads the other standard
variables (headers, timeout, compression) itself and speaks OTLP over HTTP.

The provider is our own and not the process's, so no library adds spans of what it sends and receives.
"""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from judge.events import Event, RunDone, RunStarted, Sink, StepDone, TaskDone, TaskJudging, TaskRetried, TaskStarted
from shared.errors import WabeError
from shared.llm.model import Completion, Model, ModelRequest
from shared.settings import Settings
from shared.text import one_line

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger(__name__)
_TEXT_CHARS = 300
_FLUSH_MS = 5000
_PROVIDERS = (("gemini", "gcp.gemini"), ("openai", "openai"))


class Tracing(Protocol):
    """What an assessment tells a tracing backend; `NoTracing` tells nobody."""

    def watch(self, run_id: str, agent: str = "") -> Sink:
        """The sink for the events of one run of the participant `agent`."""
        ...

    def model(self, model: Model) -> Model:
        """The model with a span around each call. Wrap the provider's model, inside caches and limits."""
        ...

    def close(self) -> None:
        """Send what is left, for at most five seconds. Blocks: call it in a thread, at the end."""
        ...


def open_tracing(settings: Settings, *, version: str) -> Tracing:
    """Tracing as the environment asks for it. A missing extra or endpoint is no error; the first is said in the log."""
    environ = settings.environ
    endpoint = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if not endpoint and base:
        endpoint = f"{base.rstrip('/')}/v1/traces"
    if not endpoint or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return NoTracing()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("an OTLP endpoint is set but the otel extra is not installed: pip install -e '.[otel]'")
        return NoTracing()
    facts = {"service.name": environ.get("OTEL_SERVICE_NAME") or "wabe-judge", "service.version": version}
    provider = TracerProvider(resource=Resource.create(facts), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return OtlpTracing(provider, version)


class NoTracing:
    """Nobody watches."""

    def watch(self, run_id: str, agent: str = "") -> Sink:
        """A sink that forgets."""
        return lambda _: None

    def model(self, model: Model) -> Model:
        """The model itself."""
        return model

    def close(self) -> None:
        """Nothing is left to send."""


class OtlpTracing:
    """Spans through a provider of OpenTelemetry's SDK."""

    def __init__(self, provider: "TracerProvider", version: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("wabe", version)
        self._runs: list[_RunSpans] = []

    def watch(self, run_id: str, agent: str = "") -> Sink:
        """One root span per run, below it one per episode with its steps and its judging."""
        self._runs = [run for run in self._runs if not run.is_over]
        self._runs.append(_RunSpans(self._tracer, run_id, agent))
        return self._runs[-1]

    def model(self, model: Model) -> Model:
        """A `chat` span per call, below the span that is current where the call is made."""
        return _TracedModel(model, self._tracer)

    def close(self) -> None:
        """End what was stopped in the middle, send what is left and end the exporter's thread."""
        for run in self._runs:
            run.stop()
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()


class _Episode:
    """The open spans of one episode. `since` is where the next step begins, in nanoseconds since 1970."""

    def __init__(self, span: Span, now: int) -> None:
        self.span = span
        self.since = now
        self.judging: Span | None = None


class _RunSpans:
    """A sink that keeps a span open for the run and for each episode under way.

    A task's events come in that task's own asyncio task, so the current span set here is the parent of the model calls
    that follow in it, and of nothing else.
    """

    def __init__(self, tracer: Tracer, run_id: str, agent: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._tracer = tracer
        self._agent = agent
        self._clock = clock
        self._outside = otel_context.get_current()
        facts = {"wabe.run_id": run_id}
        self._root = tracer.start_span("assessment", context=Context(), start_time=clock(), attributes=facts)
        self._episodes: dict[str, _Episode] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._root.set_attributes({"wabe.tasks": event.total, "wabe.tasks_kept": event.kept})
                self._enter(self._root)
            case TaskStarted():
                self._begin(event)
            case StepDone():
                self._step(event)
            case TaskRetried():
                self._end(event.task_id, "aborted", event.cause)
            case TaskJudging():
                self._judge(event.task_id)
            case TaskDone():
                self._end(event.task_id, event.outcome, event.reason)
            case RunDone():
                self._root.set_attributes({"wabe.successes": event.successes, "wabe.scored": event.scored})
                self._root.end(self._clock())
                otel_context.attach(self._outside)

    @property
    def is_over(self) -> bool:
        """Whether the run's span is ended."""
        return not self._root.is_recording()

    def stop(self) -> None:
        """End every open span of a run that never said that it was done."""
        for task_id in list(self._episodes):
            self._end(task_id, "aborted", "the run was stopped")
        if not self.is_over:
            self._root.set_status(Status(StatusCode.ERROR, "the run was stopped"))
            self._root.end(self._clock())

    def _begin(self, event: TaskStarted) -> None:
        now = self._clock()
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "invoke_agent",
            "wabe.task_id": event.task_id,
            "wabe.attempt": event.attempt,
            "wabe.max_steps": event.max_steps,
            **({"gen_ai.agent.name": self._agent} if self._agent else {}),
        }
        span = self._tracer.start_span(
            f"invoke_agent {self._agent}".strip(),
            context=trace.set_span_in_context(self._root, Context()),
            start_time=now,
            attributes=attributes,
        )
        self._episodes[event.task_id] = _Episode(span, now)
        self._enter(span)

    def _step(self, event: StepDone) -> None:
        now, episode = self._clock(), self._episodes.get(event.task_id)
        if episode is None:
            return
        step = self._tracer.start_span(
            "step",
            context=trace.set_span_in_context(episode.span, Context()),
            start_time=episode.since,
            attributes={"wabe.step": event.step, "wabe.action": one_line(event.action, _TEXT_CHARS)},
        )
        step.end(now)
        episode.since = now

    def _judge(self, task_id: str) -> None:
        episode = self._episodes.get(task_id)
        if episode is not None and episode.judging is None:
            parent = trace.set_span_in_context(episode.span, Context())
            episode.judging = self._tracer.start_span("judge", context=parent, start_time=self._clock())
            self._enter(episode.judging)

    def _end(self, task_id: str, outcome: str, reason: str) -> None:
        episode = self._episodes.pop(task_id, None)
        if episode is None:
            return
        now, why = self._clock(), one_line(reason, _TEXT_CHARS)
        if episode.judging is not None:
            episode.judging.end(now)
        episode.span.set_attribute("wabe.outcome", outcome)
        episode.span.add_event(
            "gen_ai.evaluation.result",
            {
                "gen_ai.evaluation.name": "task success",
                "gen_ai.evaluation.score.label": outcome,
                "gen_ai.evaluation.explanation": why,
            },
            timestamp=now,
        )
        if outcome == "aborted":
            episode.span.set_attribute("error.type", "aborted")
            episode.span.set_status(Status(StatusCode.ERROR, why))
        episode.span.end(now)
        self._enter(self._root)

    def _enter(self, span: Span) -> None:
        # Not detached by token: the events of an episode come in a context that ends with its asyncio task.
        otel_context.attach(trace.set_span_in_context(span, self._outside))


class _TracedModel:
    """A model whose calls are spans."""

    def __init__(self, model: Model, tracer: Tracer) -> None:
        self._model = model
        self._tracer = tracer

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """The wrapped model's answer; the span holds models, tokens, cost and how it ended."""
        provider, _, model = self.name.partition(":")
        span = self._tracer.start_span(f"chat {model or provider}", kind=SpanKind.CLIENT)
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.provider.name", dict(_PROVIDERS).get(provider, provider))
        span.set_attribute("gen_ai.request.model", model or provider)
        limits = {"temperature": request.temperature, "max_tokens": request.max_output_tokens, "seed": request.seed}
        span.set_attributes({f"gen_ai.request.{key}": value for key, value in limits.items() if value is not None})
        try:
            completion = await self._model.complete(request)
            _describe(span, completion)
            return completion
        except WabeError as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, one_line(error.message, _TEXT_CHARS)))
            raise
        finally:
            span.end()

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self._model.aclose()


def _describe(span: Span, completion: Completion) -> None:
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
