"""`wabe participant`: serves one of the bundled participants over A2A."""

import functools
import importlib
import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shared.dates import day_in
from shared.errors import ConfigError, WabeError
from shared.fields import printable
from shared.llm.opening import find_provider
from shared.logs import configure_logging
from shared.participants import PARTICIPANTS, list_participants, module_of
from shared.settings import FRESH_VARIABLE, Settings

if TYPE_CHECKING:
    # Only for types: listing the participants should not load a server.
    from participants.base import Decide, ParticipantOptions


def load(name: str) -> "Callable[[ParticipantOptions], Decide]":
    """The function that creates the participant `name`. Raises `ConfigError` if it is unknown or cannot be imported."""
    module_name = module_of(name)
    if module_provider := find_provider(module_name):
        from participants.model import model_participant

        return functools.partial(model_participant, provider=module_provider)
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
    close: Annotated[
        list[str] | None,
        typer.Option(help="A button that the replay participant presses wherever it is.", metavar="NAME"),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Let the replay participant load a page again that lacks something.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed, for participants that use one.")] = 0,
    note: Annotated[str, typer.Option(help="A note on the page, for the human participant.", metavar="TEXT")] = "",
    command: Annotated[
        str | None,
        typer.Option(help="A preset, or a command line with {mcp_url} or {mcp_config}, for the participant mcp."),
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(help="How an open model writes its actions, for computer_use.", metavar="NAME")
    ] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Let that program reach its tools and its model's meter only.")
    ] = False,
    fresh: Annotated[
        Literal["attempt", "run"] | None,
        typer.Option(
            help="Whether that program gets an empty folder for each attempt, or one for the run."
            " [default: WABE_FRESH, or attempt]"
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what that program lacks to play; the exit code is 1 if it does.")
    ] = False,
    logs: Annotated[
        Path | None, typer.Option(help="A folder for what that program prints in each attempt.", metavar="DIR")
    ] = None,
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
        close=tuple(close or ()),
        reload=reload,
        seed=seed,
        note=note,
        command=command,
        dialect=dialect,
        sandbox=sandbox,
        fresh=fresh or _fresh(settings.fresh),
        logs=logs,
        today=_day(today, "--today") or _day(settings.today, "WABE_TODAY"),
        settings=settings,
    )
    if check:
        _check(create, options)
        return
    description = descriptions[name.replace("-", "_")]
    decide = create(options)
    # Most participants have no page.
    routes = getattr(decide, "routes", ())
    serve(
        decide,
        name=getattr(decide, "name", name),
        version=getattr(decide, "version", None),
        host=host,
        port=port,
        card_url=card_url,
        description=description,
        routes=routes,
    )


def _check(create: Callable[..., object], options: "ParticipantOptions") -> None:
    """Print what `examine` of the participant's module finds, one JSON list in each line."""
    examine = getattr(sys.modules[create.__module__], "examine", None)
    if examine is None:
        raise ConfigError("--check is for the participant mcp", remedy="leave it out")
    found = list(examine(options))
    for each in found:
        typer.echo(json.dumps(each))
    if not all(each.is_there for each in found):
        raise typer.Exit(1)


def _fresh(text: str | None) -> Literal["attempt", "run"]:
    if text not in (None, "attempt", "run"):
        raise ConfigError(f"{FRESH_VARIABLE} is {printable(text)}", remedy="set it to attempt or run")
    return "run" if text == "run" else "attempt"


def _day(text: str | None, source: str) -> date | None:
    if text is None:
        return None
    if (day := day_in(text)) is None:
        raise ConfigError(f"{source}: {printable(text)} is not a day", remedy="write it like 2026-11-23")
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
