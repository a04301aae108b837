"""`wabe tasks login`: logs in to a site's form and saves the storage state."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from judge.browser.form_login import Account, LoginFailed, log_in
from judge.commands import Command
from judge.commands.states import save_state
from judge.records.access import read_storage_state
from judge.records.sites import is_site, origin_of
from judge.scenario.importers import IMPORTERS
from judge.scenario.logins import own_part
from shared.errors import ConfigError
from shared.fields import printable
from shared.files import write_errors
from shared.settings import Settings
from shared.text import one_line


def login(
    url: Annotated[str | None, typer.Argument(help="The address of the site's login form.", metavar="[URL]")] = None,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="The user name; leave it out if the form has no field for one.")
    ] = None,
    password_env: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="The variable with the password. [default: ask, or read a line]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; with --config, a folder.", metavar="FILE")
    ] = None,
    allowed_site: Annotated[
        list[str] | None, typer.Option(metavar="SITE", help="Keep the cookies of this other site too; repeatable.")
    ] = None,
    addresses: Annotated[
        Path | None, typer.Option("--config", help="The addresses and accounts of a benchmark's sites.", metavar="FILE")
    ] = None,
) -> None:
    """Log in to a site by its form, and save the storage state for tasks and sites (storage_state = "…").

    The password is read from a variable, asked for, or read as a line of standard input. It is never stored.
    """
    if (url is None) == (addresses is None):
        raise ConfigError("no address", remedy="give the login form's URL, or --config for a benchmark's sites")
    if output is None:
        raise ConfigError("--output is missing", remedy="name the file to write, such as --output state.json")
    settings = Settings.from_environ()
    if addresses is not None:
        if user or password_env or allowed_site:
            raise ConfigError("--user, --password-env and --allowed-site are for a URL", remedy="leave them out")
        log_ins = (IMPORTERS.load(name).log_in for name in IMPORTERS.names())
        log_in_with = next(filter(None, log_ins), None)
        if log_in_with is None:
            raise ConfigError("--config needs a plug-in that knows its sites", remedy="install it, or give a URL")
        log_in_with(addresses, output)
    elif url is not None:
        if origin_of(url) is None:
            raise ConfigError(
                f"{printable(url)} is not an address", remedy="write it like https://www.example.org/login"
            )
        account = Account(url, url, user, _password(password_env, settings.environ))
        asyncio.run(_log_in(account, allowed_site or (), output, settings))


def _password(variable: str | None, environ: Mapping[str, str]) -> str:
    if variable is not None:
        if not (password := environ.get(variable)):
            raise ConfigError(f"--password-env: {printable(variable)} is not set", remedy=f"export {variable}=…")
        return password
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True))
    if not (line := sys.stdin.readline().rstrip("\r\n")):
        raise ConfigError("no password", remedy="give --password-env VARIABLE, or send it to standard input")
    return line


async def _log_in(account: Account, allowed: Sequence[str], output: Path, settings: Settings) -> None:
    for site in allowed:
        if not is_site(site):
            raise ConfigError(f"--allowed-site {printable(site)} is not a site", remedy='write "sso.example.com"')
    try:
        state = read_storage_state(await log_in([account], settings))
    except LoginFailed as error:
        raise ConfigError(error.message, remedy=error.remedy) from None
    state, others = own_part(state, account.address, allowed)
    with write_errors(output, "choose another --output"):
        save_state(output, state.to_json())
    typer.echo(f"{output}: logged in; {len(state.cookies)} cookie(s), storage of {len(state.origins)} origin(s)")
    if others:
        names_text = one_line(", ".join(others))
        typer.echo(f"note: left out what other sites stored (--allowed-site keeps it): {names_text}", err=True)


COMMAND = Command(login, ("wabe tasks login https://shop.example/login --user ada --output state.json",))
