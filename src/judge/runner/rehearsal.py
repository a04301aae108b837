"""A scenario's sites and players, running, with browsers: for plays outside of a run, which leave nothing behind."""

import os
import shlex
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import BrowserPool, browser_pool
from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.episode.attempts import AttemptSetup
from judge.episode.episode import Connect
from judge.judges.base import Judge
from judge.network.archives import Archives
from judge.network.attempt import InterceptorFactory
from judge.records.events import Sink
from judge.records.tasks import Task
from judge.results.metering import LEDGER
from judge.results.submission import TaskSummary
from judge.runner.instances import placed, require_public_addresses
from judge.runner.launch import Child, Member, child_environ, launched
from judge.runner.playable import require_first_pages, require_folders
from judge.runner.ports import free_port
from judge.runner.restarts import restarts_of
from judge.runner.site_logins import LogInArchives, SiteLogins
from judge.scenario.days import day_of
from judge.scenario.models import Scenario
from judge.store.layout import RunStore
from shared.a2a.client import ParticipantClient
from shared.settings import Settings


@dataclass(frozen=True)
class Rehearsal:
    """What runs: `children` are the started programs, and `store` is where attempts are recorded meanwhile.

    `tasks` are logged in to their sites, which `config` resets before each attempt, as in a run.
    """

    store: RunStore
    children: Sequence[Child]
    pool: BrowserPool
    tasks: tuple[Task, ...]
    config: RunConfig

    async def play(
        self,
        judge: Judge,
        connect: Connect,
        *,
        emit: Sink = lambda _: None,
        archives: Archives | None = None,
        recorder: InterceptorFactory | None = None,
    ) -> tuple[TaskSummary, ...]:
        """Play each task with the participant that `connect` leads to. The other parts are those of `AttemptSetup`."""
        setup = AttemptSetup(
            self.config,
            self.pool.browser,
            judge,
            archives=archives,
            recorder=recorder,
            ledger=self.store.folder / LEDGER,
        )
        return await Assessment(self.tasks, setup, connect, self.store, emit).run()


@asynccontextmanager
async def rehearsing(
    scenario: Scenario,
    settings: Settings,
    config: RunConfig,
    members: Sequence[Member],
    tasks: Sequence[Task],
    *,
    logins: LogInArchives | None = None,
    today: date | None = None,
    requires_pages: bool = True,
    slots: int = 0,
) -> AsyncIterator[Rehearsal]:
    """Run these sites and players while the body runs, log in to the sites, and reset them as a run does.

    `config` has the settings of the attempts and their browsers. `logins` answer log-ins instead of the network, or
    record them. `today` is the day of dates in scripts, by default the scenario's. `requires_pages`: the first page of
    each task must be there. For as many attempts at once as there are `slots`, sites have instances; without, each is
    its own only one. Raises `ConfigError`.
    """
    placed_members = placed(members, scenario.sites, {site.endpoint: slots for site in scenario.sites})
    members = placed_members.members
    folder = scenario.path.resolve().parent
    browser_settings = BrowserSettings.from_config(config, settings)
    require_folders(members, folder)
    accounts = SiteLogins(scenario, settings, logins)
    with TemporaryDirectory(prefix="wabe-") as output:
        store = RunStore(Path(output), "rehearsal")
        store.create()
        day = today or day_of(scenario.config)
        environ = child_environ(settings, output_dir=store.output_dir, participant_model=None, today=day)
        async with (
            launched(members, scenario_dir=folder, environ=environ, logs=store.logs) as children,
            browser_pool(browser_settings) as pool,
            restarts_of(scenario.sites, children, accounts, placed_members.addresses) as restarts,
        ):
            await require_public_addresses(members)
            if requires_pages:
                await require_first_pages(members, tasks, config)
            states = await accounts.first({member.site for member in members}, placed_members.addresses)
            # The others log in again after each reset.
            states_left = {site: state for site, state in states.items() if site not in restarts}
            resets = {"site_resets": scenario.resets, "site_restarts": restarts or None}
            changes = {**resets, "site_instances": placed_members.addresses}
            yield Rehearsal(
                store, children, pool, accounts.applied(tasks, states_left), config.model_copy(update=changes)
            )


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
    with ExitStack() as resources:
        port = free_port(resources)
    scripts = os.pathsep.join(str(folder / each) for each in sorted(set(references)))
    cmd = f"wabe participant replay --script {shlex.quote(scripts)} --host 127.0.0.1 --port {port}"
    return Member(name="the reference scripts", endpoint=f"http://127.0.0.1:{port}", cmd=cmd, is_agent=True)
