"""Resets the sites of a task before each attempt, and reports which attempts share a site's state.

Attempts on a site that can be reset run one after the other, because a reset would disturb an attempt in progress.
Static sites never change. On any other site, an attempt may find changes that another one made.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx

from judge.browser.guard import Guard, guarding
from judge.config import RunConfig
from judge.sites import NetworkPolicy, Origin, origin_of, own_site
from shared.errors import SiteFault, SiteUnreachable
from shared.models import Task

_TIMEOUT_S = 30.0
_STATIC = "static"
_SERVER_ERRORS = 500


@dataclass
class Turn:
    """An attempt's use of its sites. `shares_state`: another attempt was played there earlier or in parallel."""

    shares_state: bool


class SiteTurns:
    """Coordinates attempts on the sites of one assessment. `policy_for` returns a task's network policy."""

    def __init__(self, config: RunConfig, policy_for: Callable[[Task], NetworkPolicy]) -> None:
        self._config = config
        self._restarts = config.site_restarts or {}
        self._policy_for = policy_for
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._playing: defaultdict[Origin, list[Turn]] = defaultdict(list)

    def can_reset(self, task: Task) -> bool:
        """Whether each attempt finds the task's sites in their initial state."""
        return not self._unreset(task)

    @asynccontextmanager
    async def turn(self, task: Task, *, is_first: bool) -> AsyncIterator[Turn]:
        """Reset the sites that can be reset; the body then plays the attempt. `is_first`: the task's first attempt.

        Raises `SiteUnreachable` if a reset fails.
        """
        unreset = self._unreset(task)
        async with AsyncExitStack() as stack:
            await self._reset(task, stack)
            turn = Turn(shares_state=bool(unreset) and not is_first)
            for origin in unreset:
                others = self._playing[origin]
                others.append(turn)
                stack.callback(others.remove, turn)
                if len(others) > 1:
                    for each in others:
                        each.shares_state = True
            yield turn

    async def _reset(self, task: Task, stack: AsyncExitStack) -> bool:
        """Reset what can be reset, for as long as the stack lasts. Returns whether there was anything.

        Raises `SiteUnreachable`.
        """
        resets = {site: how for site, how in self._declared(task).items() if how != _STATIC}
        # In the same order for all tasks, to avoid deadlocks.
        for site in sorted(resets):
            await stack.enter_async_context(self._locks[site])
            policy = self._policy_for(task)
            if site in self._restarts:
                # The runner's own address, which no browser may reach, so it needs its own policy.
                policy = NetworkPolicy.for_websites([resets[site]])
            await reset_site(resets[site], policy)
        return bool(resets)

    async def works_again(self, task: Task) -> bool:
        """Whether a site that was unreachable answers after another reset; false for one that cannot be reset."""
        try:
            async with AsyncExitStack() as stack:
                return await self._reset(task, stack) and await _answers(task.website, self._policy_for(task))
        except SiteFault:
            return False

    def _declared(self, task: Task) -> dict[str, str]:
        """How to reset each of the task's sites that can be reset."""
        area = own_site(task, self._config.allowed_sites)
        return {site: how for site, how in (self._config.site_resets | self._restarts).items() if area.holds(site)}

    def _unreset(self, task: Task) -> frozenset[Origin]:
        """The origins of the task's start pages that cannot be reset."""
        begins = frozenset(map(origin_of, (task.website, *task.start_urls)))
        return frozenset(filter(None, begins - set(map(origin_of, self._declared(task)))))


async def _answers(address: str, policy: NetworkPolicy) -> bool:
    try:
        async with guarding(policy) as guard, _client(guard) as client, client.stream("GET", address) as answer:
            return answer.status_code < _SERVER_ERRORS
    except httpx.HTTPError:
        return False


def _client(guard: Guard) -> httpx.AsyncClient:
    return httpx.AsyncClient(proxy=guard.url, trust_env=False, timeout=_TIMEOUT_S)


async def reset_site(address: str, policy: NetworkPolicy) -> None:
    """Reset a site by a POST to `address`. Raises `SiteUnreachable`.

    The address comes from a request that may be untrusted, so the POST goes through a guard with the task's `policy`,
    like a browser's requests.
    """
    try:
        async with guarding(policy) as guard, _client(guard) as client:
            answer = await client.post(address)
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
    else:
        if answer.is_success:
            return
        why = f"it answered {answer.status_code}"
    raise SiteUnreachable(f"{address[:200]}: the site could not be reset: {why[:200]}", remedy="check its reset_url")
