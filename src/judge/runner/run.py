"""`agentbeats-run`: one scenario from start to results, with everything it started stopped again."""

import asyncio
import hashlib
import json
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from judge.config import RunConfig
from judge.episode.preflight import check_config
from judge.files import write_json
from judge.report.build import make_report, open_page
from judge.results.run_record import compared_parts, newest_unfinished, require_same_request, withdraw_unplayed
from judge.runner.boundary import EXIT_LOST, Interrupted
from judge.runner.children import log_end
from judge.runner.follow import FirstTasks, RunOutcome, UnusableParticipant, request_assessment
from judge.runner.launch import Member, child_environ, log_path, members_of, running_cast
from judge.runner.log_tail import show_logs
from judge.runner.summary import print_summary
from judge.runner.terminal import Progress
from judge.scenario.models import AgentEntry, Launch, LaunchedProcess, Scenario
from judge.scenario.request import parse_request, request_text
from judge.scenario.toml import load_scenario, select, shard
from judge.server.limits import settings_of_the_host
from judge.store import RunStore, new_run_id, remove_tree, resolve_run
from shared.errors import ConfigError, WabeError
from shared.models import Level, Record
from shared.settings import Settings
from shared.validation import problems_of

DEFAULT_OUTPUT_DIR = Path(".output")


class RunOptions(Record):
    """What the command line says."""

    scenario: Path
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


@dataclass(frozen=True)
class Plan:
    """A run as it will be asked for: `request` is the text that the judge receives.

    `store` is `None` when the judge is somebody else's and keeps its runs itself; `notes` are sentences for the user.
    """

    scenario: Scenario
    members: tuple[Member, ...]
    request: str
    store: RunStore | None
    notes: tuple[str, ...] = ()


def make_plan(options: RunOptions, settings: Settings) -> Plan:
    """The scenario with the options applied. Raises `ConfigError`.

    A run that is resumed is asked for as a new one would be, and refused when that is not what it was started with.
    """
    scenario = load_scenario(options.scenario)
    members = members_of(scenario, settings)
    # In containers the judge is started beside the runner, trusts it, and writes to the same folder.
    is_ours = scenario.green_agent.cmd is not None or settings.trust_config
    if options.resume is not None and (options.serve_only or not is_ours):
        raise ConfigError(
            f"{options.scenario}: --resume needs a judge that is started here and asked to run",
            remedy="leave --serve-only out"
            if options.serve_only
            else "give [green_agent] a cmd; a judge that is already running keeps its runs where it is",
        )
    config, notes = _config(scenario, options, settings, is_ours=is_ours)
    if scenario.green_agent.cmd is not None and not options.serve_only:
        judge_env = members[-1].env
        try:
            check_config(config, Settings.from_environ({**settings.environ, **judge_env}) if judge_env else settings)
        except ConfigError as error:
            raise ConfigError(f"{options.scenario}: {error.message}", remedy=error.remedy) from None
    tasks = scenario.tasks
    if tasks:
        tasks = select(tasks, limit=options.limit, level=options.level, ids=options.task_ids)
    if options.serve_only or not is_ours:
        request = request_text(scenario, tasks=tasks, config=config)
        return Plan(scenario=scenario, members=members, request=request, store=None, notes=notes)
    launch = _launch(scenario, members, options, settings)
    store = RunStore(options.output_dir, new_run_id())
    if options.resume is not None:
        store = _run_to_resume(options, launch)
    config = RunConfig.model_validate({**config.model_dump(exclude_unset=True), "run_id": store.run_id})
    request = request_text(scenario, tasks=tasks, config=config, launch=launch)
    if options.resume is not None:
        asked = parse_request(request, lambda _: ())
        unknown = ["judge"]
        unknown += [] if tasks else ["tasks"]
        unknown += [] if "judge_model" in asked.config.model_fields_set else ["config.judge_model"]
        mine = shard(asked.tasks, config.shard_index, config.num_shards, instances=config.num_instances)
        parts = compared_parts(asked.participants, asked.config, mine, launch=asked.launch)
        require_same_request(store, parts, unknown=unknown)
    return Plan(scenario=scenario, members=members, request=request, store=store, notes=notes)


def _config(
    scenario: Scenario, options: RunOptions, settings: Settings, *, is_ours: bool
) -> tuple[RunConfig, tuple[str, ...]]:
    """The scenario's settings with the options applied, and a note for each that only the judge's own user may set."""
    changes: dict[str, object] = {
        "participant_ids": {agent.role: agent.agentbeats_id for agent in scenario.participants},
    }
    if not scenario.tasks:
        if options.level or options.task_ids:
            raise ConfigError(
                "--level and --task choose among a scenario's own tasks",
                remedy=f"{options.scenario} names a task set that its judge has: use --limit, or list the tasks",
            )
        if options.limit is not None:
            changes["num_instances"] = options.limit
    if options.max_parallel is not None:
        changes["max_parallel"] = options.max_parallel
    if options.judge_model or settings.judge_model:
        changes["judge_model"] = options.judge_model or settings.judge_model
    kept = scenario.config.model_dump(exclude_unset=True)
    kept.pop("run_id", None)
    notes = []
    for name in () if is_ours else settings_of_the_host(scenario.config):
        if kept.pop(name, None) is not None:
            notes.append(f"Note: config.{name} is not sent: only who starts the judge may set it, and this one is up.")
    try:
        return RunConfig.model_validate({**kept, **changes}), tuple(notes)
    except ValidationError as error:
        path, problem, remedy = problems_of(error)[0]
        key = ".".join(map(str, path)) or "config"
        raise ConfigError(f"{key}, as the options and the environment set it: {problem}", remedy=remedy) from None


def _launch(scenario: Scenario, members: tuple[Member, ...], options: RunOptions, settings: Settings) -> Launch:
    """Who is started for the run, for its record."""
    env = {member.name: member.env for member in members}
    chosen = {"WABE_PARTICIPANT_MODEL": options.participant_model} if options.participant_model else {}

    def agent(entry: AgentEntry) -> LaunchedProcess:
        if entry.cmd is None:
            return LaunchedProcess(image=entry.image, model=options.participant_model)
        return LaunchedProcess(
            cmd_sha256=_sha256(entry.cmd),
            env_sha256=_sha256(json.dumps(entry.env, sort_keys=True)) if entry.env else None,
            model=Settings.from_environ({**settings.environ, **chosen, **env[entry.role]}).participant_model,
        )

    path = scenario.path.resolve()
    return Launch(
        scenario_name=f"{path.parent.name}/{path.name}"[-300:],
        scenario_path=str(path)[-5000:],
        scenario_sha256=scenario.source_checksum,
        participants={entry.role: agent(entry) for entry in scenario.participants},
        sites={site.name: LaunchedProcess(cmd_sha256=_sha256(site.cmd)) for site in scenario.sites if site.cmd},
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _run_to_resume(options: RunOptions, launch: Launch) -> RunStore:
    if options.resume not in ("", "latest"):
        return resolve_run(str(options.resume), options.output_dir)
    store = newest_unfinished(options.output_dir, launch)
    if store is None:
        raise ConfigError(
            f"no run under {options.output_dir / 'runs'} is an unfinished run of {options.scenario}",
            remedy="start a new run without --resume, or name one: --resume RUN_ID",
        )
    return store


async def run(options: RunOptions, settings: Settings, console: Console) -> int:
    """Run the scenario. Returns the exit code; raises `Interrupted` with the command that goes on."""
    plan = make_plan(options, settings)
    crashes: list[str] = []
    with _logs_of(plan, options, crashes) as logs:
        try:
            return await _run(plan, options, settings, console, logs, crashes)
        except asyncio.CancelledError:
            can_resume = plan.store is not None and plan.store.has_begun
            remedy = f"to go on: {resume_command(options, plan.store)}" if plan.store and can_resume else ""
            raise Interrupted("interrupted, everything is stopped", remedy=remedy) from None
        except UnusableParticipant as error:
            raise _unusable(error, plan, options, logs) from None
        finally:
            for crash in crashes:
                console.print(crash, style="red", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _logs_of(plan: Plan, options: RunOptions, crashes: list[str]) -> Iterator[Path]:
    """Where the agents' logs go while the body runs: to the run's folder, if there is one, which is then held.

    Without one they are kept only if there were `crashes`, which name them.
    """
    if plan.store is not None:
        if options.resume is not None:
            # A judge that outlived its runner still writes there.
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
                remove_tree(logs)


async def _run(
    plan: Plan, options: RunOptions, settings: Settings, console: Console, logs: Path, crashes: list[str]
) -> int:
    where = f"Run {plan.store.run_id}, logs" if plan.store else "Logs"
    for line in (f"{where} in {logs}", *plan.notes):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    environ = child_environ(
        settings,
        output_dir=plan.store.output_dir if plan.store else options.output_dir,
        participant_model=options.participant_model,
    )
    directory = options.scenario.resolve().parent
    async with (
        running_cast(plan.members, scenario_dir=directory, environ=environ, logs=logs) as children,
        show_logs(children, console, enabled=options.show_logs),
    ):
        if options.serve_only:
            addresses = ", ".join(f"{member.name} at {member.endpoint}" for member in plan.members)
            console.print(f"Up: {addresses}. Ctrl-C stops everything.", highlight=False, soft_wrap=True)
            await asyncio.Event().wait()
        try:
            with Progress(console) as progress:
                outcome = await request_assessment(
                    plan.members[-1].endpoint, plan.request, FirstTasks(progress), auth_token=settings.auth_token
                )
        finally:
            crashes += [crash for child in children if (crash := child.crash())]
    return _conclude(outcome, plan, options, console)


def _unusable(error: UnusableParticipant, plan: Plan, options: RunOptions, logs: Path) -> WabeError:
    """The end of a run that no participant could be used for: nothing is scored, and the cause is shown."""
    message = f"stopped, nothing was scored: {error.message}"
    if plan.store is not None:
        try:
            withdraw_unplayed(plan.store, error.message)
            message += f"\nTo go on when that is mended: {resume_command(options, plan.store)}"
        except ConfigError as caught:
            message += f"\nThe run cannot be resumed: {caught}"
    for agent in plan.scenario.participants:
        log = log_path(logs, agent.role)
        if agent.cmd is None:
            message += f"\n{agent.role} was not started here: see its own log"
        elif end := log_end(log):
            message += f"\n--- end of {log} ---\n{end}"
    return WabeError(message)


def _conclude(outcome: RunOutcome, plan: Plan, options: RunOptions, console: Console) -> int:
    store = plan.store
    if outcome.state == "rejected":
        raise ConfigError(f"the judge refused the request: {outcome.message}")
    submission = outcome.submission(plan.scenario)
    if submission is None:
        console.print(f"The judge gave no result ({outcome.state}): {outcome.message}", markup=False, soft_wrap=True)
        if store is not None and store.has_begun:
            console.print(f"To go on: {resume_command(options, store)}", highlight=False, soft_wrap=True)
        return EXIT_LOST
    if store is not None and not store.has_begun:
        # A judge of ours that keeps its folders elsewhere, such as in a container.
        store.write_submission(submission)
    if options.output is not None:
        try:
            write_json(options.output, submission)
        except OSError as error:
            raise ConfigError(
                f"--output {options.output}: {error.strerror or error}", remedy="choose a file you can write"
            ) from None
    code = print_summary(console, submission, store)
    if store is None:
        run_id = f" as {outcome.run_id}" if outcome.run_id else ""
        kept = f"Results: {options.output}" if options.output else "Results: not kept here (--output FILE keeps them)"
        line = f"{kept}. The judge at {plan.members[-1].endpoint} keeps the run{run_id}."
        console.print(line, markup=False, highlight=False, soft_wrap=True)
        return code
    _report(store, console, show=options.open_report)
    if code == EXIT_LOST and store.read_run():
        command = resume_command(options, store)
        console.print(f"To try again what was lost: {command}", highlight=False, soft_wrap=True)
    return code


def _report(store: RunStore, console: Console, *, show: bool) -> None:
    """Make the report where the trajectories are at hand; a judge elsewhere keeps them there."""
    if next(store.tasks(), None) is None:
        console.print("No report: the judge keeps its trajectories elsewhere.", highlight=False)
        return
    try:
        page = make_report([store])
    except WabeError as error:
        console.print(f"No report: {error}", markup=False, highlight=False, soft_wrap=True)
        return
    console.print(f"Report:  {page}", markup=False, highlight=False, soft_wrap=True)
    if show:
        open_page(page)


def resume_command(options: RunOptions, store: RunStore) -> str:
    """The command that finishes this run: with the options that a run is compared by, since they must be the same."""
    is_here = store.output_dir.resolve() == options.output_dir.resolve()
    words = ["agentbeats-run", str(options.scenario)]
    words += ["--output-dir", str(options.output_dir)] if is_here and options.output_dir != DEFAULT_OUTPUT_DIR else []
    words += ["--output", str(options.output)] if options.output else []
    words += ["--limit", str(options.limit)] if options.limit else []
    words += ["--level", options.level] if options.level else []
    words += [word for task_id in options.task_ids for word in ("--task", task_id)]
    words += ["--judge-model", options.judge_model] if options.judge_model else []
    words += ["--participant-model", options.participant_model] if options.participant_model else []
    return shlex.join([*words, "--resume", store.run_id if is_here else str(store.folder)])
