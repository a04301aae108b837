"""Brings a task's site back to its first state, so that an attempt can start again."""

from collections.abc import Mapping

import httpx

from judge.browser.guard import guarding
from judge.sites import NetworkPolicy, origin_of

_TIMEOUT_S = 30.0


async def reset_site(website: str, resets: Mapping[str, str], policy: NetworkPolicy) -> bool:
    """Whether the site is in its first state now. `resets` as in `RunConfig.site_resets`.

    The address comes with a request that a stranger may have sent, so it is asked for as a browser would: through a
    guard with the task's `policy`.
    """
    reset = next((how for site, how in resets.items() if origin_of(site) == origin_of(website)), None)
    if reset is None or reset == "static":
        return reset is not None
    try:
        async with (
            guarding(policy) as guard,
            httpx.AsyncClient(proxy=guard.url, trust_env=False, timeout=_TIMEOUT_S) as client,
        ):
            return (await client.post(reset)).is_success
    except httpx.HTTPError:
        return False
