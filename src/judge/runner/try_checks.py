"""Plays attempts with a participant that does nothing, for `wabe tasks validate --try`.

A check that passes in such an attempt does not prove that the task was done.
"""

from contextlib import nullcontext

from judge.config import RunConfig
from judge.evaluators.checks import evaluate
from judge.evaluators.evidence import TrajectoryEvidence
from judge.evaluators.policies import evaluate_policies
from judge.judges.factory import OFFLINE, open_judge
from judge.network.archives import open_archives
from judge.network.attempt import require_networks
from judge.records.tasks import expressions_read
from judge.runner.launch import site_members
from judge.runner.rehearsal import rehearsing
from judge.scenario.frozen import on_archives, recorded_at
from judge.scenario.logins import with_addresses, with_logins
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from judge.store.sealing import key_in
from judge.trajectory.files import load_trajectory
from shared.models import Action
from shared.protocol import render_reply
from shared.replies import FINISH
from shared.settings import Settings


class _IdleAgent:
    """Finishes at once with an empty answer."""

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        return render_reply(Action(tool=FINISH, params={"answer": ""}))


async def try_checks(scenario: Scenario, settings: Settings) -> tuple[list[str], list[str]]:
    """Problems and notes, one line each: tasks that pass without an action or cannot be tried, and checks that pass.

    Starts the scenario's sites, and opens each website that has checks or policies in the judge's own browser.
    Raises `ConfigError` if a login needs a variable that is not set.
    """
    declared = on_archives(scenario)
    archives = open_archives(declared.config)
    if now := recorded_at(declared, archives):
        declared = on_archives(load_scenario(scenario.path, now=now, key=key_in(settings.seal_key)))
    scenario = with_addresses(declared, settings.environ)
    config = scenario.config
    tasks = with_logins(scenario, [task for task in scenario.tasks if task.checks or task.policies], settings.environ)
    judge = open_judge(RunConfig(judge_model=OFFLINE, allowed_sites=config.allowed_sites), settings, cache_dir=None)
    sites = site_members(scenario, settings)
    await require_networks(tasks, config, archives)
    problems: list[str] = []
    notes: list[str] = []
    async with rehearsing(scenario, settings, config, sites, tasks, logins=archives) as rehearsal:
        results = await rehearsal.play(judge, lambda: nullcontext(_IdleAgent()), archives=archives)
        for task, result in zip(rehearsal.tasks, results, strict=True):
            if result.outcome == "aborted":
                problems.append(f"task {task.task_id} cannot be tried: {result.entry['error']}")
                continue
            trajectory = load_trajectory(rehearsal.store.task(task.task_id).folder)
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
            if TrajectoryEvidence(trajectory, config.sites).looks[0].is_mostly_editor:
                notes.append(
                    f"task {task.task_id}: most of its first page is inside an editor, which is evidence only with"
                    " editable = true; requests that something in it starts are none"
                )
            assertions = evaluate(trajectory, config.sites)
            passed = [each for each in assertions if each.passed]
            if assertions and len(passed) == len(assertions):
                problems.append(f"task {task.task_id}: all its checks already pass when nothing is done")
            for each in passed:
                notes.append(f"task {task.task_id}, {each.check} already passes: {each.description}")
    return problems, notes
