"""A scenario's sites and players, running, with browsers: for plays outside of a run, which leave nothing behind."""

import os
import shlex
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from judge.browser.archives import Archives, Intercepted
from judge.browser.chromium import BrowserSettings
from judge.browser.pool import BrowserPool, browser_pool
from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.episode.episode import Connect
from judge.events import Sink
from judge.judges.base import Judge
from judge.records.tasks import Task
from judge.results.submission import TaskSummary
from judge.runner.launch import Child, Member, child_environ, launched
from judge.runner.playable import require_folders
from judge.runner.shards import free_port
from judge.scenario.days import day_of
from judge.scenario.models import Scenario
from judge.store.layout import RunStore
from shared.a2a.client import ParticipantClient
from shared.settings import Settings


@dataclass(frozen=True)
class Rehearsal:
    """What runs: `children` are the started programs, and `store` is where attempts are recorded meanwhile."""

    store: RunStore
    children: Sequence[Child]
    pool: BrowserPool

    async def play(
        self,
        tasks: tuple[Task, ...],
        config: RunConfig,
        judge: Judge,
        connect: Connect,
        *,
        emit: Sink = lambda _: None,
        archives: Archives | None = None,
        intercept: Callable[[Task], Intercepted | None] | None = None,
    ) -> tuple[TaskSummary, ...]:
        """Play each task with the participant that `connect` leads to. The other parts are those of `Assessment`."""
        assessment = Assessment(
            tasks,
            config,
            browser=self.pool.browser,
            connect=connect,
            judge=judge,
            store=self.store,
            emit=emit,
            archives=archives,
            intercept=intercept,
        )
        return await assessment.run()


@asynccontextmanager
async def rehearsing(
    scenario: Scenario,
    settings: Settings,
    config: RunConfig,
    members: Sequence[Member],
    *,
    today: date | None = None,
) -> AsyncIterator[Rehearsal]:
    """Run these sites and players while the body runs; `config` has the settings of the browsers.

    `today` is the day of dates in scripts, by default the scenario's. Raises `ConfigError`.
    """
    folder = scenario.path.resolve().parent
    browser_settings = BrowserSettings.from_config(config, settings)
    require_folders(members, folder)
    with TemporaryDirectory(prefix="wabe-") as output:
        store = RunStore(Path(output), "rehearsal")
        store.create()
        day = today or day_of(scenario.config)
        environ = child_environ(settings, output_dir=store.output_dir, participant_model=None, today=day)
        async with (
            launched(members, scenario_dir=folder, environ=environ, logs=store.logs) as children,
            browser_pool(browser_settings) as pool,
        ):
            yield Rehearsal(store, children, pool)


def client_of(member: Member, config: RunConfig) -> ParticipantClient:
    """The connection to a participant, to be entered."""
    return ParticipantClient(
        member.endpoint,
        reply_timeout_s=config.reply_timeout_s,
        max_reply_bytes=config.max_reply_bytes,
        headers=member.headers,
    )


def walker_of(references: Collection[str], folder: Path) -> Member:
    """The participant that plays these reference scripts, on a free port."""
    with ExitStack() as held:
        port = free_port(held)
    scripts = os.pathsep.join(str(folder / each) for each in sorted(set(references)))
    cmd = f"wabe participant replay --script {shlex.quote(scripts)} --host 127.0.0.1 --port {port}"
    return Member(name="the reference scripts", endpoint=f"http://127.0.0.1:{port}", cmd=cmd, is_agent=True)
