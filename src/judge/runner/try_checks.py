"""Plays attempts with a participant that does nothing, for `wabe tasks validate --try`.

A check that passes in such an attempt does not prove that the task was done.
"""

from judge.evaluators.checks import evaluate
from judge.evaluators.evidence import TrajectoryEvidence
from judge.evaluators.policies import evaluate_policies
from judge.records.tasks import expressions_read
from judge.runner.rehearsal import played
from judge.scenario.frozen import opened
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
from shared.settings import Settings


async def try_checks(scenario: Scenario, settings: Settings) -> tuple[list[str], list[str]]:
    """Problems and notes, one line each: tasks that pass without an action or cannot be tried, and checks that pass.

    Starts the scenario's sites, and opens each website that has checks or policies in the judge's browser.
    Raises `ConfigError` if a login needs a variable that is not set.
    """
    scenario, archives = opened(scenario, settings)
    tasks = with_logins(scenario, [task for task in scenario.tasks if task.checks or task.policies], settings.environ)
    problems: list[str] = []
    notes: list[str] = []
    async with played(scenario, tasks, settings, archives=archives) as plays:
        for task in plays.tasks:
            trajectory = plays.trajectory(task)
            if trajectory.is_aborted:
                problems.append(f"task {task.task_id} cannot be tried: {trajectory.attempt.cause}")
                continue
            for expression, probe_value in zip(expressions_read(task), trajectory.steps[0].probes, strict=False):
                # Other errors may go away once the page is used; this one stays.
                if probe_value.error and probe_value.error.startswith("SyntaxError"):
                    problems.append(
                        f"task {task.task_id}: the expression {expression!r} is not JavaScript: {probe_value.error}"
                    )
            violated = [each for each in evaluate_policies(trajectory) if each.violated]
            problems += [
                f"task {task.task_id}: the policy {each.name} is violated when nothing is done: {each.found}"
                for each in violated
            ]
            if TrajectoryEvidence(trajectory, plays.config.sites).looks[0].is_mostly_editor:
                notes.append(
                    f"task {task.task_id}: most of its first page is inside an editor, which is evidence only with"
                    " editable = true; requests that something in it starts are none"
                )
            assertions = evaluate(trajectory, plays.config.sites)
            passed = [each for each in assertions if each.passed]
            if assertions and len(passed) == len(assertions):
                problems.append(f"task {task.task_id}: all its checks already pass when nothing is done")
            for each in passed:
                notes.append(f"task {task.task_id}, {each.check} already passes: {each.description}")
    return problems, notes
