"""Plays a written script at once, to see whether it does what the attempt did that it was written from."""

from pathlib import Path
from tempfile import TemporaryDirectory

from judge.config import RunConfig
from judge.evaluators.checks import evaluate
from judge.plugins.suggestions.scripts import WrittenScript
from judge.records.assertions import Assertion
from judge.records.steps import StopReason
from judge.records.tasks import Task
from judge.runner.rehearsal import played, walker_of
from judge.scenario.frozen import opened
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
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
    scenario, archives = opened(scenario, settings)
    config = scenario.config
    changes = {"actions": "both"} if script.needs_points and config.actions == "refs" else {}
    tasks = with_logins(scenario, [task], settings.environ)
    with TemporaryDirectory(prefix="wabe-script-") as folder:
        write_atomic(Path(folder) / _FILE, script.toml().encode())
        walker = walker_of([task.model_copy(update={"reference": _FILE})], Path(folder))
        async with played(scenario, tasks, settings, walker, archives=archives, changes=changes) as plays:
            replay = plays.trajectory(task)
            if replay.is_aborted:
                raise ConfigError(f"task {task.task_id} cannot be played: {one_line(replay.attempt.error or '', 500)}")
            return _compared(trajectory.as_task(task), replay, plays.config)


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
