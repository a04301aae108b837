"""WebArena-Verified in `wabe tasks`: imports its tasks, and creates the logins that they need."""

import asyncio
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from judge.browser.form_login import LoginFailed, log_in
from judge.evaluators.webarena import PackageTask, WebArenaPackage
from judge.scenario.webarena import SiteAddresses, account_groups, imported, read_addresses
from shared.errors import ConfigError
from shared.fields import did_you_mean, shown
from shared.models import Task
from shared.settings import Settings
from shared.text import counted

SOURCE = "webarena-verified"
SETTINGS: Mapping[str, Any] = MappingProxyType({"max_steps": 30, "judge_model": "offline"})


async def webarena_tasks(
    path: Path | None, subset: str | None, ids: Sequence[str], output: Path | None
) -> tuple[Task, ...]:
    """The package's tasks, or those of a subset, or those with these numbers. Raises `ConfigError`."""
    addresses = read_addresses(path)
    package = await WebArenaPackage.open(Settings.from_environ(), addresses.without_credentials())
    try:
        found = await package.tasks(subset)
    finally:
        await package.aclose()
    if found.tasks is None:
        raise ConfigError(f"unknown --subset {shown(subset)}", remedy=did_you_mean(subset, found.subsets))
    rows = _chosen(found.tasks, ids)
    if not ids:
        # Without named tasks, import those whose sites have an address. For named ones, a missing address is an error.
        rows = [row for row in rows if set(row.sites) <= set(addresses.environments)]
        if left_out := len(found.tasks) - len(rows):
            typer.echo(f"note: {counted(left_out, 'task')} left out: --config has no address for every site", err=True)
    if not rows:
        raise ConfigError("no task is left", remedy="add the addresses of more sites to --config")
    states = f"{(output or Path(SOURCE)).stem}.states"
    tasks = imported(rows, addresses, package.about.answer_schema, states)
    if any(task.storage_state for task in tasks):
        typer.echo(f"note: log in before the run: wabe tasks login --config {path} --output {states}", err=True)
    return tasks


def _chosen(rows: Iterable[PackageTask], ids: Sequence[str]) -> list[PackageTask]:
    by_number = {str(row.task_id): row for row in rows}
    names = [name.strip() for text in ids for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in by_number]:
        raise ConfigError(f"--tasks: no task {shown(unknown[0])}", remedy="give numbers of its tasks, such as 7,44,118")
    return [by_number[name] for name in dict.fromkeys(names)] if names else list(by_number.values())


def login(
    addresses: Annotated[
        Path, typer.Option("--config", help="The addresses and accounts of the sites.", metavar="FILE")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The scenario's folder of storage states.", metavar="DIR")
    ],
) -> None:
    """Log in to WebArena-Verified's sites. Saves the browser's storage states for the tasks that need them."""
    asyncio.run(_log_in(read_addresses(addresses), output))


async def _log_in(addresses: SiteAddresses, output: Path) -> None:
    groups = account_groups(addresses)
    if not groups:
        raise ConfigError(
            "--config: no site has credentials", remedy='add "credentials": {"username": …, "password": …}'
        )
    for sites in groups:
        accounts = {
            site: (each.url, each.credentials.username, each.credentials.password.get_secret_value())
            for site in sites
            if (each := addresses.environments[site]).credentials is not None
        }
        try:
            state = await log_in(accounts, Settings.from_environ())
        except LoginFailed as error:
            raise ConfigError(f"--config: {error.message}", remedy=error.remedy) from None
        path = output / f"{'-'.join(sites)}.json"
        _save(path, state)
        typer.echo(f"{path}: logged in to {', '.join(sites)}")


def _save(path: Path, state: Mapping[str, Any]) -> None:
    """Write a storage state readable by this user only, because it gives access to the account."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # An existing file would keep its permissions; O_EXCL then also refuses a link.
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(state, stream)
