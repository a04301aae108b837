"""Brings the sites of a task back to their first state before each attempt, and tells which attempts share one.

Attempts on a site that is reset follow each other: a reset would change it under an attempt that is being played.
Sites that are static are never changed. On any other site, an attempt may find what another one left.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx

from judge.browser.guard import guarding
from judge.config import RunConfig
from judge.sites import NetworkPolicy, Origin, origin_of, own_site
from shared.errors import SiteFault
from shared.models import Task

_TIMEOUT_S = 30.0
_STATIC = "static"


@dataclass
class Turn:
    """An attempt on its sites. `shares_state`: another one was played there since, or is being played at once."""

    shares_state: bool


class SiteTurns:
    """The sites of one assessment, and who plays on them. `policy_for` is what a task's browser may reach."""

    def __init__(self, config: RunConfig, policy_for: Callable[[Task], NetworkPolicy]) -> None:
        self._config = config
        self._restarts = config.site_restarts or {}
        self._policy_for = policy_for
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._playing: defaultdict[Origin, list[Turn]] = defaultdict(list)

    def can_reset(self, task: Task) -> bool:
        """Whether each attempt finds the task's sites in their first state."""
        return not self._unreset(task)

    @asynccontextmanager
    async def turn(self, task: Task, *, is_first: bool) -> AsyncIterator[Turn]:
        """Play an attempt in the body, on sites in their first state where they can be reset. `is_first`: of the task.

        Raises `SiteFault` when a reset fails.
        """
        resets = self._declared(task)
        unreset = self._unreset(task)
        async with AsyncExitStack() as stack:
            # In one order for all tasks, so that no two wait for each other.
            for site in sorted(site for site, how in resets.items() if how != _STATIC):
                await stack.enter_async_context(self._locks[site])
                policy = self._policy_for(task)
                if site in self._restarts:
                    # The runner's own address: no browser may reach it.
                    policy = NetworkPolicy.for_websites([resets[site]])
                await reset_site(resets[site], policy)
            turn = Turn(shares_state=bool(unreset) and not is_first)
            for origin in unreset:
                others = self._playing[origin]
                others.append(turn)
                stack.callback(others.remove, turn)
                if len(others) > 1:
                    for each in others:
                        each.shares_state = True
            yield turn

    def _declared(self, task: Task) -> dict[str, str]:
        """The sites of the task that can be reset, and how."""
        area = own_site(task, self._config.allowed_sites)
        return {site: how for site, how in (self._config.site_resets | self._restarts).items() if area.holds(site)}

    def _unreset(self, task: Task) -> frozenset[Origin]:
        """The origins where the task begins that cannot be reset."""
        begins = frozenset(map(origin_of, (task.website, *task.start_urls)))
        return frozenset(filter(None, begins - set(map(origin_of, self._declared(task)))))


async def reset_site(address: str, policy: NetworkPolicy) -> None:
    """Bring a site back to its first state by a POST to `address`. Raises `SiteFault`.

    The address comes with a request that a stranger may have sent, so it is asked for as a browser would: through a
    guard with the task's `policy`.
    """
    try:
        async with (
            guarding(policy) as guard,
            httpx.AsyncClient(proxy=guard.url, trust_env=False, timeout=_TIMEOUT_S) as client,
        ):
            answer = await client.post(address)
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
    else:
        if answer.is_success:
            return
        why = f"it answered {answer.status_code}"
    raise SiteFault(f"{address[:200]}: the site could not be reset: {why[:200]}", remedy="check its reset_url")
