"""Held requests of a scenario: its sites' belong to the tasks there. What no network can hold is refused."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from judge.config import RunConfig
from judge.network.attempt import refusal_of
from judge.records.sites import RunSites
from judge.records.tasks import Task
from judge.scenario.days import extended
from judge.scenario.models import SiteEntry
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


def network_problem(
    task: Task, place: int, sites: Sequence[SiteEntry], config: RunConfig
) -> tuple[KeyPath, str, str] | None:
    """Why a task (with the held requests of its sites) cannot be played: the key, the problem and the remedy."""
    area, is_hosted = config.sites.of(task), config.cdp_url is not None
    frozen = [number for number, site in enumerate(sites) if site.archive and (is_hosted or area.holds(site.endpoint))]
    refusal = refusal_of(task, is_hosted=is_hosted, is_frozen=bool(frozen))
    if refusal is None:
        return None
    if refusal.what == "archive":
        return ("sites", frozen[0], "archive"), refusal.problem, refusal.remedy
    key = "writes" if refusal.what == "hold" and not task.hold else refusal.what
    return ("tasks", place, key), refusal.problem, refusal.remedy
