"""A scenario's sites and players, running, with browsers: for plays outside of a run, which leave nothing behind."""

import os
import shlex
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import BrowserPool, browser_pool
from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.episode.attempts import AttemptSetup
from judge.judges.checked import ChecksJudge
from judge.network.archives import Archives
from judge.network.attempt import InterceptorFactory, require_networks
from judge.network.upstream_proxy import require_upstream
from judge.records.events import Event, Sink, TaskDone
from judge.records.tasks import Task
from judge.records.verdicts import OFFLINE
from judge.results.metering import LEDGER
from judge.runner.instances import placed, require_public_addresses
from judge.runner.launch import Child, Member, child_environ, launched, site_members
from judge.runner.playable import require_first_pages, require_folders
from judge.runner.ports import free_port
from judge.runner.restarts import restarts_of
from judge.runner.site_logins import LogInArchives, SiteLogins
from judge.scenario.days import day_of
from judge.scenario.logins import with_addresses
from judge.scenario.models import Scenario
from judge.scenario.toml import idle_sites
from judge.store.layout import RunStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.a2a.client import ParticipantClient
from shared.errors import TrajectoryError
from shared.models import Action
from shared.protocol import render_reply
from shared.replies import FINISH
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

    def trajectory(self, task: Task) -> Trajectory:
        """What was recorded of the attempt at a task. Raises `TrajectoryError`."""
        return load_trajectory(self.store.task(task.task_id).folder)


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


class _IdleAgent:
    """Finishes at once with an empty answer."""

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        return render_reply(Action(tool=FINISH, params={"answer": ""}))


@asynccontextmanager
async def played(
    scenario: Scenario,
    tasks: Sequence[Task],
    settings: Settings,
    player: Member | None = None,
    *,
    archives: Archives | None = None,
    recorder: InterceptorFactory | None = None,
    emit: Sink = lambda _: None,
    ended: Callable[[Trajectory], None] = lambda _: None,
    logins: LogInArchives | None = None,
    today: date | None = None,
    requires_pages: bool = True,
    slots: int = 0,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> AsyncIterator[Rehearsal]:
    """Play each task once, judged by its checks alone; what was recorded is there while the body runs.

    `tasks` are those with their log-ins. Without a `player`, an agent plays that does nothing. `archives` and
    `recorder` are those of `AttemptSetup`, the others those of `rehearsing`; `changes` are further settings. `ended` is
    called with each attempt as soon as it has been judged. Raises `ConfigError`.
    """
    scenario = with_addresses(scenario, settings.environ)
    own = {"attacks": "off", "judge_model": OFFLINE, "epochs": 1, "exclude": {}}
    config = scenario.config.model_copy(update={**own, **changes})
    await require_upstream(config)
    if recorder is None:
        await require_networks(tasks, config, archives)
    members = [*started_sites(scenario, tasks, settings), *([player] if player else [])]
    async with (
        rehearsing(
            scenario,
            settings,
            config,
            members,
            tasks,
            logins=logins or archives,
            today=today,
            requires_pages=requires_pages,
            slots=slots,
        ) as rehearsal,
        _client_of(player, config) if player else nullcontext(_IdleAgent()) as client,
    ):
        setup = AttemptSetup(
            rehearsal.config,
            rehearsal.pool.browser,
            ChecksJudge(config),
            archives=archives,
            recorder=recorder,
            ledger=rehearsal.store.folder / LEDGER,
        )
        by_id = {task.task_id: task for task in rehearsal.tasks}

        def told(event: Event) -> None:
            emit(event)
            if isinstance(event, TaskDone):
                with suppress(TrajectoryError):
                    ended(rehearsal.trajectory(by_id[event.task_id]))

        await Assessment(rehearsal.tasks, setup, lambda: nullcontext(client), rehearsal.store, told).run()
        yield rehearsal


def started_sites(scenario: Scenario, tasks: Collection[Task], settings: Settings) -> list[Member]:
    """The sites to start for these tasks. Raises `ConfigError` for an `env` that names an unset variable."""
    idle = idle_sites(scenario, tasks)
    return [site for site in site_members(scenario, settings) if site.name not in idle]


def _client_of(member: Member, config: RunConfig) -> ParticipantClient:
    """The connection to a participant, to be entered."""
    return ParticipantClient(
        member.endpoint,
        reply_timeout_s=config.reply_timeout_s,
        max_reply_bytes=config.max_reply_bytes,
        headers=member.headers,
    )


def walker_of(tasks: Collection[Task], folder: Path, close: Iterable[str] = (), *, reloads: bool = False) -> Member:
    """The participant that plays the tasks' reference scripts, which are in this folder, on a free port.

    `close` are the names of buttons that it presses wherever they are. `reloads`: it loads a page again that lacks
    something, once.
    """
    with ExitStack() as resources:
        port = free_port(resources)
    scripts = os.pathsep.join(str(folder / each) for each in sorted({task.reference or "" for task in tasks}))
    closing = "".join(f" --close {shlex.quote(name)}" for name in close) + (" --reload" if reloads else "")
    cmd = f"wabe participant replay --script {shlex.quote(scripts)}{closing} --host 127.0.0.1 --port {port}"
    return Member(name="the reference scripts", endpoint=f"http://127.0.0.1:{port}", cmd=cmd, is_agent=True)
