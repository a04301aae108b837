"""The instances of sites, each lent to one attempt at a time.

A site without declared instances is its own only one: attempts that need it for themselves then follow each other.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType

from judge.config import RunConfig
from judge.records.tasks import Task
from shared.text import counted

_log = logging.getLogger(__name__)
_NONE: Mapping[str, str] = MappingProxyType({})


def waiting_notes(tasks: Sequence[Task], config: RunConfig) -> tuple[str, ...]:
    """A sentence for each site with fewer instances than attempts are played there at once."""
    notes = []
    for site, addresses in config.site_instances.items():
        attempts = sum(config.sites.of(task).holds(site) for task in tasks) * config.epochs
        if (at_once := min(config.max_parallel, attempts)) > len(addresses):
            have = counted(len(addresses), "instance")
            notes.append(f"{site} has {have}, for {at_once} attempts at once: attempts there wait for a free one")
    return tuple(notes)


class _Instances:
    """The instances of one site. Free ones wait in a queue; those put aside are lent no more."""

    def __init__(self, site: str, addresses: Sequence[str]) -> None:
        self._site = site
        self._addresses = tuple(addresses)
        self._free = list(addresses)
        self._aside: set[str] = set()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def one(self, address: str | None = None) -> AsyncIterator[str]:
        """An instance for the body alone, once one is free; `address` is lent even if it was put aside."""
        async with self._changed:
            await self._changed.wait_for(lambda: address in self._free if address else self._usable())
            lent = address or self._usable()[0]
            self._free.remove(lent)
        try:
            yield lent
        finally:
            # Without waiting, so that a cancelled attempt returns it as well.
            self._free.append(lent)
            await asyncio.shield(self._notify())

    def _usable(self) -> list[str]:
        return [each for each in self._free if each not in self._aside]

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def put_aside(self, address: str) -> None:
        """Lend this instance no more, unless it is the last one, which may recover."""
        if len(self._aside | {address}) < len(self._addresses):
            self._aside.add(address)
            remaining = len(self._addresses) - len(self._aside)
            _log.warning("site %s: the instance at %s is put aside, %d left", self._site, address, remaining)

    def take_back(self, address: str) -> None:
        """Lend this instance again."""
        self._aside.discard(address)


class SiteInstances:
    """The instances of all sites, by website; `declared` are those with more than the website itself."""

    def __init__(self, declared: Mapping[str, Sequence[str]]) -> None:
        self._declared = declared
        self._by_site: dict[str, _Instances] = {}

    @property
    def addresses(self) -> Iterable[str]:
        """The addresses of all declared instances."""
        return (address for addresses in self._declared.values() for address in addresses)

    @property
    def sites(self) -> Collection[str]:
        """The websites with declared instances."""
        return self._declared.keys()

    def count(self, site: str) -> int:
        """How many attempts can have an instance of the site at the same time."""
        return len(self._declared.get(site, (site,)))

    @asynccontextmanager
    async def lent(self, sites: Iterable[str], addresses: Mapping[str, str] = _NONE) -> AsyncIterator[dict[str, str]]:
        """Each site for the body alone. Yields the address of the instance by website, of those with declared ones.

        `addresses` are the instances that it has to be.
        """
        async with AsyncExitStack() as stack:
            # In the same order for all attempts, to avoid deadlocks.
            borrowed = {
                site: await stack.enter_async_context(self._of(site).one(addresses.get(site))) for site in sorted(sites)
            }
            yield {site: address for site, address in borrowed.items() if site in self._declared}

    def put_aside(self, site: str, address: str) -> None:
        """Lend this instance to no further attempt, unless it is the site's last one, which may recover."""
        self._of(site).put_aside(address)

    def take_back(self, site: str, address: str) -> None:
        """Lend an instance put aside earlier."""
        self._of(site).take_back(address)

    def _of(self, site: str) -> _Instances:
        return self._by_site.setdefault(site, _Instances(site, self._declared.get(site, (site,))))
