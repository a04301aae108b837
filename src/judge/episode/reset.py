"""Resets the sites of a task before each attempt, and reports which attempts share a site's state.

Attempts on a site that can be reset run one after the other, because a reset would disturb an attempt in progress.
Static sites never change. On any other site, an attempt may find changes that another one made.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx

from judge.config import RunConfig
from judge.network.guard import Guard, guarding
from judge.network.policy import NetworkPolicy
from judge.network.upstream_proxy import UpstreamProxy
from judge.records.access import StorageState, merged, read_storage_state
from judge.records.tasks import Task
from judge.sites import Origin, origin_of
from shared.errors import SiteFault, SiteUnreachable
from shared.text import one_line
from shared.tls import site_client

_TIMEOUT_S = 30.0
# The runner itself gives a site 60 s to start again, and a log-in after it as much.
_RESTART_S = 180.0
_STATIC = "static"
_SERVER_ERRORS = 500


# Compared by identity, because two attempts at a task have equal turns.
@dataclass(eq=False)
class SiteUse:
    """An attempt's use of its sites. `shares_state`: another attempt was played there earlier or in parallel.

    `task` is the one to be played: logged in to the sites as they are now.
    """

    task: Task
    shares_state: bool


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
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._playing: defaultdict[Origin, list[SiteUse]] = defaultdict(list)

    def can_reset(self, task: Task) -> bool:
        """Whether each attempt finds the task's sites in their initial state."""
        return not self._unreset(task)

    def at_once(self, task: Task) -> int | None:
        """How many attempts at the task can be played at once; `None` if its sites need no turns."""
        return 1 if any(how != _STATIC for how in self._declared(task).values()) else None

    @asynccontextmanager
    async def turn(self, task: Task, *, is_first: bool) -> AsyncIterator[SiteUse]:
        """Reset the sites that can be reset; the body then plays the attempt. `is_first`: the task's first attempt.

        Raises `SiteUnreachable` if a reset fails.
        """
        unreset = self._unreset(task)
        async with AsyncExitStack() as stack:
            logins = await self._reset(task, stack)
            turn = SiteUse(_logged_in(task, logins or ()), shares_state=bool(unreset) and not is_first)
            for origin in unreset:
                others = self._playing[origin]
                others.append(turn)
                stack.callback(others.remove, turn)
                if len(others) > 1:
                    for each in others:
                        each.shares_state = True
            yield turn

    async def _reset(self, task: Task, stack: AsyncExitStack) -> list[StorageState] | None:
        """Reset what can be reset, for as long as the stack lasts. Returns new log-ins; `None` if nothing can be reset.

        Raises `SiteUnreachable`.
        """
        logins = []
        resets = {site: how for site, how in self._declared(task).items() if how != _STATIC}
        # In the same order for all tasks, to avoid deadlocks.
        for site in sorted(resets):
            await stack.enter_async_context(self._locks[site])
            if site not in self._restarts:
                await reset_site(resets[site], self._policy_for(task), UpstreamProxy.of(self._config))
            elif login := await restart_site(resets[site], task.task_id):
                logins.append(login)
        return logins if resets else None

    async def works_again(self, task: Task) -> bool:
        """Whether a site that was unreachable answers after another reset; false for one that cannot be reset."""
        try:
            async with AsyncExitStack() as stack:
                is_reset = await self._reset(task, stack) is not None
                return is_reset and await _answers(task.website, self._policy_for(task), UpstreamProxy.of(self._config))
        except SiteFault:
            return False

    def _declared(self, task: Task) -> dict[str, str]:
        """How to reset each of the task's sites that can be reset."""
        area = self._config.sites.of(task)
        declared = (self._config.site_resets | self._restarts).items()
        return {site: how for site, how in declared if area.holds(site) and not self._is_frozen(site)}

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


def _client(guard: Guard, timeout_s: float = _TIMEOUT_S) -> httpx.AsyncClient:
    return site_client(proxy=guard.url, timeout=timeout_s)


def _logged_in(task: Task, logins: Sequence[StorageState]) -> Task:
    if not logins:
        return task
    given = [task.storage_state] if isinstance(task.storage_state, StorageState) else []
    return task.model_copy(update={"storage_state": merged([*given, *logins])})


async def restart_site(address: str, task_id: str) -> StorageState | None:
    """Have the runner reset a site for a task. Returns the storage state if it logged in there.

    Raises `SiteUnreachable`.
    """
    # The runner's own address, which no browser may reach, so it needs its own policy.
    policy = NetworkPolicy.for_websites([address])
    try:
        async with guarding(policy) as guard, _client(guard, _RESTART_S) as client:
            answer = await client.post(address, params={"task": task_id})
    except httpx.HTTPError as error:
        raise SiteUnreachable(f"{address[:200]}: the site could not be reset: {_reason(error)}") from None
    if not answer.is_success:
        # In the runner's words.
        why = one_line(answer.text, 500) or f"the runner answered {answer.status_code}"
        raise SiteUnreachable(f"the site could not be reset: {why}", remedy="see its log")
    return read_storage_state(answer.json()) if answer.content else None


def _reason(error: httpx.HTTPError) -> str:
    return (str(error) or type(error).__name__)[:200]


async def reset_site(address: str, policy: NetworkPolicy, upstream: UpstreamProxy | None = None) -> None:
    """Reset a site by a POST to `address`. Raises `SiteUnreachable`.

    The address comes from a request that may be untrusted, so the POST goes through a guard with the task's `policy`,
    like a browser's requests.
    """
    try:
        async with guarding(policy, upstream=upstream) as guard, _client(guard) as client:
            answer = await client.post(address)
    except httpx.HTTPError as error:
        why = _reason(error)
    else:
        if answer.is_success:
            return
        why = f"it answered {answer.status_code}"
    raise SiteUnreachable(f"{address[:200]}: the site could not be reset: {why}", remedy="check its reset_url")
