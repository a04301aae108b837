"""Plays tasks for recording and for checking: with their reference scripts, or with a participant of the scenario."""

from collections.abc import Sequence
from dataclasses import dataclass

from judge.network.archives import Archives
from judge.network.attempt import InterceptorFactory
from judge.records.events import Sink
from judge.records.ledger import LedgerEntry
from judge.records.tasks import Task
from judge.runner.launch import Member, members_of
from judge.runner.rehearsal import Rehearsal, played, walker_of
from judge.runner.site_logins import LogInArchives
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
from judge.scenario.references import reference_problems
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


def script_player(tasks: Sequence[Task], scenario: Scenario) -> Member:
    """The participant that plays the tasks' reference scripts, on a free port."""
    return walker_of(tasks, scenario.path.resolve().parent)


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
        task_ids = {task.task_id for task in tasks}
        with_accounts = with_logins(self.scenario, self.scenario.tasks, self.settings.environ)
        selection = [task for task in with_accounts if task.task_id in task_ids]
        async with played(
            self.scenario,
            selection,
            self.settings,
            self.player,
            archives=self.archives,
            recorder=self.recorder,
            emit=self.emit,
            logins=self.logins,
            changes={"max_parallel": 1},
        ) as plays:
            return [_result_of(task, plays) for task in selection]


def _result_of(task: Task, plays: Rehearsal) -> AttemptResult:
    try:
        attempt = plays.trajectory(task).attempt
    except TrajectoryError as error:
        return AttemptResult(task, None, one_line(str(error), 300), (), is_aborted=True)
    ledger = attempt.frozen.ledger if attempt.frozen else ()
    passed = {"success": True, "failure": False}.get(attempt.outcome)
    verdict = attempt.verdict.reason if attempt.verdict else ""
    why = one_line(attempt.cause or verdict, 300)
    return AttemptResult(task, passed, why, ledger, attempt.is_aborted, tuple(attempt.action_history))
