"""Logs in to sites with a `login`: once they are up, and again whenever they have been reset."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from judge.browser.form_login import Account, LoginFailed, log_in
from judge.network.interception import Interceptor
from judge.network.policy import NetworkPolicy
from judge.network.upstream_proxy import UpstreamProxy
from judge.records.access import StorageState, merged, read_storage_state
from judge.records.sites import place_of
from judge.records.tasks import Task
from judge.scenario.logins import form_login, own_part, with_addresses
from judge.scenario.models import Scenario, SiteEntry
from shared.errors import ConfigError
from shared.settings import Settings

_NONE: Mapping[str, str] = MappingProxyType({})
_NO_LISTS: Mapping[str, Sequence[str]] = MappingProxyType({})


class LogInArchives(Protocol):
    """Provides interceptors that answer or record log-ins."""

    def log_in_at(self, website: str, secrets: Sequence[str]) -> Interceptor | None:
        """The interceptor for the judge's log-in to a site; `None` for the network."""
        ...

    def clock_at(self, website: str) -> int | None:
        """Where the clock of the site's pages begins, in milliseconds since 1970; `None` for this machine's."""
        ...


class SiteLogins:
    """The log-ins of a scenario's sites. Raises `ConfigError` if a variable that one needs is not set.

    `archives` answer log-ins instead of the network, or record them.
    """

    def __init__(self, scenario: Scenario, settings: Settings, archives: LogInArchives | None = None) -> None:
        self._archives = archives
        self._scenario = with_addresses(scenario, settings.environ)
        self._settings = settings
        self._logins = {
            site.name: login
            for place, site in enumerate(scenario.sites)
            if (login := form_login(scenario, place, settings.environ)) is not None
        }
        if self._logins and not scenario.tasks:
            raise ConfigError(f"{scenario.path}: a site has a login, but no task", remedy="list the tasks as [[tasks]]")
        # A task's storage state may belong to another account.
        self._with_own = {task.task_id for task in scenario.tasks if task.storage_state is not None}

    def has(self, site: SiteEntry) -> bool:
        """Whether the site has a login."""
        return site.name in self._logins

    def concerns(self, task_id: str) -> bool:
        """Whether a task uses the log-ins of its sites, because it has no storage state of its own."""
        return task_id not in self._with_own

    async def state_of(self, site: SiteEntry, instances: Mapping[str, str] = _NONE) -> StorageState:
        """Log in to the site, which has a login. Raises `ConfigError`.

        `instances` are those, by endpoint, that the log-in is for.
        """
        login, config = self._logins[site.name], self._scenario.config
        account = Account(site.name, login.url, login.username, login.password)
        interceptor = self._archives.log_in_at(site.endpoint, [login.password]) if self._archives else None
        # An interceptor that records passes the log-in on to the site.
        passes_on = interceptor is not None and interceptor.reaches_out
        # As in its attempts.
        clock_ms = self._archives.clock_at(site.endpoint) if self._archives and config.settle != "real-time" else None
        upstream = UpstreamProxy.of(config) if passes_on or interceptor is None else None
        allowed = [login.url, site.endpoint, *config.sites.shared]
        places = set(map(place_of, allowed))
        routes = {own: address for own, address in instances.items() if own != address and place_of(own) in places}
        policy = None
        if passes_on or upstream or routes:
            policy = NetworkPolicy.for_websites(allowed).routed(routes, routes.values())
        try:
            state = await log_in(
                [account],
                self._settings,
                config=config,
                interceptor=interceptor,
                policy=policy,
                upstream=upstream,
                clock_ms=clock_ms,
            )
        except LoginFailed as error:
            message = f"{self._scenario.path}: key 'login': site {error.message}"
            raise ConfigError(message, remedy=error.remedy) from None
        return own_part(read_storage_state(state), site.endpoint, config.sites.shared)[0]

    async def first(
        self, started: Collection[str], instances: Mapping[str, Sequence[str]] = _NO_LISTS
    ) -> dict[str, StorageState]:
        """Log in to every site among those `started`, and every frozen one, that has a login; by endpoint.

        Of `instances`, by endpoint, the first ones are used. Raises `ConfigError`.
        """
        used = {endpoint: addresses[0] for endpoint, addresses in instances.items()}
        up = [site for site in self._scenario.sites if site.name in started or site.archive]
        sites = [site for site in up if self.has(site)]
        return {site.endpoint: await self.state_of(site, used) for site in sites}

    def applied(self, tasks: Sequence[Task], states: dict[str, StorageState]) -> tuple[Task, ...]:
        """The tasks with the storage states, by endpoint, of the sites whose log-ins they use."""
        return tuple(self._applied(task, states) for task in tasks)

    def _applied(self, task: Task, states: dict[str, StorageState]) -> Task:
        area = self._scenario.config.sites.of(task)
        states_in_area = [state for endpoint, state in states.items() if area.holds(endpoint)]
        if not states_in_area or not self.concerns(task.task_id):
            return task
        # The storage state of another site of the task, from a file.
        own_states = [task.storage_state] if isinstance(task.storage_state, StorageState) else []
        return task.model_copy(update={"storage_state": merged([*own_states, *states_in_area])})
