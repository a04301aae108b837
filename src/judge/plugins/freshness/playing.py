"""Plays the reference script of each task, for `wabe tasks check`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from urllib.parse import urldefrag

from judge.config import RunConfig
from judge.evaluators.checks import evaluate
from judge.plugins.freshness.readings import AttemptOutcome, TaskReading, addresses_of, over_since
from judge.records.tasks import Task
from judge.runner.rehearsal import played, walker_of
from judge.scenario.days import undated
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
from judge.scenario.references import NO_REFERENCE
from judge.trajectory.network import Entry, read_har
from judge.trajectory.record import Trajectory
from shared.dates import written_dates
from shared.errors import TrajectoryError
from shared.files import read_errors, read_text
from shared.settings import Settings
from shared.text import one_line


async def check_tasks(scenario: Scenario, settings: Settings, today: date) -> list[AttemptOutcome]:
    """How each task's reference script ends today; in the scenario's order, without those excluded by hand.

    A task without a reference is named as unplayed, and one whose last day has passed as over. Raises `ConfigError`.
    """
    over = {
        task.task_id: AttemptOutcome(task_id=task.task_id, unplayed=why, is_over=True)
        for task in scenario.excluded
        if (why := over_since(task.valid_until, today))
    }
    bare = {
        task.task_id: AttemptOutcome(task_id=task.task_id, unplayed=NO_REFERENCE)
        for task in scenario.tasks
        if not task.reference
    }
    selection = [task for task in scenario.tasks if task.reference]
    replays = (
        {each.task_id: each for each in await _play_tasks(scenario, selection, settings, today)} if selection else {}
    )
    outcomes = over | bare | replays
    return [outcomes[task.task_id] for task in (*scenario.tasks, *scenario.excluded) if task.task_id in outcomes]


async def _play_tasks(
    scenario: Scenario, selection: Sequence[Task], settings: Settings, today: date
) -> list[AttemptOutcome]:
    tasks = with_logins(scenario, selection, settings.environ)
    folder = scenario.path.resolve().parent
    # The trace has the status of the first page; which first pages are missing is what is asked.
    async with played(
        scenario,
        tasks,
        settings,
        walker_of(selection, folder),
        today=today,
        requires_pages=False,
        changes={"record_network": True},
    ) as plays:
        return [
            _outcome(task, plays.trajectory(task), plays.config, today, _dates_of(task, folder, today))
            for task in plays.tasks
        ]


def _dates_of(task: Task, folder: Path, today: date) -> dict[str, str]:
    """The dates of the task and of its script, by how they are written out."""
    script = folder / (task.reference or "")
    with read_errors(script, "keep the script while it is played"):
        texts = [read_text(script), json.dumps(task.dated.template, ensure_ascii=False) if task.dated else ""]
    return {form: name for text in texts for form, name in written_dates(text, today).items()}


def _outcome(
    task: Task, trajectory: Trajectory, config: RunConfig, today: date, dates: Mapping[str, str]
) -> AttemptOutcome:
    attempt = trajectory.attempt
    error = one_line(attempt.error or "", 500)
    if attempt.stop_reason == "site_blocked":
        return AttemptOutcome(task_id=task.task_id, wall=error)
    pages = trajectory.observations
    if not pages or trajectory.is_aborted:
        return AttemptOutcome(task_id=task.task_id, error=error)
    first, checks = pages[0], evaluate(trajectory, config.sites)
    failed_checks = tuple(one_line(each.description or each.check, 500) for each in checks if not each.passed)
    reading = TaskReading(
        day=str(today),
        verdict="unscored" if not checks else "failure" if failed_checks else "success",
        lost=failed_checks,
        first_url=one_line(undated(first.url, dates), 2000),
        first_title=one_line(undated(first.title, dates), 500),
        addresses=addresses_of(undated(page.url, dates) for page in pages),
    )
    return AttemptOutcome(task_id=task.task_id, seen=reading, status=first_status(_entries(trajectory), first.url))


def _entries(trajectory: Trajectory) -> list[Entry]:
    """The recorded requests; none where the trace is missing or cannot be read, and then no status is known."""
    if trajectory.network is None:
        return []
    try:
        return read_har(trajectory.network).entries
    except TrajectoryError:
        return []


def first_status(entries: Iterable[Entry], url: str) -> int | None:
    """The HTTP status with which a first page at this address was answered; `None` if that was not recorded."""
    documents = [each for each in entries if each.step == 0 and each.resource_type == "document" and not each.is_frame]
    # A redacted address, or one that the page has changed, is none of those that were asked for.
    own = [each for each in documents if urldefrag(each.request.url)[0] == urldefrag(url)[0]] or documents
    return own[-1].response.status or None if own else None
