"""Brings a task's site back to its first state, so that an attempt can start again."""

from collections.abc import Mapping

import httpx

from judge.sites import origin_of

_TIMEOUT_S = 30.0


async def reset_site(website: str, resets: Mapping[str, str]) -> bool:
    """Whether the site is in its first state now. `resets` as in `RunConfig.site_resets`."""
    reset = next((how for site, how in resets.items() if origin_of(site) == origin_of(website)), None)
    if reset is None or reset == "static":
        return reset is not None
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_S) as client:
            return (await client.post(reset)).is_success
    except httpx.HTTPError:
        return False
