"""`wabe participant`: finds the bundled participants and serves one of them over A2A.

Participants are entry points of `wabe.participants`, ours as well as those of other packages, and every provider of
models is one under its own name. A module that is put into this package is found without an entry point, if it has a
function `create(options) -> Decide`.
"""

import ast
import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import participants
from shared.dates import day_in
from shared.errors import ConfigError, WabeError
from shared.fields import closest, shown
from shared.llm.opening import find_provider, provider
from shared.llm.provider import Provider
from shared.llm.providers import provider_names
from shared.logs import configure_logging
from shared.seams import Seam
from shared.settings import Settings

if TYPE_CHECKING:
    # Only for types: listing the participants should not load a server.
    from participants.base import Decide, ParticipantOptions


# The modules of this package, which are described by their docstrings.
_OWN = "participants."
# Functions `create(options) -> Decide`, under names of Python modules.
PARTICIPANTS: "Seam[Callable[[ParticipantOptions], Decide]]" = Seam("participants", "participant")


def list_participants(folders: Iterable[str] | None = None) -> dict[str, str]:
    """All participants with what they do: providers of models, and modules with the first lines of their docstrings.

    Modules are parsed, not imported: a broken one is left out and hides no other.
    """
    found = {each.name: _description(each) for each in map(provider, provider_names())} if folders is None else {}
    folders = participants.__path__ if folders is None else folders
    paths = [path for folder in folders for path in Path(folder).glob("*.py")]
    for path in sorted(paths, key=lambda path: path.stem):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        if any(isinstance(node, ast.FunctionDef) and node.name == "create" for node in tree.body):
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    # Not imported, as modules are not.
    others = {name: entry for name, entry in PARTICIPANTS.entries().items() if not entry.module.startswith(_OWN)}
    return dict(sorted({**{name: f"Of the package {each.package}." for name, each in others.items()}, **found}.items()))


def _description(provider: Provider) -> str:
    endpoint = f" (or {provider.url_note})" if provider.url_note else ""
    receives = "the page's snapshot and its screenshot" if provider.images else "the page's snapshot"
    return f"Asks a model of {provider.title}{endpoint}, which receives {receives}."


def load(name: str) -> "Callable[[ParticipantOptions], Decide]":
    """The function that creates the participant `name`. Raises `ConfigError` if it is unknown or cannot be imported."""
    known = list_participants()
    module_name = name.replace("-", "_")
    if module_name not in known:
        raise ConfigError(f"unknown participant {name!r}", remedy=f"{closest(name, known)}one of: {', '.join(known)}")
    if found := find_provider(module_name):
        from participants.model import model_participant

        return functools.partial(model_participant, provider=found)
    if (entry := PARTICIPANTS.find(module_name)) is not None:
        return entry
    try:
        module = importlib.import_module(f"participants.{module_name}")
    except (ImportError, SyntaxError) as error:
        raise ConfigError(
            f"participant {name!r} cannot be imported: {error}", remedy="install what its module imports"
        ) from error
    create: Callable[[ParticipantOptions], Decide] = module.create
    return create


def participant(
    name: Annotated[str | None, typer.Argument(help="Which participant; --list shows them.", metavar="NAME")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the participants.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 9019,
    card_url: Annotated[str | None, typer.Option(help="Address in the agent card, if behind a proxy.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, for participants that use one.")] = None,
    script: Annotated[str | None, typer.Option(help="Script file, for the replay participant.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed, for participants that use one.")] = 0,
    today: Annotated[
        str | None,
        typer.Option(
            help="The run's day, for dates in scripts. [default: WABE_TODAY, or the present day in UTC]", metavar="DAY"
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log more.")] = False,
) -> None:
    """Serve a participant over A2A."""
    descriptions = list_participants()
    if show_list:
        for each, description in descriptions.items():
            typer.echo(f"{each:<12} {description}")
        return
    if name is None:
        raise ConfigError("no participant given", remedy="give a name; wabe participant --list shows them")
    # Imported here so that the branches above do not load a server.
    from participants.base import ParticipantOptions, serve

    settings = Settings.from_environ()
    configure_logging(verbose=verbose, secrets=settings.secrets)
    create = load(name)
    options = ParticipantOptions(
        model=model or settings.participant_model,
        script=script,
        seed=seed,
        today=_day(today, "--today") or _day(settings.today, "WABE_TODAY"),
        settings=settings,
    )
    description = descriptions[name.replace("-", "_")]
    serve(create(options), name=name, host=host, port=port, card_url=card_url, description=description)


def _day(given: str | None, source: str) -> date | None:
    if given is None:
        return None
    if (day := day_in(given)) is None:
        raise ConfigError(f"{source}: {shown(given)} is not a day", remedy="write it like 2026-11-23")
    return day


def main(arguments: list[str]) -> int:
    """Run the command alone, as in the participants' images. Returns the exit code: 1 for an error, 2 for bad usage."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(participant)
    try:
        app(arguments, prog_name="participants")
    except WabeError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, ConfigError) else 1
    return 0
