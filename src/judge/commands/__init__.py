"""The `wabe` commands: one module each, which contains a function (or a group) with the command's name."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from shared.seams import Seam
from shared.text import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

OutputDir = Annotated[Path | None, typer.Option(help="The folder for runs.")]
TasksFile = Annotated[
    Path | None,
    typer.Option("--tasks", help="Dataset file with the descriptions of a foreign folder's tasks.", metavar="FILE"),
]
OneRun = Annotated[str, typer.Argument(help="A run's id, its folder, or `latest`.", metavar="RUN")]
Where = Annotated[
    list[str] | None, typer.Option("--where", help="Only tasks with these metadata; repeatable.", metavar="KEY=VALUE")
]
OneTask = Annotated[str, typer.Option("--task", help="The task.", metavar="ID")]
OneEpoch = Annotated[int, typer.Option(min=1, help="The epoch, if the task was played several times.")]
# Of servers: those that others may reach, and pages for the person at this machine.
AnyHost = Annotated[str, typer.Option(help="Address to listen on.")]
OwnHost = Annotated[str, typer.Option(help="Address to listen on; other machines are refused.")]
OwnPort = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free one.")]
OpenPage = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Log more.")]
LogForm = Annotated[Literal["text", "json"], typer.Option(help="Log lines of text, or a JSON object per line.")]
RUN_HELP = "A run's id, its folder, `latest`, or a folder with trajectories."
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_PIPED_WIDTH = 140


class Command(NamedTuple):
    """A command of a plug-in: a function or a group with the command's name, and examples for the end of its help.

    The entry point `group.name` adds the function `name` to the group `group` of the core, whose help has examples.
    """

    run: Any
    examples: tuple[str, ...] = ()


COMMANDS: Seam[Command] = Seam("commands", "command")


def plain_app(*, add_completion: bool = False, **options: Any) -> typer.Typer:
    """A Typer app whose help and errors are plain text."""
    return typer.Typer(add_completion=add_completion, pretty_exceptions_enable=False, rich_markup_mode=None, **options)


def add_plugin_commands(group: typer.Typer, name: str) -> None:
    """Add the commands that plug-ins have for a group of the core."""
    for each in COMMANDS.names():
        if each.startswith(f"{name}."):
            group.command()(COMMANDS.load(each).run)


def wide_console() -> "Console":
    """A console for tables: Rich assumes 80 columns for a pipe, which would wrap or cut them."""
    # Imported here because a command's help needs no console.
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=_PIPED_WIDTH)


def table(title: str, words: Iterable[str], numbers: Iterable[str]) -> "Table":
    """An empty table with text columns, then number columns. Titles and names are not parsed as markup."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=Text(one_line(title)), title_justify="left")
    for name in words:
        grid.add_column(Text(one_line(name)), overflow="fold")
    for name in numbers:
        grid.add_column(name, justify="right", overflow="fold")
    return grid
