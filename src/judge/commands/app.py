"""The command line of `wabe`: the composition root that wires every command group."""

import importlib
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from judge.runner.boundary import run_command
from shared.imports import collector_paused

# Which module registers a command. It is imported when its command is asked for: nobody who scores one trajectory
# should wait for what a server, a leaderboard or a report is made of.
MODULES: Mapping[str, str] = MappingProxyType(
    {
        "serve": "judge.commands.serve",
        "participant": "participants.command",
        "score": "judge.commands.score",
        "agreement": "judge.commands.agreement",
        "leaderboard": "judge.commands.leaderboard",
        "merge": "judge.commands.leaderboard",
        "report": "judge.commands.report",
        "export": "judge.commands.export",
        "verify": "judge.commands.verify",
        "tasks": "judge.commands.tasks",
        "doctor": "judge.commands.doctor",
    }
)


class _Commands(MutableMapping[str, Any]):
    """The commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        holder = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
        # With a callback it stays a group, however few commands register.
        holder.callback()(lambda: None)
        with collector_paused():
            importlib.import_module(MODULES[name]).register(holder)
        return get_group(holder).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError(f"{name}: commands are named in MODULES")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name}: commands are named in MODULES")


class _Group(TyperGroup):
    """A group whose commands are imported when they are asked for."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()


app = typer.Typer(
    name="wabe",
    cls=_Group,
    help="Agent-to-agent assessment of web agents.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def wabe() -> None:
    """Agent-to-agent assessment of web agents."""


def main() -> None:
    """Entry point."""
    run_command(app, sys.argv[1:], name="wabe")
