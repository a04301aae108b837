"""The judge as an A2A server: takes one assessment request, runs it, answers with one artifact. A composition root."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from judge.browser.guard.browser import GuardedBrowsers
from judge.browser.launch import BrowserSettings
from judge.browser.session import BrowserFactory
from judge.config import RunConfig
from judge.episode.assessment import Assessment, Parts
from judge.episode.preflight import check_config
from judge.events import RUN_ID_KEY, Event, Noted, Sink, describe, one_line
from judge.judges.base import Judge
from judge.judges.factory import OFFLINE, open_judge
from judge.results.provenance import provenance
from judge.results.run_record import begin_run, end_run, environment_of, judge_of, spending_before
from judge.results.submission import Submission, TaskSummary, build_submission, incomplete_note, result_text
from judge.scenario.models import AssessmentRequest
from judge.scenario.request import parse_request
from judge.scenario.toml import bundled_tasks, shard
from judge.server.limits import Capacity, settings_of_the_host
from judge.server.limits import ServiceLimits as ServiceLimits
from judge.store import RunStore, new_run_id
from shared.a2a.client import ParticipantClient
from shared.a2a.turn import TaskSink, Turn
from shared.checks import NO_CHECKS
from shared.errors import ConfigError, ModelBudgetSpent, WabeError
from shared.llm.limits import Budget, Spending
from shared.llm.model import Model
from shared.models import Task
from shared.settings import Settings
from shared.text import excerpt

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServiceParts:
    """Where a judge keeps things and whom it tells."""

    settings: Settings
    output_dir: Path
    scenarios: Path
    watch: Callable[[str, str], Sink]
    wrap_model: Callable[[Model], Model]
    limits: ServiceLimits
    # Where the judge itself listens: no browser of its may go there.
    own_address: str = ""


class JudgeService:
    """Runs assessments that arrive over A2A; each is isolated from the others."""

    def __init__(self, parts: ServiceParts) -> None:
        self._parts = parts
        self._running: set[str] = set()
        self._capacity = Capacity(parts.limits)
        # Of all assessments together: many small requests must not cost more than one large one may.
        self._budget = Budget(
            max_cost_usd=parts.limits.max_cost_usd,
            max_tokens=parts.limits.max_tokens,
            remedies=("start the judge with a higher --max-cost-usd", "start the judge with a higher --max-tokens"),
        )

    async def execute(self, turn: Turn, sink: TaskSink) -> None:
        """One request from start to artifact. Cancelling this stops the run and closes its browsers."""
        try:
            request = self._accept(turn.text)
        except (ConfigError, ModelBudgetSpent) as error:
            await sink.reject(str(error))
            return
        run_id = request.config.run_id or new_run_id()
        tasks = len(_tasks_of(request))
        fitting = self._capacity.fit(request, tasks)
        if run_id in self._running or len(self._running) >= self._parts.limits.max_assessments or fitting is None:
            busy = f"run {run_id} is under way" if run_id in self._running else "this judge is busy"
            await sink.reject(f"{busy}; try again when it is done")
            return
        self._running.add(run_id)
        try:
            # From here on nobody else writes this run's folder; one that is refused before it begins leaves none.
            with self._capacity.taken(fitting.config, tasks), RunStore(self._parts.output_dir, run_id).held("judge"):
                submission = await self._assess(fitting, run_id, sink)
        except ConfigError as error:
            await sink.reject(str(error))
            return
        except WabeError as error:
            log.exception("assessment %s failed", run_id)
            await sink.fail(f"The assessment could not be run: {error}")
            return
        finally:
            self._running.discard(run_id)
        # The folder is free again before the client hears of the end.
        role = next(iter(request.participants))
        await sink.artifact("results", [_prose(role, submission), result_text(submission)])
        await sink.complete(f"Assessment {run_id} is done.")

    def _accept(self, text: str) -> AssessmentRequest:
        request = parse_request(text, lambda name: bundled_tasks(name, self._parts.scenarios))
        if len(request.participants) != 1:
            raise ConfigError(
                f"assessment request: {len(request.participants)} participants", remedy="send exactly one at a time"
            )
        limits = self._parts.limits
        limits.check(request.config, len(_tasks_of(request)))
        host_keys = [f"config.{name}" for name in settings_of_the_host(request.config)]
        host_keys += ["launch"] if request.launch else []
        if host_keys and not self._parts.settings.trust_config:
            raise ConfigError(
                f"assessment request: {host_keys[0]} is for this judge's own user to set",
                remedy="leave it out, or start the judge with WABE_TRUST_CONFIG=1",
            )
        for url in request.participants.values():
            if not limits.allows(url):
                raise ConfigError(
                    f"assessment request: this judge does not dial {excerpt(url)}",
                    remedy="start the judge with --allow-participant for that host",
                )
        config = self._config(request)
        check_config(config, self._parts.settings)
        warnings = (*request.warnings, *_without_checks(_tasks_of(request), config))
        if config.judge_model != OFFLINE:
            self._budget.check()
            config, notes = limits.within_budget(config)
            warnings += notes
        return request.model_copy(update={"config": config, "warnings": warnings})

    def _config(self, request: AssessmentRequest) -> RunConfig:
        """The request's settings; where it names no judge model, the one that this judge was started with."""
        model = self._parts.settings.judge_model
        if model is None or "judge_model" in request.config.model_fields_set:
            return request.config
        return request.config.model_copy(update={"judge_model": model})

    def _open_judge(self, config: RunConfig, spending: Spending) -> Judge:
        return open_judge(
            config,
            self._parts.settings,
            cache_dir=self._parts.output_dir / "cache",
            wrap=self._parts.wrap_model,
            spending=spending,
            others=(self._budget,),
        )

    def _browsers(self, config: RunConfig, participant: str) -> Callable[[Task], BrowserFactory]:
        settings = BrowserSettings.from_config(config, self._parts.settings)
        closed = (self._parts.own_address, participant)

        def browsers_for(task: Task) -> BrowserFactory:
            return GuardedBrowsers(settings, task.website, (*config.allowed_sites, *task.allowed_sites), closed=closed)

        return browsers_for

    async def _assess(self, request: AssessmentRequest, run_id: str, sink: TaskSink) -> Submission:
        """Run it and write everything down. Raises `ConfigError` while nothing has begun."""
        config = request.config
        role, url = next(iter(request.participants.items()))
        tasks = _tasks_of(request)
        store = RunStore(self._parts.output_dir, run_id)
        browsers = self._browsers(config, url)
        spending = spending_before(store)
        async with contextlib.AsyncExitStack() as stack:
            judge = self._open_judge(config, spending)
            stack.push_async_callback(judge.aclose)
            begin_run(
                store,
                config=config,
                tasks=tasks,
                role=role,
                url=url,
                judge_id=judge.id,
                judge_ids=_other_judges(judge, tasks),
                launch=request.launch,
            )
            await sink.annotate({RUN_ID_KEY: run_id})
            updates = _Updates(sink)
            watch = self._parts.watch(run_id, role)

            def emit(event: Event) -> None:
                log.info("%s", describe(event))
                updates(event)
                watch(event)

            for warning in request.warnings:
                await sink.update(describe(Noted(text=warning)))
            line = _Line(url, config)
            stack.push_async_callback(line.aclose)
            parts = Parts(browsers=browsers, connect=line, judge=judge, store=store, emit=emit)
            state = "failed"
            results: tuple[TaskSummary, ...] = ()
            try:
                async with updates.flowing():
                    results = await Assessment(tasks, config, parts).run()
                state = "completed"
            except asyncio.CancelledError:
                state = "cancelled"
                raise
            finally:
                try:
                    # First: calls that this cuts off are billed, and belong in the record.
                    await judge.aclose()
                finally:
                    with _even_on_a_full_disk():
                        end_run(store, state, results, judge_of(results), spending)
        submission = _submission(request, role, results, run_id)
        with _even_on_a_full_disk():
            store.write_submission(submission)
        return submission


def _other_judges(judge: Judge, tasks: Sequence[Task]) -> dict[str, str]:
    """The id of the judge whose verdict counts, for each task where it is not the run's judge."""
    counting = {task.task_id: judge.judges_of(task)[0].id for task in tasks}
    return {task_id: judge_id for task_id, judge_id in counting.items() if judge_id != judge.id}


def _tasks_of(request: AssessmentRequest) -> tuple[Task, ...]:
    """The tasks of the request's shard."""
    config = request.config
    return shard(request.tasks, config.shard_index, config.num_shards, instances=config.num_instances)


@contextlib.contextmanager
def _even_on_a_full_disk() -> Iterator[None]:
    """What cannot be written must not cost what can still be sent."""
    try:
        yield
    except OSError as error:
        log.error("cannot write %s: %s", error.filename or "a result", error.strerror or error)


class _Line:
    """The line to the participant: opened when the first episode needs it, shared by all, since each costs a card."""

    def __init__(self, url: str, config: RunConfig) -> None:
        self._url = url
        self._config = config
        self._opening = asyncio.Lock()
        self._client: ParticipantClient | None = None

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[ParticipantClient]:
        """The open client. Raises `ParticipantError`; the next call tries again."""
        async with self._opening:
            if self._client is None:
                client = ParticipantClient(
                    self._url,
                    reply_timeout_s=self._config.reply_timeout_s,
                    max_reply_bytes=self._config.max_reply_bytes,
                )
                self._client = await client.__aenter__()
        yield self._client

    async def aclose(self) -> None:
        """Hang up."""
        if self._client is not None:
            await self._client.__aexit__(None, None, None)


class _Updates:
    """Takes events as they happen and passes them on as prose; the sink puts together what comes too fast."""

    def __init__(self, sink: TaskSink) -> None:
        self._sink = sink
        self._lines: list[str] = []
        self._new = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self._lines.append(describe(event))
        self._new.set()

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Send what comes while the body runs, and the rest at its end."""
        pump = asyncio.create_task(self._pump())
        try:
            yield
        finally:
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump
        await self._send()

    async def _pump(self) -> None:
        while True:
            await self._new.wait()
            await self._send()

    async def _send(self) -> None:
        lines, self._lines = self._lines, []
        self._new.clear()
        if lines:
            await self._sink.update("\n".join(lines))


def _without_checks(tasks: Sequence[Task], config: RunConfig) -> Iterator[str]:
    without = sum(not task.checks for task in tasks)
    if config.judge_model == OFFLINE and without:
        yield f"{without} of {len(tasks)} tasks will be unscored: {NO_CHECKS}"


def _submission(request: AssessmentRequest, role: str, results: tuple[TaskSummary, ...], run_id: str) -> Submission:
    judge = judge_of(results)
    return build_submission(
        role=role,
        participant_ids={role: request.config.participant_ids.get(role, "")},
        results=results,
        judge=judge,
        provenance=provenance(
            config=request.config,
            tasks=[result.task for result in results],
            judge=judge,
            environment=environment_of(results),
            run_id=run_id,
        ),
    )


def _prose(role: str, submission: Submission) -> str:
    detail = submission["results"][0]["detail"]
    note = incomplete_note(detail)
    return (
        f"{one_line(role)}: success rate {detail['success_rate']} %, {detail['judged_successes']} of"
        f" {detail['scored_tasks']} scored tasks; {detail['unscored_tasks']} unscored,"
        f" {detail['aborted_tasks']} aborted; of all {detail['total_tasks']} tasks:"
        f" {detail['success_rate_of_all']} %{note and f' ({note})'}."
    )
