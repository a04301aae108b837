"""Held requests of a scenario: those of its sites belong to the tasks there. Archives and hosted browsers hold none."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from judge.config import RunConfig
from judge.records.policies import checks_of
from judge.records.tasks import Task
from judge.scenario.days import extended
from judge.scenario.models import SiteEntry
from judge.sites import RunSites
from shared.toml_lines import KeyPath


def with_site_holds(
    task: Task, sites: Iterable[SiteEntry], run: RunSites, declared: Mapping[str, object], today: date
) -> Task:
    """The task with the held requests of its sites, which come after its own; by name as they are `declared`."""
    area = run.of(task)
    for site in sites:
        if site.hold and area.holds(site.endpoint):
            task = extended(task, "hold", site.hold, declared.get(site.name), today, are_first=False)
    return task


def hosted_problem(
    task: Task, place: int, sites: Sequence[SiteEntry], config: RunConfig
) -> tuple[KeyPath, str, str] | None:
    """Why a task cannot be played in the scenario's hosted browser: the key, the problem and the remedy."""
    if config.cdp_url is None:
        return None
    if task.holds_requests:
        key = "hold" if task.hold else "writes"
        problem = "requests cannot be held in a hosted browser (cdp_url), which has no guard"
        return ("tasks", place, key), problem, "remove it, or cdp_url"
    if any(check.needs_network for check in checks_of(task.policies)):
        problem = "policies about requests cannot be decided in a hosted browser (cdp_url), which has no guard"
        return ("tasks", place, "policies"), problem, "remove them, or cdp_url"
    for number, site in enumerate(sites):
        if site.archive is not None:
            problem = "an archive cannot answer a hosted browser (cdp_url)"
            return ("sites", number, "archive"), problem, "remove it, or cdp_url"
    return None


def hold_problem(task: Task, place: int, sites: Sequence[SiteEntry], run: RunSites) -> tuple[KeyPath, str, str] | None:
    """Why the requests of a task (with those of its sites) cannot be held: the key, the problem and the remedy."""
    if not task.holds_requests:
        return None
    area = run.of(task)
    for site in sites:
        if site.archive is not None and area.holds(site.endpoint):
            key = "hold" if task.hold else "writes"
            problem = f"requests cannot be held on a frozen site, and {site.name} has an archive"
            return ("tasks", place, key), problem, "remove it: nothing that a frozen site is sent leaves this machine"
    return None
