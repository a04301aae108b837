"""What a run starts: a scenario as options change it, its processes, and options that do not go with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from judge.runner.agents import BundledAgent, agents_of, with_agents
from judge.runner.launch import Member, members_of
from judge.runner.options import RunOptions
from judge.runner.ports import on_free_ports
from judge.scenario.frozen import on_archives
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario, require_sites
from judge.store.sealing import key_in
from shared.errors import ConfigError
from shared.settings import Settings


@dataclass(frozen=True)
class Start:
    """What is to be started. `declared` is the scenario with the ports of the file, `scenario` this process's.

    `is_ours`: the judge trusts this runner and writes to the same folder.
    """

    options: RunOptions
    settings: Settings
    declared: Scenario
    scenario: Scenario
    members: tuple[Member, ...]
    is_ours: bool

    @property
    def has_moved(self) -> bool:
        """Whether agents listen on other ports than the file's."""
        return self.scenario is not self.declared

    @property
    def is_recorded_here(self) -> bool:
        """Whether the judge is ours and receives a request from here."""
        return self.is_ours and not self.options.serve_only


def start_of(options: RunOptions, settings: Settings, today: date | None = None, now: datetime | None = None) -> Start:
    """The scenario and its processes. Raises `ConfigError` for options that do not go with them."""
    key = key_in(settings.seal_key)
    loaded = on_running_agents(load_scenario(options.scenario, today=today, now=now, key=key), settings.agents_run)
    require_sites(loaded, settings.scenarios_folder)
    declared = on_archives(_with_agents(loaded, options, settings), options.archive)
    shares_ports = not (options.agent or options.player or options.own_run_id or options.shards)
    scenario = declared if shares_ports else on_free_ports(declared)
    # With WABE_TRUST_CONFIG, as in containers, the judge trusts this runner and writes to the same folder.
    is_ours = scenario.green_agent.cmd is not None or settings.trust_config
    start = Start(options, settings, declared, scenario, members_of(scenario, settings), is_ours)
    _require_own_judge(start)
    _require_sealable(start)
    if options.shards is not None:
        require_shardable(declared, options, is_recorded_here=start.is_recorded_here)
    return start


def on_running_agents(scenario: Scenario, endpoints: Sequence[str]) -> Scenario:
    """The scenario for agents that run already: the judge at the first endpoint, the participants at the others.

    Nothing is started for them. Raises `ConfigError` for another number of endpoints.
    """
    if not endpoints:
        return scenario
    if len(endpoints) != 1 + len(scenario.participants):
        raise ConfigError(
            f"WABE_AGENTS_RUN: {len(endpoints)} addresses for {1 + len(scenario.participants)} agents",
            remedy="give the judge's address, then one for each of the scenario's participants, with blanks between",
        )
    running: list[dict[str, Any]] = [{"endpoint": endpoint, "cmd": None, "env": {}} for endpoint in endpoints]
    judge, *participants = running
    changed = zip(scenario.participants, participants, strict=True)
    return scenario.model_copy(
        update={
            "green_agent": scenario.green_agent.model_copy(update=judge),
            "participants": tuple(agent.model_copy(update=own) for agent, own in changed),
        }
    )


def _with_agents(scenario: Scenario, options: RunOptions, settings: Settings) -> Scenario:
    """The scenario with the agents that the options name. Raises `ConfigError`."""
    roles = [each.role for each in scenario.participants]
    trivial = options.player and BundledAgent(options.player)
    agents = dict.fromkeys(roles, trivial) if trivial else agents_of(options.agent, roles)
    return with_agents(scenario, agents, settings.container_engine, sandbox=options.sandbox)


def _require_own_judge(start: Start) -> None:
    """Raises `ConfigError` for options that need a judge started here and receives a request."""
    options = start.options
    if start.is_recorded_here:
        return
    if options.resume is not None:
        raise ConfigError(
            f"{options.scenario}: --resume needs a judge that is started here and receives a request",
            remedy="leave --serve-only out"
            if options.serve_only
            else "give [green_agent] a cmd; a judge that is already running keeps its runs where it is",
        )
    for problem in (
        "--trivial-agents needs" if options.trivial_agents else "",
        "--record-trace needs" if options.record_trace else "",
        "frozen sites need" if start.declared.config.archives else "",
    ):
        if problem:
            raise ConfigError(
                f"{options.scenario}: {problem} a judge that is started here and receives a request",
                remedy="give [green_agent] a cmd, and leave --serve-only out",
            )


def _require_sealable(start: Start) -> None:
    """Raises `ConfigError` for options with which a sealed run's files would leave this machine."""
    if start.scenario.sealed is None:
        return
    for is_given, option, why in (
        (start.options.record_trace, "--record-trace", "traces contain pages of the tasks"),
        (start.settings.object_store, "WABE_STORE", "it would receive the tasks"),
    ):
        if is_given:
            raise ConfigError(
                f"{start.options.scenario}: {option} does not go with a sealed task set: {why}", remedy="leave it out"
            )


def require_shardable(scenario: Scenario, options: RunOptions, *, is_recorded_here: bool) -> None:
    """Raises `ConfigError` if the run cannot be sharded."""
    for is_problem, problem, remedy in (
        (options.trivial_agents, "does not go with --trivial-agents", "leave one of them out"),
        (
            not is_recorded_here,
            "needs a judge that is started here and receives a request",
            "give [green_agent] a cmd, and leave --serve-only out",
        ),
        (not scenario.tasks, "needs the tasks in the scenario", "list them as [[tasks]]"),
        (
            {"shard_index", "num_shards"} & scenario.config.model_fields_set,
            "divides the tasks itself",
            "remove shard_index and num_shards from [config]",
        ),
        (options.resume == "latest", "needs --resume to name the run", "give its id, or leave --resume out"),
    ):
        if is_problem:
            raise ConfigError(f"{options.scenario}: --shards {problem}", remedy=remedy)
