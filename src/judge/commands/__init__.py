"""The `wabe` commands: one module for each, with a function (or a group) of the command's name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

OutputDir = Annotated[Path | None, typer.Option(help="Where runs are kept.")]
TasksFile = Annotated[
    Path | None,
    typer.Option("--tasks", help="Data set file with the texts of a foreign folder's tasks.", metavar="FILE"),
]
RUN_HELP = "A run's id, its folder, `latest`, or a folder with trajectories."
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_PIPED_WIDTH = 140


def plain_app(*, add_completion: bool = False, **options: Any) -> typer.Typer:
    """A Typer app whose help and errors are plain text."""
    return typer.Typer(add_completion=add_completion, pretty_exceptions_enable=False, rich_markup_mode=None, **options)


def wide_console() -> "Console":
    """A console for tables: Rich assumes 80 columns for a pipe, which would wrap or cut them."""
    # Late, because the help of a command needs no console.
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=_PIPED_WIDTH)
