"""`wabe run --engine ray --shards N`: plays all shards of a run with one command, and shows and merges them."""

import asyncio
import contextlib
import importlib.util
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from starlette.applications import Starlette

from judge.browser.orphans import end_with_parent
from judge.config import RunConfig
from judge.records.events import SHARD_STARTED, Event, RequestWarning, RunDone, RunStarted, Sink, from_wire
from judge.runner.boundary import ERROR, EXIT_USAGE, Interrupted
from judge.runner.ending import linger
from judge.runner.follow import RunOutcome
from judge.runner.launch import child_environ, launched, log_tail
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import Plan, make_plan, require_as_planned
from judge.runner.playable import require_first_pages, require_folders
from judge.runner.ports import LOOPBACK
from judge.runner.run import conclude
from judge.runner.shards import MAX_SHARDS
from judge.runner.start import require_shardable
from judge.runner.terminal import Progress
from judge.runner.uploads import fetch_shards
from judge.scenario.models import Scenario, Shard
from judge.scenario.pairs import planned
from judge.server.live import LiveHub, live_routes
from judge.store.layout import RunStore, find_run
from shared.a2a.serving import address_of, listen, serve_app
from shared.engines import ENGINES, Engine
from shared.errors import ConfigError, WabeError
from shared.settings import Settings
from shared.text import counted

_STOP_S = 90
_MAX_LINE_BYTES = 1_000_000
_SHOWN_LINES = 12


class Whole:
    """Combines the events of all shards into events of one run for `emit`, and passes them to `watch` by shard."""

    def __init__(
        self, run_id: str, shards: int, total: int, emit: Sink, watch: Callable[[str], Sink], *, attacked: int = 0
    ) -> None:
        self._run_id = run_id
        self._total = total
        self._attacked = attacked
        self._emit = emit
        self._watch = watch
        # The shards' names, which their folders have as well.
        self.names = [Shard(index=index, of=shards).name for index in range(shards)]
        self._watching: dict[int, Sink] = {}
        self._started: set[int] = set()
        self._settled_by_shard: dict[int, int] = {}
        # The last lines of each shard other than events: its error message, if it fails.
        self.last_lines: list[list[str]] = [[] for _ in range(shards)]

    def line(self, shard: int, text: str) -> None:
        """Handle a line that a shard printed."""
        fields = fields_of(text)
        if (event := from_wire(fields)) is not None:
            self._take(shard, event)
        elif fields is not None and fields.get("event") == SHARD_STARTED:
            if shard in self._started:
                self._emit(RequestWarning(text=f"Shard {self.names[shard]} is started again: it resumes."))
            self._started.add(shard)
        elif text.strip() and fields is None:
            self.last_lines[shard] = [*self.last_lines[shard], text][-_SHOWN_LINES:]

    def _take(self, shard: int, event: Event) -> None:
        if shard not in self._watching or isinstance(event, RunStarted):
            # If it was restarted, watch it from the start again, like a resumed run.
            self._watching[shard] = self._watch(f"{self._run_id}/shards/{self.names[shard]}")
        self._watching[shard](event)
        match event:
            case RunStarted() if shard in self._settled_by_shard:
                # It was restarted and kept this result, which was already shown.
                return
            case RunStarted():
                self._settled_by_shard[shard] = event.kept
                if event.kept or len(self._settled_by_shard) == 1:
                    settled_count = sum(self._settled_by_shard.values())
                    whole = {
                        "run_id": self._run_id,
                        "total": self._total,
                        "attacked": self._attacked,
                        "kept": settled_count,
                    }
                    self._emit(event.model_copy(update=whole))
            case RunDone():
                return
            case _:
                self._emit(event)


def fields_of(line: str) -> dict[str, Any] | None:
    """The object in a line of `--display json`; `None` for any other line."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


async def run(options: RunOptions, settings: Settings, console: Console) -> int:
    """Run all shards of the scenario and merge them. Returns the exit code; raises `Interrupted` as a run does."""
    shards, plan = _plan(options, settings)
    # Before hours of playing.
    merge_shards = ENGINES.load("shards").merge_shards
    assert merge_shards is not None
    store = plan.store
    assert store is not None
    config = _config(plan)
    tasks = planned(plan.tasks, config)
    progress = Progress(console, options.display, task_ids=[task.task_id for task in tasks])
    hub = LiveHub(max_runs=shards)
    try:
        # Created here, because otherwise `held` would remove it as a folder in which no run began.
        store.folder.mkdir(parents=True, exist_ok=True)
        with store.held("runner"), progress:
            async with _live_page(hub, store.output_dir) as page, _sites(plan, settings, progress):
                console.out(f"Run {store.run_id} in {counted(shards, 'shard')}, live page {page}", highlight=False)
                attacked = sum(task.clean_task is not None for task in tasks)
                whole = Whole(store.run_id, shards, len(tasks), progress, hub.watch, attacked=attacked)
                progress.phase("Starting Ray")
                failed = await _play(_job(plan, settings, shards), whole, settings, store.logs / "ray.log")
                progress.stopping()
    except asyncio.CancelledError:
        command = resume_command(options, store)
        raise Interrupted("interrupted, everything is stopped", remedy=f"resume with: {command}") from None
    try:
        if settings.object_store:
            fetch_shards(settings.object_store, store)
        submission = merge_shards(store)
        require_as_planned(plan)
    except ConfigError as error:
        failures_text = "".join(f"\n--- shard {whole.names[shard]} ---\n{text}" for shard, text in failed.items())
        command = resume_command(options, store)
        raise WabeError(
            f"the shards cannot be merged: {error.message}\nResume with: {command}{failures_text}"
        ) from None
    results = tuple(submission["results"])
    outcome = RunOutcome(results=results, state="completed", message="", run_id=store.run_id)
    code = conclude(outcome, plan, console, progress)
    if options.linger:
        await linger(plan, console)
    return code


def _plan(options: RunOptions, settings: Settings) -> tuple[int, Plan]:
    """The number of shards, and the plan of the complete run. Raises `ConfigError`."""
    text = options.shards or ""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SHARDS:
        raise ConfigError("--engine ray needs the number of shards", remedy=f"give --shards N, 1 to {MAX_SHARDS}")
    if options.show_logs:
        raise ConfigError(
            "--engine ray has no --show-logs", remedy="leave it out, and read the logs in runs/RUN_ID/shards/"
        )
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("--engine ray needs Ray, which is not installed", remedy="pip install 'wabe[ray]'")
    plan = make_plan(options.model_copy(update={"shards": None, "resume": None}), settings)
    require_shardable(plan.scenario, options, is_recorded_here=plan.store is not None)
    for site in plan.scenario.sites:
        if site.restart or site.reset_url or site.is_played_by_instance:
            why = "has instances" if site.is_played_by_instance else "is reset between attempts"
            raise ConfigError(
                f"{options.scenario}: site {site.name} {why}, so shards cannot share it",
                remedy="leave --engine ray out",
            )
    if options.resume is not None:
        store = find_run(options.resume, options.output_dir)
    else:
        run_id = settings.environ.get("WABE_RUN_ID") or (plan.store.run_id if plan.store else "")
        store = RunStore(options.output_dir, run_id)
    others = {shard.folder.name for shard in store.shards() if not shard.folder.name.endswith(f"-of-{int(text):03d}")}
    if others:
        raise ConfigError(f"run {store.run_id} has other shards, {min(others)}", remedy="give their number as --shards")
    return int(text), replace(plan, options=options, store=store)


@asynccontextmanager
async def _live_page(hub: LiveHub, output_dir: Path) -> AsyncIterator[str]:
    """Serve the live page of all shards while the body runs; yields its address, which only this machine can open."""
    sock = listen("127.0.0.1", 0)
    app = Starlette(routes=live_routes(hub, output_dir))
    serving = asyncio.create_task(serve_app(app, sock, before_shutdown=hub.close, takes_signals=False))
    try:
        yield address_of("127.0.0.1", sock.getsockname()[1])
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@asynccontextmanager
async def _sites(plan: Plan, settings: Settings, progress: Progress) -> AsyncIterator[None]:
    """Start the scenario's sites once for all shards."""
    assert plan.store is not None
    sites = [member for member in plan.members if not member.is_agent and member.cmd is not None]
    environ = child_environ(settings, output_dir=plan.store.output_dir, participant_model=None)
    scenario_dir = plan.scenario.path.resolve().parent
    require_folders(sites, scenario_dir)
    if sites:
        progress.waiting_for(member.name for member in sites)
    async with launched(
        sites,
        scenario_dir=scenario_dir,
        environ=environ,
        logs=plan.store.logs,
        is_up=progress.is_up,
        waits=progress.phase,
    ):
        await require_first_pages(sites, plan.tasks, plan.scenario.config)
        yield


def _job(plan: Plan, settings: Settings, shards: int) -> dict[str, Any]:
    """The job for `judge.plugins.ray.program`. Without secrets, because Ray stores and shows its tasks' arguments."""
    options = plan.options
    assert plan.store is not None
    argv = ["run", str(options.scenario.resolve()), "--shards", "auto", "--display", "json"]
    argv += options.with_environment(settings).of_each_shard()
    environ = {
        "WABE_SHARDS": str(shards),
        "WABE_RUN_ID": plan.store.run_id,
        "WABE_OUTPUT_DIR": str(plan.store.output_dir.resolve()),
        "WABE_SITES_RUN": "1",
        **({"WABE_STORE": settings.object_store} if settings.object_store else {}),
    }
    return {
        "shards": shards,
        "argv": argv,
        "environ": environ,
        # Commands and files of a scenario may be relative to this folder.
        "folder": str(Path.cwd()),
        "slots": _config(plan).max_parallel,
        "is_here": _needs_this_machine(plan.scenario),
    }


def _config(plan: Plan) -> RunConfig:
    return plan.config or plan.scenario.config


def _needs_this_machine(scenario: Scenario) -> bool:
    """Whether a process not started with each shard is only reachable from this machine."""
    endpoints = [site.endpoint for site in scenario.sites]
    endpoints += [agent.endpoint or "" for agent in scenario.participants if agent.cmd is None]
    return any(urlsplit(endpoint).hostname in LOOPBACK for endpoint in endpoints)


async def _play(job: dict[str, Any], whole: Whole, settings: Settings, log: Path) -> dict[int, str]:
    """Play all shards. Returns the output of those that did not exit with 0.

    Raises `ConfigError` as soon as one refuses its settings, because all others would too; `WabeError` if Ray fails.
    """
    failed: dict[int, str] = {}
    exit_code = 0
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "judge.plugins.ray.program",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stream,
            # By default Ray sends usage statistics.
            env={**settings.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            limit=_MAX_LINE_BYTES,
            # Ctrl-C in the terminal must only reach this process, which then stops the others in order.
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(job).encode())
        process.stdin.close()
        async for data in process.stdout:
            entry = json.loads(data)
            shard = entry["shard"]
            if "line" in entry:
                whole.line(shard, entry["line"])
                continue
            exit_code += 1
            if entry["code"] != 0:
                failed[shard] = "\n".join(filter(None, [*whole.last_lines[shard], entry.get("error")]))
            if entry["code"] == EXIT_USAGE:
                raise ConfigError(f"shard {whole.names[shard]}: {failed[shard].removeprefix(ERROR)}")
    finally:
        await asyncio.shield(_stop(process))
    if exit_code < job["shards"]:
        raise WabeError(f"Ray ended with {process.returncode}\n--- end of {log} ---\n{log_tail(log)}")
    return failed


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Wait for the program to exit if it is done, else end it and all its child processes."""
    with contextlib.suppress(ProcessLookupError):
        if process.stdout is None or not process.stdout.at_eof():
            process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


ENGINE = Engine(run=run)
