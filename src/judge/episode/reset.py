"""Resets the sites of a task before each attempt, and reports which attempts share a site's state.

Attempts on a site that can be reset run one after the other, because a reset would disturb an attempt in progress; with
instances, as many at once as there are instances. Static sites never change. On any other site, an attempt may find
changes that another one made.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx

from judge.config import RunConfig
from judge.episode.instances import SiteInstances
from judge.network.guard import Guard, guarding
from judge.network.policy import NetworkPolicy
from judge.network.upstream_proxy import UpstreamProxy
from judge.records.access import StorageState, merged, read_storage_state
from judge.records.sites import Origin, origin_of, place_of
from judge.records.tasks import Task
from shared.errors import SiteFault, SiteUnreachable
from shared.patience import patience
from shared.text import one_line
from shared.tls import refused_reset, site_client, why_no_answer

_TIMEOUT_S = 30.0
# The runner itself gives a site 60 s to start again, and a log-in after it as much.
_RESTART_S = 180.0
_STATIC = "static"
_SERVER_ERRORS = 500


# Compared by identity, because two attempts at a task have equal turns.
@dataclass(eq=False)
class SiteUse:
    """An attempt's use of its sites. `shares_state`: another attempt was played there earlier or in parallel.

    `task` is the one to be played: logged in to the sites as they are now. `policy` leads to the attempt's
    `instances`: by website, the address of the declared instance that it has for itself.
    """

    task: Task
    policy: NetworkPolicy
    shares_state: bool
    instances: dict[str, str] = field(default_factory=dict)


class ResetFailed(SiteUnreachable):
    """A site could not be reset before an attempt, which would have had these instances."""

    instances: Mapping[str, str] = {}


class SiteTurns:
    """Coordinates attempts on the sites of one assessment. `policy_for` returns a task's network policy.

    `is_frozen` says of an address whether an archive answers for it: each attempt then finds it in its initial state.
    """

    def __init__(
        self,
        config: RunConfig,
        policy_for: Callable[[Task], NetworkPolicy],
        is_frozen: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._config = config
        self._is_frozen = is_frozen
        self._restarts = config.site_restarts or {}
        self._policy_for = policy_for
        self._instances = SiteInstances(config.site_instances)
        self._playing: defaultdict[Origin, list[SiteUse]] = defaultdict(list)

    def can_reset(self, task: Task) -> bool:
        """Whether each attempt finds the task's sites in their initial state."""
        return not self._unreset(task)

    def at_once(self, task: Task) -> int | None:
        """How many attempts at the task can be played at the same time; `None` for any number."""
        return min((self._instances.count(site) for site in self._lent_for(task)), default=None)

    @asynccontextmanager
    async def turn(self, task: Task, *, is_first: bool) -> AsyncIterator[SiteUse]:
        """Reset the sites that can be reset; the body then plays the attempt. `is_first`: the task's first attempt.

        Waits for a free instance of each site that an attempt needs for itself. Raises `ResetFailed`.
        """
        unreset, lent = self._unreset(task), self._lent_for(task)
        async with self._instances.lent(lent) as instances:
            policy = self._routed(task, instances)
            logins = await self._reset(task, policy, instances)
            turn = SiteUse(_logged_in(task, logins), policy, bool(unreset) and not is_first, instances)
            with ExitStack() as stack:
                for origin in unreset - set(map(origin_of, lent)):
                    others = self._playing[origin]
                    others.append(turn)
                    stack.callback(others.remove, turn)
                    if len(others) > 1:
                        for each in others:
                            each.shares_state = True
                yield turn

    def put_aside(self, instances: Mapping[str, str]) -> None:
        """Lend the instances of an attempt whose site could not be opened to no other one, unless they are reset."""
        for site, address in instances.items():
            if site not in self._config.site_resets and site not in self._restarts:
                self._instances.put_aside(site, address)

    def _routed(self, task: Task, instances: Mapping[str, str]) -> NetworkPolicy:
        return self._policy_for(task).routed(instances, self._instances.addresses)

    async def _reset(self, task: Task, policy: NetworkPolicy, instances: Mapping[str, str]) -> list[StorageState]:
        """Reset what can be reset. Returns new log-ins. Raises `ResetFailed`, with that instance put aside."""
        logins = []
        for site, how in sorted(self._resets(task).items()):
            try:
                if site not in self._restarts:
                    await reset_site(how, policy, UpstreamProxy.of(self._config))
                elif login := await restart_site(how, task.task_id, instances):
                    logins.append(login)
            except SiteUnreachable as fault:
                if site in instances:
                    self._instances.put_aside(site, instances[site])
                failed = ResetFailed(fault.message, remedy=fault.remedy)
                failed.instances = instances
                raise failed from fault
            if site in instances:
                self._instances.take_back(site, instances[site])
        return logins

    async def works_again(self, task: Task, instances: Mapping[str, str]) -> bool:
        """Whether an unreachable site answers after another reset; false for one that cannot be reset.

        `instances` belong to the attempt that could not reach it.
        """
        resets = self._resets(task)
        try:
            async with self._instances.lent(resets.keys() | instances.keys(), instances) as lent:
                policy = self._routed(task, lent)
                await self._reset(task, policy, lent)
                return bool(resets) and await _answers(task.website, policy, UpstreamProxy.of(self._config))
        except SiteFault:
            return False

    def _declared(self, task: Task) -> dict[str, str]:
        """How to reset each of the task's sites that can be reset."""
        area = self._config.sites.of(task)
        declared = (self._config.site_resets | self._restarts).items()
        return {site: how for site, how in declared if area.holds(site) and not self._is_frozen(site)}

    def _resets(self, task: Task) -> dict[str, str]:
        """How to reset each of them by a request."""
        return {site: how for site, how in self._declared(task).items() if how != _STATIC}

    def _lent_for(self, task: Task) -> frozenset[str]:
        """The sites that an attempt needs for itself: those to reset, and all with instances within its reach."""
        own, area = self._policy_for(task).own, self._config.sites.of(task)
        reached = {site for site in self._instances.sites if area.holds(site) or place_of(site) in own}
        return frozenset(self._resets(task)) | {site for site in reached if not self._is_frozen(site)}

    def _unreset(self, task: Task) -> frozenset[Origin]:
        """The origins of the task's start pages that cannot be reset."""
        begins = {origin_of(url) for url in (task.website, *task.start_urls) if not self._is_frozen(url)}
        return frozenset(filter(None, begins - set(map(origin_of, self._declared(task)))))


async def _answers(address: str, policy: NetworkPolicy, upstream: UpstreamProxy | None) -> bool:
    try:
        async with (
            guarding(policy, upstream=upstream) as guard,
            _client(guard) as client,
            client.stream("GET", address) as answer,
        ):
            return answer.status_code < _SERVER_ERRORS
    except httpx.HTTPError:
        return False


@asynccontextmanager
async def _client(guard: Guard, timeout_s: float = _TIMEOUT_S) -> AsyncIterator[httpx.AsyncClient]:
    try:
        async with patience(timeout_s), site_client(proxy=guard.url, timeout=None) as client:
            yield client
    except TimeoutError:
        raise httpx.ReadTimeout("") from None


def _logged_in(task: Task, logins: Sequence[StorageState]) -> Task:
    if not logins:
        return task
    states = [task.storage_state] if isinstance(task.storage_state, StorageState) else []
    return task.model_copy(update={"storage_state": merged([*states, *logins])})


async def restart_site(address: str, task_id: str, instances: Mapping[str, str]) -> StorageState | None:
    """Have the runner reset a site for a task. Returns the storage state if it logged in there.

    `instances` are the attempt's, by website; the runner resets this site's, and logs in by way of all.

    Raises `SiteUnreachable`.
    """
    # The runner's address, which no browser may reach, so it needs its own policy.
    policy = NetworkPolicy.for_websites([address])
    try:
        async with guarding(policy) as guard, _client(guard, _RESTART_S) as client:
            answer = await client.post(address, params={"task": task_id, "instances": json.dumps(instances)})
    except httpx.HTTPError as error:
        raise SiteUnreachable(f"{address[:200]}: the site could not be reset: {why_no_answer(error)}") from None
    if not answer.is_success:
        # In the runner's words.
        why = one_line(answer.text, 500) or f"the runner answered {answer.status_code}"
        raise SiteUnreachable(f"the site could not be reset: {why}", remedy="see its log")
    return read_storage_state(answer.json()) if answer.content else None


async def reset_site(address: str, policy: NetworkPolicy, upstream: UpstreamProxy | None = None) -> None:
    """Reset a site by a POST to `address`. Raises `SiteUnreachable`.

    The address comes from a request that may be untrusted, so the POST goes through a guard with the task's `policy`,
    like a browser's requests.
    """
    try:
        async with guarding(policy, upstream=upstream) as guard, _client(guard) as client:
            answer = await client.post(address)
    except httpx.HTTPError as error:
        raise SiteUnreachable(
            f"{address[:200]}: the site could not be reset: {why_no_answer(error)}", remedy="check its reset_url"
        ) from None
    if not answer.is_success:
        raise SiteUnreachable(f"{address[:200]}: the site could not be reset: {refused_reset(answer)}")
