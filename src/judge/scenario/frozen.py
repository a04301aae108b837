"""Scenarios with frozen sites: an archive answers for such a site, so it is neither started nor awaited nor reset."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judge.config import ALL_SITES, FrozenSite
from judge.network.archives import Archives, open_archives
from judge.network.attempt import refusal_of
from judge.scenario.days import today_of
from judge.scenario.models import Scenario, SiteEntry
from judge.scenario.toml import load_scenario
from judge.store.sealing import key_in
from shared.errors import ConfigError
from shared.settings import Settings


def on_archives(scenario: Scenario, archive: Path | None = None) -> Scenario:
    """The scenario as it is played: its settings name the archives of its frozen sites.

    `archive` (`--archive`) answers for every site of every task. Paths in the file are relative to its folder. Raises
    `ConfigError`.
    """
    folder = scenario.path.resolve().parent
    if archive is not None:
        for task in scenario.tasks:
            if refusal := refusal_of(task, is_frozen=True):
                problem = f"--archive {archive.name}: task {task.task_id}: {refusal.problem}"
                raise ConfigError(problem, remedy="play it without --archive, or leave it out")
        archives = {ALL_SITES: FrozenSite(path=str(archive.expanduser().resolve()))}
    else:
        archives = {
            site.endpoint: FrozenSite(path=str(folder / Path(site.archive).expanduser()), sha256=site.archive_sha256)
            for site in scenario.sites
            if site.archive
        }
    if not archives:
        return scenario
    sites = tuple(_not_run(site, archive) if archive or site.archive else site for site in scenario.sites)
    config = scenario.config.model_copy(update={"archives": archives})
    return scenario.model_copy(update={"sites": sites, "config": config})


def opened(scenario: Scenario, settings: Settings, archive: Path | None = None) -> tuple[Scenario, Archives | None]:
    """The scenario as it is played, with dates relative to the recordings of its frozen sites, and their archives."""
    declared = on_archives(scenario, archive)
    archives = open_archives(declared.config)
    if now := recorded_at(declared, archives):
        declared = on_archives(load_scenario(scenario.path, now=now, key=key_in(settings.seal_key)), archive)
    return declared, archives


def recorded_at(scenario: Scenario, archives: Archives | None) -> datetime | None:
    """The moment to which the dates in the tasks are relative on frozen sites: the beginning of the recording.

    There, pages begin with that clock. `None` without dates, in real time, and if not all tasks with dates are on
    recordings of one day: then they are relative to the present day.
    """
    if archives is None or scenario.config.settle == "real-time":
        return None
    dated = [task for task in (*scenario.tasks, *scenario.excluded) if task.is_about_days]
    clocks = [archives.clock_at(task.website) for task in dated]
    known = [datetime.fromtimestamp(clock / 1000, UTC) for clock in clocks if clock is not None]
    days = {today_of({"timezone": scenario.config.timezone}, moment) for moment in known}
    return known[0] if len(days) == 1 and len(known) == len(clocks) else None


def _not_run(site: SiteEntry, archive: Path | None) -> SiteEntry:
    unused: dict[str, Any] = {
        "cmd": None,
        "env": {},
        "ready": None,
        "restart": False,
        "reset_url": None,
        "static": False,
    }
    return site.model_copy(update={**unused, "archive": str(archive) if archive else site.archive})
