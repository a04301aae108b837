"""Requests of the runner itself to the instances of sites, on the same way as a browser's."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from judge.network.guard import guarding
from judge.network.policy import NetworkPolicy
from shared.tls import site_client


@asynccontextmanager
async def routed_client(routes: Mapping[str, str], **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client for sites of which these are served by instances: by website, an instance's address.

    Without routes it connects to the sites themselves. `options` go to `httpx.AsyncClient`.
    """
    if not routes:
        # No proxy, because the site is on this machine.
        async with site_client(**options) as client:
            yield client
        return
    policy = NetworkPolicy.for_websites(routes).routed(routes, routes.values())
    async with guarding(policy) as guard, site_client(proxy=guard.url, **options) as client:
        yield client
