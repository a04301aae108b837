"""Opens a host: the scenario's sites are started, its tasks chosen, and browsers and judge made ready, as for a run."""

import itertools
import logging
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from judge.config import CONFIG, RunConfig
from judge.environment.episode_runs import recorded_episodes
from judge.environment.host import EnvironmentHost, Episodes, HostSettings, training_config, untimed
from judge.episode.attempts import AttemptSetup
from judge.episode.preflight import check_config
from judge.judges.base import Judge
from judge.judges.factory import open_judge
from judge.network.attempt import require_networks
from judge.network.upstream_proxy import require_upstream
from judge.records.checks import NO_CHECKS
from judge.records.tasks import Task
from judge.records.verdicts import OFFLINE
from judge.runner.options import RunOptions
from judge.runner.place import launch_of
from judge.runner.plan import PlayChoice, choose
from judge.runner.rehearsal import Rehearsal, rehearsing
from judge.runner.start import Start
from judge.scenario.toml import idle_sites, read_scenario_bytes
from judge.store.episodes import Retention
from judge.store.layout import TaskStore
from judge.store.sealing import is_sealed
from shared.errors import ConfigError
from shared.settings import Settings
from shared.text import counted
from shared.validation import validated

_log = logging.getLogger(__name__)
# Stands for the scenario's participants, which are not started and whose variables need not be set.
_NOBODY = "idle"


@asynccontextmanager
async def open_host(
    scenario: Path, host: HostSettings | None = None, settings: Settings | None = None, *, closed: Sequence[str] = ()
) -> AsyncIterator[EnvironmentHost]:
    """The host of a scenario file, whose sites run while the body does. Raises `ConfigError`.

    Tasks that cannot be scored or played are not offered; the log names them. `closed` are addresses of this process,
    which no page may reach. However the body ends, all sessions are closed and everything started is ended.
    """
    host = host or HostSettings()
    # The judge is this process, which its user has started.
    host_settings = (settings or Settings.from_environ()).model_copy(update={"trust_config": True, "agents_run": ()})
    if is_sealed(read_scenario_bytes(scenario)):
        raise ConfigError(
            f"{scenario}: a sealed task set is for evaluation only, and is not offered for training",
            remedy="train on another set",
        )
    options = RunOptions(scenario=scenario, player=_NOBODY, **host.chosen)
    start, choice = choose(options, host_settings)
    # A key may be set only in the judge's entry.
    host_settings = Settings.from_environ({**host_settings.environ, **start.members[-1].env})
    config = training_config(_with_overrides(choice.config, host), host.reward)
    check_config(config, host_settings)
    await require_upstream(config)
    tasks = await _playable(choice, config)
    for note in choice.notes:
        _log.warning("%s", note)
    idle = idle_sites(start.scenario, tasks)
    # Without the instances of a run's sites: there are as many as there are sessions.
    members = [member for member in start.members if not member.is_agent and member.name not in idle]
    playing = rehearsing(
        start.scenario, host_settings, config, members, tasks, logins=choice.archives, slots=host.sessions
    )
    async with playing as stands, aclosing(open_judge(stands.config, host_settings, cache_dir=None)) as judge:
        with _episodes(stands, host, judge, start) as episodes:
            setup = AttemptSetup(
                untimed(stands.config), stands.pool.browser, judge, closed=tuple(closed), archives=choice.archives
            )
            opened = EnvironmentHost(
                setup,
                stands.tasks,
                episodes,
                host,
                name=_name(start),
                version=version("wabe"),
                description=f"{counted(len(tasks), 'task')} for a web agent in a real browser, scored by the judge",
            )
            async with aclosing(opened):
                yield opened


@contextmanager
def _episodes(stands: Rehearsal, host: HostSettings, judge: Judge, start: Start) -> Iterator[Episodes]:
    """Where the episodes are recorded. Raises `ConfigError`."""
    if host.record is None:
        yield Unrecorded(stands.store.results)
        return
    # Nobody plays in the place of the trainer.
    launch = launch_of(start, start.members).model_copy(update={"participants": {}})
    retention = Retention(host.keep, host.keep_bytes)
    recorded = recorded_episodes(
        host.record, config=stands.config, tasks=stands.tasks, judge=judge, launch=launch, retention=retention
    )
    with recorded as episodes:
        yield episodes


class Unrecorded:
    """Episodes of which nothing is kept: each has a folder until it has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)

    def begin(self, task_id: str) -> TaskStore:
        """A new folder."""
        return TaskStore(self._folder / f"episode-{next(self._numbers)}" / task_id)

    def end(self, store: TaskStore) -> None:
        """Delete it."""
        shutil.rmtree(store.folder.parent, ignore_errors=True)


def _with_overrides(config: RunConfig, host: HostSettings) -> RunConfig:
    if not host.config:
        return config
    changed: dict[str, Any] = {**config.model_dump(exclude_unset=True), **host.config}
    return validated(CONFIG, changed, "config, as the environment sets it")


async def _playable(choice: PlayChoice, config: RunConfig) -> tuple[Task, ...]:
    """The tasks that can be played and scored. Raises `ConfigError` if there is none."""
    left_out: dict[str, str] = {}
    for task in choice.tasks:
        if why := await _refusal(task, choice, config):
            left_out[task.task_id] = why
            _log.warning("task %s is not on offer: %s", task.task_id, why)
    playable = tuple(task for task in choice.tasks if task.task_id not in left_out)
    if not playable:
        why = next((f"task {task_id}: {why}" for task_id, why in left_out.items()), "the scenario lists none")
        raise ConfigError(f"no task can be offered: {why}", remedy="give tasks checks, or set judge_model")
    return playable


async def _refusal(task: Task, choice: PlayChoice, config: RunConfig) -> str | None:
    """Why a task is not offered."""
    if (why := choice.config.exclude.get(task.task_id)) is not None:
        return why
    if not task.checks and config.judge_model == OFFLINE:
        return NO_CHECKS
    try:
        await require_networks([task], config, choice.archives)
    except ConfigError as error:
        return error.message
    return None


def _name(start: Start) -> str:
    """The name of the task set: the file's, or its folder's if it is called `scenario.toml`."""
    path = start.scenario.path.resolve()
    return path.parent.name if path.stem == "scenario" else path.stem
