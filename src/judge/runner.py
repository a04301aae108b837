"""`agentbeats-run`: one scenario from start to results, with everything it started stopped again."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from judge.assess_client import RunOutcome, request_assessment
from judge.cast import child_environ, members_of, running_cast
from judge.cli_boundary import EXIT_LOST, Interrupted
from judge.config import RunConfig, first_problem
from judge.files import write_json
from judge.log_tail import show_logs
from judge.preflight import check_config
from judge.progress import Progress
from judge.report.build import make_report, open_page
from judge.scenario import Scenario, load_scenario, request_text, select
from judge.store import RunStore, new_run_id, resolve_run
from judge.summary import print_summary
from shared.errors import ConfigError, WabeError
from shared.models import Level, Record
from shared.settings import Settings

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
    """A run as it will be asked for: `request` is the text that the judge receives."""

    scenario: Scenario
    store: RunStore
    request: str


def make_plan(options: RunOptions, settings: Settings) -> Plan:
    """The scenario with the options applied, or an interrupted run as it was asked for. Raises `ConfigError`."""
    scenario = load_scenario(options.scenario)
    if options.resume is not None:
        store = resolve_run(options.resume, options.output_dir)
        return Plan(scenario=scenario, store=store, request=store.read_request())
    changes: dict[str, object] = {
        "run_id": new_run_id(),
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
    try:
        config = RunConfig.model_validate({**scenario.config.model_dump(), **changes})
    except ValidationError as error:
        key, problem, remedy = first_problem(error)
        raise ConfigError(
            f"{key or 'config'}, as the options and the environment set it: {problem}", remedy=remedy
        ) from None
    if scenario.green_agent.cmd is not None and not options.serve_only:
        try:
            check_config(config, settings)
        except ConfigError as error:
            raise ConfigError(f"{options.scenario}: {error.message}", remedy=error.remedy) from None
    tasks = scenario.tasks
    if tasks:
        tasks = select(tasks, limit=options.limit, level=options.level, ids=options.task_ids)
    return Plan(
        scenario=scenario,
        store=RunStore(options.output_dir, str(changes["run_id"])),
        request=request_text(scenario, tasks=tasks, config=config),
    )


async def run(options: RunOptions, settings: Settings, console: Console) -> int:
    """Run the scenario. Returns the exit code; raises `Interrupted` with the command that goes on."""
    plan = make_plan(options, settings)
    members = members_of(plan.scenario, settings)
    plan.store.create()
    plan.store.write_request(plan.request)
    console.print(f"Run {plan.store.run_id}, logs in {plan.store.logs}", highlight=False, soft_wrap=True)
    environ = child_environ(settings, output_dir=options.output_dir, participant_model=options.participant_model)
    directory = options.scenario.resolve().parent
    try:
        async with (
            running_cast(members, scenario_dir=directory, environ=environ, logs=plan.store.logs) as children,
            show_logs(children, console, enabled=options.show_logs),
        ):
            if options.serve_only:
                addresses = ", ".join(f"{member.name} at {member.endpoint}" for member in members)
                console.print(f"Up: {addresses}. Ctrl-C stops everything.", highlight=False, soft_wrap=True)
                await asyncio.Event().wait()
            with Progress(console) as progress:
                outcome = await request_assessment(members[-1].endpoint, plan.request, progress)
    except asyncio.CancelledError:
        remedy = "" if options.serve_only else f"to go on: {resume_command(options, plan.store.run_id)}"
        raise Interrupted("interrupted, everything is stopped", remedy=remedy) from None
    return _conclude(outcome, plan, options, console)


def _conclude(outcome: RunOutcome, plan: Plan, options: RunOptions, console: Console) -> int:
    submission = outcome.submission(plan.scenario)
    if submission is None:
        console.print(f"The judge gave no result ({outcome.state}): {outcome.message}", markup=False, soft_wrap=True)
        console.print(f"To go on: {resume_command(options, plan.store.run_id)}", highlight=False, soft_wrap=True)
        return EXIT_LOST
    plan.store.write_submission(submission)
    if options.output is not None:
        try:
            write_json(options.output, submission)
        except OSError as error:
            raise ConfigError(
                f"--output {options.output}: {error.strerror or error}", remedy="choose a file you can write"
            ) from None
    code = print_summary(console, submission, plan.store)
    _report(plan.store, console, show=options.open_report)
    if code == EXIT_LOST:
        command = resume_command(options, plan.store.run_id)
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


def resume_command(options: RunOptions, run_id: str) -> str:
    """The command that finishes this run."""
    folder = "" if options.output_dir == DEFAULT_OUTPUT_DIR else f" --output-dir {options.output_dir}"
    return f"agentbeats-run {options.scenario}{folder} --resume {run_id}"
