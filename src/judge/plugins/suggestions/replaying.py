"""Plays a written script at once, to see whether it does what the attempt did that it was written from."""

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from judge.config import RunConfig
from judge.evaluators.checks import evaluate
from judge.judges.factory import OFFLINE, open_judge
from judge.network.archives import open_archives
from judge.network.attempt import require_networks
from judge.network.upstream_proxy import require_upstream
from judge.plugins.suggestions.scripts import WrittenScript
from judge.records.assertions import Assertion
from judge.records.steps import StopReason
from judge.records.tasks import Task
from judge.runner.launch import site_members
from judge.runner.rehearsal import client_of, rehearsing, walker_of
from judge.scenario.frozen import on_archives, recorded_at
from judge.scenario.logins import with_addresses, with_logins
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError
from shared.files import write_atomic
from shared.models import Record
from shared.settings import Settings
from shared.text import one_line

_FILE = "replay.toml"
# Both are over the budget of an attempt that its participant did not end.
_SAME_ENDS: dict[StopReason, StopReason] = {"task_timeout": "max_steps"}


class PlayedScript(Record):
    """How a script was played. `differing` says what was otherwise than in the attempt that it was written from."""

    checks: tuple[Assertion, ...]
    stop_reason: StopReason
    differing: tuple[str, ...]

    @property
    def has_same_end(self) -> bool:
        """Whether every check was decided as in that attempt, and the attempt ended in the same way."""
        return not self.differing


async def play_script(
    script: WrittenScript, trajectory: Trajectory, scenario: Scenario, task: Task, settings: Settings
) -> PlayedScript:
    """Play the script at `task`, and compare each of its checks with those on the attempt. Raises `ConfigError`."""
    declared = on_archives(scenario)
    archives = open_archives(declared.config)
    if now := recorded_at(declared, archives):
        declared = on_archives(load_scenario(scenario.path, now=now))
    scenario = with_addresses(declared, settings.environ)
    tasks = with_logins(scenario, [task], settings.environ)
    config = _config(scenario.config, script)
    await require_upstream(config)
    await require_networks(tasks, config, archives)
    judge = open_judge(RunConfig(judge_model=OFFLINE, allowed_sites=config.allowed_sites), settings, cache_dir=None)
    with TemporaryDirectory(prefix="wabe-script-") as folder:
        write_atomic(Path(folder) / _FILE, script.toml().encode())
        member = walker_of({_FILE}, Path(folder))
        members = [*site_members(scenario, settings), member]
        async with (
            rehearsing(scenario, settings, config, members, tasks, logins=archives) as rehearsal,
            client_of(member, config) as walker,
        ):
            await rehearsal.play(judge, lambda: nullcontext(walker), archives=archives)
            replay = load_trajectory(rehearsal.store.task(task.task_id).folder)
            if replay.is_aborted:
                raise ConfigError(f"task {task.task_id} cannot be played: {one_line(replay.attempt.error or '', 500)}")
            return _compared(trajectory.as_task(task), replay, config)


def _config(config: RunConfig, script: WrittenScript) -> RunConfig:
    changes = {"attacks": "off", "judge_model": OFFLINE, "epochs": 1}
    if script.needs_points and config.actions == "refs":
        changes["actions"] = "both"
    return config.model_copy(update=changes)


def _compared(recorded: Trajectory, replay: Trajectory, config: RunConfig) -> PlayedScript:
    before, now = evaluate(recorded, config.sites), evaluate(replay, config.sites)
    differing = [
        f"{_word(was)} in the attempt and {_word(is_)} in the script: {one_line(is_.description or is_.check, 300)}"
        for was, is_ in zip(before, now, strict=True)
        if was.passed != is_.passed
    ]
    ends = [_SAME_ENDS.get(each.stop_reason, each.stop_reason) for each in (recorded, replay)]
    if ends[0] != ends[1]:
        differing.append(f"the attempt ended by {ends[0]}, and the script by {ends[1]}")
    return PlayedScript(checks=now, stop_reason=replay.stop_reason, differing=tuple(differing))


def _word(assertion: Assertion) -> str:
    return {True: "passed", False: "failed", None: "undecided"}[assertion.passed]
