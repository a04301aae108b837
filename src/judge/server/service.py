"""The judge as an A2A agent: accepts an assessment request, runs it, answers with one artifact."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import browser_pool
from judge.browser.traces import traced
from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.episode.attempts import AttemptSetup
from judge.episode.instances import waiting_notes
from judge.episode.preflight import check_config
from judge.judges.base import Judge
from judge.judges.factory import open_judge
from judge.network.archives import Archives, open_archives, require_playable
from judge.network.attempt import require_networks
from judge.network.upstream_proxy import require_upstream
from judge.records.checks import NO_CHECKS
from judge.records.events import (
    BUSY_KEY,
    EVENT_KEY,
    RESUME_TOKEN_KEY,
    RUN_ID_KEY,
    Event,
    RequestWarning,
    describe,
    sealed_form,
    to_wire,
)
from judge.records.verdicts import OFFLINE
from judge.results.entries import read_entries
from judge.results.identity import identity_in, record_card
from judge.results.metering import LEDGER
from judge.results.run_record import (
    begin_run,
    compared_parts,
    end_run,
    provenance,
    require_same_request,
    sha256_of,
    spending_before,
    task_digests,
)
from judge.results.submission import Submission, TaskSummary, build_submission, incomplete_note, rate_text, result_text
from judge.scenario.logins import sealed_tasks
from judge.scenario.models import AssessmentRequest
from judge.scenario.request import parse_request
from judge.scenario.toml import bundled_tasks, shard
from judge.server.limits import Capacity, ServiceLimits, settings_of_the_host
from judge.server.live import LiveHub
from judge.server.metrics import Health, Metrics
from judge.server.resuming import keep, left_behind, note_on_stop, run_of_token
from judge.server.running import AssessmentEnd, RunningAssessment
from judge.server.tracing import Tracing
from judge.store.layout import RunStore, new_run_id
from judge.store.sealing import key_in
from shared.a2a.client import ParticipantClient
from shared.a2a.tasks import AgentMessage, Note, TaskSink
from shared.errors import ConfigError, ModelBudgetSpent, WabeError
from shared.llm.limits import Budget, Spending
from shared.logs import PUBLIC, log_context, sealed_logs
from shared.settings import Settings
from shared.text import counted, excerpt, one_line

_log = logging.getLogger(__name__)
_STOPPING = "the judge is stopping"
_WITHHELD = "the reason may quote a sealed task and is withheld; play the scenario itself to see it"


class Busy(ConfigError):
    """The judge cannot serve the request at the moment."""


@dataclass
class JudgeService:
    """Runs assessments that arrive over A2A; each is isolated from the others.

    The judge's browsers may not visit `own_address`.
    """

    settings: Settings
    output_dir: Path
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    tracing: Tracing = field(default_factory=Tracing)
    hub: LiveHub = field(default_factory=LiveHub)
    own_address: str = ""

    def __post_init__(self) -> None:
        self._running: dict[str, RunningAssessment] = {}
        self._is_draining = False
        self._freed = asyncio.Event()
        self._capacity = Capacity(self.limits)
        # Shared by all assessments, so that many small requests cannot cost more than one large one.
        self._budget = Budget(
            max_cost_usd=self.limits.max_cost_usd,
            max_tokens=self.limits.max_tokens,
            remedies=("start the judge with a higher --max-cost-usd", "start the judge with a higher --max-tokens"),
        )
        self._waiting = 0
        self.metrics = Metrics(self._running.values, lambda: self._waiting, self._budget.spending)

    @property
    def health(self) -> Health:
        """Whether the judge accepts another assessment."""
        if self._is_draining:
            return "draining"
        has_room = len(self._running) < self.limits.max_assessments and self._capacity.has_room
        return "ready" if has_room else "full"

    async def execute(self, turn: AgentMessage, sink: TaskSink) -> None:
        """Handle one request from start to artifact. Cancelling this stops the run and closes its browsers."""
        try:
            request = self._accept(turn.text)
            running = self._followed(request) or self._begin(request)
        except Busy as error:
            _log.info("request rejected: %s", error)
            await sink.reject(str(error), {BUSY_KEY: "yes"})
            return
        except (ConfigError, ModelBudgetSpent) as error:
            _log.info("request rejected: %s", error)
            await sink.reject(str(error))
            return
        running.followers.append(sink)
        if request.resume_token is not None:
            sink.annotate({RUN_ID_KEY: running.run_id})
        try:
            # Shielded, because a judge that stops says so to all clients before the assessment has ended.
            end = await asyncio.shield(running.job)
        except asyncio.CancelledError:
            running.cancel(_STOPPING if self._is_draining else "its client cancelled it")
            await asyncio.wait({running.job})
            raise
        finally:
            running.followers.remove(sink)
        match end.state:
            case "completed":
                await sink.artifact("results", [*end.texts])
                await sink.complete(end.text)
            case "rejected":
                await sink.reject(end.text)
            case "cancelled":
                await sink.cancelled(f"The assessment was cancelled: {end.text}.")
            case "stopped":
                # The job may end before the server gets to cancel this.
                note = self.note_on_stop(sink.metadata)
                await sink.fail(note.after(f"The assessment was stopped: {end.text}."), note.facts)
            case "failed":
                await sink.fail(end.text)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """While the body runs, continue the runs that a stop of the judge has interrupted."""
        continuing = asyncio.create_task(self._continue_runs())
        try:
            yield
        finally:
            continuing.cancel()
            await self.stop()

    def drain(self) -> None:
        """Accept no further request."""
        self._is_draining = True
        _log.info("stopping, with %s in progress", counted(len(self._running), "assessment"))

    async def stop(self) -> None:
        """End all assessments, so that they can be continued."""
        self._is_draining = True
        jobs = [running.job for running in self._running.values()]
        for running in self._running.values():
            running.cancel(_STOPPING)
        if jobs:
            await asyncio.wait(jobs)

    def note_on_stop(self, metadata: Mapping[str, Any]) -> Note:
        """What the client of a stopped run should know, by its task's metadata."""
        return note_on_stop(self.output_dir, metadata)

    async def _continue_runs(self) -> None:
        """Begin the stopped runs that need nothing from their clients, each as soon as there is room for it."""
        left_over = await asyncio.to_thread(left_behind, self.output_dir)
        self._waiting = len(left_over)
        for store, resumable in left_over:
            with log_context(run=store.run_id):
                try:
                    await self._continue_run(store.run_id, resumable)
                except (ConfigError, ModelBudgetSpent) as error:
                    _log.error("the run is not continued: %s", error)
                # Isolation boundary: an internal error fails only this run.
                except Exception:  # noqa: BLE001
                    _log.exception("the run is not continued")
            self._waiting -= 1

    async def _continue_run(self, run_id: str, stored_request: AssessmentRequest) -> None:
        request = _of_run(self._admitted(stored_request), run_id)
        while self._fitting(request) is None:
            self._freed.clear()
            await self._freed.wait()
        # Its client may have been faster.
        if run_id not in self._running:
            _log.info("the run is continued")
            self._begin(request)

    def _followed(self, request: AssessmentRequest) -> RunningAssessment | None:
        """The running assessment that the request asks to follow. Raises `ConfigError` if that has another request."""
        running = self._running.get(request.config.run_id or "")
        if running is None or request.resume_token is None:
            return None
        parts = compared_parts(request.participants, request.config, request.tasks, launch=request.launch)
        require_same_request(RunStore(self.output_dir, running.run_id), parts, unknown=("judge",))
        return running

    def _fitting(self, request: AssessmentRequest) -> AssessmentRequest | None:
        """The request as it fits into the capacity that is left; `None` if it does not fit."""
        if len(self._running) >= self.limits.max_assessments:
            return None
        return self._capacity.fit(request, _attempts(request))

    def _begin(self, request: AssessmentRequest) -> RunningAssessment:
        """The assessment, which has just begun. Raises `Busy` if it cannot begin now."""
        run_id = request.config.run_id or new_run_id()
        fitting = self._fitting(request)
        if self._is_draining:
            raise Busy("this judge is stopping; try again when it has started")
        # No `await` since the capacity was computed, so no other request can take it in between.
        if run_id in self._running or fitting is None:
            busy = f"run {run_id} is in progress" if run_id in self._running else "this judge is busy"
            raise Busy(f"{busy}; try again when it is done")
        running = RunningAssessment(run_id, request)
        capacity = contextlib.ExitStack()
        capacity.enter_context(self._capacity.reserve(fitting.config, _attempts(fitting)))

        def end(_: object) -> None:
            capacity.close()
            del self._running[run_id]
            self._freed.set()

        running.job = asyncio.create_task(self._job(running, fitting))
        # The first callback, so that there is room again before the client learns the end.
        running.job.add_done_callback(end)
        self._running[run_id] = running
        return running

    async def _job(self, running: RunningAssessment, request: AssessmentRequest) -> AssessmentEnd:
        """Play the assessment. Raises nothing: however it ends, its clients and the log are to know."""
        is_sealed = request.is_sealed
        with log_context(run=running.run_id), sealed_logs() if is_sealed else contextlib.nullcontext():
            _log.info("assessment started: %s", counted(len(request.tasks), "task"), extra=PUBLIC)
            watching = None
            if request.config.on_disconnect == "cancel":
                watching = asyncio.create_task(running.cancel_without_clients())
            try:
                end = await self._end_of(running, request)
                if is_sealed and end.state in ("rejected", "failed"):
                    # The reason may quote a task.
                    end = end._replace(text=_WITHHELD)
            finally:
                if watching:
                    watching.cancel()
            self.metrics.count_end(end.state)
            _log.info("assessment %s: %s", end.state, end.text, extra=PUBLIC)
            return end

    async def _end_of(self, running: RunningAssessment, request: AssessmentRequest) -> AssessmentEnd:
        run_id = running.run_id
        try:
            # The lock keeps other processes out of the run's folder. A refused run leaves no folder.
            with RunStore(self.output_dir, run_id).held("judge"):
                submission = await self._assess(request, running)
        except asyncio.CancelledError:
            return AssessmentEnd("stopped" if self._is_draining else "cancelled", running.why_cancelled)
        except ConfigError as error:
            return AssessmentEnd("rejected", str(error))
        except WabeError as error:
            _log.exception("assessment %s failed", run_id)
            return AssessmentEnd("failed", f"The assessment could not be run: {error}")
        # Isolation boundary: an internal error fails only this assessment.
        except Exception as error:  # noqa: BLE001
            _log.exception("assessment %s failed", run_id)
            return AssessmentEnd("failed", f"The agent failed: {type(error).__name__}.")
        role = next(iter(request.participants))
        texts = (_prose(role, submission), result_text(submission))
        return AssessmentEnd("completed", f"Assessment {run_id} is done.", texts)

    def _accept(self, text: str) -> AssessmentRequest:
        """The request with the tasks of its shard and with budgets clamped. Raises `ConfigError`.

        One with a resume token names the token's run.
        """
        key = key_in(self.settings.seal_key)
        request = parse_request(
            text,
            lambda name: bundled_tasks(name, self.settings.scenarios_folder, key),
            lambda sealed, today: sealed_tasks(sealed, key, today, self.settings.environ),
        )
        if len(request.participants) != 1:
            raise ConfigError(
                f"assessment request: {len(request.participants)} participants", remedy="send exactly one at a time"
            )
        config = request.config
        tasks = shard(request.tasks, config.shard_index, config.num_shards, instances=config.num_instances)
        changes: dict[str, Any] = {"tasks": tasks}
        if config.num_shards > 1:
            whole = request.tasks[: config.num_instances]
            digest = sha256_of(task_digests(whole))
            changes["part"] = request.shard.model_copy(update={"tasks_sha256": digest, "tasks": len(whole)})
        admitted = self._admitted(request.model_copy(update=changes))
        if request.resume_token is None:
            return admitted
        # The client does not choose it: the token shows that the run is its own.
        return _of_run(admitted, run_of_token(self.output_dir, request.resume_token))

    def _admitted(self, request: AssessmentRequest) -> AssessmentRequest:
        """The request with budgets clamped, if this judge may serve it. Raises `ConfigError` or `ModelBudgetSpent`."""
        config, tasks = request.config, request.tasks
        self.limits.check(config, len(tasks))
        # An untrusted client must not choose this machine's files, where its API key is sent, or whose run is resumed.
        host_keys = [f"config.{name}" for name in settings_of_the_host(config)]
        host_keys += ["launch"] if request.launch else []
        if host_keys and not self.settings.trust_config:
            raise ConfigError(
                f"assessment request: only the user who started this judge may set {host_keys[0]}",
                remedy="leave it out, or start the judge with WABE_TRUST_CONFIG=1",
            )
        for url in request.participants.values():
            if not self.limits.allows(url):
                raise ConfigError(
                    f"assessment request: this judge does not connect to {excerpt(url)}",
                    remedy="start the judge with --allow-participant for that host",
                )
        own = {"judge_model": self.settings.judge_model, "judge_method": self.settings.judge_method}
        config = config.model_copy(
            update={key: value for key, value in own.items() if value and key not in config.model_fields_set}
        )
        # Only for trusted requests: the error messages reveal which files exist on the judge's machine.
        check_config(config, self.settings)
        warnings = (*request.warnings, *waiting_notes(tasks, config))
        unchecked = sum(not task.checks for task in tasks)
        if config.judge_model != OFFLINE:
            # Also checked here, so that a judge without budget refuses before browsers and participant work.
            self._budget.check()
            config, notes = self.limits.within_budget(config)
            warnings += notes
        elif unchecked:
            warnings += (f"{unchecked} of {counted(len(tasks), 'task')} will be unscored: {NO_CHECKS}",)
        # A continued request has been here before.
        return request.model_copy(update={"config": config, "warnings": tuple(dict.fromkeys(warnings))})

    async def _assess(self, request: AssessmentRequest, running: RunningAssessment) -> Submission:
        """Run the assessment and record it. Raises `ConfigError` only before the run has begun."""
        archives = await asyncio.to_thread(open_archives, request.config)
        await require_networks(request.tasks, request.config, archives)
        if archives is not None:
            request = _on_archives(request, archives)
        config, tasks = request.config, request.tasks
        await require_upstream(config)
        role, url = next(iter(request.participants.items()))
        run_id = running.run_id
        # Only a judge with the key plays a sealed set.
        store = RunStore(self.output_dir, run_id).without_key()
        browser_settings = BrowserSettings.from_config(config, self.settings)
        spending = spending_before(store)
        async with contextlib.AsyncExitStack() as stack:
            judge = open_judge(
                config,
                self.settings,
                # Neither a cache on the disk nor a span may contain what a sealed task says.
                cache_dir=None if request.is_sealed else self.output_dir / "cache",
                wrap=(lambda model: model) if request.is_sealed else self.tracing.model,
                spending=spending,
                others=(self._budget,),
                shards=request.shard.of,
            )
            # For errors before the run begins; otherwise `_recorded` has already closed it.
            stack.push_async_callback(judge.aclose)
            # With checks, another judge than the run's may decide a task; `wabe score` and `verify` need to know.
            deciding = {task.task_id: judge.judges_of(task)[0].id for task in tasks}
            begin_run(
                store,
                config=config,
                tasks=tasks,
                role=role,
                url=url,
                judge_id=judge.id,
                judge_ids={task_id: judge_id for task_id, judge_id in deciding.items() if judge_id != judge.id},
                launch=request.launch,
                excluded=request.excluded,
            )
            trace = stack.enter_context(self.tracing.watch(run_id, role))
            show = self.hub.watch(run_id, is_sealed=request.is_sealed)
            stack.callback(self.hub.end, run_id)
            token = None
            with _logging_write_errors():
                token = keep(store, running.request)
            running.annotate({RUN_ID_KEY: run_id}, {RESUME_TOKEN_KEY: token} if token else {})

            numbers = itertools.count(1)

            def emit(event: Event) -> None:
                event = sealed_form(event) if request.is_sealed else event
                if line := describe(event):
                    _log.info("%s", line, extra=PUBLIC)
                    running.update(line, {EVENT_KEY: to_wire(event, next(numbers))})
                trace(event)
                show(event)
                running.take(event)
                self.metrics.take(event)

            for warning in request.warnings:
                emit(RequestWarning(text=warning))
            connect = _shared_connection(url, config, stack, store, request.participant_headers.get(role, {}))
            pool = await stack.enter_async_context(browser_pool(browser_settings))
            running.browsers = lambda: pool.size
            records_trace = self.settings.record_trace and not request.is_sealed
            setup = AttemptSetup(
                config,
                traced(pool.browser, store.traces) if records_trace else pool.browser,
                judge,
                closed=(self.own_address, url),
                archives=archives,
                ledger=store.folder / LEDGER,
            )
            assessment = Assessment(tasks, setup, connect, store, emit)
            results = await self._recorded(assessment, judge, store, spending)
        submission = _submission(request, role, results, store)
        with _logging_write_errors():
            store.write_submission(submission)
        return submission

    async def _recorded(
        self, assessment: Assessment, judge: Judge, store: RunStore, spending: Spending
    ) -> tuple[TaskSummary, ...]:
        """The assessment's results. However it ends, the end is written to `run.json`."""
        state = "failed"
        results: tuple[TaskSummary, ...] = ()
        try:
            results = await assessment.run()
            state = "completed"
            return results
        except asyncio.CancelledError:
            # A run stopped with its judge can be continued; nobody wants one that was cancelled.
            state = "stopped" if self._is_draining else "cancelled"
            raise
        finally:
            try:
                # Closed before writing the record, so that it includes the cost of calls that this cancels.
                await judge.aclose()
            finally:
                with _logging_write_errors():
                    end_run(store, state, results, spending)


def _of_run(request: AssessmentRequest, run_id: str) -> AssessmentRequest:
    return request.model_copy(update={"config": request.config.model_copy(update={"run_id": run_id})})


def _attempts(request: AssessmentRequest) -> int:
    return len(request.tasks) * request.config.epochs


def _on_archives(request: AssessmentRequest, archives: Archives) -> AssessmentRequest:
    """The request without the tasks that cannot be played on their archives. Raises `ConfigError`."""
    config = archives.excluding(request.config, request.tasks)
    if request.shard.of == 1:
        require_playable(config, request.tasks)
    warnings = request.warnings
    if config.settle == "real-time":
        warnings += ("frozen sites in real time: pages show this machine's date, not that of the recording",)
    return request.model_copy(update={"config": config, "warnings": warnings})


@contextlib.contextmanager
def _logging_write_errors() -> Iterator[None]:
    """Log write errors instead of raising them: on a full disk the results can still be sent."""
    try:
        yield
    except OSError as error:
        _log.error("cannot write %s: %s", error.filename or "a result", error.strerror or error)


def _shared_connection(
    url: str, config: RunConfig, stack: contextlib.AsyncExitStack, store: RunStore, headers: Mapping[str, str]
) -> Callable[[], AbstractAsyncContextManager[ParticipantClient]]:
    """One connection for all episodes, opened by the first, because each connection reads the agent card again.

    If connecting fails, the next episode tries again. `stack` closes it. The card is added to the run's record.
    """
    opening = asyncio.Lock()
    opened: list[ParticipantClient] = []

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[ParticipantClient]:
        async with opening:
            if not opened:
                client = ParticipantClient(
                    url, reply_timeout_s=config.reply_timeout_s, max_reply_bytes=config.max_reply_bytes, headers=headers
                )
                opened.append(await stack.enter_async_context(client))
                with _logging_write_errors():
                    record_card(store, client.card.name, client.card.version, client.card.isolation)
        yield opened[0]

    return connect


def _submission(request: AssessmentRequest, role: str, results: tuple[TaskSummary, ...], store: RunStore) -> Submission:
    return build_submission(
        role=role,
        participant_ids={role: request.config.participant_ids.get(role, "")},
        results=results,
        excluded=[each.model_dump(mode="json") for each in request.excluded],
        provenance={"identity": identity_in(store.read_run() or {})}
        | provenance(config=request.config, results=results, run_id=store.run_id, shard=request.shard),
    )


def _prose(role: str, submission: Submission) -> str:
    detail = submission["results"][0]["detail"]
    note = incomplete_note(detail)
    outcomes = [entry.outcome for entry in read_entries(detail["tasks"])]
    return (
        f"{one_line(role)}: {rate_text(detail)}; {outcomes.count('unscored')} unscored,"
        f" {outcomes.count('aborted')} aborted; of all tasks ({detail['total_tasks']}):"
        f" {detail['success_rate_of_all']} %{note and f' ({note})'}."
    )
