"""Runs a scenario: starts its agents, follows the judge, shows the results, and stops everything."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import SecretStr
from rich.console import Console

from judge.browser.folders import sweep
from judge.records.events import Sink
from judge.records.verdicts import WITHOUT_CHECKS
from judge.results.entries import counts_of, read_entries
from judge.results.part import with_totals
from judge.results.run_record import withdraw_unplayed
from judge.results.submission import TaskSummary
from judge.runner.boundary import EXIT_DONE, EXIT_LOST, Interrupted
from judge.runner.follow import (
    PATIENCE_S,
    FirstTasks,
    RunOutcome,
    UnusableParticipant,
    request_assessment,
    require_admission,
)
from judge.runner.instances import require_public_addresses
from judge.runner.launch import child_environ, launched, log_path, log_tail, shown_logs
from judge.runner.live_page import live_page_of
from judge.runner.meter import METER, MeterLost, while_metered, with_meter, without_meter
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import Plan, make_plan
from judge.runner.playable import require_first_pages, require_folders, require_programs
from judge.runner.restarts import restarts_of
from judge.runner.site_logins import SiteLogins
from judge.runner.terminal import Progress, print_json, print_summary, tell_problem
from judge.runner.trivial_agents import play_trivial_agents
from judge.runner.uploads import Uploads, open_store
from judge.scenario.days import day_of
from judge.store.layout import RunStore
from judge.trajectory.files import read_result
from judge.trajectory.record import Attempt
from shared.engines import Engine
from shared.errors import ConfigError, TrajectoryError, WabeError
from shared.files import read_json, sha256_json, write_errors, write_json
from shared.llm.sharing import open_state
from shared.settings import Settings
from shared.text import one_line

_JUDGE_ENDS_S = 60


async def run(options: RunOptions, settings: Settings, console: Console) -> int:
    """Run the scenario. Returns the exit code; raises `Interrupted` with the command that resumes the run."""
    plan = make_plan(options, settings)
    uploads = None
    if plan.store is not None and plan.draft is not None and (plan.shard is not None or options.own_run_id is not None):
        await _until_released(plan.store)
    if plan.shard is not None and plan.store is not None:
        if plan.draft is None:
            console.out(f"Shard {plan.shard.name} has no tasks.", highlight=False)
            return EXIT_DONE
        if settings.redis_url:
            await _check_shared_limits(settings.redis_url, plan.store.run_id)
        if settings.object_store:
            uploads = Uploads(open_store(settings.object_store), plan.store)
    crashes: list[str] = []
    is_scored = not options.is_demonstration
    progress = Progress(console, options.display, task_ids=[task.task_id for task in plan.tasks], is_scored=is_scored)
    with _logs_folder(plan, crashes) as logs, uploads.finished() if uploads else nullcontext():
        try:
            with progress:
                outcome = await _play(plan, console, logs, crashes, progress, uploads)
            code = conclude(outcome, plan, console if is_scored else Console(quiet=True), progress)
        except asyncio.CancelledError:
            can_resume = plan.store is not None and plan.store.has_begun
            remedy = f"resume with: {resume_command(options, plan.store)}" if plan.store and can_resume else ""
            raise Interrupted("interrupted, everything is stopped", remedy=remedy) from None
        except UnusableParticipant as error:
            raise _unusable(error, plan, logs) from None
        except MeterLost as lost:
            raise without_meter(plan, lost) from None
        finally:
            for crash in crashes:
                tell_problem(console, crash)
            # A killed judge has left its browsers' folders behind.
            sweep()
    if options.trivial_agents and plan.store is not None and plan.store.has_begun:
        again = resume_command(options, plan.store)
        await play_trivial_agents(plan.store, options, settings, console, run, again)
        # Once more, with their lines beside the agent's.
        _ending().report(plan.store, options.model_copy(update={"open_report": False}), console)
    if options.linger:
        await _ending().linger(plan, console)
    return code


def _ending() -> ModuleType:
    """What comes after the run. Loaded when it has ended, because reports and pages are a fifth of all code."""
    from judge.runner import ending

    return ending


async def _check_shared_limits(url: SecretStr, run_id: str) -> None:
    """Raises `SharedStateFault` unless the store that shards share limits through answers."""
    async with aclosing(open_state(url, run_id)) as state:
        await state.check()


async def _until_released(store: RunStore) -> None:
    """Wait until the runner and judge of a killed run have ended: both are started again immediately."""
    for _ in range(_JUDGE_ENDS_S):
        if not store.is_in_progress:
            return
        await asyncio.sleep(1)


@contextmanager
def _logs_folder(plan: Plan, crashes: list[str]) -> Iterator[Path]:
    """The folder for the agents' logs while the body runs: in the run's folder, which is then locked, if there is one.

    Otherwise the logs are temporary, and kept only if there were `crashes`, because those messages name them.
    """
    if plan.store is not None:
        if plan.resumes:
            # A judge may have outlived the runner that started it and may still be writing there.
            with plan.store.held("judge"):
                pass
        with plan.store.held("runner"):
            yield plan.store.logs
    elif plan.options.serve_only:
        yield plan.options.output_dir / "logs"
    else:
        logs = Path(tempfile.mkdtemp(prefix="wabe-logs-"))
        try:
            yield logs
        finally:
            if not crashes:
                shutil.rmtree(logs, ignore_errors=True)


async def _play(
    plan: Plan, console: Console, logs: Path, crashes: list[str], progress: Progress, uploads: Uploads | None
) -> RunOutcome:
    """Start the members and follow the assessment. `crashes` receives a line for each child that ended by itself."""
    assert plan.draft is not None
    options, settings = plan.options, plan.settings
    where = f"{'Resuming run' if plan.resumes else 'Run'} {plan.store.run_id}, logs" if plan.store else "Logs"
    for line in (f"{where} in {logs}", *plan.notes):
        console.out(line, highlight=False)
    output_dir = plan.store.output_dir if plan.store else options.output_dir
    today, model = day_of(plan.scenario.config), options.participant_model
    environ = child_environ(settings, output_dir=output_dir, participant_model=model, today=today)
    if options.record_trace:
        # Not in the request: it is this machine's user who may keep what traces contain.
        environ["WABE_RECORD_TRACE"] = "1"
    scenario_dir = plan.scenario.path.resolve().parent
    require_folders(plan.members, scenario_dir)
    if plan.members[-1].cmd is None and not options.serve_only:
        await require_admission(plan.members[-1].endpoint, settings.auth_token)
    members = with_meter(plan, environ)
    await asyncio.to_thread(require_programs, members, environ)
    progress.waiting_for(member.name for member in members)
    logins = SiteLogins(plan.scenario, settings, plan.archives)
    async with (
        launched(
            members, scenario_dir=scenario_dir, environ=environ, logs=logs, is_up=progress.is_up, waits=progress.phase
        ) as children,
        shown_logs(children if options.show_logs else (), console),
        restarts_of(plan.scenario.sites if plan.store else (), children, logins, plan.instances) as restarts,
    ):
        await require_public_addresses(plan.members)
        await require_first_pages(plan.members, plan.tasks, plan.scenario.config)
        endpoint = plan.members[-1].endpoint
        progress.live_page(await live_page_of(endpoint, settings.auth_token, wants_link=console.is_terminal))
        if options.serve_only:
            progress.close()
            addresses = ", ".join(f"{member.name} at {member.endpoint}" for member in plan.members)
            console.out(f"Up: {addresses}. Ctrl-C stops everything.", highlight=False)
            # Until a signal cancels it.
            await asyncio.Event().wait()
        if plan.resumes and plan.store is not None:
            progress.keeps(await asyncio.to_thread(_settled, plan.store))
        # Even if each attempt repeats it, so that a failing log-in is noticed immediately.
        states = await logins.first({member.site for member in plan.members}, plan.instances)
        tasks = logins.applied(plan.tasks, {site: state for site, state in states.items() if site not in restarts})
        try:
            emit: Sink = FirstTasks(progress)
            assessment = request_assessment(
                plan.members[-1].endpoint,
                plan.draft.with_restarts(restarts).with_tasks(tasks).text(),
                uploads.sink(emit) if uploads else emit,
                auth_token=settings.auth_token,
                patience_s=PATIENCE_S if plan.members[-1].cmd is None else 0.0,
            )
            return await while_metered(assessment, children)
        finally:
            progress.stopping()
            # Checked before the children are stopped, after which all of them have ended.
            crashes += [crash for child in children if child.name != METER and (crash := child.crash())]


def _settled(store: RunStore) -> list[dict[str, Any]]:
    """The entries of the tasks that an earlier start settled, without looking at their evidence."""
    settled = []
    for task in store.tasks():
        with suppress(TrajectoryError, OSError):
            attempt = Attempt.from_json(read_result(task.folder), source=str(task.folder))
            if attempt.verdict is not None and attempt.outcome in ("success", "failure"):
                settled.append(TaskSummary.of(attempt).entry)
    return settled


def _unusable(error: UnusableParticipant, plan: Plan, logs: Path) -> WabeError:
    """The error that ends a run with an unusable participant, with the end of its log. Withdraws its zero scores."""
    message = f"stopped, nothing was scored: {error.message}"
    if plan.store is not None:
        try:
            withdraw_unplayed(plan.store, error.message)
            message += f"\nWhen this is fixed, resume with: {resume_command(plan.options, plan.store)}"
        except ConfigError as caught:
            message += f"\nThe run cannot be resumed: {caught}"
    for agent in plan.scenario.participants:
        log = log_path(logs, agent.role)
        if agent.cmd is None:
            message += f"\n{agent.role} was not started by this command: see its own log"
        elif tail := log_tail(log):
            message += f"\n--- end of {log} ---\n{tail}"
    return WabeError(message)


def conclude(outcome: RunOutcome, plan: Plan, console: Console, progress: Progress) -> int:
    """Write and show the results. Returns the exit code."""
    options, store = plan.options, plan.store
    if outcome.state == "rejected":
        raise ConfigError(f"the judge refused the request: {outcome.message}")
    submission = _submission_of(outcome, plan)
    if submission is None:
        tell_problem(console, f"The judge gave no result ({outcome.state}): {outcome.message}", style="")
        if store is not None and store.has_begun:
            console.out(f"Resume with: {resume_command(options, store)}", highlight=False)
        return EXIT_LOST
    try:
        unwritten = _write_results(submission, plan)
        code = print_summary(console, submission, None if unwritten else store, progress.shown)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The result may come from any judge. It has already been written at this point.
        raise WabeError(f"the judge's result cannot be read: {type(error).__name__}: {one_line(str(error))}") from error
    if unwritten:
        code = EXIT_LOST
        tell_problem(console, unwritten)
    page = None
    if store is not None:
        page = _ending().report(store, options, console)
    if store is None:
        run_id = f" as {outcome.run_id}" if outcome.run_id else ""
        results_line = (
            f"Results: {options.output}" if options.output else "Results: not kept here (--output FILE keeps them)"
        )
        console.out(f"{results_line}. The judge at {plan.members[-1].endpoint} keeps the run{run_id}.", highlight=False)
    else:
        if code == EXIT_LOST and _is_worth_resuming(submission) and store.read_run():
            console.out(f"To retry lost tasks, resume with: {resume_command(options, store)}", highlight=False)
    fails, events = _followed(plan, submission, page, console)
    code = EXIT_LOST if fails else code
    for rate in _rates_under(options.fail_under, submission):
        code = EXIT_LOST
        tell_problem(console, f"success rate of all tasks {rate} % is below --fail-under {options.fail_under:g} %")
    if progress.display == "json":
        detail = submission["results"][0]["detail"]
        counts = counts_of(detail["tasks"])
        known: dict[str, Any] = {"run_id": store.run_id if store else outcome.run_id, "report": page and str(page)}
        print_json(console, "results", exit_code=code, **known, **events, **counts)
    return code


def _followed(
    plan: Plan, submission: dict[str, Any], page: Path | None, console: Console
) -> tuple[bool, dict[str, Any]]:
    """What plug-ins make of the results: whether the run fails, and keys of the last event."""
    conclusions = [each.concluded(submission, plan.scenario.path, page) for each in plan.followers]
    for each in conclusions:
        for line in each.lines:
            # In every display mode, if it fails the run.
            if each.fails:
                tell_problem(console, line)
            else:
                console.out(line, highlight=False)
    return any(each.fails for each in conclusions), {key: it for each in conclusions for key, it in each.event.items()}


def _submission_of(outcome: RunOutcome, plan: Plan) -> dict[str, Any] | None:
    submission = outcome.submission(plan.scenario)
    return submission if submission is None or plan.store is None else with_totals(submission, plan.store)


def _is_worth_resuming(submission: dict[str, Any]) -> bool:
    """Whether a lost task may get a verdict: one without checks and without a judge model never does."""
    tasks = [task for result in submission["results"] for task in read_entries(result["detail"]["tasks"])]
    unsettled = [task for task in tasks if task.outcome in ("unscored", "aborted") and task.excluded is None]
    return {task.reason_code for task in unsettled if not task.is_unconfirmed} != {WITHOUT_CHECKS}


def _write_results(submission: dict[str, Any], plan: Plan) -> str:
    """Write the requested files. Returns why the run's `results.json` is not written, if it is not."""
    options, unwritten = plan.options, ""
    if plan.store is not None and not _is_stored(submission, plan.store):
        # The judge's folders are elsewhere, such as in a container, or it could not write there.
        try:
            plan.store.write_submission(submission)
        except OSError as error:
            unwritten = f"Results are not written: {plan.store.folder / 'results.json'}: {error.strerror or error}"
    if options.output is not None:
        with write_errors(f"--output {options.output}", "choose a file you can write"):
            write_json(options.output, submission)
    return unwritten


def _is_stored(submission: dict[str, Any], store: RunStore) -> bool:
    """Whether the run's `results.json` has these results, not an earlier start's."""
    try:
        stored = read_json(store.folder / "results.json")["results"]
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return sha256_json(stored) == sha256_json(submission["results"])


def _rates_under(limit: float | None, submission: dict[str, Any]) -> list[float]:
    """The rates of all tasks below the limit, recomputed from the tasks rather than taken from the judge."""
    rates = [counts_of(result["detail"]["tasks"])["success_rate_of_all"] for result in submission["results"]]
    return [rate for rate in rates if limit is not None and rate < limit]


ENGINE = Engine(run=run)
