"""Plays tasks for recording and for checking: with their reference scripts, or with a participant of the scenario."""

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from judge.judges.factory import OFFLINE, open_judge
from judge.network.archives import Archives
from judge.network.attempt import InterceptorFactory
from judge.records.events import Sink
from judge.records.ledger import LedgerEntry
from judge.records.tasks import Task
from judge.runner.launch import Member, members_of, site_members
from judge.runner.rehearsal import client_of, rehearsing, walker_of
from judge.runner.site_logins import LogInArchives
from judge.scenario.logins import with_addresses, with_logins
from judge.scenario.models import Scenario
from judge.scenario.references import reference_problems
from judge.scenario.toml import idle_sites
from judge.store.layout import RunStore
from judge.trajectory.files import load_trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.settings import Settings
from shared.text import one_line


@dataclass(frozen=True)
class AttemptResult:
    """How an attempt ended. `passed` is `None` if undecided; `ledger` lists the requests to frozen sites.

    `actions` are its action lines.
    """

    task: Task
    passed: bool | None
    why: str
    ledger: tuple[LedgerEntry, ...]
    is_aborted: bool = False
    actions: tuple[str, ...] = ()


def reference_tasks(tasks: Sequence[Task], scenario: Scenario) -> tuple[Task, ...]:
    """The tasks that have a reference script. Raises `ConfigError` for one whose script cannot be used."""
    selection = tuple(task for task in tasks if task.reference is not None)
    folder = scenario.path.resolve().parent
    for task, problem in zip(selection, reference_problems(selection, folder), strict=True):
        if problem:
            raise ConfigError(f"{scenario.path}: task {task.task_id}: {problem}", remedy="correct the script")
    return selection


def started_sites(scenario: Scenario, tasks: Collection[Task], settings: Settings) -> list[Member]:
    """The sites to start for these tasks. Raises `ConfigError` for an `env` that names an unset variable."""
    idle = idle_sites(scenario, tasks)
    return [site for site in site_members(scenario, settings) if site.name not in idle]


def script_player(tasks: Sequence[Task], scenario: Scenario) -> Member:
    """The participant that plays the tasks' reference scripts, on a free port."""
    return walker_of({task.reference for task in tasks if task.reference}, scenario.path.resolve().parent)


def participant_of(scenario: Scenario, role: str, settings: Settings) -> Member:
    """A participant of the scenario. Raises `ConfigError` for an unknown role."""
    roles = [participant.role for participant in scenario.participants]
    if role not in roles:
        raise ConfigError(f"--participant {role!r} is not in {scenario.path}", remedy=f"one of: {', '.join(roles)}")
    return next(member for member in members_of(scenario, settings) if member.name == role)


@dataclass
class Playing:
    """Plays tasks on archives, or through a recorder."""

    scenario: Scenario
    settings: Settings
    player: Member
    emit: Sink
    archives: Archives | None = None
    logins: LogInArchives | None = None
    recorder: InterceptorFactory | None = None

    async def play(self, tasks: Sequence[Task]) -> list[AttemptResult]:
        """Start the sites and the player, and play each task once, one after the other."""
        settings, scenario = self.settings, self.scenario
        sites = started_sites(scenario, tasks, settings)
        task_ids = {task.task_id for task in tasks}
        selection = [
            task for task in with_logins(scenario, scenario.tasks, settings.environ) if task.task_id in task_ids
        ]
        if self.archives is not None:
            self.archives.check(selection)
        # One attempt at each task, judged by its checks alone.
        changes = {"judge_model": OFFLINE, "max_parallel": 1, "epochs": 1, "exclude": {}}
        config = with_addresses(scenario, settings.environ).config.model_copy(update=changes)
        members = [*sites, self.player]
        async with (
            rehearsing(
                scenario, settings, config, members, selection, logins=self.logins or self.archives
            ) as rehearsal,
            client_of(self.player, scenario.config) as client,
        ):
            await rehearsal.play(
                open_judge(config, settings, cache_dir=None),
                lambda: nullcontext(client),
                emit=self.emit,
                archives=self.archives,
                recorder=self.recorder,
            )
            return [_result_of(task, rehearsal.store) for task in selection]


def _result_of(task: Task, store: RunStore) -> AttemptResult:
    try:
        attempt = load_trajectory(store.task(task.task_id).folder).attempt
    except TrajectoryError as error:
        return AttemptResult(task, None, one_line(str(error), 300), (), is_aborted=True)
    ledger = attempt.frozen.ledger if attempt.frozen else ()
    passed = {"success": True, "failure": False}.get(attempt.outcome)
    verdict = attempt.verdict.reason if attempt.verdict else ""
    why = one_line(attempt.cause or verdict, 300)
    return AttemptResult(task, passed, why, ledger, attempt.is_aborted, tuple(attempt.action_history))
