"""Plays reference scripts with and without each attack, for `wabe tasks validate --attacks`.

An attack must not change how a check of the task is decided, and a walk that does not obey must not reach its goals.
"""

import asyncio
from collections.abc import Iterator, Sequence

from judge.config import RunConfig
from judge.evaluators.attacks import evaluate_attack
from judge.evaluators.checks import evaluate
from judge.records.tasks import Task
from judge.runner.rehearsal import played, walker_of
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
from judge.scenario.pairs import planned, proof_path
from judge.trajectory.record import Trajectory
from shared.files import write_errors, write_json
from shared.settings import Settings
from shared.text import counted, one_line


def try_attacks(scenario: Scenario, settings: Settings, *, write: bool) -> tuple[list[str], list[str]]:
    """Problems and notes, one line each; `write` keeps beside the scenario which attacks reference walks do not see.

    Raises `ConfigError`.
    """
    problems, notes, unseen = asyncio.run(_tried(scenario, settings))
    if write:
        path = proof_path(scenario.path, "unseen")
        with write_errors(path, "make its folder writable, or leave --write out"):
            write_json(path, {"unseen_attacks": sorted(unseen)})
        unseen_words = counted(len(unseen), "attack")
        notes = [*notes, f"{path.name} names {unseen_words} that the reference walks do not see"]
    return problems, notes


async def _tried(scenario: Scenario, settings: Settings) -> tuple[list[str], list[str], list[str]]:
    """Problems and notes, one line each, and the ids of tasks under attack whose reference walk sees no attack.

    Starts the scenario's sites, and plays the `reference` of each task that declares attacks. Raises `ConfigError`.
    """
    declared = [task for task in scenario.tasks if task.attacks]
    notes = [
        f"task {task.task_id} has no reference: its attacks are not tried" for task in declared if not task.reference
    ]
    selection = [task for task in declared if task.reference]
    if not selection:
        return [], [*notes, "no task with an attack has a reference: nothing was tried"], []
    # A scenario on frozen sites is tried on the live ones.
    tasks = planned(with_logins(scenario, selection, settings.environ), RunConfig(attacks="both"))
    walker = walker_of(selection, scenario.path.resolve().parent)
    async with played(scenario, tasks, settings, walker) as plays:
        trajectories = {task.task_id: plays.trajectory(task) for task in plays.tasks}
        # Checks read snapshots and traces, which are gone afterwards.
        return _compared(plays.tasks, trajectories, plays.config, notes)


def _compared(
    tasks: Sequence[Task], trajectories: dict[str, Trajectory], config: RunConfig, notes: list[str]
) -> tuple[list[str], list[str], list[str]]:
    problems: list[str] = []
    unseen: list[str] = []
    for task in tasks:
        trajectory = trajectories[task.task_id]
        if trajectory.is_aborted:
            problems.append(f"task {task.task_id} cannot be played: {trajectory.error}")
        elif task.attack is None:
            failed_checks = [each.check for each in evaluate(trajectory, config.sites) if not each.passed]
            notes += (
                [f"task {task.task_id}: its reference script does not pass {', '.join(failed_checks)}"]
                if failed_checks
                else []
            )
        elif not trajectories[task.attack.of].is_aborted:
            problems += _changed(task, trajectory, trajectories[task.attack.of], config)
            result = evaluate_attack(trajectory)
            if result is not None and not result.shown:
                unseen.append(task.task_id)
                notes.append(f"task {task.attack.of}: the attack {task.attack.attack.name} is not shown")
    return problems, notes, unseen


def _changed(task: Task, attacked: Trajectory, clean: Trajectory, config: RunConfig) -> Iterator[str]:
    if task.attack is None:
        return
    where = f"task {task.attack.of}, attack {task.attack.attack.name}"
    both = (evaluate(each, config.sites) for each in (clean, attacked))
    for before, after in zip(*both, strict=True):
        if before.passed != after.passed:
            says = {True: "passes", False: "fails", None: "is undecided"}
            change = f"{says[before.passed]} without it and {says[after.passed]} with it"
            yield one_line(f"{where}: {before.check} {change}: {after.description}", 500)
    result = evaluate_attack(attacked)
    for number, goal in enumerate(result.goals if result else (), 1):
        if goal.reached:
            yield one_line(f"{where}: the reference walk reaches goal {number}: {goal.found}", 500)
