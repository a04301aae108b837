"""The command lines of `wabe` and `agentbeats-run`: the composition root that knows every command."""

import importlib
import itertools
import sys
from collections.abc import Collection
from importlib import metadata
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from judge.commands import COMMANDS, Command, plain_app
from judge.commands.examples import EXAMPLES
from judge.commands.summary import summary_of
from judge.runner.boundary import run_command
from shared.imports import collector_paused


def command_app(name: str, *, add_completion: bool = False) -> typer.Typer:
    """The named command as a separate app."""
    command, examples = find_command(name)
    # `\b` keeps the lines of this paragraph from being joined.
    epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
    if isinstance(command, typer.Typer):
        command.info.epilog = epilog
        return command
    single = plain_app(add_completion=add_completion)
    single.command(name, epilog=epilog)(command)
    return single


def command_names() -> tuple[str, ...]:
    """All commands; plug-ins come last."""
    return (*EXAMPLES, *(name for name in COMMANDS.names() if name not in EXAMPLES and "." not in name))


def find_command(name: str) -> Command:
    """The named command. Raises `ConfigError` for an unknown one."""
    if name not in EXAMPLES:
        return COMMANDS.load(name)
    module, function = _place_of(name)
    # Imported on demand, so that each command only waits for the libraries that it uses.
    # Garbage collection would take a fifth of the import time and find nothing.
    with collector_paused():
        return Command(getattr(importlib.import_module(module), function), EXAMPLES[name])


def _place_of(name: str) -> tuple[str, str]:
    """The module of a command of the core, and its function or group there."""
    return "participants.command" if name == "participant" else f"judge.commands.{name}", name


def _function(name: str) -> str:
    return name.replace("-", "_")


class _LazyGroup(TyperGroup):
    """Imports a command when it is looked up."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands. Imports those only whose source does not say what they do."""
        rows = []
        for name in self._fill_commands():
            entry = None if name in EXAMPLES else COMMANDS.entry(name)
            summary = summary_of(*((entry.module, _function(name)) if entry else _place_of(name)))
            command = self.get_command(ctx, name) if summary is None else TyperCommand(name, help=summary)
            rows.append((name, command))
        width = formatter.width - 6 - max(len(name) for name, _ in rows)
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in rows])

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self._fill_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        is_known = cmd_name in EXAMPLES or cmd_name in self._fill_commands()
        return typer.main.get_command(command_app(cmd_name)) if is_known else None

    def _fill_commands(self) -> dict[str, Any]:
        # Only the names are used, for help and suggestions. Looked up late, because commands of the core need no
        # plug-in.
        self.commands = cast("dict[str, Any]", dict.fromkeys(command_names()))
        return self.commands


app = plain_app(name="wabe", cls=_LazyGroup, no_args_is_help=True, add_completion=True)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"wabe {metadata.version('wabe')}")
        raise typer.Exit


@app.callback()
def wabe(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Agent-to-agent assessment of web agents."""


def _bundled() -> Collection[str]:
    # Imported here because `--help` does not need it.
    from shared.settings import Settings

    return Settings.from_environ().bundled_scenarios


def expand_resume(arguments: list[str]) -> list[str]:
    """Insert `latest` after a `--resume` without a run id, because the option parser requires a value."""
    expanded: list[str] = []
    bundled = _bundled() if "--resume" in arguments else ()
    for argument, following in itertools.pairwise([*arguments, "--"]):
        expanded.append(argument)
        # The next argument may also be the scenario: `--resume my.toml`.
        is_value = not following.startswith("-") and not following.endswith(".toml") and following not in bundled
        if argument == "--resume" and not is_value:
            expanded.append("latest")
    return expanded


def main() -> None:
    """`wabe`, with the arguments of this process."""
    run_command(app, expand_resume(sys.argv[1:]), name="wabe")


def agentbeats_run() -> None:
    """`agentbeats-run`, with the arguments of this process: the same as `wabe run`."""
    run_command(command_app("run", add_completion=True), expand_resume(sys.argv[1:]), name="agentbeats-run")
