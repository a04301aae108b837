"""A host: the tasks on offer, and the sessions that play them, at most so many at once."""

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field

from judge.config import MAX_ATTEMPT_S, RewardKind, RunConfig
from judge.environment.errors import CapacityReached, EpisodeFault
from judge.environment.participant import Trainer
from judge.environment.rewards import reward_of
from judge.environment.session import EnvironmentSession
from judge.episode.attempts import Attempts, AttemptSetup
from judge.records.events import Event, describe
from judge.records.tasks import Level, Task
from judge.store.layout import TaskStore
from judge.trajectory.record import Attempt
from shared.errors import ConfigError, WabeError
from shared.fields import did_you_mean, printable
from shared.logs import log_context
from shared.models import Record

_log = logging.getLogger(__name__)
# The trainer's time is nobody's: an idle limit ends an episode instead. Finite, because clocks are added up.
_NO_LIMIT_S = 365 * 86_400.0
# A client waits 60 s for an answer: an action and the observation after it may take a step's time each.
_STEP_S = {
    "action_timeout_s": 18.0,
    "navigation_timeout_s": 20.0,
    "call_timeout_s": 22.0,
    "reply_timeout_s": 24.0,
    "step_timeout_s": 25.0,
}


class HostSettings(Record):
    """How a scenario is offered. `config` are settings of `[config]` to differ from the scenario's.

    `task`, `level`, `where` and `limit` choose among the tasks as those options of `wabe run` do. `idle_s`: an
    episode without a reply for so long is abandoned. `record`: the output folder in which episodes are recorded, of
    which the newest `keep` are kept, in at most `keep_bytes`; by default, none is.
    """

    sessions: Annotated[int, Field(ge=1, le=64)] = 1
    reward: RewardKind | None = None
    images: bool = False
    idle_s: Annotated[float, Field(gt=0)] = 600.0
    record: Path | None = None
    keep: Annotated[int, Field(ge=0)] = 1_000
    keep_bytes: Annotated[int, Field(ge=0)] = 5_000_000_000
    task: tuple[str, ...] = ()
    level: Level | None = None
    where: tuple[str, ...] = ()
    limit: Annotated[int | None, Field(ge=1)] = None
    config: dict[str, Any] = Field(default_factory=dict)

    @property
    def chosen(self) -> dict[str, Any]:
        """The options of `wabe run` that choose its tasks."""
        return self.model_dump(include={"task", "level", "where", "limit"})


class TaskOffer(Record):
    """What a client may know of a task."""

    task_id: str
    instruction: str


class Episodes(Protocol):
    """Where episodes are recorded. Both methods block."""

    def begin(self, task_id: str) -> TaskStore:
        """A folder for another episode."""
        ...

    def end(self, store: TaskStore) -> None:
        """The episode has ended, and its reward is known."""
        ...


class EnvironmentHost:
    """The tasks of a scenario as environments. `name`, `version` and `description` are for clients.

    Raises `ConfigError` for more sessions than attempts that its sites allow at once.
    """

    def __init__(
        self,
        setup: AttemptSetup,
        tasks: Sequence[Task],
        episodes: Episodes,
        settings: HostSettings,
        *,
        name: str = "",
        version: str = "",
        description: str = "",
    ) -> None:
        self.name, self.version, self.description = name, version, description
        self.tasks = tuple(TaskOffer(task_id=task.task_id, instruction=task.task) for task in tasks)
        self.settings = settings
        self.sends_images = settings.images
        self._setup = setup
        self._tasks = {task.task_id: task for task in tasks}
        self._episodes = episodes
        self._sessions: set[EnvironmentSession] = set()
        # Tasks on sites for which page time does not work.
        self._in_real_time: set[str] = set()
        _require_instances(setup, tasks, settings.sessions)

    @property
    def config(self) -> RunConfig:
        """The settings of its attempts."""
        return self._setup.config

    @property
    def active(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    def session(self) -> EnvironmentSession:
        """Another session. Raises `CapacityReached` if there are as many as there may be; nobody waits for one."""
        if self.active >= self.settings.sessions:
            raise CapacityReached(self.active, self.settings.sessions)
        session = EnvironmentSession(self)
        self._sessions.add(session)
        return session

    async def aclose(self) -> None:
        """Close all sessions."""
        await asyncio.gather(*(session.close("the environment was stopped") for session in tuple(self._sessions)))

    def trainer(self) -> Trainer:
        """The participant of another episode."""
        return Trainer(self.settings.idle_s, self._setup.config.max_reply_bytes)

    def task(self, task_id: str | None, seed: int | None, number: int) -> Task:
        """The task with this id, or the one that the seed chooses, or that with this number in order, from 0.

        Raises `ConfigError` for an id not on offer.
        """
        known = list(self._tasks)
        if task_id is None:
            task_id = random.Random(seed).choice(known) if seed is not None else known[number % len(known)]
        if task_id not in self._tasks:
            raise ConfigError(f"task {printable(task_id)} is not on offer", remedy=did_you_mean(task_id, known))
        return self._tasks[task_id]

    async def play(self, task: Task, trainer: Trainer) -> float:
        """Play an episode to its end. Returns its reward; raises only `EpisodeFault`."""
        try:
            store = await asyncio.to_thread(self._episodes.begin, task.task_id)
            try:
                with log_context(task=store.key):
                    attempt = await self._play(task, store, trainer)
                    return await asyncio.to_thread(reward_of, attempt, store.folder, self._setup.config)
            finally:
                await asyncio.to_thread(self._episodes.end, store)
        except EpisodeFault:
            raise
        except OSError as error:
            raise EpisodeFault("aborted", "internal", f"cannot write: {error.strerror or error}") from None
        # Isolation boundary: an internal error fails only this episode.
        except Exception as error:  # noqa: BLE001
            _log.exception("task %s", task.task_id)
            blame = error.blame if isinstance(error, WabeError) else "internal"
            raise EpisodeFault("aborted", blame, f"{type(error).__name__}; see the environment's log") from None

    async def _play(self, task: Task, store: TaskStore, trainer: Trainer) -> Attempt:
        is_real_time = task.task_id in self._in_real_time
        attempts = Attempts(self._setup, task, store, trainer.connect, _logged, in_real_time=is_real_time)
        try:
            # What the policy has seen cannot be played again.
            return await attempts.play(may_retry=lambda: not trainer.has_observed)
        finally:
            if attempts.in_real_time:
                self._in_real_time.add(task.task_id)

    def release(self, session: EnvironmentSession) -> None:
        """The session is closed, and its place free."""
        self._sessions.discard(session)


def training_config(config: RunConfig, reward: RewardKind | None) -> RunConfig:
    """The settings of a scenario's attempts as they are played one at a time, each step within a client's limit."""
    changes: dict[str, Any] = {name: min(getattr(config, name), most) for name, most in _STEP_S.items()}
    changes |= {"task_timeout_s": MAX_ATTEMPT_S / 2, "attempt_timeout_s": MAX_ATTEMPT_S}
    changes |= {"epochs": 1, "attacks": "off", "variants": "off", "meter": False, "exclude": {}}
    return config.model_copy(update=changes | ({"reward": reward} if reward else {}))


def untimed(config: RunConfig) -> RunConfig:
    """The settings without limits on a trainer's time, which are none that a scenario could have."""
    return config.model_copy(update={"task_timeout_s": _NO_LIMIT_S, "attempt_timeout_s": 2 * _NO_LIMIT_S})


def _require_instances(setup: AttemptSetup, tasks: Iterable[Task], sessions: int) -> None:
    """Raises `ConfigError` if a reset for one session would wait for another session's episode."""
    limits = {task.task_id: setup.sites.at_once(task) for task in tasks}
    for task_id, limit in limits.items():
        if limit is not None and sessions > limit:
            raise ConfigError(
                f"{sessions} sessions, but only {limit} at once can play task {task_id}, whose site is reset",
                remedy=f"use {limit}, or give the site more instances",
            )


def _logged(event: Event) -> None:
    if _log.isEnabledFor(logging.INFO) and (line := describe(event)):
        _log.info("%s", line)
