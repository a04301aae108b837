"""`wabe run` and `agentbeats-run`: an assessment from a scenario file or a bundled task set."""

# Only imports that the help needs; the rest takes a second.
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from judge.commands.options import with_options
from judge.runner.boundary import run_interruptible
from judge.runner.options import RunOptions
from shared.errors import ConfigError


def _bundled() -> list[str]:
    """The bundled task sets, for shell completion."""
    from shared.settings import Settings

    return list(Settings.from_environ().bundled_scenarios)


@with_options
def run(
    context: typer.Context,
    scenario: Annotated[
        list[str],
        typer.Argument(
            help="A scenario file, or a bundled task set such as demo; or several.",
            metavar="SCENARIO.toml…",
            autocompletion=lambda incomplete: [name for name in _bundled() if name.startswith(incomplete)],
        ),
    ],
    **given: Any,
) -> None:
    """Run an assessment. Starts the agents of a scenario, drives them, judges, writes results, stops everything.

    With several scenarios or agents, each agent plays each scenario, and a table shows the results.
    """
    from rich.console import Console

    console = Console(quiet=given["display"] in ("json", "none"))
    # Importing the rest takes a second, several on a busy machine.
    with console.status("Loading"):
        from judge.commands.former import unread_variables
        from judge.store.layout import free_space, output_folder
        from shared.engines import ENGINES, player_of
        from shared.files import require_writable, write_errors
        from shared.settings import Settings
        from shared.text import one_line

    settings = Settings.from_environ()
    # A flag not given leaves the choice to the scenario.
    settings_set = {name: value for name, value in given.items() if value is not None and value is not False}
    settings_set["output_dir"] = output_folder(given["output_dir"], settings)
    if "name" in settings_set:
        settings_set["name"] = one_line(settings_set["name"])
    scenarios = {each: scenario_file(each, settings.bundled_scenarios) for each in scenario}
    command = (*context.command_path.split(), scenario[0])
    options = RunOptions(scenario=scenarios[scenario[0]], command=command, **settings_set)
    if options.fail_under is not None and not 0 <= options.fail_under <= 100:
        raise ConfigError(f"--fail-under {options.fail_under:g} is not a percentage", remedy="give 0 to 100")
    if options.fail_under is not None and 0 < options.fail_under < 1:
        suggestion = f"did you mean {100 * options.fail_under:g}?"
        raise ConfigError(
            f"--fail-under {options.fail_under:g} is below one percent: {suggestion}", remedy="give 0, or 1 to 100"
        )
    space, is_enough = free_space(options.output_dir)
    if not is_enough:
        typer.echo(f"warning: {space}", err=True)
    if unread := unread_variables(settings.environ, Path()):
        typer.echo(f"note: {unread}", err=True)
    several = ENGINES.find("several")
    if several and several.run_several and (play := several.run_several(options, scenarios, settings)):
        raise typer.Exit(run_interruptible(play(console)))
    if len(scenarios) > 1:
        raise ConfigError(f"nothing is installed that plays {len(scenarios)} scenarios", remedy="give one of them")
    if options.output is not None:
        with write_errors(f"--output {options.output}", "choose a file you can write"):
            require_writable(options.output)
    raise typer.Exit(run_interruptible(player_of(options.engine)(options, settings, console)))


def scenario_file(argument: str, bundled: Mapping[str, Path]) -> Path:
    """The scenario file: an existing file takes precedence over a bundled task set of the same name."""
    path = Path(argument)
    if path.is_file():
        return path
    if argument in bundled:
        return bundled[argument]
    from judge.commands.former import replacement_of

    replacement = replacement_of(argument)
    # It looks like a path, so the error message should be about that file, unless it is a bundled set with an ending.
    if path.exists() or (
        not replacement and path.stem not in bundled and "://" not in argument and (path.suffix or len(path.parts) > 1)
    ):
        return path
    from shared.fields import closest

    raise ConfigError(
        f"{argument!r} is neither a scenario file nor a bundled task set",
        remedy=f"{replacement or closest(argument, bundled)}give the path of a scenario TOML file,"
        f" or one of: {', '.join(bundled) or 'none is installed'}",
    )
