"""What an operator watches: `/health`, and `/metrics` in Prometheus' text format.

Names and labels are fixed: nothing that a client, a participant or a page chose is in them.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from judge.records.events import Event, TaskDone, TaskRetried
from judge.records.verdicts import UNCONFIRMED, WITHOUT_CHECKS, TaskOutcome
from judge.server.running import EndState, RunningAssessment
from shared.a2a.local_pages import LocalPages
from shared.errors import Blame
from shared.llm.limits import Spending

HEALTH_PATH = "/health"
Health = Literal["ready", "draining", "full"]
_RETRIED = "retried"
_REFUSAL = (
    "The metrics are shown on the judge's own machine only, at a loopback address: read them there, or start the judge"
    " with WABE_AUTH_TOKEN set or with --public-live.\n"
)
_BLAMES: tuple[str, ...] = get_args(Blame)


class Metrics(Collector):
    """Counts the events of all assessments since the judge started; the rest is read from what runs at the moment."""

    def __init__(
        self, running: Callable[[], Collection[RunningAssessment]], waiting: Callable[[], int], spending: Spending
    ) -> None:
        self._running = running
        self._waiting = waiting
        self._spending = spending
        # A separate one: the library's default is shared by the whole process.
        self._registry = CollectorRegistry()
        self._ends = self._counter("wabe_assessments", "Assessments that have ended, by state.", "state", EndState)
        outcomes = [*get_args(TaskOutcome), _RETRIED]
        self._attempts = self._counter("wabe_attempts", "Attempts that have ended, by outcome.", "outcome", outcomes)
        self._errors = self._counter("wabe_errors", "Errors of attempts, by who is to blame.", "blame", _BLAMES)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def _counter(self, name: str, meaning: str, label: str, values: object) -> Counter:
        counter = Counter(name, meaning, [label], registry=self._registry)
        # From the start, so that a rate can be computed from the first increase.
        for value in values if isinstance(values, Collection) else get_args(values):
            counter.labels(value)
        return counter

    def take(self, event: Event) -> None:
        """Count an event of any assessment."""
        match event:
            case TaskRetried():
                self._attempts.labels(_RETRIED).inc()
                self._count_error(event.blame)
            case TaskDone():
                self._attempts.labels(event.outcome).inc()
                # An attempt without checks and without a judge model is not an error of anybody.
                is_lost = event.outcome == "unscored" and event.reason_code not in (WITHOUT_CHECKS, *UNCONFIRMED)
                self._count_error("judge model" if is_lost else event.blame)

    def count_end(self, state: EndState) -> None:
        """Count the end of an assessment."""
        self._ends.labels(state).inc()

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """What is read from the present state (`prometheus_client.registry.Collector`)."""
        running, usage = self._running(), self._spending.usage
        for name, meaning, value in (
            ("wabe_assessments_running", "Assessments in progress.", len(running)),
            ("wabe_assessments_waiting", "Stopped assessments that wait for room to be continued.", self._waiting()),
            ("wabe_attempts_running", "Attempts in progress.", sum(each.open_attempts for each in running)),
            ("wabe_attempts_waiting", "Attempts that have not begun.", sum(each.waiting_attempts for each in running)),
            ("wabe_browsers", "Open browsers.", sum(each.browsers() for each in running)),
        ):
            yield GaugeMetricFamily(name, meaning, value=value)
        yield CounterMetricFamily("wabe_judge_calls", "Calls to judge models.", value=usage.calls)
        tokens = CounterMetricFamily("wabe_judge_tokens", "Tokens of judge models.", labels=["direction"])
        tokens.add_metric(["input"], usage.input)
        tokens.add_metric(["output"], usage.output)
        yield tokens
        cost = self._spending.cost_usd or 0.0
        yield CounterMetricFamily("wabe_judge_cost_usd", "Cost of judge models whose price is known.", value=cost)

    def _count_error(self, blame: str | None) -> None:
        if blame in _BLAMES:
            self._errors.labels(blame).inc()


def operating_routes(health: Callable[[], Health], metrics: Metrics, *, is_open: bool) -> list[Route]:
    """The routes of `/health`, which is open, and of `/metrics`, which has the live page's audience."""

    async def show_health(_: Request) -> Response:
        state = health()
        return JSONResponse({"status": state}, 503 if state == "draining" else 200)

    async def show_metrics(_: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    metrics_routes = LocalPages(_REFUSAL, is_open=is_open).shows({"/metrics": show_metrics})
    return [Route(HEALTH_PATH, show_health, methods=["GET"]), *metrics_routes]
