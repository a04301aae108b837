"""One scenario from start to results: plan it, start its agents, follow the judge, show the results, stop it all."""

import asyncio
import hashlib
import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError
from rich.console import Console

from judge.browser.chromium import find_browser
from judge.config import RunConfig
from judge.episode.preflight import check_config
from judge.events import Sink
from judge.report.build import make_report, open_page
from judge.results.run_record import (
    compared_parts,
    newest_unfinished,
    require_same_request,
    sha256_of,
    task_digests,
    withdraw_unplayed,
)
from judge.results.submission import counts_of
from judge.runner.boundary import EXIT_DONE, EXIT_LOST, Interrupted
from judge.runner.follow import FirstTasks, RunOutcome, UnusableParticipant, request_assessment
from judge.runner.junit import write_junit
from judge.runner.launch import Member, child_environ, launched, log_path, log_tail, members_of, shown_logs
from judge.runner.live_page import live_page_of
from judge.runner.restarts import restarts_of
from judge.runner.shards import balanced_shards, on_free_ports, run_id_of, shard_of
from judge.runner.terminal import Display, Progress, print_json, print_summary
from judge.runner.uploads import ObjectStore, Uploads
from judge.scenario.logins import with_logins
from judge.scenario.models import AgentEntry, Launch, LaunchedProcess, Scenario, Shard, resolved
from judge.scenario.request import parse_request, request_text
from judge.scenario.toml import load_scenario, select
from judge.scenario.toml import shard as slice_of
from judge.server.limits import settings_of_the_host
from judge.store import RunStore, find_run, new_run_id, resolve_run
from shared.errors import ConfigError, WabeError
from shared.files import write_errors, write_json
from shared.llm.redis import check_server
from shared.models import Level, Record, Task
from shared.settings import Settings
from shared.text import one_line
from shared.validation import problems_of

DEFAULT_OUTPUT_DIR = Path(".output")
_JUDGE_ENDS_S = 60
_GIT_TIMEOUT_S = 10


class RunOptions(Record):
    """The command line. `command` is the part of it that names command and scenario, for messages to the user."""

    scenario: Path
    command: tuple[str, ...] = ()
    output_dir: Path = DEFAULT_OUTPUT_DIR
    output: Path | None = None
    show_logs: bool = False
    serve_only: bool = False
    open_report: bool = False
    resume: str | None = None
    limit: int | None = None
    level: Level | None = None
    task_ids: tuple[str, ...] = ()
    max_parallel: int | None = None
    judge_model: str | None = None
    participant_model: str | None = None
    name: str | None = None
    epochs: int | None = None
    display: Display | None = None
    fail_under: float | None = None
    junit: Path | None = None
    shards: str | None = None
    engine: Literal["local", "ray"] = "local"


@dataclass(frozen=True)
class Plan:
    """A run before it starts: `request` is the text that the judge receives, empty for a shard without tasks.

    `store` is `None` when the judge was started elsewhere and keeps its runs itself. `notes` are for the user.
    `tasks` are those that will be run, as far as they are known here.
    """

    scenario: Scenario
    members: tuple[Member, ...]
    request: str
    store: RunStore | None
    notes: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    resumes: bool = False
    shard: Shard | None = None


def make_plan(options: RunOptions, settings: Settings) -> Plan:
    """The scenario with the options applied. Raises `ConfigError`, also if a run cannot be resumed with them."""
    declared = load_scenario(options.scenario)
    scenario = declared if options.shards is None else on_free_ports(declared)
    members = members_of(scenario, settings)
    # In containers the judge runs beside this runner, trusts it, and writes to the same folder.
    is_ours = scenario.green_agent.cmd is not None or settings.trust_config
    if options.resume is not None and (options.serve_only or not is_ours):
        raise ConfigError(
            f"{options.scenario}: --resume needs a judge that is started here and receives a request",
            remedy="leave --serve-only out"
            if options.serve_only
            else "give [green_agent] a cmd; a judge that is already running keeps its runs where it is",
        )
    if options.shards is not None:
        require_shardable(declared, options, is_ours=is_ours)
    config, notes = _config(scenario, options, settings, is_ours=is_ours)
    if (judge_cmd := scenario.green_agent.cmd) is not None and not options.serve_only:
        # The judge's own environment: a key may be set for it alone.
        judge_settings = Settings.from_environ({**settings.environ, **members[-1].env})
        try:
            check_config(config, judge_settings)
        except ConfigError as error:
            raise _with_source(error, options, settings) from None
        if [Path(word).name for word in shlex.split(judge_cmd)[:2]] == ["wabe", "serve"]:
            # Any other command may have its browser elsewhere, such as in a container.
            find_browser(config.browser_path, judge_settings)
    tasks = scenario.tasks
    if tasks:
        tasks = select(tasks, limit=options.limit, level=options.level, ids=options.task_ids)
        tasks = with_logins(scenario, tasks, settings.environ)
    if options.serve_only or not is_ours:
        request = request_text(scenario, tasks=tasks, config=config)
        return Plan(scenario, members, request, store=None, notes=notes, tasks=tasks)
    launch = _launch(declared, members, options, settings)
    if options.shards is not None:
        launch, tasks = _one_shard(launch, tasks, config, options.shards, settings)
    store, resumes = _store_of(launch, options, settings)
    config = config.model_copy(update={"run_id": store.run_id})
    if launch.shard and not tasks:
        return Plan(scenario, members, "", store, notes, shard=launch.shard)
    request = request_text(scenario, tasks=tasks, config=config, launch=launch)
    if resumes:
        # Read as the judge will read it, so that both compare the same parts.
        parsed = parse_request(request, lambda _: ())
        # What only the judge knows is compared by the judge.
        unknown = ["judge"]
        unknown += [] if tasks else ["tasks"]
        unknown += [] if "judge_model" in parsed.config.model_fields_set else ["config.judge_model"]
        mine = slice_of(parsed.tasks, config.shard_index, config.num_shards, instances=config.num_instances)
        parts = compared_parts(parsed.participants, parsed.config, mine, launch=parsed.launch)
        require_same_request(store, parts, unknown=unknown)
    return Plan(scenario, members, request, store, notes, tasks, resumes, launch.shard)


def _with_source(error: ConfigError, options: RunOptions, settings: Settings) -> ConfigError:
    """The error with the place of the mistake: the scenario file, or what replaced its judge model."""
    problem = error.message.partition("config.judge_model: ")[2]
    chosen = "--judge-model" if options.judge_model else "WABE_JUDGE_MODEL" if settings.judge_model else None
    if problem and chosen:
        return ConfigError(f"{chosen}: {problem}", remedy=error.remedy)
    return ConfigError(f"{options.scenario}: {error.message}", remedy=error.remedy)


def require_shardable(scenario: Scenario, options: RunOptions, *, is_ours: bool) -> None:
    """Raises `ConfigError` for what shards cannot do."""
    for is_problem, problem, remedy in (
        (
            options.serve_only or not is_ours,
            "needs a judge that is started here and receives a request",
            "give [green_agent] a cmd, and leave --serve-only out",
        ),
        (not scenario.tasks, "needs the tasks in the scenario", "list them as [[tasks]]"),
        (
            {"shard_index", "num_shards"} & scenario.config.model_fields_set,
            "divides the tasks itself",
            "remove shard_index and num_shards from [config]",
        ),
        (options.resume == "latest", "needs --resume to name the run", "give its id, or leave --resume out"),
    ):
        if is_problem:
            raise ConfigError(f"{options.scenario}: --shards {problem}", remedy=remedy)


def _one_shard(
    launch: Launch, tasks: tuple[Task, ...], config: RunConfig, option: str, settings: Settings
) -> tuple[Launch, tuple[Task, ...]]:
    """The launch of one shard, and its tasks."""
    tasks = tasks[: config.num_instances]
    shard = shard_of(option, settings.environ)
    shard = shard.model_copy(update={"tasks_sha256": sha256_of(task_digests(tasks))})
    mine = balanced_shards(tasks, shard.of, max_steps=config.max_steps)[shard.index]
    return launch.model_copy(update={"shard": shard}), mine


def _store_of(launch: Launch, options: RunOptions, settings: Settings) -> tuple[RunStore, bool]:
    """The run's folder, and whether the run is resumed: a shard is as soon as it has begun."""
    if launch.shard is None:
        if options.resume is None:
            return RunStore(options.output_dir, new_run_id()), False
        return _run_to_resume(options, launch), True
    whole = find_run(options.resume, options.output_dir) if options.resume else None
    run_id = whole.run_id if whole else run_id_of(settings.environ)
    store = RunStore(whole.output_dir if whole else options.output_dir, f"{run_id}/shards/{launch.shard.name}")
    if settings.object_store and not store.has_begun:
        # An earlier process of this shard may have played on another machine.
        ObjectStore(settings.object_store).fetch(store.run_id, store.folder)
    return store, store.has_begun


def _config(
    scenario: Scenario, options: RunOptions, settings: Settings, *, is_ours: bool
) -> tuple[RunConfig, tuple[str, ...]]:
    """The scenario's settings with the options applied, and a note for each that a foreign judge would reject."""
    config = scenario.config.model_dump(exclude_unset=True, exclude={"run_id"})
    if secrets := scenario.config.secrets:
        where = f"{scenario.path}: [config], key 'secrets'"
        config["secrets"] = tuple(resolved(text, settings.environ, where) for text in secrets)
    foreign = () if is_ours else [name for name in settings_of_the_host(scenario.config) if config.pop(name, None)]
    notes = tuple(
        f"Note: config.{name} is not sent: only the user who starts a judge may set it, and this one already runs."
        for name in foreign
    )
    notes += tuple(
        f"Note: site {site.name} is not restarted: that needs a judge that is started here."
        for site in scenario.sites
        if site.restart and not is_ours
    )
    # The judge copies them into the submission.
    config["participant_ids"] = {agent.role: agent.agentbeats_id for agent in scenario.participants}
    config["site_resets"] = {site.endpoint: site.reset for site in scenario.sites if site.reset}
    if not scenario.tasks:
        if options.level or options.task_ids:
            raise ConfigError(
                "--level and --task choose among a scenario's own tasks",
                remedy=f"{options.scenario} names a task set that its judge has: use --limit, or list the tasks",
            )
        if options.limit is not None:
            config["num_instances"] = options.limit
    if options.name is not None:
        config["name"] = options.name
    if options.max_parallel is not None:
        config["max_parallel"] = options.max_parallel
    if options.epochs is not None:
        config["epochs"] = options.epochs
    if judge_model := options.judge_model or settings.judge_model:
        config["judge_model"] = judge_model
    try:
        return RunConfig.model_validate(config), notes
    except ValidationError as error:
        path, problem, remedy = problems_of(error)[0]
        key = ".".join(map(str, path)) or "config"
        raise ConfigError(f"{key}, as the options and the environment set it: {problem}", remedy=remedy) from None


def _launch(scenario: Scenario, members: tuple[Member, ...], options: RunOptions, settings: Settings) -> Launch:
    """The processes of the run, for its record."""
    env = {member.name: member.env for member in members}
    chosen = {"WABE_PARTICIPANT_MODEL": options.participant_model} if options.participant_model else {}

    def agent(entry: AgentEntry) -> LaunchedProcess:
        if entry.cmd is None:
            return LaunchedProcess(image=entry.image, model=options.participant_model)
        return LaunchedProcess(
            # Digests only, because commands and variables may hold secrets.
            cmd_sha256=_sha256(entry.cmd),
            endpoint=entry.endpoint if options.shards is not None else None,
            env_sha256=_sha256(json.dumps(entry.env, sort_keys=True)) if entry.env else None,
            model=Settings.from_environ({**settings.environ, **chosen, **env[entry.role]}).participant_model,
        )

    path = scenario.path.resolve()
    return Launch(
        revision=git_revision(path.parent),
        scenario_name=f"{path.parent.name}/{path.name}"[-300:],
        scenario_path=str(path)[-5000:],
        scenario_sha256=scenario.source_checksum,
        participants={entry.role: agent(entry) for entry in scenario.participants},
        sites={site.name: LaunchedProcess(cmd_sha256=_sha256(site.cmd)) for site in scenario.sites if site.cmd},
    )


def git_revision(folder: Path) -> str | None:
    """The commit that is checked out there, with `-dirty` if files were changed since; `None` outside a repository."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        # Git is not installed, or the folder is on a slow network.
        return None
    return done.stdout.strip()[:100] or None if done.returncode == 0 else None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _run_to_resume(options: RunOptions, launch: Launch) -> RunStore:
    if options.resume and options.resume != "latest":
        return resolve_run(options.resume, options.output_dir)
    store = newest_unfinished(options.output_dir, launch)
    if store is None:
        raise ConfigError(
            f"no run under {options.output_dir / 'runs'} is an unfinished run of {options.scenario}",
            remedy="start a new run without --resume, or name one: --resume RUN_ID",
        )
    return store


async def run(options: RunOptions, settings: Settings, console: Console) -> int:
    """Run the scenario. Returns the exit code; raises `Interrupted` with the command that resumes the run."""
    plan = make_plan(options, settings)
    if plan.shard is not None:
        if not plan.request:
            console.out(f"Shard {plan.shard.name} has no tasks.", highlight=False)
            return EXIT_DONE
        await _until_released(plan.store)
        if settings.redis_url and plan.store is not None:
            await check_server(settings.redis_url, plan.store.run_id)
    crashes: list[str] = []
    uploads = None
    if plan.shard is not None and plan.store is not None and settings.object_store:
        uploads = Uploads(ObjectStore(settings.object_store), plan.store)
    progress = Progress(console, options.display, task_ids=[task.task_id for task in plan.tasks])
    with _logs_folder(plan, options, crashes) as logs, uploads.finished() if uploads else nullcontext():
        try:
            with progress:
                outcome = await _play(plan, options, settings, console, logs, crashes, progress, uploads)
            return conclude(outcome, plan, options, console, progress)
        except asyncio.CancelledError:
            can_resume = plan.store is not None and plan.store.has_begun
            remedy = f"resume with: {resume_command(options, plan.store)}" if plan.store and can_resume else ""
            raise Interrupted("interrupted, everything is stopped", remedy=remedy) from None
        except UnusableParticipant as error:
            raise _unusable(error, plan, options, logs) from None
        finally:
            for crash in crashes:
                _tell_problem(console, crash)


async def _until_released(store: RunStore | None) -> None:
    """Wait until runner and judge of a shard that was killed have ended: an engine restarts the shard at once."""
    for _ in range(_JUDGE_ENDS_S):
        if store is None or not store.is_in_progress:
            return
        await asyncio.sleep(1)


@contextmanager
def _logs_folder(plan: Plan, options: RunOptions, crashes: list[str]) -> Iterator[Path]:
    """The folder for the agents' logs while the body runs: in the run's folder, which is then locked, if there is one.

    Otherwise the logs are temporary, and kept only if there were `crashes`, because those messages name them.
    """
    if plan.store is not None:
        if plan.resumes:
            # A judge may have outlived the runner that started it and still be writing there.
            with plan.store.held("judge"):
                pass
        with plan.store.held("runner"):
            yield plan.store.logs
    elif options.serve_only:
        yield options.output_dir / "logs"
    else:
        logs = Path(tempfile.mkdtemp(prefix="wabe-logs-"))
        try:
            yield logs
        finally:
            if not crashes:
                shutil.rmtree(logs, ignore_errors=True)


async def _play(
    plan: Plan,
    options: RunOptions,
    settings: Settings,
    console: Console,
    logs: Path,
    crashes: list[str],
    progress: Progress,
    uploads: Uploads | None,
) -> RunOutcome:
    """Start the members and follow the assessment. `crashes` receives a line for each child that ended by itself."""
    where = f"Run {plan.store.run_id}, logs" if plan.store else "Logs"
    for line in (f"{where} in {logs}", *plan.notes):
        console.out(line, highlight=False)
    output_dir = plan.store.output_dir if plan.store else options.output_dir
    environ = child_environ(settings, output_dir=output_dir, participant_model=options.participant_model)
    scenario_dir = plan.scenario.path.resolve().parent
    progress.waiting_for(member.name for member in plan.members)
    async with (
        launched(plan.members, scenario_dir=scenario_dir, environ=environ, logs=logs, is_up=progress.is_up) as children,
        shown_logs(children if options.show_logs else (), console),
        restarts_of(plan.scenario.sites if plan.store else (), children) as restarts,
    ):
        progress.live_page(await live_page_of(plan.members[-1].endpoint, settings.auth_token))
        if options.serve_only:
            progress.close()
            addresses = ", ".join(f"{member.name} at {member.endpoint}" for member in plan.members)
            console.out(f"Up: {addresses}. Ctrl-C stops everything.", highlight=False)
            # Until a signal cancels it.
            await asyncio.Event().wait()
        try:
            emit: Sink = FirstTasks(progress)
            return await request_assessment(
                plan.members[-1].endpoint,
                _with(plan.request, restarts),
                uploads.sink(emit) if uploads else emit,
                auth_token=settings.auth_token,
            )
        finally:
            progress.stopping()
            # Before the children are stopped: afterwards all of them have ended.
            crashes += [crash for child in children if (crash := child.crash())]


def _with(request: str, restarts: dict[str, str]) -> str:
    """The request with the addresses at which sites are restarted."""
    body = json.loads(request)
    body["config"] |= {"site_restarts": restarts} if restarts else {}
    return json.dumps(body, ensure_ascii=False, allow_nan=False)


def _unusable(error: UnusableParticipant, plan: Plan, options: RunOptions, logs: Path) -> WabeError:
    """The error that ends a run with an unusable participant: nothing is scored, and the end of its log is shown."""
    message = f"stopped, nothing was scored: {error.message}"
    if plan.store is not None:
        try:
            withdraw_unplayed(plan.store, error.message)
            message += f"\nWhen this is fixed, resume with: {resume_command(options, plan.store)}"
        except ConfigError as caught:
            message += f"\nThe run cannot be resumed: {caught}"
    for agent in plan.scenario.participants:
        log = log_path(logs, agent.role)
        if agent.cmd is None:
            message += f"\n{agent.role} was not started here: see its own log"
        elif tail := log_tail(log):
            message += f"\n--- end of {log} ---\n{tail}"
    return WabeError(message)


def conclude(outcome: RunOutcome, plan: Plan, options: RunOptions, console: Console, progress: Progress) -> int:
    """Write and show the results. Returns the exit code."""
    store = plan.store
    if outcome.state == "rejected":
        raise ConfigError(f"the judge refused the request: {outcome.message}")
    submission = outcome.submission(plan.scenario)
    if submission is None:
        _tell_problem(console, f"The judge gave no result ({outcome.state}): {outcome.message}", style="")
        if store is not None and store.has_begun:
            console.out(f"Resume with: {resume_command(options, store)}", highlight=False)
        return EXIT_LOST
    try:
        _write_results(submission, plan, options)
        code = print_summary(console, submission, store, progress.shown)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # It may come from any judge. What was to be kept of it is written by now.
        raise WabeError(f"the judge's result cannot be read: {type(error).__name__}: {one_line(str(error))}") from error
    page = None
    if store is None:
        run_id = f" as {outcome.run_id}" if outcome.run_id else ""
        kept = f"Results: {options.output}" if options.output else "Results: not kept here (--output FILE keeps them)"
        console.out(f"{kept}. The judge at {plan.members[-1].endpoint} keeps the run{run_id}.", highlight=False)
    else:
        page = _report(store, options, console)
        if code == EXIT_LOST and store.read_run():
            console.out(f"To retry lost tasks, resume with: {resume_command(options, store)}", highlight=False)
    for rate in _rates_under(options.fail_under, submission):
        code = EXIT_LOST
        _tell_problem(console, f"success rate of all tasks {rate} % is below --fail-under {options.fail_under:g} %")
    if progress.display == "json":
        detail = submission["results"][0]["detail"]
        counts = counts_of(detail["tasks"])
        known = {"run_id": store.run_id if store else outcome.run_id, "report": page and str(page)}
        print_json(console, "results", exit_code=code, **known, **counts)
    return code


def _write_results(submission: dict[str, Any], plan: Plan, options: RunOptions) -> None:
    if plan.store is not None and not plan.store.has_begun:
        # The judge keeps its folders elsewhere, such as in a container.
        plan.store.write_submission(submission)
    if options.output is not None:
        with write_errors(f"--output {options.output}", "choose a file you can write"):
            write_json(options.output, submission)
    if options.junit is not None:
        path = plan.scenario.path.resolve()
        write_junit(options.junit, submission, f"{path.parent.name}/{path.name}")


def _report(store: RunStore, options: RunOptions, console: Console) -> Path | None:
    """Write and name the report of a run that is kept here."""
    try:
        has_tasks = next(store.tasks(), None) is not None
        with console.status("Writing the report"):
            page = make_report([store]) if has_tasks else None
    except WabeError as error:
        _tell_problem(console, f"No report: {error}", style="")
        return None
    console.out(
        f"Report:  {page}" if page else "No report: the judge keeps its trajectories elsewhere.", highlight=False
    )
    if page and options.open_report:
        open_page(page)
    return page


def _rates_under(limit: float | None, submission: dict[str, Any]) -> list[float]:
    """The rates of all tasks below the limit, computed from the tasks rather than as the judge states them."""
    rates = [counts_of(result["detail"]["tasks"])["success_rate_of_all"] for result in submission["results"]]
    return [rate for rate in rates if limit is not None and rate < limit]


def _tell_problem(console: Console, text: str, style: str = "red") -> None:
    """A line that is worth reading in any display; where nothing else is shown, on standard error."""
    (Console(stderr=True) if console.quiet else console).out(text, style=style, highlight=False)


def resume_command(options: RunOptions, store: RunStore) -> str:
    """The command that finishes this run, with the options that must be the same for it to be resumed."""
    # A run of another output folder can only be named by its path.
    is_here = store.output_dir.resolve() == options.output_dir.resolve()
    words = [*(options.command or ("agentbeats-run", str(options.scenario)))]
    run_id, _, shard = store.run_id.partition("/shards/")
    if shard:
        index, of = shard.split("-of-")
        words = [f"WABE_SHARD={int(index)}", *words, "--shards", str(int(of))]
    if options.engine != "local":
        words += ["--engine", options.engine, "--shards", str(options.shards)]
    if is_here and options.output_dir != DEFAULT_OUTPUT_DIR:
        words += ["--output-dir", str(options.output_dir)]
    for name, value in (
        ("--output", options.output),
        ("--limit", options.limit),
        ("--level", options.level),
        *(("--task", task_id) for task_id in options.task_ids),
        ("--judge-model", options.judge_model),
        ("--participant-model", options.participant_model),
        ("--name", options.name),
        ("--epochs", options.epochs),
        ("--fail-under", options.fail_under),
        ("--junit", options.junit),
    ):
        words += [name, str(value)] if value else []
    return shlex.join([*words, "--resume", run_id if is_here else str(store.output_dir / "runs" / run_id)])
