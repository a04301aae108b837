"""Asks websites whether they are there. Any HTTP answer counts: many sites refuse what is no browser."""

import asyncio
from collections.abc import Iterable
from urllib.parse import urlsplit

import httpx


async def unreachable(urls: Iterable[str], *, at_once: int = 8, timeout_s: float = 10.0) -> dict[str, str]:
    """The hosts (`https://host:port`) that do not answer, each with the reason. Every host is asked once."""
    by_host: dict[str, str] = {}
    for url in urls:
        parts = urlsplit(url)
        by_host.setdefault(f"{parts.scheme}://{parts.netloc}", url)
    slots = asyncio.Semaphore(at_once)

    async with httpx.AsyncClient(trust_env=False, timeout=timeout_s) as client:

        async def ask(url: str) -> str | None:
            async with slots:
                try:
                    async with asyncio.timeout(timeout_s), client.stream("GET", url):
                        return None
                except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
                    return str(error)[:200] or type(error).__name__

        reasons = await asyncio.gather(*(ask(url) for url in by_host.values()))
    return {host: reason for host, reason in zip(by_host, reasons, strict=True) if reason is not None}
