"""Probes during an attempt: reads their values at each observation, and decides whether one ends the attempt."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from judge.evaluators.addresses import is_address
from judge.records.checks import expressions_of, probes_of
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.sites import Site, own_site
from shared.models import Page


class Reader(Protocol):
    """Reads expressions in the last observed page: a `judge.browser.session.Browser`."""

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]: ...


class Probes:
    """The probes of a task in one attempt. The first page read shows where the website redirects."""

    def __init__(self, task: Task, allowed_sites: Iterable[str] = ()) -> None:
        self._task = task
        self._allowed_sites = tuple(allowed_sites)
        self._expressions = expressions_of(task.checks)
        self._ending = [probe for probe in probes_of(task.checks) if probe.ends]
        self._site: Site | None = None

    async def read(self, browser: Reader, page: Page) -> tuple[ProbeValue, ...]:
        """A value for each expression of the task, or an error for each on a page of another site."""
        if not self._expressions:
            return ()
        self._site = self._site or own_site(self._task, self._allowed_sites, landed=page.url)
        if not self._site.holds(page.url):
            why = "a page of another site"
        elif page.dialog is not None:
            why = "a dialog is open"
        elif page.notice is not None and not page.snapshot:
            why = "the page cannot be observed"
        else:
            return await browser.probe(page, self._expressions)
        return tuple(ProbeValue(error=why) for _ in self._expressions)

    def has_ended(self, page: Page, values: Sequence[ProbeValue]) -> bool:
        """Whether a probe with `ends` has a value; never on a page of another site."""
        if self._site is None:
            return False
        found = dict(zip(self._expressions, values, strict=True))
        is_home = self._site.is_home(page.url)
        return any(
            found[probe.expression].value is not None
            and (probe.on is None or is_address(page.url, probe.on, is_home=is_home, extra_query=True))
            for probe in self._ending
        )
