"""`wabe apps`: real applications for `wabe run apps`."""

from typing import Annotated

import typer

from judge.commands import Command, plain_app, table, wide_console
from judge.plugins.apps import apps_folder, is_installed, load_apps, the_app
from judge.plugins.apps.install import install
from shared.settings import Settings

ALL = "all"

apps = plain_app(no_args_is_help=True)


@apps.callback()
def group() -> None:
    """Real applications that `wabe run apps` plays on."""


@apps.command("install")
def install_apps(
    names: Annotated[
        list[str] | None, typer.Argument(help="Applications, or `all`. Without a name: what there is.", metavar="NAME…")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Install also what is installed already.")] = False,
) -> None:
    """Install applications from their package registries, with pinned versions, into the cache folder."""
    settings = Settings.from_environ()
    known = load_apps(settings.scenarios_folder)
    folder = apps_folder(settings.cache_folder)
    if not names:
        grid = table("Applications", ("Name", "Version", "Registry", "Installed", "What it is"), ("About MB",))
        for name, app in known.items():
            described = app.description
            state = "yes" if is_installed(app, folder / name) else "no"
            registry = "npm" if app.is_npm else "pip"
            grid.add_row(name, described.version, registry, state, described.about, str(described.size_mb))
        wide_console().print(grid)
        typer.echo(f"They are installed in {folder}")
        return
    # Look up all names before the first installation starts.
    selection = list(known.values()) if names == [ALL] else [the_app(name, known) for name in dict.fromkeys(names)]
    for app in selection:
        app_text = f"{app.name} {app.description.version}"
        place = folder / app.name
        if is_installed(app, place) and not again:
            typer.echo(f"{app_text}: installed already")
            continue
        typer.echo(f"{app_text}: installing, about {app.description.size_mb} MB")
        install(app, place, settings.environ)
        typer.echo(f"{app_text}: installed in {place}")


COMMAND = Command(apps, ("wabe apps install", "wabe apps install datasette radicale", "wabe apps install all"))
