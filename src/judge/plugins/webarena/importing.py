"""WebArena-Verified in `wabe tasks`: imports its tasks, and creates the log-ins that they need."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer

from judge.browser.form_login import Account, LoginFailed, log_in
from judge.commands.findings import Finding
from judge.commands.states import save_state
from judge.plugins.webarena.package import PackageTask, WebArenaPackage, required_python
from judge.plugins.webarena.tasks import (
    SiteAddresses,
    account_groups,
    imported,
    known_problems,
    read_addresses,
    site_entries,
)
from judge.records.tasks import Task
from judge.scenario.importers import ImportedTasks, Importer, ImportRequest
from judge.scenario.toml import select
from shared.errors import ConfigError
from shared.fields import did_you_mean, printable
from shared.settings import Settings
from shared.text import counted

SOURCE = "webarena-verified"
# The path of each kind of site's login form. For other sites, the form is at the site's address.
_FORMS: Mapping[str, str] = MappingProxyType(
    {"shopping": "/customer/account/login/", "reddit": "/login", "gitlab": "/users/sign_in"}
)
_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {"max_steps": 30, "judge_model": "offline", "cluster": "intent_template_id"}
)


async def webarena_tasks(
    path: Path | None, subset: str | None, ids: Sequence[str], output: Path | None
) -> tuple[Task, ...]:
    """The package's tasks, or a subset, or the ones with these numbers. Raises `ConfigError`."""
    addresses = read_addresses(path)
    opened = await WebArenaPackage.open(Settings.from_environ().webarena_python, addresses.without_credentials())
    async with aclosing(opened) as package:
        package_tasks = await package.tasks(subset)
    if package_tasks.tasks is None:
        raise ConfigError(f"unknown --subset {printable(subset)}", remedy=did_you_mean(subset, package_tasks.subsets))
    rows = _select(package_tasks.tasks, ids)
    if not ids:
        # Without named tasks, import those whose sites have an address. For named ones, a missing address is an error.
        rows = [row for row in rows if set(row.sites) <= set(addresses.environments)]
        if left_out := len(package_tasks.tasks) - len(rows):
            typer.echo(f"note: {counted(left_out, 'task')} left out: --config has no address for every site", err=True)
    if not rows:
        raise ConfigError("no task is left", remedy="add the addresses of more sites to --config")
    states = f"{(output or Path(SOURCE)).stem}.states"
    tasks = imported(rows, addresses, package.about.answer_schema, states)
    if any(task.storage_state for task in tasks):
        typer.echo(f"note: log in before the run: wabe tasks login --config {path} --output {states}", err=True)
    return tasks


def _select(rows: Iterable[PackageTask], ids: Sequence[str]) -> list[PackageTask]:
    by_number = {str(row.task_id): row for row in rows}
    names = [name.strip() for text in ids for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in by_number]:
        raise ConfigError(
            f"--tasks: no task {printable(unknown[0])}", remedy="give numbers of its tasks, such as 7,44,118"
        )
    return [by_number[name] for name in dict.fromkeys(names)] if names else list(by_number.values())


async def log_in_to_sites(addresses: SiteAddresses, output: Path) -> None:
    """Log in to the sites with credentials, and save the storage states that tasks on them need to a folder."""
    groups = account_groups(addresses)
    if not groups:
        raise ConfigError(
            "--config: no site has credentials", remedy='add "credentials": {"username": …, "password": …}'
        )
    for sites in groups:
        accounts = [
            Account(
                site,
                each.url + _FORMS.get(site, ""),
                each.credentials.username,
                each.credentials.password.get_secret_value(),
            )
            for site in sites
            if (each := addresses.environments[site]).credentials is not None
        ]
        try:
            state = await log_in(accounts, Settings.from_environ())
        except LoginFailed as error:
            raise ConfigError(f"--config: {error.message}", remedy=error.remedy) from None
        path = output / f"{'-'.join(sites)}.json"
        save_state(path, state)
        typer.echo(f"{path}: logged in to {', '.join(sites)}")


def import_tasks(request: ImportRequest) -> ImportedTasks:
    """The tasks that `wabe tasks import webarena-verified` selects. Raises `ConfigError`."""
    imported_tasks = asyncio.run(webarena_tasks(request.config, request.subset, request.names, request.output))
    selection = select(imported_tasks, level=request.level, limit=request.limit)
    sites = site_entries(selection, read_addresses(request.config))
    return ImportedTasks(selection, _SETTINGS, sites, known_problems(task.task_id for task in selection))


def log_in_with(config: Path, output: Path) -> None:
    """Log in to the sites that a file names. Raises `ConfigError`."""
    asyncio.run(log_in_to_sites(read_addresses(config), output))


def examine(settings: Settings) -> Finding:
    """Whether the environment for WebArena-Verified's evaluator exists; only that benchmark needs it."""
    try:
        return Finding("ok", "webarena", f"{required_python(settings.webarena_python)}, for WebArena-Verified")
    except ConfigError as error:
        return Finding("note", "webarena", f"{error.message}; only that benchmark needs one: {error.remedy}")


IMPORTER = Importer(run=import_tasks, takes=("names", "config", "subset"), warnings=known_problems, log_in=log_in_with)
